"""From `[models.NAME]` to an adapter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.agent import Agent
from gateway.app.build import build_parts, model_factory
from gateway.clock import SystemClock
from gateway.config import Config, load_config
from gateway.config.checks import KEY_VARIABLES, OWN_FIELDS
from gateway.errors import ConfigError
from gateway.messages import user
from gateway.providers.base import Model, ModelRequest
from gateway.providers.openai_quirks import QUIRKS
from gateway.providers.prices import Price
from tests.platforms.gemini.server import GeminiServer
from tests.platforms.openai.rules import FLAVOURS
from tests.platforms.openai.server import OpenAIServer

Load = Callable[..., Config]
AGENT = "[agents.assistant]\nmodel = 'main'\n"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def run(provider: str, more: str = "") -> Config:
        path = tmp_path / "config.toml"
        path.write_text(
            f"[models.main]\nprovider = '{provider}'\nmodel = 'm'\napi_key = 'env:KEY'\n{more}\n{AGENT}"
        )
        return load_config(path, env={"KEY": "sk-test-0123456789"})

    return run


def made(config: Config) -> Model:
    return model_factory(config, SystemClock())(Agent(name="assistant", model="main"))


@pytest.mark.parametrize("provider", list(QUIRKS))
async def test_each_provider_of_the_family_speaks_to_the_configured_address(
    load: Load, provider: str
) -> None:
    async with OpenAIServer(provider, models=("m",)) as server:
        model = made(load(provider, f"base_url = '{server.url}'\nmax_output_tokens = 77"))
        assert model.id == f"{provider}:m"
        reply = await model.complete(ModelRequest(system="", messages=[user("go")]))
        assert reply.model == f"{provider}:m"
        assert 77 in server.accepted[0].values()
        await model.close()


async def test_gemini_is_spoken_to_in_its_own_way_at_any_other_address(load: Load) -> None:
    native = made(load("gemini"))
    assert native.id == "gemini:m"
    await native.close()
    assert FLAVOURS["gemini"].path.removesuffix("/chat/completions").endswith("/openai")


@pytest.mark.parametrize("tail", ["", "/v1beta"])
async def test_gemini_s_own_interface_is_spoken_to_at_the_configured_address(load: Load, tail: str) -> None:
    async with GeminiServer(models=("m",)) as server:
        fields = "extra = { generationConfig = { temperature = 0.5 } }"
        key = "sk-test-0123456789"
        server.key = key
        model = made(
            load("gemini", f"base_url = '{server.base_url}{tail}'\nmax_output_tokens = 77\n{fields}")
        )
        reply = await model.complete(ModelRequest(system="", messages=[user("go")]))
        assert reply.model == "gemini:m"
        assert server.accepted[0]["generationConfig"] == {"maxOutputTokens": 77, "temperature": 0.5}
        await model.close()


PRICE = "[models.main.price]\ninput = 1\noutput = 2.5\ncached = 0.1\ncache_write = 3"


@pytest.mark.parametrize(("more", "known"), [(PRICE, True), ("", False)])
async def test_a_configured_price_is_the_cost_of_each_reply(load: Load, more: str, known: bool) -> None:
    async with OpenAIServer("openai", models=("m",)) as server:
        model = made(load("openai", f"base_url = '{server.url}'\n{more}"))
        usage = (await model.complete(ModelRequest(system="", messages=[user("go")]))).usage
        await model.close()
        expected = Price(input=1, output=2.5, cached=0.1, cache_write=3).of(usage)
        assert usage.cost == (pytest.approx(expected) if known else None)


@pytest.mark.parametrize("more", ["input = 1", "input = -1\noutput = 1", "input = 'x'\noutput = 1"])
def test_a_price_needs_both_its_sides_as_numbers(load: Load, more: str) -> None:
    with pytest.raises(ConfigError, match=r"models\.main\.price"):
        load("openai", f"[models.main.price]\n{more}")


def test_every_configured_model_can_be_chosen(load: Load) -> None:
    more = "[models.other]\nprovider = 'glm'\nmodel = 'g'\napi_key = 'env:KEY'"
    assert build_parts(load("openai", more), channels=False).models == ("main", "other")


async def test_further_fields_of_the_configuration_reach_the_endpoint(load: Load) -> None:
    async with OpenAIServer("kimi", models=("m",)) as server:
        more = f"base_url = '{server.url}'\nextra = {{ thinking = {{ type = 'disabled' }} }}"
        model = made(load("kimi", more))
        await model.complete(ModelRequest(system="", messages=[user("go")]))
        await model.close()
        assert server.accepted[0]["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize("field", sorted(OWN_FIELDS))
def test_further_fields_cannot_replace_what_the_gateway_answers_for(load: Load, field: str) -> None:
    with pytest.raises(ConfigError, match=rf"models\.main\.extra\.{field}"):
        load("openai", f"extra = {{ {field} = 1 }}")


def test_further_fields_are_json(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"models\.main\.extra"):
        load("openai", "extra = { a = 2020-01-01 }")


@pytest.mark.parametrize("provider", list(KEY_VARIABLES))
def test_a_missing_key_is_mended_with_the_vendor_s_own_variable(tmp_path: Path, provider: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[models.main]\nprovider = '{provider}'\nmodel = 'm'\n{AGENT}")
    with pytest.raises(ConfigError, match=KEY_VARIABLES[provider]):
        load_config(path, env={})


@pytest.mark.parametrize(
    ("provider", "sdk", "extra"),
    [
        ("openai", "openai", "openai"),
        ("deepseek", "openai", "openai"),
        ("kimi", "openai", "openai"),
        ("glm", "openai", "openai"),
        ("anthropic", "anthropic", "anthropic"),
        ("gemini", "google.genai", "gemini"),
    ],
)
def test_a_missing_sdk_is_said_at_the_start_with_the_extra_that_brings_it(
    load: Load, provider: str, sdk: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = load(provider)
    monkeypatch.setitem(sys.modules, sdk, None)  # as Python itself marks what cannot be imported
    with pytest.raises(ConfigError, match=rf"models\.main\.provider.*threadgate\[{extra}\]"):
        build_parts(config, channels=False)


@pytest.mark.parametrize(
    ("provider", "own"),
    [
        ("anthropic", {"anthropic"}),
        ("deepseek", {"openai"}),
        ("gemini", {"google.genai"}),
        ("scripted", set()),
    ],
)
def test_a_bot_loads_the_sdk_of_its_own_provider_and_channel_and_no_other(
    tmp_path: Path, provider: str, own: set[str]
) -> None:
    (tmp_path / "script.toml").write_text("[[replies]]\ntext = 'hi'\n")
    more = "script = 'script.toml'" if provider == "scripted" else "model = 'm'\napi_key = 'k'"
    bot = f"[channels.telegram]\ntoken = '1234567:{'a' * 35}'\nusers = ['1']\n"
    path = tmp_path / "config.toml"
    path.write_text(f"[models.main]\nprovider = '{provider}'\n{more}\n{AGENT}\n{bot}")
    code = (
        "import sys; from pathlib import Path; from gateway.config import load_config\n"
        "from gateway.app.build import build_parts\n"
        "parts = build_parts(load_config(Path(sys.argv[1]), env={}))\n"
        "def loaded(): print(*(name for name in sys.argv[2:] if name in sys.modules), sep=',')\n"
        "loaded(); [parts.model_of(agent) for agent in parts.agents.values()]; loaded()"
    )
    sdks = ["anthropic", "openai", "google.genai", "slack_sdk", "slack_bolt", "discord", "telegram", "mcp"]
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), *sdks], capture_output=True, text=True, check=True
    )
    at_start, when_asked = (set(line.split(",")) for line in done.stdout.splitlines())
    assert at_start == {"telegram"}  # a vendor's SDK takes a second to import: not before it is used
    assert when_asked == {"telegram", *own}
