"""Messages over HTTP, with a real gateway behind: sessions, queues, waiting, commands, refusals."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.agent import Agent
from gateway.messages import Actor, ThreadKey, user
from gateway.store.rows import Incoming
from tests.app_scene import House, Scene, running
from tests.sse import frames


async def test_a_message_is_answered_and_the_session_has_the_promised_shape(scene: Scene) -> None:
    done = await scene.ask("hello")
    assert (done["outcome"], done["text"], done["exit_code"]) == ("completed", "You said: hello", 0)
    session = await scene.get(f"/sessions/{done['session_id']}")
    assert session == {
        "session_id": done["session_id"],
        "agent": "assistant",
        "status": "completed",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "You said: hello"}]},
        ],
    }
    (line,) = (await scene.get("/sessions"))["sessions"]
    assert (line["session_id"], line["title"], line["status"]) == (done["session_id"], "hello", "completed")


async def test_a_repeated_message_id_is_taken_once_with_and_without_a_session(scene: Scene) -> None:
    first = await scene.say("hello", message_id="m1")
    again = await scene.say("hello", message_id="m1")
    assert again == {**first, "duplicate": True}
    inside = await scene.ask("more", first["session_id"], message_id="m2")
    same = await scene.ask("more", first["session_id"], message_id="m2")
    assert (same["turn_id"], same["duplicate"]) == (inside["turn_id"], True)
    session = await scene.get(f"/sessions/{first['session_id']}")
    assert [m["role"] for m in session["messages"]] == ["user", "assistant"] * 2


async def test_messages_behind_a_running_turn_wait_in_order_and_show_it(scene: Scene) -> None:
    first = await scene.say("slow")
    await scene.house.half_said.wait()
    session_id = first["session_id"]
    second = await scene.say("two", session_id, message_id="m2")
    assert (second["queued"], second["turn_id"]) == (True, None)
    repeated = await scene.say("two", session_id, message_id="m2")
    assert (repeated["queued"], repeated["duplicate"]) == (True, True)
    waited = asyncio.create_task(scene.ask("three", session_id))
    view = await scene.until(session_id, lambda view: len(view["queued"]) == 2)
    assert view["status"] == "running"
    assert [row["text"] for row in view["queued"]] == ["two", "three"]
    scene.house.let_answer.set()
    assert (await waited)["text"] == "You said: three"
    texts = [m["content"][0]["text"] for m in (await scene.view(session_id))["messages"]]
    assert texts == ["slow", "You said: slow", "two", "You said: two", "three", "You said: three"]


async def test_waiting_for_a_message_that_joins_a_running_turn_ends_with_that_turn(house: House) -> None:
    async with running(house, agent=house.agent(busy="steer")) as scene:
        first = await scene.say("work")
        await house.at_work.wait()
        waited = asyncio.create_task(scene.ask("hurry", first["session_id"]))
        await scene.until(first["session_id"], lambda view: bool(view["queued"]))
        house.let_work.set()
        done = await waited
        assert (done["turn_id"], done["outcome"]) == (first["turn_id"], "completed")


async def test_a_typed_answer_is_taken_and_its_sender_gets_the_turn_that_goes_on(scene: Scene) -> None:
    asked = await scene.ask("ask open")
    assert asked["outcome"] == "pending_question"
    done = await scene.ask("Lamp shop", asked["session_id"])
    assert done["text"] == "Result: Lamp shop"
    view = await scene.view(asked["session_id"])
    assert view["queued"] == []
    (card,) = view["cards"]
    assert (card["state"], card["decided_by"]) == ("decided", "web:local")
    await scene.until(asked["session_id"], lambda view: bool(view["notices"]))
    told = (await scene.view(asked["session_id"]))["notices"][0]["text"]
    assert told.startswith("Taken as your answer: Lamp shop")


async def test_a_message_behind_an_open_approval_waits_and_is_told_so(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    posted = await scene.say("and?", stopped["session_id"])
    assert posted["queued"] is True
    view = await scene.until(stopped["session_id"], lambda view: bool(view["notices"]))
    assert "must be decided" in view["notices"][0]["text"]
    assert (view["status"], len(view["queued"])) == ("pending_approval", 1)
    waited = asyncio.create_task(scene.ask("and?", stopped["session_id"], message_id=posted["message_id"]))
    await scene.resolve(stopped["pending"][0])
    assert (await waited)["text"] == "You said: and?"


async def test_a_command_is_carried_out_and_answered_at_once(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    status = await scene.ask("/status", stopped["session_id"])
    assert (status["turn_id"], status["outcome"]) == (None, "completed")
    assert "waiting for somebody's decision" in status["text"]
    assert (await scene.say("/status", stopped["session_id"]))["answer"] == status["text"]
    view = await scene.view(stopped["session_id"])
    assert view["notices"][-1]["text"] == status["text"]
    assert len(view["messages"]) == 2
    path, body = "/agents/assistant/messages/stream", {"text": "/help", "session_id": stopped["session_id"]}
    async with scene.client.stream("POST", path, json=body) as response:
        (frame,) = [frame async for frame in frames(response)]
    assert frame.type == "done"
    assert "/stop" in frame.data["text"]


async def test_a_model_is_chosen_for_one_session_and_named_by_its_status(house: House) -> None:
    async with running(house, models=("main", "large")) as scene:
        one, other = await scene.ask("hello"), await scene.ask("hello")
        chosen = await scene.ask("/model large", one["session_id"])
        assert chosen["text"] == "The model here is large from now on."
        assert "There are: main, large" in (await scene.ask("/model huge", one["session_id"]))["text"]
        assert "model large" in (await scene.ask("/status", one["session_id"]))["text"]
        assert "model main" in (await scene.ask("/status", other["session_id"]))["text"]
        assert one["usage"]["input"] > 0


async def test_new_leads_to_a_fresh_session_and_takes_along_what_waits(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    waited = asyncio.create_task(scene.ask("later", stopped["session_id"]))
    await scene.until(stopped["session_id"], lambda view: bool(view["queued"]))
    fresh = await scene.ask("/new", stopped["session_id"])
    assert fresh["session_id"] != stopped["session_id"]
    done = await waited
    assert (done["session_id"], done["text"]) == (fresh["session_id"], "You said: later")
    assert (await scene.get("/pending"))["pending"] == []
    status, click = await scene.resolve(stopped["pending"][0])
    assert (status, click["outcome"]) == (409, "superseded")


async def test_a_message_into_another_channels_session_cannot_take_the_place_of_its_messages(
    scene: Scene,
) -> None:
    key = ThreadKey("telegram", "77", "5", "")
    accepted = await scene.gateway.turns.accept(
        Incoming(
            key=key,
            message_id="12",
            actor=Actor("telegram", "77", "5"),
            message=user("hi"),
            agent="assistant",
            received_at=1.0,
        )
    )
    await scene.gateway.turns.settled(accepted.session_id)
    done = await scene.ask("from the page", accepted.session_id, message_id="12")
    assert (done["text"], done["duplicate"]) == ("You said: from the page", False)


# ---- refusals


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/agents/nobody/messages", {"text": "x"}, 404, "unknown_agent"),
        ("POST", "/agents/nobody/messages/stream", {"text": "x"}, 404, "unknown_agent"),
        ("POST", "/agents/assistant/messages", {"text": "x", "session_id": "s_no"}, 404, "unknown_session"),
        ("GET", "/sessions/s_no", None, 404, "unknown_session"),
        ("GET", "/sessions/s_no?html=1", None, 404, "unknown_session"),
        ("GET", "/sessions/s_no/events", None, 404, "unknown_session"),
        ("POST", "/sessions/s_no/stop", {}, 404, "unknown_session"),
        ("POST", "/agents/assistant/messages", b"{", 400, "malformed_json"),
        ("POST", "/agents/assistant/messages", {"text": 5}, 422, "invalid_body"),
        ("POST", "/agents/assistant/messages", {"text": " "}, 422, "empty_text"),
        ("POST", "/pending-approvals/p_no/resolve", {"decision": "maybe"}, 422, "invalid_body"),
    ],
)
async def test_what_cannot_be_is_refused_with_its_own_code(
    scene: Scene, method: str, path: str, body: Any, status: int, code: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
    headers = {"content-type": "application/json"} if content is not None else {}
    response = await scene.client.request(method, path, content=content, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("path", ["/pending-approvals/p_no/resolve", "/pending-questions/p_no/answer"])
async def test_a_decision_about_nothing_is_unknown(scene: Scene, path: str) -> None:
    body = {"decision": "deny"} if path.endswith("resolve") else {"answer": "x"}
    response = await scene.client.post(path, json=body)
    assert (response.status_code, response.json()["outcome"]) == (404, "unknown")


async def test_a_session_of_another_agent_is_named_as_the_culprit(house: House) -> None:
    async with running(house, more=[Agent(name="other")]) as scene:
        posted = await scene.ask("hello")
        body = {"text": "x", "session_id": posted["session_id"]}
        response = await scene.client.post("/agents/other/messages", json=body)
        assert (response.status_code, response.json()["error"]["field"]) == (422, "session_id")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/agents/assistant/messages", {"text": "x"}),
        ("POST", "/agents/assistant/messages?wait=1", {"text": "x"}),
        ("POST", "/agents/assistant/messages/stream", {"text": "x"}),
        ("GET", "/sessions", None),
        ("GET", "/sessions/s_1", None),
        ("GET", "/sessions/s_1/events", None),
        ("POST", "/sessions/s_1/stop", {}),
        ("GET", "/pending", None),
        ("GET", "/audit", None),
        ("POST", "/pending-approvals/p_1/resolve", {"decision": "deny"}),
        ("POST", "/pending-questions/p_1/answer", {"answer": "x"}),
    ],
)
async def test_without_its_database_everything_says_unavailable(
    scene: Scene, method: str, path: str, body: Any
) -> None:
    await scene.gateway.store.close()
    response = await scene.client.request(method, path, json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "unavailable")
    assert (await scene.client.get("/readyz")).status_code == 503
    assert (await scene.client.get("/healthz")).status_code == 200
