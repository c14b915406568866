"""The routes of the HTTP API, their shapes and statuses, over a real socket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from channels.web.adapter import WebChannel
from channels.web.backend import Answered, ClickOutcome, ClickResult
from tests.sse import PATIENCE, frames
from tests.web_backend import MemoryBackend

PENDING_SHAPE = {
    "pending_id",
    "kind",
    "session_id",
    "agent",
    "tool",
    "args",
    "reason",
    "requested_at",
    "expires_at",
    "approvers",
    "card",
    "preview",
    "preview_kind",
    "reveal",
    "hidden",
    "works_for",
}


async def say(client: httpx.AsyncClient, text: str, **body: Any) -> dict[str, Any]:
    """Post a message, wait for its turn, and give the answer."""
    response = await client.post("/agents/assistant/messages?wait=1", json={"text": text, **body})
    assert response.status_code == 200, response.text
    return dict(response.json())


async def test_a_message_is_accepted_with_its_session_and_turn(client: httpx.AsyncClient) -> None:
    response = await client.post("/agents/assistant/messages", json={"text": "hello"})
    assert response.status_code == 202
    body = response.json()
    assert body["session_id"] and body["turn_id"] and body["message_id"]
    assert (body["queued"], body["duplicate"]) == (False, False)


async def test_wait_returns_the_result_of_the_turn(client: httpx.AsyncClient) -> None:
    body = await say(client, "hello")
    assert (body["outcome"], body["status"], body["text"]) == (
        "completed",
        "completed",
        "You said: **hello**",
    )
    assert (body["pending"], body["exit_code"]) == ([], 0)


async def test_wait_returns_the_pending_ids_of_a_turn_that_stopped(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    body = await say(client, "refund 25")
    assert body["outcome"] == "pending_approval"
    assert body["pending"] == list(backend.cards)
    assert body["exit_code"] == 8


async def test_a_second_message_goes_into_the_same_session(client: httpx.AsyncClient) -> None:
    first = await say(client, "one")
    second = await say(client, "two", session_id=first["session_id"])
    assert second["session_id"] == first["session_id"]
    session = (await client.get(f"/sessions/{first['session_id']}")).json()
    assert [message["role"] for message in session["messages"]] == ["user", "assistant", "user", "assistant"]


async def test_the_same_message_id_is_stored_once(client: httpx.AsyncClient, backend: MemoryBackend) -> None:
    first = (await client.post("/agents/assistant/messages", json={"text": "x", "message_id": "m"})).json()
    second = (await client.post("/agents/assistant/messages", json={"text": "x", "message_id": "m"})).json()
    assert second == {**first, "duplicate": True}
    assert len(backend.rows) == 1


async def test_a_session_has_exactly_the_promised_shape(client: httpx.AsyncClient) -> None:
    session_id = (await say(client, "hello"))["session_id"]
    body = (await client.get(f"/sessions/{session_id}")).json()
    assert set(body) == {"session_id", "agent", "status", "messages"}
    assert body["messages"][0] == {"role": "user", "content": [{"type": "text", "text": "hello"}]}


async def test_pending_has_exactly_the_promised_shape(client: httpx.AsyncClient) -> None:
    await say(client, "refund 25")
    await say(client, "ask")
    body = (await client.get("/pending")).json()
    assert set(body) == {"pending"}
    assert [set(entry) for entry in body["pending"]] == [PENDING_SHAPE, PENDING_SHAPE]
    assert [entry["kind"] for entry in body["pending"]] == ["approval", "question"]
    assert body["pending"][0]["args"]["order_id"] == "A-1001"


async def test_the_session_list_counts_what_waits(client: httpx.AsyncClient) -> None:
    await say(client, "hello")
    await say(client, "refund 25")
    rows = (await client.get("/sessions")).json()["sessions"]
    assert [(row["title"], row["pending"]) for row in rows] == [("refund 25", 1), ("hello", 0)]


# ---- decisions


async def test_an_approval_resumes_and_runs_the_stored_arguments(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    pending_id = (await say(client, "refund 25"))["pending"][0]
    stored = dict(backend.cards[pending_id].args)
    response = await client.post(f"/pending-approvals/{pending_id}/resolve", json={"decision": "approve"})
    assert response.status_code == 200
    assert response.json()["outcome"] == "resumed"
    assert response.json()["by"] == "web:local"
    assert backend.ran == [("issue_refund", stored)]


async def test_a_second_decision_says_who_was_first(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    pending_id = (await say(client, "refund 25"))["pending"][0]
    await client.post(f"/pending-approvals/{pending_id}/resolve", json={"decision": "approve"})
    response = await client.post(f"/pending-approvals/{pending_id}/resolve", json={"decision": "deny"})
    assert response.status_code == 200
    body = response.json()
    assert (body["outcome"], body["by"]) == ("already", "web:local")
    assert isinstance(body["at"], float)
    assert len(backend.ran) == 1


async def test_edited_arguments_run_instead_of_the_stored_ones(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    pending_id = (await say(client, "refund 25"))["pending"][0]
    edited = {"order_id": "A-1001", "amount": 10, "ledger": 12345678901234567890}
    body = {"decision": "approve", "edited_args": edited, "scope": "session"}
    response = await client.post(f"/pending-approvals/{pending_id}/resolve", json=body)
    assert response.json()["outcome"] == "resumed"
    assert backend.ran == [("issue_refund", {"api_key": "the stored secret", **edited})]
    assert backend.granted == ["session"]


async def test_invalid_edits_are_422_and_name_the_argument(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    pending_id = (await say(client, "refund 25"))["pending"][0]
    body = {"decision": "approve", "edited_args": {"order_id": "A-1001", "amount": 900}}
    response = await client.post(f"/pending-approvals/{pending_id}/resolve", json=body)
    assert response.status_code == 422
    assert response.json()["outcome"] == "invalid"
    assert [problem["field"] for problem in response.json()["problems"]] == ["amount"]
    assert backend.cards[pending_id].state == "open"


async def test_a_denial_with_feedback_ends_the_turn(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    pending_id = (await say(client, "refund 25"))["pending"][0]
    body = {"decision": "deny", "feedback": "not on Friday"}
    response = await client.post(f"/pending-approvals/{pending_id}/resolve", json=body)
    assert response.json()["outcome"] == "resumed"
    assert backend.ran == []
    assert backend.log[-1].detail == "not on Friday"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("resumed", 200),
        ("recorded", 200),
        ("already", 200),
        ("forbidden", 403),
        ("unknown", 404),
        ("expired", 409),
        ("superseded", 409),
        ("invalid", 422),
    ],
)
async def test_every_outcome_has_its_status(outcome: ClickOutcome, status: int) -> None:
    class Answering(MemoryBackend):
        async def answer(self, pending_id: str, answer: Answered, **_: Any) -> ClickResult:
            return ClickResult(outcome=outcome, message="so it is", details={"pending_id": pending_id})

    channel = WebChannel(Answering(), port=0)
    await channel.start()
    async with httpx.AsyncClient(base_url=channel.url, trust_env=False) as client:
        response = await client.post("/pending-questions/p1/answer", json={"answer": "yes"})
    await channel.stop()
    assert response.status_code == status
    assert response.json() == {"outcome": outcome, "message": "so it is", "pending_id": "p1"}


async def test_an_expired_approval_is_409_and_runs_nothing(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    pending_id = (await say(client, "refund 25"))["pending"][0]
    backend.expire(pending_id)
    response = await client.post(f"/pending-approvals/{pending_id}/resolve", json={"decision": "approve"})
    assert (response.status_code, response.json()["outcome"]) == (409, "expired")
    assert backend.ran == []


async def test_stop_closes_what_waits(client: httpx.AsyncClient) -> None:
    stopped = await say(client, "refund 25")
    response = await client.post(f"/sessions/{stopped['session_id']}/stop")
    assert response.json()["stopped"] is True
    late = await client.post(
        f"/pending-approvals/{stopped['pending'][0]}/resolve", json={"decision": "approve"}
    )
    assert (late.status_code, late.json()["outcome"]) == (409, "superseded")
    assert (await client.get("/pending")).json() == {"pending": []}


@pytest.mark.parametrize(("text", "given"), [("ask", "prod"), ("ask many", ["prod", "staging"])])
async def test_an_answer_resumes_the_turn(
    client: httpx.AsyncClient, text: str, given: str | list[str]
) -> None:
    asked = await say(client, text)
    response = await client.post(f"/pending-questions/{asked['pending'][0]}/answer", json={"answer": given})
    assert (response.status_code, response.json()["outcome"]) == (200, "resumed")
    session = (await client.get(f"/sessions/{asked['session_id']}")).json()
    result = session["messages"][2]["content"][0]
    assert result["content"] == (given if isinstance(given, str) else ", ".join(given))


async def test_several_questions_are_answered_by_name_and_a_wrong_one_is_named(
    client: httpx.AsyncClient,
) -> None:
    asked = await say(client, "ask several")
    address = f"/pending-questions/{asked['pending'][0]}/answer"
    given = {"env": "prod", "count": "many", "day": "2026-03-31", "quiet": True, "tell": []}
    wrong = await client.post(address, json={"answer": given})
    assert wrong.status_code == 422
    assert wrong.json()["problems"] == [{"field": "count", "message": "a whole number is needed"}]
    response = await client.post(address, json={"answer": {**given, "count": 3}})
    assert (response.status_code, response.json()["outcome"]) == (200, "resumed")


async def test_the_audit_log_pages_back(client: httpx.AsyncClient) -> None:
    for _ in range(3):
        pending_id = (await say(client, "refund 25"))["pending"][0]
        await client.post(f"/pending-approvals/{pending_id}/resolve", json={"decision": "approve"})
    newest = (await client.get("/audit?limit=2")).json()["audit"]
    older = (await client.get(f"/audit?limit=2&before={newest[-1]['seq']}")).json()["audit"]
    assert [entry["seq"] for entry in newest + older] == [3, 2, 1]
    assert newest[0]["actor"] == "web:local"


# ---- the machine


async def test_health_and_readiness_have_their_statuses(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/readyz")).status_code == 200
    backend.healthy = False
    down = await client.get("/readyz")
    assert (down.status_code, down.json()["ready"]) == (503, False)


async def test_metrics_are_prometheus_text_or_say_how_to_switch_them_on(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    off = await client.get("/metrics")
    assert (off.status_code, off.json()["error"]["code"]) == (404, "metrics_off")
    assert "[metrics]" in off.json()["error"]["mend"]
    backend.prometheus = b"turns_total 3\n"
    on = await client.get("/metrics")
    assert on.content == b"turns_total 3\n"
    assert on.headers["content-type"].startswith("text/plain; version=0.0.4")


# ---- stopping


async def test_a_waiting_request_gets_its_ids_when_the_channel_stops(
    channel: WebChannel, client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    request = asyncio.create_task(client.post("/agents/assistant/messages?wait=1", json={"text": "slow"}))
    await backend.until(lambda: any(row.listeners for row in backend.rows.values()))
    session = next(iter(backend.rows.values()))
    async with asyncio.timeout(PATIENCE):
        await channel.stop()
        response = await request
    assert response.status_code == 202
    assert response.json()["session_id"] == session.id
    assert session.status == "running"
    backend.gate.set()


async def test_stopping_ends_every_stream(channel: WebChannel, client: httpx.AsyncClient) -> None:
    session_id = (await say(client, "hello"))["session_id"]
    async with client.stream("GET", f"/sessions/{session_id}/events") as response:
        events = frames(response)
        assert (await anext(events)).type == "session"
        async with asyncio.timeout(PATIENCE):
            await channel.stop()
        rest = [frame.type async for frame in events]
    assert rest[-1] == "done"
