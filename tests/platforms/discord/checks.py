"""Messages, threads and commands as a bot sends them: what Discord takes. Pure."""

from __future__ import annotations

import re
from typing import Any

import regex

from tests.platforms.discord import limits
from tests.platforms.discord.components import check_components
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.limits import Json
from tests.platforms.discord.shapes import (
    Check,
    Path,
    Report,
    address,
    anything,
    flag,
    flake,
    integer,
    many,
    nullable,
    number,
    one_of,
    shape,
    string,
)

# ---- messages

MEDIA = shape({"url": address}, dict.fromkeys(("proxy_url", "height", "width", "flags"), anything))
EMBED = shape(
    {},
    {
        "title": string(limits.EMBED["title"]),
        "type": string(20),
        "description": string(limits.EMBED["description"]),
        "url": address,
        "timestamp": string(64),
        "color": nullable(integer(0, 0xFFFFFF)),
        "footer": shape(
            {"text": string(limits.EMBED["footer"])}, {"icon_url": address, "proxy_icon_url": anything}
        ),
        "image": MEDIA,
        "thumbnail": MEDIA,
        "author": shape(
            {"name": string(limits.EMBED["author"])},
            {"url": address, "icon_url": address, "proxy_icon_url": anything},
        ),
        "fields": many(
            shape(
                {"name": string(limits.EMBED_FIELD_NAME), "value": string(limits.EMBED_FIELD_VALUE)},
                {"inline": flag},
            ),
            limits.EMBED_FIELDS,
        ),
        "flags": anything,
    },
)
MENTIONS = shape(
    {},
    {
        "parse": many(one_of("users", "roles", "everyone"), 3),
        "users": many(flake, limits.MENTIONS),
        "roles": many(flake, limits.MENTIONS),
        "replied_user": flag,
    },
)
REFERENCE = shape(
    {"message_id": flake},
    {"channel_id": flake, "guild_id": flake, "type": integer(0, 1), "fail_if_not_exists": flag},
)
ATTACHMENT = shape(
    {"id": anything},
    {
        "filename": string(limits.FILE_NAME),
        "description": nullable(string(limits.FILE_DESCRIPTION)),
        "title": anything,
    }
    | dict.fromkeys(
        # what an attachment that is kept may come back with
        ("size", "url", "proxy_url", "content_type", "height", "width", "spoiler", "ephemeral", "flags"),
        anything,
    ),
)
MESSAGE: dict[str, Check] = {
    "content": nullable(string(limits.CONTENT, 0)),
    "tts": flag,
    "embeds": nullable(many(EMBED, limits.EMBEDS)),
    "allowed_mentions": nullable(MENTIONS),
    "components": nullable(anything),
    "flags": nullable(integer(0, 2**31 - 1)),
    "attachments": nullable(many(ATTACHMENT, limits.FILES)),
}
CREATED: dict[str, Check] = {
    "nonce": nullable(anything),
    "enforce_nonce": flag,
    "message_reference": nullable(REFERENCE),
    "sticker_ids": many(flake, 3, 0),
}


def check_message(body: Any, *, v2: bool = False, created: bool = True, at: Path = ()) -> Report:
    """A message's payload. `v2`: the message that is edited is one of components. Raises Refused."""
    report = Report()
    shape({}, MESSAGE | (CREATED if created else {}))(body, at, report)
    if isinstance(body, dict):
        _embeds(body, at, report)
        _nonce(body, at, report)
        flags = body.get("flags") if isinstance(body.get("flags"), int) else 0
        v2 = v2 or bool((flags or 0) & limits.V2)
        if body.get("components"):
            check_components(body["components"], report, v2=v2, at=at)
        if v2:
            _alone(body, at, report)
        unsendable = (flags or 0) & ~limits.SENDABLE_FLAGS
        if unsendable & ~(limits.HAS_THREAD | limits.LOADING):
            report.error("MESSAGE_FLAGS_INVALID", f"{unsendable} cannot be set", (*at, "flags"))
    report.settle()
    return report


def _embeds(body: Json, at: Path, report: Report) -> None:
    total = 0
    for embed in body.get("embeds") or []:
        if isinstance(embed, dict):
            total += sum(len(str(embed.get(name) or "")) for name in ("title", "description"))
            total += len(str((embed.get("footer") or {}).get("text") or ""))
            total += len(str((embed.get("author") or {}).get("name") or ""))
            for entry in embed.get("fields") or []:
                total += len(str(entry.get("name", ""))) + len(str(entry.get("value", "")))
    if total > limits.EMBEDS_SUM:
        words = f"Embeds size exceeds maximum size of {limits.EMBEDS_SUM}"
        report.error("MAX_EMBED_SIZE_EXCEEDED", words, (*at, "embeds"))


