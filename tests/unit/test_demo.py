"""The demo's agent: its script reads well and its refund leaves exactly one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.demo import HELP, LEDGER, demo_agent, demo_model, demo_tools
from gateway.errors import ToolError
from gateway.loop import resume_agent, run_agent
from gateway.messages import Message, ToolResult, ToolUse, tool_results, user
from gateway.outcome import Outcome
from gateway.providers.base import ModelRequest
from gateway.tools.base import CallContext, ToolOutput

ANSWERS = {"ask_user": "A-1002 · Tea sampler · 12.50 €"}


class Talk:
    """A conversation with the demo's model in which every call runs."""

    def __init__(self, data_dir: Path, answers: dict[str, str] | None = None) -> None:
        self.tools = {tool.name: tool for tool in demo_tools(data_dir)}
        self.answers = answers or ANSWERS
        self.model = demo_model(delay=0)
        self.log: list[Message] = []

    async def say(self, text: str) -> str:
        self.log.append(user(text))
        for _ in range(6):
            reply = await self.model.complete(ModelRequest(system="", messages=self.log))
            self.log.append(Message(role="assistant", content=reply.content, model=reply.model))
            calls = self.log[-1].calls
            if not calls:
                return self.log[-1].text
            self.log.append(tool_results([await self._run(call) for call in calls]))
        raise AssertionError("the demo's script does not end")

    async def _run(self, call: ToolUse) -> ToolResult:
        if call.name in self.answers:
            content = self.answers[call.name]
            return ToolResult(tool_use_id=call.id, content=content, is_error=content.startswith("denied"))
        tool = self.tools[call.name]
        assert tool.problems(call.input) == []
        context = CallContext(call_id=call.id, session_id="s", turn_id="t", idempotency_key=call.id)
        try:
            output = await tool.handler(call.input, context)
        except ToolError as error:
            return ToolResult(tool_use_id=call.id, content=str(error), is_error=True)
        assert not isinstance(output, ToolOutput)
        return ToolResult(tool_use_id=call.id, content=output)

    @property
    def asked(self) -> list[tuple[str, object]]:
        return [(call.name, call.input) for message in self.log for call in message.calls]


def ledger(data_dir: Path) -> list[dict[str, object]]:
    path = data_dir / LEDGER
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize(("order", "total"), [("A-1001", 49.90), ("A-1002", 12.50)])
async def test_a_refund_looks_the_order_up_and_pays_its_total(
    tmp_path: Path, order: str, total: float
) -> None:
    talk = Talk(tmp_path / "new")
    answer = await talk.say(f"please refund order {order.lower()}")
    assert [name for name, _ in talk.asked] == ["lookup_order", "issue_refund"]
    (line,) = ledger(tmp_path / "new")
    assert (line["order_id"], line["amount"]) == (order, total)
    assert f"{total:.2f} €" in answer
    assert str(line["reference"]) in answer


async def test_a_refund_without_an_order_asks_which_and_goes_on(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    answer = await talk.say("I want a refund")
    assert [name for name, _ in talk.asked] == ["ask_user", "lookup_order", "issue_refund"]
    assert "12.50 €" in answer


async def test_refund_both_asks_for_two_calls_at_once(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.say("refund both")
    assert [line["order_id"] for line in ledger(tmp_path)] == ["A-1001", "A-1002"]
    assert [len(message.calls) for message in talk.log if message.calls] == [2, 2]


async def test_another_amount_can_be_named(tmp_path: Path) -> None:
    await Talk(tmp_path).say("refund 10,50 of order A-1001")
    assert ledger(tmp_path)[0]["amount"] == 10.5


async def test_an_unknown_order_is_said_and_nothing_is_paid(tmp_path: Path) -> None:
    answer = await Talk(tmp_path).say("refund order B-7")
    assert "no order B-7" in answer
    assert ledger(tmp_path) == []


async def test_a_useless_answer_to_the_question_refunds_nothing(tmp_path: Path) -> None:
    answer = await Talk(tmp_path, {"ask_user": "the blue one"}).say("refund")
    assert "refunded nothing" in answer


async def test_feedback_with_an_amount_after_a_denial_tries_that_amount(tmp_path: Path) -> None:
    talk = Talk(tmp_path, {"issue_refund": "denied by web:local: too much"})
    assert "not" in await talk.say("refund order A-1001")
    talk.answers = {}
    talk.log = talk.log[:-1]  # a denial ends the turn without another reply
    answer = await talk.say("too much, give 15")
    assert "15.00 €" in answer
    assert [line["amount"] for line in ledger(tmp_path)] == [15.0]


async def test_feedback_without_an_amount_after_a_denial_is_accepted(tmp_path: Path) -> None:
    talk = Talk(tmp_path, {"issue_refund": "denied by web:local"})
    await talk.say("refund order A-1001")
    assert "nothing" in await talk.say("not on Friday")


@pytest.mark.parametrize("text", ["help", "hi", "what can you do?"])
async def test_anything_else_tells_what_to_try(tmp_path: Path, text: str) -> None:
    assert await Talk(tmp_path).say(text) == HELP


async def test_an_order_alone_is_looked_up_and_markdown_is_shown(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    assert "Headphones" in await talk.say("where is A-1001?")
    assert "```python" in await talk.say("show me markdown")
    assert ledger(tmp_path) == []


def test_the_refund_tool_takes_positive_amounts_only_and_never_more_than_was_paid(tmp_path: Path) -> None:
    _, refund = demo_tools(tmp_path)
    assert refund.problems({"order_id": "A-1001", "amount": 0})
    assert not refund.safe
    assert not refund.idempotent
    assert set(refund.input_schema["properties"]) == {"order_id", "amount"}


async def test_more_than_the_total_is_refused(tmp_path: Path) -> None:
    assert "cannot be refunded" in await Talk(tmp_path).say("refund 500 of order A-1001")
    assert ledger(tmp_path) == []


def test_the_agent_is_called_assistant_and_has_the_rules_of_the_demo(tmp_path: Path) -> None:
    agent = demo_agent(tmp_path)
    assert agent.name == "assistant"
    assert [(rule.tool, rule.decision) for rule in agent.gate.rules] == [
        ("lookup_order", "allow"),
        ("ask_user", "allow"),
        ("issue_refund", "allow"),
        ("issue_refund", "ask"),
    ]


async def test_with_the_real_rules_a_small_refund_runs_and_a_large_one_waits(tmp_path: Path) -> None:
    agent, model = demo_agent(tmp_path), demo_model(delay=0)
    small = await run_agent(agent, model, "refund order A-1002")
    assert small.outcome is Outcome.COMPLETED
    large = await run_agent(agent, model, "refund order A-1001")
    assert large.outcome is Outcome.PENDING_APPROVAL
    both = await run_agent(agent, model, "refund both")
    assert both.outcome is Outcome.PENDING_APPROVAL
    assert [line["order_id"] for line in ledger(tmp_path)] == ["A-1002", "A-1002"]


async def test_with_the_real_loop_the_question_is_asked_and_its_answer_goes_on(tmp_path: Path) -> None:
    agent = demo_agent(tmp_path)
    asked = await run_agent(agent, demo_model(delay=0), "refund, please")
    assert asked.outcome is Outcome.PENDING_QUESTION
    assert asked.pending is not None
    (question,) = asked.pending.outstanding.values()
    answer = ToolResult(tool_use_id=question.call_id, content=question.args["options"][1])
    # Another process: the model knows nothing but the history.
    done = await resume_agent(agent, demo_model(delay=0), asked.messages, [answer])
    assert done.outcome is Outcome.COMPLETED
    assert "12.50 €" in done.text
