"""Several calls of a step on one card: one press for all of them, and a decision of its own for each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.base import Actor, Card, InboundPress, MessageRef, ThreadKey
from gateway.bridge import APPROVE_ALL
from gateway.gate import Rule
from gateway.letters import MOST_ON_A_CARD
from gateway.notices import DECIDERS_APART
from gateway.verdicts import SKIPPED
from tests.unit.gateway.scene import ELSEWHERE, HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

ORDERS = ("A", "B", "C")


def three(house: House) -> House:
    house.plan["go"] = [calls(*(call("pay", order=order) for order in ORDERS)), "all done"]
    return house


async def asked(office: Office) -> tuple[MessageRef, Card]:
    await office.say("go")
    ref, card = office.world.card()
    assert [part.fields[0].value for part in card.calls] == list(ORDERS)
    return ref, card


def read(house: House) -> list[str]:
    """What the model has read of the step."""
    return [r.content for m in house.requests[-1].messages for r in m.results]


async def states(office: Office) -> list[str]:
    return [record.state for record in await office.pendings(open_only=False)]


async def test_one_press_approves_every_call_in_order_and_each_has_its_own_decision(house: House) -> None:
    async with running(three(house)) as office:
        ref, card = await asked(office)
        told = await office.press(ref, button(card, "Approve all (3)"))
        assert told.startswith("3 of 3 calls: Approved by Ann")
        assert house.ran == [f"pay {order} 10" for order in ORDERS]
        assert await states(office) == ["approved"] * 3
        assert house.world.texts() == ["all done"] and house.world.live() == []
        shown = house.world.cards[ref]
        assert shown.buttons == () and [part.state for part in shown.calls] == ["decided"] * 3


@pytest.mark.parametrize("on_denial", ["stop", "continue"])
async def test_one_press_denies_every_call_and_none_is_merely_skipped(house: House, on_denial: str) -> None:
    async with running(three(house), house.agent(on_denial=on_denial)) as office:
        ref, card = await asked(office)
        told = await office.press(ref, button(card, "Deny all (3)"))
        assert told.startswith("3 of 3 calls: Denied by Ann") and house.ran == []
        assert await states(office) == ["denied"] * 3
        results = [r.content for m in await office.log() for r in m.results]
        assert len(results) == 3 and all(text.startswith("denied by Ann") for text in results)
        assert (len(house.requests) == 2) is (on_denial == "continue")


async def test_what_is_decided_already_is_left_as_it_is(house: House) -> None:
    async with running(three(house), house.agent(on_denial="continue")) as office:
        ref, card = await asked(office)
        await office.press(ref, button(card.calls[1], "Deny"))
        half = house.world.cards[ref]
        assert half.status == "1 of 3 decided" and half.calls[1].buttons == ()
        await office.press(ref, button(half, "Approve all (2)"))
        assert await states(office) == ["approved", "denied", "approved"]
        assert house.ran == ["pay A 10", "pay C 10"]
        late = await office.press(ref, button(card, "Approve all (3)"))
        assert late.startswith("Already decided.")


async def test_a_denial_of_one_closes_the_others_where_a_denial_stops(house: House) -> None:
    async with running(three(house)) as office:
        ref, card = await asked(office)
        await office.press(ref, button(card.calls[0], "Approve"))
        await office.press(ref, button(card.calls[2], "Deny"))
        results = [r.content for m in await office.log() for r in m.results]
        assert results[1] == SKIPPED and results[2].startswith("denied by Ann")
        assert house.world.cards[ref].buttons == () and house.world.live() == []


async def test_a_press_for_all_by_somebody_who_may_not_changes_nothing(house: House) -> None:
    async with running(three(house)) as office:
        ref, card = await asked(office)
        assert "may not decide" in await office.press(ref, button(card, "Approve all (3)"), user="bob")
        forged = f"v1:{card.calls[1].card_id}:{APPROVE_ALL}"
        assert "not known here" in await office.press("somewhere else", forged)
        assert await states(office) == ["open"] * 3 and house.ran == []


async def test_a_crash_in_the_middle_of_a_press_for_all_loses_nothing_and_does_nothing_twice(
    house: House,
) -> None:
    hold = three(house).hold("pay")
    async with running(house) as office:
        ref, card = await asked(office)
        await office.talk.press(ref, button(card, "Approve all (3)"))
        await hold.is_reached()
        await office.kill()
    house.holds.clear()
    async with running(house) as office:
        await office.settle()
        while house.world.live():  # the call that was cut off is asked about
            live = house.world.live()[0]
            shown = house.world.cards[live]
            await office.press(live, button(shown, "treat as done"))
        assert house.ran == [f"pay {order} 10" for order in ORDERS]
        assert house.world.texts()[-1] == "all done"


async def test_calls_for_other_people_or_places_have_a_card_of_their_own(house: House) -> None:
    desk = Rule(tool="send", decision="ask", approvers=("talk:bob",), notify=("talk:desk",))
    house.plan["both"] = [
        calls(call("pay", order="A"), call("send", to="x"), call("pay", order="B"), call("send", to="y")),
        "done",
    ]
    async with running(house, house.agent(rules=(desk,))) as office:
        await office.say("both")
        tools = {
            (house.world.places[MessageRef(ref)], tuple(part.title for part in card.calls))
            for ref, card in house.world.cards.items()
        }
        pay, send = ("Approve pay?",) * 2, ("Approve send?",) * 2
        assert tools == {(HERE, pay), (HERE, send), (ELSEWHERE, send)}
        ref, card = house.world.card(key=ELSEWHERE)
        await office.press(ref, button(card, "Approve all (2)"), user="bob")
        assert [state for state in await states(office)].count("approved") == 2


async def test_a_very_long_step_is_cut_into_cards_that_people_can_read(house: House) -> None:
    many = MOST_ON_A_CARD + 3
    house.plan["go"] = [calls(*(call("pay", order=f"o{n}") for n in range(many))), "all done"]
    async with running(house) as office:
        await office.say("go")
        cards = list(house.world.cards.items())
        assert [len(card.calls) for _, card in cards] == [MOST_ON_A_CARD, 3]
        for ref, card in cards:
            await office.press(ref, card.buttons[0].data)
        assert house.ran == [f"pay o{n} 10" for n in range(many)]


async def test_quorum_counts_for_each_call_of_a_press_for_all(house: House) -> None:
    rule = {"quorum": 2, "approvers": ("talk:ann", "talk:bob")}
    async with running(three(house), house.agent(rule=rule)) as office:
        ref, card = await asked(office)
        assert "agree" in await office.press(ref, button(card, "Approve all (3)"))
        assert await states(office) == ["open"] * 3 and house.ran == []
        again = house.world.cards[ref]
        assert all("1 of 2 agree" in part.status for part in again.calls)
        await office.press(ref, button(again, "Approve all (3)"), user="bob")
        assert house.ran == [f"pay {order} 10" for order in ORDERS]
        assert replace(again, calls=()).fields == ()


# ---- passed on and taken back one by one


async def of_list(office: Office, user: str) -> Card:
    """The one card in somebody's list."""
    assert office.talk.inbound is not None
    (card,) = await office.talk.inbound.waiting(Actor("talk", "w", user))
    return card


