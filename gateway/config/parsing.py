"""How single values of the configuration are read: durations, secrets, ids, addresses. Pure but for
the files that `file:PATH` names.

A parser takes what TOML gave and where it was found, and returns the value or raises Bad. A type
carries its parser: `Seconds = Annotated[float, Parser(seconds)]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import quote, unquote, urlsplit

from gateway.agent import Subagent
from gateway.config.people import check_person, check_thread
from gateway.config.problems import Bad, nearest
from gateway.events import AnyEvent
from gateway.log import redact, register_secret
from gateway.patience import Quiet, is_zone
from gateway.timetable import cron_fault
from gateway.tools.addresses import Network
from gateway.tools.ports import BUILT_IN

NAME = re.compile(r"[A-Za-z0-9_-]+")
_VARIABLE = re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+", re.ASCII)
_TOOLS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_BUILT_IN_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CLOCK_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)
_SIZES = {"b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}
_SIZE = re.compile(r"(\d{1,9})([kmg]?b)", re.ASCII | re.IGNORECASE)
_SILENCE = re.compile(r"[A-Za-z0-9_-]{4,40}", re.ASCII)
_LONGEST_SECRET_FILE = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a configuration comes from: the folder of its file, and the environment."""

    folder: Path
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Parser:
    """Marks a type with the function that reads it."""

    read: Callable[[Any, Source], Any]


class SecretText(str):
    """A secret as text. Its repr does not show it, so that a printed configuration does not either."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<secret>"


class DatabaseUrl(str):
    """`sqlite:////absolute/path` or `postgresql://...`. Its repr shows no password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(redact(str(self)))

    @property
    def path(self) -> Path | None:
        """The file of an SQLite database, else None."""
        if not self.startswith("sqlite:///"):
            return None
        return Path(unquote(self.removeprefix("sqlite:///")))


def text(raw: Any, source: Source) -> str:
    """A string that is not blank."""
    if not isinstance(raw, str):
        raise Bad(f"expected a string, got {_toml_type(raw)}")
    if not raw.strip():
        raise Bad("is empty")
    return raw


def seconds(raw: Any, source: Source) -> float:
    """`10s`, `10m`, `4h`, `3d`, also `1h30m`."""
    mend = 'write a duration above zero, such as "10s", "10m", "4h" or "3d"'
    if not isinstance(raw, str):
        raise Bad(f"expected a duration, got {_toml_type(raw)}", mend)
    if not _DURATION.fullmatch(raw):
        raise Bad(f"{raw!r} is not a duration", mend)
    total = sum(float(part[:-1]) * _UNITS[part[-1]] for part in re.findall(r"[\d.]+[smhd]", raw))
    if not 0 < total < 1e10:
        raise Bad(f"{raw!r} is out of range", mend)
    return total


def secret(raw: Any, source: Source) -> SecretText:
    """`env:NAME`, `file:PATH`, or the secret itself. The log masks it from here on."""
    value = text(raw, source).strip()
    kind, _, place = value.partition(":")
    if kind == "env":
        # What is no variable's name may be the secret itself: it is not repeated in the error.
        if not _VARIABLE.fullmatch(place):
            raise Bad("env: must be followed by the name of an environment variable")
        value = source.env.get(place, "").strip()
        if not value:
            raise Bad(
                f"the environment variable {place} is not set or empty", f"set {place}, or use file:PATH"
            )
    elif kind == "file":
        value = _secret_file(source.folder / place, place)
    register_secret(value)
    return SecretText(value)


def _secret_file(path: Path, place: str) -> str:
    try:
        if path.stat().st_size > _LONGEST_SECRET_FILE:
            raise Bad(f"the file {place} is too large for a secret", "put the secret alone into it")
        value = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise Bad(f"the file {place} cannot be read: {error.strerror}", f"looked for {path}") from error
    except UnicodeDecodeError as error:
        raise Bad(f"the file {place} is not UTF-8 text") from error
    if not value:
        raise Bad(f"the file {place} is empty", "put the secret into it")
    return value


