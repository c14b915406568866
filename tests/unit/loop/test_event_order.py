"""The promised order of events, pinned as literal lists, and what is on disk before what runs."""

from __future__ import annotations

import asyncio
import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.agent import Agent
from gateway.approvals import Answer, Approve, Deny, KnownCall, settle
from gateway.cancel import CancelToken
from gateway.events import AssistantDelta, Decided, ToolFinished, ToolStarted
from gateway.loop import LoopOptions, RunResult, resume_agent, run_agent
from gateway.messages import Json, ToolResult, user
from gateway.tools.base import CallContext, Tool
from tests.unit.loop.scene import Log, Person, Ran, Replies, Tape, agent, answers, call, options, rule, says


async def played(
    desk: Agent, model: Replies, log: Log, *history: str, at: LoopOptions | None = None
) -> RunResult:
    past = [user(text) for text in history]
    return await run_agent(desk, model, "hi", past, options=at or options(log))


async def test_a_plain_turn() -> None:
    log = Log()
    await played(agent(), Replies(says("hello")), log)
    assert log.kinds == ["budget:check", "assistant:text", "loop:done"]
    assert [type(event) for event in log.events[1:2]] == [AssistantDelta]


async def test_a_tool_turn_with_safe_calls_side_by_side() -> None:
    log, ran = Log(), Ran()
    reply = says("Looking.", call("c1", "look", n=1), call("c2", "look", n=2))
    await played(agent(ran.tool("look", safe=True)), Replies(reply, says("done")), log)
    assert log.kinds == [
        "budget:check",
        "assistant:text",
        "actauth:decision",
        "actauth:decision",
        "tool:started",
        "tool:started",
        "tool:result",
        "tool:result",
        "budget:check",
        "assistant:text",
        "loop:done",
    ]


async def test_calls_with_effects_start_only_when_the_one_before_has_its_result() -> None:
    log, ran = Log(), Ran()
    reply = says("", call("c1", "pay", n=1), call("c2", "pay", n=2))
    await played(agent(ran.tool("pay")), Replies(reply, says("done")), log)
    assert log.kinds == [
        "budget:check",
        "actauth:decision",
        "actauth:decision",
        "tool:started",
        "tool:result",
        "tool:started",
        "tool:result",
        "budget:check",
        "assistant:text",
        "loop:done",
    ]


async def test_a_call_that_a_rule_refuses_is_told_before_its_sibling_runs() -> None:
    log, ran = Log(), Ran()
    reply = says("", call("c1", "look"), call("c2", "pay"))
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "deny")])
    await played(desk, Replies(reply, says("done")), log)
    assert log.kinds == [
        "budget:check",
        "actauth:decision",
        "actauth:decision",
        "tool:result",
        "tool:started",
        "tool:result",
        "budget:check",
        "assistant:text",
        "loop:done",
    ]
    refused = log.of("tool:result")[0]
    assert (refused.call_id, refused.tool, refused.is_error) == ("c2", "pay", True)
    assert [(d.call_id, d.decision) for d in log.of("actauth:decision")] == [("c1", "allow"), ("c2", "deny")]


async def test_a_stop_for_an_approval_and_the_resume_after_it() -> None:
    log, ran = Log(), Ran()
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")])
    first = await played(desk, Replies(says("", call("c1", "pay"), call("c2", "look"))), log)
    assert log.kinds == [
        "budget:check",
        "actauth:decision",
        "actauth:decision",
        "tool:started",
        "tool:result",
        "loop:pending_approval",
    ]
    assert first.pending is not None
    (pending,) = first.pending.outstanding.values()
    assert log.events[-1].pending == [pending.pending_id]  # type: ignore[attr-defined]
    known = first.pending.known() | {"c1": settle(pending, Approve(), "Ada")}
    log = Log()
    await resume_agent(desk, Replies(says("done")), first.messages, (), options=options(log, known=known))
    assert log.kinds == ["tool:started", "tool:result", "budget:check", "assistant:text", "loop:done"]
    assert log.of("tool:result")[0].call_id == "c1"


