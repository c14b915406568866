"""The model contract, kept by the Gemini adapter: against the strict server and against llmock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from llmock.scenarios import Reply as LlmockReply
from llmock.scenarios import ToolCall

from gateway.messages import Json
from gateway.providers.base import Model
from gateway.providers.gemini import GeminiModel
from gateway.providers.gemini_wire import gemini_name
from tests.contracts.model import Ability, Backend, Failure, ModelContract
from tests.platforms.gemini.replies import Fail, Say, call, retry_in, text, think
from tests.platforms.gemini.server import GeminiServer

STATUS = {"rate_limited": 429, "overloaded": 503, "auth": 403, "rejected": 400, "too_long": 400}
FINISH = {"length": "MAX_TOKENS", "refusal": "SAFETY"}
TOO_LONG = "The input token count (9) exceeds the maximum number of tokens allowed (8)."


class StrictBackend:
    # The API parses the arguments itself, and says MALFORMED_FUNCTION_CALL where it cannot.
    cannot: frozenset[Ability] = frozenset({"broken_arguments"})

    def __init__(self, server: GeminiServer) -> None:
        self._server = server
        self._calls = 0
        self.secret = server.key
        self.model: Model = GeminiModel(model=server.model, api_key=server.key, base_url=server.base_url)

    def will_say(self, words: str) -> None:
        self._server.script.append(Say(parts=(text(words),)))

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        self._calls += 1
        id = f"fc_{self._calls}" if self._calls % 2 else ""
        part = call(gemini_name(name), args, id=id, model=self._server.model)
        self._server.script.append(Say(parts=(part,), finish=FINISH[stop] if stop else "STOP"))

    def will_think(self, thinking: str) -> None:
        lone = text("", self._server.model, signed="last")
        self._server.script.append(Say(parts=(think(thinking, self._server.model), lone)))

    def will_be_empty(self) -> None:
        self._server.script.append(Say(parts=()))

    def will_fail(self, failure: Failure) -> None:
        words = TOO_LONG if failure == "too_long" else f"key {self.secret}?"
        self._server.script.append(Fail(status=STATUS[failure], say=words, details=[retry_in("7s")]))

    def will_be_cut(self) -> None:
        self._server.script.append(Say(parts=(text("half an answer, or less"),), cut="end", after=2))

    def will_hold(self) -> asyncio.Event:
        self._server.script.append(Say(parts=(text("never"),), hold=asyncio.Event()))
        return self._server.arrived

    async def given_up(self) -> None:
        await self._server.left.wait()


class OlderBackend(StrictBackend):
    """A model that neither thinks nor signs."""

    cannot = StrictBackend.cannot | {"thinking"}

    def will_say(self, words: str) -> None:
        self._server.script.append(Say(parts=(text(words),)))

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        part = call(gemini_name(name), args)
        self._server.script.append(Say(parts=(part,), finish=FINISH[stop] if stop else "STOP"))


class TestGeminiOnTheStrictServer(ModelContract):
    @pytest.fixture(params=[(StrictBackend, "gemini-3-test"), (OlderBackend, "gemini-2.0-test")])
    async def backend(self, request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
        kind, name = request.param
        async with GeminiServer(models=(name,)) as server:
            backend = kind(server)
            yield backend
            await backend.model.close()
            assert server.refused == []


class LlmockBackend:
    """An emulator by other people. It does not know thinking, and its limits are its own."""

    secret = "AIza-llmock"
    cannot: frozenset[Ability] = frozenset({"hold", "thinking", "broken_arguments"})

    def __init__(self, llmock: Any) -> None:
        self._llmock = llmock
        self.model: Model = GeminiModel(
            model="gemini-2.5-pro", api_key=self.secret, base_url=llmock.base_url("gemini")
        )

    def will_say(self, words: str) -> None:
        self._llmock.reply(words)

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        assert not isinstance(args, str)
        finish = {"length": "length", "refusal": "content_filter"}[stop] if stop else None
        calls = (ToolCall(gemini_name(name), args),)
        self._llmock.add(LlmockReply(tool_calls=calls, finish_reason=finish))

    def will_think(self, thinking: str) -> None:
        raise NotImplementedError

    def will_be_empty(self) -> None:
        self._llmock.add(LlmockReply(text=""))

    def will_fail(self, failure: Failure) -> None:
        if failure == "too_long":
            self._llmock.fail(400, message=TOO_LONG)
        else:
            self._llmock.fail(STATUS[failure], retry_after=7 if failure == "rate_limited" else None)

    def will_be_cut(self) -> None:
        self._llmock.reply("half an answer, or less").truncate(after_chunks=3)

    def will_hold(self) -> asyncio.Event:
        raise NotImplementedError

    async def given_up(self) -> None:
        raise NotImplementedError


class TestGeminiOnLlmock(ModelContract):
    @pytest.fixture
    async def backend(self, llmock: Any) -> AsyncIterator[Backend]:
        backend = LlmockBackend(llmock)
        yield backend
        await backend.model.close()
