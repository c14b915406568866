"""Files that people send, as models get them; files that tools make, as people get them."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.messages import File, Image
from gateway.providers.anthropic import AnthropicModel
from tests.built_in_scene import sender
from tests.clock import FakeClock
from tests.platforms.anthropic.server import AnthropicServer
from tests.platforms.telegram import TelegramServer
from tests.scenario.telegram.house import ADA, GROUP, PICTURE, House, running

JPEG = b"\xff\xd8\xff\xe0"
MODES = pytest.mark.parametrize("mode", ["polling", "webhook"])


@pytest.fixture
async def claude() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer() as server:
        yield server


@pytest.fixture
async def seeing(claude: AnthropicServer, house: House) -> AsyncIterator[AnthropicModel]:
    model = AnthropicModel(
        model=claude.model, api_key=claude.key, base_url=claude.base_url, data_dir=house.data
    )
    yield model
    await model.close()


def last_content(claude: AnthropicServer) -> list[dict[str, Any]]:
    """The blocks of the last user message that the model was sent, without cache marks."""
    blocks = claude.accepted[-1]["messages"][-1]["content"]
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in blocks]


def pictures(claude: AnthropicServer) -> list[bytes]:
    blocks = [block for block in last_content(claude) if block["type"] == "image"]
    assert {block["source"]["media_type"] for block in blocks} <= {"image/jpeg"}
    return [base64.b64decode(block["source"]["data"]) for block in blocks]


@MODES
async def test_an_album_is_one_message_whose_pictures_a_model_sees(
    house: House, server: TelegramServer, claude: AnthropicServer, seeing: AnthropicModel, mode: str
) -> None:
    shots = [JPEG + bytes([number]) * 50 for number in range(3)]
    async with running(house, server, mode=mode, model=seeing) as scene:
        scene.server.send_photo(ADA, ADA, shots[0], media_group_id="g1", caption="sort these")
        for shot in shots[1:]:
            scene.server.send_photo(ADA, ADA, shot, media_group_id="g1")
        scene.say("thank you")
        await scene.until(lambda: len(scene.texts()) >= 2, "two answers")
        await scene.rest()
    first = claude.accepted[0]["messages"][0]["content"]
    assert [base64.b64decode(b["source"]["data"]) for b in first if b["type"] == "image"] == shots
    assert [b["text"] for b in first if b["type"] == "text"] == ["Ada: sort these"]
    assert [m["role"] for m in claude.accepted[-1]["messages"]] == ["user", "assistant", "user"]
    names = sorted(path.name for path in (house.data / "files").iterdir())
    assert len(names) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}\.jpg", name) for name in names)


@MODES
async def test_albums_of_two_chats_at_the_same_moment_do_not_mix(
    house: House, server: TelegramServer, mode: str
) -> None:
    async with running(house, server, mode=mode) as scene:
        for number in range(4):
            scene.server.send_photo(ADA, ADA, JPEG + b"a", media_group_id="a")
            mention = [{"type": "mention", "offset": 0, "length": 9}] if number == 0 else []
            caption = {"caption": "@gate_bot here"} if number == 0 else {}
            scene.server.send_photo(
                GROUP, ADA, JPEG + b"b", media_group_id="b", caption_entities=mention, **caption
            )
        await scene.sees("You said:", ADA)
        await scene.sees("You said: here", GROUP)
        await scene.rest()
        views = await scene.gateway.store.sessions()
        logs = [await scene.gateway.store.log(view.id) for view in views]
    assert sorted(len([b for b in log[0].content if isinstance(b, Image)]) for log in logs) == [4, 4]
    assert {len(log) for log in logs} == {2}


async def test_a_file_that_is_too_large_is_told_to_both_and_the_turn_goes_on(
    house: House, server: TelegramServer, claude: AnthropicServer, seeing: AnthropicModel
) -> None:
    async with running(house, server, model=seeing, file_limit=100) as scene:
        scene.server.send_file(ADA, ADA, b"x" * 101, "big.pdf", "application/pdf", "read this")
        notice = await scene.sees("I could not fetch the file big.pdf")
        assert "101 bytes, 100 are allowed" in notice["text"]
        await scene.sees("ok")
    told = [block["text"] for block in last_content(claude)]
    assert told == ["Ada: read this", "[file big.pdf, application/pdf: it could not be read]"]
    assert list((house.data / "files").iterdir()) == []


async def test_a_file_that_grows_beyond_the_limit_while_it_comes_is_not_kept(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server, file_limit=100) as scene:
        file_id = server.store_file(b"x" * 5000, "liar.bin")
        document = {"file_id": file_id, "file_unique_id": "u", "file_name": "liar.bin", "file_size": 5}
        scene.say("", document=document)
        await scene.sees("I could not fetch the file liar.bin: the file has more than 100 bytes")
        await scene.sees("You said:")
    assert list((house.data / "files").iterdir()) == []


async def test_documents_and_voices_are_kept_and_named_to_the_model(
    house: House, server: TelegramServer, claude: AnthropicServer, seeing: AnthropicModel
) -> None:
    async with running(house, server, model=seeing) as scene:
        scene.server.send_file(ADA, ADA, b"a;b\n1;2\n", "../../etc/table.csv", "text/csv", "look")
        await scene.sees("ok")
        kept = next((house.data / "files").iterdir())
        assert kept.read_bytes() == b"a;b\n1;2\n"
        [words, file] = [block["text"] for block in last_content(claude)]
        assert words == "Ada: look"
        assert file == f"[file ../../etc/table.csv, text/csv, saved as files/{kept.name}]"
        voice = {"file_id": server.store_file(b"OggS", "v"), "file_unique_id": "u", "duration": 1}
        scene.say("", voice={**voice, "mime_type": "audio/ogg", "file_size": 4})
        await scene.sees("ok", count=2)
        [line] = [block["text"] for block in last_content(claude)]
        assert re.fullmatch(r"\[file voice-\d+\.ogg, audio/ogg, saved as files/[0-9a-f]{32}\.ogg\]", line)
        server.send_file(ADA, ADA, b"%PDF-1.4 tiny", "paper.pdf", "application/pdf")
        await scene.sees("ok", count=3)
    [document] = last_content(claude)
    assert base64.b64decode(document["source"]["data"]) == b"%PDF-1.4 tiny"


async def test_a_download_that_fails_is_tried_again(house: House, server: TelegramServer) -> None:
    async with running(house, server, clock=FakeClock()) as scene:
        server.cut_next("getFile")
        server.fail_next("getFile", 429, "Too Many Requests: retry after 3", {"retry_after": 3})
        scene.server.send_file(ADA, ADA, b"content", "note.txt", "text/plain", "keep")
        await scene.sees("You said: keep")
        [block] = [b for b in house.requests[-1].messages[0].content if isinstance(b, File)]
    assert (house.data / block.path).read_bytes() == b"content"


async def test_files_of_a_tool_follow_the_answer_as_picture_and_document(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        scene.say("make chart.png sub/report.txt")
        await scene.until(lambda: len(server.from_bot(ADA)) == 3, "answer and two files")
        await scene.rest()
    answer, picture, document = server.from_bot(ADA)
    assert answer["text"] == "Result: made"
    assert server.files[picture["photo"][0]["file_id"]]["content"] == PICTURE
    assert document["document"]["file_name"] == "report.txt"
    assert server.files[document["document"]["file_id"]]["content"] == b"content of sub/report.txt"


async def test_a_picture_that_telegram_does_not_take_as_one_goes_as_a_document(
    house: House, server: TelegramServer
) -> None:
    server.fail_next("sendPhoto", 400, "Bad Request: PHOTO_INVALID_DIMENSIONS")
    async with running(house, server) as scene:
        scene.say("make chart.png")
        await scene.until(lambda: len(server.from_bot(ADA)) == 2, "answer and file")
    document = server.from_bot(ADA)[-1]["document"]
    assert server.files[document["file_id"]]["content"] == PICTURE


@pytest.mark.parametrize("name", ["../secret.txt", "gone.txt", "link.txt"])
async def test_only_files_in_the_data_folder_leave_it(
    house: House, server: TelegramServer, name: str
) -> None:
    secret = house.folder / "secret.txt"
    secret.write_text("secret")
    house.data.mkdir()
    (house.data / "link.txt").symlink_to(secret)
    async with running(house, server) as scene:
        scene.say(f"make {name} fine.txt")
        await scene.until(lambda: len(server.from_bot(ADA)) == 3, "answer, refusal, file")
    _, refusal, file = server.from_bot(ADA)
    assert refusal["text"] == f"I could not send the file {name.split('/')[-1]}: it is not in my folder."
    assert file["document"]["file_name"] == "fine.txt"
    assert b"secret" not in [one["content"] for one in server.files.values()]


async def test_a_file_made_before_a_request_comes_before_its_card_and_only_once(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        scene.say("make then pay")
        card = await scene.card()
        assert server.from_bot(ADA)[0]["document"]["file_name"] == "first.txt"
        await scene.press(card, "Approve")
        await scene.sees("Result: made; paid 5 for A-1")
        await scene.rest()
    assert len([m for m in server.from_bot(ADA) if "document" in m]) == 1


async def test_a_file_that_telegram_refuses_is_told_and_the_rest_follows(
    house: House, server: TelegramServer
) -> None:
    server.fail_next("sendDocument", 413, "Request Entity Too Large")
    async with running(house, server) as scene:
        scene.say("make big.txt small.txt")
        await scene.until(lambda: len(server.from_bot(ADA)) == 3, "answer, refusal, file")
    _, refusal, file = server.from_bot(ADA)
    assert refusal["text"] == "I could not send the file big.txt: the file is too large for Telegram."
    assert file["document"]["file_name"] == "small.txt"


async def test_a_file_of_a_turn_that_was_taken_over_is_sent_once(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        scene.say("make then work")
        await house.at_work.wait()
    assert [m for m in server.from_bot(ADA) if "document" in m] == []
    async with running(house, server) as scene:
        question = await scene.card("treat as done")
        await scene.press(question, "treat as done")
        await scene.sees("Result: made; ")
        await scene.rest()
    assert len([m for m in server.from_bot(ADA) if "document" in m]) == 1


async def test_a_file_that_the_agent_sends_comes_with_its_caption_before_the_answer(
    house: House, server: TelegramServer
) -> None:
    async with (
        sender(house.folder, house.data, "telegram") as (agent, model),
        running(house, server, agent=agent, model=model) as scene,
    ):
        scene.say("the report please")
        await scene.until(lambda: len(server.from_bot(ADA)) == 3, "caption, file and answer")
        await scene.rest()
    texts = [message.get("text") for message in server.from_bot(ADA)]
    assert sorted(filter(None, texts)) == ["May @\u2060everyone", "sent"]
    (document,) = [message["document"] for message in server.from_bot(ADA) if "document" in message]
    assert document["file_name"] == "may.csv"
    assert server.files[document["file_id"]]["content"] == b"a,b\n"
    assert texts.index("May @\u2060everyone") + 1 == texts.index(None)
