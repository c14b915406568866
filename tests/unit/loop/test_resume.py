"""Stops and resumes: what a person decided is what runs, once, in call order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent import Agent
from gateway.approvals import (
    Answer,
    Approve,
    Deny,
    Expire,
    KnownCall,
    Pending,
    Resolution,
    TurnCheckpoint,
    settle,
)
from gateway.cancel import CancelToken
from gateway.history import Transcript, repaired
from gateway.loop import RunResult, resume_agent, run_agent
from gateway.messages import ToolResult, assistant, call_hash, user
from gateway.outcome import Outcome
from gateway.questions import RUN_AGAIN, TREAT_AS_DONE
from gateway.verdicts import SKIPPED
from tests.clock import FakeClock
from tests.unit.loop.scene import Log, Ran, Replies, Tape, agent, answers, call, contents, options, rule, says


def waiting(result: RunResult) -> dict[str, Pending]:
    assert result.pending is not None
    return {pending.call_id: pending for pending in result.pending.outstanding.values()}


def decided(result: RunResult, **words: Resolution) -> dict[str, KnownCall]:
    """What is known of each call after these words of Ada's, by call id."""
    assert result.pending is not None
    open_ = waiting(result)
    return result.pending.known() | {c: settle(open_[c], word, "Ada") for c, word in words.items()}


async def resumed(desk: Agent, model: Replies, first: RunResult, **words: Resolution) -> RunResult:
    known = decided(first, **words)
    at = options(known=known, spent=first.pending.spent if first.pending else first.spent)
    return await resume_agent(desk, model, first.messages, (), options=at)


async def test_c040_an_approval_runs_the_stored_arguments_without_asking_the_model() -> None:
    ran = Ran()
    desk = agent(ran.tool("note"), default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "note", n="alpha"))), "hi")
    assert ran.calls == []
    model = Replies(says("noted"))
    second = await resumed(desk, model, first, c1=Approve())
    assert ran.calls == [("note", {"n": "alpha"})]
    assert len(model.requests) == 1
    assert (second.outcome, second.text) == (Outcome.COMPLETED, "noted")
    assert answers(second.messages)["c1"].content == "ok"


async def test_c045_with_continue_four_mixed_fates_make_four_results_in_call_order() -> None:
    ran = Ran()
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")], on_denial="continue")
    reply = says("", call("a", "look"), call("b", "pay", n=1), call("c", "pay", n=2), call("d", "pay", n=3))
    first = await run_agent(desk, Replies(reply), "hi")
    assert ran.names == ["look"]
    model = Replies(says("well"))
    second = await resumed(desk, model, first, b=Approve(), c=Deny(feedback="not on Friday"), d=Expire())
    assert ran.calls == [("look", {}), ("pay", {"n": 1})]
    assert second.outcome is Outcome.COMPLETED
    (request,) = model.seen
    assert [m.role for m in request] == ["user", "assistant", "user"]
    assert [r.tool_use_id for r in request[2].results] == ["a", "b", "c", "d"]
    assert [r.is_error for r in request[2].results] == [False, False, True, True]
    a, b, c, d = contents(request[2])
    assert (a, b, c) == ("ok", "ok", "denied by Ada: not on Friday")
    assert d.startswith("not run: the approval request expired")


async def test_a_denial_closes_the_step_even_if_a_sibling_was_approved_before() -> None:
    ran, tape = Ran(), Tape()
    desk = agent(ran.tool("pay"), default="ask")
    reply = says("", call("c1", "pay", n=1), call("c2", "pay", n=2), call("c3", "pay", n=3))
    first = await run_agent(desk, Replies(reply), "hi")
    known = decided(first, c1=Approve(), c2=Deny())
    second = await resume_agent(
        desk, Replies(), first.messages, (), options=options(known=known, journal=tape)
    )
    assert second.outcome is Outcome.DENIED
    assert ran.calls == []
    assert contents(second.messages[-1]) == [SKIPPED, "denied by Ada", SKIPPED]
    assert tape.log == ["results"]


