"""Socket Mode against the real handler of slack-bolt: each envelope once, and trouble on the line."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError

from tests.platforms.slack import Connection, Json, SlackServer
from tests.platforms.slack.driving import Listener


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
def listener(server: SlackServer) -> Listener:
    return Listener(server)


async def raw(server: SlackServer, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
    """A bare connection, past its hello."""
    ws = await session.ws_connect(server.open_ticket())
    hello = await ws.receive_json()
    assert hello["type"] == "hello"
    return ws


async def test_a_mention_comes_as_two_events_under_two_ids(server: SlackServer, listener: Listener) -> None:
    async with listener.connected():
        said = await server.say("U1", "C1", "<@UBOT> hi &gt; &lt;").taken()
    (mention,), (message,) = ([b["event"] for b in listener.of(kind)] for kind in ("app_mention", "message"))
    assert mention["ts"] == message["ts"] == said.ts
    assert len({body["event_id"] for body in listener.got}) == 2
    assert message["channel_type"] == "channel"
    assert message["blocks"][0]["elements"][0]["elements"] == [
        {"type": "user", "user_id": "UBOT"},
        {"type": "text", "text": " hi > <"},
    ]
    server.check()


async def test_each_envelope_goes_to_exactly_one_connection(server: SlackServer, listener: Listener) -> None:
    other = Listener(server)
    async with listener.connected(), other.connected():
        for number in range(6):
            await server.say("U1", "D1", f"{number}").taken()
    assert len(listener.got) == len(other.got) == 3
    texts = sorted(body["event"]["text"] for body in listener.got + other.got)
    assert texts == ["0", "1", "2", "3", "4", "5"]


async def test_an_event_without_an_answer_comes_again_with_its_number(
    server: SlackServer, listener: Listener
) -> None:
    async with aiohttp.ClientSession() as session:
        ws = await raw(server, session)
        said = server.say("U1", "D1", "x")
        first = await ws.receive_json()
        assert (first["type"], first["retry_attempt"]) == ("events_api", 0)
        server.advance(3.1)
        second = await ws.receive_json()
        assert (second["retry_attempt"], second["retry_reason"]) == (1, "timeout")
        assert second["payload"]["event_id"] == first["payload"]["event_id"]
        server.advance(3.1)
        server.advance(60)
        third = await ws.receive_json()
        assert third["retry_attempt"] == 2
        await ws.send_json({"envelope_id": third["envelope_id"]})
        await said.taken()
        await ws.close()
    server.check()


async def test_after_three_repetitions_slack_gives_up(server: SlackServer) -> None:
    said = server.say("U1", "D1", "nobody is there")
    (delivery,) = said.deliveries
    for seconds in (0, 0.1, 60.1, 300.1):
        await server.wait_for(lambda: delivery.timer is not None or delivery.failed)
        server.advance(seconds)
    await server.wait_for(lambda: delivery.failed)
    assert [attempt.retry for attempt in delivery.attempts] == [0, 1, 2, 3]
    assert delivery.failed == "no_connection"


async def test_a_press_is_not_repeated_and_its_person_sees_an_error(
    server: SlackServer, listener: Listener
) -> None:
    ts = (await post_button(listener))["ts"]
    async with aiohttp.ClientSession() as session:
        ws = await raw(server, session)
        delivery = server.press("U1", "C1", ts, "Go")
        await server.wait_for(lambda: not delivery.failed and delivery.attempts[0].envelope_id)
        server.advance(3.1)
        assert delivery.failed == "timeout"
        assert server.troubles == [("U1", "block_actions", "timeout")]
        with pytest.raises(AssertionError, match="given up"):
            await delivery.taken()
        await ws.close()


async def post_button(listener: Listener) -> Any:
    element = {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": "a", "value": "v"}
    return await listener.client.chat_postMessage(
        channel="C1", text="card", blocks=[{"type": "actions", "block_id": "b", "elements": [element]}]
    )


async def test_a_wrong_acknowledgement_fails_the_test(server: SlackServer) -> None:
    async with aiohttp.ClientSession() as session:
        ws = await raw(server, session)
        said = server.say("U1", "D1", "x")
        frame = await ws.receive_json()
        await ws.send_json({"envelope_id": frame["envelope_id"], "payload": {"text": "no"}})
        await said.taken()
        await ws.send_json({"envelope_id": frame["envelope_id"]})
        await ws.send_json({"envelope_id": "none"})
        await server.wait_for(lambda: len(server.failures) == 3)
        await ws.close()
    assert "a payload in the acknowledgement" in server.failures[0]
    assert "twice" in server.failures[1]
    assert "unknown envelope" in server.failures[2]


async def test_the_client_comes_back_after_a_warning_and_after_a_refresh(
    server: SlackServer, listener: Listener
) -> None:
    def replaced(old: Connection, count: int) -> bool:
        return server.connected == count and old not in server.connections

    async with listener.connected():
        for number, reason in enumerate(("warning", "refresh_requested"), start=2):
            (old,) = await server.wait_connections(1)
            await server.disconnect(reason)
            await server.wait_for(functools.partial(replaced, old, number))
            await server.wait_connections(1)
            await server.say("U1", "D1", reason).taken()
    assert [body["event"]["text"] for body in listener.got] == ["warning", "refresh_requested"]


async def test_a_half_open_connection_takes_envelopes_and_answers_none(
    server: SlackServer, listener: Listener
) -> None:
    other = Listener(server)
    async with listener.connected(ping_interval=30), other.connected(ping_interval=30):
        frozen, _ = await server.wait_connections(2)
        server.freeze(frozen)
        said = [server.say("U1", "D1", "one"), server.say("U1", "D1", "two")]
        await server.wait_for(lambda: sum(d.acked for s in said for d in s.deliveries) == 1)
        server.advance(3.1)
        for one in said:
            await one.taken()
        server.thaw()
        await server.settled()
    assert len(other.got) + len(listener.got) == 3
    server.check()


async def test_an_unanswered_envelope_of_a_lost_connection_goes_to_another(
    server: SlackServer, listener: Listener
) -> None:
    async with aiohttp.ClientSession() as session:
        ws = await raw(server, session)
        said = server.say("U1", "D1", "x")
        await ws.receive_json()
        async with listener.connected():
            server.drop(server.connections[0])
            await said.taken()
    retries = [(attempt.retry, attempt.reason) for attempt in said.deliveries[0].attempts]
    assert retries == [(0, ""), (1, "connection_closed")]


async def test_the_eleventh_connection_is_turned_away(server: SlackServer) -> None:
    async with aiohttp.ClientSession() as session:
        sockets = [await raw(server, session) for _ in range(10)]
        late = await session.ws_connect(server.open_ticket())
        frame: Json = await late.receive_json()
        assert (frame["type"], frame["reason"]) == ("disconnect", "too_many_websockets")
        for ws in [*sockets, late]:
            await ws.close()


async def test_a_ticket_is_good_once_and_none_is_given_when_the_link_is_disabled(
    server: SlackServer, listener: Listener
) -> None:
    ticket = server.open_ticket()
    async with aiohttp.ClientSession() as session:
        ws = await session.ws_connect(ticket)
        await ws.close()
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(ticket)
    await server.disconnect("link_disabled")
    with pytest.raises(SlackApiError):
        await listener.client.apps_connections_open(app_token=server.app.app_token)


async def test_the_app_hears_its_own_messages_and_edits(server: SlackServer, listener: Listener) -> None:
    async with listener.connected():
        ts = (await listener.client.chat_postMessage(channel="C1", text="one"))["ts"]
        await listener.client.chat_update(channel="C1", ts=ts, text="two")
        await listener.client.chat_delete(channel="C1", ts=ts)
        await server.settled()
    kinds = [body["event"].get("subtype") for body in listener.of("message")]
    assert kinds == [None, "message_changed", "message_deleted"]
    assert listener.got[0]["event"]["bot_id"] == "B1"


async def test_only_what_is_subscribed_and_seen_is_told(server: SlackServer, listener: Listener) -> None:
    server.app.events.discard("message.channels")
    server.app.scopes.discard("im:history")
    assert server.say("U1", "C1", "no subscription").deliveries == []
    assert server.say("U1", "D1", "no scope").deliveries == []
    assert server.say("U1", "C3", "no member").deliveries == []
    (mention,) = server.say("U1", "C1", "<@UBOT>").deliveries
    assert mention.payload_type == "app_mention"
