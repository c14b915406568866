"""What a channel may ask about cards: the form behind a button, what is wrong with it, what waits."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from channels.base import Actor, Form, Inbound, InboundPress, MessageRef
from gateway.gate import Rule
from gateway.notices import click_text
from tests.unit.gateway.scene import ELSEWHERE, HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button


def inbound(office: Office) -> Inbound:
    assert office.talk.inbound is not None
    return office.talk.inbound


def press(data: str, ref: str | None, user: str = "ann", **more: Any) -> InboundPress:
    given: dict[str, Any] = {
        "thread": HERE,
        "action_id": "a1",
        "actor": Actor("talk", "w", user),
        "data": data,
        "message_ref": MessageRef(ref) if ref else None,
        "sent_at": 0.0,
    }
    return InboundPress(**{**given, **more})


async def paying(house: House, office: Office) -> tuple[MessageRef, str]:
    """A card that asks to pay; its reference and the data of its Edit button."""
    house.plan["go"] = [calls(call("pay", order="A-1", amount=20)), "paid"]
    await office.say("go")
    ref, card = house.world.card()
    return ref, button(card, "Edit")


async def test_a_form_comes_from_the_stored_card_whoever_posted_it(house: House) -> None:
    async with running(house) as office:
        ref, edit = await paying(house, office)
        await office.kill()
    async with running(house) as office:
        form = await inbound(office).form(press(edit, ref))
        assert isinstance(form, Form)
        assert {f.name: f.value for f in form.fields} == {"order": "A-1", "amount": "20", "key": ""}


async def test_no_form_opens_for_those_who_may_not_decide_or_on_a_card_that_is_not_ours(house: House) -> None:
    async with running(house) as office:
        ref, edit = await paying(house, office)
        ask = inbound(office).form
        assert "may" in str(await ask(press(edit, ref, user="bob")))
        unknown = click_text("unknown", None)
        assert await ask(press(edit, "r999")) == unknown
        assert await ask(press("v1:p_none:e", ref)) == unknown
        assert await ask(press("nonsense", ref)) == unknown
        assert isinstance(await ask(press(edit, None, listed=True)), Form)
        look = inbound(office).card
        assert await look(press(edit, ref)) == house.world.cards[ref]
        assert await look(press(edit, "r999")) == unknown
        assert await ask(press(edit, None)) == unknown


async def test_no_form_opens_on_a_card_that_is_decided(house: House) -> None:
    async with running(house) as office:
        ref, edit = await paying(house, office)
        await office.press(ref, button(house.world.cards[ref], "Deny"))
        assert "Denied by Ann" in str(await inbound(office).form(press(edit, ref)))


@pytest.mark.parametrize(
    "values, wrong",
    [
        ({"amount": "30"}, {}),
        ({"amount": "thirty"}, {"amount": "is not a valid number"}),
        ({"colour": "red"}, {"colour": "there is no such argument"}),
    ],
)
async def test_what_is_wrong_with_an_edit_is_said_by_field_and_changes_nothing(
    house: House, values: dict[str, str], wrong: dict[str, str]
) -> None:
    async with running(house) as office:
        ref, edit = await paying(house, office)
        before = await office.audit()
        assert await inbound(office).faults(press(edit, ref, values=values)) == wrong
        assert await office.audit() == before + ["refused_invalid"] * bool(wrong) and house.ran == []


async def test_an_empty_answer_is_a_fault_of_its_field(house: House) -> None:
    house.plan["go"] = [calls(call("ask_user", question="Which?")), "ok"]
    async with running(house) as office:
        await office.say("go")
        ref, card = house.world.card()
        data = card.forms[0].data
        faults = inbound(office).faults
        assert await faults(press(data, ref, values={"answer": "  "})) == {"answer": "The answer is empty."}
        assert await faults(press(data, ref, values={"answer": "blue"})) == {}
        assert await faults(press(data, ref, user="bob", values={"answer": ""})) == {}  # is told: forbidden


async def test_what_waits_is_listed_for_those_who_may_decide_it_and_can_be_pressed_there(
    house: House,
) -> None:
    async with running(house, approvers={"talk": ("talk:bob",)}) as office:
        await paying(house, office)
        assert [card.title for card in await inbound(office).waiting(Actor("talk", "w", "bob"))] == [
            "Approve pay?"
        ]
        assert await inbound(office).waiting(Actor("talk", "w", "eve")) == []
        [card] = await inbound(office).waiting(Actor("talk", "w", "ann"))
        told = []
        for user in ("eve", "ann"):
            listed = press(
                button(card, "Approve"), None, user=user, listed=True, action_id=user, thread=ELSEWHERE
            )
            await office.talk.inbound.press(listed)  # type: ignore[union-attr]
            await office.settle()
            told.append(house.world.answers[-1][1])
        assert "may" in told[0] and told[1].startswith("Approved by")
        assert house.ran == ["pay A-1 20"]
        assert await inbound(office).waiting(Actor("talk", "w", "ann")) == []


async def listed(house: House, office: Office, label: str, user: str = "ann", **more: Any) -> str:
    """Press something in the person's own list; what they are told."""
    [card] = await inbound(office).waiting(Actor("talk", "w", "ann"))
    data = button(card, label)
    await inbound(office).press(
        press(data, None, user=user, listed=True, action_id=f"{label}{user}", thread=ELSEWHERE, **more)
    )
    await office.settle()
    return house.world.answers[-1][1]


async def test_a_request_can_be_taken_back_from_a_list_and_nobody_has_refused_it(house: House) -> None:
    async with running(house) as office:
        await paying(house, office)
        house.clock.advance(hours=3)
        [card] = await inbound(office).waiting(Actor("talk", "w", "ann"))
        assert "Asked by talk:w:ann, 3 h ago." in card.summary
        await listed(house, office, "Take back")
        assert house.ran == [] and (await office.audit()).count("cancelled") == 1
        assert "denied" not in await office.audit()


