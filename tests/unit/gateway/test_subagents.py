"""Agents that give work to agents: every conversation has its rows, and whoever asks is asked in the
thread where it began."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.agent import Agent, Subagent
from gateway.app import Parts, console
from gateway.app.asking import Ask, Watcher, ask_with
from gateway.approvals import Approve
from gateway.gate import Rule
from gateway.messages import File, Json
from gateway.tools.base import CallContext, Tool, ToolOutput
from gateway.tools.subagent import with_subagents
from tests.unit.gateway.scene import House, Office, call, calls, parts, running
from tests.unit.gateway.talk import TalkChannel, button


def family(
    house: House, *, only: Sequence[str] = (), below: bool = False, boss: Any = None, ops: Any = None
) -> list[Agent]:
    """boss calls ops and eyes; with `below` ops calls deep, which may pay."""
    given = {name: subagent for name, subagent in (("deep", Subagent(agent="deep")),) if below}
    agents = [
        house.agent(
            name="boss",
            subagents=(Subagent(agent="ops", only=tuple(only)), Subagent(agent="eyes")),
            **(boss or {}),
        ),
        house.agent(name="ops", tool_description="Pays.", subagents=tuple(given.values()), **(ops or {})),
        house.agent(name="eyes", tool_description="Looks."),
        house.agent(name="deep", tool_description="Works below."),
    ]
    return list(with_subagents({agent.name: agent for agent in agents}).values())


def plain(house: House, **changes: Any) -> list[Agent]:
    """The agents; routes go to boss."""
    return family(house, **changes)


async def children(office: Office) -> list[str]:
    """The ids of the subagents' sessions, in the order in which they were begun."""
    rows = await office.store._read(  # type: ignore[attr-defined]
        lambda db: db.execute("SELECT id FROM sessions WHERE parent <> '' ORDER BY depth, id").fetchall()
    )
    return [row[0] for row in rows]


async def results(office: Office) -> list[str]:
    """What the thread's agent has read of its calls, without the line about the session."""
    return [r.content.split("\n\n[session: ")[0] for m in await office.log() for r in m.results]


async def test_the_last_words_of_a_subagent_are_the_result_and_nothing_else_is_posted(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="note it")), "all done"]
    house.plan["note it"] = [calls(call("note", text="x"), text="I write it down."), "it is noted"]
    async with running(house, *plain(house)) as office:
        await office.say("go")
        assert await results(office) == ["it is noted"]
        assert house.world.texts() == ["all done"]
        assert house.ran == ["note x"]
        (child,) = await children(office)
        view = await office.store.session(child)
        assert view is not None and view.parent == (await office.session()).id and view.status == "idle"
        assert [s.agent for s in await office.store.sessions()] == ["boss"]
        assert (await office.store.log(child))[0].text == "note it"


async def test_subagents_of_one_step_work_side_by_side(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="one"), call("eyes", task="two")), "both"]
    house.plan["one"], house.plan["two"] = ["1"], ["2"]
    first, second = house.hold("one"), house.hold("two")
    async with running(house, *plain(house)) as office:
        await office.talk.say("go")
        await first.is_reached()
        await second.is_reached()
        second.go.set()
        first.go.set()
        await office.settle()
        assert await results(office) == ["1", "2"]


async def test_a_call_inside_is_asked_about_in_the_thread_and_goes_on_after_a_restart(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "paid for you"]
    house.plan["pay it"] = [calls(call("pay", order="A", amount=5)), "paid A"]
    async with running(house, *plain(house)) as office:
        await office.say("go")
        root = await office.session()
        assert root.status == "pending" and root.open_pendings == 1
        (record,) = await office.pendings()
        assert record.home == root.id and record.session_id != root.id
        assert (record.agent, record.works_for) == ("ops", "boss")
        assert record.requester.user == "ann"
        _, card = house.world.card()
        assert "Asked by ops, working for boss." in card.summary
        assert [p.id for p in await office.pendings(session_id=root.id)] == [record.id]
        events = await office.stored_events()
        assert [kind for kind, _ in events].count("approval:pending") == 1
        await office.kill()
    async with running(house, *plain(house)) as office:
        ref, card = house.world.card()
        assert "Approved" in await office.press(ref, button(card, "Approve"))
        assert house.ran == ["pay A 5"]
        assert await results(office) == ["paid A"]
        assert house.world.texts() == ["paid for you"]
        assert (await office.session()).open_pendings == 0