async def test_a_resume_that_leaves_calls_open_stops_again_with_what_is_done() -> None:
    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "pay", n=1), call("c2", "pay", n=2))), "hi")
    second = await resumed(desk, Replies(), first, c1=Approve())
    assert second.outcome is Outcome.PENDING_APPROVAL
    assert second.pending is not None
    assert [r.content for r in second.pending.results_so_far.values()] == ["ok"]
    assert waiting(second) == {"c2": waiting(first)["c2"]}
    third = await resume_agent(
        desk,
        Replies(says("done")),
        first.messages,
        (),
        options=options(known=decided(second, c2=Approve())),
    )
    assert ran.calls == [("pay", {"n": 1}), ("pay", {"n": 2})]
    assert contents(third.messages[0]) == ["ok", "ok"]


async def test_edited_arguments_run_and_the_model_is_told_what_was_changed() -> None:
    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "pay", n=80))), "hi")
    second = await resumed(desk, Replies(says("done")), first, c1=Approve(edited_args={"n": 20}))
    assert ran.calls == [("pay", {"n": 20})]
    assert answers(second.messages)["c1"].content == (
        "[Ada approved this call with changed arguments. Changed: n: 80 -> 20]\nok"
    )


async def test_edited_secrets_are_not_told() -> None:
    schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    ran, log = Ran(), Log()
    tool = ran.tool("login", input_schema=schema, secret=frozenset({"key"}))
    desk = agent(tool, default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "login", key="hunter2"))), "hi")
    known = decided(first, c1=Approve(edited_args={"key": "swordfish"}))
    second = await resume_agent(
        desk, Replies(says("done")), first.messages, (), options=options(log, known=known)
    )
    assert ran.calls == [("login", {"key": "swordfish"})]
    assert "Changed: key: (not shown)" in answers(second.messages)["c1"].content
    assert "swordfish" not in repr(log.events)
    assert "hunter2" not in repr(log.events)


async def test_edited_arguments_that_do_not_fit_are_an_error_result_and_do_not_run() -> None:
    ran = Ran()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    desk = agent(ran.tool("pay", input_schema=schema), default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "pay", n=80))), "hi")
    second = await resumed(desk, Replies(says("hm")), first, c1=Approve(edited_args={"n": "few"}))
    assert ran.calls == []
    assert answers(second.messages)["c1"].is_error


async def test_c047_an_expiry_says_that_nothing_ran_and_nobody_refused_and_the_turn_goes_on() -> None:
    ran = Ran()
    desk = agent(ran.tool("pay"), rules=[rule("pay", "ask", expires=1800.0)])
    first = await run_agent(desk, Replies(says("", call("c1", "pay"))), "hi")
    second = await resumed(desk, Replies(says("I can ask again.")), first, c1=Expire())
    assert (second.outcome, ran.calls) == (Outcome.COMPLETED, [])
    result = answers(second.messages)["c1"]
    assert result.is_error
    assert result.content == (
        "not run: the approval request expired after 30 minutes before anybody answered. The tool did "
        "not run and no person refused it; ask again only if the user still wants it."
    )


async def test_what_was_spent_before_the_stop_still_counts_and_the_wait_does_not() -> None:
    clock, ran = FakeClock(), Ran()
    desk = agent(ran.tool("pay"), default="ask", max_steps=2, deadline=100.0)

    async def ten_seconds(request: object) -> object:
        clock.advance(10)
        return says("", call("c1", "pay"))

    first = await run_agent(desk, Replies(ten_seconds), "hi", options=options(clock=clock))  # type: ignore[arg-type]
    assert first.pending is not None
    spent = first.pending.spent
    assert (spent.steps, spent.tokens, spent.seconds) == (1, 15, 10.0)
    clock.advance(hours=72)
    at = options(clock=clock, known=decided(first, c1=Approve()), spent=spent)
    model = Replies(says("", call("c2", "ask_user", question="More?")))
    second = await resume_agent(desk, model, first.messages, (), options=at)
    assert second.pending is not None
    assert (second.pending.spent.steps, second.pending.spent.seconds) == (2, 10.0)
    at = options(clock=clock, known=decided(second, c2=Answer(values=("no",))), spent=second.pending.spent)
    history = [*first.messages, *second.messages]
    third = await resume_agent(desk, Replies(), history, (), options=at)
    assert (third.outcome, third.spent.steps) == (Outcome.MAX_TURNS, 2)


