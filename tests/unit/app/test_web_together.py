"""Several calls of a step decided in one request, and arguments that only deciders see, over HTTP."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.messages import Json
from gateway.tools.base import Preview, Tool
from tests.app_scene import House, Scene, running
from tests.sse import Frame, frames, upto

TOKENS = {"alice": "token-of-alice", "boss": "token-of-boss"}
PNG = b"\x89PNG\r\n\x1a\n rest"


async def heard(scene: Scene, session_id: str, turns: int) -> list[Frame]:
    """The events of a session up to the end of so many turns."""
    got: list[Frame] = []
    async with scene.client.stream("GET", f"/sessions/{session_id}/events") as response:
        events = frames(response)
        for _ in range(turns):
            got += await upto(events, "done")
    return got


async def resolve_card(scene: Scene, card: str, decision: str) -> tuple[int, Json]:
    response = await scene.client.post(f"/pending-cards/{card}/resolve", json={"decision": decision})
    return response.status_code, response.json()


async def waiting(scene: Scene) -> list[Json]:
    return list((await scene.get("/pending"))["pending"])


def results(house: House) -> list[str]:
    """What the model was last told about its calls."""
    return [r.content for m in house.requests[-1].messages for r in m.results]


def called(scene: Scene, name: str) -> None:
    """From now on the requests are this person's."""
    scene.client.headers["authorization"] = f"Bearer {TOKENS[name]}"


async def test_approve_all_runs_every_call_once_and_the_turn_goes_on(scene: Scene) -> None:
    stopped = await scene.ask("pay three")
    asked = await waiting(scene)
    (card,) = {entry["card"] for entry in asked}
    status, body = await resolve_card(scene, card, "approve")
    assert (status, body["outcome"]) == (200, "resumed")
    assert [r["outcome"] for r in body["results"]] == ["recorded", "recorded", "resumed"]
    assert [r["pending_id"] for r in body["results"]] == [entry["pending_id"] for entry in asked]
    await scene.until(stopped["session_id"], lambda view: view["status"] == "completed")
    assert results(scene.house) == ["paid 10 for A-1", "paid 10 for A-2", "paid 10 for A-3"]
    assert len(scene.house.paid) == 3
    status, again = await resolve_card(scene, card, "deny")
    assert (status, again["outcome"]) == (200, "already")
    assert len(scene.house.paid) == 3


async def test_deny_all_is_a_denial_of_each_and_ends_the_turn(scene: Scene) -> None:
    stopped = await scene.ask("pay three")
    (card,) = {entry["card"] for entry in await waiting(scene)}
    status, body = await resolve_card(scene, card, "deny")
    assert (status, body["outcome"], len(body["results"])) == (200, "resumed", 3)
    view = await scene.until(stopped["session_id"], lambda view: view["status"] == "denied")
    told = [block["content"] for m in view["messages"] for block in m["content"] if "tool_use_id" in block]
    assert len(told) == 3
    assert all(text.startswith("denied by web:local") for text in told)
    assert [c["status"].startswith("Denied by web:local") for c in view["cards"]] == [True] * 3
    assert scene.house.paid == []


async def test_what_was_decided_before_stays_and_only_the_rest_is_decided(scene: Scene) -> None:
    stopped = await scene.ask("pay three")
    first, *_ = await waiting(scene)
    await scene.resolve(first["pending_id"], edited_args={"order": "A-1", "amount": 5})
    _, body = await resolve_card(scene, first["card"], "approve")
    assert len(body["results"]) == 2
    await scene.until(stopped["session_id"], lambda view: view["status"] == "completed")
    assert sorted(paid["amount"] for paid in scene.house.paid) == [5, 10, 10]


async def test_a_card_that_nobody_knows_is_not_found(scene: Scene) -> None:
    status, body = await resolve_card(scene, "p_nothing", "approve")
    assert (status, body["outcome"]) == (404, "unknown")


async def test_who_may_not_decide_a_card_decides_none_of_its_calls(house: House) -> None:
    agent = house.agent(rule={"approvers": ("web:boss",)})
    async with running(house, agent=agent, tokens=TOKENS, operators=(), token=TOKENS["alice"]) as scene:
        await scene.ask("pay both")
        (card,) = {entry["card"] for entry in await waiting(scene)}
        status, body = await resolve_card(scene, card, "approve")
        assert (status, body["outcome"]) == (403, "forbidden")
        assert len(await waiting(scene)) == 2
    assert house.paid == []


# ---- for deciders only