async def test_two_levels_wait_and_go_on_together(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="have it paid")), "top"]
    house.plan["have it paid"] = [calls(call("deep", task="pay it")), "middle"]
    house.plan["pay it"] = [calls(call("pay", order="A"), call("pay", order="B")), "bottom"]
    async with running(house, *plain(house, below=True)) as office:
        await office.say("go")
        (first, second) = await office.pendings()
        assert {first.home, second.home} == {(await office.session()).id}
        await office.say(f"/approve {first.pending.code}")
        assert (await office.session()).status == "pending"
        await office.kill()
    async with running(house, *plain(house, below=True)) as office:
        await office.say(f"/approve {second.pending.code}")
        assert sorted(house.ran) == ["pay A 10", "pay B 10"]
        assert await results(office) == ["middle"]
        assert house.world.texts()[-1] == "top"
        shown = [data for kind, data in await office.stored_events() if kind == "approval:pending"]
        assert len(shown) == 2


async def test_a_denial_inside_ends_the_whole(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it"), call("eyes", task="pay too")), "never said"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "never said"]
    house.plan["pay too"] = [calls(call("pay", order="B")), "never said"]
    async with running(house, *plain(house)) as office:
        await office.say("go")
        one, other = await office.pendings()
        await office.say(f"/deny {one.pending.code}")
        assert house.ran == []
        assert (await office.session()).status == "idle"
        states = {p.id: p.state for p in await office.pendings(open_only=False)}
        assert states == {one.id: "denied", other.id: "superseded"}
        for child in await children(office):
            view = await office.store.session(child)
            assert view is not None and view.status == "idle"
        await office.log()
        assert "denied by" in house.world.texts()[-1]


async def test_a_caller_that_goes_on_after_denials_reads_of_it(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "then not"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "never said"]
    async with running(house, *plain(house, boss={"on_denial": "continue"})) as office:
        await office.say("go")
        await office.say("/deny")
        (told,) = await results(office)
        assert told.startswith("denied by Ann")
        assert house.world.texts()[-1] == "then not"


async def test_a_denial_with_words_is_what_the_subagent_goes_on_with(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "good"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "never said"]
    house.plan["take B"] = [calls(call("note", text="B")), "noted B instead"]
    async with running(house, *plain(house)) as office:
        await office.say("go")
        (record,) = await office.pendings()
        await office.say(f"/deny {record.pending.code} take B")
        assert house.ran == ["note B"]
        assert await results(office) == ["noted B instead"]
        assert house.world.texts()[-1] == "good"


async def test_a_request_inside_that_expires_lets_everything_go_on(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "so be it"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "nobody answered"]
    async with running(house, *plain(house, ops={"rule": {"expires": 60}})) as office:
        await office.say("go")
        house.clock.advance(61)
        await office.settle()
        assert await results(office) == ["nobody answered"]
        assert house.ran == []


@pytest.mark.parametrize("command", ["/stop", "/new"])
async def test_what_waits_below_is_closed_with_the_thread(house: House, command: str) -> None:
    house.plan["go"] = [calls(call("ops", task="have it paid")), "never said"]
    house.plan["have it paid"] = [calls(call("deep", task="pay it")), "never said"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "never said"]
    async with running(house, *plain(house, below=True)) as office:
        await office.say("go")
        root = (await office.session()).id
        await office.say(command)
        assert [p.state for p in await office.pendings(open_only=False)] == ["superseded"]
        for session in [root, *await children(office)]:
            view = await office.store.session(session)
            assert view is not None and (view.status, view.queued) == ("idle", 0)
        assert house.ran == [] and house.world.live() == []
        assert "1 open request(s) were closed" in " ".join(house.world.texts())
        await office.say("hello")
        assert house.world.texts()[-1] == "you said: hello"


async def test_what_runs_below_is_stopped_with_the_thread(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="send it")), "never said"]
    house.plan["send it"] = [calls(call("send", to="x")), "never said"]
    hold = house.hold("send")
    async with running(house, *plain(house)) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.say("/stop")
        for session in [(await office.session()).id, *await children(office)]:
            view = await office.store.session(session)
            assert view is not None and view.status == "idle"
        assert house.ran == ["send x"]
        await office.log()


