"""What is played on every channel: an agent that gives refunds and asks questions, and a clock.

The model does what it is told:

refund          a call of `refund`, which asks
refund both     two of them in one step
ask             a question with two options
anything else   is repeated
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gateway.agent import Agent
from gateway.clock import SystemClock
from gateway.gate import Gate, Rule
from gateway.messages import Json
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.tools.base import tool

PATIENCE = 15.0  # seconds; only a failing test waits that long
HOUR = 3600.0
FIRST: Json = {"order": "A-1", "amount": 30, "tags": ["shoes"]}
SECOND: Json = {"order": "A-2", "amount": 40, "tags": ["hat"]}


class JumpyClock(SystemClock):
    """The real one, except that the time of day jumps when a test says so. Waits stay real, so that the
    platforms' libraries and servers notice nothing."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def now(self) -> float:
        return super().now() + self._ahead

    def jump(self, seconds: float) -> None:
        self._ahead += seconds


@dataclass
class Play:
    """What outlives a gateway: the folder with the database, what the tool did, what the model read."""

    folder: Path
    clock: JumpyClock = field(default_factory=JumpyClock)
    ran: list[Json] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)

    def agent(self, **rule: Any) -> Agent:
        """The agent; `rule`: more of the rule about refunds and questions."""

        @tool
        async def refund(order: str, amount: float, tags: list[str]) -> str:
            """Give the money back."""
            self.ran.append({"order": order, "amount": amount, "tags": tags})
            return refunded(self.ran[-1])

        asks = Rule(tool="refund", decision="ask", reason="money leaves the house", **rule)
        gate = Gate(rules=(asks, replace(asks, tool="ask_user", reason="")), default_decision="allow")
        return Agent(name="assistant", tools=(refund,), gate=gate)

    def model(self) -> ScriptedModel:
        """A model that keeps what it was asked in `requests`."""
        return ScriptedModel(self._reply, chunk=24)

    def _reply(self, request: ModelRequest) -> Reply:
        self.requests.append(replace(request, messages=list(request.messages)))
        start, text = spoken(request.messages)
        results = [r.content for m in request.messages[start + 1 :] for r in m.results]
        if results:
            return Reply(text="Result: " + "; ".join(results))
        match text:
            case "refund":
                return Reply(calls=(Call(tool="refund", args=FIRST),))
            case "refund both":
                return Reply(calls=tuple(Call(tool="refund", args=args) for args in (FIRST, SECOND)))
            case "ask":
                args = {"question": "Where?", "options": ["staging", "prod"]}
                return Reply(calls=(Call(tool="ask_user", args=args),))
        return Reply(text=f"You said: {text}")

    def read(self) -> list[tuple[str, str]]:
        """(call id, content) of all results in what the model was asked last."""
        return [(r.tool_use_id, r.content) for m in self.requests[-1].messages for r in m.results]


def refunded(args: Mapping[str, Any]) -> str:
    """What the tool gives back."""
    return f"refunded {args['amount']:g} for {args['order']}"
