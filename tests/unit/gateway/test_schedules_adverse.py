"""What may be tried by way of an agent that plans and cancels."""

from __future__ import annotations

import pytest

from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Reply, ScriptedModel, spoken
from tests.unit.gateway.scene import House, call, calls, running
from tests.unit.gateway.test_schedules import HEAD, model, only


@pytest.mark.parametrize(
    ("user", "decides", "may"), [("ann", "nobody", True), ("bob", "nobody", False), ("bob", "bob", True)]
)
async def test_the_agent_takes_back_for_somebody_only_what_they_may_cancel(
    house: House, user: str, decides: str, may: bool
) -> None:
    async with running(house, **model(approvers={"talk": (f"talk:{decides}",)})) as office:
        await office.say("every 1h: look", user="ann")
        code = (await only(office)).schedule.code
        await office.say(f"cancel {code}", user=user)
        words = f"cancelled: {code}" if may else "this was made for talk:w:ann"
        assert words in house.world.texts()[-1]
        assert len(await office.store.schedules()) == (0 if may else 1)


def restless(request: ModelRequest) -> Reply:
    """Has itself woken again as soon as it can, whenever it is woken."""
    start, text = spoken(request.messages)
    results = [result for message in request.messages[start + 1 :] for result in message.results]
    if results:
        return Reply(text="; ".join(result.content for result in results))
    after = "1s" if text.startswith(HEAD) else text
    return calls(call("schedule", after=after, instruction="again"))


async def test_an_agent_that_wakes_itself_does_not_do_so_without_a_pause(house: House) -> None:
    scripted = ScriptedModel(restless)
    async with running(house, **model(model_of=lambda agent: scripted)) as office:
        await office.say("1s")
        assert house.world.texts()[-1].startswith("scheduled, code ")
        house.clock.advance(hours=1 / 1800)
        await office.settle()
        assert "a minute away at least" in house.world.texts()[-1]
        assert await office.store.schedules() == []