def web_tokens(raw: Any, source: Source) -> dict[str, SecretText]:
    """One secret, known as `default`, or a table of names and secrets."""
    if not isinstance(raw, dict):
        return {"default": secret(raw, source)}
    tokens = {}
    for name, value in raw.items():
        if not NAME.fullmatch(name):
            raise Bad(f"{name!r} is not a token name", "letters, digits, _ and - only")
        try:
            tokens[name] = secret(value, source)
        except Bad as bad:
            raise Bad(f"{name}: {bad.problem}", bad.mend) from bad
    if not tokens:
        raise Bad("names no token", "leave the key out, or give a token")
    return tokens


def database(raw: Any, source: Source) -> DatabaseUrl:
    """`sqlite:///relative/to/the/config`, `sqlite:////absolute` or `postgresql://...`, also by env:/file:."""
    value = text(raw, source)
    if value.startswith(("env:", "file:")):
        value = secret(value, source)
    parts = _split(value)
    if parts.scheme == "postgresql" and parts.hostname is not None:
        if parts.password:
            register_secret(unquote(parts.password))
        return DatabaseUrl(value)
    mend = "use sqlite:///file.db, sqlite:////absolute/file.db or postgresql://user:password@host/name"
    name = unquote(value.removeprefix("sqlite:///"))
    if not value.startswith("sqlite:///") or not name or "?" in value:
        raise Bad("is not a database address that works here", mend)
    if name.endswith("/") or name == ":memory:":
        raise Bad("names no file, and what is stored must outlive the process", mend)
    return DatabaseUrl("sqlite:///" + quote(str(source.folder / name)))


