"""An agent that chooses to say nothing, on Slack: nothing flashes up, nothing is sent, nothing stays."""

from __future__ import annotations

from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import HERS, TRANSPORTS, House, running
from tests.silence import ALMOST, FIRST, TOKEN, Silent


def ever_sent(server: SlackServer) -> str:
    """Everything that was posted or streamed, whatever became of it."""
    return " ".join(str(call.arguments) for call in server.calls if call.method.startswith("chat."))


@TRANSPORTS
async def test_c067_nothing_is_sent_and_the_sign_of_life_is_taken_away(
    house: House, server: SlackServer, transport: str
) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    async with running(
        house, server, transport=transport, agent=agent, model=model, clock=FakeClock()
    ) as scene:
        asked = scene.call("lunch, anybody?")
        await scene.until(lambda: scene.texts(thread=asked.ts), "a sign of life")
        assert model.half_said.is_set()
        model.let_go.set()
        await scene.until(lambda: not scene.texts(), "an empty channel again")
        await scene.rest()
        assert FIRST not in ever_sent(server)
        scene.say("hello", thread=asked.ts)
        await scene.sees("Hello.", thread=asked.ts)
        await scene.rest()
        assert scene.texts() == ["Hello."]
        assert [m.text for m in model.said] == ["lunch, anybody?", f"{TOKEN}\n", "hello"]


async def test_c067_in_an_assistant_thread_the_status_goes_and_nothing_comes(
    house: House, server: SlackServer
) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    async with running(house, server, agent=agent, model=model, clock=FakeClock()) as scene:
        asked = scene.say("good night", channel=HERS)
        await scene.until(lambda: server.status(HERS, asked.ts), "a status")
        model.let_go.set()
        await scene.until(lambda: not server.status(HERS, asked.ts), "no status")
        await scene.rest()
        assert scene.texts(HERS) == []
        assert FIRST not in ever_sent(server)


async def test_c067_more_than_the_word_is_an_answer(house: House, server: SlackServer) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    model.let_go.set()
    async with running(house, server, agent=agent, model=model) as scene:
        scene.call("almost")
        await scene.sees(ALMOST)
