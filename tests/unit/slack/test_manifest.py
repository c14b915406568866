"""The manifest asks for what is used, and for nothing else."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from channels.slack import manifest
from channels.slack.limits import COMMANDS, EVENTS, METHODS
from channels.slack.refs import ASK_CALLBACK

SOURCES = Path(manifest.__file__).parent
METHOD = re.compile(
    r"(api|apps|assistant|auth|bots|chat|conversations|files|reactions|team|usergroups|users|views)(\.\w+)+"
)


def methods_named_in_the_code() -> set[str]:
    """Every string in the channel's code that is a Web API method, but for the table's own."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8"))
        for path in SOURCES.glob("*.py")
        if path.name != "limits.py"
    ]
    words = [n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    return {word for word in words if isinstance(word, str) and METHOD.fullmatch(word)}


def test_every_method_that_is_called_has_its_budget_and_no_other_has_one() -> None:
    assert methods_named_in_the_code() == set(METHODS)


def test_every_scope_is_needed_and_every_need_is_a_scope() -> None:
    needed = {scope for method in METHODS.values() for scope in method.scopes}
    needed |= {scope for scopes in EVENTS.values() for scope in scopes} | set(COMMANDS)
    asked = manifest.manifest("socket")["oauth_config"]["scopes"]["bot"]
    assert asked == sorted(needed)
    assert "connections:write" not in asked  # it belongs to the app token


def test_no_scope_lets_the_app_do_what_it_never_does() -> None:
    scopes = set(manifest.scopes())
    assert not scopes & {
        "admin",
        "chat:write.public",
        "chat:write.customize",
        "channels:join",
        "users:read.email",
    }


def test_over_a_socket_no_address_is_given() -> None:
    made = manifest.manifest("socket", name="Ops bot")
    assert made["settings"]["socket_mode_enabled"] is True
    assert "request_url" not in json.dumps(made)
    assert "url" not in made["features"]["slash_commands"][0]
    assert made["display_information"]["name"] == made["features"]["bot_user"]["display_name"] == "Ops bot"


@pytest.mark.parametrize("url", ["https://bot.example.com", "https://bot.example.com/slack/events/"])
def test_over_http_everything_comes_to_one_address(url: str) -> None:
    made = manifest.manifest("http", url=url)
    address = "https://bot.example.com/slack/events"
    assert made["settings"]["socket_mode_enabled"] is False
    assert made["settings"]["event_subscriptions"]["request_url"] == address
    assert made["settings"]["interactivity"] == {"is_enabled": True, "request_url": address}
    assert made["features"]["slash_commands"][0]["url"] == address


@pytest.mark.parametrize("url", ["", "http://bot.example.com", "https://", "bot.example.com"])
def test_http_without_an_https_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="public address"):
        manifest.manifest("http", url=url)


@pytest.mark.parametrize("name", ["", "  ", "x" * 36])
def test_a_name_that_slack_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="1 to 35"):
        manifest.manifest("socket", name=name)


def test_all_that_the_channel_takes_is_switched_on() -> None:
    made = manifest.manifest("socket")
    assert set(made["settings"]["event_subscriptions"]["bot_events"]) == set(EVENTS)
    assert {"app_mention", "message.channels", "message.groups", "message.im", "message.mpim"} <= set(EVENTS)
    assert made["features"]["app_home"] == {
        "home_tab_enabled": True,
        "messages_tab_enabled": True,
        "messages_tab_read_only_enabled": False,
    }
    [shortcut] = made["features"]["shortcuts"]
    assert (shortcut["type"], shortcut["callback_id"]) == ("message", ASK_CALLBACK)
    assert made["features"]["slash_commands"][0]["command"] == "/threadgate"
    assert "assistant_view" in made["features"]


def test_texts_are_within_slacks_limits() -> None:
    made = manifest.manifest("socket")
    [shortcut], [command] = made["features"]["shortcuts"], made["features"]["slash_commands"]
    assert len(made["display_information"]["description"]) <= 140
    assert 174 <= len(made["display_information"]["long_description"]) <= 4000
    assert len(shortcut["name"]) <= 24 and len(shortcut["description"]) <= 150
    assert len(command["description"]) <= 2000 and len(command["usage_hint"]) <= 1000


def test_the_text_is_the_manifest_as_json() -> None:
    assert json.loads(manifest.text("socket", name="x")) == manifest.manifest("socket", name="x")