def url(raw: Any, source: Source) -> str:
    """An http or https address."""
    value = text(raw, source)
    parts = _split(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or re.search(r"\s", value):
        raise Bad("is not an address", "write https://host/...")
    return value


def listen_address(raw: Any, source: Source) -> tuple[str, int]:
    """`host:port`, with an IPv6 host in brackets."""
    value = text(raw, source)
    mend = 'write "host:port", such as "127.0.0.1:8081"'
    parts = _split(f"//{value}")
    if not parts.hostname or parts.port is None or parts.netloc != value or parts.username is not None:
        raise Bad(f"{value!r} is not an address to listen on", mend)
    return parts.hostname, parts.port


def size(raw: Any, source: Source) -> int:
    """Bytes: `500kB`, `20MB`, `1GB`; also a plain number."""
    mend = 'write a size above zero, such as "500kB", "20MB" or "1GB"'
    if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0:
        return raw
    match = _SIZE.fullmatch(raw) if isinstance(raw, str) else None
    if match is None or int(match[1]) == 0:
        raise Bad(f"{raw!r} is not a size", mend)
    return int(match[1]) * _SIZES[match[2].lower()]


def webhook_secret(raw: Any, source: Source) -> SecretText:
    """A secret in the form that Telegram takes for a webhook. What it is stays unsaid."""
    value = secret(raw, source)
    if not _WEBHOOK_SECRET.fullmatch(value):
        raise Bad(
            f"has {len(value)} characters or others than A-Z a-z 0-9 _ -",
            "1 to 256 of them; `openssl rand -hex 32` makes a good one",
        )
    return value


def _split(value: str) -> Any:
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise Bad("is not an address", "write scheme://host:port/...") from error
    return parts


def folder_path(raw: Any, source: Source) -> Path:
    """A path, looked up beside the configuration file when it is relative."""
    return source.folder / Path(text(raw, source)).expanduser()


def file_path(raw: Any, source: Source) -> Path:
    """Like folder_path; the file must exist."""
    path = folder_path(raw, source)
    if not path.is_file():
        raise Bad(f"there is no file {raw}", f"looked for {path}")
    return path


def tools_reference(raw: Any, source: Source) -> str:
    """`module:attribute`, or the name of a built-in tool."""
    value = text(raw, source)
    if value in BUILT_IN:
        return value
    if _BUILT_IN_NAME.fullmatch(value):
        close = nearest(value, BUILT_IN)
        raise Bad(f"there is no built-in tool {value!r}", f'{close}; your own are "module:attribute"')
    if not _TOOLS.fullmatch(value):
        raise Bad(
            f"{value!r} does not name tools", 'write "module:attribute", such as "my_package.tools:tools"'
        )
    return value


def subagent(raw: Any, source: Source) -> Subagent:
    """The name of an agent, or a table with the tools that are left to it."""
    table = raw if isinstance(raw, dict) else {"agent": raw}
    mend = '"researcher", or { agent = "researcher", tools = ["read_*"] }'
    for key in table.keys() - {"agent", "tools"}:
        raise Bad(f"{key}: unknown key", nearest(key, ("agent", "tools")))
    if "agent" not in table:
        raise Bad("names no agent", f"write {mend}")
    tools = table.get("tools", [])
    if not isinstance(tools, list) or ("tools" in table and not tools):
        raise Bad("tools is no list of names", f"write {mend}")
    return Subagent(agent=text(table["agent"], source), only=tuple(text(glob, source) for glob in tools))


def network(raw: Any, source: Source) -> Network:
    """An address, or a network like `10.0.0.0/8`."""
    value = text(raw, source)
    try:
        return ip_network(value)
    except ValueError as error:
        mend = 'write an address like "127.0.0.1", or a network like "10.0.0.0/8"'
        raise Bad(f"{value!r} is no network: {error}", mend) from error


def text_table(raw: Any, source: Source) -> dict[str, str]:
    """Names and texts; a text may be `env:NAME` or `file:PATH` and is then a secret."""
    if not isinstance(raw, dict):
        raise Bad(f"expected a table, got {_toml_type(raw)}", 'write { NAME = "value" }')
    table = {}
    for name, value in raw.items():
        if not name.strip() or not name.isascii() or not name.isprintable() or set(name) & set("=: "):
            raise Bad(f"{name!r} is not a name")
        try:
            said = text(value, source)
            table[name] = str(secret(said, source)) if said.startswith(("env:", "file:")) else said
        except Bad as bad:
            raise Bad(f"{name}: {bad.problem}", bad.mend) from bad
        if not table[name].isprintable():
            raise Bad(f"{name}: has a line break or another sign that is not printable")
    return table


def tool_server(raw: Any, source: Source) -> tuple[str, str]:
    """A tool server, or `server/glob` for some of its tools."""
    server, slash, tools = text(raw, source).strip().partition("/")
    if not NAME.fullmatch(server) or (slash and not tools):
        raise Bad(
            f"{raw!r} does not name a tool server", 'write "files", or "db/read_*" for some of its tools'
        )
    return server, tools or "*"


def silence_token(raw: Any, source: Source) -> str:
    """A word that no answer would be."""
    value = text(raw, source).strip()
    if not _SILENCE.fullmatch(value):
        raise Bad(
            f"{value!r} cannot stand for saying nothing",
            'write one word of 4 to 40 letters, digits, _ and -, such as "NO_REPLY"',
        )
    return value


def clock_time(raw: Any, source: Source) -> str:
    """A time of day."""
    value = text(raw, source)
    if not _CLOCK_TIME.fullmatch(value):
        raise Bad(f"{value!r} is not a time of day", 'write "HH:MM", such as "08:30"')
    return value


def cron_line(raw: Any, source: Source) -> str:
    """Five fields: minute, hour, day of the month, month, day of the week."""
    value = " ".join(text(raw, source).split())
    if fault := cron_fault(value):
        raise Bad(f"{value!r}: {fault}", 'write one like "0 8 * * mon-fri"')
    return value


def time_zone(raw: Any, source: Source) -> str:
    """A name of the time zone database."""
    value = text(raw, source).strip()
    if not is_zone(value):
        raise Bad(
            f"the time zone {value!r} is not known here",
            'write one like "Europe/Berlin"; pip install tzdata adds all',
        )
    return value


def place_to_talk(raw: Any, source: Source) -> str:
    """A thread of a channel, where a session can be, or `web`."""
    value = text(raw, source)
    if value == "web":
        return value
    if value.startswith("web:"):
        raise Bad(
            "a thread of the page cannot be named", 'write "web": a conversation of its own on the page'
        )
    if value.startswith("webhook:"):
        raise Bad("an agent cannot talk to a webhook", 'name a thread, such as "slack:T1:C9", or "web"')
    return check_thread(value)


def quiet_hours(raw: Any, source: Source) -> Quiet:
    """`22:00-07:00` in UTC, or with a time zone behind it: `22:00-07:00 Europe/Berlin`."""
    span, _, zone = text(raw, source).strip().partition(" ")
    begin, dash, end = span.partition("-")
    mend = 'write "HH:MM-HH:MM", with a time zone behind it for another than UTC: "22:00-07:00 Europe/Berlin"'
    if not (dash and _CLOCK_TIME.fullmatch(begin) and _CLOCK_TIME.fullmatch(end)):
        raise Bad(f"{span!r} is not a span of the day", mend)
    if begin == end:
        raise Bad("leaves no time of the day", mend)
    if not is_zone(zone.strip()):
        raise Bad(f"the time zone {zone.strip()!r} is not known here", f"{mend}; pip install tzdata adds all")
    return Quiet(start=_minutes(begin), end=_minutes(end), zone=zone.strip())


def _minutes(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return 60 * int(hours) + int(minutes)


def event_name(raw: Any, source: Source) -> str:
    """The wire name of one kind of event."""
    value = text(raw, source)
    known = [str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)]
    if value not in known:
        raise Bad(f"there is no event {value!r}", nearest(value, known))
    return value


def person(raw: Any, source: Source) -> str:
    """Who may decide or operate, with the channel in front: `telegram:4`, `slack:T1:U2`, `cli:local`."""
    return check_person(text(raw, source))


def notified(raw: Any, source: Source) -> str:
    """A thread of a channel, or `webhook:NAME`."""
    return check_thread(text(raw, source))


def person_of(channel: str, *, everyone: bool = False) -> Callable[[Any, Source], str]:
    """The parser of an entry of one channel's `users` or `approvers`: an id without the channel.

    everyone: whether `*` is possible.
    """

    def parse(raw: Any, source: Source) -> str:
        # TOML writers leave the quotes off where an id is a number.
        value = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else text(raw, source)
        if not (everyone and value == "*"):
            check_person(f"{channel}:{value}", shown=value)
        return value

    return parse


def _toml_type(raw: Any) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(raw), "a string" if isinstance(raw, str) else "a date or time")