def _nonce(body: Json, at: Path, report: Report) -> None:
    nonce = body.get("nonce")
    if nonce is not None and (not isinstance(nonce, int | str) or len(str(nonce)) > limits.NONCE):
        report.error("BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.", (*at, "nonce"))
    if body.get("enforce_nonce") and nonce in (None, ""):
        report.error("BASE_TYPE_REQUIRED", "enforce_nonce needs a nonce", (*at, "nonce"))


def _alone(body: Json, at: Path, report: Report) -> None:
    """Nothing else beside the second generation of components."""
    for name in ("content", "embeds", "sticker_ids", "poll"):
        if body.get(name):
            words = f"The '{name}' field cannot be used when using MessageFlags.IS_COMPONENTS_V2"
            report.error("MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", words, (*at, name))


def check_shape(body: Any, needed: dict[str, Check], optional: dict[str, Check] | None = None) -> Report:
    """Any small object. Raises Refused."""
    report = Report()
    shape(needed, optional)(body, (), report)
    report.settle()
    return report


# ---- threads

THREAD: dict[str, Check] = {
    "auto_archive_duration": nullable(one_of(*limits.ARCHIVE_MINUTES)),
    "rate_limit_per_user": nullable(integer(0, 21_600)),
}
THREAD_NAME = string(limits.THREAD_NAME)


def check_thread(body: Any, *, forum: bool = False, of_message: bool = False) -> Report:
    """A thread to be opened. Raises Refused."""
    optional = dict(THREAD)
    needed: dict[str, Check] = {"name": THREAD_NAME}
    if forum:
        needed["message"] = anything
        optional["applied_tags"] = many(flake, limits.TAGS)
    elif not of_message:
        optional |= {"type": one_of(*limits.THREADS), "invitable": nullable(flag)}
    report = check_shape(body, needed, optional)
    if forum:
        inner = check_message(body["message"], at=("message",))
        report.unknown += inner.unknown
        report.attachments |= inner.attachments
    return report


# ---- commands

NAME = regex.compile(r"[-_'\p{L}\p{N}\p{sc=Devanagari}\p{sc=Thai}]{1,32}")
LOCALES = nullable(anything)
CHOICE = shape({"name": string(limits.CHOICE), "value": anything}, {"name_localizations": LOCALES})


def _name(value: Any, at: Path, report: Report) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value) or value != value.lower():
        report.error("APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid", at)


def _option(value: Any, at: Path, report: Report) -> None:
    shape(
        {
            "type": integer(1, 11),
            "name": _name,
            "description": string(limits.COMMAND_DESCRIPTION),
        },
        {
            "name_localizations": LOCALES,
            "description_localizations": LOCALES,
            "required": flag,
            "choices": many(CHOICE, limits.CHOICES),
            "options": many(_option, limits.COMMAND_OPTIONS),
            "channel_types": many(integer(0, 16), 20),
            "min_value": number,
            "max_value": number,
            "min_length": integer(0, 6_000),
            "max_length": integer(1, 6_000),
            "autocomplete": flag,
        },
    )(value, at, report)
    if isinstance(value, dict):
        if value.get("autocomplete") and value.get("choices"):
            words = "Autocomplete cannot be used with choices"
            report.error("APPLICATION_COMMAND_AUTOCOMPLETE_CHOICES", words, (*at, "autocomplete"))
        _order(value, at, report)


def _order(value: Json, at: Path, report: Report) -> None:
    """Options that are required come first; names differ."""
    seen: set[str] = set()
    optional = False
    for place, option in enumerate(o for o in value.get("options") or [] if isinstance(o, dict)):
        where = (*at, "options", place)
        if option.get("required") and optional:
            words = "Required options must be placed before non-required options"
            report.error("APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", words, where)
        optional = optional or not option.get("required", False)
        if str(option.get("name")) in seen:
            report.error("APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS", "Option names differ", where)
        seen.add(str(option.get("name")))


