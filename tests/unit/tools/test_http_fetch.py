"""http_fetch against real servers on loopback, under names that a table resolves."""

from __future__ import annotations

import asyncio
import gzip
import os
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import ToolError
from gateway.tools.base import CallContext, Tool, ToolOutput
from gateway.tools.http_fetch import Fetcher, http_fetch_tool, look_up

CONTEXT = CallContext(call_id="c1", session_id="s1", turn_id="s1.1", idempotency_key="s1:c1")
LOOPBACK = (ip_network("127.0.0.1"),)
PATIENCE = 15.0


@dataclass
class Site:
    """A server on loopback: answers by path, and remembers what it was asked. `held`: no answer."""

    port: int = 0
    answers: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    connections: int = 0
    closed: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *rest = head.split("\r\n")
            headers = {n.lower(): v.strip() for n, _, v in (h.partition(":") for h in rest if h)}
            self.asked.append((line, headers))
            path = line.split()[1]
            if path == "/hold":
                await self.hold.wait()
            writer.write(
                self.answers.get(path.partition("?")[0], reply(b"nothing here", status="404 Not Found"))
            )
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.closed += 1


def reply(body: bytes = b"", *headers: str, status: str = "200 OK", kind: str = "text/plain") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    lines += [f"content-type: {kind}"] if kind else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def moved(to: str, status: str = "302 Found") -> bytes:
    return reply(b"", f"location: {to}", status=status)


@asynccontextmanager
async def site(tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    made = Site()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        made.hold.set()
        server.close()
        await server.wait_closed()


@pytest.fixture
async def web() -> AsyncIterator[Site]:
    async with site() as made:
        yield made


class Names:
    """A resolver: each look-up of a name takes the next answer of its list, the last one for ever."""

    def __init__(self, **table: Sequence[Sequence[str]]) -> None:
        self._table = {name.replace("_", "."): list(answers) for name, answers in table.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._table:
            return await look_up(host, port)
        answers = self._table[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]


def fetch_tool(**changes: Any) -> Tool:
    return http_fetch_tool(Fetcher(**{"allow": LOOPBACK, **changes}))


async def fetch(url: str, made: Tool | None = None, **args: Any) -> ToolOutput:
    async with asyncio.timeout(PATIENCE):
        outcome = await (made or fetch_tool()).handler({"url": url, **args}, CONTEXT)
    assert isinstance(outcome, ToolOutput)
    return outcome


async def refused(url: str, made: Tool | None = None, **args: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await fetch(url, made, **args)
    return str(caught.value)


def test_the_tool_is_safe_and_described() -> None:
    made = fetch_tool()
    assert made.safe and made.name == "http_fetch"
    assert made.problems({"url": "https://x", "method": "POST"})
    assert made.problems({"url": ""})
    assert not made.problems({"url": "https://x", "headers": None})


# ---- reading


async def test_html_comes_back_as_readable_text(web: Site) -> None:
    page = b"<title>Prices</title><script>steal()</script><style>p{}</style><h1>All</h1><p>Tea <b>4</b></p>"
    web.answers["/p"] = reply(page, kind="text/html; charset=utf-8")
    text = (await fetch(f"http://127.0.0.1:{web.port}/p")).text
    assert text.startswith(f"200 OK\nhttp://127.0.0.1:{web.port}/p\ntext/html, ")
    assert "Title: Prices" in text and "# All" in text and "Tea **4**" in text
    assert "steal" not in text and "p{}" not in text


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b'{"a": [1, 2]}', "application/json", '{"a": [1, 2]}'),
        (b'{"a": 1}', "application/problem+json", '{"a": 1}'),
        ("größe".encode("latin-1"), "text/plain; charset=iso-8859-1", "größe"),
        ("größe".encode(), "", "größe"),
        (b"a: 1", "application/yaml", "a: 1"),
        (b"ok \xff", "text/plain; charset=no-such", "ok \ufffd"),
        (b"ok", "text/plain; charset=base64", "ok"),
    ],
)
async def test_other_text_comes_back_as_it_is(web: Site, body: bytes, kind: str, expected: str) -> None:
    web.answers["/t"] = reply(body, kind=kind)
    output = await fetch(f"http://127.0.0.1:{web.port}/t")
    assert output.text.endswith(f"\n\n{expected}") and not output.is_error


@pytest.mark.parametrize(
    ("body", "kind"), [(b"\x89PNG\0", "image/png"), (b"a\0b", ""), (b"x", "application/pdf")]
)
async def test_binary_is_not_shown_but_named_with_size_and_type(web: Site, body: bytes, kind: str) -> None:
    web.answers["/b"] = reply(body, kind=kind)
    output = await fetch(f"http://127.0.0.1:{web.port}/b")
    assert output.is_error
    assert f"{kind or 'unknown content'}, {len(body)} bytes, is not text" in output.text


