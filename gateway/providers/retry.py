"""A model that does not give up at the first trouble: waits, other models, second questions.

What is tried again, and how:

- Rate limits, overload, broken answers: the same model, with growing waits and some chance in them
  (or as long as the endpoint asks for), then the next model of the list. An endpoint that asks for
  more patience than there is is left at once; the error says how long it asked for.
- A refused key or an unknown model: the next model at once. A refused request too: what one vendor
  takes offence at, another may take. When none takes it, the first refusal goes to the caller.
- With `second_chance`, an empty reply (no text, no calls, perhaps reasoning) or a malformed one: the
  same question once more, without a word to anyone; the second reply stands as it is. The loop does
  this by itself for every model, so it is off unless a model is used without the loop.
- A refusal of thinking blocks: once more without the thinking of earlier turns.
- A prompt that is too long goes to the caller at once: it can be cut.

Every attempt streams its deltas from its own beginning; an empty delta tells a listener that what it has
heard so far is void. Cancelling the task ends every wait at once.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import random
from collections.abc import Callable, Sequence
from functools import partial

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
from gateway.messages import Block, Message, Text, Thinking, ToolUse
from gateway.providers.base import Model, ModelRequest, ModelResponse, OnDelta

LONGEST_REST = 3_600.0  # seconds
log = logging.getLogger(__name__)


class ResilientModel:
    """Several models, asked in order, each with `attempts` tries.

    first_wait, longest_wait: seconds before the second try, and the most between two tries. An
    endpoint that asks to wait longer than `longest_wait` is left for the next model at once. patience:
    the most seconds, in all, that the last model of the list may ask for.
    rest: seconds for which a model that failed after all its tries is asked last; as long as the
    endpoint has asked for, if that is longer (at most an hour).
    jitter: a number in [0, 1) for each wait. second_chance: ask again after an empty reply.
    names: what the models are called in the configuration, so that errors can name the key to mend.
    """

    def __init__(
        self,
        models: Sequence[Model],
        *,
        clock: Clock,
        attempts: int = 4,
        first_wait: float = 1.0,
        longest_wait: float = 30.0,
        patience: float = 120.0,
        rest: float = 60.0,
        jitter: Callable[[], float] = random.random,
        second_chance: bool = False,
        names: Sequence[str] = (),
    ) -> None:
        if not models:
            raise ValueError("no model is given")
        self._models, self._clock, self._attempts = tuple(models), clock, attempts
        self._first_wait, self._longest_wait, self._patience = first_wait, longest_wait, patience
        self._rest, self._jitter, self._second_chance = rest, jitter, second_chance
        self._names = tuple(names)
        self._rests_until: dict[int, float] = {}

    @property
    def id(self) -> str:
        """The first model's. The response names the model that answered."""
        return self._models[0].id

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """Raises IntelligenceUnavailable when no model answered, ModelRejected as the models do."""
        failures: list[str] = []
        refused: ModelRejected | None = None
        last: ModelError | None = None
        hearing, order = _Hearing(on_delta), self._order()
        for index in order:
            model = self._models[index]
            try:
                response = await self._insist(model, request, hearing, last=index == order[-1])
            except ModelRejected as error:
                if error.context_too_long:
                    raise
                refused = refused or error
                log.warning("model %s refused the request: %s", model.id, error)
            except (ModelRateLimited, ModelOverloaded, ModelAuthError) as error:
                name = self._names[index] if index < len(self._names) else ""
                failures.append(f"{model.id} {_failure(error, name)}")
                asked = min(_asked(error) or 0.0, LONGEST_REST)
                self._rests_until[index] = self._clock.monotonic() + max(self._rest, asked)
                log.warning("model %s gave no answer: %s", model.id, error)
                last = error
            else:
                self._rests_until.pop(index, None)
                return response
        if refused is not None:
            raise refused
        raise IntelligenceUnavailable(f"no model answered: {'; '.join(failures)}") from last

    async def close(self) -> None:
        """Close every model."""
        for model in self._models:
            await model.close()

    def _order(self) -> list[int]:
        """In the given order, those that have just failed last."""
        now = self._clock.monotonic()
        return sorted(range(len(self._models)), key=lambda index: self._rests_until.get(index, now) > now)

    async def _insist(
        self, model: Model, request: ModelRequest, hearing: _Hearing, *, last: bool
    ) -> ModelResponse:
        """A useful reply if two questions yield one. The tokens of both count."""
        first = await self._patiently(model, request, hearing, last=last)
        if not self._second_chance or not _useless(first):
            return first
        log.info("model %s gave an empty or malformed reply; asking once more", model.id)
        second = await self._patiently(model, request, hearing, last=last)
        return dataclasses.replace(second, usage=first.usage + second.usage)

    async def _patiently(
        self, model: Model, request: ModelRequest, hearing: _Hearing, *, last: bool
    ) -> ModelResponse:
        retrying = tenacity.AsyncRetrying(
            sleep=self._clock.sleep,
            wait=self._wait,
            stop=partial(self._enough, self._patience if last else self._longest_wait),
            retry=tenacity.retry_if_exception_type((ModelRateLimited, ModelOverloaded)),
            reraise=True,
        )
        return await retrying(_without_thinking_if_refused, model, request, hearing)

    def _wait(self, state: tenacity.RetryCallState) -> float:
        backoff = min(self._longest_wait, self._first_wait * 2.0 ** (state.attempt_number - 1))
        usual = backoff * (0.5 + 0.5 * self._jitter())
        # A little later than asked, so that many sessions do not come back in the same moment.
        asked = _asked(_error(state))
        return usual if asked is None else max(usual, asked + 0.1 * self._jitter() * backoff)

    def _enough(self, most: float, state: tenacity.RetryCallState) -> bool:
        asked = _asked(_error(state))
        if state.attempt_number >= self._attempts:
            return True
        return asked is not None and (asked > most or state.idle_for + asked > self._patience)


