"""Questions over HTTP: values of a kind, several questions in one answer."""

from __future__ import annotations

import json

import pytest

from gateway.messages import Json
from tests.app_scene import Scene

WHOLE: Json = {"env": "prod", "count": 3, "sure": True, "tell": ["ops", "all"]}


async def result(scene: Scene, session_id: str) -> str:
    """What the model made of the answer."""
    view = await scene.until(session_id, lambda view: view["status"] == "completed")
    text = view["messages"][-1]["content"][0]["text"]
    assert isinstance(text, str)
    return text.removeprefix("Result: ")


@pytest.mark.parametrize("given", [12.5, "12.5", ["12.50"], 12])
async def test_a_number_is_answered_as_a_number_or_a_text(scene: Scene, given: object) -> None:
    asked = await scene.ask("ask number")
    status, click = await scene.answer(asked["pending"][0], given)
    assert (status, click["outcome"]) == (200, "resumed")
    assert float(await result(scene, asked["session_id"])) == pytest.approx(float(str(given).strip("[']")))


@pytest.mark.parametrize("given", ["many", True, ["1", "2"], [], {"answer": 3}])
async def test_what_is_no_number_is_invalid_and_the_question_stays_open(scene: Scene, given: object) -> None:
    asked = await scene.ask("ask number")
    status, click = await scene.answer(asked["pending"][0], given)
    assert (status, click["outcome"]) == (422, "invalid")
    assert click["problems"][0]["message"]
    assert len((await scene.get("/pending"))["pending"]) == 1


async def test_several_questions_are_answered_by_an_object(scene: Scene) -> None:
    asked = await scene.ask("ask several")
    (card,) = (await scene.view(asked["session_id"]))["cards"]
    assert [(p["name"], p["answer_kind"], p["answered"]) for p in card["parts"]] == [
        ("env", "text", None),
        ("count", "integer", None),
        ("sure", "boolean", None),
        ("tell", "text", None),
    ]
    assert (card["parts"][3]["multi"], card["parts"][3]["least"], card["parts"][3]["most"]) == (True, 0, 2)
    assert (card["allow_text"], card["question"]) == (False, "4 questions: env, count, sure, tell")
    status, click = await scene.answer(asked["pending"][0], WHOLE)
    assert (status, click["outcome"]) == (200, "resumed")
    assert "env: prod; count: 3; sure: true; tell: ops, all" in click["message"]
    assert json.loads(await result(scene, asked["session_id"])) == WHOLE


async def test_none_of_the_options_is_an_empty_list(scene: Scene) -> None:
    asked = await scene.ask("ask several")
    given = {**WHOLE, "tell": []}
    assert (await scene.answer(asked["pending"][0], given))[0] == 200
    assert json.loads(await result(scene, asked["session_id"])) == given


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"env": "prod", "count": 3}, ["sure", "tell"]),
        ({**WHOLE, "count": 1.5, "env": "moon"}, ["env", "count"]),
        ({**WHOLE, "more": "x"}, ["more"]),
        ("prod", ["prod", "env", "count", "sure", "tell"]),
    ],
)
async def test_each_fault_of_several_answers_is_named_at_its_field(
    scene: Scene, given: object, fields: list[str]
) -> None:
    asked = await scene.ask("ask several")
    status, click = await scene.answer(asked["pending"][0], given)
    assert (status, click["outcome"]) == (422, "invalid")
    assert [problem["field"] for problem in click["problems"]] == fields
    assert (await scene.answer(asked["pending"][0], WHOLE))[0] == 200
    await result(scene, asked["session_id"])
