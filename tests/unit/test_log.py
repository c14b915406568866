"""Case C089: no secret in any line, at any level, in messages, arguments, tracebacks or JSON."""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from collections.abc import Callable, Iterator

import httpx
import msgspec
import pytest

from gateway.log import (
    MASK,
    TALKATIVE,
    JsonFormatter,
    RedactingFilter,
    TextFormatter,
    redact,
    register_secret,
    setup_logging,
)

TOKEN = "123456789:AAH9xT-fake_Token0123456789abcdefghi"
SIGNING = "8f742231b10e8888abcd99yyyzzz85a5"


@pytest.fixture(params=[False, True], ids=["text", "json"])
def sink(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Sets logging up at DEBUG and returns what was written so far; puts everything back after."""
    stream = io.StringIO()
    root = logging.getLogger()
    before = (root.level, list(root.handlers), {name: logging.getLogger(name).level for name in TALKATIVE})
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    setup_logging("DEBUG", json=request.param, secrets=[SIGNING])
    yield stream.getvalue
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)


async def answer_404(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("forced", [False, True], ids=["levels raised", "levels forced back"])
async def test_c089_no_line_of_the_http_client_holds_the_token(sink: Callable[[], str], forced: bool) -> None:
    if forced:
        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.DEBUG)
    server = await asyncio.start_server(answer_404, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    log = logging.getLogger("test")
    async with server, httpx.AsyncClient() as client:
        for path in (f"bot{TOKEN}/getMe", f"file/bot{TOKEN}/photos/1.jpg"):
            response = await client.get(f"http://127.0.0.1:{port}/{path}")
            with pytest.raises(httpx.HTTPStatusError) as caught:
                response.raise_for_status()
            log.error("call failed: %s", caught.value, exc_info=caught.value)
            assert TOKEN not in redact(str(caught.value))
            assert "/bot<redacted>/" in redact(str(caught.value))
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError) as refused:
            await client.get(f"http://127.0.0.1:{port}/bot{TOKEN}/getUpdates")
    log.error("no connection", exc_info=refused.value)
    written = sink()
    assert TOKEN not in written
    assert TOKEN.split(":")[1] not in written
    assert "/bot<redacted>/getMe" in written
    assert ("HTTP Request" in written) is forced


def test_c089_messages_arguments_and_tracebacks_are_masked_at_every_level(sink: Callable[[], str]) -> None:
    log = logging.getLogger("test")
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        log.log(level, "in the message %s" % SIGNING)  # noqa: G002, UP031 (a careless caller)
        log.log(level, "in an argument %s and %r", SIGNING, {"secret": SIGNING})
    try:
        try:
            raise ValueError(SIGNING)
        except ValueError as error:
            raise RuntimeError(f"outer bot{TOKEN}") from error
    except RuntimeError:
        log.exception("failed", stack_info=True)
    written = sink()
    assert written.count("in the message <redacted>") == 5
    assert written.count("in an argument <redacted>") == 5
    assert "RuntimeError: outer bot<redacted>" in written
    assert "ValueError: <redacted>" in written
    assert SIGNING not in written
    assert TOKEN not in written


def test_c089_an_uncaught_exception_is_written_masked(sink: Callable[[], str]) -> None:
    error = RuntimeError(f"https://api.telegram.org/bot{TOKEN}/getMe")
    sys.excepthook(RuntimeError, error, None)
    assert "api.telegram.org/bot<redacted>/getMe" in sink()
    before = sink()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert sink() == before


def test_a_record_whose_arguments_cannot_be_formatted_is_still_written(sink: Callable[[], str]) -> None:
    class Broken:
        def __str__(self) -> str:
            raise ZeroDivisionError(SIGNING)

    logging.getLogger("test").warning("odd: %s", Broken())
    logging.getLogger("test").warning("too few %s %s", SIGNING)
    written = sink()
    assert "odd: %s (arguments not shown: ZeroDivisionError)" in written
    assert "too few %s %s (arguments not shown: TypeError)" in written
    assert SIGNING not in written


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"https://api.telegram.org/bot{TOKEN}/getMe", "https://api.telegram.org/bot<redacted>/getMe"),
        (f"/file/bot{TOKEN}/a.jpg", "/file/bot<redacted>/a.jpg"),
        (f"/bot{TOKEN.replace(':', '%3A')}/getMe", "/bot<redacted>/getMe"),
        (f"token={TOKEN}", "token=<redacted>"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer <redacted>"),
        ("{'authorization': 'Bot MTk4.Yz'}", "{'authorization': 'Bot <redacted>'}"),
        ("send bearer 0123456789abcdef now", "send bearer <redacted> now"),
        ("xoxb-12-ab xoxp-3-c xapp-1-A2-3", "<redacted> <redacted> <redacted>"),
        ("key sk-ant-api03-abcdefghijkl_-", "key <redacted>"),
        ("('x-api-key', 'k123')", "('x-api-key', '<redacted>')"),
        ("b'x-api-key', b'k123'", "b'x-api-key', b'<redacted>'"),
        ("GET /v1?key=abc&alt=sse", "GET /v1?key=<redacted>&alt=sse"),
        ("AIza" + "x" * 35, "<redacted>"),
        ("postgresql://me:hunter2@db/x", "postgresql://me:<redacted>@db/x"),
        ("a basic understanding, the bearer of news at 12:30, robot7: yes", None),
        ("session s_1 in slack:T1:C5, order A-1001, https://example.org:8080/a", None),
    ],
)
def test_texts_are_masked_by_shape_and_plain_words_stay(text: str, shown: str | None) -> None:
    assert redact(text) == (text if shown is None else shown)


def test_a_registered_secret_is_masked_in_every_spelling() -> None:
    secret = 'pa/ss "wörd"\\1+2'
    register_secret(secret)
    for spelling in (
        secret,
        "pa%2Fss%20%22w%C3%B6rd%22%5C1%2B2",
        msgspec.json.encode(secret).decode(),
        repr(secret),
    ):
        shown = redact(f"<{spelling}>")
        assert MASK in shown
        assert "rd" not in shown.replace(MASK, "")


def test_a_secret_that_begins_with_another_one_is_masked_whole() -> None:
    register_secret("alpha-beta")
    register_secret("alpha-beta-gamma")
    assert redact("alpha-beta-gamma") == MASK


def test_short_values_are_words_and_not_registered() -> None:
    register_secret("dev")
    assert redact("development") == "development"


def test_setting_up_twice_writes_each_line_once(sink: Callable[[], str]) -> None:
    first = [handler for handler in logging.getLogger().handlers if handler.filters]
    setup_logging("INFO")
    second = [handler for handler in logging.getLogger().handlers if handler.filters]
    logging.getLogger("test").info("not to the first one")
    assert (len(first), len(second)) == (1, 1)
    assert first != second
    assert sink() == ""
    assert logging.getLogger("httpx").getEffectiveLevel() == logging.WARNING


def test_a_json_line_is_one_object_with_the_traceback_in_it() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        record = logging.LogRecord(
            "a.b", logging.ERROR, "", 1, "line\n%s", ("two",), (type(error), error, None)
        )
    assert RedactingFilter().filter(record)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    decoded = msgspec.json.decode(line)
    assert (decoded["level"], decoded["logger"], decoded["message"]) == ("ERROR", "a.b", "line\ntwo")
    assert decoded["traceback"].endswith("ValueError: first\nsecond")
    assert decoded["time"].endswith("Z")
    assert "ERROR a.b: line" in TextFormatter().format(record)


def test_without_tracebacks_every_error_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, root = io.StringIO(), logging.getLogger()
    before = root.level, list(root.handlers)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    try:
        setup_logging("DEBUG", secrets=[SIGNING], tracebacks=False)
        try:
            raise ValueError(f"two\nlines, {SIGNING}")
        except ValueError:
            logging.getLogger("test").exception("it failed")
        logging.getLogger("test").warning("a stack", stack_info=True)
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
    first, second = stream.getvalue().splitlines()
    assert first.endswith(f"ERROR test: it failed: ValueError: two lines, {MASK}")
    assert second.endswith("WARNING test: a stack")
