"""No token, signing secret or ticket gets into a log, however much somebody turns it up."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from channels.base import Attachment, ChannelError, OutboundMessage, ThreadKey
from channels.slack.redact import LIBRARY
from tests.contracts.harness import Inbox
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import Transport, running

ROOT = ThreadKey("slack", "T1", "C1", "")
TALKATIVE = ("channels.slack", "channels.slack.library", "slack_sdk", "slack_bolt", "aiohttp", "asyncio")


@pytest.fixture
def everything(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All loggers at DEBUG."""
    before = LIBRARY.level
    with caplog.at_level(logging.DEBUG):
        for name in TALKATIVE:
            caplog.set_level(logging.DEBUG, name)
        yield caplog
    LIBRARY.setLevel(before)


@pytest.mark.parametrize("over", ["socket", "http"])
async def test_nothing_that_is_logged_holds_a_secret(
    server: SlackServer,
    inbox: Inbox,
    tmp_path: Path,
    everything: pytest.LogCaptureFixture,
    over: Transport,
) -> None:
    file = server.file("U1", "a.txt", b"content")
    async with running(server, inbox, over) as channel:
        for name in TALKATIVE:
            everything.set_level(logging.DEBUG, name)
        await server.say("U1", "D1", "hello").taken()
        await server.slash("U1", "C1", "status").taken()
        for what in ("invalid_blocks", 500, 429, "drop", "html", "token_revoked"):
            server.fail_next("chat.postMessage", what, retry_after=0)
            with pytest.raises(ChannelError) as caught:
                await channel.send(ROOT, OutboundMessage(text="hello"))
            assert server.app.bot_token not in str(caught.value)
        server.fail_next("download", "html")
        with pytest.raises(ChannelError):
            await channel.fetch_file(
                Attachment(file_id=file.id, name="a", media_type="a/b", size=0), tmp_path / "in", 100
            )
        server.drop()
    secrets = [server.app.bot_token, server.app.app_token, server.app.signing_secret, *server.response_urls]
    assert LIBRARY.name in {record.name for record in everything.records}
    assert [secret for secret in secrets if secret in everything.text] == []
    tickets = [line for line in everything.text.splitlines() if "ticket=" in line]
    assert [line for line in tickets if "ticket=<redacted>" not in line] == []
