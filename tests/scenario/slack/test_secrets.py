"""With every logger turned up as far as it goes, a whole life of the gateway tells no secret to anybody."""

from __future__ import annotations

import json
import logging

import pytest

from channels.slack.redact import LIBRARY
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import ADA, BOB, GENERAL, HERS, TRANSPORTS, House, Scene, running

LOUD = ("", "channels.slack", "channels.slack.library", "slack_sdk", "slack_bolt", "aiohttp", "gateway")
TOKENS = ("xoxb-", "xapp-")


async def a_whole_life(scene: Scene) -> None:
    """Everything that can be pressed, typed and refused."""
    server = scene.server
    for name in LOUD:
        logging.getLogger(name).setLevel(logging.DEBUG)
    scene.call("pay A-1 30")
    card = await scene.card()
    await scene.press(card, "Approve", BOB)
    await server.press(ADA, card.channel, card.ts, "Edit").taken()
    await server.wait_view(ADA)
    assert (await server.submit_view(ADA, {"amount": "1e999"})).outcome == "errors"
    assert (await server.submit_view(ADA, {"amount": "7"})).outcome == "closed"
    await scene.sees("Result: ")
    server.fail_next("views.open", "expired_trigger_id")
    scene.call("ask")
    question = await scene.card("Other…")
    before = len(scene.whispers(ADA))
    await server.press(ADA, question.channel, question.ts, "Other…").taken()
    assert "could not be opened" in await scene.told(ADA, before)
    for trouble in (500, "html", "drop", 404):
        server.fail_next("response_url", trouble)
        await server.slash(ADA, GENERAL, "status").taken()
    await scene.command("pending")
    server.fail_next("chat.postMessage", "drop")
    server.fail_next("chat.postMessage", "invalid_blocks")
    scene.say("hello", channel=HERS, files=[("a.txt", b"content")])
    said = scene.say("look at this", BOB)
    await server.shortcut(ADA, GENERAL, said.ts).taken()
    await server.wait_view(ADA)
    await server.submit_view(ADA, {})
    server.open_home(ADA)
    server.drop()
    await scene.rest()
    server.app.bot_token = "xoxb-9-another"
    scene.say("are you there?", channel=HERS)
    await server.settled()


@TRANSPORTS
async def test_nothing_that_is_logged_said_or_stored_holds_a_secret(
    house: House, server: SlackServer, caplog: pytest.LogCaptureFixture, transport: str
) -> None:
    levels = {name: logging.getLogger(name).level for name in LOUD}
    app = server.app
    secrets = {app.bot_token, app.app_token, app.signing_secret, app.verification}
    try:
        with caplog.at_level(logging.DEBUG):
            async with running(house, server, transport=transport) as scene:
                await a_whole_life(scene)
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
    assert LIBRARY.name in {record.name for record in caplog.records}
    secrets |= {*server.response_urls, *server.triggers}
    shown = json.dumps([list(channel.messages.values()) for channel in server.channels.values()])
    shown += json.dumps(list(server.ephemeral.values()))
    stored = (house.folder / "gateway.db").read_bytes() + b"".join(
        path.read_bytes() for path in house.folder.glob("gateway.db-*")
    )
    assert [secret for secret in secrets if secret in caplog.text] == []
    assert [secret for secret in secrets if secret in shown] == []
    assert [secret for secret in secrets if secret.encode() in stored] == []
    assert not any(token in caplog.text for token in TOKENS)
    assert "ticket=" not in caplog.text or "ticket=<redacted>" in caplog.text
