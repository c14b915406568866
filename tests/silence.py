"""A model that says nothing, in pieces: half of the word, then a wait for the test, then the rest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from gateway.messages import Message, Text, ToolUse
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta, Usage

TOKEN = "NO_REPLY"
FIRST = "NO_RE"
USED = Usage(input=1, output=1)
PATIENCE = 30.0  # seconds; only a failing test waits that long
ALMOST = f"{TOKEN} is what I will not say."  # what the model says to "almost": more than the word


@dataclass
class Silent:
    """To `almost` it says more than the word, to `hello` it says hello, and for `work` it first calls a tool
    of that name."""

    requests: list[ModelRequest] = field(default_factory=list)
    half_said: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    id: str = "silent"

    async def begun(self) -> None:
        """Wait until half of the word is said."""
        async with asyncio.timeout(PATIENCE):
            await self.half_said.wait()

    @property
    def said(self) -> list[Message]:
        """What the model was told last."""
        return list(self.requests[-1].messages)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """See Model."""
        self.requests.append(replace(request, messages=list(request.messages)))
        tell = on_delta or (lambda text: None)
        asked = request.messages[-1].text
        if "hello" in asked:
            tell("Hello.")
            return self._reply("Hello.")
        if "work" in asked:
            call = ToolUse(id="c1", name="work", input={})
            return ModelResponse(content=(call,), stop="tool_calls", usage=USED, model=self.id)
        tell(FIRST)
        self.half_said.set()
        await self.let_go.wait()
        answer = ALMOST if "almost" in asked else f"{TOKEN}\n"
        tell(answer[len(FIRST) :])
        return self._reply(answer)

    def _reply(self, text: str) -> ModelResponse:
        return ModelResponse(content=(Text(text=text),), stop="end", usage=USED, model=self.id)

    async def close(self) -> None:
        """Nothing is open."""
