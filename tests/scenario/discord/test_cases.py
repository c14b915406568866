"""Public failures of other bots, each with its id, over the real gateway on Discord."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.clock import FakeClock
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import (
    ADA,
    BOB,
    GENERAL,
    QUESTIONS,
    House,
    Scene,
    control,
    running,
)


@pytest.fixture
async def scene(house: House, server: DiscordServer) -> AsyncIterator[Scene]:
    async with running(house, server) as scene:
        yield scene


# ---- formatting


async def test_c015_nothing_on_any_path_pages_anybody(scene: Scene) -> None:
    words = f"Tell @everyone and <@&400000000000000001> that @here is done, <@{BOB}>"
    scene.house.answers["C015"] = words
    asked = scene.call("C015")
    answer = await scene.sees("Tell @everyone", asked)
    scene.say(f"slow @everyone <@{BOB}> and more words", place=asked)  # edits of a growing answer
    await scene.sees("You said: slow @ever", asked)
    scene.house.let_go.set()
    await scene.sees("You said: slow @everyone", asked)
    scene.say(f"pay raw @everyone <@{BOB}>", place=asked)  # a card, its update, an answer to a press
    card = await scene.card(place=asked)
    await scene.press(card, "Approve")
    await scene.sees("Result: ", asked)
    await scene.until(lambda: scene.server.commands, "commands")
    await scene.server.slash(ADA, GENERAL, "ask", prompt="@everyone hello").taken()  # the deferred answer
    await scene.until(lambda: len(scene.server.threads(GENERAL)) == 2, "its thread")
    await scene.command("status", place=asked)
    await scene.rest()
    assert scene.server.paged() == []
    assert "@everyone" in answer.text and "@here" in answer.text
    checked = 0
    for call in scene.server.calls:
        body = call.body if isinstance(call.body, dict) else {}
        for payload in (body, body.get("data")):
            if isinstance(payload, dict) and ("content" in payload or "embeds" in payload):
                assert payload["allowed_mentions"]["parse"] == [], call.route
                checked += 1
    assert checked >= 6


async def test_c021_code_longer_than_a_message_stays_code_in_every_one(scene: Scene) -> None:
    lines = [f"line {number} of code" for number in range(300)]
    scene.house.answers["C021"] = "Look:\n```python\n" + "\n".join(lines) + "\n```\nDone."
    asked = scene.call("C021")
    await scene.until(lambda: any("Done." in text for text in scene.texts(asked)), "the end")
    await scene.rest()
    texts = scene.texts(asked)
    assert len(texts) > 1
    for text in texts:
        assert text.count("```") == 2
    inside = "\n".join(text.split("```python\n")[1].split("\n```")[0] for text in texts)
    assert inside.split("\n") == lines


# ---- clocks and tokens


async def test_c016_the_acknowledgement_comes_before_any_slow_work_and_exactly_once(scene: Scene) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    async with scene.server.held("PATCH /channels/*/messages/*"):  # drawing the card takes for ever
        click = await scene.server.press(ADA, asked, card.id, "Approve").taken(within=3)
        assert click.response == 6
        await scene.until(lambda: scene.house.paid, "the decision")
    await scene.shows(card, "Approved by Ada")
    answers = scene.server.called(f"POST /interactions/{click.id}/*")
    assert [call.status for call in answers] == [204]


@pytest.mark.parametrize(("status", "code"), [(404, 10062), (400, 40060)])
async def test_c016_a_press_whose_acknowledgement_fails_counts_once_and_the_card_shows_it(
    scene: Scene, status: int, code: int
) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    scene.server.fail_next("POST /interactions/*", status, code=code)
    scene.server.press(ADA, asked, card.id, "Approve")
    await scene.sees("Result: paid 30 for A-1", asked)
    await scene.shows(card, "Approved by Ada")
    await scene.rest()
    assert len(scene.house.paid) == 1
    scene.server.advance(4)  # what the person saw of it is Discord's own


async def test_c017_words_for_one_person_after_15_minutes_are_shown_by_the_card_alone(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server, clock=FakeClock(server.now())) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        async with server.held("PATCH /channels/*/messages/*"):
            click = await server.press(ADA, asked, card.id, "Approve").taken()
            await scene.until(lambda: house.paid, "the decision")
            await scene.passes(16 * 60)
        await scene.shows(card, "Approved by Ada")
        await scene.sees("Result: paid 30 for A-1", asked)
        await scene.rest()
        late = [c for c in server.called("* /webhooks/*") if c.at - click.at > 900]
        assert late == []


@pytest.mark.parametrize("restart", [False, True])
async def test_c018_a_button_works_minutes_later_in_this_process_and_in_the_next(
    house: House, server: DiscordServer, restart: bool
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        await scene.rest()
        if not restart:
            server.advance(600)
            await scene.press(card, "Approve")
            await scene.sees("Result: paid 30 for A-1", asked)
            await scene.rest()
    if restart:
        server.advance(600)
        async with running(house, server) as scene:
            (card,) = scene.cards(place=asked)
            await scene.press(card, "Approve")
            await scene.sees("Result: paid 30 for A-1", asked)
            await scene.shows(card, "Approved by Ada")
            await scene.rest()
    assert len(house.paid) == 1


async def test_c018_selects_forms_and_pages_work_in_the_next_process_as_well(
    house: House, server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Any] = [f"colour {number}" for number in range(30)]
    monkeypatch.setitem(QUESTIONS, "colours", {"question": "Which?", "options": options})
    async with running(house, server) as scene:
        one, two = scene.call("colours"), scene.call("pay A-1 30")
        await scene.card("colour 7", one)
        await scene.card(place=two)
        await scene.rest()
    async with running(house, server) as scene:
        (question,), (card,) = scene.cards("colour 7", one), scene.cards(place=two)
        await server.press(ADA, one, question.id, "Next ›").taken()
        await scene.choose(question, ["colour 27"])
        await scene.sees("Result: colour 27", one)
        await scene.fill_in(card, "Edit", {"amount": "2"})
        await scene.sees("Result: [Ada", two)
        await scene.rest()
    assert house.paid == [{"order": "A-1", "amount": 2}]


async def test_c018_a_form_that_was_open_while_the_process_died_can_still_be_sent(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("pay A-1 30")
        card = await scene.card(place=asked)
        opened = await server.press(ADA, asked, card.id, "Edit").taken()
        await scene.rest()
    async with running(house, server) as scene:
        sent = await server.submit(opened, {"amount": "3"}).taken()
        assert not sent.failed
        await scene.sees("Result: [Ada", asked)
        await scene.rest()
    assert house.paid == [{"order": "A-1", "amount": 3}]


async def test_c018_a_click_on_a_request_that_is_no_more_is_told_so_and_its_buttons_vanish(
    scene: Scene,
) -> None:
    asked = scene.call("pay A-1 30")
    card = await scene.card(place=asked)
    custom_id = control(card, "Approve")["custom_id"]
    scene.call("/new", place=asked)
    await scene.shows(card, "Closed by /new")
    assert card.labels == []
    late = await scene.server.forge(ADA, asked, card.id, custom_id).taken()  # drawn before, pressed now
    assert "Closed by /new" in await scene.answer_to(late)
    await scene.rest()
    assert scene.house.paid == []


# ---- events that come again, and edits


async def test_c027_an_event_that_is_replayed_is_one_turn_also_after_a_restart(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("work")
        said = server.look(GENERAL, asked)
        await scene.at_work(asked)
        server.redeliver(said)
        server.redeliver(said)
        house.let_go.set()
        await scene.sees("Result: worked", asked)
        server.redeliver(said)
        end = scene.call("one")
        await scene.sees("You said: one", end)
        await scene.rest()
    async with running(house, server) as scene:
        server.redeliver(said)
        end = scene.call("two")
        await scene.sees("You said: two", end)
        await scene.rest()
        assert scene.texts(asked) == ["Result: worked"]


async def test_c032_previews_start_nothing_and_an_edit_before_its_turn_counts(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("work")
        await scene.at_work(asked)
        waiting = scene.say("helo https://example.com", place=asked)
        server.touch(asked, waiting)
        server.touch(GENERAL, asked)
        server.edit(asked, waiting, "hello there")
        await scene.taken_in()
        house.let_go.set()
        answer = await scene.sees("You said: hello there", asked)
        server.touch(asked, waiting)
        server.touch(asked, answer.id)  # our own message
        scene.say("the end", place=asked)
        await scene.sees("You said: the end", asked)
        await scene.rest()
        assert [post.message["content"] for post in scene.posts(asked)] == [
            "Result: worked",
            "You said: hello there",
            "You said: the end",
        ]


async def test_a_message_that_its_author_deleted_before_its_turn_is_not_answered(scene: Scene) -> None:
    asked = scene.call("work")
    await scene.at_work(asked)
    waiting = [scene.say(words, place=asked) for words in ("never mind", "nor this", "nor that")]
    scene.server.delete(asked, waiting[0])
    scene.server.delete(asked, *waiting[1:])
    scene.say("the end", place=asked)
    await scene.taken_in()
    scene.house.let_go.set()
    await scene.sees("You said: the end", asked)
    await scene.rest()
    assert scene.texts(asked) == ["Result: worked", "You said: the end"]


# ---- questions


async def test_c052_a_question_is_answered_after_a_restart_and_hours(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("ask")
        await scene.card("prod", asked)
        await scene.rest()
    server.advance(7_200)
    async with running(house, server) as scene:
        (card,) = scene.cards("prod", asked)
        await scene.press(card, "prod")
        await scene.sees("Result: prod", asked)
        await scene.shows(card, "Answered by Ada")


async def test_c054_long_options_can_be_told_apart_and_the_answer_is_the_whole_text(
    house: House, server: DiscordServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: list[Any] = [f"{'the same beginning ' * 4}and then {n:02} of them" for n in range(26)]
    options.append({"label": "East", "value": "e1"})
    monkeypatch.setitem(QUESTIONS, "many", {"question": "Which?", "options": options})
    async with running(house, server) as scene:
        asked = scene.call("many")
        card = await scene.card("Other…", asked)
        assert all(option in card.text for option in options[:26])
        assert "East" in card.text and "{" not in card.text
        picks = [label for label in card.labels if label.startswith("18")]
        assert len(picks) == 1 and len(set(card.labels)) == len(card.labels)
        await scene.choose(card, picks)
        await scene.sees(f"Result: {options[17]}", asked)
