"""Being posted to instead of polling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from channels.base import ChannelDown
from channels.posted import LARGEST
from channels.telegram.adapter import TelegramChannel
from channels.telegram.webhook import HEADER, WebhookSettings
from tests.contracts.harness import Inbox
from tests.platforms.telegram import TelegramServer
from tests.platforms.telegram.driving import TOKEN, quick
from tests.platforms.telegram.pushing import pushed
from tests.scenario.telegram.conftest import ADA

SETTINGS = WebhookSettings(url="https://bot.example:8443/hooks/telegram", secret="s3cret_-", port=0)


@dataclass
class Hooked:
    server: TelegramServer
    channel: TelegramChannel
    inbox: Inbox

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.channel.webhook_port}/hooks/telegram"


@pytest.fixture
async def hooked(server: TelegramServer) -> AsyncIterator[Hooked]:
    channel = quick(server, webhook=SETTINGS)
    hooked = Hooked(server, channel, Inbox())
    await channel.start(hooked.inbox)
    yield hooked
    await channel.stop()


async def test_telegram_is_told_where_to_post_and_with_which_secret(hooked: Hooked) -> None:
    assert hooked.server.bots[TOKEN].webhook == {"url": SETTINGS.url, "secret_token": SETTINGS.secret}
    [call] = hooked.server.calls("setWebhook")
    assert call.values["max_connections"] == "16"
    assert "my_chat_member" in call.values["allowed_updates"]


async def test_an_update_that_is_posted_comes_in(hooked: Hooked) -> None:
    hooked.server.say(ADA, ADA, "one")
    hooked.server.say(ADA, ADA, "two")
    assert await hooked.server.post_updates(hooked.address) == [200, 200]
    assert [m.text for m in hooked.inbox.messages] == ["one", "two"]


async def test_an_update_that_was_not_stored_is_not_acknowledged(hooked: Hooked) -> None:
    hooked.inbox.refuse(1)
    hooked.server.say(ADA, ADA, "keep me")
    assert await hooked.server.post_updates(hooked.address) == [503]
    assert await hooked.server.post_updates(hooked.address) == [200]
    assert [m.text for m in hooked.inbox.messages] == ["keep me"]


@pytest.mark.parametrize("secret", ["", "wrong", SETTINGS.secret + "x"])
async def test_without_the_secret_nothing_counts(hooked: Hooked, secret: str) -> None:
    hooked.server.say(ADA, ADA, "forged")
    assert await hooked.server.post_updates(hooked.address, secret) == [403]
    assert hooked.inbox.attempts == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 400), (b"[]", 400), (b"{}", 400), (b"x" * (LARGEST + 1), 413)],
    ids=["empty", "a list", "no id", "too large"],
)
async def test_what_is_no_update_is_refused(hooked: Hooked, body: bytes, status: int) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(hooked.address, content=body, headers={HEADER: SETTINGS.secret})
        elsewhere = await client.post(hooked.address + "/x", content=body, headers={HEADER: SETTINGS.secret})
        read = await client.get(hooked.address, headers={HEADER: SETTINGS.secret})
    assert (answer.status_code, elsewhere.status_code, read.status_code) == (status, 404, 404)
    assert hooked.inbox.attempts == 0


async def test_a_webhook_that_was_taken_away_is_set_again(hooked: Hooked) -> None:
    hooked.server.bots[TOKEN].webhook = {}
    await hooked.server.wait_for(lambda: len(hooked.server.calls("setWebhook")) == 2)
    assert hooked.server.bots[TOKEN].webhook["url"] == SETTINGS.url


async def test_a_port_that_is_taken_is_told_before_anything_starts(hooked: Hooked) -> None:
    taken = replace(SETTINGS, port=hooked.channel.webhook_port)
    second = quick(hooked.server, webhook=taken)
    with pytest.raises(ChannelDown, match="port"):
        await second.start(Inbox())
    await second.stop()


@pytest.mark.parametrize("url", ["http://bot.example/x", "https://bot.example:9000/x", "nonsense"])
def test_an_address_that_telegram_would_refuse_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        WebhookSettings(url=url, secret="s")


@pytest.mark.parametrize("secret", ["", "no spaces", "x" * 257])
def test_a_secret_that_telegram_would_refuse_is_refused_at_once(secret: str) -> None:
    with pytest.raises(ValueError, match="secret"):
        WebhookSettings(url="https://bot.example/x", secret=secret)


def photo(number: int, album: str = "g1") -> dict[str, Any]:
    size = {"file_id": f"P{number}", "file_unique_id": "u", "width": 1, "height": 1, "file_size": 5}
    return {"photo": [size], "media_group_id": album}


async def test_an_album_that_is_posted_by_several_connections_is_one_message(hooked: Hooked) -> None:
    for number in (1, 2, 3):
        hooked.server.say(ADA, ADA, "", [], **photo(number))
    hooked.server.say(ADA, ADA, "and now?")
    async with pushed(hooked.server, hooked.address) as pusher:
        album, after = await hooked.inbox.wait_for(
            lambda: hooked.inbox.messages if len(hooked.inbox.messages) == 2 else []
        )
        await hooked.server.wait_for(lambda: not hooked.server.bots[TOKEN].updates)
    assert [a.file_id for a in album.attachments] == ["P1", "P2", "P3"]
    assert after.text == "and now?"
    assert pusher.statuses == [200] * 4


async def test_an_album_that_was_not_stored_comes_again_as_a_whole(hooked: Hooked) -> None:
    hooked.inbox.refuse(1)
    for number in (1, 2, 3):
        hooked.server.say(ADA, ADA, "", [], **photo(number))
    async with pushed(hooked.server, hooked.address) as pusher:
        [album] = await hooked.inbox.wait_for(lambda: hooked.inbox.messages)
        await hooked.server.wait_for(lambda: not hooked.server.bots[TOKEN].updates)
    assert len(album.attachments) == 3
    assert sorted(pusher.statuses) == [200] * 3 + [503] * 3


async def test_a_piece_that_is_posted_again_after_its_album_was_taken_is_acknowledged_only(
    hooked: Hooked,
) -> None:
    update = hooked.server.say(ADA, ADA, "", [], **photo(1))
    hooked.server.say(ADA, ADA, "", [], **photo(2))
    async with pushed(hooked.server, hooked.address) as pusher:
        await hooked.inbox.wait_for(lambda: hooked.inbox.messages)
        hooked.server.send_again(dict(update))
        await hooked.server.wait_for(lambda: not hooked.server.bots[TOKEN].updates)
    assert pusher.statuses == [200] * 3
    assert len(hooked.inbox.messages) == 1


async def test_updates_that_arrive_out_of_order_are_handed_over_in_order(hooked: Hooked) -> None:
    for number in range(6):
        hooked.server.say(ADA, ADA, f"number {number}")
    hooked.server.bots[TOKEN].updates.reverse()
    async with pushed(hooked.server, hooked.address):
        await hooked.inbox.wait_for(lambda: len(hooked.inbox.messages) == 6)
    assert [m.text for m in hooked.inbox.messages] == [f"number {n}" for n in range(6)]


async def test_an_update_is_not_held_up_by_one_that_never_comes(hooked: Hooked) -> None:
    hooked.server.say(ADA, ADA, "one")
    assert await hooked.server.post_updates(hooked.address) == [200]
    hooked.server.say(ADA, ADA, "two")
    hooked.server.say(ADA, ADA, "three")
    del hooked.server.bots[TOKEN].updates[0]
    assert await hooked.server.post_updates(hooked.address) == [200]
    assert [m.text for m in hooked.inbox.messages] == ["one", "three"]