def shard_count(raw: Any, source: Source) -> int:
    """How many gateway connections; 0 for "auto"."""
    if raw == "auto":
        return 0
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 1:
        raise Bad(f"{raw!r} is not a number of shards", 'a number from 1, or "auto"')
    return raw


Text = Annotated[str, Parser(text)]
Seconds = Annotated[float, Parser(seconds)]
Secret = Annotated[SecretText, Parser(secret)]
WebTokens = Annotated[dict[str, SecretText], Parser(web_tokens)]
Database = Annotated[DatabaseUrl, Parser(database)]
Url = Annotated[str, Parser(url)]
FolderPath = Annotated[Path, Parser(folder_path)]
FilePath = Annotated[Path, Parser(file_path)]
ToolsReference = Annotated[str, Parser(tools_reference)]
TextTable = Annotated[dict[str, str], Parser(text_table)]
ToolServerEntry = Annotated[tuple[str, str], Parser(tool_server)]
SubagentEntry = Annotated[Subagent, Parser(subagent)]
NetworkEntry = Annotated[Network, Parser(network)]
Listen = Annotated[tuple[str, int], Parser(listen_address)]
Size = Annotated[int, Parser(size)]
WebhookSecret = Annotated[SecretText, Parser(webhook_secret)]
Shards = Annotated[int, Parser(shard_count)]
SilenceToken = Annotated[str, Parser(silence_token)]
ClockTime = Annotated[str, Parser(clock_time)]
CronLine = Annotated[str, Parser(cron_line)]
TimeZone = Annotated[str, Parser(time_zone)]
PlaceToTalk = Annotated[str, Parser(place_to_talk)]
QuietHours = Annotated[Quiet, Parser(quiet_hours)]
EventName = Annotated[str, Parser(event_name)]
Person = Annotated[str, Parser(person)]
Notified = Annotated[str, Parser(notified)]
SlackUser = Annotated[str, Parser(person_of("slack", everyone=True))]
DiscordUser = Annotated[str, Parser(person_of("discord", everyone=True))]
TelegramUser = Annotated[str, Parser(person_of("telegram", everyone=True))]
SlackPerson = Annotated[str, Parser(person_of("slack"))]
DiscordPerson = Annotated[str, Parser(person_of("discord"))]
TelegramPerson = Annotated[str, Parser(person_of("telegram"))]
WebPerson = Annotated[str, Parser(person_of("web"))]
