"""A tool that has to ask while it runs: the question is on disk, the answer runs the call again."""

from __future__ import annotations

from dataclasses import replace

from gateway.agent import Agent
from gateway.messages import Json
from gateway.questions import Option, Question
from gateway.tools.base import CallContext, Tool
from gateway.tools.waiting import NeedsAnswer
from tests.unit.gateway.scene import House, call, calls, running
from tests.unit.gateway.talk import button


def booking(house: House) -> Agent:
    async def run(args: Json, context: CallContext) -> str:
        house.ran.append("book")
        for key, labels in (("size", ("small", "large")), ("colour", ("red", "blue"))):
            if key not in context.said:
                options = tuple(Option(label=label) for label in labels)
                raise NeedsAnswer(Question(text=f"Which {key}?", options=options), key)
        return " ".join(",".join(s.values) or s.closed for s in context.said.values())

    book = Tool(name="book", description="Book.", input_schema={"type": "object"}, handler=run)
    agent = house.agent()
    return replace(agent, tools=(*agent.tools, book))


async def test_two_questions_of_one_call_are_answered_across_restarts(house: House) -> None:
    house.plan["go"] = [calls(call("book")), "booked"]
    async with running(house, booking(house)) as office:
        await office.say("go")
        await office.kill()
    async with running(house, booking(house)) as office:
        ref, card = house.world.card()
        assert await office.press(ref, button(card, "large"))
        assert house.ran == ["book", "book"]
        await office.kill()
    async with running(house, booking(house)) as office:
        ref, card = house.world.card()
        assert card.title != ""
        await office.press(ref, button(card, "blue"))
        log = await office.log()
        assert [r.content for m in log for r in m.results] == ["large blue"]
        assert log[-1].text == "booked"
        assert house.ran == ["book"] * 3
        assert [p.state for p in await office.pendings(open_only=False)] == ["answered", "answered"]


async def test_a_stop_closes_what_the_call_had_asked(house: House) -> None:
    house.plan["go"] = [calls(call("book")), "booked"]
    async with running(house, booking(house)) as office:
        await office.say("go")
        await office.say("/stop")
        assert [p.state for p in await office.pendings(open_only=False)] == ["superseded"]
        assert house.ran == ["book"]
        assert (await office.session()).status == "idle"
        await office.log()
