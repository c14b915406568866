"""What our calls do when Slack refuses, breaks or lies, over real connections; and files both ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from channels.base import (
    Attachment,
    ChannelBusy,
    ChannelDown,
    MessageGone,
    OutboundFile,
    OutboundMessage,
    PayloadRefused,
    TargetGone,
    ThreadKey,
)
from channels.slack.calls import Calls
from channels.slack.errors import ScopeMissing, TokenRefused
from channels.slack.pacing import Pacing
from channels.slack.refs import pack_ref, unpack_ref
from channels.slack.whispers import PRIVATE, Whispers
from tests.contracts.harness import Inbox
from tests.platforms.slack import SlackServer
from tests.platforms.slack.hasty import hasty_clock, hasty_sleep, running

ROOT = ThreadKey("slack", "T1", "C1", "")
WORDS = OutboundMessage(text="hello")


# ---- messages


async def test_a_message_goes_into_its_thread_and_one_without_a_thread_to_the_root(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        ref = await channel.send(ROOT, WORDS)
        inner = await channel.send(ROOT._replace(thread=unpack_ref(ref)[1]), WORDS)
    assert (
        "thread_ts" not in server.message(*unpack_ref(ref)) or server.message(*unpack_ref(ref))["thread_ts"]
    )
    assert server.message(*unpack_ref(inner))["thread_ts"] == unpack_ref(ref)[1]
    for call in server.called("chat.postMessage"):
        assert call.arguments["unfurl_links"] is False
        assert call.arguments["unfurl_media"] is False
        assert "link_names" not in call.arguments


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("channel_not_found", TargetGone),
        ("is_archived", TargetGone),
        ("msg_too_long", PayloadRefused),
        ("missing_scope", ScopeMissing),
        ("internal_error", ChannelDown),
        (500, ChannelDown),
        (503, ChannelDown),
        ("drop", ChannelDown),
        ("html", ChannelDown),
    ],
)
async def test_every_failure_leaves_as_one_of_the_channels_own_and_is_not_tried_again(
    server: SlackServer, inbox: Inbox, what: str | int, kind: type[Exception]
) -> None:
    async with running(server, inbox) as channel:
        server.fail_next("chat.postMessage", what)
        with pytest.raises(kind) as caught:
            await channel.send(ROOT, WORDS)
        assert server.app.bot_token not in str(caught.value)
        assert len(server.called("chat.postMessage")) == 1


async def test_a_message_whose_answer_was_lost_is_there_once_and_nobody_is_sure(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        server.fail_next("chat.postMessage", "drop", after=True)
        with pytest.raises(ChannelDown) as caught:
            await channel.send(ROOT, WORDS)
        assert caught.value.unsure
        assert len(server.from_bot("C1")) == 1


async def test_when_nobody_listens_it_is_sure_that_nothing_arrived(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        await server.down()
        with pytest.raises(ChannelDown) as caught:
            await channel.send(ROOT, WORDS)
        assert not caught.value.unsure


async def test_while_slack_asks_to_wait_nothing_more_is_sent_there(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        server.fail_next("chat.postMessage", 429, retry_after=600)
        for _ in range(3):
            with pytest.raises(ChannelBusy) as caught:
                await channel.send(ROOT, WORDS)
            assert 590 < caught.value.retry_after <= 600
        assert len(server.called("chat.postMessage")) == 1
        await channel.send(ROOT._replace(conversation="C2"), WORDS)


async def test_a_token_that_is_revoked_meanwhile_ends_the_channel(server: SlackServer, inbox: Inbox) -> None:
    states: list[str] = []
    async with running(server, inbox, on_state=states.append) as channel:
        server.fail_next("chat.postMessage", "token_revoked")
        with pytest.raises(TokenRefused):
            await channel.send(ROOT, WORDS)
        assert isinstance(channel.refused, TokenRefused)
        await server.wait_for(lambda: not server.connections)
    assert states == ["up", "refused"]


async def test_what_cannot_be_changed_any_more_is_told_apart(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        ref = await channel.send(ROOT, WORDS)
        server.fail_next("chat.update", "edit_window_closed")
        for gone in (ref, pack_ref("C1", PRIVATE), pack_ref("C1", "F0123")):
            with pytest.raises(MessageGone):
                await channel.edit(gone, WORDS)


async def test_c081_a_a_session_that_was_closed_is_replaced(server: SlackServer, inbox: Inbox) -> None:
    async with running(server, inbox) as channel:
        await channel._calls.session.close()
        await channel.send(ROOT, WORDS)
        await server.wait_connections(2)
        server.drop()
        await server.wait_for(lambda: server.connected >= 4)
    assert len(server.from_bot("C1")) == 1


async def test_a_call_before_the_start_or_after_the_end_is_no_accident(
    server: SlackServer, inbox: Inbox
) -> None:
    async with running(server, inbox) as channel:
        pass
    with pytest.raises(ChannelDown):
        await channel.send(ROOT, WORDS)


async def test_a_reaction_that_is_there_already_is_no_error(server: SlackServer, inbox: Inbox) -> None:
    said = server.say("U1", "C1", "hello")
    async with running(server, inbox) as channel:
        for _ in range(2):
            await channel._calls.react(ROOT, said.ts)


# ---- addresses


@pytest.mark.parametrize(
    ("address", "trusted"),
    [
        ("https://files.slack.com/files-pri/T1-F1/a.txt", True),
        ("https://slack.com/a", True),
        ("https://slack-files.com/a", True),
        ("http://files.slack.com/a", False),
        ("https://evil.example/files.slack.com", False),
        ("https://notslack.com/a", False),
        ("https://slack.com.evil.example/a", False),
        ("https://slack.com@evil.example/a", False),
        ("https://evil.example#slack.com", False),
        ("http://127.0.0.1:1/a", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_only_slacks_own_hosts_get_the_token(address: str, trusted: bool) -> None:
    calls = Calls("xoxb-1-2", None, "https://slack.com/api/", Pacing(hasty_sleep, hasty_clock))
    assert calls.trusts(address) is trusted


# ---- files in


async def fetched(channel: Any, file_id: str, into: Path, limit: int = 1000) -> bytes:
    await channel.fetch_file(Attachment(file_id=file_id, name="a", media_type="a/b", size=0), into, limit)
    return content_of(into)


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize("trouble", ["html", 302, 403, 404])
async def test_a_file_that_cannot_be_had_is_refused_and_leaves_nothing(
    server: SlackServer, inbox: Inbox, tmp_path: Path, trouble: str | int
) -> None:
    file = server.file("U1", "a.txt", b"content")
    async with running(server, inbox) as channel:
        server.fail_next("download", trouble, times=9)
        with pytest.raises(PayloadRefused):
            await fetched(channel, file.id, tmp_path / "in")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(("trouble", "times"), [("drop", 2), (500, 1)])  # a GET is repeated by aiohttp
async def test_a_download_that_breaks_can_be_tried_again(
    server: SlackServer, inbox: Inbox, tmp_path: Path, trouble: str | int, times: int
) -> None:
    file = server.file("U1", "a.txt", b"content")
    async with running(server, inbox) as channel:
        server.fail_next("download", trouble, times=times)
        with pytest.raises(ChannelDown):
            await fetched(channel, file.id, tmp_path / "in")
        assert names_in(tmp_path) == []
        assert await fetched(channel, file.id, tmp_path / "in") == b"content"


async def test_a_page_that_is_a_page_is_fetched(server: SlackServer, inbox: Inbox, tmp_path: Path) -> None:
    file = server.file("U1", "a.html", b"<html>", "text/html")
    async with running(server, inbox) as channel:
        assert await fetched(channel, file.id, tmp_path / "in") == b"<html>"


@pytest.mark.parametrize(
    "fields", [{"external": "https://drive.example/x"}, {"gone": True}], ids=["elsewhere", "deleted"]
)
async def test_files_that_slack_does_not_have_are_refused_without_a_request_elsewhere(
    server: SlackServer, inbox: Inbox, tmp_path: Path, fields: Mapping[str, Any]
) -> None:
    file = server.file("U1", "a.txt", b"content", **fields)
    async with running(server, inbox) as channel:
        with pytest.raises(PayloadRefused):
            await fetched(channel, file.id, tmp_path / "in")


async def test_a_download_that_is_sent_on_to_another_host_goes_nowhere_and_the_token_stays_here(
    server: SlackServer, inbox: Inbox, tmp_path: Path
) -> None:
    async with SlackServer() as elsewhere:
        stolen = elsewhere.file("U1", "a.txt", b"content")
        elsewhere.app.bot_token = server.app.bot_token
        for address in (
            f"{elsewhere.base}/files-pri/T1-{stolen.id}/a.txt",
            "//evil.example/x",
            "ftp://slack.com/x",
        ):
            file = server.file("U1", "a.txt", b"content", moved=address)
            async with running(server, inbox) as channel:
                with pytest.raises(PayloadRefused) as caught:
                    await fetched(channel, file.id, tmp_path / "in")
            assert "not Slack's" in str(caught.value)
        assert names_in(tmp_path) == []
        near = server.file("U1", "b.txt", b"content")
        file = server.file("U1", "a.txt", b"other", moved=f"/files-pri/T1-{near.id}/b.txt")
        async with running(server, inbox) as channel:
            assert await fetched(channel, file.id, tmp_path / "in") == b"content"


async def test_a_file_of_another_workspace_is_looked_up_before_it_is_fetched(
    server: SlackServer, inbox: Inbox, tmp_path: Path
) -> None:
    file = server.file("UX", "a.txt", b"content", remote_only=True)
    server.say("UX", "CX", "<@UBOT> look", files=[file])
    async with running(server, inbox) as channel:
        server.say("UX", "CX", "<@UBOT> look", files=[file])
        [message, *_] = await inbox.wait_for(lambda: inbox.messages)
        [attachment] = message.attachments
        await channel.fetch_file(attachment, tmp_path / "in", 1000)
    assert (tmp_path / "in").read_bytes() == b"content"


# ---- files out


async def test_a_file_goes_into_the_thread_and_its_message_is_known(
    server: SlackServer, inbox: Inbox, tmp_path: Path
) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"content")
    said = server.say("U1", "C1", "send it")
    async with running(server, inbox) as channel:
        message = OutboundMessage(text="", files=(OutboundFile(path=path, name="out.txt"),))
        ref = await channel.send(ROOT._replace(thread=said.ts), message)
    posted = server.message(*unpack_ref(ref))
    assert posted["thread_ts"] == said.ts
    assert [server.files[file["id"]].content for file in posted["files"]] == [b"content"]


async def test_a_file_that_cannot_be_sent_is_refused(
    server: SlackServer, inbox: Inbox, tmp_path: Path
) -> None:
    empty, missing, large = tmp_path / "empty", tmp_path / "missing", tmp_path / "large"
    empty.write_bytes(b"")
    with large.open("wb") as handle:
        handle.truncate(50_000_001)
    async with running(server, inbox) as channel:
        for path in (empty, missing, large):
            message = OutboundMessage(text="", files=(OutboundFile(path=path, name=path.name),))
            with pytest.raises(PayloadRefused) as caught:
                await channel.send(ROOT, message)
            assert str(tmp_path) not in str(caught.value)
    assert server.from_bot("C1") == []


async def test_an_upload_that_breaks_posts_nothing(server: SlackServer, inbox: Inbox, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_bytes(b"content")
    message = OutboundMessage(text="", files=(OutboundFile(path=path, name="out.txt"),))
    async with running(server, inbox) as channel:
        server.fail_next("upload", 500)
        with pytest.raises(ChannelDown):
            await channel.send(ROOT, message)
        assert server.from_bot("C1") == []
        server.fail_next("files.info", 503)
        ref = await channel.send(ROOT, message)
        assert ref.startswith("C1:F")
        assert len(server.from_bot("C1")) == 1


# ---- private words


class Speaker:
    """Whispers with an address to answer at, on a clock that the test moves."""

    def __init__(self, server: SlackServer) -> None:
        self.now = 0.0
        self.server = server
        pacing = Pacing(hasty_sleep, hasty_clock, 0)
        self.calls = Calls(server.app.bot_token, None, server.api_base, pacing)
        self.calls.open()
        self.whispers = Whispers(self.calls, lambda: self.now)

    async def say(self, text: str, user: str = "U1", place: ThreadKey = ROOT) -> str:
        content = {"text": text, "blocks": []}
        return await self.whispers.tell("cmd|1", place, user, content)

    def ways(self) -> list[str]:
        """By which calls the words went."""
        return [call.method for call in self.server.calls]


async def test_an_address_takes_five_answers_and_then_they_are_ephemeral_messages(
    server: SlackServer,
) -> None:
    speaker = Speaker(server)
    speaker.whispers.remember("cmd|1", ROOT, "U1", server.new_response_url("U1", "C1"))
    for number in range(7):
        await speaker.say(f"number {number}")
    await speaker.calls.close()
    assert speaker.ways() == ["response_url"] * 5 + ["chat.postEphemeral"] * 2
    assert [m["text"] for m in server.ephemerals("U1")] == [f"number {n}" for n in range(7)]


async def test_an_address_is_not_trusted_when_its_half_hour_is_nearly_over(server: SlackServer) -> None:
    speaker = Speaker(server)
    speaker.whispers.remember("cmd|1", ROOT, "U1", server.new_response_url("U1", "C1"))
    speaker.now = 1795.0
    await speaker.say("late")
    await speaker.calls.close()
    assert speaker.ways() == ["chat.postEphemeral"]


async def test_an_address_that_slack_calls_used_up_is_given_up(server: SlackServer) -> None:
    speaker = Speaker(server)
    speaker.whispers.remember("cmd|1", ROOT, "U1", server.new_response_url("U1", "C1"))
    server.advance(3600)
    for _ in range(2):
        await speaker.say("hello")
    await speaker.calls.close()
    assert speaker.ways() == ["response_url", "chat.postEphemeral", "chat.postEphemeral"]


async def test_where_nothing_ephemeral_can_be_posted_it_is_a_direct_message(server: SlackServer) -> None:
    speaker = Speaker(server)
    ref = await speaker.say("psst", place=ROOT._replace(conversation="C3"))
    await speaker.calls.close()
    assert unpack_ref(ref)[0] == "D1"  # type: ignore[arg-type]
    assert [m["text"] for m in server.from_bot("D1")] == ["psst"]
    assert server.from_bot("C3") == []


async def test_an_address_that_is_not_slacks_is_not_used(server: SlackServer) -> None:
    speaker = Speaker(server)
    speaker.whispers.remember("cmd|1", ROOT, "U1", "https://evil.example/hook")
    await speaker.say("hello")
    await speaker.calls.close()
    assert speaker.ways() == ["chat.postEphemeral"]


async def test_trouble_on_the_way_is_for_the_caller_and_nothing_is_said_twice(server: SlackServer) -> None:
    speaker = Speaker(server)
    speaker.whispers.remember("cmd|1", ROOT, "U1", server.new_response_url("U1", "C1"))
    server.fail_next("response_url", 500)
    with pytest.raises(ChannelDown):
        await speaker.say("hello")
    await speaker.calls.close()
    assert speaker.ways() == ["response_url"]