@pytest.fixture
def closed(house: House) -> Any:
    rule = {"approvers": ("web:boss",), "reveal": "approvers"}
    return running(house, agent=house.agent(rule=rule), tokens=TOKENS, operators=(), token=TOKENS["alice"])


async def test_who_may_not_decide_finds_the_arguments_nowhere(closed: Any) -> None:
    async with closed as scene:
        stopped = await scene.ask("raw top-secret-order")
        (entry,) = await waiting(scene)
        assert (entry["hidden"], entry["args"], entry["preview"]) == (True, {}, "")
        session = stopped["session_id"]
        view = await scene.view(session)
        (card,) = view["cards"]
        assert (card["hidden"], card["fields"], card["schema"], card["args_hash"]) == (True, [], None, "")
        (call,) = [block for m in view["messages"] for block in m["content"] if block["type"] == "tool_use"]
        assert (call["input"], call["hidden"], call["fields"]) == ({}, True, [])
        events = await heard(scene, session, 1)
        (asked,) = [event.data for event in events if event.type == "approval:pending"]
        assert (asked["args"], asked["hidden"]) == ({}, True)
        whole = json.dumps([view["cards"], view["messages"][1:], [e.data for e in events]])
        assert "top-secret-order" not in whole


async def test_who_may_decide_sees_them_and_the_look_is_on_record_once(closed: Any, house: House) -> None:
    async with closed as scene:
        stopped = await scene.ask("raw top-secret-order")
        called(scene, "boss")
        for _ in range(3):
            (entry,) = await waiting(scene)
            view = await scene.view(stopped["session_id"])
        assert (entry["hidden"], entry["args"]["order"]) == (False, "top-secret-order")
        assert "hidden" not in view["messages"][1]["content"][0]
        looks = [row for row in (await scene.get("/audit"))["audit"] if row["what"] == "viewed"]
        assert [(row["actor"], row["pending_id"]) for row in looks] == [("web:boss", entry["pending_id"])]
        await scene.resolve(entry["pending_id"])
        await scene.until(stopped["session_id"], lambda view: view["status"] == "completed")
        events = await heard(scene, stopped["session_id"], 2)
        started = [event.data for event in events if event.type == "tool:started"]
        assert [event["args"]["order"] for event in started] == ["top-secret-order"]
        called(scene, "alice")
        events = await heard(scene, stopped["session_id"], 2)
        started = [event.data for event in events if event.type == "tool:started"]
        assert [(event["args"], event["hidden"]) for event in started] == [({}, True)]
    assert [paid["order"] for paid in house.paid] == ["top-secret-order"]


# ---- pictures


def picturing(house: House, path: str) -> tuple[Tool, ...]:
    """The house's tools; `pay` shows this picture."""
    pay, *others = house.tools()
    return (replace(pay, preview=lambda args: Preview(image=path)), *others)


async def test_a_picture_comes_from_the_data_folder(house: House) -> None:
    (house.folder / "shots").mkdir()
    (house.folder / "shots" / "page.png").write_bytes(PNG)
    async with running(house, agent=house.agent(tools=picturing(house, "shots/page.png"))) as scene:
        await scene.ask("pay A-1 30")
        (entry,) = await waiting(scene)
        response = await scene.client.get(f"/page/previews/{entry['pending_id']}")
        assert (response.status_code, response.content) == (200, PNG)
        assert response.headers["content-type"] == "image/png"


@pytest.mark.parametrize("path", ["../outside.png", "missing.png", "page.svg", "page.html"])
async def test_nothing_else_is_served_as_a_picture(house: House, path: str) -> None:
    (house.folder.parent / "outside.png").write_bytes(PNG)
    for name in ("page.svg", "page.html"):
        (house.folder / name).write_text("<script>alert(1)</script>")
    async with running(house, agent=house.agent(tools=picturing(house, path))) as scene:
        await scene.ask("pay A-1 30")
        (entry,) = await waiting(scene)
        assert (await scene.client.get(f"/page/previews/{entry['pending_id']}")).status_code == 404


async def test_a_picture_is_for_deciders_only_where_the_arguments_are(house: House) -> None:
    (house.folder / "page.png").write_bytes(PNG)
    rule = {"approvers": ("web:boss",), "reveal": "approvers"}
    agent = house.agent(rule=rule, tools=picturing(house, "page.png"))
    async with running(house, agent=agent, tokens=TOKENS, operators=(), token=TOKENS["alice"]) as scene:
        await scene.ask("pay A-1 30")
        (entry,) = await waiting(scene)
        path = f"/page/previews/{entry['pending_id']}"
        assert (await scene.client.get(path)).status_code == 404
        called(scene, "boss")
        assert (await scene.client.get(path)).content == PNG
