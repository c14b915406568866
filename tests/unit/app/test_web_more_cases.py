"""What went wrong in other bots, over HTTP: presses beside a turn, typed answers, options that look alike."""

from __future__ import annotations

import time

import pytest

from tests.app_scene import LABELS, House, Scene


def results(house: House) -> list[str]:
    """What the model was last told about its calls."""
    return [r.content for m in house.requests[-1].messages for r in m.results]


async def test_c038_no_request_waits_for_a_turn_and_a_stopped_one_can_be_decided_meanwhile(
    scene: Scene,
) -> None:
    waiting = await scene.ask("pay A-1 30")
    busy = await scene.say("work")
    await scene.house.at_work.wait()
    began = time.monotonic()
    queued = await scene.say("and then?", busy["session_id"])
    status, click = await scene.resolve(waiting["pending"][0])
    assert time.monotonic() - began < 2
    assert queued["queued"]
    assert (status, click["outcome"]) == (200, "resumed")
    await scene.until(waiting["session_id"], lambda view: view["status"] == "completed")
    assert len(scene.house.paid) == 1
    scene.house.let_work.set()
    await scene.until(busy["session_id"], lambda view: view["messages"][-1]["role"] == "assistant")


@pytest.mark.parametrize("typed", ["2", "Staging", " STAGING "])
async def test_c051_a_number_or_a_label_in_any_case_is_the_answer(scene: Scene, typed: str) -> None:
    asked = await scene.ask("ask fixed")
    done = await scene.ask(typed, asked["session_id"])
    assert done["text"] == "Result: staging"
    assert results(scene.house) == ["staging"]


async def test_c051_free_text_is_an_answer_only_where_the_question_takes_one(scene: Scene) -> None:
    open_one = await scene.ask("ask")
    done = await scene.ask("use the eu cluster", open_one["session_id"])
    assert done["text"] == "Result: use the eu cluster"
    fixed = await scene.ask("ask fixed")
    done = await scene.ask("unrelated: what is the time?", fixed["session_id"])
    assert done["text"] == "You said: unrelated: what is the time?"
    (card,) = (await scene.view(fixed["session_id"]))["cards"]
    assert card["state"] == "superseded"


async def test_c051_a_command_is_no_answer_and_words_decide_no_approval(scene: Scene) -> None:
    asked = await scene.ask("ask")
    told = await scene.ask("/status", asked["session_id"])
    assert told["turn_id"] is None
    assert (await scene.get("/pending"))["pending"][0]["kind"] == "question"
    waiting = await scene.ask("pay A-1 30")
    await scene.say("yes, approve", waiting["session_id"])
    assert scene.house.paid == []
    kinds = [pending["kind"] for pending in (await scene.get("/pending"))["pending"]]
    assert kinds == ["question", "approval"]


async def test_c054_options_that_begin_alike_are_all_whole_and_the_chosen_one_is_the_result(
    scene: Scene,
) -> None:
    asked = await scene.ask("choose")
    (card,) = (await scene.view(asked["session_id"]))["cards"]
    assert [option["label"] for option in card["options"]] == [*LABELS, "East"]
    assert card["options"][-1]["value"] == "e1"
    await scene.answer(asked["pending"][0], LABELS[12])
    await scene.until(asked["session_id"], lambda view: view["status"] == "completed")
    assert results(scene.house) == [LABELS[12]]
    again = await scene.ask("choose")
    await scene.answer(again["pending"][0], "East")
    await scene.until(again["session_id"], lambda view: view["status"] == "completed")
    assert results(scene.house)[-1] == "e1"