async def from_list(office: Office, user: str, data: str, **values: str) -> str:
    """Press something there; what one is told."""
    assert office.talk.inbound is not None
    key = ThreadKey("talk", "w", "home", "")
    number = f"l{next(office.world.numbers)}"
    pressed = InboundPress(
        thread=key,
        action_id=number,
        actor=Actor("talk", "w", user),
        data=data,
        message_ref=None,
        sent_at=0.0,
        values=values,
        listed=True,
    )
    await office.talk.inbound.press(pressed)
    await office.settle()
    return office.world.answers[-1][1]


async def test_each_call_of_a_card_can_be_taken_back_and_passed_on_from_a_list(house: House) -> None:
    async with running(three(house)) as office:
        await asked(office)
        listed = await of_list(office, "ann")
        assert [b.label for b in listed.buttons] == ["Approve all (3)", "Deny all (3)", "Post again"]
        for part in listed.calls:
            assert [b.label for b in part.buttons][-2:] == ["Pass on…", "Take back"]
        await from_list(office, "ann", button(listed.calls[0], "Take back"))
        assert await states(office) == ["superseded", "open", "open"]
        told = await from_list(office, "ann", button(listed.calls[1], "Pass on…"), who="bob")
        assert told == "Who may decide now: talk:bob."
        assert (await of_list(office, "ann")).calls[2].buttons != ()
        assert [r.pending.approvers for r in await office.pendings()] == [("talk:bob",), ()]


