"""Logging that cannot tell secrets: every handler's records pass one redacting filter.

A filter on the handler sees what every library logs, formats message and traceback first, and
masks them afterwards, so a token in an argument, an address or an exception's text is caught
alike. `redact` is the same function for texts that go elsewhere (stored errors, chat, results).
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import urllib.parse
from collections.abc import Iterable
from datetime import UTC, datetime
from types import TracebackType

import msgspec

MASK = "<redacted>"
# Shorter values are words; masking them would blank out half the log and hide nothing.
SHORTEST_SECRET = 6
LONGEST_SECRET = 4_096  # characters of one that is surely found where a text is cut
# These log whole request addresses at INFO, or every statement with its values at DEBUG.
TALKATIVE = ("httpx", "httpcore", "httpx2", "httpcore2", "aiosqlite")

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"bot\d+(?::|%3[aA])[\w-]+"), f"bot{MASK}"),
    (re.compile(r"\b\d{6,}(?::|%3[aA])[\w-]{30,}"), MASK),
    (
        re.compile(r"(authorization['\"]?\s*[:=,]\s*(?:b?['\"])?(?:\w+\s+)?)[^\s'\",]+", re.IGNORECASE),
        rf"\1{MASK}",
    ),
    (
        re.compile(r"\b(bearer|basic)(\s+|%20)(?=[^\s'\",]*[\d._~+/=-])[^\s'\",]{6,}", re.IGNORECASE),
        rf"\1\2{MASK}",
    ),
    (re.compile(r"\bxox[a-z]-[\w-]+"), MASK),
    (re.compile(r"\bxapp-[\w-]+"), MASK),
    (re.compile(r"\bsk-[\w-]{16,}"), MASK),
    (re.compile(r"\bAIza[\w-]{30,}"), MASK),
    (re.compile(r"(x-api-key['\"]?\s*[:=,]\s*(?:b?['\"])?)[^\s'\",]+", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"([?&](?:access_token|api_key|key|token)=)[^&\s'\"]+", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"(\w://[^/\s:@]*:)[^@\s/]+(?=@)"), rf"\1{MASK}"),
)


class _Registry:
    """The secrets that this process has read, in every spelling in which they may turn up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spellings: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        if len(value) < SHORTEST_SECRET:
            return
        spellings = {
            value,
            urllib.parse.quote(value, safe=""),
            urllib.parse.quote(value),
            msgspec.json.encode(value).decode()[1:-1],
            repr(value)[1:-1],
        }
        with self._lock:
            self._spellings |= spellings
            # The longest first: a secret may begin with another one.
            ordered = sorted(self._spellings, key=len, reverse=True)
            self._pattern = re.compile("|".join(re.escape(spelling) for spelling in ordered))

    def mask(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._pattern else text


_REGISTRY = _Registry()


def register_secret(value: str) -> None:
    """Mask this value from now on, wherever `redact` or the log meets it.

    Values of fewer than SHORTEST_SECRET characters are not registered.
    """
    _REGISTRY.add(value)


def redact(text: str) -> str:
    """The text without secrets: those registered, and whatever has the shape of a known token."""
    for shape, mask in _SHAPES:
        text = shape.sub(mask, text)
    return _REGISTRY.mask(text)


def excerpt(text: str, most: int) -> str:
    """The beginning of a text, at most so many characters, without secrets: a cut through one hides it from
    `redact`, so the cut comes afterwards."""
    return redact(text[: most + LONGEST_SECRET])[:most]


class RedactingFilter(logging.Filter):
    """Formats a record's message, traceback and stack, and masks them in place. Lets all pass. Without
    `tracebacks` an error is told in one line."""

    def __init__(self, *, tracebacks: bool = True) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(_message(record)), None
        if not self._tracebacks:
            _in_one_line(record)
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        # A handler that formats the exception itself would read it past this filter.
        record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info)
        return True


def _in_one_line(record: logging.LogRecord) -> None:
    error = record.exc_info[1] if record.exc_info else None
    told = f"{record.msg}: {type(error).__name__}: {error}" if error is not None else record.msg
    record.msg = redact(" ".join(str(told).split()))
    record.exc_info = record.exc_text = record.stack_info = None


_FORMATTER = logging.Formatter()


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # any object may fail in its own __str__; the line must still appear
        return f"{record.msg} (arguments not shown: {type(error).__name__})"


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.123Z INFO gateway.turns: text`, a traceback on the lines below."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _timestamp(record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _timestamp(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        traceback = "\n".join(part for part in (record.exc_text, record.stack_info) if part)
        if traceback:
            line["traceback"] = traceback
        return msgspec.json.encode(line).decode()


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def setup_logging(
    level: int | str = "INFO", json: bool = False, secrets: Iterable[str] = (), *, tracebacks: bool = True
) -> None:
    """Log to standard error, redacted, as text or as JSON lines. Calling again replaces the set-up.
    Without `tracebacks` every entry is one line.

    Uncaught exceptions go the same way. Raises ValueError for a level that does not exist.
    """
    for secret in secrets:
        register_secret(secret)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if json else TextFormatter())
    handler.addFilter(RedactingFilter(tracebacks=tracebacks))
    root = logging.getLogger()
    root.setLevel(level)
    for old in list(root.handlers):
        if any(isinstance(one, RedactingFilter) for one in old.filters):
            root.removeHandler(old)
            old.close()
    root.addHandler(handler)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    sys.excepthook = _log_uncaught


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("gateway").critical("stopped by an error", exc_info=(kind, error, traceback))
