"""Streams live five minutes and are left alone meanwhile; files are announced, uploaded, shared, guarded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack import SlackServer


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        yield server


@pytest.fixture
def client(server: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(token=server.app.bot_token, base_url=server.api_base, retry_handlers=[])


async def refused(client: AsyncWebClient, method: str, **arguments: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(method, json=arguments)
    return str(caught.value.response["error"])


async def test_a_stream_grows_and_is_finished(server: SlackServer, client: AsyncWebClient) -> None:
    root = server.say("U1", "C1", "<@UBOT> go").ts
    stream = await client.chat_stream(
        buffer_size=1, channel="C1", thread_ts=root, recipient_user_id="U1", recipient_team_id="T1"
    )
    await stream.append(markdown_text="one ")
    (message,) = server.thread("C1", root)
    assert message["streaming_state"] == "in_progress"
    held = await refused(client, "chat.update", channel="C1", ts=message["ts"], text="x")
    assert held == "streaming_state_conflict"
    await stream.append(markdown_text="two")
    await stream.stop(blocks=[{"type": "divider"}])
    assert message["text"] == "one two"
    assert "streaming_state" not in message
    await client.chat_update(channel="C1", ts=message["ts"], text="final")
    again = await refused(client, "chat.stopStream", channel="C1", ts=message["ts"])
    assert again == "message_not_in_streaming_state"
    server.check()


async def test_a_stream_in_a_channel_needs_its_recipient(server: SlackServer, client: AsyncWebClient) -> None:
    root = server.say("U1", "C1", "x").ts
    call = {"channel": "C1", "thread_ts": root}
    assert await refused(client, "chat.startStream", **call) == "missing_recipient_user_id"
    call["recipient_user_id"] = "UX"
    assert await refused(client, "chat.startStream", **call) == "missing_recipient_team_id"
    assert await refused(client, "chat.startStream", **call, recipient_team_id="T1") == "user_not_found"
    direct = server.say("U1", "D1", "x").ts
    assert (await client.chat_startStream(channel="D1", thread_ts=direct))["ok"]


async def test_a_stream_dies_after_five_minutes_whatever_is_appended(
    server: SlackServer, client: AsyncWebClient
) -> None:
    root = server.say("U1", "D1", "x").ts
    ts = (await client.chat_startStream(channel="D1", thread_ts=root, markdown_text="a"))["ts"]
    server.advance(290)
    await client.chat_appendStream(channel="D1", ts=ts, markdown_text="b")
    assert (
        await refused(client, "chat.appendStream", channel="D1", ts=ts, markdown_text="x" * 12_001)
        == "msg_too_long"
    )
    server.advance(15)
    late = await refused(client, "chat.appendStream", channel="D1", ts=ts, markdown_text="c")
    assert late == "message_not_in_streaming_state"
    await client.chat_update(channel="D1", ts=ts, text="whole")
    assert server.message("D1", ts)["text"] == "whole"


async def test_an_upload_is_shared_in_its_thread(server: SlackServer, client: AsyncWebClient) -> None:
    root = server.say("U1", "C1", "x").ts
    answer = await client.files_upload_v2(
        filename="a.txt",
        content="hello",
        title="Arguments",
        channel="C1",
        thread_ts=root,
        initial_comment="all",
    )
    (message,) = server.thread("C1", root)
    assert (message["text"], message["files"][0]["title"]) == ("all", "Arguments")
    file = server.files[answer["files"][0]["id"]]
    assert file.content == b"hello"
    shares = (await client.files_info(file=file.id))["file"]["shares"]
    assert shares == {"public": {"C1": [{"ts": message["ts"]}]}}
    server.check()


async def test_an_upload_of_another_size_is_refused(server: SlackServer, client: AsyncWebClient) -> None:
    ticket = await client.files_getUploadURLExternal(filename="a", length=9)
    async with aiohttp.ClientSession() as session, session.post(ticket["upload_url"], data=b"x") as answer:
        assert answer.status == 400
    files = [{"id": ticket["file_id"]}]
    assert await refused(client, "files.completeUploadExternal", files=files) == "file_not_found"
    assert "were announced" in server.failures[0]


async def test_a_download_without_the_token_is_a_sign_in_page(
    server: SlackServer, client: AsyncWebClient
) -> None:
    said = server.say(
        "U1", "D1", "see", files=[server.file("U1", "a.bin", b"\0\1", "application/octet-stream")]
    )
    address = said.message["files"][0]["url_private_download"]
    async with aiohttp.ClientSession() as session:
        async with session.get(address) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
        bearer = {"Authorization": f"Bearer {server.app.bot_token}"}
        async with session.get(address, headers=bearer) as answer:
            assert await answer.read() == b"\0\1"
        server.app.scopes.discard("files:read")
        async with session.get(address, headers=bearer) as answer:
            assert answer.content_type == "text/html"


async def test_a_file_from_elsewhere_must_be_looked_up(server: SlackServer, client: AsyncWebClient) -> None:
    file = server.file("UX", "b.txt", b"hello", remote_only=True)
    said = server.say("UX", "CX", "see", files=[file])
    assert said.message["files"] == [{"id": file.id, "mode": "file_access", "file_access": "check_file_info"}]
    assert (await client.files_info(file=file.id))["file"]["size"] == 5
    file.gone = True
    assert await refused(client, "files.info", file=file.id) == "file_deleted"


async def test_reactions_are_counted(server: SlackServer, client: AsyncWebClient) -> None:
    ts = server.say("U1", "C1", "x").ts
    await client.reactions_add(channel="C1", timestamp=ts, name="eyes")
    assert server.message("C1", ts)["reactions"] == [{"name": "eyes", "users": ["UBOT"], "count": 1}]
    assert (
        await refused(client, "reactions.add", channel="C1", timestamp=ts, name="eyes") == "already_reacted"
    )
    await client.reactions_remove(channel="C1", timestamp=ts, name="eyes")
    assert await refused(client, "reactions.remove", channel="C1", timestamp=ts, name="eyes") == "no_reaction"


async def test_a_file_is_shared_with_a_conversation_and_never_with_a_person(
    server: SlackServer, client: AsyncWebClient
) -> None:
    announced = await client.files_getUploadURLExternal(filename="a.txt", length=1)
    async with aiohttp.ClientSession() as session, session.post(str(announced["upload_url"]), data=b"x"):
        files = [{"id": announced["file_id"]}]
        complete = "files.completeUploadExternal"
        assert await refused(client, complete, files=files, channel_id="U1") == "channel_not_found"
        await client.files_completeUploadExternal(files=files, channel_id="D1")
    assert [len(message["files"]) for message in server.from_bot("D1")] == [1]


async def test_a_file_below_a_reply_is_noted_as_a_misuse(server: SlackServer, client: AsyncWebClient) -> None:
    root = server.say("U1", "C1", "x").ts
    reply = server.say("U1", "C1", "y", thread_ts=root).ts
    await client.files_upload_v2(channel="C1", thread_ts=reply, content="x", filename="a.txt")
    assert "is a reply and was used as the thread of a file" in server.failures[0]
