"""What a call of a model costs. Pure but for `Priced`, which asks the model.

The figures are those of 1 December 2026, in USD for a million tokens, standard service, as the vendors
publish them: platform.claude.com/docs/en/about-claude/pricing, developers.openai.com/api/docs/pricing,
ai.google.dev/gemini-api/docs/pricing, api-docs.deepseek.com/quick_start/pricing,
platform.kimi.ai/docs/pricing, docs.z.ai/guides/overview/pricing. They were read in other people's
copies of these pages, from September to November 2026. What the table cannot say:

- DeepSeek charges half of this outside its peak hours.
- Gemini 3.6 to 3.8 Flash cost twice as much from 2027 on.
- Words written to a cache are counted at the price of the shortest time for which they are kept.

A model that is not in the table has no price: nothing is guessed. `[models.NAME.price]` overrides.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.providers.base import Model, ModelRequest, ModelResponse, OnDelta, Usage

# Where these are the prices: others sell the same models at their own.
HOSTS = {
    "anthropic": "api.anthropic.com",
    "openai": "api.openai.com",
    "gemini": "generativelanguage.googleapis.com",
    "deepseek": "api.deepseek.com",
    "kimi": "api.moonshot.ai",
    "glm": "api.z.ai",
}
_MILLION = 1_000_000
# Vendors date their models; the price is that of the name without the date.
_DATE = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD for a million tokens. `cached`: input read from the cache; `cache_write`: input written to it;
    None: like other input. A request of more than `long_after` input tokens costs `long_input` and
    `long_output` times as much as a whole."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    long_after: int | None = None
    long_input: float = 1.0
    long_output: float = 1.0

    def of(self, usage: Usage) -> float:
        """USD for one call."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, usage.input - usage.cached - usage.cache_written)
        taken = fresh * self.input + usage.cached * cached + usage.cache_written * written
        given = usage.output * self.output
        if self.long_after is not None and usage.input > self.long_after:
            taken, given = taken * self.long_input, given * self.long_output
        return (taken + given) / _MILLION


def _price(input: float, cached: float, output: float, cache_write: float | None = None) -> Price:
    return Price(input=input, cached=cached, output=output, cache_write=cache_write)


def _long(price: Price, after: int, input: float, output: float) -> Price:
    return dataclasses.replace(price, long_after=after, long_input=input, long_output=output)


_OPUS = _price(5, 0.50, 25, 6.25)
_SONNET = _price(3, 0.30, 15, 3.75)
_FLASH = _price(0.75, 0.075, 3.75)
_GLM = _price(0.60, 0.11, 2.20)
_GLM_5 = _price(1.40, 0.26, 4.40)


def _gpt(input: float, cached: float, output: float, cache_write: float | None = None) -> Price:
    return _long(_price(input, cached, output, cache_write), 272_000, 2.0, 1.5)


