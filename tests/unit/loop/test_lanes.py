"""Lanes: who runs beside whom, what a time limit and a stop do, and that nothing hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cancel import CancelToken
from gateway.errors import LeaseLost, ToolError
from gateway.events import Event
from gateway.journal import MemoryJournal, Ready
from gateway.loop import run_agent
from gateway.messages import Json, ToolResult, call_hash
from gateway.tools.base import CallContext, Tool, ToolOutput, tool
from gateway.tools.lanes import GRACE, LaneContext, run_lanes
from gateway.verdicts import STOPPED
from tests.unit.loop.scene import SOON, Log, Ran, Replies, Tape, agent, answers, call, options, says


def context(log: Log | None = None, **more: object) -> LaneContext:
    base: dict[str, object] = {
        "session_id": "s1",
        "turn_id": "t1",
        "journal": Tape(),
        "emit": log or Log(),
        "cancel": CancelToken(),
        "left": lambda: None,
    }
    return LaneContext(**{**base, **more})  # type: ignore[arg-type]


def ready(tool: Tool, call_id: str, **args: Any) -> Ready:
    return Ready(call=call(call_id, tool.name, **args), tool=tool, args=args, args_hash=call_hash("", args))


def doing(work: Callable[[Json, CallContext], object], **traits: object) -> Tool:
    return Tool(
        name="work",
        description="",
        input_schema={"type": "object"},
        handler=work,  # type: ignore[arg-type]
        **traits,  # type: ignore[arg-type]
    )


async def test_safe_neighbours_run_at_the_same_time() -> None:
    both_inside = asyncio.Barrier(2)

    async def meet(args: Json, _: CallContext) -> str:
        async with asyncio.timeout(SOON):
            await both_inside.wait()
        return "met"

    work = doing(meet, safe=True)
    results = await run_lanes([ready(work, "c1"), ready(work, "c2")], context())
    assert [results[i].content for i in ("c1", "c2")] == ["met", "met"]


async def test_calls_with_effects_run_alone_and_in_order() -> None:
    inside: list[str] = []
    trace: list[str] = []

    async def alone(args: Json, at: CallContext) -> str:
        inside.append(at.call_id)
        assert inside == [at.call_id]
        for _ in range(5):
            await asyncio.sleep(0)
        inside.remove(at.call_id)
        trace.append(at.call_id)
        return "ok"

    work = doing(alone)
    results = await run_lanes([ready(work, c) for c in ("c3", "c1", "c2")], context())
    assert trace == ["c3", "c1", "c2"]
    assert {r.is_error for r in results.values()} == {False}


async def test_a_call_with_effects_parts_the_safe_ones_before_from_those_behind() -> None:
    ran = Ran()
    look, pay = ran.tool("look", safe=True), ran.tool("pay")
    tape = Tape()
    lane = [ready(look, "c1"), ready(look, "c2"), ready(pay, "c3"), ready(look, "c4")]
    await run_lanes(lane, context(journal=tape))
    assert [line for line in tape.log if line.startswith("started")] == [
        "started c1 c2",
        "started c3",
        "started c4",
    ]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("no such order"), "no such order"),
        (ValueError("bad figure"), "ValueError: bad figure"),
        (SystemExit(3), "SystemExit: 3"),
        (RuntimeError("key sk-ant-api03-" + "a" * 80), "RuntimeError: key [redacted]"),
    ],
)
async def test_one_failure_is_one_error_result_without_secrets(error: BaseException, text: str) -> None:
    async def fail(args: Json, _: CallContext) -> str:
        raise error

    async def fine(args: Json, _: CallContext) -> str:
        return "fine"

    lane = [ready(doing(fail, safe=True), "c1"), ready(doing(fine, safe=True), "c2")]
    results = await run_lanes(lane, context())
    assert results["c1"].is_error
    assert "sk-ant" not in results["c1"].content
    if "redacted" not in text:
        assert results["c1"].content == text
    assert results["c2"].content == "fine"


async def test_a_sync_tool_that_wants_to_exit_ends_its_call_and_not_the_program() -> None:
    @tool
    def leave() -> None:
        """Leave."""
        raise SystemExit(3)

    results = await asyncio.wait_for(run_lanes([ready(leave, "c1")], context()), SOON)
    assert results["c1"] == ToolResult(tool_use_id="c1", content="SystemExit: 3", is_error=True)


async def test_a_tool_may_return_its_own_error_output() -> None:
    ran = Ran()
    work = ran.tool("look", ToolOutput(text="nothing there", is_error=True))
    results = await run_lanes([ready(work, "c1")], context())
    assert results["c1"] == ToolResult(tool_use_id="c1", content="nothing there", is_error=True)


async def test_a_call_beyond_its_time_limit_is_an_error_result_and_was_told_to_end() -> None:
    told = asyncio.Event()

    async def hang(args: Json, _: CallContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            told.set()
        return ""

    results = await asyncio.wait_for(run_lanes([ready(doing(hang, timeout=0.02), "c1")], context()), SOON)
    assert results["c1"].content == "the call did not end within 0.02 s and was given up"
    assert results["c1"].is_error
    assert told.is_set()


async def test_the_turns_deadline_is_a_time_limit_too() -> None:
    async def hang(args: Json, _: CallContext) -> str:
        await asyncio.Event().wait()
        return ""

    results = await asyncio.wait_for(
        run_lanes([ready(doing(hang, timeout=60), "c1")], context(left=lambda: 0.02)), SOON
    )
    assert results["c1"].is_error


async def test_nothing_begins_when_the_time_is_used_up() -> None:
    ran, tape = Ran(), Tape()
    results = await run_lanes([ready(ran.tool("pay"), "c1")], context(left=lambda: 0.0, journal=tape))
    assert (results["c1"].content, ran.calls) == ("not run: the time for this turn is used up", [])
    assert tape.log == ["done c1"]


async def test_c076_a_deaf_tool_is_abandoned_within_the_grace_and_its_late_result_is_dropped() -> None:
    log, tape, cancel = Log(), Tape(), CancelToken()
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def deaf(args: Json, _: CallContext) -> str:
        begun.set()
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        return "late"

    running = asyncio.create_task(
        run_lanes([ready(doing(deaf), "c1")], context(log, journal=tape, cancel=cancel))
    )
    try:
        await asyncio.wait_for(begun.wait(), SOON)
        cancel.cancel()
        before = time.monotonic()
        results = await asyncio.wait_for(running, SOON)
        assert GRACE * 0.9 <= time.monotonic() - before < GRACE + 1
        assert results["c1"] == ToolResult(tool_use_id="c1", content=STOPPED, is_error=True)
    finally:
        may_end.set()  # or the test's own loop could never close
    await asyncio.wait_for(ended.wait(), SOON)
    await asyncio.sleep(0)
    assert tape.log == ["started c1", "done c1"]
    assert len(log.of("tool:result")) == 1


async def test_a_tool_that_listens_ends_at_once_when_cancelled() -> None:
    cancel, begun = CancelToken(), asyncio.Event()

    async def wait(args: Json, _: CallContext) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    work = doing(wait)
    running = asyncio.create_task(run_lanes([ready(work, "c1"), ready(work, "c2")], context(cancel=cancel)))
    await asyncio.wait_for(begun.wait(), SOON)
    cancel.cancel()
    before = time.monotonic()
    results = await asyncio.wait_for(running, SOON)
    assert time.monotonic() - before < GRACE
    assert [results[c].content for c in ("c1", "c2")] == [STOPPED, STOPPED]


async def test_a_result_that_came_with_the_stop_in_the_same_instant_is_kept() -> None:
    cancel = CancelToken()

    async def quick(args: Json, _: CallContext) -> str:
        cancel.cancel()
        return "made it"

    results = await asyncio.wait_for(run_lanes([ready(doing(quick), "c1")], context(cancel=cancel)), SOON)
    assert results["c1"].content in ("made it", STOPPED)


async def test_a_tool_that_cancels_itself_is_an_error_result() -> None:
    async def quit_(args: Json, _: CallContext) -> str:
        raise asyncio.CancelledError

    results = await asyncio.wait_for(run_lanes([ready(doing(quit_), "c1")], context()), SOON)
    assert (results["c1"].content, results["c1"].is_error) == ("the tool cancelled itself", True)


async def test_a_lost_lease_ends_the_lane_and_its_siblings() -> None:
    ended = asyncio.Event()

    async def lost(args: Json, at: CallContext) -> str:
        if at.call_id == "c1":
            await asyncio.sleep(0)
            raise LeaseLost("s1")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    work = doing(lost, safe=True)
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(run_lanes([ready(work, "c1"), ready(work, "c2")], context()), SOON)
    await asyncio.wait_for(ended.wait(), SOON)


class Broken(MemoryJournal):
    def done(self, ready: Ready, result: ToolResult, full: str | None) -> None:
        raise LeaseLost("s1")


async def test_a_journal_that_fails_ends_the_turn_instead_of_hanging_it() -> None:
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(run_lanes([ready(Ran().tool("look"), "c1")], context(journal=Broken())), SOON)


async def test_a_listener_that_fails_ends_the_turn_instead_of_hanging_it() -> None:
    def emit(event: Event) -> None:
        if event.type == "tool:result":
            raise RuntimeError("the listener is broken")

    with pytest.raises(RuntimeError, match="listener"):
        await asyncio.wait_for(run_lanes([ready(Ran().tool("look"), "c1")], context(emit=emit)), SOON)


async def test_a_handler_that_returns_no_text_does_not_hang_the_turn() -> None:
    async def odd(args: Json, _: CallContext) -> int:
        return 5

    results = await asyncio.wait_for(run_lanes([ready(doing(odd), "c1")], context()), SOON)
    assert results["c1"].content == "5"


async def test_the_idempotency_key_names_session_and_call() -> None:
    async def key(args: Json, at: CallContext) -> str:
        return f"{at.session_id} {at.turn_id} {at.call_id} {at.idempotency_key}"

    results = await run_lanes([ready(doing(key), "c1")], context())
    assert results["c1"].content == "s1 t1 c1 s1:c1"


async def test_c069_a_huge_result_is_capped_before_it_is_kept_and_can_be_read_on() -> None:
    whole = "".join(f"{n:07d}|" for n in range(50_000))  # 400,000 characters
    ran, tape = Ran(), Tape()
    model = Replies(
        says("", call("c1", "look")),
        says("", call("c2", "read_result", ref="c1", offset=24_000)),
        says("", call("c3", "read_result", ref="c9")),
        says("done"),
    )
    result = await run_agent(agent(ran.tool("look", whole)), model, "hi", options=options(journal=tape))
    found = answers(result.messages)
    short = found["c1"].content
    assert len(short) < 30_000
    assert short.startswith(whole[:24_000])
    assert short.endswith(whole[-4_000:])
    assert "372000 of 400000 characters left out; read_result(ref='c1', offset=24000)" in short
    assert (
        found["c2"].content
        == f"[characters 24000 to 44000 of 400000; go on with offset=44000]\n{whole[24_000:44_000]}"
    )
    assert found["c3"] == ToolResult(
        tool_use_id="c3", content="there is no stored result 'c9'", is_error=True
    )
    assert all(len(r.content) <= 30_000 for message in tape.messages for r in message.results)


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(["ok", "fail", "cancel"])), max_size=8),
    st.randoms(use_true_random=False),
)
async def test_every_call_gets_exactly_one_result_whatever_it_does(
    shapes: list[tuple[bool, str]], chance: object
) -> None:
    log = Log()

    def make(does: str, safe: bool) -> Tool:
        async def work(args: Json, _: CallContext) -> str:
            for _turn in range(chance.randint(0, 3)):  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            if does == "fail":
                raise ValueError(does)
            if does == "cancel":
                raise asyncio.CancelledError
            return does

        return doing(work, safe=safe)

    lane = [ready(make(does, safe), f"c{n}") for n, (safe, does) in enumerate(shapes)]
    results = await run_lanes(lane, context(log))
    ids = [f"c{n}" for n in range(len(shapes))]
    assert sorted(results) == sorted(ids)
    assert sorted(event.call_id for event in log.of("tool:result")) == sorted(ids)
    assert [event.call_id for event in log.of("tool:started")] == ids
    assert [not results[i].is_error for i in ids] == [does == "ok" for _, does in shapes]
