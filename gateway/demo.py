"""The offline support agent behind `threadgate demo`: no account, no key, and a real approval.

Two orders exist. A-1002 costs less than the limit of the first rule and is paid back at once;
A-1001 costs more and waits for a click. Every refund is one line in `refunds.jsonl` in the data
folder, so that anyone can see that a click, a restart and a second click pay once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

from gateway.agent import Agent
from gateway.clock import Clock
from gateway.errors import ToolError
from gateway.gate import Condition, Gate, Rule
from gateway.messages import Json, Message, ToolResult, ToolUse
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.tools.base import CallContext, Tool, tool

LEDGER = "refunds.jsonl"
LIMIT = 20  # euros that need no approval

Amount = Annotated[float, msgspec.Meta(gt=0, description="in euros")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order of the demo's shop. `total` in euros."""

    order_id: str
    item: str
    customer: str
    status: str
    total: float


ORDERS = {
    order.order_id: order
    for order in (
        Order(order_id="A-1001", item="Headphones", customer="Robin", status="delivered", total=49.90),
        Order(order_id="A-1002", item="Tea sampler", customer="Kim", status="delivered", total=12.50),
    )
}

SYSTEM_PROMPT = (
    "You are the support assistant of a small web shop. Look an order up before you refund it, refund "
    "what was paid unless you are told another amount, ask when you do not know which order is meant, "
    "and say in one or two plain sentences what was done."
)

EXAMPLES = ("refund order A-1001", "refund both", "I want a refund", "order A-1002", "show me markdown")

HELP = f"""\
Hello! I am a small demo agent and run without any model or network. Try one of these:

- **refund order A-1001** costs more than {LIMIT} €, so it waits for your approval
- **refund order A-1002** is below the limit and is paid at once
- **refund both** does the two in one go: one runs, one waits
- **refund**: I ask which order you mean
- **order A-1001** only looks it up
- **markdown** shows how an answer is drawn

While a card is open you can restart me; the click still counts, and counts once."""

MARKDOWN = """\
## What an answer can hold

A paragraph with **bold**, *italic*, ~~struck~~ and `inline code`, and a [link](https://example.com).

1. First, a numbered item
2. then another
   - with a nested one

> A quote, for what somebody else said.

```python
def total(prices: list[float]) -> float:
    return sum(prices)
```

| Order | Item | Total |
| --- | --- | ---: |
| A-1001 | Headphones | 49.90 € |
| A-1002 | Tea sampler | 12.50 € |"""


