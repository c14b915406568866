"""Files that people send, as models get them; files that tools make, as people get them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.messages import File, Image
from tests.built_in_scene import sender
from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    GENERAL,
    OUTSIDER,
    PICTURE,
    SHARED,
    TRANSPORTS,
    House,
    Scene,
    running,
)


def kept(house: House) -> list[Path]:
    folder = house.data / "files"
    return sorted(folder.iterdir()) if folder.exists() else []


def attached(house: House) -> list[File | Image]:
    """The files of the first message that the model was told of last."""
    return [block for block in house.said()[0].content if isinstance(block, File | Image)]


def files_in(scene: Scene, channel: str = GENERAL) -> list[tuple[str, bytes]]:
    """Names and contents of what the bot has uploaded there, in order."""
    found = [
        (file.shares[0][1], file.name, file.content or b"")
        for file in scene.server.files.values()
        if file.user == scene.server.app.bot_user and file.shares and file.shares[0][0] == channel
    ]
    return [(name, content) for _, name, content in sorted(found)]


@TRANSPORTS
async def test_files_of_a_message_reach_the_model_under_names_of_our_own(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        table = server.file(ADA, "table.csv", b"a;b\n1;2\n", "text/csv")
        scene.call("look", files=[table, server.file(ADA, "shot.png", PICTURE, "image/png")])
        await scene.sees("You said: look")
        assert sorted(path.read_bytes() for path in kept(house)) == sorted([b"a;b\n1;2\n", PICTURE])
        assert all(path.parent == house.data / "files" for path in kept(house))
        assert sorted(type(one).__name__ for one in attached(house)) == ["File", "Image"]


async def test_a_file_that_is_too_large_is_told_and_the_turn_goes_on(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, file_limit=100) as scene:
        asked = scene.call("read this", files=[("big.pdf", b"x" * 101)])
        notice = await scene.sees("I could not fetch the file big.pdf")
        assert notice.thread == asked.ts
        await scene.sees("You said: read this")
    assert kept(house) == []


async def test_a_file_is_fetched_again_when_that_failed_for_a_moment(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.fail_next("files.info", 429, retry_after=3)
        scene.call("keep", files=[("note.txt", b"content")])
        await scene.sees("You said: keep")
    assert [path.read_bytes() for path in kept(house)] == [b"content"]


@TRANSPORTS
async def test_a_file_from_a_shared_channel_of_which_only_the_id_is_told_reaches_the_model(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport, users=("T2:UX",)) as scene:
        file = server.file(OUTSIDER, "plan.csv", b"a;b\n", "text/csv", remote_only=True)
        scene.call("look", OUTSIDER, SHARED, files=[file])
        await scene.sees("You said: look", SHARED)
    assert [path.read_bytes() for path in kept(house)] == [b"a;b\n"]


@pytest.mark.parametrize("trouble", ["deleted", "a sign-in page", "another host"])
async def test_a_file_that_cannot_be_had_is_told_once_and_the_turn_goes_on(
    house: House, server: SlackServer, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    moved = "https://evil.example/x" if trouble == "another host" else ""
    file = server.file(ADA, "note.txt", b"content", moved=moved)
    if trouble == "a sign-in page":
        server.fail_next("download", "html", times=99)
    async with running(house, server) as scene:
        said = scene.call("keep", files=[file])
        file.gone = trouble == "deleted"
        notice = await scene.sees("I could not fetch the file note.txt")
        assert notice.thread == said.ts
        await scene.sees("You said: keep")
        await scene.rest()
        assert len([text for text in scene.texts() if "could not fetch" in text]) == 1
    assert kept(house) == []
    assert server.app.bot_token not in caplog.text


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\\b\0c.txt", ".", "x" * 300 + ".txt"])
async def test_whatever_a_file_is_called_it_is_kept_under_a_name_of_ours(
    house: House, server: SlackServer, name: str
) -> None:
    async with running(house, server) as scene:
        scene.call("keep", files=[server.file(ADA, name, b"content")])
        await scene.sees("You said: keep")
    (path,) = kept(house)
    assert path.read_bytes() == b"content" and path.parent == house.data / "files"
    assert len(path.name) < 200 and not {"/", "\\", "\0"} & set(path.name)


async def test_an_empty_file_comes_in_and_does_not_go_out(
    house: House, server: SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = House._made

    def empty(self: House, name: str) -> Image | File:
        part = made(self, name)
        if name == "empty.txt":
            (self.data / name).write_bytes(b"")
        return part

    monkeypatch.setattr(House, "_made", empty)
    async with running(house, server) as scene:
        scene.call("keep", files=[("nothing.txt", b"")])
        await scene.sees("You said: keep")
        assert [path.read_bytes() for path in kept(house)] == [b""]
        scene.call("make empty.txt fine.txt")
        refusal = await scene.sees("I could not send the file empty.txt")
        assert "empty" in refusal.text.removeprefix("I could not send the file empty.txt")
        await scene.until(lambda: [n for n, _ in files_in(scene)] == ["fine.txt"], "the other file")


async def test_without_the_scope_for_files_the_reason_is_told(house: House, server: SlackServer) -> None:
    async with running(house, server) as scene:
        server.app.scopes.discard("files:read")
        scene.call("keep", files=[("note.txt", b"content")])
        await scene.sees("I could not fetch the file note.txt")
        await scene.sees("You said: keep")
    assert kept(house) == []


@TRANSPORTS
async def test_files_of_a_tool_follow_the_answer_into_its_thread(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        asked = scene.call("make chart.png sub/report.txt")
        await scene.sees("Result: made", thread=asked.ts)
        await scene.until(lambda: len(files_in(scene)) == 2, "two files")
        await scene.rest()
        assert files_in(scene) == [("chart.png", PICTURE), ("report.txt", b"content of sub/report.txt")]
        shared = [c.arguments["thread_ts"] for c in server.called("files.completeUploadExternal")]
        assert shared == [asked.ts, asked.ts]


@pytest.mark.parametrize("name", ["../secret.txt", "gone.txt", "link.txt"])
async def test_only_files_in_the_data_folder_leave_it(house: House, server: SlackServer, name: str) -> None:
    secret = house.folder / "secret.txt"
    secret.write_text("secret")
    house.data.mkdir()
    (house.data / "link.txt").symlink_to(secret)
    async with running(house, server) as scene:
        scene.call(f"make {name} fine.txt")
        refusal = await scene.sees("I could not send the file")
        await scene.until(lambda: len(files_in(scene)) == 1, "the other file")
    assert refusal.text == f"I could not send the file {name.split('/')[-1]}: it is not in my folder."
    assert b"secret" not in [file.content for file in server.files.values()]


async def test_a_file_that_slack_refuses_is_told_and_the_rest_follows(
    house: House, server: SlackServer
) -> None:
    server.fail_next("files.getUploadURLExternal", "file_uploads_disabled")
    async with running(house, server) as scene:
        scene.call("make big.txt small.txt")
        await scene.sees("I could not send the file big.txt")
        await scene.until(lambda: len(files_in(scene)) == 1, "the other file")
        assert files_in(scene)[0][0] == "small.txt"


async def test_a_file_made_before_a_request_comes_before_its_card_and_only_once(
    house: House, server: SlackServer
) -> None:
    async with running(house, server) as scene:
        scene.call("make then pay")
        card = await scene.card()
        assert [name for name, _ in files_in(scene)] == ["first.txt"]
        await scene.press(card, "Approve")
        await scene.sees("Result: made; paid 5 for A-1")
        await scene.rest()
        assert len(files_in(scene)) == 1


@TRANSPORTS
async def test_a_file_that_the_agent_sends_comes_with_its_caption_into_the_thread(
    house: House, server: SlackServer, transport: str
) -> None:
    async with (
        sender(house.folder, house.data, "slack") as (agent, model),
        running(house, server, transport=transport, agent=agent, model=model) as scene,
    ):
        asked = scene.call("the report please")
        await scene.sees("*May* @everyone", thread=asked.ts)
        await scene.sees("sent", thread=asked.ts)
        await scene.until(lambda: files_in(scene), "the file")
        await scene.rest()
        assert files_in(scene) == [("may.csv", b"a,b\n")]
        (shared,) = [c.arguments["thread_ts"] for c in server.called("files.completeUploadExternal")]
        assert shared == asked.ts