async def test_a_card_of_which_one_call_was_passed_on_names_who_decides_each(house: House) -> None:
    async with running(three(house)) as office:
        ref, card = await asked(office)
        assert card.deciders == "talk:w:ann (who asked)"
        codes = [record.pending.code for record in await office.pendings()]
        await office.say(f"/pending give {codes[1]} bob")
        shown = house.world.cards[ref]
        told = [part.summary.splitlines()[-1] for part in shown.calls]
        who = [f"Who may decide: {name}" for name in ("talk:w:ann (who asked)", "talk:bob")]
        assert told == [who[0], who[1], who[0]] and shown.deciders == DECIDERS_APART
        answer = await office.press(ref, button(shown, "Approve all (3)"))
        assert answer.startswith("2 of 3 calls: Approved by Ann") and "Who may: talk:bob" in answer
        assert await states(office) == ["approved", "open", "approved"]
        assert house.world.cards[ref].deciders == "talk:bob"


async def test_who_decides_one_call_of_a_hidden_card_sees_that_one_and_no_other(house: House) -> None:
    secretive = {"reveal": "approvers", "approvers": ("talk:bob",)}
    async with running(three(house), house.agent(rule=secretive)) as office:
        await office.say("go")
        code = (await office.pendings())[1].pending.code
        await office.say(f"/pending give {code} eve", user="bob")
        listed = await of_list(office, "eve")
        ref, private = office.world.card(key=ThreadKey("talk", "w", "dm-eve", ""))
        for shown in (listed, private):
            assert [[field.value for field in part.fields][:1] for part in shown.calls] == [[], ["B"], []]
            assert "Approve all (3)" not in [b.label for b in shown.buttons]
        assert [bool(part.buttons) for part in listed.calls] == [False, True, False]
        public, whole = next((r, c) for r, c in house.world.cards.items() if r != ref)
        for part in whole.calls:
            await office.press(public, button(part, "Show me"), user="bob")
        _, theirs = office.world.card(key=ThreadKey("talk", "w", "dm-bob", ""))
        assert [[field.value for field in part.fields][:1] for part in theirs.calls] == [["A"], [], ["C"]]
        assert "Approved by Eve" in await office.press(ref, button(private.calls[1], "Approve"), user="eve")
        assert [part.fields for part in house.world.cards[ref].calls].count(()) == 2


async def test_what_is_asked_for_again_can_also_be_passed_on_and_taken_back_there(house: House) -> None:
    async with running(three(house)) as office:
        first, card = await asked(office)
        code = (await office.pendings())[0].pending.code
        await office.say(f"/pending show {code}")
        (ref,) = set(house.world.live()) - {first}
        again = house.world.cards[ref]
        assert "Take back" not in [b.label for b in card.calls[0].buttons]
        assert "not known here" not in await office.press(ref, button(again.calls[0], "Take back"))
        told = await office.press(ref, button(again.calls[1], "Pass on…"), values={"who": "bob"})
        assert told == "Who may decide now: talk:bob."
        again = house.world.cards[ref]
        assert [b.label for b in again.calls[2].buttons][-2:] == ["Pass on…", "Take back"]
        assert again.calls[0].status.startswith("Cancelled by Ann")
        assert "may" in await office.press(ref, button(again.calls[2], "Take back"), user="eve")
        assert await states(office) == ["superseded", "open", "open"]
