"""Requests that are taken back and passed on, and grants, over HTTP with the real gateway behind it."""

from __future__ import annotations

import pytest

from tests.app_scene import SECRET, House, Scene, running
from tests.unit.app.test_web_secrets import everything

TOKENS = {"alice": "secret-of-alice", "bob": "secret-of-bob"}


async def test_cancelled_is_what_the_agent_reads_and_no_refusal(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    session_id, (pending_id,) = stopped["session_id"], stopped["pending"]
    response = await scene.client.post(f"/pending/{pending_id}/cancel")
    body = response.json()
    assert (response.status_code, body["outcome"], body["by"]) == (200, "resumed", "web:local")
    view = await scene.until(session_id, lambda view: view["status"] == "completed")
    (result,) = [b for m in view["messages"] for b in m["content"] if b["type"] == "tool_result"]
    assert result["content"].startswith("cancelled: web:local") and "denied" not in result["content"]
    assert scene.house.paid == [] and view["cards"][0]["state"] == "superseded"
    assert view["cards"][0]["status"].startswith("Cancelled by web:local")
    entries = [entry["what"] for entry in (await scene.get("/audit"))["audit"]]
    assert entries == ["cancelled", "requested"]


async def test_what_was_passed_on_is_for_the_new_one_to_decide(house: House) -> None:
    async with running(house, tokens=TOKENS, token="secret-of-alice", operators=()) as scene:
        stopped = await scene.ask("pay A-1 30")
        (pending_id,) = stopped["pending"]
        response = await scene.client.post(f"/pending/{pending_id}/give", json={"to": "web:bob"})
        assert (response.status_code, response.json()["outcome"]) == (200, "recorded")
        (line,) = (await scene.get("/pending"))["pending"]
        assert line["approvers"] == ["web:bob"]
        assert (await scene.get("/pending?mine=1"))["pending"] == []
        assert (await scene.resolve(pending_id))[0] == 403
        again = await scene.client.post(f"/pending/{pending_id}/give", json={"to": "web:alice"})
        assert again.status_code == 403
        scene.client.headers["authorization"] = "Bearer secret-of-bob"
        (mine,) = (await scene.get("/pending?mine=1"))["pending"]
        assert mine["pending_id"] == pending_id
        assert (await scene.resolve(pending_id))[1]["outcome"] == "resumed"


@pytest.mark.parametrize("to", ["bob bob", "slack:bob", "nobody:x y"])
async def test_a_name_is_refused_with_the_mend(scene: Scene, to: str) -> None:
    stopped = await scene.ask("pay A-1 30")
    (pending_id,) = stopped["pending"]
    response = await scene.client.post(f"/pending/{pending_id}/give", json={"to": to})
    body = response.json()
    assert (response.status_code, body["outcome"], body["problems"][0]["field"]) == (422, "invalid", "to")
    (line,) = (await scene.get("/pending"))["pending"]
    assert line["approvers"] == ["web:local"]


async def test_a_card_of_the_page_is_on_the_page(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    response = await scene.client.post(f"/pending/{stopped['pending'][0]}/show")
    assert response.status_code == 200 and "page" in response.json()["message"]
    (card,) = (await scene.view(stopped["session_id"]))["cards"]
    assert card["home"] == "" and card["scopes"] == ["once", "session", "always"]
    assert "exactly these arguments (the hidden ones included)" in card["covers"]


async def test_a_grant_is_listed_without_its_secret_and_revoked(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    assert (await scene.resolve(stopped["pending"][0], scope="always"))[0] == 200
    await scene.until(stopped["session_id"], lambda view: view["status"] == "completed")
    assert (await scene.ask("pay A-1 30"))["outcome"] == "completed" and len(scene.house.paid) == 2
    response = await scene.client.get("/grants")
    (grant,) = response.json()["grants"]
    assert (grant["scope"], grant["tool"], grant["granted_by"]) == ("always", "pay", "web:local")
    assert SECRET not in response.text and grant["args"]["order"] == "A-1"
    revoked = await scene.client.delete(f"/grants/{grant['grant_id']}")
    assert (revoked.status_code, revoked.json()["outcome"]) == (200, "recorded")
    assert (await scene.get("/grants"))["grants"] == []
    stopped = await scene.ask("pay A-1 30")
    assert stopped["outcome"] == "pending_approval" and len(scene.house.paid) == 2
    assert SECRET not in await everything(scene, stopped["session_id"])


async def test_what_only_those_who_decide_may_see_stays_hidden_once_it_is_granted(house: House) -> None:
    async with running(house, agent=house.agent(rule={"reveal": "approvers"})) as scene:
        stopped = await scene.ask("pay A-1 30")
        assert (await scene.resolve(stopped["pending"][0], scope="always"))[0] == 200
        (grant,) = (await scene.get("/grants"))["grants"]
        assert "A-1" not in str(grant["args"]) and set(grant["args"]) == {"order", "amount", "api_key"}


async def test_a_grant_is_for_whoever_gave_it_to_take_back(house: House) -> None:
    async with running(house, tokens=TOKENS, token="secret-of-alice", operators=()) as scene:
        stopped = await scene.ask("pay A-1 30")
        assert (await scene.resolve(stopped["pending"][0], scope="session"))[0] == 200
        (grant,) = (await scene.get("/grants"))["grants"]
        scene.client.headers["authorization"] = "Bearer secret-of-bob"
        refused = await scene.client.delete(f"/grants/{grant['grant_id']}")
        assert (refused.status_code, refused.json()["outcome"]) == (403, "forbidden")
        scene.client.headers["authorization"] = "Bearer secret-of-alice"
        assert (await scene.client.delete(f"/grants/{grant['grant_id']}")).status_code == 200
        assert (await scene.client.delete(f"/grants/{grant['grant_id']}")).status_code == 404


async def test_commands_list_grants_and_what_waits_on_the_page_too(scene: Scene) -> None:
    stopped = await scene.ask("pay A-1 30")
    session_id = stopped["session_id"]
    told = await scene.say("/pending mine", session_id)
    assert "pay (waits less than a minute" in told["answer"]
    assert "pay (waits less than a minute" in (await scene.say("/pending all", session_id))["answer"]
    assert (await scene.say("/grants", session_id))["answer"] == "Nothing is granted here."
