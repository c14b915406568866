"""The app manifest: everything that Slack must know of the app, for the transport that is used. Pure."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from channels.slack.limits import COMMANDS, EVENTS, METHODS
from channels.slack.refs import ASK_CALLBACK

Json = dict[str, Any]
Transport = Literal["socket", "http"]

PATH: Final = "/slack/events"  # where Slack posts everything over HTTP
COMMAND: Final = "/threadgate"
USAGE: Final = (
    "new | stop | status | pending | grants | schedules | memory | approve CODE | deny CODE [why] | model"
    " | agent | help"
)
DESCRIPTION: Final = "An agent in your threads that asks before it acts."
LONG_DESCRIPTION: Final = (
    "Mention the app in a thread, or write to it directly, and its agent works on what you ask. When a step "
    "needs permission, or the agent needs an answer, a card with buttons appears in the thread or in the "
    "approvers' channel. A decision goes on exactly where the work stopped, hours or days later too."
)
_NAME, _SHORTCUT = 35, 24  # characters


def manifest(transport: Transport, *, name: str = "Threadgate", url: str = "") -> Json:
    """The manifest as a JSON value.

    name: the app's and its bot's, 1 to 35 characters. url: where Slack reaches us over HTTP, with or
    without the path /slack/events; not needed for Socket Mode. Raises ValueError for a name of another
    length and for HTTP without an https address.
    """
    if not 1 <= len(name.strip()) <= _NAME:
        raise ValueError(f"the app's name must have 1 to {_NAME} characters: {name!r}")
    address = _address(url) if transport == "http" else ""
    return {
        "display_information": {
            "name": name.strip(),
            "description": DESCRIPTION,
            "long_description": LONG_DESCRIPTION,
            "background_color": "#1f2a37",
        },
        "features": _features(name.strip(), address),
        "oauth_config": {"scopes": {"bot": scopes()}},
        "settings": _settings(address),
    }


def text(transport: Transport, *, name: str = "Threadgate", url: str = "") -> str:
    """The manifest as JSON, ready to be pasted where Slack asks for one."""
    return json.dumps(manifest(transport, name=name, url=url), indent=2) + "\n"


def scopes() -> list[str]:
    """What the bot token must be allowed: what our calls, events and commands need, and no more."""
    wanted = {scope for method in METHODS.values() for scope in method.scopes}
    wanted |= {scope for needed in EVENTS.values() for scope in needed}
    return sorted(wanted | set(COMMANDS))


def _address(url: str) -> str:
    base = url.strip().rstrip("/").removesuffix(PATH)
    if not base.startswith("https://") or len(base) <= len("https://"):
        raise ValueError("HTTP needs the public address of this gateway, as in https://bot.example.com")
    return base + PATH


def _features(name: str, address: str) -> Json:
    command: Json = {
        "command": COMMAND,
        "description": "New session, status, open requests, decisions",
        "usage_hint": USAGE,
        "should_escape": False,
    }
    return {
        "app_home": {
            "home_tab_enabled": True,
            "messages_tab_enabled": True,
            "messages_tab_read_only_enabled": False,
        },
        "bot_user": {"display_name": name, "always_online": True},
        "assistant_view": {"assistant_description": DESCRIPTION},
        "slash_commands": [command | ({"url": address} if address else {})],
        "shortcuts": [
            {
                "name": "Ask the agent about this"[:_SHORTCUT],
                "type": "message",
                "callback_id": ASK_CALLBACK,
                "description": "Start the agent in this message's thread",
            }
        ],
    }


def _settings(address: str) -> Json:
    at: Json = {"request_url": address} if address else {}
    return {
        "event_subscriptions": {**at, "bot_events": sorted(EVENTS)},
        "interactivity": {"is_enabled": True, **at},
        "org_deploy_enabled": False,
        "socket_mode_enabled": not address,
        "token_rotation_enabled": False,
    }
