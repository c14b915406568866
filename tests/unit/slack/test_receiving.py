"""Both ways in, over real sockets: connections that come and go, and requests that Slack did not sign."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from typing import Any
from urllib.parse import urlencode

import pytest

from channels.base import ChannelDown
from channels.posted import LARGEST
from channels.slack.errors import SocketModeOff, TokenRefused
from channels.slack.listener import is_signed, signature
from channels.slack.sockets import LONGEST, LONGEST_DOWN, _backoff
from tests.contracts.harness import Inbox
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import Transport, begin, quick, running

FORM = "application/x-www-form-urlencoded"


async def at_once(seconds: float) -> None:
    """A sleep that takes no time, so that no test waits for a pause between two tries."""
    await asyncio.sleep(0)


# ---- Socket Mode


async def test_as_many_connections_are_opened_as_were_asked_for(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, connections=3):
        await server.wait_connections(3)
        server.say("U1", "D1", "hello")
        await inbox.wait_for(lambda: inbox.messages)
    assert server.connections == []
    assert server.connected == 3


async def test_c081_a_after_an_outage_it_is_back_with_new_connections(
    server: SlackServer, inbox: Inbox
) -> None:
    states: list[str] = []
    gone, back = asyncio.Event(), asyncio.Event()

    def note(state: str) -> None:
        states.append(state)
        (back if state == "up" and "down" in states else gone if state == "down" else asyncio.Event()).set()

    async with running(server, inbox, on_state=note) as channel:
        await server.wait_connections(2)
        await server.down()
        async with asyncio.timeout(10):
            await gone.wait()
        assert channel.state == "down"
        await server.up()
        async with asyncio.timeout(30):
            await back.wait()
        await server.wait_connections(2, within=30)
        await server.say("U1", "D1", "still there?").taken()
        assert [m.text for m in inbox.messages] == ["still there?"]
    # A connection may be back for a moment while the network goes.
    assert states[:2] == ["up", "down"]
    assert states[-2:] == ["up", "stopped"]


async def test_c081_b_a_half_open_connection_is_noticed_and_replaced(
    server: SlackServer, inbox: Inbox
) -> None:
    states: list[str] = []
    async with running(server, inbox, connections=1, ping_seconds=0.05, on_state=states.append):
        frozen = await server.wait_connections(1)
        server.freeze()
        await server.wait_for(lambda: server.connected >= 2)
        await inbox_hears(server, inbox, "again", unlike={c.id for c in frozen})
    assert states[:3] == ["up", "down", "up"]


async def inbox_hears(server: SlackServer, inbox: Inbox, text: str, unlike: set[str]) -> None:
    """A message arrives, by none of these connections in the end."""
    for connection in list(server.connections):
        if connection.id in unlike:
            server.drop(connection)
    await server.wait_for(lambda: not {c.id for c in server.connections} & unlike)
    await server.say("U1", "D1", text).taken()
    assert inbox.messages[-1].text == text


async def test_c081_b_while_one_connection_lives_the_channel_is_up(server: SlackServer, inbox: Inbox) -> None:
    states: list[str] = []
    async with running(server, inbox, ping_seconds=0.05, on_state=states.append):
        first, _ = await server.wait_connections(2)
        server.freeze(first)
        await server.wait_for(lambda: server.connected >= 3)
    assert states == ["up", "stopped"]


async def test_c081_c_ten_renewals_in_a_row_leave_no_socket_behind(server: SlackServer, inbox: Inbox) -> None:
    too_many = asyncio.create_task(server.wait_for(lambda: len(server.connections) > 2, 60))
    async with running(server, inbox, sleep=at_once):
        for number in range(10):
            before = server.connected
            await server.wait_connections(2)
            await server.disconnect("refresh_requested")
            await server.wait_for(lambda before=before: server.connected >= before + 2)  # type: ignore[misc]
            await server.wait_connections(2)
            await server.say("U1", "D1", f"number {number}").taken()
    assert not too_many.done()
    too_many.cancel()
    assert sorted({m.text for m in inbox.messages}) == sorted(f"number {n}" for n in range(10))


@pytest.mark.parametrize("reason", ["warning", "refresh_requested", "too_many_websockets"])
async def test_a_renewal_of_all_connections_loses_nothing_and_leaves_no_gap(
    server: SlackServer, inbox: Inbox, reason: str
) -> None:
    states: list[str] = []
    async with running(server, inbox, sleep=at_once, on_state=states.append):
        first, second = await server.wait_connections(2)
        said = [server.say("U1", "D1", f"first {n}") for n in range(2)]
        for message in said:  # one by each connection, so that both are at work
            await message.taken()
        said += [server.say("U1", "D1", f"before {n}") for n in range(5)]
        for connection in (first, second):
            before = server.connected
            await server.disconnect(reason, connection)
            during = server.say("U1", "D1", f"during {connection.id}")
            await server.wait_for(lambda before=before: server.connected > before)  # type: ignore[misc]
            await server.wait_connections(2)
            each = [server.say("U1", "D1", f"after {connection.id} {n}") for n in range(2)]
            said += [during, *each]
            for message in each:
                await message.taken()
        for message in said:
            await message.taken()
        await server.wait_connections(2)
        assert server.connected == 4
    assert {m.message_id for m in inbox.messages} == {message.ts for message in said}
    assert states == ["up", "stopped"]


async def test_what_is_in_hand_is_acknowledged_before_its_connection_is_renewed(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox, connections=1, sleep=at_once), server.held("users.info") as held:
        said = server.say("U1", "D1", "slowly")
        await server.wait_for(lambda: held.waiting)
        await server.disconnect("warning")
        held.release()
        await said.taken()
        await server.wait_for(lambda: server.connected == 2)
        assert len(said.deliveries[0].attempts) == 1


async def test_a_connection_that_is_cut_is_replaced_at_once(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, connections=1):
        await server.wait_connections(1)
        server.drop()
        await server.wait_for(lambda: server.connected == 2)
        await server.say("U1", "D1", "hello").taken()


async def test_c081_e_a_refused_app_token_ends_the_start_with_one_clear_line(
    server: SlackServer, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    channel = quick(server, app_token="xapp-1-A1-not-the-right-one")
    with caplog.at_level(logging.DEBUG), pytest.raises(TokenRefused) as caught:
        await channel.start(inbox)
    assert caught.value.setting == "app_token"
    assert channel.state == "refused"
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(told) == 1
    assert "not-the-right-one" not in caplog.text
    assert "not-the-right-one" not in str(caught.value)


async def test_c081_e_a_refused_bot_token_ends_the_start(server: SlackServer, inbox: Inbox) -> None:
    with pytest.raises(TokenRefused) as caught:
        await quick(server, bot_token="xoxb-1-not-the-right-one").start(inbox)
    assert caught.value.setting == "bot_token"
    assert server.connected == 0


async def test_an_app_without_socket_mode_is_said_to_have_none(server: SlackServer, inbox: Inbox) -> None:
    server.link_enabled = False
    with pytest.raises(SocketModeOff):
        await quick(server).start(inbox)


async def test_socket_mode_that_is_switched_off_meanwhile_ends_the_channel(
    server: SlackServer, inbox: Inbox
) -> None:
    off = asyncio.Event()
    async with running(server, inbox, on_state=lambda s: off.set() if s == "refused" else None) as channel:
        await server.wait_connections(2)
        await server.disconnect("link_disabled")
        async with asyncio.timeout(10):
            await off.wait()
        assert isinstance(channel.refused, SocketModeOff)
    assert server.connections == []


async def test_when_slack_is_away_at_the_start_it_goes_on_trying(server: SlackServer, inbox: Inbox) -> None:
    await server.down()
    channel = quick(server)
    await channel.start(inbox)
    assert channel.state == "down"
    await server.up()
    await server.wait_connections(2, within=30)
    await server.say("U1", "D1", "at last").taken()
    assert [m.text for m in inbox.messages] == ["at last"]
    await channel.stop()


async def test_stopping_while_slack_is_away_does_not_wait_for_it(server: SlackServer, inbox: Inbox) -> None:
    await server.down()
    channel = quick(server)
    await channel.start(inbox)
    async with asyncio.timeout(5):
        await channel.stop()
    assert channel.state == "stopped"


def test_pauses_between_tries_grow_from_none_to_the_longest() -> None:
    assert [_backoff(n, LONGEST) for n in (0, 1)] == [0.0, 0.0]
    pauses = [_backoff(n, LONGEST) for n in range(2, 20)]
    assert pauses[0] <= 1.0
    assert 45.0 <= pauses[-1] <= LONGEST
    assert _backoff(50, LONGEST_DOWN) <= 30.0


@pytest.mark.parametrize(
    ("tokens", "setting"),
    [
        ({"bot_token": "xoxp-1-user"}, "bot_token"),
        ({"bot_token": ""}, "bot_token"),
        ({"app_token": "xoxb-1-swapped"}, "app_token"),
        ({"app_token": None}, "app_token"),
    ],
)
async def test_a_token_of_the_wrong_kind_is_refused_before_anything_is_sent(
    server: SlackServer, tokens: dict[str, Any], setting: str
) -> None:
    with pytest.raises(TokenRefused) as caught:
        quick(server, **tokens)
    assert caught.value.setting == setting
    assert "user" not in str(caught.value)
    assert server.calls == []


# ---- HTTP


def press_body(server: SlackServer) -> bytes:
    """A well-formed interaction that approves something."""
    payload = {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": "U1", "team_id": "T1"},
        "api_app_id": server.app.id,
        "container": {"type": "message", "message_ts": "100.1", "channel_id": "C1"},
        "channel": {"id": "C1"},
        "message": {"ts": "100.1"},
        "actions": [
            {
                "type": "button",
                "action_id": "press:1:v1:p_x:approve",
                "value": "v1:p_x:approve",
                "action_ts": "200.1",
            }
        ],
    }
    return urlencode({"payload": json.dumps(payload)}).encode()


BODIES = {
    "event": (
        json.dumps({"type": "event_callback", "event": {"type": "message"}}).encode(),
        "application/json",
    ),
    "command": (urlencode({"command": "/threadgate", "channel_id": "C1", "user_id": "U1"}).encode(), FORM),
    "options": (urlencode({"payload": json.dumps({"type": "block_suggestion"})}).encode(), FORM),
    "interaction": (b"", FORM),
}


MINUTES = {"ten minutes ago": -10, "in ten minutes": 10}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(
    "forged",
    [
        {"signature": ""},
        {"signature": "v0=" + "0" * 64},
        {"signature": "v0=\u00e4"},
        {"secret": "of somebody else"},
        {"timestamp": "ten minutes ago"},
        {"timestamp": "in ten minutes"},
        {"timestamp": "abc"},
        {"timestamp": ""},
        {"timestamp": "9" * 5000},
        {"timestamp": "-1"},
    ],
    ids=lambda value: str(value)[:40],
)
async def test_c083_what_slack_did_not_sign_now_is_refused_whatever_it_is(
    server: SlackServer, inbox: Inbox, kind: str, forged: dict[str, str]
) -> None:
    async with running(server, inbox, "http"):
        body, content_type = BODIES[kind]
        stamp = forged.get("timestamp", "")
        if stamp in MINUTES:
            forged = {"timestamp": str(int(time.time()) + 60 * MINUTES[stamp])}
        status, _ = await server.post_signed(body or press_body(server), content_type=content_type, **forged)
        assert status == 401
        assert inbox.attempts == 0


async def test_c083_without_a_secret_nothing_is_let_in(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, "http", signing_secret=""):
        for secret in ("", "guessed"):
            status, _ = await server.post_signed(press_body(server), content_type=FORM, secret=secret)
            assert status == 401
        assert inbox.attempts == 0


async def test_c083_forged_requests_do_not_fill_the_log(
    server: SlackServer, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(server, inbox, "http"):
        for _ in range(5):
            await server.post_signed(b"{}", signature="v0=0")
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) == 1


async def test_c083_a_captured_request_that_is_sent_again_is_the_same_press(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox, "http"):
        stamp = str(int(time.time()))
        for _ in range(2):
            status, text = await server.post_signed(press_body(server), content_type=FORM, timestamp=stamp)
            assert (status, text) == (200, "")
    first, second = inbox.presses
    assert (first.thread, first.action_id, first.data) == (second.thread, second.action_id, second.data)


def test_the_signature_covers_the_bytes_and_the_time() -> None:
    body, stamp = b'{"a": "\xff"}', "1700000000"
    headers = {"x-slack-request-timestamp": stamp, "x-slack-signature": signature("s", stamp, body)}
    assert is_signed("s", headers, body, 1_700_000_000.0)
    assert is_signed("s", headers, body, 1_700_000_299.0)
    assert not is_signed("s", headers, body, 1_700_000_301.0)
    assert not is_signed("s", headers, body + b" ", 1_700_000_000.0)
    assert not is_signed("", headers, body, 1_700_000_000.0)
    assert not is_signed("s", {**headers, "x-slack-request-timestamp": "1700000001"}, body, 1_700_000_000.0)
    assert not is_signed("s", {}, body, 1_700_000_000.0)


def test_the_signature_is_that_of_slacks_own_example() -> None:
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
        b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    assert signature("8f742231b10e8888abcd99yyyzzz85a5", "1531420618", body) == (
        "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
    )


async def test_the_challenge_of_slack_is_answered(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, "http"):
        assert await server.verify_url()


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"x" * (LARGEST + 1), "application/json", 413),
        (b"{}", "text/plain", 415),
        (b"{", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"payload=nonsense", FORM, 400),
        (b"payload=%5B1%5D", FORM, 400),
        (b"", FORM, 200),
        (b"{}", "application/json; charset=utf-8", 200),
        (b'{"authorizations": {"a": 1}, "type": "event_callback", "event": 5}', "application/json", 200),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_bodies_that_are_none_of_slacks_do_no_harm(
    server: SlackServer, inbox: Inbox, body: bytes, content_type: str, status: int
) -> None:
    async with running(server, inbox, "http"):
        answered, _ = await server.post_signed(body, content_type=content_type)
        assert answered == status
        await server.say("U1", "D1", "still there?").taken()
        assert [m.text for m in inbox.messages] == ["still there?"]


async def test_only_the_one_path_is_served(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, "http") as channel:
        url = f"http://127.0.0.1:{channel.http_port}/other"
        assert (await server.post_signed(b"{}", url=url))[0] == 404


async def test_a_command_that_speaks_of_a_payload_is_not_lost(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, "http"):
        await server.slash("U1", "C1", "new what is a payload?").taken()
        assert [m.text for m in inbox.messages] == ["/new what is a payload?"]


async def test_what_could_not_be_stored_is_answered_with_500(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, "http"):
        inbox.refuse(1000)
        said = server.say("U1", "D1", "hello").deliveries[0]
        await server.wait_for(lambda: said.attempts[0].failed)
        inbox.refuse(inbox.attempts - 1000)
        await server.wait_for(lambda: said.acked)
        assert [attempt.failed for attempt in said.attempts] == ["http_error", ""]


@pytest.mark.parametrize("over", ["socket", "http"])
async def test_storing_an_interaction_is_tried_again_for_a_moment_only(
    server: SlackServer, inbox: Inbox, over: Transport
) -> None:
    server.ack_within = 1.0
    async with running(server, inbox, over) as channel:
        inbox.refuse(2)
        await server.slash("U1", "C1", "new").taken()
        assert inbox.attempts == 3
        inbox.refuse(1000)
        lost = server.slash("U1", "C1", "stop")
        await server.wait_for(lambda: lost.failed)
        assert 4 < inbox.attempts < 20
        assert channel.state == "up"
    assert [m.text for m in inbox.messages] == ["/new"]


async def test_a_port_that_is_taken_is_said_to_be(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox, "http") as first:
        second = quick(server, "http", listen=("127.0.0.1", first.http_port))
        with pytest.raises(ChannelDown):
            await second.start(inbox)


async def test_over_http_nothing_is_stored_before_slack_has_told_who_we_are(
    server: SlackServer, inbox: Inbox
) -> None:
    server.fail_next("auth.test", 503, times=3)
    up = asyncio.Event()
    channel = quick(server, "http", on_state=lambda state: up.set() if state == "up" else None)
    await begin(server, channel, inbox)
    assert (channel.state, channel.me) == ("down", None)
    said = server.say("U1", "D1", "hello")
    async with asyncio.timeout(10):
        await up.wait()
    await server.wait_for(lambda: server.retry_now() or said.deliveries[0].acked)
    await said.taken()
    assert [m.text for m in inbox.messages] == ["hello"]
    await channel.stop()
