"""Several calls on one card, previews, and arguments that only deciders see, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from channels.web.adapter import WebChannel
from tests.web_backend import MemoryBackend
from tests.web_together import DIFF, PIXEL

BOSS = {"authorization": "Bearer secret-of-boss"}
ALICE = {"authorization": "Bearer secret-of-alice"}


async def ask(client: httpx.AsyncClient, text: str, **more: Any) -> dict[str, Any]:
    response = await client.post("/agents/assistant/messages?wait=1", json={"text": text}, **more)
    assert response.status_code == 200, response.text
    return dict(response.json())


async def waiting(client: httpx.AsyncClient, **more: Any) -> list[dict[str, Any]]:
    return list((await client.get("/pending", **more)).json()["pending"])


async def test_calls_of_one_step_share_a_card_and_one_request_decides_them_all(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    await ask(client, "both")
    await backend.until(lambda: len(backend.cards) == 2)
    first, second = await waiting(client)
    assert first["card"] == second["card"] == first["pending_id"]
    response = await client.post(f"/pending-cards/{first['card']}/resolve", json={"decision": "approve"})
    body = response.json()
    assert (response.status_code, body["outcome"]) == (200, "resumed")
    assert [(r["pending_id"], r["outcome"]) for r in body["results"]] == [
        (first["pending_id"], "recorded"),
        (second["pending_id"], "resumed"),
    ]
    assert [args["order_id"] for _, args in backend.ran] == ["A-1", "A-2"]
    assert await waiting(client) == []


async def test_a_card_that_is_not_known_is_not_found(client: httpx.AsyncClient) -> None:
    response = await client.post("/pending-cards/p_nothing/resolve", json={"decision": "deny"})
    assert (response.status_code, response.json()["outcome"]) == (404, "unknown")


@pytest.mark.parametrize(
    "body",
    [{}, {"decision": "maybe"}, {"decision": "approve", "scope": "always"}, {"decision": "deny", "x": 1}],
)
async def test_a_card_takes_a_yes_or_a_no_and_nothing_else(
    client: httpx.AsyncClient, backend: MemoryBackend, body: dict[str, Any]
) -> None:
    await ask(client, "both")
    (first, *_) = await waiting(client)
    response = await client.post(f"/pending-cards/{first['card']}/resolve", json=body)
    assert response.status_code == 422
    assert backend.ran == []


async def test_arguments_for_deciders_only_are_left_out_for_others(
    guarded: tuple[WebChannel, httpx.AsyncClient],
) -> None:
    _, client = guarded
    asked = await ask(client, "closed", headers=ALICE)
    for entry in await waiting(client, headers=ALICE):
        assert (entry["hidden"], entry["args"], entry["reveal"]) == (True, {}, "approvers")
    whole = await waiting(client, headers=BOSS)
    assert [(entry["hidden"], entry["args"]) for entry in whole] == [
        (False, {"order_id": "A-1"}),
        (False, {"order_id": "A-2"}),
    ]
    path = f"/sessions/{asked['session_id']}?html=1"
    cards = (await client.get(path, headers=ALICE)).json()["cards"]
    assert [(card["hidden"], card["fields"]) for card in cards] == [(True, []), (True, [])]


async def test_a_preview_says_of_what_kind_it_is(client: httpx.AsyncClient) -> None:
    await ask(client, "diff")
    (entry,) = await waiting(client)
    assert (entry["preview"], entry["preview_kind"]) == (DIFF, "diff")


async def test_a_picture_is_served_with_its_type_and_only_where_there_is_one(
    client: httpx.AsyncClient,
) -> None:
    await ask(client, "picture")
    await ask(client, "diff")
    pictured, plain = await waiting(client)
    response = await client.get(f"/page/previews/{pictured['pending_id']}")
    assert (response.status_code, response.content) == (200, PIXEL)
    assert response.headers["content-type"] == "image/png"
    assert response.headers["x-content-type-options"] == "nosniff"
    for pending_id in (plain["pending_id"], "nothing"):
        assert (await client.get(f"/page/previews/{pending_id}")).status_code == 404