class _Hearing:
    """Who listens to a reply that may have several beginnings."""

    __slots__ = ("_grown", "_on_delta")

    def __init__(self, on_delta: OnDelta | None) -> None:
        self._on_delta, self._grown = on_delta, False

    def begin(self) -> OnDelta | None:
        """What the next attempt calls. What earlier ones have said is void."""
        if self._on_delta is None:
            return None
        if self._grown:
            self._grown = False
            self._on_delta("")
        return self._heard

    def _heard(self, piece: str) -> None:
        if piece and self._on_delta is not None:
            self._grown = True
            self._on_delta(piece)


async def _without_thinking_if_refused(
    model: Model, request: ModelRequest, hearing: _Hearing
) -> ModelResponse:
    try:
        return await model.complete(request, hearing.begin())
    except ModelRejected as error:
        lighter = without_earlier_thinking(request) if error.about_thinking else request
        if lighter is request:
            raise
        log.info("model %s refused thinking blocks; asking without those of earlier turns", model.id)
        return await model.complete(lighter, hearing.begin())


def without_earlier_thinking(request: ModelRequest) -> ModelRequest:
    """The request without thinking before the last words of a person; itself if there is none."""
    messages = list(request.messages)
    for index in range(_turn_start(messages)):
        message = messages[index]
        content = tuple(_plain(block) for block in message.content if not isinstance(block, Thinking))
        if content != message.content:
            messages[index] = msgspec.structs.replace(message, content=content)
    if all(ours is theirs for ours, theirs in zip(messages, request.messages, strict=True)):
        return request
    return dataclasses.replace(request, messages=messages)


def _plain(block: Block) -> Block:
    """The block without what its own model needs back: a signature may stand on words and calls as well."""
    if isinstance(block, Text | ToolUse) and block.opaque is not None:
        return msgspec.structs.replace(block, opaque=None)
    return block


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


def _error(state: tenacity.RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _asked(error: BaseException | None) -> float | None:
    """Seconds that the endpoint asks to be left alone for; None where it says nothing or nonsense."""
    asked = error.retry_after if isinstance(error, ModelError) else None
    return None if asked is None or math.isnan(asked) or asked < 0 else asked


def _failure(error: ModelError, name: str) -> str:
    """What a model did instead of answering. `name`: its table in the configuration, empty: not known."""
    table = f"models.{name}" if name else ""
    match error:
        case ModelRateLimited():
            words = "limits the rate"
        case ModelAuthError(about="key"):
            words = f"refuses the key{f' ({table}.api_key)' if table else ''}"
        case ModelAuthError(about="model"):
            where = f" ({table}.model, {table}.base_url)" if table else ""
            words = f"does not know the model, or its address is another{where}"
        case ModelAuthError(about="account"):
            words = "wants its account looked after: no credit, no quota or not in this country"
        case ModelAuthError():
            words = "refuses the key or does not know the model"
        case ModelOverloaded(unreachable=why) if why:
            words = f"cannot be reached: {why}{f' ({table}.base_url)' if table else ''}"
        case _:
            words = "is overloaded or cannot be reached"
    asked = _asked(error)
    if asked is None or asked < 1:
        return words
    return f"{words} and asks to wait {_duration(asked)}"


def _duration(seconds: float) -> str:
    """Seconds in the largest unit that fits, "3 h"."""
    if seconds > 99 * 86_400:
        return "for months"
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{round(seconds)} s"
