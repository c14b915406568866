"""/model: which model answers in a session, and choosing another one."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.agent import Agent
from gateway.events import TurnDone
from gateway.messages import Text
from gateway.providers.base import Model, ModelRequest, ModelResponse, OnDelta, Usage
from gateway.providers.prices import Price, Priced
from tests.unit.gateway.scene import ELSEWHERE, House, HouseModel, Office, call, calls, running

NAMES = ("main", "large", "Small")


class Named:
    """The house's model under a name: it says who answered."""

    def __init__(self, house: House, agent: Agent) -> None:
        self._model, self._names = HouseModel(house), (agent.model, *agent.failover)

    @property
    def id(self) -> str:
        return "/".join(self._names)

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        reply = await self._model.complete(request)
        if any(not isinstance(block, Text) for block in reply.content):
            return reply
        words = (Text(text=f"{self.id}: {reply.content[0].text}"),)  # type: ignore[union-attr]
        return ModelResponse(content=words, stop=reply.stop, usage=reply.usage, model=self.id)

    async def close(self) -> None:
        await self._model.close()


def several(house: House, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    def model_of(agent: Agent) -> Model:
        return Named(house, agent)

    return {"models": names, "model_of": model_of}


async def said(office: Office, text: str, **more: object) -> str:
    await office.say(text, **more)
    return office.world.texts()[-1]


async def test_the_model_and_the_names_to_choose_from_are_told(house: House) -> None:
    async with running(house, **several(house)) as office:
        text = await said(office, "/model")
        assert "The model here is main." in text
        assert all(name in text for name in NAMES)


async def test_a_chosen_model_answers_here_and_nowhere_else_and_after_a_restart(house: House) -> None:
    async with running(house, house.agent(failover=("large", "Small")), **several(house)) as office:
        assert await said(office, "hello") == "main/large/Small: you said: hello"
        assert await said(office, "/model large") == "The model here is large from now on."
        assert await said(office, "hello") == "large/Small: you said: hello"
        assert "large (chosen here; the agent's own is main" in await said(office, "/model")
        await office.say("hello", key=ELSEWHERE)
        assert office.world.texts(ELSEWHERE)[-1] == "main/large/Small: you said: hello"
        await office.kill()
    async with running(house, house.agent(failover=("large", "Small")), **several(house)) as office:
        assert await said(office, "hello") == "large/Small: you said: hello"
        assert await said(office, "/model default") == "The model here is main from now on."
        assert await said(office, "hello") == "main/large/Small: you said: hello"
        assert (await office.audit()).count("model") == 2


async def test_a_model_chosen_before_the_first_word_answers_it(house: House) -> None:
    async with running(house, **several(house)) as office:
        assert await said(office, "/model small") == "The model here is Small from now on."
        assert await said(office, "hello") == "Small: you said: hello"


async def test_new_goes_back_to_the_agents_own_model(house: House) -> None:
    async with running(house, **several(house)) as office:
        await office.say("/model large")
        await office.say("/new")
        assert await said(office, "hello") == "main: you said: hello"


@pytest.mark.parametrize("name", ["huge", "l`arge", "main large"])
async def test_an_unknown_name_is_refused_with_those_there_are(house: House, name: str) -> None:
    async with running(house, **several(house)) as office:
        text = await said(office, f"/model {name}")
        assert "There is no model" in text
        assert all(known in text for known in (*NAMES, "default"))
        assert await said(office, "hello") == "main: you said: hello"


async def test_people_who_may_not_talk_choose_no_model(house: House) -> None:
    async with running(house, **several(house)) as office:
        await office.say("hello")
        await office.say("/model large", user="eve")
        assert (await office.session()).model == ""


async def test_a_choice_while_a_turn_runs_holds_from_the_next_one_on(house: House) -> None:
    hold = house.hold("slow")
    async with running(house, **several(house)) as office:
        await office.talk.say("slow")
        await hold.is_reached()
        await office.talk.say("/model large")
        await office.until(lambda: any("as soon as I am through" in text for text in office.world.texts()))
        hold.go.set()
        await office.settle()
        assert "main: you said: slow" in office.world.texts()
        assert await said(office, "hello") == "large: you said: hello"


async def test_a_turn_that_waits_goes_on_with_the_model_chosen_meanwhile(house: House) -> None:
    house.plan["pay A"] = [calls(call("pay", order="A")), "paid A"]
    async with running(house, **several(house)) as office:
        await office.say("pay A")
        await office.say("/model large")
        (record,) = await office.pendings()
        await office.say(f"/approve {record.pending.code}")
        assert office.world.texts()[-1] == "large: paid A"
        assert house.ran == ["pay A 10"]


async def test_a_chosen_model_that_is_no_longer_configured_gives_way_to_the_agents_own(house: House) -> None:
    async with running(house, **several(house)) as office:
        await office.say("/model large")
    async with running(house, **several(house, ("main",))) as office:
        assert await said(office, "hello") == "main: you said: hello"
        assert "The model here is main." in await said(office, "/model")


async def test_where_nothing_can_be_chosen_the_name_is_still_told(house: House) -> None:
    async with running(house) as office:
        assert await said(office, "/model") == "The model here is main."
        assert "No other can be chosen here" in await said(office, "/model large")


class Counted:
    """A model whose every reply has the same usage."""

    id = "counted"

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        usage = Usage(input=1_000, output=50, cached=800)
        return ModelResponse(content=(Text(text="fine"),), stop="end", usage=usage, model=self.id)

    async def close(self) -> None:
        pass


async def test_a_turn_tells_what_it_has_used_and_cost(house: House) -> None:
    model = Priced(Counted(), Price(input=10, output=20, cached=1))
    async with running(house, model_of=lambda agent: model) as office:
        await office.say("hello")
        done = [event for _, event in house.events if isinstance(event, TurnDone)][-1]
        counts = {"input": 1_000, "output": 50, "cached": 800, "cache_written": 0}
        assert done.usage == {**counts, "cost": pytest.approx(0.0038)}
        turn = await office.store.turn((await office.session()).turn_id)
        assert turn is not None and turn.usage == done.usage
        status = await said(office, "/status")
        assert "model main" in status
        assert "1,000 tokens in (800 of them from the cache), 50 out, $0.0038." in status


async def test_a_cost_that_is_not_known_is_not_told(house: House) -> None:
    async with running(house, model_of=lambda agent: Counted()) as office:
        await office.say("hello")
        done = [event for _, event in house.events if isinstance(event, TurnDone)][-1]
        assert "cost" not in done.usage
        assert "$" not in await said(office, "/status")