async def test_a_question_from_below_is_answered_with_a_plain_message(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="ask")), "thank you"]
    house.plan["ask"] = [calls(call("ask_user", question="Which one?")), "it is blue"]
    async with running(house, *plain(house)) as office:
        await office.say("go")
        _, card = house.world.card()
        assert "Asked by ops, working for boss." in card.summary
        await office.say("blue")
        (child,) = await children(office)
        assert [r.content for m in await office.store.log(child) for r in m.results] == ["blue"]
        assert house.world.texts()[-1] == "thank you"


async def test_a_crash_in_the_tool_of_a_subagent_runs_nothing_twice(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="send it")), "the end"]
    house.plan["send it"] = [calls(call("send", to="x")), "sent it"]
    hold = house.hold("send")
    async with running(house, *plain(house)) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.kill()
    del house.holds["send"]
    async with running(house, *plain(house)) as office:
        await office.settle()
        ref, card = house.world.card()
        assert "stopped while send was running" in card.summary
        await office.press(ref, button(card, "treat as done"))
        assert house.ran == ["send x"]
        assert await results(office) == ["sent it"]
        assert house.world.texts() == ["the end"]


async def test_a_crash_between_the_ends_of_both_gives_one_result(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="note it")), "the end"]
    house.plan["note it"] = [calls(call("note", text="x")), "noted"]
    hold = house.hold("go#1")
    async with running(house, *plain(house)) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.kill()
    del house.holds["go#1"]
    async with running(house, *plain(house)) as office:
        await office.settle()
        assert house.ran == ["note x"]
        assert await results(office) == ["noted"]
        assert len(await children(office)) == 1


