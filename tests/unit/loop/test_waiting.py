"""Calls that find out while they run that they have to wait: for a person's answer, for a subagent."""

from __future__ import annotations

from gateway.approvals import Answer, Expire, Pending, Supersede, settle
from gateway.loop import resume_agent, run_agent
from gateway.messages import Json
from gateway.outcome import Outcome
from gateway.questions import Question
from gateway.tools.base import CallContext, Said, Tool
from gateway.tools.waiting import ChildWaits, DeniedInside, NeedsAnswer
from gateway.verdicts import SKIPPED
from tests.unit.loop.scene import Person, Ran, Replies, agent, call, contents, options, says


def asking(*keys: str, seen: list[dict[str, Said]]) -> Tool:
    """Asks one question after the other, by these keys, then gives what it was told."""

    async def run(args: Json, context: CallContext) -> str:
        seen.append(dict(context.said))
        for key in keys:
            if key not in context.said:
                raise NeedsAnswer(Question(text=f"{key}?"), key)
        return " ".join(",".join(said.values) or said.closed for said in context.said.values())

    return Tool(name="book", description="", input_schema={"type": "object"}, handler=run)


async def test_a_call_that_asks_stops_the_step_and_its_siblings_have_run() -> None:
    ran, seen = Ran(), list[dict[str, Said]]()
    desk = agent(ran.tool("look"), asking("size", seen=seen))
    result = await run_agent(desk, Replies(says("", call("c1", "book"), call("c2", "look"))), "hi")
    assert result.outcome is Outcome.PENDING_QUESTION
    assert result.pending is not None
    (pending,) = result.pending.outstanding.values()
    assert pending.question == Question(text="size?", about="call", key="size")
    assert (pending.call_id, pending.tool) == ("c1", "book")
    assert list(result.pending.results_so_far) == ["c2"]
    assert ran.names == ["look"]


async def test_the_answer_runs_the_call_again_with_what_was_said() -> None:
    seen = list[dict[str, Said]]()
    desk = agent(asking("size", "colour", seen=seen))
    stopped = await run_agent(desk, Replies(says("", call("c1", "book"))), "hi")
    history, model = list(stopped.messages), Replies(says("booked"))
    for word in ("large", "blue"):
        assert stopped.pending is not None
        (pending,) = stopped.pending.outstanding.values()
        known = settle(pending, Answer(values=(word,)), "Ann")
        earlier = seen[-1]
        known = type(known)(state="allowed", args=known.args, said={**earlier, **known.said})
        stopped = await resume_agent(desk, model, history, (), options=options(known={"c1": known}))
    assert stopped.outcome is Outcome.COMPLETED
    assert contents(model.seen[0][-1]) == ["large blue"]
    assert [sorted(said) for said in seen] == [[], ["size"], ["colour", "size"]]


async def test_a_person_at_hand_answers_at_once() -> None:
    seen = list[dict[str, Said]]()
    person = Person(book=Answer(values=("large",)))
    model = Replies(says("", call("c1", "book")), says("booked"))
    result = await run_agent(
        agent(asking("size", "colour", seen=seen)), model, "hi", options=options(approver=person)
    )
    assert result.outcome is Outcome.COMPLETED
    assert contents(model.seen[1][-1]) == ["large large"]


async def test_what_nobody_answered_is_told_as_closed_never_as_an_answer() -> None:
    pending = Pending(
        pending_id="p1",
        kind="question",
        call_id="c1",
        tool="book",
        args={},
        args_hash="",
        code="abcde",
        question=Question(text="size?", about="call", key="size"),
    )
    assert settle(pending, Expire(), "").said == {"size": Said(closed="expired")}
    assert settle(pending, Supersede(by="/stop"), "").said == {"size": Said(closed="/stop")}


def delegating(end: Exception) -> Tool:
    async def run(args: Json, context: CallContext) -> str:
        raise end

    return Tool(name="ops", description="", input_schema={"type": "object"}, handler=run, idempotent=True)


async def test_what_a_subagent_waits_for_is_what_the_step_waits_for() -> None:
    inner = Pending(
        pending_id="p9", kind="approval", call_id="x1", tool="deploy", args={}, args_hash="h", code="abcde"
    )
    desk = agent(delegating(ChildWaits("s2", [inner])))
    result = await run_agent(desk, Replies(says("", call("c1", "ops"))), "hi")
    assert result.outcome is Outcome.PENDING_APPROVAL
    assert result.pending is not None
    outer = result.pending.outstanding["p9"]
    assert (outer.call_id, outer.session, outer.tool) == ("c1", "s2", "deploy")


async def test_a_denial_inside_a_subagent_ends_the_turn_and_later_calls_do_not_run() -> None:
    ran = Ran()
    desk = agent(delegating(DeniedInside("denied by Ann")), ran.tool("pay"))
    result = await run_agent(desk, Replies(says("", call("c1", "ops"), call("c2", "pay"))), "hi")
    assert (result.outcome, result.detail, ran.names) == (Outcome.DENIED, "denied by Ann", [])
    assert contents(result.messages[-1]) == ["denied by Ann", SKIPPED]


async def test_a_denial_inside_is_an_error_result_where_the_agent_goes_on_after_denials() -> None:
    ran = Ran()
    desk = agent(delegating(DeniedInside("denied by Ann")), ran.tool("pay"), on_denial="continue")
    model = Replies(says("", call("c1", "ops"), call("c2", "pay")), says("so be it"))
    result = await run_agent(desk, model, "hi")
    assert (result.outcome, ran.names) == (Outcome.COMPLETED, ["pay"])


async def test_tools_of_a_source_may_change_between_two_steps() -> None:
    ran = Ran()

    class Source:
        offered: tuple[Tool, ...] = (ran.tool("look"),)

        def tools(self) -> tuple[Tool, ...]:
            return self.offered

    source = Source()

    def change(args: Json) -> str:
        source.offered = (ran.tool("look"), ran.tool("pay"))
        return "ok"

    async def run(args: Json, context: CallContext) -> str:
        return change(args)

    switch = Tool(name="switch", description="", input_schema={"type": "object"}, handler=run)
    model = Replies(
        says("", call("c1", "pay"), call("c2", "switch")), says("", call("c3", "pay")), says("done")
    )
    await run_agent(agent(switch, sources=(source,)), model, "hi")
    assert ran.names == ["pay"]
    assert "there is no tool 'pay'" in contents(model.seen[1][-1])[0]
    assert [t.name for t in model.requests[0].tools] == ["ask_user", "read_result", "look", "switch"]
    assert [t.name for t in model.requests[1].tools] == ["ask_user", "read_result", "look", "pay", "switch"]