async def test_a_denial_in_a_resume_is_told_call_by_call_and_then_ends_the_turn() -> None:
    log, ran = Log(), Ran()
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")])
    reply = says("", call("c1", "pay"), call("c2", "look"), call("c3", "pay", n=3))
    first = await played(desk, Replies(reply), log)
    assert first.pending is not None
    pending = next(p for p in first.pending.outstanding.values() if p.call_id == "c1")
    known = first.pending.known() | {"c1": settle(pending, Deny(), "Ada")}
    log = Log()
    await resume_agent(desk, Replies(), first.messages, (), options=options(log, known=known))
    assert [(e.type, getattr(e, "call_id", "")) for e in log.events] == [
        ("tool:result", "c1"),
        ("tool:result", "c3"),
        ("loop:denied", ""),
    ]


async def test_a_live_denial_closes_the_step() -> None:
    log, ran = Log(), Ran()
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")])
    reply = says("", call("c1", "look"), call("c2", "pay"))
    await played(desk, Replies(reply), log, at=options(log, approver=Person(pay=Deny())))
    assert [(e.type, getattr(e, "call_id", "")) for e in log.events] == [
        ("budget:check", ""),
        ("actauth:decision", "c1"),
        ("actauth:decision", "c2"),
        ("tool:result", "c2"),
        ("tool:result", "c1"),
        ("loop:denied", ""),
    ]
    assert ran.calls == []


async def test_a_question_and_its_answer() -> None:
    log = Log()
    first = await played(agent(), Replies(says("", call("c1", "ask_user", question="Which?"))), log)
    assert log.kinds == ["budget:check", "actauth:decision", "loop:pending_question"]
    assert first.pending is not None
    (pending,) = first.pending.outstanding.values()
    known = {"c1": settle(pending, Answer(values=("blue",)), "Ada")}
    log = Log()
    model = Replies(says("blue it is"))
    await resume_agent(agent(), model, first.messages, (), options=options(log, known=known))
    assert log.kinds == ["tool:result", "budget:check", "assistant:text", "loop:done"]
    assert model.seen[0][-1].results[0].content == "blue"


async def test_cancelled_in_a_tool() -> None:
    log, cancel, begun = Log(), CancelToken(), asyncio.Event()

    async def wait(args: Json, context: CallContext) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    tool = Tool(name="wait", description="", input_schema={"type": "object"}, handler=wait)
    reply = says("", call("c1", "wait"), call("c2", "wait", n=2))
    running = asyncio.create_task(played(agent(tool), Replies(reply), log, at=options(log, cancel=cancel)))
    await asyncio.wait_for(begun.wait(), 5)
    cancel.cancel()
    await asyncio.wait_for(running, 5)
    assert [(e.type, getattr(e, "call_id", "")) for e in log.events] == [
        ("budget:check", ""),
        ("actauth:decision", "c1"),
        ("actauth:decision", "c2"),
        ("tool:started", "c1"),
        ("tool:result", "c1"),
        ("tool:result", "c2"),
        ("loop:stopped", ""),
    ]


async def test_compaction_near_the_window_comes_between_the_budget_and_the_answer() -> None:
    log = Log()
    model = Replies(says("They talked."), says("hello"))
    await played(agent(context_window=200), model, log, "a" * 400, "b" * 400)
    assert log.kinds == ["budget:check", "prompt:compaction", "assistant:text", "loop:done"]


async def test_everything_is_written_down_before_it_begins() -> None:
    tape, ran = Tape(), Ran()
    reply = says("", call("c1", "look", n=1), call("c2", "look", n=2), call("c3", "pay"), call("c4", "no"))
    desk = agent(ran.tool("look", safe=True), ran.tool("pay"))
    await run_agent(desk, Replies(reply, says("done")), "hi", options=options(journal=tape))
    assert tape.log == [
        "assistant",
        "started c1 c2",
        "done c1",
        "done c2",
        "started c3",
        "done c3",
        "results",
    ]
    assert [(row.call.id, row.state, row.repeatable) for row in tape.rows] == [
        ("c1", "allowed", True),
        ("c2", "allowed", True),
        ("c3", "allowed", False),
        ("c4", "refused", False),
    ]
    assert tape.rows[3].result is not None


