"""The model contract, kept by the scripted model."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Literal

import pytest

from gateway.clock import SystemClock
from gateway.messages import Json
from gateway.providers.base import Model, ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel
from tests.contracts.model import Ability, Backend, Failure, ModelContract


class EndlessClock(SystemClock):
    """Waits never end; the event says that one has begun."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waiting.set()
        await asyncio.Event().wait()


class ScriptedBackend:
    secret = "no secret at all"
    cannot: frozenset[Ability] = frozenset()

    def __init__(self) -> None:
        self._next: deque[Reply] = deque()
        self._clock = EndlessClock()
        self.model: Model = ScriptedModel(self._reply, clock=self._clock)

    def _reply(self, request: ModelRequest) -> Reply:
        return self._next.popleft()

    def will_say(self, text: str) -> None:
        self._next.append(Reply(text=text))

    def will_call(
        self, name: str, args: Json | str, *, stop: Literal["length", "refusal"] | None = None
    ) -> None:
        self._next.append(Reply(calls=(Call(tool=name, args=args),), stop=stop))

    def will_think(self, thinking: str) -> None:
        self._next.append(Reply(thinking=thinking))

    def will_be_empty(self) -> None:
        self._next.append(Reply())

    def will_fail(self, failure: Failure) -> None:
        self._next.append(Reply(error=failure, retry_after=7))

    def will_be_cut(self) -> None:
        self._next.append(Reply(text="half an ans", error="overloaded"))

    def will_hold(self) -> asyncio.Event:
        self._next.append(Reply(text="never", delay=1000))
        return self._clock.waiting

    async def given_up(self) -> None:
        """There is no endpoint."""


class TestScripted(ModelContract):
    @pytest.fixture
    def backend(self) -> Backend:
        return ScriptedBackend()
