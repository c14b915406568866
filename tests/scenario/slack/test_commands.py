"""The slash command wherever it can be typed, and the bare words that people write after the bot's name."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gateway.messages import Json
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    BOB,
    GENERAL,
    GUEST,
    HERS,
    ME,
    OUTSIDER,
    QUESTIONS,
    SHARED,
    TRANSPORTS,
    House,
    Scene,
    running,
)

ELSEWHERE = "C3"  # where the bot is no member


@pytest.fixture(params=["socket", "http"])
async def scene(request: pytest.FixtureRequest, house: House, server: SlackServer) -> AsyncIterator[Scene]:
    async with running(house, server, transport=request.param) as scene:
        yield scene


# ---- where a slash command is typed


@pytest.mark.parametrize("place", [ELSEWHERE, HERS, "M1", "G1"])
async def test_a_command_is_answered_in_private_wherever_it_is_typed(scene: Scene, place: str) -> None:
    assert (await scene.command("status", channel=place)).startswith("Nothing has been said here yet.")
    assert scene.texts(place) == []
    (answer,) = scene.server.ephemerals(ADA)
    assert answer["channel"] == place
    assert len(scene.server.called("response_url")) == 1


async def test_where_the_bot_is_no_member_and_the_address_is_gone_it_is_a_direct_message(
    scene: Scene,
) -> None:
    scene.server.fail_next("response_url", 404)
    await scene.server.slash(ADA, ELSEWHERE, "help").taken()
    await scene.sees("Write to me as to a person.", HERS)
    assert scene.texts(ELSEWHERE) == []


async def test_a_guest_who_is_not_listed_is_told_so_alone_and_one_who_is_gets_an_answer(
    house: House, server: SlackServer
) -> None:
    async with running(house, server, users=("*",)) as scene:
        assert (await scene.command("status", GUEST)).startswith("You are not on the list")
        assert scene.texts(GENERAL) == []
    async with running(house, server, users=("UG",)) as scene:
        assert "Nothing waits" in await scene.command("pending", GUEST)


@TRANSPORTS
async def test_somebody_of_another_organisation_is_known_by_the_own_workspace(
    house: House, server: SlackServer, transport: str
) -> None:
    """Slack offers no commands of ours to them; should it ever, the id alone opens nothing."""
    server.user("U9", "una", team="T2")
    server.channels[SHARED].members.add("U9")

    def form(user: str) -> Json:
        return {
            "token": "x",
            "team_id": "T2",
            "channel_id": SHARED,
            "user_id": user,
            "command": "/threadgate",
            "text": "status",
            "response_url": server.new_response_url(user, SHARED),
            "trigger_id": server.new_trigger(user),
        }

    async with running(house, server, transport=transport, users=("T1:U9", "T2:UX")) as scene:
        for user, words in (("U9", "You are not on the list"), (OUTSIDER, "Nothing has been said")):
            await server.deliver("slash_commands", form(user), user).taken()
            assert (await scene.told(user)).startswith(words)


async def test_quotes_lines_and_marks_in_a_command_arrive_as_they_were_typed(scene: Scene) -> None:
    scene.call("pay A-1 30")
    card = await scene.card()
    code = card.text.rsplit("Code: ", 1)[1].split()[0]
    await scene.command(f'deny {code} "not *this* order",\nask \u201cher\u201d &lt;first&gt; &amp; wait')
    await scene.shows(card, "Denied by ada")
    await scene.sees('You said: "not ')
    (said,) = [m.text for m in scene.house.said() if m.text.startswith('"not')]
    assert "ask \u201cher\u201d <first> & wait" in said
    assert scene.house.paid == []


@pytest.mark.parametrize("typed", ["", "   ", "/help", "!help", "HELP", "<@UBOT>"])
async def test_an_empty_command_and_odd_spellings_get_the_list(scene: Scene, typed: str) -> None:
    assert "/pending" in await scene.command(typed)


async def test_a_command_in_a_channel_means_its_authors_newest_thread_there(scene: Scene) -> None:
    scene.call("pay A-1 30")
    old = await scene.card()
    newer = scene.call("work")
    await scene.house.at_work.wait()
    assert (await scene.command("stop")).startswith("Stopped.")
    await scene.until(lambda: [t for t in scene.texts(thread=newer.ts) if "topped" in t], "the end there")
    assert "Approve" in old.labels


# ---- bare words


@pytest.mark.parametrize("words", ["stop", "Stop", "STOP ", "  stop"])
async def test_the_bare_word_after_the_bots_name_is_the_command(scene: Scene, words: str) -> None:
    asked = scene.call("work")
    await scene.house.at_work.wait()
    scene.call(words, thread=asked.ts)
    await scene.sees("Stopped", thread=asked.ts)
    await scene.rest()
    assert len(scene.house.requests) == 1


async def test_each_bare_word_does_what_it_says(scene: Scene) -> None:
    asked = scene.call("hello")
    await scene.sees("You said: hello")
    for word, words in (
        ("status", "Agent assistant"),
        ("pending", "Nothing waits"),
        ("help", "Write to me as to a person."),
        ("new", "A fresh conversation begins here."),
    ):
        scene.call(word, thread=asked.ts)
        await scene.sees(words, thread=asked.ts)
    await scene.rest()
    assert len(scene.house.requests) == 1


@pytest.mark.parametrize(
    "words", ["stop the deploy", "stop!", "please stop", "approve", "model", "status?", "`stop`"]
)
async def test_anything_more_than_the_word_is_talk(scene: Scene, words: str) -> None:
    scene.call(words)
    await scene.sees(f"You said: {words}")


async def test_without_the_bots_name_the_word_is_talk(scene: Scene) -> None:
    scene.say("stop", channel=HERS)
    await scene.sees("You said: stop", HERS)
    asked = scene.call("hello")
    scene.say("help", thread=asked.ts)
    await scene.sees("You said: help", thread=asked.ts)
    scene.say(f"{ME} status", channel=HERS)
    await scene.sees("Nothing has been said here yet.", HERS)


async def test_a_word_that_an_open_question_offers_is_its_answer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUESTIONS, "service", {"question": "What now?", "options": ["stop", "restart"]})
    asked = scene.call("service")
    card = await scene.card("restart")
    scene.call("stop", thread=asked.ts)
    await scene.sees("Result: stop", thread=asked.ts)
    await scene.shows(card, "Answered by ada")


async def test_an_edit_into_a_bare_word_is_no_command(scene: Scene) -> None:
    asked = scene.call("work")
    await scene.house.at_work.wait()
    waiting = scene.call("helo", BOB, thread=asked.ts)
    await scene.server.settled()
    scene.server.edit(BOB, GENERAL, waiting.ts, f"{ME} status")
    await scene.server.settled()
    scene.house.let_go.set()
    await scene.sees("You said: status", thread=asked.ts)
