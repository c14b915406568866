"""The built-in tools in a running gateway: notes, messages to other threads, files to this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from channels.base import ChannelDown, PayloadRefused
from channels.base import ThreadKey as Place
from gateway.agent import Agent
from gateway.app.builtins import BuiltIns
from gateway.app.people import ConfiguredRules, RouteRule
from gateway.config.values import AgentSection, ToolsSection
from gateway.errors import ConfigError
from gateway.gate import Gate, Rule
from gateway.messages import ThreadKey
from gateway.store.rows import Outgoing
from gateway.store.sqlite import SqliteStore
from gateway.tools.notes import MOST_NOTES
from gateway.tools.ports import NoteOwner
from tests.unit.gateway.scene import ELSEWHERE, HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

DM = Place("talk", "w", "dm-ann", "")
OPS = Place("talk", "w", "ops", "")
SECTION = AgentSection(post_to=("talk:w:desk", "talk:w:room"))
NAMES = ("files", "send_file", "post_message", "memory")


class TalkRules(ConfiguredRules):
    """With private conversations, as the memory platform has them."""

    def private(self, key: ThreadKey) -> bool:
        return key.conversation.startswith("dm-")


class SlowStore(SqliteStore):
    """Holds back after what a call posts is committed."""

    def __init__(self, house: House) -> None:
        super().__init__(house.folder / "gateway.db", clock=house.clock)
        self._house = house

    async def post_once(self, outgoing: Sequence[Outgoing], once: str, now: float) -> bool:
        posted = await super().post_once(outgoing, once, now)
        await self._house.pause("posted")
        return posted


def rules_of(house: House) -> ConfiguredRules:
    return TalkRules(
        default_agent="helper",
        users={"talk": frozenset({"ann", "bob"})},
        routes=[RouteRule(match="talk:w:ops", agent="helper", tenant="acme")],
        workspaces={"talk": "w"},
    )


@asynccontextmanager
async def office_of(house: House, *, gate: Gate | None = None) -> AsyncIterator[Office]:
    """A process whose agent has every built-in tool."""
    store, rules = SlowStore(house), rules_of(house)
    built_in = BuiltIns(
        store=store, rules=rules, settings=ToolsSection(), data_dir=house.folder, clock=house.clock
    )
    agent = Agent(
        name="helper",
        tools=tuple(tool for name in NAMES for tool in built_in(name, "helper", SECTION)),
        gate=gate or Gate(default_decision="allow"),
    )
    async with running(house, agent, store=store, rules=rules, data_dir=house.folder) as office:
        yield office


class Asker:
    """Has the model make one call, and tells what it read."""

    def __init__(self, house: House, office: Office) -> None:
        self._house, self.office, self._count = house, office, 0

    async def __call__(self, tool: str, user: str = "ann", at: Place = HERE, **args: Any) -> str:
        self._count += 1
        text = f"do {self._count}"
        self._house.plan[text] = [calls(call(tool, **args)), "done"]
        await self.office.say(text, user=user, key=at)
        results = [result for message in await self.office.log(at) for result in message.results]
        return results[-1].content


# ---- notes


async def test_a_note_outlives_the_conversation_and_the_process(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        told = await ask("memory", action="remember", key=" Preferred  Units ", text="metric")
        assert told == "Noted as 'preferred units'."
        await office.say("/new")
    async with office_of(house) as office:
        ask = Asker(house, office)
        assert await ask("memory", action="recall") == "preferred units: metric"
        assert await ask("memory", action="recall", key="preferred units") == "metric"
        assert await ask("memory", action="recall", key="none") == "There is no note 'none'."
        assert await ask("memory", action="forget", key="Preferred Units") == "Forgot 'preferred units'."
        assert (
            await ask("memory", action="forget", key="preferred units")
            == "There is no note 'preferred units'."
        )
        assert await ask("memory", action="recall") == "There are no notes."


async def test_nobody_reads_another_persons_notes_but_a_threads_notes_are_everybodys(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("memory", action="remember", key="size", text="ann wears 38")
        await ask("memory", action="remember", about="thread", key="topic", text="shoes")
        assert await ask("memory", "bob", action="recall") == "There are no notes."
        assert await ask("memory", "bob", action="forget", key="size") == "There is no note 'size'."
        assert await ask("memory", "bob", action="recall", about="thread") == "topic: shoes"
        assert await ask("memory", at=ELSEWHERE, action="recall", about="thread") == "There are no notes."
        assert await ask("memory", action="recall") == "size: ann wears 38"


async def test_what_was_said_in_private_is_not_read_where_others_read_along(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("memory", at=DM, action="remember", key="salary", text="5000")
        await ask("memory", action="remember", key="size", text="38")
        here = await ask("memory", action="recall")
        assert here == "size: 38\n(1 more about this person, for a private conversation only)"
        assert "There is no note" in await ask("memory", action="recall", key="salary")
        assert "There is no note" in await ask("memory", action="forget", key="salary")
        assert await ask("memory", at=DM, action="recall") == "salary: 5000\nsize: 38"


async def test_notes_do_not_cross_tenants(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("memory", action="remember", key="size", text="38")
        assert await ask("memory", at=OPS, action="recall") == "There are no notes."


async def test_a_note_has_a_key_a_text_and_a_limit(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        assert "key and text are needed" in await ask("memory", action="remember", key="a")
        assert "key and text are needed" in await ask("memory", action="remember", text="a")
        assert "say which note" in await ask("memory", action="forget")
        assert "invalid arguments" in await ask("memory", action="remember", key="a", text="x" * 2_001)
        owner = NoteOwner(tenant="", kind="person", channel="talk", workspace="w", name="ann")
        await ask("memory", action="remember", key="first", text="1")
        (note,) = await office.store.notes(owner)
        for number in range(MOST_NOTES - 1):
            assert await office.store.put_note(
                owner, type(note)(key=f"n{number}", text="x", place=note.place, at=0.0), MOST_NOTES
            )
        assert "forget one" in await ask("memory", action="remember", key="one too many", text="x")
        assert "Noted" in await ask("memory", action="remember", key="first", text="changed")


async def test_people_see_and_delete_what_is_noted(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("memory", action="remember", key="size", text="38 `x` @everyone")
        await ask("memory", action="remember", about="thread", key="topic", text="shoes")
        await ask("memory", at=DM, action="remember", key="salary", text="5000")

        async def said(text: str, **more: Any) -> str:
            await office.say(text, **more)
            return office.world.texts(more.get("key", HERE))[-1]

        here = await said("/memory")
        assert "`size`: `38 'x' @everyone`" in here and "`topic`: `shoes`" in here
        assert "5000" not in here and "1 more about you" in here
        assert "`salary`: `5000`" in await said("/memory", key=DM)
        bobs = await said("/memory", user="bob")
        assert "topic" in bobs and "size" not in bobs and "more about you" not in bobs
        assert "There is no note" in await said("/memory forget size", user="bob")
        assert await said("/memory forget topic", user="bob") == "Forgotten: `topic`."
        assert await said("/memory forget Size") == "Forgotten: `size`."
        assert await said("/memory forget all") == "Forgotten: 1 note about you."
        assert await said("/memory", key=DM) == "Nothing is noted about you or here."
        await ask("memory", action="remember", about="thread", key="a", text="b")
        assert await said("/memory forget thread") == "Forgotten: 1 note of this thread."
        assert (await said("/memory what")).startswith("Write `/memory`")


async def test_a_command_that_only_its_author_sees_shows_what_is_private(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("memory", at=DM, action="remember", key="salary", text="5000")
        await office.say("/memory", hidden=True)
        _where, message = office.world.messages[-1]
        assert "5000" in message.text and message.only is not None and message.only.user == "ann"


# ---- messages to other threads


async def test_a_message_to_another_thread_is_posted_there_and_only_there(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        assert await ask("post_message", thread="talk:w:desk", text="**hi**") == "Posted to talk:w:desk."
        assert office.world.texts(ELSEWHERE) == ["**hi**"]
        assert office.world.texts(HERE) == ["done"]
        (message,) = [m for where, m in office.world.messages if where == ELSEWHERE]
        assert message.kind == "answer" and not message.mentions
        assert "invalid arguments" in await ask("post_message", thread="talk:w:other", text="hi")
        assert "is empty" in await ask("post_message", thread="talk:w:desk", text="  ")
        assert len(office.world.texts(ELSEWHERE)) == 1


async def test_a_message_is_posted_once_although_the_process_dies_before_the_call_is_done(
    house: House,
) -> None:
    house.plan["go"] = [calls(call("post_message", thread="talk:w:desk", text="once")), "done"]
    hold = house.hold("posted")
    async with office_of(house) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.kill()
    del house.holds["posted"]
    async with office_of(house) as office:
        await office.settle()
        assert office.world.texts(ELSEWHERE) == ["once"]
        assert office.world.texts(HERE)[-1] == "done"


async def test_the_outbox_keeps_a_message_while_the_platform_is_down(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        office.talk.trouble = [ChannelDown("away")]
        await ask("post_message", thread="talk:w:desk", text="later")
        house.clock.advance(minutes=5)
        await office.settle()
        assert office.world.texts(ELSEWHERE) == ["later"]
        assert office.world.texts(HERE) == ["done"]


async def test_a_thread_that_is_not_there_is_told_at_the_start(house: House) -> None:
    built_in = BuiltIns(
        store=SlowStore(house),
        rules=rules_of(house),
        settings=ToolsSection(),
        data_dir=house.folder,
        clock=house.clock,
    )
    with pytest.raises(ConfigError) as caught:
        built_in("post_message", "helper", AgentSection(post_to=("other:w:room",)))
    assert caught.value.key == "agents.helper.post_to[0]"
    with pytest.raises(ConfigError):
        built_in("shell", "helper", SECTION)


# ---- files


def sent_files(office: Office) -> list[tuple[str, bytes]]:
    files = [file for where, m in office.world.messages if where == HERE for file in m.files]
    return [(file.name, Path(file.path).read_bytes()) for file in files]


async def test_a_file_is_sent_to_the_thread_with_its_caption_before_it(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("write_file", path="reports/may.csv", content="a,b\n")
        assert await ask("send_file", path="reports/may.csv", caption="May") == "may.csv is on its way."
        assert sent_files(office) == [("may.csv", b"a,b\n")]
        texts = office.world.texts(HERE)
        assert texts.index("May") + 1 == texts.index("")  # a file has no words of its own
        assert office.world.texts(ELSEWHERE) == []


async def test_what_was_sent_is_what_there_was_when_it_was_sent(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("write_file", path="a.txt", content="first")
        office.talk.trouble = [ChannelDown("away")]
        await ask("send_file", path="a.txt")
        await ask("write_file", path="a.txt", content="second")
        house.clock.advance(minutes=5)
        await office.settle()
        assert sent_files(office) == [("a.txt", b"first")]


async def test_a_file_is_sent_once_although_the_process_dies_before_the_call_is_done(house: House) -> None:
    async with office_of(house) as office:
        await Asker(house, office)("write_file", path="a.txt", content="x")
        hold = house.hold("posted")
        house.plan["go"] = [calls(call("send_file", path="a.txt")), "done"]
        await office.talk.say("go")
        await hold.is_reached()
        await office.kill()
    del house.holds["posted"]
    async with office_of(house) as office:
        await office.settle()
        assert sent_files(office) == [("a.txt", b"x")]


async def test_only_files_of_the_session_are_sent(house: House) -> None:
    (house.folder / "secret.txt").write_text("secret")
    async with office_of(house) as office:
        ask = Asker(house, office)
        for path in ("../../secret.txt", str(house.folder / "secret.txt"), "secret.txt", "gateway.db"):
            told = await ask("send_file", path=path)
            assert "on its way" not in told
        assert sent_files(office) == []


async def test_a_file_that_the_platform_refuses_is_told_in_words(house: House) -> None:
    async with office_of(house) as office:
        ask = Asker(house, office)
        await ask("write_file", path="a.exe", content="x")
        office.talk.trouble = [PayloadRefused("no programs")]
        await ask("send_file", path="a.exe")
        assert "I could not send the file a.exe: no programs." in office.world.texts(HERE)


async def test_writing_asks_by_default_and_the_card_shows_the_difference(house: House) -> None:
    allowed = Rule(tool="read_file", decision="allow")
    async with office_of(house, gate=Gate(rules=(allowed,))) as office:
        for content in ("one\ntwo\n", "one\nthree\n"):
            text = f"write {content}"
            house.plan[text.strip()] = house.plan[text] = [
                calls(call("write_file", path="a.txt", content=content)),
                "written",
            ]
            await office.say(text)
            ref, card = office.world.card()
            assert card.preview_kind == "diff"
            await office.press(ref, button(card, "Approve"))
        assert "-two" in card.preview.splitlines() and "+three" in card.preview.splitlines()
        house.plan["read"] = [calls(call("read_file", path="a.txt")), "read"]
        await office.say("read")
        results = [r.content for message in await office.log() for r in message.results]
        assert results[-1] == "one\nthree\n"