async def test_head_shows_what_is_there_and_an_error_page_is_an_error(web: Site) -> None:
    web.answers["/h"] = reply(b"", 'etag: "1"', "set-cookie: secret=1", kind="image/png")
    head = await fetch(f"http://127.0.0.1:{web.port}/h", method="HEAD")
    assert web.asked[0][0].startswith("HEAD /h")
    assert 'etag: "1"' in head.text and "content-type: image/png" in head.text
    assert "secret" not in head.text
    missing = await fetch(f"http://127.0.0.1:{web.port}/none")
    assert missing.is_error and missing.text.startswith("404 Not Found") and "nothing here" in missing.text


async def test_only_headers_without_rights_are_sent(web: Site) -> None:
    web.answers["/t"] = reply(b"ok")
    address = f"http://127.0.0.1:{web.port}/t"
    await fetch(address, headers={"Accept-Language": "de"})
    assert web.asked[0][1]["accept-language"] == "de"
    assert web.asked[0][1]["host"] == f"127.0.0.1:{web.port}"
    for name in ("Authorization", "Cookie", "Host", "X-Forwarded-For", "Accept-Encoding", "Connection"):
        assert "may not be sent" in await refused(address, headers={name: "x"})
    assert "cannot be sent" in await refused(address, headers={"Accept": "a\r\nX: b"})
    assert len(web.asked) == 1


# ---- where to


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1:{port}/t", "http://localhost:{port}/t", "http://[::1]:{port}/t"),
        *("http://2130706433:{port}/t", "http://0x7f.1:{port}/t", "http://127.1:{port}/t"),
        *("http://[::ffff:127.0.0.1]:{port}/t", "http://0.0.0.0:{port}/t", "http://inner.test:{port}/t"),
        *("http://mixed.test:{port}/t", "http://169.254.169.254/latest/meta-data/"),
    ],
)
async def test_what_is_not_public_is_not_reached(web: Site, url: str) -> None:
    names = Names(inner_test=[["10.0.0.8"]], mixed_test=[["93.184.216.34", "127.0.0.1"]])
    made = http_fetch_tool(Fetcher(resolve=names))
    told = await refused(url.format(port=web.port), made)
    assert "not on the public internet" in told
    assert web.connections == 0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        *[
            (url, "only http:// and https://")
            for url in ("ftp://x/", "file:///etc/passwd", "//x", "x", "http://")
        ],
        ("http://user:hunter2@127.0.0.1/", "name or password"),
        ("http://user@127.0.0.1/", "name or password"),
        ("http://127.0.0.1:99999/", "port that does not exist"),
        ("http://no-such-host.invalid/", "no host 'no-such-host.invalid'"),
        (f"http://{'a' * 64}.test/", "no host"),
        ("http://ⓔxample.com/", "no address"),
    ],
)
async def test_an_address_that_cannot_be_read_is_told_so(url: str, told: str) -> None:
    text = await refused(url, fetch_tool(resolve=Names(**{"no-such-host_invalid": [[]]})))
    assert told in text
    assert "hunter2" not in text


async def test_a_name_is_looked_up_once_and_the_checked_address_is_the_one_that_is_used(web: Site) -> None:
    web.answers["/t"] = reply(b"pinned")
    rebinding = Names(shop_test=[["127.0.0.1"], ["10.0.0.1"]])
    output = await fetch(f"http://shop.test:{web.port}/t", fetch_tool(resolve=rebinding))
    assert output.text.endswith("pinned")
    assert rebinding.asked == ["shop.test"]
    assert web.asked[0][1]["host"] == f"shop.test:{web.port}"


async def test_the_next_address_of_a_name_is_tried_when_one_does_not_answer(web: Site) -> None:
    web.answers["/t"] = reply(b"second")
    names = Names(shop_test=[["127.0.0.2", "127.0.0.1"]])
    made = fetch_tool(resolve=names, allow=(ip_network("127.0.0.0/8"),))
    assert (await fetch(f"http://shop.test:{web.port}/t", made)).text.endswith("second")


async def test_a_redirect_is_followed_and_checked_like_a_first_address(web: Site) -> None:
    web.answers |= {
        "/a": moved("/b"),
        "/b": moved(f"http://127.0.0.1:{web.port}/c", "308 Permanent Redirect"),
        "/c": reply(b"here"),
        "/inner": moved(f"http://inner.test:{web.port}/c"),
        "/scheme": moved("file:///etc/passwd"),
        "/login": moved(f"http://a:b@127.0.0.1:{web.port}/c"),
        "/round": moved("/round"),
    }
    names = Names(inner_test=[["10.0.0.8"]])
    made, base = fetch_tool(resolve=names), f"http://127.0.0.1:{web.port}"
    assert (await fetch(f"{base}/a", made)).text.splitlines()[1] == f"{base}/c"
    assert "not on the public internet" in await refused(f"{base}/inner", made)
    assert "only http:// and https://" in await refused(f"{base}/scheme", made)
    assert "name or password" in await refused(f"{base}/login", made)
    assert "more than 5 redirects" in await refused(f"{base}/round", made)


