"""The loop in a process of its own: real processes, real pipes."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gateway.approvals import Answer, Approve, settle
from gateway.budget import Spent
from gateway.cancel import CancelToken
from gateway.gate import Gate, Rule
from gateway.history import Transcript, repaired
from gateway.markers import MARKERS
from gateway.messages import Json, Text, assistant, user
from gateway.outcome import Outcome
from gateway.questions import RUN_AGAIN, Question
from gateway.tools.base import CallContext, Tool
from gateway.tools.waiting import DeniedInside, NeedsAnswer
from gateway.worker.claims import NOT_ALLOWED, WorkerLost
from tests.scenario.worker.crew import KEY, call, crew, gone, results
from tests.unit.loop.scene import Person, Tape


async def test_a_turn_is_the_same_as_in_this_process(tmp_path: Path) -> None:
    async with crew(tmp_path, {"text": "let me see", "calls": [call("look", at="A-1")]}, "all is well") as at:
        result = await at.run()
        assert (result.outcome, result.text) == (Outcome.COMPLETED, "all is well")
        assert list(result.messages) == at.transcript.log
        assert [m.role for m in at.transcript.log] == ["user", "assistant", "user", "assistant"]
        assert results(at.transcript.log) == ["saw A-1"]
        assert [word.split()[0] for word in at.tape.log] == ["assistant", "started", "done", "results"]
        assert at.types() == [
            "budget:check",
            "assistant:text",
            "actauth:decision",
            "tool:started",
            "tool:result",
            "budget:check",
            "assistant:text",
            "loop:done",
        ]
        assert result.usage.total > 0
        assert result.spent.steps == 2


async def test_a_second_message_of_the_session_goes_to_the_same_process(tmp_path: Path) -> None:
    look = {"calls": [call("look", at="A-1")]}
    async with crew(tmp_path, look, "one", look, "two") as at:
        await at.run("first")
        first = at.number("look")
        result = await at.run("second")
        assert (result.text, at.number("look")) == ("two", first)
        await at.isolation.close()
        assert gone(first)


async def test_an_approval_stops_the_run_and_another_process_goes_on_with_it(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("pay", amount=20)]}, "paid") as at:
        stopped = await at.run()
        assert stopped.outcome is Outcome.PENDING_APPROVAL
        assert stopped.pending is not None
        (pending,) = stopped.pending.outstanding.values()
        assert (pending.tool, pending.args, at.ran()) == ("pay", {"amount": 20}, [])
        await at.isolation.close()
        known = {pending.call_id: settle(pending, Approve(), "Ann")}
        result = await at.run(None, known=known, spent=stopped.spent)
        assert (result.outcome, at.ran()) == (Outcome.COMPLETED, ["pay 20"])
        assert results(at.transcript.log) == ["paid 20"]


async def test_a_person_at_hand_decides_for_the_process(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("pay", amount=20)]}, "paid") as at:
        person = Person(pay=Approve(edited_args={"amount": 5}))
        result = await at.run(approver=person)
        assert (result.outcome, at.ran()) == (Outcome.COMPLETED, ["pay 5"])
        assert [p.args for p in person.asked] == [{"amount": 20}]


async def test_a_stop_ends_the_run_at_once_and_its_call_is_answered(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("hang")]}, "never") as at:
        token = CancelToken()
        running = asyncio.create_task(at.run(cancel=token))
        await at.until(at.ran)
        token.cancel("stopped by user")
        result = await running
        assert result.outcome is Outcome.CANCELLED
        assert repaired(at.transcript.log) == at.transcript.log
        # It is not kept for the next message: what was told to stop may not have stopped yet.
        await at.until(partial(gone, at.number("hang")))


@pytest.mark.parametrize("why", ["stop", "deadline"])
async def test_a_process_that_hears_nothing_is_ended_with_its_group(
    tmp_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.worker.following.STOP_SECONDS", 0.2)
    keys = 'deadline = "1s"\n' if why == "deadline" else ""
    async with crew(tmp_path, {"calls": [call("start")]}, {"calls": [call("deaf")]}, keys=keys) as at:
        token = CancelToken()
        running = asyncio.create_task(at.run(cancel=token))
        await at.until(lambda: "deaf" in " ".join(at.ran()))
        if why == "stop":
            token.cancel("stopped by user")
        result = await running
        # Whether it took effect nobody knows; a stop wants no answer to that any more.
        expected = Outcome.CANCELLED if why == "stop" else Outcome.PENDING_QUESTION
        assert result.outcome is expected
        for process in (at.number("deaf"), at.number("start")):
            await at.until(partial(gone, process))


async def test_a_process_that_dies_in_a_call_leaves_a_question_not_a_second_run(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("look", at="x"), call("die")]}, "over") as at:
        result = await at.run()
        assert result.outcome is Outcome.PENDING_QUESTION
        assert result.pending is not None
        (pending,) = result.pending.outstanding.values()
        assert pending.question is not None
        assert (pending.tool, pending.question.about) == ("die", "unknown")
        assert RUN_AGAIN in pending.question.labels
        assert at.ran() == ["look x", "die"]
        assert [r.content for r in result.pending.results_so_far.values()] == ["saw x"]


async def test_a_process_that_dies_while_nothing_ran_is_a_clear_error(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("die")]}, "over", on_unknown="report") as at:
        with pytest.raises(WorkerLost, match="SIGKILL"):
            await at.run()


async def test_its_memory_is_capped(tmp_path: Path) -> None:
    async with crew(
        tmp_path, {"calls": [call("hoard", megabytes=900)]}, "over", keys='memory = "512MB"\n'
    ) as at:
        result = await at.run()
        assert result.outcome is Outcome.COMPLETED
        assert results(at.transcript.log) == ["MemoryError: "]


async def test_no_secret_is_in_its_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREW_KEY", KEY)
    monkeypatch.setenv("CREW_CITY", "Ghent")
    monkeypatch.setenv("CREW_OTHER", "not named")
    async with crew(tmp_path, {"calls": [call("surroundings")]}, "ok", keys='env = ["CREW_CITY"]\n') as at:
        await at.run()
        (seen,) = results(at.transcript.log)
        assert "Ghent" in seen
        assert "gateway.app.worker" in seen
        assert KEY not in seen
        assert "not named" not in seen


async def test_a_huge_result_comes_over_whole(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("big")]}, "ok") as at:
        result = await at.run()
        assert result.outcome is Outcome.COMPLETED
        (call_id,) = [call.id for message in at.transcript.log for call in message.calls]
        assert await at.tape.full_result(call_id) == "x" * 3_000_000


async def test_twenty_at_once(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("look", at="A-1")]}, "well") as at:
        sessions = [replace(at, transcript=type(at.transcript)(), events=[]) for _ in range(20)]
        ends = await asyncio.gather(
            *(one.run(session_id=f"s{number}") for number, one in enumerate(sessions))
        )
        assert [end.text for end in ends] == ["well"] * 20


# ---- tools that stay with the gateway


def kept(name: str, said: list[str]) -> Tool:
    async def run(args: Json, context: CallContext) -> str:
        said.append(name)
        if args.get("ask") and "size" not in context.said:
            raise NeedsAnswer(Question(text="size?"), "size")
        if args.get("deny"):
            raise DeniedInside("denied by Ann")
        return f"{name} {','.join(v for s in context.said.values() for v in s.values)}".strip()

    return Tool(name=name, description="", input_schema={"type": "object"}, handler=run)


class Source:
    def __init__(self, *tools: Tool) -> None:
        self.offered = tools

    def tools(self) -> tuple[Tool, ...]:
        return self.offered


async def test_a_tool_of_the_gateway_runs_there(tmp_path: Path) -> None:
    said: list[str] = []
    async with crew(tmp_path, {"calls": [call("fetch")]}, "ok", sources=(Source(kept("fetch", said)),)) as at:
        await at.run()
        assert (results(at.transcript.log), said) == (["fetch"], ["fetch"])


async def test_its_question_and_its_denial_come_over(tmp_path: Path) -> None:
    said: list[str] = []
    source = Source(kept("fetch", said))
    async with crew(
        tmp_path,
        {"calls": [call("fetch", ask=True)]},
        {"calls": [call("fetch", deny=True)]},
        sources=(source,),
    ) as at:
        stopped = await at.run()
        assert stopped.outcome is Outcome.PENDING_QUESTION
        assert stopped.pending is not None
        (pending,) = stopped.pending.outstanding.values()
        known = {pending.call_id: settle(pending, Answer(values=("large",)), "Ann")}
        result = await at.run(None, known=known)
        assert results(at.transcript.log)[0] == "fetch large"
        assert (result.outcome, result.detail) == (Outcome.DENIED, "denied by Ann")


async def test_a_card_shows_what_a_tool_of_the_gateway_says_of_its_call(tmp_path: Path) -> None:
    fetch = replace(kept("fetch", []), preview=lambda args: f"fetches {args['what']}")
    calls = {"calls": [call("fetch", what="stones")]}
    async with crew(tmp_path, calls, sources=(Source(fetch),), gate=Gate()) as at:
        stopped = await at.run()
        assert stopped.pending is not None
        assert [p.preview for p in stopped.pending.outstanding.values()] == ["fetches stones"]


async def test_tools_that_come_later_are_there_in_the_next_step(tmp_path: Path) -> None:
    said: list[str] = []
    source = Source(kept("fetch", said))
    replies = ({"calls": [call("fetch")]}, {"calls": [call("more")]}, "ok")
    async with crew(tmp_path, *replies, sources=(source,)) as at:
        fetch = source.offered[0]

        async def grow(args: Json, context: CallContext) -> str:
            source.offered = (fetch, kept("more", said))
            return "grown"

        source.offered = (Tool(name="fetch", description="", input_schema={"type": "object"}, handler=grow),)
        fetch = source.offered[0]
        await at.run()
        assert results(at.transcript.log) == ["grown", "more"]


async def test_the_gateway_runs_nothing_that_its_own_gate_has_not_allowed(tmp_path: Path) -> None:
    """The worker is told of another decision than the one on record."""
    said: list[str] = []
    async with crew(tmp_path, {"calls": [call("fetch")]}, "ok", sources=(Source(kept("fetch", said)),)) as at:
        strict = Gate(rules=(Rule(tool="fetch", decision="deny"),), default_decision="allow")
        at.agent = replace(at.agent, gate=Gate(default_decision="allow"))
        await at.run(gate=strict)
        assert (results(at.transcript.log), said) == ([NOT_ALLOWED], [])


async def test_who_may_decide_is_what_our_own_gate_says(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("pay", amount=20)]}) as at:
        strict = Gate(rules=(Rule(tool="pay", decision="ask", approvers=("slack:T1:U2",), quorum=2),))
        stopped = await at.run(gate=strict)
        assert stopped.pending is not None
        (pending,) = stopped.pending.outstanding.values()
        assert (pending.approvers, pending.quorum) == (("slack:T1:U2",), 2)


async def test_what_people_say_meanwhile_and_what_makes_room_are_in_the_log(tmp_path: Path) -> None:
    look = {"calls": [call("look", at="A" * 3_000)]}
    async with crew(tmp_path, look, look, look, "ok", context_window=3_000, stall_after=9) as at:
        at.tape = Tape(steer=[user("and the other one")])
        at.transcript = Transcript([user("x" * 9_000), assistant(Text(text="y" * 900), model="fake")])
        result = await at.run()
        assert (result.outcome, result.text) == (Outcome.COMPLETED, "ok")
        assert [m.text for m in at.transcript.log if m.text == "and the other one"] == ["and the other one"]
        assert [m for m in at.transcript.log if m.kind in MARKERS]
        journalled = [m for m in at.tape.messages if m.calls or m.results or m.kind in MARKERS]
        assert journalled == [m for m in at.transcript.log if m.calls or m.results or m.kind in MARKERS]


async def test_spent_and_known_of_an_earlier_run_go_along(tmp_path: Path) -> None:
    async with crew(tmp_path, {"calls": [call("look", at="A")]}, "ok", max_steps=3) as at:
        result = await at.run(spent=Spent(steps=2))
        assert result.outcome is Outcome.MAX_TURNS
        assert result.spent.steps == 3


async def test_when_the_gateway_is_killed_nothing_is_left(tmp_path: Path) -> None:
    """Its worker, and what the tools of that one have started."""
    code = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from tests.scenario.worker.crew import call, crew\n"
        "async def main():\n"
        "    replies = ({'calls': [call('start')]}, {'calls': [call('deaf')]})\n"
        "    async with crew(Path(sys.argv[1]), *replies) as at:\n"
        "        await at.run()\n"
        "asyncio.run(main())\n"
    )
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path), cwd=Path(__file__).parents[3]
    )
    async with crew(tmp_path / "unused", "nothing") as at:
        at.folder = tmp_path
        try:
            await at.until(lambda: "deaf" in " ".join(at.ran()))
        finally:
            gateway.kill()
            await gateway.wait()
        for process in (at.number("deaf"), at.number("start")):
            await at.until(partial(gone, process))
