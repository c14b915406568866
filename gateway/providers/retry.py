"""A model that does not give up at the first trouble: waits, other models, second questions.

What is tried again, and how:

- Rate limits, overload, broken answers: the same model, with growing waits and some chance in them
  (or as long as the endpoint asks for), then the next model of the list.
- A refused key or an unknown model: the next model at once.
- With `second_chance`, an empty reply (no text, no calls, perhaps reasoning) or a malformed one: the
  same question once more, without a word to anyone; the second reply stands as it is. The loop does
  this by itself for every model, so it is off unless a model is used without the loop.
- A refusal of thinking blocks: once more without the thinking of earlier turns.
- Everything else that the endpoint refuses goes to the caller, a prompt that is too long above all.

Every attempt streams its deltas from its own beginning, so a listener may see a start twice. The
text of the response is what holds.
"""

from __future__ import annotations

import dataclasses
import logging
import random
from collections.abc import Callable, Sequence

import msgspec
import tenacity

from gateway.clock import Clock
from gateway.errors import (
    IntelligenceUnavailable,
    ModelAuthError,
    ModelError,
    ModelOverloaded,
    ModelRateLimited,
    ModelRejected,
)
from gateway.messages import Message, Text, Thinking
from gateway.providers.base import Model, ModelRequest, ModelResponse, OnDelta

log = logging.getLogger(__name__)


class ResilientModel:
    """Several models, asked in order, each with `attempts` tries.

    first_wait, longest_wait: seconds before the second try, and the most between two tries. An
    endpoint that asks to wait longer than `longest_wait` is left for the next model at once.
    rest: seconds for which a model that failed after all its tries is asked last.
    jitter: a number in [0, 1) for each wait. second_chance: ask again after an empty reply.
    """

    def __init__(
        self,
        models: Sequence[Model],
        *,
        clock: Clock,
        attempts: int = 4,
        first_wait: float = 1.0,
        longest_wait: float = 30.0,
        rest: float = 60.0,
        jitter: Callable[[], float] = random.random,
        second_chance: bool = False,
    ) -> None:
        if not models:
            raise ValueError("no model is given")
        self._models, self._clock, self._attempts = tuple(models), clock, attempts
        self._first_wait, self._longest_wait = first_wait, longest_wait
        self._rest, self._jitter, self._second_chance = rest, jitter, second_chance
        self._rests_until: dict[int, float] = {}

    @property
    def id(self) -> str:
        """The first model's. The response names the model that answered."""
        return self._models[0].id

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """Raises IntelligenceUnavailable when no model answered, ModelRejected as the models do."""
        failures: list[str] = []
        for index in self._order():
            model = self._models[index]
            try:
                response = await self._insist(model, request, on_delta)
            except (ModelRateLimited, ModelOverloaded, ModelAuthError) as error:
                failures.append(f"{model.id} ({type(error).__name__})")
                self._rests_until[index] = self._clock.monotonic() + self._rest
                log.warning("model %s gave no answer: %s", model.id, error)
                last: ModelError = error
            else:
                self._rests_until.pop(index, None)
                return response
        raise IntelligenceUnavailable(f"no model answered: {', '.join(failures)}") from last

    async def close(self) -> None:
        """Close every model."""
        for model in self._models:
            await model.close()

    def _order(self) -> list[int]:
        """In the given order, those that have just failed last."""
        now = self._clock.monotonic()
        return sorted(range(len(self._models)), key=lambda index: self._rests_until.get(index, now) > now)

    async def _insist(self, model: Model, request: ModelRequest, on_delta: OnDelta | None) -> ModelResponse:
        """A useful reply if two questions yield one. The tokens of both count."""
        first = await self._patiently(model, request, on_delta)
        if not self._second_chance or not _useless(first):
            return first
        log.info("model %s gave an empty or malformed reply; asking once more", model.id)
        second = await self._patiently(model, request, on_delta)
        return dataclasses.replace(second, usage=first.usage + second.usage)

    async def _patiently(
        self, model: Model, request: ModelRequest, on_delta: OnDelta | None
    ) -> ModelResponse:
        retrying = tenacity.AsyncRetrying(
            sleep=self._clock.sleep,
            wait=self._wait,
            stop=self._enough,
            retry=tenacity.retry_if_exception_type((ModelRateLimited, ModelOverloaded)),
            reraise=True,
        )
        return await retrying(_without_thinking_if_refused, model, request, on_delta)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        backoff = min(self._longest_wait, self._first_wait * 2.0 ** (state.attempt_number - 1))
        asked = _retry_after(state)
        if asked is not None:
            # A little later than asked, so that many sessions do not come back in the same moment.
            return asked + 0.1 * self._jitter() * backoff
        return backoff * (0.5 + 0.5 * self._jitter())

    def _enough(self, state: tenacity.RetryCallState) -> bool:
        asked = _retry_after(state)
        return state.attempt_number >= self._attempts or (asked is not None and asked > self._longest_wait)


async def _without_thinking_if_refused(
    model: Model, request: ModelRequest, on_delta: OnDelta | None
) -> ModelResponse:
    try:
        return await model.complete(request, on_delta)
    except ModelRejected as error:
        lighter = without_earlier_thinking(request) if error.about_thinking else request
        if lighter is request:
            raise
        log.info("model %s refused thinking blocks; asking without those of earlier turns", model.id)
        return await model.complete(lighter, on_delta)


def without_earlier_thinking(request: ModelRequest) -> ModelRequest:
    """The request without thinking before the last words of a person; itself if there is none."""
    messages = list(request.messages)
    for index in range(_turn_start(messages)):
        message = messages[index]
        content = tuple(block for block in message.content if not isinstance(block, Thinking))
        if len(content) < len(message.content):
            messages[index] = msgspec.structs.replace(message, content=content)
    if all(ours is theirs for ours, theirs in zip(messages, request.messages, strict=True)):
        return request
    return dataclasses.replace(request, messages=messages)


def _turn_start(messages: Sequence[Message]) -> int:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user" and messages[index].kind == "" and messages[index].text:
            return index
    return 0


def _useless(response: ModelResponse) -> bool:
    if response.stop == "malformed":
        return True
    if response.stop not in ("end", "tool_calls"):
        return False
    said = any(isinstance(block, Text) and block.text.strip() for block in response.content)
    return not said and all(isinstance(block, Text | Thinking) for block in response.content)


def _retry_after(state: tenacity.RetryCallState) -> float | None:
    error = state.outcome.exception() if state.outcome is not None else None
    return error.retry_after if isinstance(error, ModelError) else None