async def test_started_carries_the_arguments_and_the_result_its_text() -> None:
    log, ran = Log(), Ran()
    await played(agent(ran.tool("look")), Replies(says("", call("c1", "look", n=7)), says("x")), log)
    assert ToolStarted(call_id="c1", tool="look", args={"n": 7}) in log.events
    finished = log.of("tool:result")[0]
    assert finished == ToolFinished(
        call_id="c1", tool="look", content="ok", is_error=False, seconds=finished.seconds
    )
    assert log.of("actauth:decision") == [
        Decided(call_id="c1", tool="look", decision="allow", reason="no rule matches", rule="default")
    ]


async def test_results_that_were_told_before_the_stop_are_not_told_again() -> None:
    log = Log()
    first = await played(agent(), Replies(says("", call("c1", "ask_user", question="Which?"))), log)
    told = KnownCall(state="done", result=ToolResult(tool_use_id="c1", content="blue"))
    log = Log()
    await resume_agent(
        agent(), Replies(says("x")), first.messages, (), options=options(log, known={"c1": told})
    )
    assert log.kinds == ["budget:check", "assistant:text", "loop:done"]


LETTERS = {
    "budget:check": "B",
    "prompt:compaction": "P",
    "assistant:text": "T",
    "actauth:decision": "D",
    "tool:started": "S",
    "tool:result": "R",
}
BATCH = r"D*R*(?:S+R+)*R*"
GRAMMAR = re.compile(rf"(?:{BATCH})?(?:BP?T?(?:{BATCH})?)*E")
CALLS = st.lists(
    st.tuples(st.sampled_from(["look", "pay", "erase", "ask", "nothing"]), st.integers(0, 1)), max_size=4
)


def spelled(log: Log) -> str:
    return "".join(LETTERS.get(kind, "E") for kind in log.kinds)


@given(
    st.lists(CALLS, min_size=1, max_size=5),
    st.sampled_from([None, Person(pay=Approve()), Person(pay=Deny()), Person(pay=None)]),
    st.sampled_from(["stop", "continue"]),
)
async def test_every_run_and_every_resume_follows_the_grammar_of_the_docs(
    script: list[list[tuple[str, int]]], person: Person | None, on_denial: str
) -> None:
    ran, log = Ran(), Log()
    desk = agent(
        ran.tool("look", safe=True),
        ran.tool("pay"),
        ran.tool("erase"),
        rules=[rule("pay", "ask"), rule("erase", "deny")],
        on_denial=on_denial,
    )
    replies = [
        says(
            "so",
            *(
                call(f"c{step}-{n}", "ask_user", question="?")
                if name == "ask"
                else call(f"c{step}-{n}", name, n=value)
                for n, (name, value) in enumerate(calls)
            ),
        )
        for step, calls in enumerate(script)
    ]
    model = Replies(*replies, says("done"))
    result = await run_agent(desk, model, "hi", options=options(log, approver=person))
    assert GRAMMAR.fullmatch(spelled(log))
    messages = list(result.messages)
    told = [event.call_id for event in log.of("tool:result")]
    while result.pending is not None:
        known = result.pending.known()
        for pending in result.pending.outstanding.values():
            word = Approve() if pending.kind == "approval" else Answer(values=("x",))
            known[pending.call_id] = settle(pending, word, "Ada")
        log = Log()
        at = options(log, known=known, spent=result.pending.spent)
        result = await resume_agent(desk, model, messages, (), options=at)
        assert GRAMMAR.fullmatch(spelled(log))
        messages += result.messages
        told += [event.call_id for event in log.of("tool:result")]
    assert len(told) == len(set(told))
    assert sorted(told) == sorted(answers(messages))
