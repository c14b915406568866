"""What the agent house in memory is made of: its session, its tool's schema, its cards, its words."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field

from channels.web.backend import Answered, Json, Option, Part, PendingCard, Posted, WireEvent

MASK = "••••••"
DONE = """All done:

| order | refund |
|---|---|
| A-1001 | **paid** |

```python
print('ok')
```"""
REFUND_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "description": "the order, like A-1001"},
        "amount": {"type": "number", "exclusiveMinimum": 0, "maximum": 500, "description": "in euros"},
        "speed": {"enum": ["normal", "express"]},
        "notify": {"type": "boolean"},
        "api_key": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "ledger": {"type": "integer"},
    },
    "required": ["order_id", "amount"],
    "additionalProperties": False,
}
OPTIONS = (
    Option(label="Production", value="prod", description="what customers see"),
    Option(label="Staging", value="staging"),
    Option(label="Neither", value="none"),
)


@dataclass
class Session:
    id: str
    agent: str
    title: str
    messages: list[Json] = field(default_factory=list)
    events: list[WireEvent] = field(default_factory=list)
    status: str = "idle"
    updated_at: float = 0.0
    posted: dict[str, Posted] = field(default_factory=dict)
    queue: list[tuple[str, str, str]] = field(default_factory=list)  # message id, turn id, text
    runner: asyncio.Task[None] | None = None
    results: dict[str, Json] = field(default_factory=dict)
    turn_id: str = ""
    growing: str = ""  # the reply so far
    listeners: set[asyncio.Queue[WireEvent]] = field(default_factory=set)


def approval(number: int, session_id: str, agent: str, args: Json, now: float) -> PendingCard:
    """A refund that waits for permission."""
    return PendingCard(
        pending_id=f"p{number}",
        kind="approval",
        session_id=session_id,
        agent=agent,
        tool="issue_refund",
        args=args,
        reason="Refunds need a person's approval.",
        requested_at=now,
        expires_at=now + 3 * 86400,
        call_id=f"c{number}",
        args_hash="9f2c" * 16,
        code=f"K{number}",
        deciders="whoever asked",
    )


def unknown(number: int, session_id: str, agent: str, now: float) -> PendingCard:
    """A call that was cut off: the gateway itself asks what became of it."""
    return PendingCard(
        pending_id=f"p{number}",
        kind="question",
        session_id=session_id,
        agent=agent,
        tool="issue_refund",
        args={"order_id": "A-1001"},
        reason="",
        requested_at=now,
        call_id=f"c{number}",
        question="Nobody knows whether it took effect.",
        options=tuple(Option(label=word, value=word) for word in ("run again", "treat as done", "give up")),
        allow_text=False,
        about="unknown",
    )


def several(number: int, session_id: str, agent: str, now: float) -> PendingCard:
    """Five questions in one, of which somebody has answered one already."""
    return PendingCard(
        pending_id=f"p{number}",
        kind="question",
        session_id=session_id,
        agent=agent,
        tool="ask_user",
        args={},
        reason="",
        requested_at=now,
        call_id=f"c{number}",
        question="About the release",
        allow_text=False,
        deciders="whoever asked",
        parts=(
            Part(name="env", question="Where to?", options=OPTIONS, allow_text=False, answered=("staging",)),
            Part(name="count", question="How many?", answer_kind="integer", hint="a whole number, like 12"),
            Part(name="day", question="When?", answer_kind="date"),
            Part(name="quiet", question="Quietly?", answer_kind="boolean"),
            Part(name="tell", question="Whom to tell?", options=OPTIONS, multi=True, least=0, most=2),
        ),
    )


def spelled(answer: Answered) -> str:
    """An answer in words."""
    if isinstance(answer, dict):
        return "; ".join(f"{name}: {spelled(value)}" for name, value in answer.items())
    return ", ".join(map(str, answer)) if isinstance(answer, list) else str(answer)


def wrong_parts(card: PendingCard, answer: Answered) -> list[Json]:
    """What is wrong with the answers to several questions: a count that is no whole number."""
    if bool(card.parts) != isinstance(answer, dict):
        return [{"field": "answer", "message": "one value, or an object by name"}]
    whole = re.compile(r"\d+")
    return [
        {"field": part.name, "message": "a whole number is needed"}
        for part in card.parts
        if isinstance(answer, dict)
        and part.answer_kind == "integer"
        and not whole.fullmatch(str(answer.get(part.name)))
    ]


def question(number: int, session_id: str, agent: str, now: float, *, many: bool, free: bool) -> PendingCard:
    """A question: one of three, several of three, or free text."""
    asked = "What should it be called?" if free else "Where should I deploy?"
    return PendingCard(
        pending_id=f"p{number}",
        kind="question",
        session_id=session_id,
        agent=agent,
        tool="ask_user",
        args={"question": asked, "options": [] if free else [option.label for option in OPTIONS]},
        reason="",
        requested_at=now,
        call_id=f"c{number}",
        question=asked,
        options=() if free else OPTIONS,
        multi=many,
        deciders="whoever asked",
    )
