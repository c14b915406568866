"""Files that people send, as models get them; files that tools make, as people get them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.messages import File, Image
from tests.built_in_scene import sender
from tests.clock import FakeClock
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import ADA, GENERAL, PICTURE, House, Scene, running


def kept(house: House) -> list[Path]:
    folder = house.data / "files"
    return sorted(folder.iterdir()) if folder.exists() else []


def attached(house: House) -> list[File | Image]:
    """The files of the first message that the model was told of last."""
    return [block for block in house.said()[0].content if isinstance(block, File | Image)]


def files_in(scene: Scene, place: str) -> Sequence[tuple[str, bytes]]:
    """Names and contents of what the bot has uploaded there, in order."""
    return [file for post in scene.posts(place) for file in post.files]


async def test_files_of_a_message_reach_the_model_under_names_of_our_own(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("look", files=[("table.csv", b"a;b\n1;2\n"), ("shot.png", PICTURE)])
        await scene.sees("You said: look", asked)
        assert sorted(path.read_bytes() for path in kept(house)) == sorted([b"a;b\n1;2\n", PICTURE])
        assert sorted(type(one).__name__ for one in attached(house)) == ["File", "Image"]


async def test_a_file_whose_address_has_expired_is_fetched_all_the_same(
    house: House, server: DiscordServer
) -> None:
    clock = FakeClock(server.now())
    async with running(house, server, clock=clock) as scene:
        asked = scene.call("work")
        await scene.at_work(asked)
        scene.say("read this", place=asked, files=[("note.txt", b"content")])
        await scene.until(lambda: server.channels[asked].messages, "the message")
        server.advance(86_500)
        house.let_go.set()
        await scene.sees("You said: read this", asked)
    assert [path.read_bytes() for path in kept(house)] == [b"content"]


async def test_a_file_that_is_too_large_is_told_and_the_turn_goes_on(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, file_limit=100) as scene:
        asked = scene.call("read this", files=[("big.pdf", b"x" * 101)])
        await scene.until(
            lambda: [t for t in scene.texts(asked) if "I could not fetch the file big.pdf" in t], "a notice"
        )
        await scene.sees("You said: read this", asked)
    assert kept(house) == []


async def test_a_file_is_fetched_again_when_that_failed_for_a_moment(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        server.fail_next("GET /channels/*/messages/*", 429, retry_after=1)
        asked = scene.call("keep", files=[("note.txt", b"content")])
        await scene.sees("You said: keep", asked)
    assert [path.read_bytes() for path in kept(house)] == [b"content"]


async def test_files_of_a_tool_follow_the_answer_into_its_thread(house: House, server: DiscordServer) -> None:
    async with running(house, server) as scene:
        asked = scene.call("make chart.png sub/report.txt")
        await scene.sees("Result: made", asked)
        await scene.until(lambda: len(files_in(scene, asked)) == 2, "two files")
        await scene.rest()
        assert files_in(scene, asked) == [
            ("chart.png", PICTURE),
            ("report.txt", b"content of sub/report.txt"),
        ]
        assert files_in(scene, GENERAL) == []


@pytest.mark.parametrize("name", ["../secret.txt", "gone.txt", "link.txt"])
async def test_only_files_in_the_data_folder_leave_it(house: House, server: DiscordServer, name: str) -> None:
    secret = house.folder / "secret.txt"
    secret.write_text("secret")
    house.data.mkdir()
    (house.data / "link.txt").symlink_to(secret)
    async with running(house, server) as scene:
        scene.say(f"make {name} fine.txt", ADA, ADA)
        words = f"I could not send the file {name.split('/')[-1]}: it is not in my folder."
        await scene.until(lambda: [t for t in scene.texts(ADA) if words in t], "a notice")
        await scene.until(lambda: len(files_in(scene, ADA)) == 1, "the other file")
    assert b"secret" not in [file.content for file in server.files.values()]


async def test_where_files_are_not_allowed_that_is_told(house: House, server: DiscordServer) -> None:
    server.deny_bot(GENERAL, "ATTACH_FILES")
    async with running(house, server) as scene:
        asked = scene.call("make one.txt")
        await scene.until(
            lambda: [t for t in scene.texts(asked) if "I could not send the file one.txt" in t], "a notice"
        )
        await scene.sees("Result: made", asked)
        await scene.rest()
        assert files_in(scene, asked) == []


async def test_a_file_made_before_a_request_comes_before_its_card_and_only_once(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("make then pay")
        card = await scene.card(place=asked)
        assert [name for name, _ in files_in(scene, asked)] == ["first.txt"]
        await scene.press(card, "Approve")
        await scene.sees("Result: made; paid 5 for A-1", asked)
        await scene.rest()
        assert len(files_in(scene, asked)) == 1


async def test_a_file_that_the_agent_sends_comes_with_its_caption_into_the_thread(
    house: House, server: DiscordServer
) -> None:
    async with (
        sender(house.folder, house.data, "discord") as (agent, model),
        running(house, server, agent=agent, model=model) as scene,
    ):
        asked = scene.call("the report please")
        await scene.sees("**May** @everyone", asked)
        await scene.sees("sent", asked)
        await scene.until(lambda: files_in(scene, asked), "the file")
        await scene.rest()
        assert files_in(scene, asked) == [("may.csv", b"a,b\n")]
        assert files_in(scene, GENERAL) == []
