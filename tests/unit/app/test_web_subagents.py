"""Subagents over HTTP: what waits below is shown, decided and told as the session's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from gateway.agent import Subagent
from gateway.messages import Json
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, spoken
from gateway.tools.subagent import with_subagents
from tests import app_scene
from tests.app_scene import SECRET, House, Scene


@asynccontextmanager
async def scene_of(house: House, monkeypatch: Any) -> AsyncIterator[Scene]:
    """A gateway whose assistant has `ops`; `have TASK` gives it that task."""
    own = app_scene._reply

    def reply(request: ModelRequest) -> Reply:
        start, text = spoken(request.messages)
        if text.startswith("have ") and len(request.messages) == start + 1:
            return Reply(calls=(Call(tool="ops", args={"task": text.removeprefix("have ")}),))
        return own(request)

    monkeypatch.setattr(app_scene, "_reply", reply)
    one = house.agent(subagents=(Subagent(agent="ops"),))
    two = replace(house.agent(tool_description="Pays."), name="ops")
    agents = with_subagents({"assistant": one, "ops": two})
    async with app_scene.running(house, agent=agents["assistant"], more=[agents["ops"]]) as scene:
        yield scene


async def below(scene: Scene, root: str) -> str:
    """The id of the subagent's session."""
    store: Any = scene.gateway.store
    rows = await store._read(
        lambda db: db.execute("SELECT id FROM sessions WHERE parent = ?", (root,)).fetchall()
    )
    ((child,),) = rows
    return str(child)


async def test_what_waits_below_is_the_sessions_own(house: House, monkeypatch: Any) -> None:
    async with scene_of(house, monkeypatch) as scene:
        stopped = await scene.ask("have pay A-1 30")
        root = stopped["session_id"]
        assert (stopped["outcome"], len(stopped["pending"])) == ("pending_approval", 1)
        (line,) = (await scene.get("/pending"))["pending"]
        assert (line["pending_id"], line["session_id"]) == (stopped["pending"][0], root)
        assert (line["agent"], line["works_for"]) == ("ops", "assistant")
        view = await scene.view(root)
        assert view["status"] == "pending_approval"
        (card,) = view["cards"]
        (call,) = [b for m in view["messages"] for b in m["content"] if b["type"] == "tool_use"]
        assert card["call_id"] == call["id"] and SECRET not in json.dumps(view)
        code, body = await scene.resolve(line["pending_id"])
        assert (code, body["outcome"], body["session_id"]) == (200, "resumed", root)
        view = await scene.until(root, lambda view: view["status"] == "completed")
        assert house.paid[0]["order"] == "A-1" and len(house.paid) == 1
        assert "Result: Result: paid 30 for A-1" in view["messages"][-1]["content"][0]["text"]


async def test_sessions_of_subagents_are_read_by_id_and_not_listed_or_written_to(
    house: House, monkeypatch: Any
) -> None:
    async with scene_of(house, monkeypatch) as scene:
        root = (await scene.ask("have peek A-1"))["session_id"]
        child = await below(scene, root)
        assert [s["session_id"] for s in (await scene.get("/sessions"))["sessions"]] == [root]
        view = await scene.get(f"/sessions/{child}")
        assert view["agent"] == "ops" and view["messages"][0]["content"][0]["text"] == "peek A-1"
        response = await scene.client.post("/agents/ops/messages", json={"text": "hi", "session_id": child})
        assert response.status_code in (400, 422) and root in response.text


async def test_the_events_of_the_session_tell_of_what_waits_below(house: House, monkeypatch: Any) -> None:
    async with scene_of(house, monkeypatch) as scene:
        stopped = await scene.ask("have pay A-1 30")
        path = f"/sessions/{stopped['session_id']}/events"
        found: list[Json] = []
        async with scene.client.stream("GET", path) as response:
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    found.append(json.loads(line.removeprefix("data:")))
                if found and found[-1]["type"] == "done":
                    break
        kinds = [event["type"] for event in found]
        assert kinds.count("approval:pending") == 1 and kinds[-1] == "done"
        told = next(event for event in found if event["type"] == "approval:pending")
        assert told["pending_id"] == stopped["pending"][0] and SECRET not in json.dumps(found)