async def test_a_name_that_leads_elsewhere_after_a_redirect_is_checked_again(web: Site) -> None:
    web.answers["/t"] = moved("/t2")
    names = Names(shop_test=[["127.0.0.1"], ["10.0.0.1"]])
    told = await refused(f"http://shop.test:{web.port}/t", fetch_tool(resolve=names))
    assert "not on the public internet" in told and names.asked == ["shop.test", "shop.test"]


async def test_proxies_of_the_environment_are_not_used(web: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    web.answers["/t"] = reply(b"direct")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await fetch(f"http://127.0.0.1:{web.port}/t")).text.endswith("direct")


# ---- how much and how long


@pytest.mark.parametrize("coding", ["gzip", "deflate", "x-gzip", "identity"])
async def test_a_packed_page_is_unpacked(web: Site, coding: str) -> None:
    body = b"tea " * 5_000
    packed = body if coding == "identity" else gzip.compress(body)
    packed = zlib.compress(body) if coding == "deflate" else packed
    web.answers["/z"] = reply(packed, f"content-encoding: {coding}")
    assert (await fetch(f"http://127.0.0.1:{web.port}/z")).text.endswith(body.decode())


async def test_a_page_that_grows_when_it_is_unpacked_is_given_up_early(web: Site) -> None:
    web.answers["/bomb"] = reply(gzip.compress(bytes(80_000_000), 9), "content-encoding: gzip")
    web.answers["/long"] = reply(b"x" * 2_000_001)
    web.answers["/most"] = reply(b"x" * 2_000_000)
    base = f"http://127.0.0.1:{web.port}"
    assert "more than 2,000,000 bytes" in await refused(f"{base}/bomb")
    assert "more than 2,000,000 bytes" in await refused(f"{base}/long")
    assert not (await fetch(f"{base}/most")).is_error


async def test_a_coding_that_was_not_asked_for_and_damage_are_told(web: Site) -> None:
    base = f"http://127.0.0.1:{web.port}"
    web.answers["/br"] = reply(b"x", "content-encoding: br")
    web.answers["/twice"] = reply(b"x", "content-encoding: gzip, gzip")
    web.answers["/bad"] = reply(b"no gzip", "content-encoding: gzip")
    web.answers["/cut"] = reply(b"x" * 10).replace(b"content-length: 10", b"content-length: 99")
    assert "not read here" in await refused(f"{base}/br")
    assert "not read here" in await refused(f"{base}/twice")
    assert "damaged" in await refused(f"{base}/bad")
    assert "could not be read" in await refused(f"{base}/cut")


async def test_a_server_that_does_not_answer_is_given_up_and_no_connection_is_left(web: Site) -> None:
    told = await refused(f"http://127.0.0.1:{web.port}/hold", fetch_tool(seconds=0.2))
    assert "no answer within 0.2 s" in told
    web.hold.set()
    web.answers["/t"] = reply(b"ok")
    await fetch(f"http://127.0.0.1:{web.port}/t")
    assert web.connections == 2


async def test_nobody_listening_is_told(web: Site) -> None:
    async with site() as gone:
        port = gone.port
    told = await refused(f"http://127.0.0.1:{port}/?token=secret-in-query")
    assert "no connection to http://127.0.0.1" in told and "secret-in-query" not in told


# ---- TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for shop.test, which is its own authority."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=shop.test -addext"
    names = ["subjectAltName=DNS:shop.test", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(
        [*command.split(), *names], cwd=folder, check=True, capture_output=True, env=dict(os.environ)
    )
    return folder


Check = Callable[[], Awaitable[None]]


async def test_the_name_is_verified_although_the_connection_goes_to_an_address(authority: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    asked: list[str | None] = []
    context.sni_callback = lambda sock, name, ctx: asked.append(name)
    trusting = ssl.create_default_context(cafile=str(authority / "cert.pem"))
    names = Names(shop_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    async with site(context) as shop:
        shop.answers["/t"] = reply(b"verified")
        made = fetch_tool(resolve=names, tls=trusting)
        assert (await fetch(f"https://shop.test:{shop.port}/t", made)).text.endswith("verified")
        assert asked == ["shop.test"]
        assert "no connection" in await refused(f"https://other.test:{shop.port}/t", made)
        stranger = fetch_tool(resolve=names)
        assert "no connection" in await refused(f"https://shop.test:{shop.port}/t", stranger)
