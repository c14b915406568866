"""Tool servers behind a gateway: cards, answers after a restart, names that models shorten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.gate import Gate, Rule
from gateway.messages import Image
from gateway.tools.mcp import AgentTools
from tests.platforms.mcp.play import ran, serving, settings
from tests.unit.gateway.scene import House, Office, call, calls, running
from tests.unit.gateway.talk import button


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@asynccontextmanager
async def office(
    house: House, *words: str, gate: Gate | None = None, **changes: Any
) -> AsyncIterator[Office]:
    """A gateway whose agent has the tools of the test's own server, and asks about all of them."""
    folder = house.folder / "server"
    async with serving(settings(folder, "house", *words, **changes), folder=house.folder) as servers:
        agent = replace(house.agent(), sources=(AgentTools(servers, None),), gate=gate or Gate())
        async with running(house, agent) as made:
            yield made


def noted(house: House) -> list[str]:
    return ran(house.folder / "server")


async def test_a_call_of_a_server_waits_on_a_card_and_runs_once_after_a_restart(house: House) -> None:
    house.plan["go"] = [calls(call("mcp__house__write", text="hi")), "done"]
    async with office(house) as at:
        await at.say("go")
        assert noted(house) == []
        await at.kill()
    async with office(house) as at:
        ref, card = house.world.card()
        assert "mcp__house__write" in str(card)
        await at.press(ref, button(card, "Approve"))
        assert noted(house) == ["write hi"]
        log = await at.log()
        assert [r.content for m in log for r in m.results] == ["written: hi"]
        assert log[-1].text == "done"


@pytest.mark.parametrize(("trust", "waiting"), [(True, []), (False, ["mcp__house__add"])])
async def test_what_only_reads_is_not_asked_about_where_the_server_is_trusted(
    house: House, trust: bool, waiting: list[str]
) -> None:
    house.plan["go"] = [calls(call("mcp__house__add", a=1, b=2)), "done"]
    async with office(house, trust=trust) as at:
        await at.say("go")
        assert [p.pending.tool for p in await at.pendings()] == waiting


async def test_no_trust_opens_what_a_rule_or_the_default_denies(house: House) -> None:
    house.plan["go"] = [calls(call("mcp__house__add", a=1, b=2)), "done"]
    house.plan["again"] = [calls(call("mcp__house__add", a=1, b=3)), "done"]
    async with office(house, trust=True, gate=Gate(default_decision="deny")) as at:
        await at.say("go")
    rule = Rule(tool="mcp__house__*", decision="deny", reason="not today")
    async with office(house, trust=True, gate=Gate(rules=(rule,))) as at:
        await at.say("again")
    assert noted(house) == []


async def test_a_model_that_leaves_the_prefix_out_means_the_only_tool_of_that_name(house: House) -> None:
    house.plan["go"] = [calls(call("add", a=1, b=2)), "done"]
    rule = Rule(tool="mcp__house__add", decision="allow")
    async with office(house, gate=Gate(rules=(rule,))) as at:
        await at.say("go")
        assert [r.content for m in await at.log() for r in m.results] == ["3"]
        assert noted(house) == ["add 1 2"]


async def test_a_name_that_two_servers_have_is_nobodys(house: House) -> None:
    house.plan["go"] = [calls(call("add", a=1, b=2)), "done"]
    one, two = (settings(house.folder / name, name) for name in ("one", "two"))
    async with serving(one, two, folder=house.folder) as servers:
        agent = replace(house.agent(), sources=(AgentTools(servers, None),))
        async with running(house, agent) as at:
            await at.say("go")
            (result,) = [r for m in await at.log() for r in m.results]
            assert result.content.startswith("there is no tool 'add'")


@pytest.mark.parametrize(
    ("tool", "words"), [("ask_size", ("legacy",)), ("choose", ())], ids=["older", "newer"]
)
async def test_a_servers_question_is_answered_after_a_restart_and_the_call_goes_on(
    house: House, tool: str, words: tuple[str, ...]
) -> None:
    house.plan["go"] = [calls(call(f"mcp__house__{tool}")), "done"]
    allow = Gate(default_decision="allow")
    async with office(house, *words, gate=allow) as at:
        await at.say("go")
        (record,) = await at.pendings()
        assert record.pending.kind == "question"
        await at.kill()
    async with office(house, *words, gate=allow) as at:
        await at.say("12")
        assert len(await at.pendings()) == 1  # 9 at most: asked again, with the reason
        await at.say("4")
        assert await at.pendings() == []
        log = await at.log()
        assert [r.content for m in log for r in m.results] in (["size 4"], ["chosen 4"])
        assert log[-1].text == "done"
    assert noted(house)[-1] in ("asked accept", "chose 4")
    assert noted(house).count("asked accept") + noted(house).count("chose 4") == 1


async def test_a_stop_closes_a_servers_question(house: House) -> None:
    house.plan["go"] = [calls(call("mcp__house__ask_size")), "done"]
    async with office(house, "legacy", gate=Gate(default_decision="allow")) as at:
        await at.say("go")
        await at.say("/stop")
        assert await at.pendings() == []
        await at.log()
    assert "asked accept" not in noted(house)


async def test_tools_that_a_call_adds_are_there_in_the_next_step(house: House) -> None:
    house.plan["go"] = [calls(call("mcp__house__grow")), calls(call("mcp__house__grown")), "done"]
    async with office(house, gate=Gate(default_decision="allow")) as at:
        await at.say("go")
        assert [r.content for m in await at.log() for r in m.results] == ["ok", "grown up"]
        before, after = ({spec.name for spec in request.tools} for request in house.requests[:2])
        assert after - before == {"mcp__house__grown"}


async def test_a_picture_is_part_of_the_result_by_reference(house: House) -> None:
    house.plan["go"] = [calls(call("mcp__house__picture")), "done"]
    async with office(house, gate=Gate(default_decision="allow")) as at:
        await at.say("go")
        (result,) = [r for m in await at.log() for r in m.results]
        picture = result.parts[0]
        assert isinstance(picture, Image)
        assert (house.folder / picture.path).exists()
        assert "iVBOR" not in result.content
