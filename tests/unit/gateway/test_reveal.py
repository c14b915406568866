"""Who sees what: cards that show their arguments to deciders only, previews, people who are asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from channels.base import Actor, ThreadKey
from gateway.agent import Agent
from gateway.bridge import card, shared_card
from gateway.notices import SEVERAL_COVERED, SHOWN, SHOWN_ALREADY, WRITE_TO_ME, covers_text
from gateway.tools.base import Preview
from tests.unit.gateway.scene import ELSEWHERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

ANN = Actor("talk", "w", "ann")
PRIVATE = ThreadKey("talk", "w", "dm-bob", "")
SECRETIVE = {"reveal": "approvers", "approvers": ("talk:bob",), "notify": ("talk:desk",)}


async def asked(house: House, office: Office, **args: Any) -> None:
    house.plan["go"] = [calls(call("pay", **{"order": "A-1", **args})), "paid"]
    await office.say("go")


async def test_a_card_for_deciders_only_shows_no_argument_in_public_in_no_state(house: House) -> None:
    async with running(house, house.agent(rule=SECRETIVE)) as office:
        await asked(house, office, order="very private")
        assert len(house.world.cards) == 2
        for public in house.world.cards.values():
            assert "very private" not in repr(public) and public.forms == () and public.code == ""
            assert [b.label for b in public.buttons] == ["Show me"]
        ref, public = house.world.card(key=ELSEWHERE)
        assert "may" in await office.press(ref, button(public, "Show me"))  # ann asked, bob decides
        assert await office.press(ref, button(public, "Show me"), user="bob") == SHOWN
        private_ref, whole = house.world.card(key=PRIVATE)
        assert whole.fields[0].value == "very private"
        assert await office.press(ref, button(public, "Show me"), user="bob") == SHOWN_ALREADY
        assert "Approved by Bob" in await office.press(private_ref, button(whole, "Approve"), user="bob")
        assert house.ran == ["pay very private 10"]
        for shown_ref, shown in house.world.cards.items():
            assert (shown.state, shown.buttons) == ("decided", ())
            assert ("very private" in repr(shown)) is (shown_ref == private_ref)
        assert "viewed" in await office.audit()


async def test_forms_and_lists_show_it_to_deciders_and_to_nobody_else(house: House) -> None:
    async with running(house, house.agent(rule=SECRETIVE)) as office:
        await asked(house, office, order="very private")
        ref, public = house.world.card(key=ELSEWHERE)
        edit = button(public, "Show me").removesuffix("v") + "e"
        inbound = office.talk.inbound
        assert inbound is not None
        assert "very private" in repr(await inbound.form(_press(office, ref, edit)))
        assert "very private" in repr(await inbound.waiting(Actor("talk", "w", "bob")))
        for ask in (inbound.form, inbound.card):
            assert "very private" not in repr(await ask(replace(_press(office, ref, edit), actor=ANN)))
        assert await inbound.waiting(ANN) == []


async def test_somebody_who_cannot_be_written_to_is_told_what_to_do(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nowhere(actor: Actor) -> None:
        return None

    async with running(house, house.agent(rule=SECRETIVE)) as office:
        monkeypatch.setattr(office.talk, "private", nowhere)
        await asked(house, office)
        ref, public = house.world.card(key=ELSEWHERE)
        assert await office.press(ref, button(public, "Show me"), user="bob") == WRITE_TO_ME
        assert len(house.world.cards) == 2


async def test_what_was_shown_in_private_is_redrawn_whole_by_the_next_process(house: House) -> None:
    async with running(house, house.agent(rule=SECRETIVE)) as office:
        await asked(house, office)
        ref, public = house.world.card(key=ELSEWHERE)
        await office.press(ref, button(public, "Show me"), user="bob")
        private_ref, _ = house.world.card(key=PRIVATE)
        await office.say("/stop")
        await office.kill()
    async with running(house, house.agent(rule=SECRETIVE)) as office:
        await office.settle()
        assert house.world.cards[private_ref].state == "superseded"
        assert house.world.cards[private_ref].fields != ()


def previewing(house: House, preview: Any) -> Agent:
    agent = house.agent()
    pay, *others = agent.tools
    return replace(agent, tools=(replace(pay, preview=preview), *others))


async def test_a_preview_is_shown_beside_the_arguments_without_their_secrets(house: House) -> None:
    def diff(args: dict[str, Any]) -> Preview:
        return Preview(text=f"- nothing\n+ {args['order']} with {args['key']}", kind="diff")

    async with running(house, previewing(house, diff)) as office:
        await asked(house, office)
        _, shown = house.world.card()
        assert shown.preview.startswith("- nothing\n+ A-1 with ") and "sk-live" not in shown.preview
        assert shown.preview_kind == "diff" and "A-1 with" not in shown.summary


async def test_a_preview_that_fails_costs_the_preview_and_not_the_call(house: House) -> None:
    def broken(args: dict[str, Any]) -> str:
        raise KeyError("order")

    async with running(house, previewing(house, broken)) as office:
        await asked(house, office)
        ref, shown = house.world.card()
        assert "failed" in shown.preview
        await office.press(ref, button(shown, "Approve"))
        assert house.ran == ["pay A-1 10"]


async def test_the_people_and_roles_of_a_channel_are_asked_where_the_card_is_shown_first(
    house: House,
) -> None:
    people = ("talk:bob", "talk:w:ann", "talk:role:ops", "slack:T1:U2", "talk:admins", "requester")
    async with running(house, house.agent(rule={"approvers": people})) as office:
        await asked(house, office)
        ref, shown = house.world.card()
        assert shown.asks == (Actor("talk", "", "bob"), Actor("talk", "w", "ann"))
        assert shown.ask_roles == ("ops",)
        await office.press(ref, button(shown, "Approve"))
        assert house.world.cards[ref].asks == () == house.world.cards[ref].ask_roles


async def test_calls_of_one_step_that_go_to_the_same_people_share_a_card(house: House) -> None:
    house.plan["go"] = [calls(*(call("pay", order=f"A-{n}") for n in range(3))), "paid"]
    async with running(house) as office:
        await office.say("go")
        records = await office.pendings()
        assert {r.pending.card_id for r in records} == {records[0].pending.pending_id}
        assert [r.pending.place for r in records] == [0, 1, 2]
        together = shared_card(records)
        assert together.title == "Approve 3 calls?" and len(together.calls) == 3
        assert [b.label for b in together.buttons] == ["Approve all (3)", "Deny all (3)"]
        alone = [card(record) for record in records]  # each would say what a grant of it covers
        assert alone[0].summary == f"money leaves the house\n{covers_text(records[0])}"
        assert together.summary == SEVERAL_COVERED
        assert list(together.calls) == [replace(one, summary="money leaves the house") for one in alone]
        assert list(house.world.cards.values()) == [together]


def _press(office: Office, ref: str, data: str) -> Any:
    from channels.base import InboundPress, MessageRef

    return InboundPress(
        thread=ELSEWHERE,
        action_id="x",
        actor=Actor("talk", "w", "bob"),
        data=data,
        message_ref=MessageRef(ref),
        sent_at=0.0,
    )
