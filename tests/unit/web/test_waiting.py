"""Requests that are taken back, passed on, shown again, and grants, over the HTTP API."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from channels.web.adapter import WebChannel
from tests.web_backend import MemoryBackend
from tests.web_waiting import granted, planned


async def waits(client: httpx.AsyncClient, text: str = "refund 25") -> str:
    """The id of a request that waits."""
    response = await client.post("/agents/assistant/messages?wait=1", json={"text": text})
    (pending_id,) = response.json()["pending"]
    return str(pending_id)


async def test_a_request_is_taken_back(client: httpx.AsyncClient) -> None:
    pending_id = await waits(client)
    response = await client.post(f"/pending/{pending_id}/cancel")
    assert (response.status_code, response.json()["outcome"]) == (200, "resumed")
    assert (await client.get("/pending")).json() == {"pending": []}
    again = await client.post(f"/pending/{pending_id}/cancel", json={})
    assert (again.status_code, again.json()["outcome"]) == (409, "superseded")
    assert "nobody refused it" in again.json()["message"]


async def test_a_request_is_passed_on(client: httpx.AsyncClient) -> None:
    pending_id = await waits(client)
    response = await client.post(f"/pending/{pending_id}/give", json={"to": " slack:T1:U2 "})
    assert (response.status_code, response.json()["outcome"]) == (200, "recorded")
    (card,) = (await client.get("/pending")).json()["pending"]
    assert card["approvers"] == ["slack:T1:U2"]
    assert (await client.get("/pending?mine=1")).json() == {"pending": []}
    assert (await client.post(f"/pending/{pending_id}/give", json={"to": "web:local"})).status_code == 403


@pytest.mark.parametrize(
    ("body", "field"), [({"to": "  "}, "to"), ({}, "to"), ({"to": 3}, "to"), ({"to": "a", "who": "b"}, "who")]
)
async def test_whom_to_pass_it_on_to_must_be_said(
    client: httpx.AsyncClient, backend: MemoryBackend, body: Any, field: str
) -> None:
    pending_id = await waits(client)
    response = await client.post(f"/pending/{pending_id}/give", json=body)
    assert (response.status_code, response.json()["error"]["field"]) == (422, field)
    assert backend.cards[pending_id].approvers == ()


async def test_a_name_is_invalid_and_the_field_is_named(client: httpx.AsyncClient) -> None:
    pending_id = await waits(client)
    response = await client.post(f"/pending/{pending_id}/give", json={"to": "bob"})
    assert response.status_code == 422
    assert response.json()["problems"] == [{"field": "to", "message": "a name is no id"}]


async def test_a_card_is_shown_again(client: httpx.AsyncClient, backend: MemoryBackend) -> None:
    pending_id = await waits(client)
    response = await client.post(f"/pending/{pending_id}/show")
    assert response.status_code == 200 and backend.shown == [pending_id]


@pytest.mark.parametrize("verb", ["cancel", "show", "give"])
async def test_what_nobody_knows_is_unknown(client: httpx.AsyncClient, verb: str) -> None:
    body = {"to": "web:boss"} if verb == "give" else {}
    response = await client.post(f"/pending/nothing/{verb}", json=body)
    assert (response.status_code, response.json()["outcome"]) == (404, "unknown")


@pytest.mark.parametrize("verb", ["cancel", "show"])
async def test_nothing_else_can_be_said_there(client: httpx.AsyncClient, verb: str) -> None:
    pending_id = await waits(client)
    response = await client.post(f"/pending/{pending_id}/{verb}", json={"why": "x"})
    assert response.status_code == 422 and response.json()["error"]["field"] == "why"


async def test_grants_are_listed_and_revoked(client: httpx.AsyncClient, backend: MemoryBackend) -> None:
    assert (await client.get("/grants")).json() == {"grants": []}
    backend.lines = {"g1": granted("g1"), "g2": granted("g2", scope="session")}
    listed = (await client.get("/grants")).json()["grants"]
    assert [line["grant_id"] for line in listed] == ["g1", "g2"]
    assert set(listed[0]) == {
        "grant_id",
        "code",
        "scope",
        "agent",
        "tool",
        "args",
        "session_id",
        "granted_by",
        "by",
        "granted_at",
    }
    response = await client.delete("/grants/g1")
    assert response.status_code == 200
    assert (response.json()["outcome"], response.json()["grant_id"]) == ("recorded", "g1")
    assert (await client.delete("/grants/g1")).status_code == 404
    assert list(backend.lines) == ["g2"]


async def test_a_grant_of_somebody_else_is_not_ours_to_revoke(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    backend.lines = {"g1": granted("g1", by="web:boss")}
    response = await client.delete("/grants/g1")
    assert (response.status_code, response.json()["outcome"]) == (403, "forbidden")
    assert list(backend.lines) == ["g1"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/grants/g1"),
        ("GET", "/grants"),
        ("DELETE", "/schedules/c1"),
        ("GET", "/schedules"),
        ("POST", "/pending/p/cancel"),
    ],
)
async def test_none_of_it_without_a_token(
    guarded: tuple[WebChannel, httpx.AsyncClient], backend: MemoryBackend, method: str, path: str
) -> None:
    backend.lines = {"g1": granted("g1")}
    assert (await guarded[1].request(method, path)).status_code == 401
    assert list(backend.lines) == ["g1"]


async def test_another_site_cannot_revoke(client: httpx.AsyncClient, backend: MemoryBackend) -> None:
    backend.lines = {"g1": granted("g1")}
    response = await client.delete("/grants/g1", headers={"origin": "https://evil.example"})
    assert response.status_code == 403 and list(backend.lines) == ["g1"]


async def test_schedules_are_listed_and_cancelled(client: httpx.AsyncClient, backend: MemoryBackend) -> None:
    assert (await client.get("/schedules")).json() == {"schedules": []}
    backend.planned = {"c1": planned("c1"), "c2": planned("c2", by="web:boss")}
    listed = (await client.get("/schedules")).json()["schedules"]
    assert [line["schedule_id"] for line in listed] == ["c1", "c2"]
    assert set(listed[0]) == {
        "schedule_id",
        "code",
        "name",
        "agent",
        "where",
        "session_id",
        "instruction",
        "often",
        "next_at",
        "by",
    }
    response = await client.delete("/schedules/c1")
    assert (response.status_code, response.json()["outcome"]) == (200, "recorded")
    assert (await client.delete("/schedules/c1")).status_code == 404
    refused = await client.delete("/schedules/c2")
    assert (refused.status_code, refused.json()["outcome"]) == (403, "forbidden")
    assert list(backend.planned) == ["c2"]


async def test_another_site_cannot_cancel_a_schedule(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    backend.planned = {"c1": planned("c1")}
    response = await client.delete("/schedules/c1", headers={"origin": "https://evil.example"})
    assert response.status_code == 403 and list(backend.planned) == ["c1"]
