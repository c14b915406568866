"""The model contract, kept by the Anthropic adapter: against the strict server and against llmock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from llmock.scenarios import Reply as LlmockReply
from llmock.scenarios import ToolCall

from gateway.messages import Json
from gateway.providers.anthropic import AnthropicModel
from gateway.providers.base import Model
from gateway.providers.names import wire_name
from tests.contracts.model import Ability, Backend, Failure, ModelContract
from tests.platforms.anthropic.replies import Fail, Say, call, text, think
from tests.platforms.anthropic.server import AnthropicServer

STATUS = {"rate_limited": 429, "overloaded": 529, "auth": 401, "rejected": 400, "too_long": 400}
STOPS = {"length": "max_tokens", "refusal": "refusal"}


class StrictBackend:
    cannot: frozenset[Ability] = frozenset()

    def __init__(self, server: AnthropicServer) -> None:
        self._server = server
        self._calls = 0
        self.secret = server.key
        self.model: Model = AnthropicModel(model=server.model, api_key=server.key, base_url=server.base_url)

    def will_say(self, words: str) -> None:
        self._server.script.append(Say(blocks=(text(words),)))

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        self._calls += 1
        block = call(wire_name(name), args, f"toolu_{self._calls}")
        self._server.script.append(Say(blocks=(block,), stop=STOPS[stop] if stop else None))

    def will_think(self, thinking: str) -> None:
        self._server.script.append(Say(blocks=(think(thinking, self._server.model),)))

    def will_be_empty(self) -> None:
        self._server.script.append(Say(blocks=()))

    def will_fail(self, failure: Failure) -> None:
        words = "prompt is too long: 9 tokens > 8 maximum" if failure == "too_long" else f"key {self.secret}?"
        self._server.script.append(Fail(status=STATUS[failure], say=words, headers={"retry-after": "7"}))

    def will_be_cut(self) -> None:
        self._server.script.append(Say(blocks=(text("half an answer, or less"),), cut="end", after=4))

    def will_hold(self) -> asyncio.Event:
        self._server.script.append(Say(blocks=(text("never"),), hold=asyncio.Event()))
        return self._server.arrived

    async def given_up(self) -> None:
        await self._server.left.wait()


class TestAnthropicOnTheStrictServer(ModelContract):
    @pytest.fixture
    async def backend(self) -> AsyncIterator[Backend]:
        async with AnthropicServer() as server:
            backend = StrictBackend(server)
            yield backend
            await backend.model.close()
            assert server.refused == []


class LlmockBackend:
    """An emulator by other people. It does not know thinking, and its limits are its own."""

    secret = "sk-ant-llmock"
    cannot: frozenset[Ability] = frozenset({"hold", "thinking", "broken_arguments"})

    def __init__(self, llmock: Any) -> None:
        self._llmock = llmock
        self.model: Model = AnthropicModel(
            model="claude-sonnet-4-6", api_key=self.secret, base_url=llmock.base_url("anthropic")
        )

    def will_say(self, words: str) -> None:
        self._llmock.reply(words)

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        assert not isinstance(args, str)
        finish = {"length": "length", "refusal": "content_filter"}[stop] if stop else None
        calls = (ToolCall(wire_name(name), args),)
        self._llmock.add(LlmockReply(tool_calls=calls, finish_reason=finish))

    def will_think(self, thinking: str) -> None:
        raise NotImplementedError

    def will_be_empty(self) -> None:
        self._llmock.add(LlmockReply(text=""))

    def will_fail(self, failure: Failure) -> None:
        if failure == "too_long":
            self._llmock.fail(400, message="prompt is too long: 9 tokens > 8 maximum")
        else:
            self._llmock.fail(STATUS[failure], retry_after=7 if failure == "rate_limited" else None)

    def will_be_cut(self) -> None:
        self._llmock.reply("half an answer, or less").truncate(after_chunks=3)

    def will_hold(self) -> asyncio.Event:
        raise NotImplementedError

    async def given_up(self) -> None:
        raise NotImplementedError


class TestAnthropicOnLlmock(ModelContract):
    @pytest.fixture
    async def backend(self, llmock: Any) -> AsyncIterator[Backend]:
        backend = LlmockBackend(llmock)
        yield backend
        await backend.model.close()