def _command(value: Any, at: Path, report: Report) -> None:
    slash = not isinstance(value, dict) or value.get("type", 1) == 1
    needed: dict[str, Check] = {"name": _name if slash else string(limits.COMMAND_NAME)}
    if slash:
        needed["description"] = string(limits.COMMAND_DESCRIPTION)
    optional: dict[str, Check] = {
        "description": string(limits.COMMAND_DESCRIPTION, 1) if slash else one_of("", None),
        "id": flake,
        "type": integer(1, 4),
        "name_localizations": LOCALES,
        "description_localizations": LOCALES,
        "options": many(_option, limits.COMMAND_OPTIONS if slash else 0),
        "default_member_permissions": nullable(string(20)),
        "dm_permission": nullable(flag),
        "default_permission": nullable(flag),
        "integration_types": nullable(many(integer(0, 1), 2, 1)),
        "contexts": nullable(many(integer(0, 2), 3, 1)),
        "nsfw": flag,
        "handler": anything,
    }
    shape(needed, optional | needed)(value, at, report)
    if isinstance(value, dict):
        _order(value, at, report)
        if characters(value) > limits.COMMAND_CHARACTERS:
            words = f"A command may have {limits.COMMAND_CHARACTERS} characters, not {characters(value)}"
            report.error("APPLICATION_COMMAND_TOO_LARGE", words, at)


def characters(command: Json) -> int:
    """Names, descriptions and values of a command or option, all together."""
    total = len(str(command.get("name") or "")) + len(str(command.get("description") or ""))
    total += sum(len(str(c.get("name"))) + len(str(c.get("value"))) for c in command.get("choices") or [])
    return total + sum(characters(option) for option in command.get("options") or [])


def check_commands(body: Any) -> Report:
    """All commands of one scope, as bulk overwrite takes them. Raises Refused."""
    report = Report()
    many(_command, limits.COMMANDS + 2 * limits.CONTEXT_COMMANDS)(body, (), report)
    seen: set[tuple[int, str]] = set()
    commands = [c for c in body if isinstance(c, dict)] if isinstance(body, list) else []
    for place, command in enumerate(commands):
        key = (command.get("type") or 1, str(command.get("name")))
        if key in seen:
            words = "Application command names must be unique"
            report.error("APPLICATION_COMMANDS_DUPLICATE_NAME", words, (place,))
        seen.add(key)
    for kind, most in ((1, limits.COMMANDS), (2, limits.CONTEXT_COMMANDS), (3, limits.CONTEXT_COMMANDS)):
        if sum(1 for found, _ in seen if found == kind) > most:
            raise Refused(30032, 400, more={"message": f"Maximum number of application commands ({most})"})
    report.settle()
    return report


def check_choices(data: Any, report: Report) -> None:
    """The answer to an autocomplete."""
    shape({"choices": many(CHOICE, limits.CHOICES)})(data, ("data",), report)


# ---- words that mention

MENTION = re.compile(r"<@!?(\d{15,20})>|<@&(\d{15,20})>|@(everyone|here)")


def mentioned(text: str) -> list[str]:
    """Whom a text names: user ids, `&` and a role id, `everyone`, `here`; in order, each once. Also within
    code, where clients would not make a mention of it."""
    found = [f"&{m[2]}" if m[2] else m[1] or m[3] for m in MENTION.finditer(text)]
    return list(dict.fromkeys(found))


def paged(names: list[str], allowed: Json | None, replied: str = "") -> list[str]:
    """Whom a bot's message notifies, of those that it names. `allowed`: its allowed_mentions."""
    if allowed is None:
        return names + ([replied] if replied and replied not in names else [])
    parse = allowed.get("parse") or []
    users, roles = (list(map(str, allowed.get(kind) or [])) for kind in ("users", "roles"))
    reached = []
    for name in names:
        if name in ("everyone", "here"):
            live = "everyone" in parse
        elif name.startswith("&"):
            live = "roles" in parse or name[1:] in roles
        else:
            live = "users" in parse or name in users
        if live:
            reached.append(name)
    if replied and allowed.get("replied_user") and replied not in reached:
        reached.append(replied)
    return reached


def check_mentions(allowed: Json | None) -> None:
    """`parse` and a list of ids of the same kind exclude one another. Raises Refused."""
    report = Report()
    for kind in ("users", "roles"):
        if kind in ((allowed or {}).get("parse") or []) and (allowed or {}).get(kind):
            words = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
            report.error("MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", words, ("allowed_mentions",))
    report.settle()
