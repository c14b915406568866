"""A server that asks a person during a call: asked, answered, run again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.questions import Question
from gateway.tools.base import Said
from gateway.tools.mcp import ToolServers
from gateway.tools.waiting import NeedsAnswer
from tests.platforms.mcp.play import call, ran, serving, settings, until
from tests.platforms.mcp.web import web_server

ERAS = [pytest.param(("legacy",), id="stdio"), pytest.param(("legacy", "http"), id="http")]


async def asked(servers: ToolServers, tool: str, said: dict[str, Said] | None = None) -> tuple[Question, str]:
    """The question that a call raises, and its key."""
    with pytest.raises(NeedsAnswer) as raised:
        await call(servers, f"mcp__house__{tool}", said=said)
    return raised.value.question, raised.value.key


@pytest.mark.parametrize("words", ERAS)
async def test_the_older_way_cancels_asks_and_runs_again(tmp_path: Path, words: Sequence[str]) -> None:
    async with web_server(tmp_path / "a", *words) as house, serving(house, folder=tmp_path) as servers:
        question, key = await asked(servers, "ask_size")
        assert question.text == "house asks: How large?\nSize (1 to 9)"
        assert question.kind == "integer"
        output = await call(servers, "mcp__house__ask_size", said={key: Said(values=("7",))})
        assert output.text == "size 7"
        assert ran(tmp_path / "a") == ["asked cancel", "asked accept"]


async def test_the_newer_way_asks_before_anything_runs(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        question, key = await asked(servers, "choose")
        assert question.text.startswith("house asks: Which size?")
        assert ran(tmp_path / "a") == []
        output = await call(servers, "mcp__house__choose", said={key: Said(values=("3",))})
        assert output.text == "chosen 3"
        assert ran(tmp_path / "a") == ["chose 3"]


async def test_the_newer_way_begins_anew_where_the_server_has_forgotten(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        _, key = await asked(servers, "choose")
        assert json.loads(key)["state"]
    async with serving(settings(tmp_path / "a"), folder=tmp_path) as servers:
        output = await call(servers, "mcp__house__choose", said={key: Said(values=("3",))})
        assert output.text == "chosen 3"
    assert ran(tmp_path / "a") == ["chose 3"]


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_the_reason(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a", "house", "legacy"), folder=tmp_path) as servers:
        _, first = await asked(servers, "ask_size")
        said = {first: Said(values=("12",))}
        question, second = await asked(servers, "ask_size", said)
        assert "(The last answer did not fit. size: " in question.text
        assert second != first
        said[second] = Said(values=("9",))
        assert (await call(servers, "mcp__house__ask_size", said=said)).text == "size 9"


async def test_the_same_question_twice_gets_two_answers(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a", "house", "legacy"), folder=tmp_path) as servers:
        _, first = await asked(servers, "ask_twice")
        said = {first: Said(values=("1",))}
        _, second = await asked(servers, "ask_twice", said)
        said[second] = Said(values=("2",))
        assert (await call(servers, "mcp__house__ask_twice", said=said)).text == "1 and 2"


async def test_several_fields_are_several_questions(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a", "house", "legacy"), folder=tmp_path) as servers:
        question, key = await asked(servers, "ask_order")
        assert [(part.name, part.kind) for part in question.parts] == [
            ("name", "text"),
            ("count", "integer"),
            ("gift", "text"),
        ]
        assert [option.label for option in question.parts[1].options] == ["2", "(leave out)"]
        assert [option.label for option in question.parts[2].options] == ["Yes", "No", "(leave out)"]
        values = ("name=box=big", "count=(leave out)", "gift=true")
        output = await call(servers, "mcp__house__ask_order", said={key: Said(values=values)})
        assert json.loads(output.text) == {"name": "box=big", "count": 2, "gift": True}


@pytest.mark.parametrize(("closed", "action"), [("expired", "cancel"), ("/stop", "decline")])
async def test_a_question_that_nobody_answered_is_no_yes(tmp_path: Path, closed: str, action: str) -> None:
    async with serving(settings(tmp_path / "a", "house", "legacy"), folder=tmp_path) as servers:
        _, key = await asked(servers, "ask_size")
        assert (await call(servers, "mcp__house__ask_size", said={key: Said(closed=closed)})).text == action


@pytest.mark.parametrize("words", ERAS)
async def test_a_question_waits_until_it_is_known_whose_it_is(tmp_path: Path, words: Sequence[str]) -> None:
    async with web_server(tmp_path / "a", *words) as house, serving(house, folder=tmp_path) as servers:
        other = asyncio.ensure_future(call(servers, "mcp__house__hang"))
        await until(lambda: "hang" in ran(tmp_path / "a"))
        asking = asyncio.ensure_future(asked(servers, "ask_size"))
        if "http" in words:  # each request has a stream of its own
            await asking
            other.cancel()
        else:
            await asyncio.wait({asking}, timeout=0.3)
            assert not asking.done()
            other.cancel()
            assert (await asking)[0].kind == "integer"
        await asyncio.gather(other, return_exceptions=True)


async def test_several_calls_that_ask_at_once_each_get_their_own_question(tmp_path: Path) -> None:
    async with serving(settings(tmp_path / "a", "house", "legacy"), folder=tmp_path) as servers:
        asks = await asyncio.gather(
            *(asked(servers, name) for name in ("ask_size", "ask_order", "ask_twice"))
        )
        assert [len(question.parts) for question, _ in asks] == [0, 3, 0]
        _, key = asks[0]
        assert (await call(servers, "mcp__house__ask_size", said={key: Said(values=("5",))})).text == "size 5"
