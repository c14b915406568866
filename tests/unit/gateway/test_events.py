"""Packed events unpack to what was said live, whatever the turn's outcome; ids find their place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.budget import Spent
from gateway.eventlog import EventLines, Stored, event_lines, pack, parse_event_id, unpack
from gateway.events import (
    ApprovalPending,
    AssistantDelta,
    Decided,
    Event,
    SkillLoaded,
    ToolStarted,
    TurnError,
    encode_event,
)
from gateway.messages import ThreadKey
from gateway.providers.scripted import Reply
from gateway.store.rows import TurnView
from tests.unit.gateway.scene import HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

Play = Callable[[Office], Awaitable[None]]


async def first(office: Office) -> tuple[str, Any]:
    return next(
        (ref, card)
        for ref, shown in office.world.cards.items()
        for card in shown.calls or (shown,)
        if card.state == "open"
    )


async def only_say(office: Office) -> None:
    await office.say("go")


async def approve(office: Office) -> None:
    await office.say("go")
    while office.world.live():
        ref, card = await first(office)
        await office.press(ref, button(card, "Approve"))


async def deny(office: Office) -> None:
    await office.say("go")
    ref, card = await first(office)
    await office.press(ref, button(card, "Deny"))


async def let_it_expire(office: Office) -> None:
    await office.say("go")
    office.house.clock.advance(hours=2)
    await office.settle()


async def stop(office: Office) -> None:
    await office.say("go")
    await office.say("/stop")


async def stop_running(office: Office) -> None:
    hold = office.house.hold("send")
    await office.talk.say("go")
    await hold.is_reached()
    await office.say("/stop")


async def answer(office: Office) -> None:
    await office.say("go")
    await office.say("blue\u2028green")


PAY = call("pay", order="A\u2028B\x85C", amount=3)
TURNS: dict[str, tuple[list[Any], Play, dict[str, Any], str]] = {
    "completed": (
        [calls(call("look", at="x"), call("send", to="y"), text="A moment."), "over"],
        only_say,
        {},
        "completed",
    ),
    "failed call": ([calls(call("nonsense"), call("send", wrong=1)), "over"], only_say, {}, "completed"),
    "approved": ([calls(PAY, call("pay", order="B"), text="May I?"), "over"], approve, {}, "completed"),
    "waiting": ([calls(call("look", at="x"), PAY)], only_say, {}, "pending_approval"),
    "denied": ([calls(PAY, call("pay", order="B"))], deny, {}, "denied"),
    "denied, goes on": (
        [calls(PAY, call("pay", order="B")), "over"],
        deny,
        {"on_denial": "continue"},
        "pending_approval",
    ),
    "expired": ([calls(PAY), "over"], let_it_expire, {"rule": {"expires": 60.0}}, "completed"),
    "one expired": (
        [calls(PAY, call("ask_user", question="Which?"))],
        let_it_expire,
        {"rule": {"expires": 60.0}},
        "pending_question",
    ),
    "answered": ([calls(call("ask_user", question="Which\u2028colour?")), "over"], answer, {}, "completed"),
    "stopped, waiting": ([calls(PAY)], stop, {}, "cancelled"),
    "stopped, running": ([calls(call("send", to="y"))], stop_running, {}, "cancelled"),
    "refused": ([Reply(text="I would rather not.", stop="refusal")], only_say, {}, "refused"),
    "steps": ([calls(call("look", at=str(n))) for n in range(9)], only_say, {"max_steps": 2}, "max_turns"),
    "tokens": (
        [calls(call("look", at=str(n))) for n in range(9)],
        only_say,
        {"max_tokens": 1},
        "exhausted_tokens",
    ),
    "circles": ([calls(call("look", at="x"))] * 9, only_say, {"stall_after": 99}, "loop_detected"),
    "stalled": ([calls(call("look", at="x"), text="hm")] * 9, only_say, {"loop_limit": 99}, "stalled"),
    "no model": ([Reply(error="auth")], only_say, {}, "crashed"),
}


@pytest.mark.parametrize("name", TURNS)
async def test_what_is_stored_is_what_was_said_live(house: House, name: str) -> None:
    replies, play, agent, outcome = TURNS[name]
    house.plan["go"] = replies
    async with running(house, house.agent(**agent)) as office:
        await play(office)
        live = [(e.type, encode_event(e)) for _, e in house.events if not isinstance(e, AssistantDelta)]
        assert await office.stored_events() == live
        turns = await office.store.turns_after((await office.session()).id, 0)
        assert turns[-1].outcome == outcome
        kinds = [kind for kind, _ in live]
        assert kinds.count("session") == kinds.count("done") == len(turns)
        assert (kinds[0], kinds[-1]) == ("session", "done")


async def test_no_event_holds_a_secret(house: House) -> None:
    house.plan["go"] = [calls(call("pay", order="A", key="sk-live-0123456789")), "over"]
    async with running(house) as office:
        await approve(office)
        stored = await office.stored_events()
        assert [k for k, _ in stored].count("approval:pending") == 1
        assert not [data for kind, data in stored if "sk-live" in data]


async def test_events_after_any_place_are_the_rest_of_them(house: House) -> None:
    house.plan["go"] = [calls(call("look", at="x")), "over"]
    async with running(house) as office:
        await office.say("go")
        session = await office.store.session_of(ThreadKey(*HERE))
        assert session is not None
        log, (turn,) = await office.store.log(session.id), await office.store.turns_after(session.id, 0)
        results = {r.tool_use_id: r.content for m in log for r in m.results}
        stored = Stored(turn=turn, log=log, first_seq=0, results=results)
        everything = unpack(stored)
        assert [event.id for event in everything] == [f"1.{n}" for n in range(len(everything))]
        for place, event in enumerate(everything):
            assert parse_event_id(event.id) == (1, place)
            assert unpack(stored, skip=place) == everything[place:]


@pytest.mark.parametrize("text", [None, "", "1", "1.", ".1", "1.x", "-1.2", "1.2.3", "a.b", "1 .2"])
def test_nonsense_is_no_place(text: str | None) -> None:
    assert parse_event_id(text) is None


def view(events: str) -> TurnView:
    return TurnView(
        id="s_1.1",
        session_id="s_1",
        number=1,
        trigger="message",
        state="done",
        outcome="completed",
        detail="",
        text="",
        agent="helper",
        events=events,
        spent=Spent(),
        usage={},
        first_seq=0,
        started_at=0.0,
        ended_at=1.0,
    )


TEXT = st.text(max_size=40)
ARGS = st.dictionaries(
    TEXT, st.one_of(TEXT, st.integers(-(2**40), 2**40), st.booleans(), st.none()), max_size=3
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(
        Decided,
        call_id=TEXT,
        tool=TEXT,
        decision=st.sampled_from(["allow", "ask", "deny", "invalid"]),
        reason=TEXT,
        rule=TEXT,
    ),
    st.builds(ToolStarted, call_id=TEXT, tool=TEXT, args=ARGS),
    st.builds(SkillLoaded, skill=TEXT),
    st.builds(TurnError, error=TEXT, message=TEXT),
    st.builds(ApprovalPending, pending_id=TEXT, tool=TEXT, args=ARGS, reason=TEXT),
)


@given(st.lists(EVENTS, max_size=6))
def test_any_event_comes_back_from_its_line(events: list[Event]) -> None:
    lines = EventLines()
    for event in events:
        lines.add(event, 0)
    turn = view(lines.take())
    assert len(event_lines(turn)) == len(events)
    found = unpack(Stored(turn=turn, log=[], first_seq=0, results={}))
    assert [(e.type, e.data) for e in found] == [(e.type, encode_event(e)) for e in events]


def test_deltas_are_not_stored() -> None:
    assert pack(AssistantDelta(text="a"), 3) == ""
