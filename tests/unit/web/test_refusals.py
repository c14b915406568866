"""Bad input and closed doors: a clear JSON error, nothing lost, never a traceback."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx
import pytest

from channels.base import ChannelError, MessageGone, MessageRef, OutboundMessage
from channels.web.adapter import WebChannel, WebRefused, is_loopback, web_thread
from channels.web.limits import BODY_BYTES, LOGIN_SECONDS
from tests.web_backend import MemoryBackend

MESSAGES = "/agents/assistant/messages"


def refusal(response: httpx.Response) -> dict[str, Any]:
    """The error of an answer; every one has this shape."""
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) <= {"code", "message", "mend", "field"}
    assert "Traceback" not in response.text
    return dict(body["error"])


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        (b"{", 400, "malformed_json", None),
        (b"\xff\xfe", 400, "malformed_json", None),
        (b"", 422, "invalid_body", "text"),
        (b"[]", 422, "invalid_body", None),
        (b"null", 422, "invalid_body", None),
        (b'{"text": 5}', 422, "invalid_body", "text"),
        (b'{"text": "x", "sesion_id": "s"}', 422, "invalid_body", "sesion_id"),
        (b'{"text": "  "}', 422, "empty_text", "text"),
        (b'{"text": "x", "session_id": ""}', 422, "invalid_body", "session_id"),
        (b'{"text": "x", "message_id": "' + b"m" * 201 + b'"}', 422, "invalid_body", "message_id"),
        (json.dumps({"text": "x" * 200_001}).encode(), 422, "text_too_long", "text"),
    ],
)
async def test_a_bad_message_body_is_refused_with_its_place(
    client: httpx.AsyncClient, backend: MemoryBackend, body: bytes, status: int, code: str, field: str | None
) -> None:
    response = await client.post(MESSAGES, content=body, headers={"content-type": "application/json"})
    assert response.status_code == status
    error = refusal(response)
    assert (error["code"], error.get("field")) == (code, field)
    assert backend.rows == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "decision"),
        ({"decision": "maybe"}, "decision"),
        ({"decision": "approve", "edited_args": []}, "edited_args"),
        ({"decision": "approve", "scope": "world"}, "scope"),
        ({"decision": "deny", "edited_args": {"amount": 1}}, "edited_args"),
        ({"decision": "deny", "scope": "always"}, "scope"),
        ({"decision": "approve", "force": True}, "force"),
    ],
)
async def test_a_bad_decision_is_refused_and_decides_nothing(
    client: httpx.AsyncClient, backend: MemoryBackend, body: dict[str, object], field: str
) -> None:
    posted = (await client.post(f"{MESSAGES}?wait=1", json={"text": "refund 25"})).json()
    response = await client.post(f"/pending-approvals/{posted['pending'][0]}/resolve", json=body)
    assert response.status_code == 422
    assert refusal(response)["field"] == field
    assert backend.cards[posted["pending"][0]].state == "open"


@pytest.mark.parametrize("answer", [None, "", "  ", [""], [["x"]], {}, {"a": None}, {"a": " "}])
async def test_a_bad_answer_is_refused_and_the_question_stays_open(
    client: httpx.AsyncClient, backend: MemoryBackend, answer: object
) -> None:
    posted = (await client.post(f"{MESSAGES}?wait=1", json={"text": "ask"})).json()
    response = await client.post(f"/pending-questions/{posted['pending'][0]}/answer", json={"answer": answer})
    assert response.status_code == 422
    assert refusal(response)["field"].startswith("answer")
    assert backend.cards[posted["pending"][0]].state == "open"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/sessions/nowhere", 404, "unknown_session"),
        ("POST", "/sessions/nowhere/stop", 404, "unknown_session"),
        ("POST", "/agents/nobody/messages", 404, "unknown_agent"),
        ("GET", "/agents/assistant/messages", 405, "method_not_allowed"),
        ("DELETE", "/pending", 405, "method_not_allowed"),
        ("GET", "/nothing/here", 404, "not_found"),
        ("GET", "/static/..%2Fapi.py", 404, "not_found"),
        ("GET", "/static/api.py", 404, "not_found"),
        ("GET", "/audit?limit=many", 422, "invalid_query"),
        ("GET", "/audit?before=-1", 422, "invalid_query"),
        ("POST", f"{MESSAGES}?wait=perhaps", 422, "invalid_query"),
    ],
)
async def test_unknown_places_and_ways_are_refused_in_json(
    client: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    body = {"text": "x"} if "messages" in path else None
    response = await client.request(method, path, json=body)
    assert response.status_code == status
    assert refusal(response)["code"] == code


@pytest.mark.parametrize("path", ["/pending-approvals/nothing/resolve", "/pending-questions/nothing/answer"])
async def test_an_unknown_pending_is_an_outcome(client: httpx.AsyncClient, path: str) -> None:
    body = {"decision": "approve"} if "approvals" in path else {"answer": "x"}
    response = await client.post(path, json=body)
    assert (response.status_code, response.json()["outcome"]) == (404, "unknown")


async def test_a_store_that_refuses_is_503_and_the_same_message_may_come_again(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    backend.broken = True
    response = await client.post(MESSAGES, json={"text": "x", "message_id": "m"})
    assert (response.status_code, refusal(response)["code"]) == (503, "unavailable")
    backend.broken = False
    again = await client.post(MESSAGES, json={"text": "x", "message_id": "m"})
    assert (again.status_code, again.json()["duplicate"]) == (202, False)


async def test_a_fault_of_ours_is_logged_and_not_shown(
    client: httpx.AsyncClient, backend: MemoryBackend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.failing = "the inner workings"
    with caplog.at_level(logging.ERROR):
        response = await client.post(MESSAGES, json={"text": "x"})
    assert response.status_code == 500
    error = refusal(response)
    assert error["code"] == "internal"
    assert "inner workings" not in response.text
    mark = error["message"].rsplit(" ", 1)[1]
    assert mark in caplog.text
    assert "the inner workings" in caplog.text


# ---- size and type


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_body_over_the_limit_is_413(client: httpx.AsyncClient, streamed: bool) -> None:
    async def pieces() -> Any:
        for _ in range(3):
            yield b"x" * (BODY_BYTES // 2)

    content = pieces() if streamed else b"x" * (2 * BODY_BYTES)
    response = await client.post(MESSAGES, content=content, headers={"content-type": "application/json"})
    assert (response.status_code, refusal(response)["code"]) == (413, "too_large")
    assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
async def test_what_a_foreign_form_can_send_is_415(
    client: httpx.AsyncClient, backend: MemoryBackend, kind: str | None
) -> None:
    headers = {"content-type": kind} if kind else {}
    response = await client.post(MESSAGES, content=b'{"text": "x"}', headers=headers)
    assert (response.status_code, refusal(response)["code"]) == (415, "not_json")
    assert backend.rows == {}


# ---- where a request comes from


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_request_of_another_site_is_refused(
    client: httpx.AsyncClient, backend: MemoryBackend, headers: dict[str, str]
) -> None:
    response = await client.post(MESSAGES, json={"text": "x"}, headers=headers)
    assert (response.status_code, refusal(response)["code"]) == (403, "cross_site")
    assert backend.rows == {}


async def test_the_page_itself_may_call(channel: WebChannel, client: httpx.AsyncClient) -> None:
    headers = {"origin": channel.url, "sec-fetch-site": "same-origin"}
    assert (await client.post(MESSAGES, json={"text": "x"}, headers=headers)).status_code == 202


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[::", ""])
async def test_a_foreign_host_name_is_refused_on_loopback(client: httpx.AsyncClient, host: str) -> None:
    response = await client.get("/pending", headers={"host": host})
    assert (response.status_code, refusal(response)["code"]) == (403, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8080"])
async def test_the_machines_own_names_are_served(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/pending", headers={"host": host})).status_code == 200


async def test_a_proxy_in_front_needs_a_token(client: httpx.AsyncClient) -> None:
    response = await client.get("/pending", headers={"x-forwarded-for": "203.0.113.9"})
    assert (response.status_code, refusal(response)["code"]) == (403, "proxy_without_token")


async def test_every_answer_carries_the_security_headers(client: httpx.AsyncClient) -> None:
    for path in ("/", "/pending", "/nothing", "/static/app.js"):
        headers = (await client.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
        assert "cache-control" in headers
        assert "server" not in headers


# ---- tokens

EVERYWHERE = "0.0.0.0"  # noqa: S104

Guarded = tuple[WebChannel, httpx.AsyncClient]


@pytest.mark.parametrize(
    "authorization",
    [None, "Bearer", "Bearer wrong", "Basic c2VjcmV0LW9mLWFsaWNl", "Bearer secret-of-alic", "Bearer s\u00e9"],
)
async def test_without_the_right_token_everything_but_the_login_is_closed(
    guarded: Guarded, backend: MemoryBackend, authorization: str | None
) -> None:
    _, client = guarded
    headers = [(b"authorization", authorization.encode())] if authorization else []
    for path in ("/pending", "/sessions", "/audit", "/metrics", "/page/me", "/page/changes"):
        response = await client.get(path, headers=headers)
        assert response.status_code == 401
        assert refusal(response)["code"] == "unauthorized"
        assert response.headers["www-authenticate"] == "Bearer"
    assert (await client.post(MESSAGES, json={"text": "x"}, headers=headers)).status_code == 401
    assert backend.rows == {}
    for path in ("/", "/static/app.js", "/healthz", "/readyz"):
        assert (await client.get(path, headers=headers)).status_code == 200


async def test_a_token_names_its_actor(guarded: Guarded) -> None:
    _, client = guarded
    posted = await client.post(
        f"{MESSAGES}?wait=1", json={"text": "guarded"}, headers={"authorization": "Bearer secret-of-alice"}
    )
    path = f"/pending-approvals/{posted.json()['pending'][0]}/resolve"
    alice = await client.post(
        path, json={"decision": "approve"}, headers={"authorization": "bearer secret-of-alice"}
    )
    assert (alice.status_code, alice.json()["outcome"]) == (403, "forbidden")
    assert alice.json()["deciders"] == "web:boss"
    boss = await client.post(
        path, json={"decision": "approve"}, headers={"authorization": "Bearer secret-of-boss"}
    )
    assert (boss.status_code, boss.json()["by"]) == (200, "web:boss")


async def test_the_login_form_sets_a_cookie_that_no_script_and_no_other_site_can_use(
    guarded: Guarded,
) -> None:
    _, client = guarded
    wrong = await client.post("/page/login", json={"token": "guess"})
    assert (wrong.status_code, refusal(wrong)["code"]) == (401, "wrong_token")
    response = await client.post("/page/login", json={"token": "secret-of-alice"})
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "secret-of-alice" not in cookie
    assert (await client.get("/page/me")).json()["actor"] == "web:alice"
    await client.post("/page/logout")
    assert (await client.get("/page/me")).status_code == 401


async def test_a_cookie_survives_a_restart_and_dies_with_its_token(backend: MemoryBackend) -> None:
    first = WebChannel(backend, port=0, tokens={"alice": "one"})
    await first.start()
    async with httpx.AsyncClient(base_url=first.url, trust_env=False) as client:
        jar = (await client.post("/page/login", json={"token": "one"})).cookies
    await first.stop()
    for secret, status in (("one", 200), ("two", 401)):
        again = WebChannel(backend, port=0, tokens={"alice": secret})
        await again.start()
        async with httpx.AsyncClient(base_url=again.url, cookies=jar, trust_env=False) as client:
            assert (await client.get("/page/me")).status_code == status
        await again.stop()


async def test_an_old_or_altered_cookie_opens_nothing(backend: MemoryBackend) -> None:
    time = [1_000_000.0]
    channel = WebChannel(backend, port=0, tokens={"alice": "one", "boss": "two"}, now=lambda: time[0])
    await channel.start()
    async with httpx.AsyncClient(base_url=channel.url, trust_env=False) as client:
        await client.post("/page/login", json={"token": "one"})
        name, value = next(iter(client.cookies.items()))
        client.cookies.clear()
        for forged in (
            value.replace("alice", "boss"),
            value[:-1],
            "alice",
            "..",
            value.replace("1000000", "2000000"),
        ):
            response = await client.get("/page/me", headers={"cookie": f"{name}={forged}"})
            assert response.status_code == 401
        good = {"cookie": f"{name}={value}"}
        assert (await client.get("/page/me", headers=good)).status_code == 200
        time[0] += LOGIN_SECONDS + 1
        assert (await client.get("/page/me", headers=good)).status_code == 401
    await channel.stop()


async def test_no_token_reaches_the_log(guarded: Guarded, caplog: pytest.LogCaptureFixture) -> None:
    _, client = guarded
    with caplog.at_level(logging.DEBUG):
        await client.get("/pending", headers={"authorization": "Bearer secret-of-alice"})
        await client.post("/page/login", json={"token": "secret-of-boss"})
        await client.get("/pending", headers={"authorization": "Bearer secret-of-nobody"})
    ours = [
        record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))
    ]
    assert not [line for line in ours if "secret-of" in line]


# ---- starting


@pytest.mark.parametrize("host", [EVERYWHERE, "192.0.2.1", "::", "example.org"])
async def test_off_loopback_it_does_not_start_without_a_token(backend: MemoryBackend, host: str) -> None:
    with pytest.raises(WebRefused) as refused:
        await WebChannel(backend, host=host, port=0).start()
    assert "channels.web.token" in refused.value.mend


def test_an_empty_token_is_refused(backend: MemoryBackend) -> None:
    with pytest.raises(ChannelError):
        WebChannel(backend, tokens={"alice": ""})


async def test_off_loopback_with_a_token_any_host_name_is_served(backend: MemoryBackend) -> None:
    channel = WebChannel(backend, host=EVERYWHERE, port=0, tokens={"alice": "one"})
    await channel.start()
    async with httpx.AsyncClient(base_url=channel.url, trust_env=False) as client:
        headers = {"host": "agents.example", "authorization": "Bearer one", "x-forwarded-for": "203.0.113.9"}
        assert (await client.get("/pending", headers=headers)).status_code == 200
    await channel.stop()


async def test_a_taken_port_is_an_error_that_names_the_mend(
    channel: WebChannel, backend: MemoryBackend
) -> None:
    port = int(channel.url.rsplit(":", 1)[1])
    with pytest.raises(WebRefused) as refused:
        await WebChannel(backend, port=port).start()
    assert str(port) in refused.value.problem
    assert "channels.web.port" in refused.value.mend


async def test_localhost_is_served_on_every_address_it_has(backend: MemoryBackend) -> None:
    channel = WebChannel(backend, host="localhost", port=0)
    await channel.start()
    async with httpx.AsyncClient(base_url=channel.url, trust_env=False) as client:
        assert (await client.get("/healthz")).status_code == 200
    await channel.stop()


def test_only_this_machine_counts_as_loopback() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.9.9.9", "::1", "[::1]")] == [True] * 4
    assert [is_loopback(host) for host in (EVERYWHERE, "::", "10.0.0.1", "local", "")] == [False] * 5


async def test_references_hold_over_a_restart_and_foreign_ones_are_refused(backend: MemoryBackend) -> None:
    message = OutboundMessage(text="hello")
    ref = await WebChannel(backend).send(web_thread("s1"), message)
    later = WebChannel(backend)
    await later.edit(ref, message)
    with pytest.raises(MessageGone):
        await later.edit(MessageRef("telegram-17"), message)