def demo_tools(data_dir: Path) -> tuple[Tool, ...]:
    """`lookup_order` (reads only) and `issue_refund` (writes one line of the ledger per run)."""

    @tool(safe=True)
    async def lookup_order(order_id: str) -> Json:
        """Look up one order: item, customer, status and total in euros.

        Args:
            order_id: the order's number, like A-1001
        """
        order = _order(order_id)
        return {name: getattr(order, name) for name in Order.__slots__}

    @tool
    async def issue_refund(order_id: str, amount: Amount, context: CallContext) -> Json:
        """Pay money back for an order. This moves money and cannot be undone.

        Args:
            order_id: the order's number, like A-1001
        """
        order = _order(order_id)
        if amount > order.total:
            raise ToolError(f"order {order_id} cost {_euros(order.total)}; more cannot be refunded")
        entry = {
            "reference": "R-" + hashlib.sha256(context.idempotency_key.encode()).hexdigest()[:6].upper(),
            "order_id": order.order_id,
            "amount": amount,
            "call_id": context.call_id,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        await asyncio.to_thread(_append, data_dir / LEDGER, json.dumps(entry, ensure_ascii=False))
        return entry

    return lookup_order, issue_refund


def demo_agent(data_dir: Path) -> Agent:
    """The agent `assistant`; `ask_user` is added to it like to every agent."""
    return Agent(
        name="assistant",
        system_prompt=SYSTEM_PROMPT,
        model="demo",
        tools=demo_tools(data_dir),
        gate=Gate(
            rules=(
                Rule(tool="lookup_order", decision="allow", reason="it only reads"),
                Rule(tool="ask_user", decision="allow", reason="asking is free"),
                Rule(
                    tool="issue_refund",
                    when=(Condition(field="amount", op="lte", value=LIMIT),),
                    decision="allow",
                    reason=f"refunds up to {LIMIT} € need no approval",
                ),
                Rule(tool="issue_refund", decision="ask", reason=f"refunds above {LIMIT} € need an approval"),
            )
        ),
    )


def demo_model(*, delay: float = 0.02, clock: Clock | None = None) -> ScriptedModel:
    """The script as a model. `delay`: seconds between the pieces of a text; 0 for tests."""
    return ScriptedModel(demo_reply, id="scripted:demo", chunk=12, delay=delay, clock=clock)


def demo_reply(request: ModelRequest) -> Reply:
    """What the demo's model says to a request. A function of the request alone."""
    start, text = spoken(request.messages)
    turn = _Turn.read(request.messages[max(start, 0) :])
    lowered = text.lower()
    if "refund" in lowered or "money back" in lowered:
        return _refund(turn, text)
    if _orders_in(text):
        return _look(turn, text)
    if re.search(r"\b(markdown|format|sample)", lowered):
        return Reply(text=MARKDOWN)
    if denied := _denied_refund(request.messages[: max(start, 0)]):
        return _after_denial(turn, text, denied)
    return Reply(text=HELP)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """The calls of the turn and their results, in order."""

    done: tuple[tuple[ToolUse, ToolResult], ...]

    @classmethod
    def read(cls, messages: Sequence[Message]) -> _Turn:
        results = {result.tool_use_id: result for message in messages for result in message.results}
        calls = (call for message in messages for call in message.calls)
        return cls(done=tuple((call, results[call.id]) for call in calls if call.id in results))

    def of(self, name: str) -> list[tuple[ToolUse, ToolResult]]:
        return [(call, result) for call, result in self.done if call.name == name]


def _refund(turn: _Turn, text: str) -> Reply:
    orders = list(ORDERS) if re.search(r"\b(both|all)\b", text.lower()) else _orders_in(text)
    if not orders:
        asked = turn.of("ask_user")
        if not asked:
            return _ask_which()
        answer = asked[-1][1]
        orders = _orders_in(answer.content)
        if answer.is_error or not orders:
            return Reply(
                text="I do not know which order you mean, so I have refunded nothing. "
                "Try `refund order A-1001`."
            )
    if refunds := turn.of("issue_refund"):
        return Reply(text="\n".join(_told(call, result) for call, result in refunds))
    if looked := turn.of("lookup_order"):
        return _pay(looked, _amount_in(text))
    return _lookup(orders)


def _ask_which() -> Reply:
    options = [f"{order.order_id} · {order.item} · {_euros(order.total)}" for order in ORDERS.values()]
    question = {"question": "Which order shall I refund?", "options": options}
    return Reply(calls=(Call(tool="ask_user", args=question),))


def _lookup(orders: Sequence[str]) -> Reply:
    return Reply(
        text=f"Let me look up {' and '.join(f'**{order}**' for order in orders)}.",
        calls=tuple(Call(tool="lookup_order", args={"order_id": order}) for order in orders),
    )


def _pay(looked: Sequence[tuple[ToolUse, ToolResult]], amount: float | None) -> Reply:
    found = [_data(result) for _, result in looked if not result.is_error]
    if not found:
        return Reply(text="\n".join(f"Sorry: {result.content}." for _, result in looked))
    lines = [f"{order['order_id']}: {order['item']}, {_euros(order['total'])}." for order in found]
    return Reply(
        text="\n".join(lines),
        calls=tuple(
            Call(
                tool="issue_refund", args={"order_id": order["order_id"], "amount": amount or order["total"]}
            )
            for order in found
        ),
    )


def _look(turn: _Turn, text: str) -> Reply:
    looked = turn.of("lookup_order")
    if not looked:
        return _lookup(_orders_in(text))
    lines = []
    for _, result in looked:
        if result.is_error:
            lines.append(f"Sorry: {result.content}.")
            continue
        order = _data(result)
        lines.append(
            f"**{order['order_id']}**: {order['item']} for {order['customer']}, "
            f"{_euros(order['total'])}, {order['status']}."
        )
    return Reply(text="\n".join(lines))


def _after_denial(turn: _Turn, text: str, denied: ToolUse) -> Reply:
    """A person said no to a refund and why; an amount in the reason is tried instead."""
    if refunds := turn.of("issue_refund"):
        return Reply(text="\n".join(_told(call, result) for call, result in refunds))
    amount = _amount_in(text)
    if amount is None:
        return Reply(text="Understood. I have refunded nothing; the order stays as it is.")
    return Reply(
        text=f"Understood, {_euros(amount)} then.",
        calls=(Call(tool="issue_refund", args={**denied.input, "amount": amount}),),
    )


def _denied_refund(messages: Sequence[Message]) -> ToolUse | None:
    """The refund that a person refused, when that was the last thing that happened."""
    start, _ = spoken(messages)
    refunds = _Turn.read(messages[max(start, 0) :]).of("issue_refund")
    refused = [call for call, result in refunds if result.content.startswith("denied")]
    return refused[-1] if refused else None


def _told(call: ToolUse, result: ToolResult) -> str:
    if result.is_error:
        return f"I have **not** refunded order {call.input.get('order_id')}: {result.content}."
    entry = _data(result)
    order, reference = entry["order_id"], entry["reference"]
    return f"Refunded **{_euros(entry['amount'])}** for order {order}, reference `{reference}`."


def _data(result: ToolResult) -> Json:
    """What a tool of the demo returned. A line about changed arguments may come before it."""
    data: Json = json.loads(result.content.rpartition("\n")[2])
    return data


def _orders_in(text: str) -> list[str]:
    return list(dict.fromkeys(match.upper() for match in re.findall(r"\b[A-Za-z]-\d+\b", text)))


def _amount_in(text: str) -> float | None:
    without_orders = re.sub(r"\b[A-Za-z]-\d+\b", "", text)
    match = re.search(r"\d+(?:[.,]\d{1,2})?", without_orders)
    return (float(match[0].replace(",", ".")) or None) if match else None


def _order(order_id: str) -> Order:
    order = ORDERS.get(order_id.strip().upper())
    if order is None:
        raise ToolError(f"there is no order {order_id}; this shop knows {' and '.join(ORDERS)}")
    return order


def _euros(amount: float) -> str:
    return f"{amount:.2f} €"


def _append(path: Path, line: str) -> None:
    """One whole line, on disk before the refund counts as done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as ledger:
        ledger.write(line + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())
