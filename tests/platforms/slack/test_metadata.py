"""What messages carry along unseen: kept by edits, taken away by an empty one, told only when asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack import SlackServer

MARK: dict[str, Any] = {"event_type": "sign", "event_payload": {"kind": "progress"}}


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server
        server.check()


@pytest.fixture
def client(server: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(server.app.bot_token, base_url=server.api_base, retry_handlers=[])


async def told(client: AsyncWebClient, thread: str, **more: Any) -> list[Any]:
    answer = await client.conversations_replies(channel="C1", ts=thread, **more)
    return [message.get("metadata") for message in answer["messages"]][1:]


async def test_metadata_is_told_only_when_it_is_asked_for(
    server: SlackServer, client: AsyncWebClient
) -> None:
    root = server.say("U1", "C1", "hello").ts
    await client.chat_postMessage(channel="C1", thread_ts=root, text="working", metadata=MARK)
    assert await told(client, root) == [None]
    assert await told(client, root, include_all_metadata=True) == [MARK]


async def test_an_edit_keeps_it_and_an_empty_one_takes_it_away(
    server: SlackServer, client: AsyncWebClient
) -> None:
    root = server.say("U1", "C1", "hello").ts
    posted = await client.chat_postMessage(channel="C1", thread_ts=root, text="working", metadata=MARK)
    await client.chat_update(channel="C1", ts=posted["ts"], text="still working")
    assert await told(client, root, include_all_metadata=True) == [MARK]
    await client.chat_update(channel="C1", ts=posted["ts"], text="done", metadata={})
    assert [not found for found in await told(client, root, include_all_metadata=True)] == [True]


async def test_a_stream_is_marked_when_it_ends(server: SlackServer, client: AsyncWebClient) -> None:
    root = server.say("U1", "C1", "hello").ts
    stream = await client.chat_startStream(
        channel="C1",
        thread_ts=root,
        markdown_text="a",
        recipient_user_id="U1",
        recipient_team_id="T1",
    )
    await client.chat_stopStream(channel="C1", ts=stream["ts"], metadata=MARK)
    assert await told(client, root, include_all_metadata=True) == [MARK]


@pytest.mark.parametrize(
    "metadata",
    [
        {"event_type": "sign"},
        {"event_type": "", "event_payload": {}},
        {"event_type": "a", "event_payload": 1},
    ],
)
async def test_metadata_of_another_shape_is_refused(
    server: SlackServer, client: AsyncWebClient, metadata: dict[str, Any]
) -> None:
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C1", text="x", metadata=metadata)
    assert caught.value.response["error"] == "invalid_metadata_format"
