"""What is scheduled, over HTTP with the real gateway behind it."""

from __future__ import annotations

from gateway.store.rows import Timer
from tests.app_scene import House, Scene, running

TOKENS = {"alice": "secret-of-alice", "bob": "secret-of-bob"}


async def test_what_an_agent_has_planned_is_listed_and_cancelled(scene: Scene) -> None:
    planned = await scene.ask("wake me")
    (line,) = (await scene.get("/schedules"))["schedules"]
    assert (line["instruction"], line["often"], line["by"]) == ("peek A-9", "every 4h", "web:local")
    assert (line["session_id"], line["name"]) == (planned["session_id"], "")
    response = await scene.client.delete(f"/schedules/{line['schedule_id']}")
    assert (response.status_code, response.json()["outcome"]) == (200, "recorded")
    assert (await scene.get("/schedules"))["schedules"] == []
    assert (await scene.client.delete(f"/schedules/{line['schedule_id']}")).status_code == 404
    entries = [entry["what"] for entry in (await scene.get("/audit"))["audit"]]
    assert entries == ["cancelled", "scheduled"]


async def test_a_schedule_is_for_whoever_had_it_made_to_cancel(house: House) -> None:
    async with running(house, tokens=TOKENS, token="secret-of-alice", operators=()) as scene:
        await scene.ask("wake me")
        (line,) = (await scene.get("/schedules"))["schedules"]
        scene.client.headers["authorization"] = "Bearer secret-of-bob"
        refused = await scene.client.delete(f"/schedules/{line['schedule_id']}")
        assert (refused.status_code, refused.json()["outcome"]) == (403, "forbidden")
        scene.client.headers["authorization"] = "Bearer secret-of-alice"
        assert (await scene.client.delete(f"/schedules/{line['schedule_id']}")).status_code == 200


async def test_the_command_works_on_the_page_too(scene: Scene) -> None:
    session_id = (await scene.ask("wake me"))["session_id"]
    told = (await scene.say("/schedules", session_id))["answer"]
    assert "peek A-9 (every 4h, next " in told and told.endswith("by web:local)")
    code = told.split("`")[1]
    assert (await scene.say(f"/schedules cancel {code}", session_id))["answer"].startswith("Cancelled: ")
    assert (await scene.say("/schedules", session_id))["answer"] == "Nothing is scheduled here."


async def test_the_page_shows_what_the_clock_began_and_who_said_it(scene: Scene) -> None:
    session_id = (await scene.ask("wake me"))["session_id"]
    (record,) = await scene.gateway.store.schedules()
    due = Timer(id=record.timer_id, kind="schedule", subject=record.id, due_at=record.due_at)
    await scene.gateway.schedules.carry_out(due, record.due_at)
    view = await scene.until(session_id, lambda view: len(view["messages"]) > 4 and not view["queued"])
    (told,) = [m for m in view["messages"] if m.get("author") == "schedule"]
    assert told["role"] == "user" and "peek A-9" in str(told["content"])