async def test_a_request_can_be_posted_again_and_passed_on_from_a_list(house: House) -> None:
    async with running(house) as office:
        ref, edit = await paying(house, office)
        await listed(house, office, "Post again")
        assert len(house.world.live()) == 2
        data = edit.removesuffix("e") + "g"
        form = await inbound(office).form(press(data, None, listed=True))
        assert isinstance(form, Form) and [f.name for f in form.fields] == ["who"]
        told = await inbound(office).faults(press(data, None, listed=True, values={"who": "slack:bob"}))
        assert "Copy member ID" in told["who"]
        await listed(house, office, "Pass on…", values={"who": "bob"})
        assert "may" in await office.press(ref, button(house.world.cards[ref], "Approve"))
        assert "Approved by Bob" in await office.press(
            ref, button(house.world.cards[ref], "Approve"), user="bob"
        )
        assert house.ran == ["pay A-1 20"]


async def test_what_a_list_offers_does_nothing_for_others_nor_on_a_message_that_is_none_of_ours(
    house: House,
) -> None:
    async with running(house) as office:
        ref, edit = await paying(house, office)
        for choice in "pxg":
            told = await office.press(ref, edit.removesuffix("e") + choice, values={"who": "bob"})
            assert told == "This button is not one of this request's."
            assert isinstance(await inbound(office).form(press(edit.removesuffix("e") + choice, ref)), str)
            told = await office.press("r9999", edit.removesuffix("e") + choice, values={"who": "bob"})
            assert "not known here" in told
        told = await listed(house, office, "Take back", user="eve")
        assert "may" in told.casefold() or "who" in told.casefold()
        assert [r.state for r in await office.pendings(open_only=False)] == ["open"]
        assert len(house.world.cards) == 1


async def test_a_press_on_an_old_screen_has_the_card_drawn_again(house: House) -> None:
    async with running(house) as office:
        ref, _ = await paying(house, office)
        old = house.world.cards[ref]
        await office.press(ref, button(old, "Approve"))
        house.world.cards[ref] = old  # as if the redraw had been lost
        assert "Already decided" in await office.press(ref, button(old, "Deny"))
        assert house.world.cards[ref].state == "decided"


@pytest.mark.parametrize("choice", ["a", "d", "e", "f", "v"])
async def test_whatever_is_pressed_on_an_old_screen_has_the_card_drawn_again(
    house: House, choice: str
) -> None:
    async with running(house) as office:
        ref, edit = await paying(house, office)
        old = house.world.cards[ref]
        await office.press(ref, button(old, "Approve"))
        house.world.cards[ref] = old
        data = edit.removesuffix("e") + choice
        if choice in "ef":  # a form is asked for first
            assert "Already decided" in str(await inbound(office).form(press(data, ref)))
            await office.settle()
        else:
            assert "Already decided" in await office.press(ref, data, values={"who": "bob"})
        assert house.world.cards[ref].state == "decided"


async def test_choosing_and_deciding_all_on_an_old_screen_has_the_card_drawn_again(house: House) -> None:
    house.plan["ask"] = [calls(call("ask_user", question="?", options=["a", "b"], multi=True)), "ok"]
    house.plan["both"] = [calls(call("pay", order="A"), call("pay", order="B")), "ok"]
    for text, label in (("ask", "a"), ("both", "Deny all (2)")):
        async with running(house) as office:
            await office.say(text)
            ref, old = house.world.card()
            await office.say("/stop")
            house.world.cards[ref] = old
            assert "Closed by /stop" in await office.press(ref, button(old, label))
            assert house.world.cards[ref].state == "superseded"


async def test_a_listed_press_is_still_one_after_a_crash(house: House) -> None:
    async with running(house) as office:
        _, edit = await paying(house, office)
        await office.kill()
        [record] = house.world.cards.values()
        data = button(record, "Approve")
    async with running(house) as office:
        taken = press(data, None, listed=True)
        await office.talk.inbound.press(dataclasses.replace(taken))  # type: ignore[union-attr]
        await office.settle()
        assert house.ran == ["pay A-1 20"] and edit


async def test_a_control_that_reports_all_that_is_chosen_needs_no_toggles(house: House) -> None:
    args = {"question": "Which?", "options": ["a", "b", "c"], "multi": True}
    house.plan["go"] = [calls(call("ask_user", **args)), "ok"]
    async with running(house) as office:
        await office.say("go")
        ref, card = house.world.card()
        data = tuple(choice.data for choice in card.choices)
        confirm = button(card, "Confirm")
        none = await office.press(ref, confirm, values={"chosen": ()})
        assert "Nothing is chosen" in none
        await office.press(ref, confirm, values={"chosen": (data[2], data[0], "v1:other:1", "junk")})
        (result,) = next(m for m in reversed(house.requests[-1].messages) if m.results).results
        assert result.content == "- a\n- c"


async def test_a_card_with_an_argument_of_the_wrong_shape_says_so_before_it_is_sent(house: House) -> None:
    rule = Rule(tool="pay", decision="ask", quorum=2)
    async with running(house, house.agent(rules=(rule,)), approvers={"talk": ("talk:bob",)}) as office:
        house.plan["go"] = [calls(call("pay", order="A-1")), "paid"]
        await office.say("go")
        ref, card = house.world.card()
        edit = button(card, "Approve").removesuffix(":a") + ":e"
        assert str(await inbound(office).form(press(edit, ref))) == "This button does nothing here."
        assert await inbound(office).faults(press(edit, ref, values={"order": "B"})) == {
            "": "a request that several people decide cannot be edited"
        }
