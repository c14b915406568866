"""An agent that chooses to say nothing, on Discord: nothing flashes up, nothing is sent, nothing stays."""

from __future__ import annotations

from tests.clock import FakeClock
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import ADA, GENERAL, House, running
from tests.silence import ALMOST, FIRST, TOKEN, Silent


def ever_sent(server: DiscordServer) -> str:
    """Everything that was sent, whatever became of it."""
    return " ".join(str(call.body) for call in server.calls)


async def test_c067_nothing_is_sent_and_the_sign_of_life_is_taken_away(
    house: House, server: DiscordServer
) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    clock = FakeClock(server.now())
    async with running(house, server, agent=agent, model=model, clock=clock, threads=False) as scene:
        scene.call("work")
        await scene.until(lambda: scene.texts(GENERAL), "a sign of life")
        house.let_go.set()
        await model.begun()
        model.let_go.set()
        await scene.until(lambda: not scene.texts(GENERAL), "an empty channel again")
        await scene.rest()
        assert FIRST not in ever_sent(server)
        scene.call("hello")
        await scene.sees("Hello.", GENERAL)
        await scene.rest()
        assert scene.texts(GENERAL) == ["Hello."]
        assert [m.text for m in model.said] == ["work", "", "", f"{TOKEN}\n", "hello"]


async def test_c067_a_command_that_is_answered_with_silence_leaves_nobody_waiting(
    house: House, server: DiscordServer
) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    async with running(house, server, agent=agent, model=model) as scene:
        await scene.until(lambda: server.commands, "commands")
        asked = await server.slash(ADA, GENERAL, "ask", prompt="good night").taken()
        await model.begun()
        model.let_go.set()
        await scene.rest()
        assert FIRST not in ever_sent(server) and not asked.failed
        assert [text.splitlines()[-1] for text in scene.texts(GENERAL)] == ["> good night"]  # the question


async def test_c067_more_than_the_word_is_an_answer(house: House, server: DiscordServer) -> None:
    model, agent = Silent(), house.agent(silence=TOKEN)
    model.let_go.set()
    async with running(house, server, agent=agent, model=model) as scene:
        scene.say("almost", place=ADA)
        await scene.sees(ALMOST, ADA)
