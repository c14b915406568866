"""HTTP delivery: signed, repeated on Slack's schedule, and forged, old or sent twice where a test asks."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from tests.platforms.slack import Json, SlackServer
from tests.platforms.slack.driving import Listener


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
async def listener(server: SlackServer) -> AsyncIterator[Listener]:
    listener = Listener(server)
    async with listener.listening() as address:
        server.deliver_to(address)
        yield listener


async def test_the_address_is_verified(server: SlackServer, listener: Listener) -> None:
    assert await server.verify_url()


async def test_a_request_that_slack_did_not_sign_is_refused(server: SlackServer, listener: Listener) -> None:
    body = json.dumps(server.wrapped({"type": "app_mention", "text": "x", "user": "U1", "ts": "1.1"}))
    now = int(time.time())
    assert (await server.post_signed(body))[0] == 200
    assert (await server.post_signed(body, secret="another"))[0] == 401
    assert (await server.post_signed(body, signature=""))[0] == 401
    assert (await server.post_signed(body, signature="v0=0"))[0] == 401
    assert (await server.post_signed(body, timestamp=str(now - 600)))[0] == 401
    assert len(listener.got) == 1


async def test_an_event_that_fails_comes_again_at_once_after_a_minute_and_after_five(
    server: SlackServer, listener: Listener
) -> None:
    async def fail(body: Json) -> None:
        raise RuntimeError("not stored")

    listener.answers["message"] = fail
    (delivery,) = server.say("U1", "D1", "x").deliveries
    await server.wait_for(lambda: len(listener.got) == 2 and delivery.timer is not None)
    assert server.retry_now() == 1
    await server.wait_for(lambda: len(listener.got) == 3 and delivery.timer is not None)
    del listener.answers["message"]
    server.advance(299)
    assert delivery.timer is not None
    server.advance(2)
    await delivery.taken()
    assert [attempt.retry for attempt in delivery.attempts] == [0, 1, 2, 3]
    assert {attempt.failed for attempt in delivery.attempts} == {"http_error", ""}
    assert len({body["event_id"] for body in listener.got}) == 1


async def test_a_slow_answer_is_no_answer(server: SlackServer, listener: Listener) -> None:
    gate = asyncio.Event()

    async def wait(body: Json) -> None:
        await gate.wait()

    server.ack_within = 0.05
    listener.answers["command"] = wait
    delivery = server.slash("U1", "C1", "status")
    await server.wait_for(lambda: delivery.failed)
    gate.set()
    assert server.troubles == [("U1", "slash_commands", "http_timeout")]
    assert len(delivery.attempts) == 1


async def test_words_in_the_answer_to_a_command_are_shown_to_its_author(
    server: SlackServer, listener: Listener
) -> None:
    async def answer(body: Json) -> Json:
        return {"text": f"you said {body['text']}"}

    listener.answers["command"] = answer
    await server.slash("U1", "C1", "status").taken()
    assert [entry["text"] for entry in server.ephemerals("U1")] == ["you said status"]


async def test_nobody_listening_is_a_failed_attempt(server: SlackServer) -> None:
    server.deliver_to("http://127.0.0.1:1/slack/events")
    (delivery,) = server.say("U1", "D1", "x").deliveries
    await server.wait_for(lambda: len(delivery.attempts) == 2 and delivery.timer is not None)
    assert delivery.attempts[0].failed == "connection_failed"


def test_a_manifest_must_fit_together() -> None:
    server = SlackServer()
    manifest: Json = {
        "display_information": {"name": "threadgate"},
        "features": {
            "slash_commands": [{"command": "/threadgate"}],
            "shortcuts": [{"callback_id": "ask_about"}],
        },
        "oauth_config": {"scopes": {"bot": ["commands", "chat:write"]}},
        "settings": {"event_subscriptions": {"bot_events": ["app_mention"]}},
    }
    with pytest.raises(AssertionError, match="app_mentions:read"):
        server.install(manifest)
    manifest["oauth_config"]["scopes"]["bot"].append("app_mentions:read")
    server.install(manifest)
    assert server.app.events == {"app_mention"}