async def test_an_approved_call_does_not_begin_when_the_turns_time_is_used_up() -> None:
    ran, clock = Ran(), FakeClock()
    desk = agent(ran.tool("pay"), default="ask", deadline=5.0)
    first = await run_agent(desk, Replies(says("", call("c1", "pay"))), "hi", options=options(clock=clock))
    assert first.pending is not None
    spent = type(first.spent)(steps=1, seconds=5.0)
    at = options(clock=clock, known=decided(first, c1=Approve()), spent=spent)
    second = await resume_agent(desk, Replies(), first.messages, (), options=at)
    assert (second.outcome, ran.calls) == (Outcome.DEADLINE, [])


async def test_a_call_that_goes_in_circles_is_noticed_over_a_resume() -> None:
    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask", loop_limit=1)
    first = await run_agent(desk, Replies(says("a", call("c1", "pay", n=1))), "hi")
    second = await resumed(desk, Replies(says("b", call("c2", "pay", n=1))), first, c1=Approve())
    assert (second.outcome, len(ran.calls)) == (Outcome.LOOP_DETECTED, 1)


async def test_a_stop_that_was_cancelled_meanwhile_answers_every_call_and_ends() -> None:
    ran, cancel = Ran(), CancelToken()
    desk = agent(ran.tool("pay"), default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "pay"), call("c2", "pay", n=2))), "hi")
    cancel.cancel()
    at = options(known=decided(first, c1=Approve()), cancel=cancel)
    second = await resume_agent(desk, Replies(), first.messages, (), options=at)
    assert (second.outcome, ran.calls) == (Outcome.CANCELLED, [])
    assert [r.tool_use_id for r in second.messages[-1].results] == ["c1", "c2"]
    assert all("stopped by user" in text for text in contents(second.messages[-1]))


async def test_a_complete_list_of_results_goes_on_with_the_model() -> None:
    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "pay"))), "hi")
    model = Replies(says("fine"))
    result = ToolResult(tool_use_id="c1", content="paid elsewhere")
    second = await resume_agent(desk, model, first.messages, [result])
    assert (second.outcome, ran.calls) == (Outcome.COMPLETED, [])
    assert contents(model.seen[0][-1]) == ["paid elsewhere"]


async def test_an_incomplete_list_of_results_is_an_error_that_names_the_call() -> None:
    desk = agent(Ran().tool("pay"), default="ask")
    reply = says("", call("c1", "pay", n=1), call("c2", "pay", n=2))
    first = await run_agent(desk, Replies(reply), "hi")
    with pytest.raises(ValueError, match="c2"):
        await resume_agent(desk, Replies(), first.messages, [ToolResult(tool_use_id="c1", content="paid")])


async def test_a_resume_without_open_calls_is_an_error_when_it_brings_results() -> None:
    with pytest.raises(ValueError, match="does not end with calls"):
        await resume_agent(agent(), Replies(), [user("hi")], [ToolResult(tool_use_id="c1", content="x")])


async def test_a_turn_that_broke_between_two_steps_goes_on_with_the_model() -> None:
    model = Replies(says("here I am"))
    result = await resume_agent(agent(), model, [user("hi")], ())
    assert (result.text, len(result.messages)) == ("here I am", 1)


async def test_the_crash_note_of_a_plain_load_is_dropped_by_a_resume() -> None:
    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    first = await run_agent(desk, Replies(says("", call("c1", "pay"))), "hi")
    loaded = repaired(first.messages)
    assert loaded[-1].kind == "note"
    model = Replies(says("done"))
    at = options(known=decided(first, c1=Approve()))
    await resume_agent(desk, model, loaded, (), options=at)
    assert ran.names == ["pay"]
    assert [contents(m) for m in model.seen[0] if m.results] == [["ok"]]
    assert all(not m.kind for m in model.seen[0])


