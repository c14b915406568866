"""More public failures of other bots, each with its id: restarts, and approvals beside talk, on Discord."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.messages import Json
from gateway.tools.base import tool
from tests.clock import FakeClock
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord.house import ADA, BOB, House, Scene, plain, running

REPEAT = "may be a repeat"
FEEDBACK = "What should be done instead?"
SEND = "POST /channels/*/messages"


def results(house: House) -> list[tuple[str, bool]]:
    """What the model was last told about its calls, in order."""
    return [(r.content, r.is_error) for m in house.requests[-1].messages for r in m.results]


async def lines(scene: Scene, kind: str) -> list[Json]:
    """The lines of the record of one kind: whose arguments they are about."""
    found = [line for line in await scene.gateway.store.audit_lines() if line.kind == kind]
    return [{"pending": line.pending_id, "args": line.args_hash} for line in found]


@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it was lost"])
@pytest.mark.parametrize("private", [True, False], ids=["direct", "thread"])
async def test_c031_answers_that_were_sent_are_not_sent_again_after_a_restart(
    house: House, server: DiscordServer, arrived: bool, private: bool
) -> None:
    async with running(house, server) as scene:
        place = ADA if private else scene.call("number 0")
        if private:
            scene.say("number 0", ADA, ADA)
        await scene.sees("You said: number 0", place)
        for number in (1, 2):
            scene.say(f"number {number}", place=place)
            await scene.sees(f"You said: number {number}", place)
        await scene.rest()
        if not arrived:
            server.fail_next(SEND, 503)  # what was on its way is refused
        held = server.hold(SEND)
        scene.say("the last one", place=place)
        await held.until()
        await scene.gateway.stop()
    server.release(SEND)
    await server.wait_for(lambda: len(server.called(SEND)) == 4)
    before = ["You said: number 0", "You said: number 1", "You said: number 2"]
    before += ["You said: the last one"] if arrived else []
    assert scene.texts(place) == before
    for _ in range(2):  # and a further restart has nothing left to send
        async with running(house, server) as scene:
            await scene.until(lambda: len(scene.texts(place)) > len(before), "the one that was on its way")
            await scene.rest()
        texts = scene.texts(place)
        assert texts[:-1] == before
        assert texts[-1].startswith("You said: the last one") and REPEAT in texts[-1]


async def test_c038_presses_commands_and_other_chats_come_through_while_turns_run_and_wait(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        busy = scene.call("work")  # runs all the time
        await scene.at_work(busy)
        asked = scene.call("pay A-1 30")  # waits for a press
        card = await scene.card(place=asked)
        scene.say("and then?", place=asked)
        await scene.sees("-# Noted. Your message is kept", asked)
        scene.say("hello", BOB, BOB)
        await scene.sees("You said: hello", BOB)
        # A press that is not answered within Discord's three seconds fails.
        click = await server.press(ADA, asked, card.id, "Approve").taken()
        assert not click.failed
        await scene.sees("Result: paid 30 for A-1", asked)
        await scene.sees("You said: and then?", asked)
        command = await server.slash(ADA, busy, "status").taken()
        assert not command.failed
        await scene.answer_to(command)
        assert not house.let_go.is_set()
        stopped = await server.slash(ADA, busy, "stop").taken()
        assert not stopped.failed
        assert (await scene.answer_to(stopped)).startswith("Stopped")
        await scene.rest()
        assert "Result: worked" not in scene.texts(busy)
    assert house.paid == [{"order": "A-1", "amount": 30}]


async def test_c038_a_press_is_carried_out_while_a_turn_of_the_same_conversation_has_queued_others(
    house: House, server: DiscordServer
) -> None:
    """A direct conversation is one line: what waits in it holds up no press, no command and no /stop."""
    async with running(house, server) as scene:
        scene.say("pay A-1 30", ADA, ADA)
        card = await scene.card(place=ADA)
        for words in ("one", "two"):
            scene.say(words, ADA, ADA)
        await scene.taken_in()
        await scene.sees("-# Noted. Your message is kept", ADA)
        click = await server.press(ADA, card.place, card.id, "Approve").taken()
        assert not click.failed
        await scene.sees("You said: two", ADA)
        scene.say("work", ADA, ADA)
        await house.at_work.wait()
        scene.say("three", ADA, ADA)
        scene.say("/stop", ADA, ADA)
        await scene.until(lambda: [t for t in scene.texts(ADA) if plain(t).startswith("Stopped")], "the stop")
        assert not house.let_go.is_set()
        await scene.rest()
        answers = [t for t in scene.texts(ADA) if t.startswith(("Result", "You said"))]
    assert answers[:3] == ["Result: paid 30 for A-1", "You said: one", "You said: two"]
    assert len(house.paid) == 1


async def test_c040_what_was_approved_runs_whatever_the_model_would_say_now(
    house: House, server: DiscordServer
) -> None:
    async with running(house, server) as scene:
        place = scene.call("drift")
        card = await scene.card(place=place)
        assert "80" in card.text
        await scene.rest()
        asked = len(house.requests)
    house.drift = 20
    async with running(house, server) as scene:
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 80 for A-1", place)
        await scene.rest()
        (requested,), (approved,) = await lines(scene, "requested"), await lines(scene, "approved")
    assert requested == approved and len(approved["args"]) == 64
    assert house.paid == [{"order": "A-1", "amount": 80}]
    assert len(house.requests) == asked + 1
    assert results(house) == [("paid 80 for A-1", False)]


async def test_c040_a_call_that_would_run_otherwise_than_its_card_says_is_asked_about_again(
    house: House, server: DiscordServer
) -> None:
    """The tool has grown a parameter between card and click: other arguments would run."""

    @tool(name="pay")
    async def dearer(order: str, amount: float, fee: float = 5) -> str:
        """Pay."""
        house.paid.append({"order": order, "amount": amount, "fee": fee})
        return f"paid {amount:g} and {fee:g} for {order}"

    async with running(house, server) as scene:
        place = scene.call("pay A-1 30")
        card = await scene.card(place=place)
        await scene.rest()
    agent = house.agent()
    others = tuple(one for one in agent.tools if one.name != "pay")
    async with running(house, server, agent=replace(agent, tools=(*others, dearer))) as scene:
        click = await server.press(ADA, place, card.id, "Approve").taken()
        assert not click.failed
        again = await scene.until(
            lambda: [c for c in scene.cards(place=place) if c.id != card.id], "another card"
        )
        await scene.rest()
        assert house.paid == [] and len(again) == 1
        assert "fee" in again[0].text and "fee" not in card.text
        await scene.press(again[0], "Approve")
        await scene.sees("Result: paid 30 and 5 for A-1", place)
        await scene.rest()
        assert scene.cards(place=place) == []
        first, second = await lines(scene, "requested")
    assert first["args"] != second["args"] and first["pending"] != second["pending"]
    assert house.paid == [{"order": "A-1", "amount": 30, "fee": 5}]


async def test_c045_mixed_fates_give_exactly_one_result_each_in_call_order(
    house: House, server: DiscordServer
) -> None:
    agent = house.agent(rule={"expires": 600.0}, on_denial="continue")
    async with running(house, server, agent=agent, clock=FakeClock(server.now())) as scene:
        place = scene.call("four")
        card = await scene.card("Approve all (3)", place)
        asked = len(house.requests)
        await scene.press(card, "1 Approve")
        sent = await scene.fill_in(card, "2 Deny with feedback", {FEEDBACK: "not on Friday"})
        assert not sent.failed
        await scene.shows(card, "Denied by Ada")
        await scene.rest()
        assert len(house.requests) == asked
        assert any(label.startswith("3 ") for label in card.labels)
        assert isinstance(scene.clock, FakeClock)
        scene.clock.advance(601)
        server.advance(601)
        await scene.sees("Result: made; paid 1 for B; denied by Ada", place)
        await scene.rest()
        assert card.labels == []
        made_files = [name for post in scene.posts(place) for name, _ in post.files]
        assert made_files == ["a.txt"]  # made once
    assert len(house.requests) == asked + 1
    *_, step, after = house.requests[-1].messages
    assert [r.tool_use_id for r in after.results] == [c.id for c in step.calls]
    (made, made_wrong), (paid, paid_wrong), (denied, denied_wrong), (expired, expired_wrong) = results(house)
    assert (made, made_wrong, paid, paid_wrong) == ("made", False, "paid 1 for B", False)
    assert denied_wrong and denied.startswith("denied by Ada") and "not on Friday" in denied
    assert expired_wrong and expired.startswith("not run: the approval request expired")
    assert house.paid == [{"order": "B", "amount": 1}]