# By provider and model. Columns: input, cached input, output, written to the cache.
PRICES: Mapping[str, Price] = {
    "anthropic:claude-fable-5-1": _price(10, 0.25, 50, 12.50),
    "anthropic:claude-fable-5": _price(10, 1.00, 50, 12.50),
    "anthropic:claude-opus-5-5": _price(4, 0.20, 20, 5.00),
    "anthropic:claude-opus-5": _OPUS,
    "anthropic:claude-opus-4-8": _OPUS,
    "anthropic:claude-opus-4-7": _OPUS,
    "anthropic:claude-opus-4-6": _OPUS,
    "anthropic:claude-opus-4-5": _OPUS,
    "anthropic:claude-sonnet-5-5": _price(2, 0.10, 10, 2.50),
    "anthropic:claude-sonnet-5": _price(2, 0.20, 10, 2.50),
    "anthropic:claude-sonnet-4-6": _SONNET,
    "anthropic:claude-sonnet-4-5": _SONNET,
    "anthropic:claude-haiku-5-5": _long(_price(0.10, 0.01, 0.50, 0.125), 100_000, 5.0, 5.0),
    "anthropic:claude-haiku-4-5": _price(1, 0.10, 5, 1.25),
    "openai:gpt-6.2-astra": _gpt(8, 0.40, 40, 10.00),
    "openai:gpt-6.2-sol": _gpt(2, 0.10, 10, 2.50),
    "openai:gpt-6.1-sol": _gpt(2, 0.10, 10, 2.50),
    "openai:gpt-6.1-terra": _gpt(1, 0.05, 5, 1.25),
    "openai:gpt-6-astra": _gpt(10, 1.00, 50, 12.50),
    "openai:gpt-6-sol": _gpt(2, 0.20, 10, 2.50),
    "openai:gpt-6-luna": _gpt(0.10, 0.01, 0.50, 0.125),
    "openai:gpt-5.6-sol": _gpt(4, 0.40, 20),
    "openai:gpt-5.6-terra": _gpt(2, 0.20, 12),
    "openai:gpt-5.6-luna": _gpt(0.20, 0.02, 1.20),
    "openai:gpt-5.5": _gpt(5, 0.50, 30),
    "openai:gpt-5.4": _gpt(2.50, 0.25, 15),
    "openai:gpt-5.4-mini": _price(0.75, 0.075, 4.50),
    "openai:gpt-5.2": _price(1.75, 0.175, 14),
    "openai:gpt-5.1": _price(1.25, 0.125, 10),
    "openai:gpt-5": _price(1.25, 0.125, 10),
    "openai:gpt-5-mini": _price(0.25, 0.025, 2),
    "openai:gpt-5-nano": _price(0.05, 0.005, 0.40),
    "openai:gpt-4.1": _price(2, 0.50, 8),
    "openai:gpt-4.1-mini": _price(0.40, 0.10, 1.60),
    "gemini:gemini-4-argon": _price(4, 0.20, 20),
    "gemini:gemini-4-carbon": _price(4, 0.20, 20),
    "gemini:gemini-4-neon": _price(3, 0.15, 15),
    "gemini:gemini-4-hydrogen": _price(1.50, 0.075, 7.50),
    "gemini:gemini-3.8-flash": _FLASH,
    "gemini:gemini-3.7-flash": _FLASH,
    "gemini:gemini-3.6-flash": _FLASH,
    "gemini:gemini-3.5-flash": _price(1.50, 0.15, 9),
    "gemini:gemini-3.5-flash-lite": _price(0.30, 0.03, 2.50),
    "gemini:gemini-3.1-pro-preview": _long(_price(2, 0.20, 12), 200_000, 2.0, 1.5),
    "gemini:gemini-3.1-flash-lite": _price(0.25, 0.025, 1.50),
    "gemini:gemini-3-flash-preview": _price(0.50, 0.05, 3),
    "gemini:gemini-2.5-pro": _long(_price(1.25, 0.125, 10), 200_000, 2.0, 1.5),
    "gemini:gemini-2.5-flash": _price(0.30, 0.03, 2.50),
    "gemini:gemini-2.5-flash-lite": _price(0.10, 0.01, 0.40),
    "deepseek:deepseek-flash": _price(0.30, 0.006, 1.20),
    "deepseek:deepseek-v4-flash": _price(0.30, 0.006, 1.20),
    "deepseek:deepseek-v4-pro": _price(1.32, 0.044, 3.96),
    "kimi:kimi-k3.1-pro": _price(2, 0.20, 10, 2.00),
    "kimi:kimi-k3.1-pro-highspeed": _price(4, 0.20, 20, 4.00),
    "kimi:kimi-k3": _price(3, 0.30, 15),
    "kimi:kimi-k2.7-code": _price(0.95, 0.19, 4),
    "glm:glm-5.3": _GLM_5,
    "glm:glm-5.2": _GLM_5,
    "glm:glm-5": _price(1, 0.20, 3.20),
    "glm:glm-4.7": _GLM,
    "glm:glm-4.6": _GLM,
    "glm:glm-4.5": _GLM,
}


def price_of(model_id: str) -> Price | None:
    """The price of a model by its id (`anthropic:claude-opus-5`, with a date behind it or without); None
    for one that is not in the table."""
    return PRICES.get(model_id) or PRICES.get(_DATE.sub("", model_id))


def cost(model_id: str, usage: Usage, price: Price | None = None) -> float | None:
    """USD for one call of this model; None where no price is known. `price`: instead of the table's."""
    known = price or price_of(model_id)
    return None if known is None else known.of(usage)


def list_price(model_id: str, base_url: str | None) -> Price | None:
    """The price that is known for a model at this address; None anywhere but at its vendor's own."""
    host = urlsplit(base_url).hostname if base_url else None
    at_home = base_url is None or host == HOSTS.get(model_id.partition(":")[0])
    return price_of(model_id) if at_home else None


class Priced:
    """A model whose replies say what they cost."""

    def __init__(self, model: Model, price: Price) -> None:
        self._model, self._price = model, price

    @property
    def id(self) -> str:
        return self._model.id

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """See Model."""
        response = await self._model.complete(request, on_delta)
        usage = dataclasses.replace(response.usage, cost=self._price.of(response.usage))
        return dataclasses.replace(response, usage=usage)

    async def close(self) -> None:
        """See Model."""
        await self._model.close()
