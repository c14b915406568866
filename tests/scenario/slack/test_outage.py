"""Long absences: of Slack, of a channel, of the app itself. What waits is kept, and what is over is said."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gateway.approvals import Approve
from gateway.messages import Actor
from gateway.resolutions import Click
from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    APPROVALS,
    BOB,
    GENERAL,
    HERS,
    TRANSPORTS,
    House,
    Scene,
    running,
)

NOTIFY = {"approvers": ("slack:T1:U2",), "notify": (f"slack:T1:{APPROVALS}",)}


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]


async def approve_elsewhere(scene: Scene) -> None:
    """Somebody decides the only open request, not on Slack."""
    (record,) = await scene.gateway.store.pendings()
    local = Actor("cli", "local", "local")
    result = await scene.gateway.resolutions.decide(
        Click(pending_id=record.id, resolution=Approve(), actor=local, via="the command line")
    )
    assert result.outcome == "resumed"


@TRANSPORTS
async def test_cards_edits_and_files_that_come_up_in_half_an_hour_without_slack_are_all_there_afterwards(
    house: House, server: SlackServer, transport: str
) -> None:
    clock = FakeClock()
    async with running(house, server, transport=transport, clock=clock) as scene:
        his = scene.call("pay B-1 50", BOB)
        card = await scene.card()
        await scene.rest()
        hers = scene.call("make then work")
        await house.at_work.wait()
        long = scene.call("slow words and many of them", channel="C2")
        await server.settled()
        await server.down()
        await approve_elsewhere(scene)
        house.let_go.set()
        await scene.passes(1800)
        await server.up()
        if transport == "socket":
            await scene.until(lambda: server.connections, "a connection")
        await scene.shows(card, "Approved by")
        assert card.labels == []
        await scene.sees("Result: paid 50 for B-1", thread=his.ts)
        await scene.sees("Result: made; worked", thread=hers.ts)
        await scene.sees("You said: slow words and many of them", "C2", thread=long.ts)
        scene.call("pay A-1 30")
        await scene.press(await scene.card(), "Approve")
        await scene.sees("Result: paid 30 for A-1")
        await scene.rest()
        files = [file.name for file in server.files.values() if file.shares]
        assert files == ["first.txt"]
        results = [text for text in scene.texts() if text.startswith("Result")]
        assert len(results) == 3
        assert [text for text in scene.texts() if text.startswith(("Using", "Working"))] == []


async def test_a_channel_that_is_archived_in_the_middle_shows_its_open_request_when_it_is_back(
    house: House, server: SlackServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(house, server, agent=house.agent(rule=NOTIFY)) as scene:
        scene.call("work", channel=APPROVALS)
        await house.at_work.wait()
        server.archive(APPROVALS)
        house.let_go.set()
        scene.call("pay A-1 30")
        mine = await scene.card()
        scene.say("hello", channel=HERS)
        await scene.sees("You said: hello", HERS)
        await scene.rest()
        given_up = [r for r in caplog.records if "given up" in r.getMessage()]
        assert len(given_up) == 2  # the answer, and the card
        assert scene.cards(channel=APPROVALS) == []
        server.channels[APPROVALS].archived = False
        server.emit({"type": "channel_unarchive", "channel": APPROVALS, "user": ADA}, APPROVALS)
        theirs = await scene.card(channel=APPROVALS)
        await scene.press(theirs, "Approve", BOB)
        await scene.shows(mine, "Approved by bob")
        await scene.sees("Result: paid 30 for A-1")
        await scene.rest()
    assert len(house.paid) == 1 and errors(caplog) == []


async def test_thrown_out_with_an_open_card_and_let_in_again_twice_the_request_is_there_once_each_time(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, agent=house.agent(rule=NOTIFY)) as scene:
        server.kick_bot(APPROVALS)
        scene.call("pay A-1 30")
        await scene.card()
        await scene.rest()
        server.invite_bot(APPROVALS)
        await scene.card(channel=APPROVALS)
        await scene.rest()
        server.kick_bot(APPROVALS)
        server.invite_bot(APPROVALS)
        await server.settled()
        await scene.rest()
        (theirs,) = scene.cards(channel=APPROVALS)
        await scene.press(theirs, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-1")
        assert len(house.paid) == 1


@TRANSPORTS
async def test_a_token_that_is_revoked_in_the_middle_is_said_once_and_a_new_one_goes_on_there(
    house: House, server: SlackServer, caplog: pytest.LogCaptureFixture, transport: str
) -> None:
    old, new = server.app.bot_token, "xoxb-2-the-new-token-of-the-tests"
    async with running(house, server, transport=transport) as scene:
        asked = scene.call("work")
        await house.at_work.wait()
        await server.settled()
        server.app.bot_token = new
        house.let_go.set()
        await scene.until(lambda: scene.channel.state == "refused", "that the token is refused")
    said = [line for line in errors(caplog) if "bot_token" in line]
    assert len(said) == 1 and "api.slack.com/apps" in said[0]
    assert old not in caplog.text and new not in caplog.text
    async with running(house, server, transport=transport) as scene:
        await scene.sees("Result: worked", thread=asked.ts)
        await scene.rest()
        assert [text for text in scene.texts() if text.startswith("Result")] == ["Result: worked"]
        assert [text for text in scene.texts() if text.startswith("Using")] == []


@TRANSPORTS
@pytest.mark.parametrize(
    "event", [{"type": "app_uninstalled"}, {"type": "tokens_revoked", "tokens": {"bot": ["UBOT"]}}]
)
async def test_an_app_that_is_taken_out_says_so_once_and_its_card_works_when_it_is_back(
    house: House,
    server: SlackServer,
    caplog: pytest.LogCaptureFixture,
    transport: str,
    event: dict[str, Any],
) -> None:
    async with running(house, server, transport=transport) as scene:
        scene.call("pay A-1 30")
        await scene.card()
        await scene.rest()
        server.emit(dict(event))
        await scene.until(lambda: scene.channel.state == "refused", "that the app is gone")
        if transport == "socket":
            await scene.until(lambda: not server.connections, "that nothing is received any more")
    assert len(errors(caplog)) == 1
    async with running(house, server, transport=transport) as scene:
        (card,) = scene.cards(channel=GENERAL)
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 30 for A-1")
    assert len(house.paid) == 1


async def test_tokens_of_somebody_else_that_are_revoked_are_none_of_ours(
    house: House, server: SlackServer
) -> None:
    async with running(house, server) as scene:
        for delivery in server.emit({"type": "tokens_revoked", "tokens": {"oauth": ["U1"], "bot": []}}):
            await delivery.taken()
        scene.call("hello")
        await scene.sees("You said: hello")
        assert scene.channel.state == "up"