async def test_a_transcript_is_extended_in_place() -> None:
    ran = Ran()
    desk = agent(ran.tool("pay"), default="ask")
    log = Transcript([user("before"), assistant(*says("yes").content)])
    first = await run_agent(desk, Replies(says("", call("c1", "pay"))), "hi", log)
    assert len(log) == 4
    at = options(known=decided(first, c1=Approve()))
    second = await resume_agent(desk, Replies(says("done")), log, (), options=at)
    assert len(log) == 6
    assert tuple(log.log[4:]) == second.messages


async def test_c074_after_a_crash_stored_results_are_used_and_unknown_ones_asked_about() -> None:
    ran = Ran()
    desk = agent(ran.tool("look"), ran.tool("send"))
    log = [user("hi"), assistant(call("c1", "look"), call("c2", "send", n=1), call("c3", "look", n=3))]
    known = {
        "c1": KnownCall(state="done", result=ToolResult(tool_use_id="c1", content="stored")),
        "c2": KnownCall(state="started", args={"n": 1}, args_hash=call_hash("send", {"n": 1})),
        "c3": KnownCall(state="allowed", args={"n": 3}, args_hash=call_hash("look", {"n": 3})),
    }
    first = await resume_agent(desk, Replies(), log, (), options=options(known=known))
    assert (first.outcome, ran.calls) == (Outcome.PENDING_QUESTION, [("look", {"n": 3})])
    model = Replies(says("done"))
    at = options(known=decided(first, c2=Answer(values=(TREAT_AS_DONE,))))
    await resume_agent(desk, model, log, (), options=at)
    assert ran.names == ["look"]
    texts = contents(model.seen[0][-1])
    assert (texts[0], texts[2]) == ("stored", "ok")
    assert texts[1] == "interrupted, but Ada has checked: treat this call as done."
    again = options(known=decided(first, c2=Answer(values=(RUN_AGAIN,))))
    await resume_agent(desk, Replies(says("done")), log, (), options=again)
    assert ran.calls == [("look", {"n": 3}), ("send", {"n": 1})]


async def test_c074_with_report_the_turn_goes_on_and_watchers_are_told() -> None:
    ran, log = Ran(), Log()
    desk = agent(ran.tool("send"), on_unknown="report")
    history = [user("hi"), assistant(call("c1", "send"))]
    known = {"c1": KnownCall(state="started", args={})}
    model = Replies(says("It may have been sent."))
    result = await resume_agent(desk, model, history, (), options=options(log, known=known))
    assert (result.outcome, ran.calls) == (Outcome.COMPLETED, [])
    assert contents(model.seen[0][-1])[0].startswith("interrupted, outcome unknown")
    assert [(e.call_id, e.is_error) for e in log.of("tool:result")] == [("c1", True)]


WORDS = st.sampled_from([Approve(), Deny(), Expire(), Approve(edited_args={"n": 1}), None])


@given(st.lists(WORDS, min_size=1, max_size=5), st.sampled_from(["stop", "continue"]))
async def test_whatever_people_say_every_call_gets_one_result_in_call_order(
    words: list[Resolution | None], on_denial: str
) -> None:
    ran, log = Ran(), Log()
    desk = agent(ran.tool("pay"), default="ask", on_denial=on_denial)
    calls = [call(f"c{n}", "pay", n=n) for n in range(len(words))]
    first = await run_agent(desk, Replies(says("", *calls)), "hi")
    said = {f"c{n}": word for n, word in enumerate(words) if word is not None}
    at = options(log, known=decided(first, **said))
    second = await resume_agent(desk, Replies(says("done")), first.messages, (), options=at)
    denied = on_denial == "stop" and any(isinstance(word, Deny) for word in words)
    if None in words and not denied:
        assert second.outcome is Outcome.PENDING_APPROVAL
        assert second.pending is not None
        parts = TurnCheckpoint(
            results_so_far=second.pending.results_so_far, outstanding=second.pending.outstanding
        )
        assert sorted(parts.known()) == [c.id for c in calls]
        assert second.messages == ()
        return
    assert second.outcome is (Outcome.DENIED if denied else Outcome.COMPLETED)
    assert [r.tool_use_id for r in second.messages[0].results] == [c.id for c in calls]
    assert sorted(e.call_id for e in log.of("tool:result")) == [c.id for c in calls]
    approved = sum(isinstance(word, Approve) for word in words)
    assert len(ran.calls) == (0 if denied else approved)