async def test_this_session_means_the_whole_conversation(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "one"]
    house.plan["again"] = [calls(call("ops", task="pay it")), "two"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "paid"]
    async with running(house, *plain(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve for this session"))
        await office.say("again")
        assert house.ran == ["pay A 10", "pay A 10"] and house.world.live() == []
        await office.say("/grants")
        assert "pay" in house.world.texts()[-1]
        await office.say("/new")
        await office.say("again")
        assert len(house.ran) == 2 and len(house.world.live()) == 1


async def test_one_conversation_goes_on_over_several_calls(house: House) -> None:
    async with running(house, *plain(house)) as office:
        house.plan["go"] = [calls(call("ops", task="first")), "one"]
        house.plan["first"] = ["hello"]
        await office.say("go")
        (child,) = await children(office)
        house.plan["more"] = [calls(call("ops", task="second", session=child)), "two"]
        house.plan["second"] = ["hello again"]
        await office.say("more")
        assert await results(office) == ["hello", "hello again"]
        assert await children(office) == [child]
        assert [m.text for m in await office.store.log(child)] == ["first", "hello", "second", "hello again"]
        house.plan["wrong"] = [calls(call("eyes", task="x", session=child)), "no"]
        await office.say("wrong")
        assert (await results(office))[-1].startswith("not run: there is no session")


async def test_two_calls_of_a_step_do_not_share_a_conversation(house: House) -> None:
    async with running(house, *plain(house)) as office:
        house.plan["go"] = [calls(call("ops", task="first")), "one"]
        await office.say("go")
        (child,) = await children(office)
        twice = [call("ops", task=task, session=child) for task in ("a", "b")]
        house.plan["more"] = [calls(*twice), "two"]
        await office.say("more")
        told = (await results(office))[1:]
        assert sorted(text.startswith("not run: the session") for text in told) == [False, True]


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({"max_depth": 1}, "agents.boss.max_depth is 1"),
        ({"max_children": 1}, "agents.boss.max_children is 1"),
        ({"max_subagent_calls": 1}, "agents.boss.max_subagent_calls is 1"),
        ({"subagent_rate": 1}, "agents.boss.subagent_rate is 1"),
    ],
)
async def test_a_limit_is_a_result_that_names_its_key(house: House, limit: Any, says: str) -> None:
    inner = call("ops", task="one")
    if "max_depth" in limit:
        house.plan["one"] = [calls(call("deep", task="two")), "inner done"]
        house.plan["go"] = [calls(inner), "done"]
    else:
        house.plan["go"] = [calls(inner, call("eyes", task="two")), "done"]
    async with running(house, *plain(house, below=True, boss=limit)) as office:
        await office.say("go")
        read = [r.content for request in house.requests for m in request.messages for r in m.results]
        assert any(says in text for text in read)
        assert house.world.texts()[-1] == "done"


async def test_calls_are_counted_by_turn(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="one")), "done"]
    async with running(house, *plain(house, boss={"max_subagent_calls": 1})) as office:
        await office.say("go")
        await office.say("go")
        assert [text.startswith("not run") for text in await results(office)] == [False, False]


async def test_tools_are_narrowed_down_the_tree(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="below")), "done"]
    house.plan["below"] = [calls(call("deep", task="try"), call("pay", order="A")), "tried"]
    house.plan["try"] = [calls(call("note", text="x"), call("look", at="y")), "tried as well"]
    async with running(house, *plain(house, below=True, only=["deep", "look"])) as office:
        await office.say("go")
        assert house.ran == ["look y"]
        read = [r.content for request in house.requests for m in request.messages for r in m.results]
        assert any("there is no tool 'pay'" in text for text in read)
        assert any("there is no tool 'note'" in text for text in read)


async def test_a_subagent_without_an_answer_is_an_error_that_says_how_it_ended(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="loop")), "I see"]
    house.plan["loop"] = [calls(call("note", text="1"), text="on it"), calls(call("note", text="2"))]
    async with running(house, *plain(house, ops={"max_steps": 1})) as office:
        await office.say("go")
        (told,) = await results(office)
        assert told.startswith("ops ended without an answer: exhausted_steps")
        assert house.world.texts() == ["I see"]


async def test_the_deadline_of_the_caller_ends_what_works_below(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="wait")), "never said"]
    hold = house.hold("wait")
    async with running(house, *plain(house, boss={"deadline": 1.5})) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.settle()
        (child,) = await children(office)
        view = await office.store.session(child)
        assert view is not None and view.status == "idle"
        assert (await office.session()).status == "idle"


async def test_another_process_may_run_the_other_half(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "paid for you"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "paid A"]
    async with running(house, *plain(house)) as first, running(house, *plain(house)) as second:
        await first.say("go")
        ref, card = house.world.card()
        await second.press(ref, button(card, "Approve"))
        await first.settle()
        await second.settle()
        assert house.ran == ["pay A 10"]
        assert await results(first) == ["paid A"]
        assert house.world.texts() == ["paid for you"]


async def test_a_subagent_is_called_without_being_asked_about_unless_a_rule_names_it(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="note it")), "done"]
    house.plan["note it"] = [calls(call("note", text="x")), "noted"]
    asks = Rule(tool="ops", decision="ask")
    async with running(house, *plain(house, boss={"rules": (asks,)})) as office:
        await office.say("go")
        assert house.ran == []
        await office.say("/approve")
        assert house.ran == ["note x"] and await results(office) == ["noted"]


