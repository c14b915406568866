"""A model with something wrong in its table: the error says what, names the key, and shows no secret."""

from __future__ import annotations

import itertools
import socket
import ssl
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from gateway.agent import Agent
from gateway.app.build import models_of
from gateway.config.parsing import SecretText
from gateway.config.values import ModelSection
from gateway.errors import IntelligenceUnavailable
from gateway.messages import user
from gateway.providers.base import ModelRequest
from gateway.providers.reasons import unreachable
from tests.clock import FakeClock
from tests.platforms.anthropic.server import AnthropicServer
from tests.platforms.gemini.server import GeminiServer
from tests.platforms.openai.replies import Fail
from tests.platforms.openai.server import OpenAIServer

FAMILIES = ("anthropic", "gemini", "openai", "deepseek", "kimi", "glm")
WRONG = "sk-wrong-0123456789"


def endpoint(provider: str) -> AbstractAsyncContextManager[Any]:
    if provider == "anthropic":
        return AnthropicServer()
    return GeminiServer() if provider == "gemini" else OpenAIServer(provider)


def section(provider: Any, server: Any, **changes: Any) -> ModelSection:
    url = server.base_url if provider in ("anthropic", "gemini") else server.url
    given = {"model": server.model, "api_key": SecretText(server.key), "base_url": url, **changes}
    return ModelSection(provider=provider, **given)


class Hasty(FakeClock):
    """Nobody waits between two tries."""

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


async def complaint(given: ModelSection) -> str:
    """What is said when this model is asked."""
    model = models_of({"main": given}, Path(), Hasty())(Agent(name="a"))
    with pytest.raises(IntelligenceUnavailable) as caught:
        await model.complete(ModelRequest(system="", messages=[user("hi")], tools=(), max_output_tokens=9))
    await model.close()
    return str(caught.value)


@pytest.mark.parametrize("provider", FAMILIES)
async def test_a_wrong_key_is_told_as_one_and_never_shown(provider: str) -> None:
    async with endpoint(provider) as server:
        said = await complaint(section(provider, server, api_key=SecretText(WRONG)))
    assert said.endswith("refuses the key (models.main.api_key)")
    assert WRONG not in said and WRONG[-6:] not in said


@pytest.mark.parametrize("provider", FAMILIES)
@pytest.mark.parametrize("what", ["model", "address"])
async def test_a_wrong_model_and_a_wrong_address_are_told_with_both_keys(provider: str, what: str) -> None:
    async with endpoint(provider) as server:
        right = section(provider, server)
        changes = {"model": "nonsense"} if what == "model" else {"base_url": f"{right.base_url}/wrong"}
        said = await complaint(section(provider, server, **changes))
    assert said.endswith(
        "does not know the model, or its address is another (models.main.model, models.main.base_url)"
    )


async def test_an_account_without_credit_is_told_as_one() -> None:
    async with OpenAIServer("openai") as server:
        server.script.append(Fail(status=429, code="insufficient_quota"))
        said = await complaint(section("openai", server))
    assert said.endswith("wants its account looked after: no credit, no quota or not in this country")


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai"])
async def test_where_nobody_listens_that_is_said(provider: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    given = ModelSection(provider=provider, model="m", api_key=SecretText(WRONG), base_url=nobody)  # type: ignore[arg-type]
    said = await complaint(given)
    assert said.endswith("cannot be reached: nobody listens at its address (models.main.base_url)")


def chained(*errors: Exception) -> Exception:
    """The first of these, each caused by the next."""
    for above, below in itertools.pairwise(errors):
        above.__cause__ = below
    return errors[0]


@pytest.mark.parametrize(
    ("below", "told"),
    [
        (socket.gaierror(-2, "Name or service not known"), "no such host, or no network"),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), "no TLS at its address"),
        (OSError(101, "Network is unreachable"), "no way to its network"),
    ],
)
def test_the_reason_is_found_below_the_errors_of_the_sdk(below: Exception, told: str) -> None:
    assert told in unreachable(chained(RuntimeError("Connection error."), OSError("all failed"), below))


def test_an_answer_that_broke_off_is_no_missing_connection() -> None:
    assert unreachable(chained(RuntimeError("peer closed"), ConnectionResetError(104, "reset"))) == ""
