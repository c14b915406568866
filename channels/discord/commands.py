"""The slash commands and the message command, as Discord is told of them, and their suggestions. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from channels.base import Card
from channels.discord.components import Json
from channels.discord.limits import CHOICE, CHOICES
from channels.render.inert import flat
from channels.render.measure import cut, utf16_len

ASK: Final = "ask"
ASK_ABOUT: Final = "Ask the agent about this"  # the message command

Kind = Literal["code", "agent", "model"]
"""The names of the options that make suggestions, and what they suggest."""

_CHAT_INPUT, _MESSAGE = 1, 3
_STRING, _ATTACHMENT = 3, 11
_PROMPT: Final = 6000  # characters: the most that an option takes
_WHY: Final = 1000
_CONTEXTS: Final = [0, 1]  # servers, and direct messages with the bot
_INSTALLS: Final = [0]  # into servers; nobody takes the bot along into other conversations


def definitions(
    agents: Sequence[str] = (), models: Sequence[str] = (), *, in_guild: bool = False
) -> list[Json]:
    """All application commands, for `PUT /applications/{id}/commands`.

    agents, models: the names that can be asked for. An option to choose one exists only where there are
    several. in_guild: for one server alone, `PUT /applications/{id}/guilds/{id}/commands`, where Discord
    knows no contexts.
    """
    agent = [_option("agent", "Which agent", suggests=True)] if len(agents) > 1 else []
    model = [_option("model", "Which model", suggests=True)] if len(models) > 1 else []
    code = _option("code", "The code on the card", required=True, suggests=True)
    why = _option("why", "What should be done instead", longest=_WHY)
    which = _option(
        "what", "mine, all, show CODE, cancel CODE, or give CODE and whom; empty: here", longest=_WHY
    )
    taken = _option("what", "revoke CODE takes one back; empty: lists them", longest=_WHY)
    planned = _option("what", "all, or cancel CODE; empty: here", longest=_WHY)
    noted = _option("what", "forget KEY, forget all, or forget thread; empty: shows it", longest=_WHY)
    prompt = _option("prompt", "What the agent should do", required=True, longest=_PROMPT)
    file = _option("attachment", "A file for the agent", kind=_ATTACHMENT)
    commands = [
        _command(ASK, "Ask the agent", prompt, file, *agent),
        _command("new", "Start a fresh conversation here"),
        _command("stop", "Stop what the agent is doing and close what is waiting"),
        _command("status", "What the agent is doing"),
        _command("pending", "What waits for somebody's decision", which),
        _command("grants", "What is not asked about any more", taken),
        _command("schedules", "What the agent is to do here later, or again and again", planned),
        _command("memory", "What is noted about you and here", noted),
        _command("approve", "Say yes to a request", code),
        _command("deny", "Say no to a request", code, why),
        _command("model", "Which model answers here", *model),
        _command("agent", "Which agent answers here, or another one from now on", *agent),
        _command("help", "What you can do here"),
        {"type": _MESSAGE, "name": ASK_ABOUT},
    ]
    where: Json = {} if in_guild else {"contexts": _CONTEXTS, "integration_types": _INSTALLS}
    return [command | where for command in commands]


def digest(commands: Sequence[Mapping[str, Any]]) -> str:
    """A hash of what people see of these commands: equal for `definitions` and for what Discord says is
    registered when nothing has to be sent. commands: definitions, or untrusted values of the API."""
    known = sorted((_normal(command) for command in commands), key=lambda c: (str(c["type"]), str(c["name"])))
    text = json.dumps(known, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def autocomplete(
    kind: Kind,
    typed: str,
    cards: Sequence[Card] = (),
    agents: Sequence[str] = (),
    models: Sequence[str] = (),
) -> list[Json]:
    """At most 25 suggestions for what has been typed: `name`, `value`. What begins with it comes first.

    cards: the open ones that the person may decide; only requests have codes to approve or deny, and each
    call of a card with several has its own.
    """
    requests = [call for card in cards for call in (card.calls or (card,))]
    offered = {
        "code": [
            (card.code, f"{card.code} – {card.title} {card.summary}")
            for card in requests
            if card.kind == "approval" and card.state == "open" and card.code
        ],
        "agent": [(name, name) for name in agents],
        "model": [(name, name) for name in models],
    }[kind]
    sought = typed.strip().casefold()
    found = {
        value: name
        for value, name in offered
        if sought in name.casefold() and value.strip() and utf16_len(value) <= CHOICE
    }
    first = sorted(found, key=lambda value: not value.casefold().startswith(sought))
    return [{"name": cut(flat(found[value]), CHOICE), "value": value} for value in first[:CHOICES]]


# ---- definitions


def _command(name: str, description: str, *options: Json) -> Json:
    return {"type": _CHAT_INPUT, "name": name, "description": description, "options": list(options)}


def _option(
    name: str,
    description: str,
    *,
    kind: int = _STRING,
    required: bool = False,
    suggests: bool = False,
    longest: int = 0,
) -> Json:
    option: Json = {"type": kind, "name": name, "description": description, "required": required}
    if suggests:
        option["autocomplete"] = True
    return option | ({"max_length": longest} if longest else {})


def _normal(command: Mapping[str, Any]) -> Json:
    """What matters of a command; Discord adds ids and versions, and leaves out what is as usual."""
    options = command.get("options")
    return {
        "type": command.get("type") or _CHAT_INPUT,
        "name": command.get("name"),
        "description": command.get("description") or "",
        "options": [_normal_option(option) for option in options or () if isinstance(option, Mapping)],
        "contexts": _numbers(command.get("contexts")),
        "integration_types": _numbers(command.get("integration_types")),
        "permissions": command.get("default_member_permissions"),
        "nsfw": bool(command.get("nsfw")),
    }


def _normal_option(option: Mapping[str, Any]) -> Json:
    return {
        "type": option.get("type"),
        "name": option.get("name"),
        "description": option.get("description") or "",
        "required": bool(option.get("required")),
        "autocomplete": bool(option.get("autocomplete")),
        "max_length": option.get("max_length"),
        "choices": option.get("choices") or [],
    }


def _numbers(value: object) -> list[int]:
    return sorted(n for n in value if isinstance(n, int)) if isinstance(value, list) else []
