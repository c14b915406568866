"""A subagent's request in a Slack thread: asked where it began, decided after a restart, told by the
agent of the thread alone."""

from __future__ import annotations

from dataclasses import replace

from gateway.agent import Agent, Subagent
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.tools.subagent import with_subagents
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import ADA, GENERAL, House, HouseModel, running


class Delegating(HouseModel):
    """As the house's, but `have TASK` gives the task to ops."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._scripted = ScriptedModel(self._delegate, chunk=12)

    def _delegate(self, request: ModelRequest) -> Reply:
        start, text = spoken(request.messages)
        if text.startswith("have ") and len(request.messages) == start + 1:
            return Reply(text="", calls=(Call(tool="ops", args={"task": text.removeprefix("have ")}),))
        return self._reply(request)


def agents(house: House) -> tuple[Agent, Agent]:
    one = house.agent(subagents=(Subagent(agent="ops"),))
    two = replace(house.agent(tool_description="Pays."), name="ops")
    both = with_subagents({"assistant": one, "ops": two})
    return both["assistant"], both["ops"]


async def test_the_card_stands_in_the_thread_and_works_after_a_restart(
    house: House, server: SlackServer
) -> None:
    chosen, ops = agents(house)
    async with running(house, server, agent=chosen, more=[ops], model=Delegating(house)) as scene:
        asked = scene.call("have pay A-1 30")
        card = await scene.card(thread=asked.ts)
        assert "Asked by ops, working for assistant." in card.text
        scene.server.open_home(ADA)
        await scene.until(lambda: "working for assistant" in str(scene.server.home(ADA)), "it is at home")
        await scene.rest()
    async with running(house, server, agent=chosen, more=[ops], model=Delegating(house)) as scene:
        await scene.press(card, "Approve")
        await scene.sees("Result: Result: paid 30 for A-1")
        await scene.rest()
        assert [payment["order"] for payment in house.paid] == ["A-1"]
        texts = [post.text for post in scene.posts(GENERAL, asked.ts)]
        assert len([text for text in texts if "Result:" in text]) == 1
