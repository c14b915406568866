"""A person at hand decides while the turn runs; and a stop from outside reaches whatever it does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import pytest

from gateway.approvals import Answer, Approve, Deny, Pending, Resolution
from gateway.cancel import CancelToken, Stopped
from gateway.history import repaired
from gateway.loop import run_agent
from gateway.messages import Json
from gateway.outcome import Outcome
from gateway.providers.base import ModelRequest, ModelResponse
from gateway.tools.base import CallContext, Tool
from gateway.verdicts import SKIPPED, STOPPED
from tests.clock import FakeClock
from tests.unit.loop.scene import (
    SOON,
    Log,
    Person,
    Ran,
    Replies,
    Tape,
    agent,
    answers,
    call,
    contents,
    options,
    rule,
    says,
)


async def test_a_live_approval_runs_the_call_in_the_same_turn() -> None:
    ran, person = Ran(), Person(pay=Approve())
    model = Replies(says("", call("c1", "pay", n=1)), says("paid"))
    result = await run_agent(
        agent(ran.tool("pay"), default="ask"), model, "hi", options=options(approver=person)
    )
    assert (result.outcome, ran.calls) == (Outcome.COMPLETED, [("pay", {"n": 1})])
    assert [pending.args for pending in person.asked] == [{"n": 1}]


async def test_live_answers_and_calls_without_a_question_run_in_call_order() -> None:
    ran, log = Ran(), Log()
    person = Person(pay=Approve(), ask_user=Answer(values=("blue",)))
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")])
    reply = says(
        "",
        call("c1", "pay"),
        call("c2", "ask_user", question="Which?"),
        call("c3", "look"),
        call("c4", "nothing"),
    )
    model = Replies(reply, says("done"))
    await run_agent(desk, model, "hi", options=options(log, approver=person))
    assert ran.names == ["pay", "look"]
    assert contents(model.seen[1][-1])[:3] == ["ok", "blue", "ok"]
    assert sorted(e.call_id for e in log.of("tool:result")) == ["c1", "c2", "c3", "c4"]
    assert [d.call_id for d in log.of("actauth:decision")] == ["c1", "c2", "c3", "c4"]


async def test_a_person_who_does_not_decide_now_leaves_a_durable_stop() -> None:
    ran, person = Ran(), Person(pay=None)
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")])
    reply = says("", call("c1", "pay"), call("c2", "look"))
    result = await run_agent(desk, Replies(reply), "hi", options=options(approver=person))
    assert (result.outcome, ran.names) == (Outcome.PENDING_APPROVAL, ["look"])
    assert result.pending is not None
    assert list(result.pending.outstanding.values()) == person.asked


async def test_after_a_live_denial_nobody_is_asked_about_the_siblings_and_none_runs() -> None:
    ran, person = Ran(), Person(pay=Deny(feedback="no"))
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")])
    reply = says("", call("c1", "look"), call("c2", "pay", n=1), call("c3", "pay", n=2))
    result = await run_agent(desk, Replies(reply), "hi", options=options(approver=person))
    assert (result.outcome, ran.calls) == (Outcome.DENIED, [])
    assert [pending.call_id for pending in person.asked] == ["c2"]
    assert contents(result.messages[-1]) == [
        SKIPPED,
        "denied by the person at the terminal: no",
        SKIPPED,
    ]


async def test_with_continue_a_live_denial_is_one_result_and_the_turn_goes_on() -> None:
    ran, person = Ran(), Person(pay=Deny())
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")], on_denial="continue")
    model = Replies(says("", call("c1", "look"), call("c2", "pay")), says("then not"))
    result = await run_agent(desk, model, "hi", options=options(approver=person))
    assert (result.outcome, ran.names) == (Outcome.COMPLETED, ["look"])
    assert contents(model.seen[1][-1]) == ["ok", "denied by the person at the terminal"]


async def test_live_edits_that_do_not_fit_are_told_and_do_not_run() -> None:
    ran, log = Ran(), Log()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    desk = agent(ran.tool("pay", input_schema=schema), default="ask")
    model = Replies(says("", call("c1", "pay", n=1)), says("hm"))
    person = Person(pay=Approve(edited_args={"n": "one"}))
    await run_agent(desk, model, "hi", options=options(log, approver=person))
    assert ran.calls == []
    assert [d.decision for d in log.of("actauth:decision")] == ["ask", "invalid"]
    assert [e.is_error for e in log.of("tool:result")] == [True]


async def test_the_time_that_a_person_takes_does_not_count() -> None:
    clock, ran = FakeClock(), Ran()

    class Slow(Person):
        async def decide(self, pending: Pending) -> Resolution | None:
            clock.advance(hours=2)
            return Approve()

    desk = agent(ran.tool("pay"), default="ask", deadline=60.0)
    model = Replies(says("", call("c1", "pay")), says("paid"))
    result = await run_agent(desk, model, "hi", options=options(clock=clock, approver=Slow()))
    assert (result.outcome, ran.names, result.spent.seconds) == (Outcome.COMPLETED, ["pay"], 0.0)


async def test_a_stop_reaches_a_turn_that_waits_for_the_person_at_hand() -> None:
    cancel, asked, ran = CancelToken(), asyncio.Event(), Ran()

    class Away(Person):
        async def decide(self, pending: Pending) -> Resolution | None:
            asked.set()
            await asyncio.Event().wait()
            return None

    desk = agent(ran.tool("pay"), default="ask")
    reply = says("", call("c1", "pay"), call("c2", "pay", n=2))
    at = options(cancel=cancel, approver=Away())
    running = asyncio.create_task(run_agent(desk, Replies(reply), "hi", options=at))
    await asyncio.wait_for(asked.wait(), SOON)
    cancel.cancel()
    result = await asyncio.wait_for(running, SOON)
    assert (result.outcome, ran.calls) == (Outcome.CANCELLED, [])
    assert contents(result.messages[-1]) == [STOPPED, STOPPED]


# ---- stops


async def test_a_stop_ends_the_model_call_at_once() -> None:
    cancel, begun, ended = CancelToken(), asyncio.Event(), asyncio.Event()

    async def think(request: ModelRequest) -> ModelResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return says("never")

    running = asyncio.create_task(run_agent(agent(), Replies(think), "hi", options=options(cancel=cancel)))
    await asyncio.wait_for(begun.wait(), SOON)
    cancel.cancel("stopped by /stop")
    before = time.monotonic()
    result = await asyncio.wait_for(running, SOON)
    assert time.monotonic() - before < 0.5
    assert (result.outcome, result.detail) == (Outcome.CANCELLED, "stopped by /stop")
    assert ended.is_set()
    assert result.spent.steps == 0


async def test_c076_a_stop_in_a_tool_leaves_a_valid_history_for_the_next_turn() -> None:
    cancel, begun, ran = CancelToken(), asyncio.Event(), Ran()

    async def wait(args: Json, context: CallContext) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    tool = Tool(name="wait", description="", input_schema={"type": "object"}, handler=wait)
    desk = agent(tool, ran.tool("look"))
    reply = says("", call("c1", "wait"), call("c2", "look"))
    tape = Tape()
    at = options(cancel=cancel, journal=tape)
    running = asyncio.create_task(run_agent(desk, Replies(reply), "hi", options=at))
    await asyncio.wait_for(begun.wait(), SOON)
    cancel.cancel()
    stopped = await asyncio.wait_for(running, SOON)
    assert (stopped.outcome, ran.calls) == (Outcome.CANCELLED, [])
    assert contents(stopped.messages[-1]) == [STOPPED, STOPPED]
    assert repaired(stopped.messages) == list(stopped.messages)
    assert tape.log[-1] == "results"
    model = Replies(says("hello again"))
    following = await run_agent(desk, model, "hello", stopped.messages)
    assert following.outcome is Outcome.COMPLETED
    assert all(r.is_error for r in answers(model.seen[0]).values())


async def test_within_tells_a_stop_from_a_time_limit_and_from_a_failure_inside() -> None:
    token = CancelToken()
    with pytest.raises(Stopped) as caught:
        async with token.within(0.01):
            await asyncio.Event().wait()
    assert caught.value.why == "deadline"
    with pytest.raises(TimeoutError):
        async with token.within(60):
            raise TimeoutError
    token.cancel()
    with pytest.raises(Stopped) as caught:
        async with token.within(None):
            await asyncio.Event().wait()
    assert caught.value.why == "cancelled"


async def test_a_stop_while_slow_work_still_ends_after_its_time_limit_is_heard_by_the_others() -> None:
    token, told, heard = CancelToken(), asyncio.Event(), []

    async def slow_to_end() -> None:
        with pytest.raises(Stopped):
            async with token.within(0.01):
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    told.set()
                    await heard_event.wait()
                    raise

    heard_event = asyncio.Event()
    running = asyncio.create_task(slow_to_end())
    await asyncio.wait_for(told.wait(), SOON)
    token.hook(lambda: heard.append("second"))
    token.cancel()
    assert heard == ["second"]
    heard_event.set()
    await asyncio.wait_for(running, SOON)


def test_a_hook_is_called_once_at_once_when_it_comes_late_and_not_after_it_was_taken_off() -> None:
    token, heard = CancelToken(), list[str]()
    token.hook(lambda: heard.append("first"))
    token.hook(lambda: heard.append("gone"))()
    token.cancel("one")
    token.cancel("two")
    token.hook(lambda: heard.append("late"))
    assert heard == ["first", "late"]
    assert (token.cancelled, token.reason) == (True, "one")


async def test_what_is_said_about_all_calls_of_a_step_holds_for_each_and_the_others_are_asked_about() -> None:
    class Together(Person):
        async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
            first, _, third = pendings
            return {first.pending_id: Approve(), third.pending_id: None}

    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    reply = says("", *(call(f"c{n}", "pay", n=n) for n in (1, 2, 3)))
    person = Together(pay=Approve())
    result = await run_agent(desk, Replies(reply), "hi", options=options(approver=person))
    assert result.outcome is Outcome.PENDING_APPROVAL
    assert ran.calls == [("pay", {"n": 1}), ("pay", {"n": 2})]
    assert [pending.call_id for pending in person.asked] == ["c2"]
    assert result.pending is not None and len(result.pending.outstanding) == 1


async def test_a_denial_of_all_calls_is_a_denial_of_each() -> None:
    class Together(Person):
        async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
            return {pending.pending_id: Deny() for pending in pendings}

    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    reply = says("", call("c1", "pay", n=1), call("c2", "pay", n=2))
    result = await run_agent(desk, Replies(reply), "hi", options=options(approver=Together()))
    assert (result.outcome, ran.calls) == (Outcome.DENIED, [])
    told = [r.content for m in result.messages for r in m.results]
    assert len(told) == 2
    assert all(text.startswith("denied by") for text in told)


async def test_a_single_call_is_not_asked_about_twice() -> None:
    class Alone(Person):
        async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
            raise AssertionError("there is only one")

    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    model = Replies(says("", call("c1", "pay", n=1)), says("paid"))
    await run_agent(desk, model, "hi", options=options(approver=Alone(pay=Approve())))
    assert ran.calls == [("pay", {"n": 1})]
