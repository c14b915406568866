"""The model contract, kept by the Chat Completions adapter in every vendor's flavour: against the strict
server and against llmock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from llmock.scenarios import Reply as LlmockReply
from llmock.scenarios import ToolCall

from gateway.messages import Json
from gateway.providers.base import Model
from gateway.providers.openai import ChatModel
from gateway.providers.openai_quirks import QUIRKS, Provider
from tests.contracts.model import Ability, Backend, Failure, ModelContract
from tests.platforms.openai.replies import Fail, Say, call
from tests.platforms.openai.rules import SIGNED, too_long
from tests.platforms.openai.server import OpenAIServer

STATUS = {"rate_limited": 429, "overloaded": 503, "auth": 401, "rejected": 400, "too_long": 400}
GLM_CODES = {"rate_limited": "1302", "overloaded": "1305", "auth": "1002", "too_long": "1261"}
REFUSALS = {"glm": "sensitive"}
MODELS: dict[Provider, str] = {
    "openai": "gpt-5-test",
    "deepseek": "deepseek-test",
    "kimi": "kimi-k2.6",
    "glm": "glm-test",
    "gemini": "gemini-3-test",
}


class StrictBackend:
    def __init__(self, server: OpenAIServer, provider: Provider) -> None:
        self._server, self._provider = server, provider
        self._calls = 0
        self.secret = server.key
        self.cannot: frozenset[Ability] = (
            frozenset({"thinking"}) if QUIRKS[provider].reasoning == "refused" else frozenset()
        )
        self.model: Model = ChatModel(
            provider=provider, model=server.model, api_key=server.key, base_url=server.url
        )

    def will_say(self, words: str) -> None:
        self._server.script.append(Say(text=words))

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        self._calls += 1
        signature = SIGNED + self._server.model if self._provider == "gemini" else ""
        one = call(QUIRKS[self._provider].name(name), args, f"call_{self._calls}", signature=signature)
        words = {"length": "length", "refusal": REFUSALS.get(self._provider, "content_filter")}
        self._server.script.append(Say(calls=(one,), finish=words[stop] if stop else None))

    def will_think(self, thinking: str) -> None:
        self._server.script.append(Say(reasoning=thinking))

    def will_be_empty(self) -> None:
        self._server.script.append(Say())

    def will_fail(self, failure: Failure) -> None:
        words = too_long(self._provider, 9, 8) if failure == "too_long" else f"key {self.secret}?"
        code = GLM_CODES.get(failure) if self._provider == "glm" else None
        self._server.script.append(
            Fail(status=STATUS[failure], say=words, code=code, headers={"retry-after": "7"})
        )

    def will_be_cut(self) -> None:
        self._server.script.append(Say(text="half an answer, or less", cut="end", after=3))

    def will_hold(self) -> asyncio.Event:
        self._server.script.append(Say(text="never", hold=asyncio.Event()))
        return self._server.arrived

    async def given_up(self) -> None:
        await self._server.left.wait()


class TestChatOnTheStrictServer(ModelContract):
    @pytest.fixture(params=list(MODELS))
    async def backend(self, request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
        provider = request.param
        async with OpenAIServer(provider, models=(MODELS[provider],)) as server:
            backend = StrictBackend(server, provider)
            yield backend
            await backend.model.close()
            assert server.refused == []


class LlmockBackend:
    """An emulator by other people. It does not know thinking, and its limits are its own."""

    secret = "sk-llmock"
    cannot: frozenset[Ability] = frozenset({"hold", "thinking", "broken_arguments"})

    def __init__(self, llmock: Any, provider: Provider) -> None:
        self._llmock, self._provider = llmock, provider
        self.model: Model = ChatModel(
            provider=provider,
            model="gpt-4o",
            api_key=self.secret,
            base_url=llmock.base_url("openai"),
        )

    def will_say(self, words: str) -> None:
        self._llmock.reply(words)

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        assert not isinstance(args, str)
        finish = {"length": "length", "refusal": "content_filter"}[stop] if stop else None
        calls = (ToolCall(QUIRKS[self._provider].name(name), args),)
        self._llmock.add(LlmockReply(tool_calls=calls, finish_reason=finish))

    def will_think(self, thinking: str) -> None:
        raise NotImplementedError

    def will_be_empty(self) -> None:
        self._llmock.add(LlmockReply(text=""))

    def will_fail(self, failure: Failure) -> None:
        if failure == "too_long":
            self._llmock.fail(400, message=too_long(self._provider, 9, 8))
        else:
            self._llmock.fail(STATUS[failure], retry_after=7 if failure == "rate_limited" else None)

    def will_be_cut(self) -> None:
        self._llmock.reply("half an answer, or less").truncate(after_chunks=3)

    def will_hold(self) -> asyncio.Event:
        raise NotImplementedError

    async def given_up(self) -> None:
        raise NotImplementedError


class TestChatOnLlmock(ModelContract):
    @pytest.fixture(params=list(MODELS))
    async def backend(self, request: pytest.FixtureRequest, llmock: Any) -> AsyncIterator[Backend]:
        backend = LlmockBackend(llmock, request.param)
        yield backend
        await backend.model.close()