async def test_the_command_line_asks_and_resolves_through_both(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "paid for you"]
    house.plan["pay it"] = [calls(call("pay", order="A"), text="I pay."), "paid A"]

    def given() -> Parts:
        return parts(house, TalkChannel(house.world), plain(house))

    assert await ask_with(given(), Ask(agent="boss", text="go")) == 8
    pending_id = capsys.readouterr().out.strip()
    watcher = Watcher(sys.stdout, sys.stderr, as_json=False)
    async with console.bench(given(), watcher) as at:
        result = await console.resolve(at, pending_id, Approve())
    assert result.outcome == "resumed" and watcher.ended() == 0
    out = capsys.readouterr().out
    assert "paid for you" in out and "I pay." not in out and "paid A" not in out
    assert house.ran == ["pay A 10"]


async def test_a_gateway_that_stops_gives_both_halves_back(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="note it")), "the end"]
    house.plan["note it"] = [calls(call("note", text="x")), "noted"]
    hold = house.hold("note")
    async with running(house, *plain(house)) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.end()
    del house.holds["note"]
    told = house.world.texts()
    async with running(house, *plain(house)) as office:
        await office.settle()
        assert await results(office) == ["noted"]
        assert house.world.texts() == [*told, "the end"] and len(told) <= 1
        assert len(await children(office)) == 1


async def test_a_newer_message_closes_what_waits_below_where_it_supersedes(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "never said"]
    house.plan["pay it"] = [calls(call("pay", order="A")), "never said"]
    async with running(house, *plain(house, boss={"while_pending": "supersede"})) as office:
        await office.say("go")
        await office.say("something else")
        assert [p.state for p in await office.pendings(open_only=False)] == ["superseded"]
        assert house.world.texts()[-1] == "you said: something else"
        assert house.ran == []


async def test_what_those_who_decide_alone_may_see_stays_hidden_from_below(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay it")), "never said"]
    house.plan["pay it"] = [calls(call("pay", order="A-77")), "never said"]
    async with running(house, *plain(house, ops={"rule": {"reveal": "approvers"}})) as office:
        await office.say("go")
        _, card = house.world.card()
        assert "working for boss" in card.summary and "A-77" not in str(card)


async def test_two_calls_below_share_a_card_and_one_press(house: House) -> None:
    house.plan["go"] = [calls(call("ops", task="pay both")), "all paid"]
    house.plan["pay both"] = [calls(call("pay", order="A"), call("pay", order="B")), "both paid"]
    async with running(house, *plain(house)) as office:
        await office.say("go")
        ref, card = house.world.card()
        assert len(card.calls) == 2 and "working for boss" in card.summary
        await office.press(ref, button(card, "Approve all (2)"))
        assert sorted(house.ran) == ["pay A 10", "pay B 10"]
        assert house.world.texts()[-1] == "all paid"


async def test_files_of_a_subagents_tools_are_sent_with_the_callers_answer(house: House) -> None:
    async def make(args: Json, context: CallContext) -> ToolOutput:
        return ToolOutput(text="made", parts=(File(path="out/a.txt", name="a.txt", media_type="text/plain"),))

    tool = Tool(name="make", description="Make.", input_schema={"type": "object"}, handler=make)
    agents = [replace(a, tools=(*a.tools, tool)) if a.name == "ops" else a for a in plain(house)]
    house.plan["go"] = [calls(call("ops", task="make it")), "here"]
    house.plan["make it"] = [calls(call("make")), "made it"]
    async with running(house, *agents) as office:
        await office.say("go")
        (result,) = [r for m in await office.log() for r in m.results]
        assert [part.name for part in result.parts if isinstance(part, File)] == ["a.txt"]
