"""The small stage that the loop's tests play on: a model with set replies, tools, a journal that
remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway.agent import Agent
from gateway.approvals import Pending, Resolution
from gateway.events import AssistantDelta, Event
from gateway.gate import Gate, Rule, Verdict
from gateway.journal import CallRow, MemoryJournal, Ready
from gateway.loop import LoopOptions
from gateway.messages import Json, Message, Text, ToolResult, ToolUse
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta, StopReason, Usage
from gateway.tools.base import CallContext, Tool, ToolOutput

ALLOW_ALL = Gate(default_decision="allow")
USAGE = Usage(input=10, output=5)
SOON = 5.0  # seconds that a test waits at most

Step = ModelResponse | Exception | Callable[[ModelRequest], Awaitable[ModelResponse]]


def call(call_id: str, tool: str, invalid: str | None = None, **args: Any) -> ToolUse:
    return ToolUse(id=call_id, name=tool, input=args, invalid=invalid)


def says(
    text: str = "", *calls: ToolUse, stop: StopReason | None = None, usage: Usage = USAGE
) -> ModelResponse:
    words = (Text(text=text),) if text else ()
    return ModelResponse(
        content=(*words, *calls), stop=stop or ("tool_calls" if calls else "end"), usage=usage, model="fake"
    )


class Replies:
    """A model that gives these replies in order, and remembers what it was asked."""

    id = "fake"

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.requests: list[ModelRequest] = []

    @property
    def seen(self) -> list[list[Message]]:
        return [list(request.messages) for request in self.requests]

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        await asyncio.sleep(0)
        self.requests.append(
            ModelRequest(
                system=request.system,
                messages=list(request.messages),
                tools=request.tools,
                max_output_tokens=request.max_output_tokens,
                session_id=request.session_id,
            )
        )
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        response = step if isinstance(step, ModelResponse) else await step(request)
        if on_delta is not None:
            for block in response.content:
                if isinstance(block, Text):
                    on_delta(block.text)
        return response

    async def close(self) -> None:
        """Nothing is open."""


class Tape(MemoryJournal):
    """A journal that remembers what it was told, in order."""

    def __init__(self, steer: Sequence[Message] = ()) -> None:
        super().__init__()
        self.log: list[str] = []
        self.rows: list[CallRow] = []
        self.messages: list[Message] = []
        self._steer = list(steer)

    async def assistant(self, message: Message, calls: Sequence[CallRow]) -> None:
        self.log.append("assistant")
        self.messages.append(message)
        self.rows += calls

    async def started(self, lane: Sequence[Ready]) -> None:
        self.log.append("started " + " ".join(ready.call.id for ready in lane))

    def done(self, ready: Ready, result: ToolResult, full: str | None) -> None:
        super().done(ready, result, full)
        self.log.append(f"done {ready.call.id}")

    async def results(self, message: Message, *, final: bool = False) -> Sequence[Message]:
        self.log.append("results")
        self.messages.append(message)
        said, self._steer = self._steer, []
        return said

    async def marker(self, message: Message) -> None:
        self.log.append(f"marker {message.kind}")
        self.messages.append(message)


class Log:
    """Where a test's events go."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        """The wire names, without the pieces of growing text."""
        return [event.type for event in self.events if not isinstance(event, AssistantDelta)]

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.events if event.type == kind]


class Person:
    """A person at hand with set answers, by tool; None: does not decide now."""

    def __init__(self, **answers: Resolution | None) -> None:
        self._answers = answers
        self.asked: list[Pending] = []

    async def decide(self, pending: Pending) -> Resolution | None:
        self.asked.append(pending)
        return self._answers.get(pending.tool)

    async def decide_together(self, pendings: Sequence[Pending]) -> Mapping[str, Resolution | None]:
        """One by one, unless a test says otherwise."""
        return {}


class Ran:
    """What ran, in order, with its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Json]] = []

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def tool(self, name: str, reply: str | ToolOutput | Exception = "ok", **traits: Any) -> Tool:
        """A tool that notes its call and gives `reply`. Its arguments: `n`, any JSON value."""

        async def run(args: Json, context: CallContext) -> str | ToolOutput:
            self.calls.append((name, args))
            await asyncio.sleep(0)
            if isinstance(reply, Exception):
                raise reply
            return reply

        traits.setdefault("input_schema", {"type": "object", "properties": {"n": {}}})
        return Tool(name=name, description=f"does {name}", handler=run, **traits)


def rule(tool: str, decision: Verdict, **more: Any) -> Rule:
    return Rule(tool=tool, decision=decision, **more)


def agent(*tools: Tool, rules: Sequence[Rule] = (), default: Verdict = "allow", **more: Any) -> Agent:
    return Agent(name="desk", tools=tools, gate=Gate(rules=tuple(rules), default_decision=default), **more)


def options(log: Log | None = None, **more: Any) -> LoopOptions:
    if log is not None:
        more["on_event"] = log
    return LoopOptions(session_id="s1", turn_id="t1", **more)


def contents(message: Message) -> list[str]:
    return [result.content for result in message.results]


def answers(messages: Sequence[Message]) -> dict[str, ToolResult]:
    """All results among these messages, by call id. Two for one call fail the test."""
    found: dict[str, ToolResult] = {}
    for message in messages:
        for result in message.results:
            assert result.tool_use_id not in found
            found[result.tool_use_id] = result
    return found
