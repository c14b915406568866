"""Cards and clicks: who may decide, what a decision does, what everybody sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from channels.base import Card, pack_press
from gateway.gate import Rule
from gateway.tools.base import tool
from gateway.verdicts import SKIPPED
from tests.unit.gateway.scene import ELSEWHERE, HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

BOTH = {"approvers": ("talk:ann", "talk:bob")}


def results(house: House) -> list[tuple[str, bool]]:
    """What the model read about its last step."""
    last = next(m for m in reversed(house.requests[-1].messages) if m.results)
    return [(r.content, r.is_error) for r in last.results]


def open_cards(house: House) -> dict[str, tuple[str, Card]]:
    """Open cards by the value of their first argument."""
    return {
        card.fields[0].value: (ref, card)
        for ref, shown in house.world.cards.items()
        for card in shown.calls or (shown,)
        if card.state == "open"
    }


async def asked(office: Office, text: str = "pay") -> tuple[str, Card]:
    """Somebody writes, one card appears."""
    await office.say(text)
    return office.world.card()


@pytest.fixture
def paying(house: House) -> House:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    return house


# ---- a decision


async def test_a_card_shows_every_argument_and_no_secret(paying: House) -> None:
    async with running(paying) as office:
        _ref, card = await asked(office)
        assert {f.name: f.value for f in card.fields} == {"order": "A", "amount": "10", "key": "••••••"}
        assert (card.title, card.code != "") == ("Approve pay?", True)
        assert card.summary.startswith("money leaves the house\n")
        assert paying.ran == []
        await office.say("/pending")
        assert card.code in paying.world.texts()[-1]


async def test_an_approval_runs_the_call_and_the_turn_goes_on(paying: House) -> None:
    async with running(paying) as office:
        ref, card = await asked(office)
        told = await office.press(ref, button(card, "Approve"))
        assert told.startswith("Approved by Ann (talk:w:ann)")
        assert paying.ran == ["pay A 10"] and paying.world.texts() == ["paid"]
        _ref, decided = paying.world.card(state="decided")
        assert (decided.buttons, decided.status.startswith("Approved by Ann")) == ((), True)
        assert await office.audit() == ["requested", "approved", "executed"]


async def test_a_denial_ends_the_turn_and_its_feedback_is_the_next_message(house: House) -> None:
    house.plan["pay"] = [
        calls(call("look", at="x"), call("pay", order="A"), call("pay", order="B")),
        "unused",
    ]
    house.plan["use the sandbox"] = ["as you wish"]
    async with running(house) as office:
        await office.say("pay")
        ref, card = open_cards(house)["A"]
        form = next(f for f in card.forms if f.title.startswith("Deny"))
        await office.press(ref, form.data, values={"feedback": "use the sandbox"})
        assert house.world.texts()[-1] == "as you wish"
        assert house.world.texts()[0].startswith("Stopped: denied by Ann")
        assert house.ran == ["look x"]
        contents = [content for content, _ in results(house)]
        assert contents[0] == "saw x" and contents[1].startswith("denied by Ann")
        assert contents[2] == SKIPPED
        assert house.world.live() == []
        assert [m.reply_to for _, m in house.world.messages if m.text == "as you wish"] == [""]


async def test_edited_arguments_run_and_the_model_is_told(paying: House) -> None:
    async with running(paying) as office:
        ref, card = await asked(office)
        form = next(f for f in card.forms if f.title.startswith("Edit"))
        wrong = await office.press(ref, form.data, values={"order": "A", "amount": "much"})
        assert "amount" in wrong and paying.ran == []
        fields = {f.name: f.value for f in form.fields}
        assert fields == {"order": "A", "amount": "10", "key": ""}
        await office.press(ref, form.data, values={**fields, "amount": "4.5"})
        assert paying.ran == ["pay A 4.5"]
        assert results(paying)[0][0].startswith("[Ann (talk:w:ann) approved this call with changed arguments")
        assert "sk-live" not in results(paying)[0][0]


async def test_submitting_the_form_unchanged_is_an_approval_as_it_was_asked(paying: House) -> None:
    async with running(paying) as office:
        ref, card = await asked(office)
        form = next(f for f in card.forms if f.title.startswith("Edit"))
        await office.press(ref, form.data, values={f.name: f.value for f in form.fields})
        assert paying.ran == ["pay A 10"] and results(paying) == [("paid 10 for A", False)]


async def test_an_approval_for_the_session_covers_exactly_that_call_again(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    house.plan["pay B"] = [calls(call("pay", order="B")), "paid"]
    async with running(house) as office:
        ref, card = await asked(office)
        await office.press(ref, button(card, "Approve for this session"))
        await office.say("pay")
        assert house.ran == ["pay A 10", "pay A 10"] and house.world.live() == []
        await office.say("pay B")
        assert len(house.world.live()) == 1


async def test_c041_each_call_of_a_step_has_its_own_buttons_and_is_decided_by_itself(house: House) -> None:
    orders = ("A", "B", "C")
    house.plan["pay"] = [calls(*(call("pay", order=order) for order in orders)), "all done"]
    async with running(house) as office:
        await office.say("pay")
        cards = open_cards(house)
        assert len({card.card_id for _, card in cards.values()}) == 3
        assert len(house.world.cards) == 1  # and all three stand on one card
        await office.say("/approve")
        listing = house.world.texts()[-1]
        assert all(card.code in listing for _, card in cards.values()) and house.ran == []
        for order, still in (("C", 2), ("A", 1)):
            ref, card = cards[order]
            told = await office.press(ref, button(card, "Approve"))
            assert f"{still} more of this step still open" in told
        await office.say(f"/approve {cards['B'][1].code}")
        assert house.ran == ["pay C 10", "pay A 10", "pay B 10"]
        assert results(house) == [(f"paid 10 for {order}", False) for order in orders]


async def test_c041_an_old_button_never_decides_a_newer_request(house: House) -> None:
    house.plan["one"] = [calls(call("pay", order="A")), "first"]
    house.plan["two"] = [calls(call("pay", order="B")), "second"]
    async with running(house, house.agent(rule={"expires": 60.0})) as office:
        old, old_card = await asked(office, "one")
        house.clock.advance(61)
        await office.settle()
        new, _ = await asked(office, "two")
        told = await office.press(old, button(old_card, "Approve"))
        assert told.startswith("Expired")
        assert house.ran == [] and house.world.live() == [new]


async def test_c045_with_on_denial_continue_the_model_gets_all_four_results_at_once(house: House) -> None:
    four = calls(call("look", at="a"), *(call("pay", order=order) for order in "bcd"))
    house.plan["four"] = [four, "summed up"]
    async with running(house, house.agent(on_denial="continue", rule={"expires": 60.0})) as office:
        await office.say("four")
        before, cards = len(house.requests), open_cards(house)
        ref, card = cards["c"]
        form = next(f for f in card.forms if f.title.startswith("Deny"))
        await office.press(ref, form.data, values={"feedback": "not on Friday"})
        ref, card = cards["b"]
        await office.press(ref, button(card, "Approve"))
        assert len(house.requests) == before and house.world.texts() == []
        house.clock.advance(61)
        await office.settle()
        assert len(house.requests) == before + 1
        contents = results(house)
        assert contents[0] == ("saw a", False) and contents[1] == ("paid 10 for b", False)
        assert contents[2] == ("denied by Ann (talk:w:ann): not on Friday", True)
        assert contents[3][1] and "expired" in contents[3][0] and "not run" in contents[3][0]
        assert house.ran == ["look a", "pay b 10"]
        log = await office.log()
        assert [m.role for m in log] == ["user", "assistant", "user", "assistant"]
        expired, summed_up = house.world.texts()  # the feedback is no message of its own
        assert "expired after 1 min" in expired and summed_up == "summed up"


async def test_a_decision_that_lands_while_a_sibling_runs_is_carried_out_next(house: House) -> None:
    house.plan["pay"] = [calls(call("pay", order="A"), call("pay", order="B")), "both"]
    async with running(house) as office:
        await office.say("pay")
        cards, hold = open_cards(house), house.hold("pay")
        await office.talk.press(cards["A"][0], button(cards["A"][1], "Approve"))
        await hold.is_reached()
        house.holds.clear()
        await office.talk.press(cards["B"][0], button(cards["B"][1], "Approve"))
        await office.until(lambda: len(house.world.answers) == 2)
        assert house.ran == ["pay A 10"]
        hold.go.set()
        await office.settle()
        assert house.ran == ["pay A 10", "pay B 10"] and house.world.texts() == ["both"]


# ---- time


@pytest.mark.parametrize("swept", [True, False])
async def test_c046_a_click_after_the_end_runs_nothing_sweep_or_no_sweep(paying: House, swept: bool) -> None:
    async with running(paying, paying.agent(rule={"expires": 60.0})) as office:
        ref, card = await asked(office)
        paying.clock.advance(80)
        if swept:
            await office.settle()
        told = await office.press(ref, button(card, "Approve"))
        assert told.startswith("Expired") and "nobody refused" in told
        assert paying.ran == [] and paying.world.live() == []
        assert paying.world.card(state="expired")[1].status.startswith("Expired")


async def test_c046_a_click_after_new_says_so(paying: House) -> None:
    async with running(paying) as office:
        ref, card = await asked(office)
        await office.say("/new")
        told = await office.press(ref, button(card, "Approve"))
        assert told.startswith("Closed by /new") and paying.ran == []
        assert paying.world.card(state="superseded")[1].buttons == ()


async def test_c047_an_expiry_is_told_to_the_model_as_what_it_is(paying: House) -> None:
    paying.plan["pay"] = [calls(call("pay", order="A")), "nobody answered"]
    async with running(paying, paying.agent(rule={"expires": 600.0})) as office:
        await asked(office)
        paying.clock.advance(minutes=10)
        await office.settle()
        ((content, is_error),) = results(paying)
        assert is_error and "expired after 10 minutes" in content
        assert "did not run" in content and "no person refused" in content
        told, answer = paying.world.texts()
        assert "expired after 10 min" in told and "not run and nobody refused it" in told
        assert "write to me and I ask again" in told
        assert answer == "nobody answered" and paying.ran == []
        assert await office.audit() == ["requested", "expired"]


# ---- who


async def test_c044_only_those_who_may_decide_do_and_the_others_learn_who(paying: House) -> None:
    async with running(paying, paying.agent(rule={"approvers": ("requester", "talk:carol")})) as office:
        ref, card = await asked(office)
        for user in ("bob", "eve", ""):
            told = await office.press(ref, button(card, "Approve"), user=user)
            assert told.startswith("You may not decide this") and "talk:w:ann" in told
        assert paying.ran == [] and (await office.pendings())[0].state == "open"
        await office.press(ref, button(card, "Approve"), user="carol")
        assert paying.ran == ["pay A 10"]
        record = (await office.pendings(open_only=False))[0]
        assert (record.actor, record.decided_by) == ("talk:w:carol", "Carol (talk:w:carol)")
        lines = await office.store.audit_lines()
        assert [line.kind for line in lines].count("refused_forbidden") == 3
        approved = next(line for line in lines if line.kind == "approved")
        assert ref in str(approved.body["via"])


async def test_people_may_decide_by_their_roles(paying: House) -> None:
    paying.world.roles["bob"] = frozenset({"7"})
    async with running(paying, paying.agent(rule={"approvers": ("talk:role:7",)})) as office:
        ref, card = await asked(office)
        assert (await office.press(ref, button(card, "Approve"))).startswith("You may not")
        await office.press(ref, button(card, "Approve"), user="bob")
        assert paying.ran == ["pay A 10"]


async def test_with_four_eyes_the_requester_may_not(paying: House) -> None:
    async with running(paying, paying.agent(rule={**BOTH, "four_eyes": True})) as office:
        ref, card = await asked(office)
        assert (await office.press(ref, button(card, "Approve"))).startswith("You may not")
        await office.press(ref, button(card, "Approve"), user="bob")
        assert paying.ran == ["pay A 10"]


async def test_a_quorum_needs_different_people_and_shows_how_many_agree(paying: House) -> None:
    async with running(paying, paying.agent(rule={**BOTH, "quorum": 2})) as office:
        ref, card = await asked(office)
        assert {b.label for b in card.buttons} == {"Approve", "Deny", "Deny with feedback"}
        for _ in range(2):
            told = await office.press(ref, button(card, "Approve"))
            assert told == "Noted: you agree. 1 more person must agree."
        assert paying.world.card()[1].status.startswith("1 of 2 agree")
        await office.press(ref, button(card, "Approve"), user="bob")
        assert paying.ran == ["pay A 10"]


@pytest.mark.parametrize("user", ["ann", "bob"])
async def test_where_the_rule_names_nobody_the_requester_and_the_channel_s_people_decide(
    paying: House, user: str
) -> None:
    async with running(paying, approvers={"talk": ("talk:bob",)}) as office:
        ref, card = await asked(office)
        assert (await office.press(ref, button(card, "Approve"), user="eve")).startswith("You may not")
        await office.press(ref, button(card, "Approve"), user=user)
        assert paying.ran == ["pay A 10"]


async def test_a_request_told_elsewhere_too_is_redrawn_in_both_places(paying: House) -> None:
    rule = {"approvers": ("talk:bob",), "notify": ("talk:desk", "talk:desk", "nowhere:x")}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
        assert {paying.world.places[ref] for ref in paying.world.live()} == {HERE, ELSEWHERE}
        ref, card = paying.world.card(key=ELSEWHERE)
        await office.press(ref, button(card, "Approve"), user="bob")
        assert {c.state for c in paying.world.cards.values()} == {"decided"}
        assert paying.world.texts() == ["paid"] and paying.world.texts(ELSEWHERE) == []


# ---- trust


async def tamper_a(office: Office, house: House) -> dict[str, Any]:
    """Another request's id, pressed in a chat that never had its card."""
    ref, card = await asked(office)
    return {"ref": ref, "data": button(card, "Approve"), "key": ELSEWHERE}


async def tamper_b(office: Office, house: House) -> dict[str, Any]:
    """A guessed id."""
    ref, _card = await asked(office)
    return {"ref": ref, "data": pack_press("p_guessedguessedguess", "a")}


async def tamper_c(office: Office, house: House) -> dict[str, Any]:
    """The same data again, after the decision."""
    ref, card = await asked(office)
    await office.press(ref, button(card, "Deny"))
    return {"ref": ref, "data": button(card, "Approve")}


async def tamper_d(office: Office, house: House) -> dict[str, Any]:
    """A choice that the card does not have."""
    ref, card = await asked(office)
    return {"ref": ref, "data": pack_press(card.card_id, "17")}


async def tamper_e(office: Office, house: House) -> dict[str, Any]:
    """Nobody pressed it."""
    ref, card = await asked(office)
    return {"ref": ref, "data": button(card, "Approve"), "user": ""}


async def tamper_f(office: Office, house: House) -> dict[str, Any]:
    """The card forwarded: right chat, another message."""
    _ref, card = await asked(office)
    return {"ref": "forwarded", "data": button(card, "Approve"), "key": HERE}


async def tamper_g(office: Office, house: House) -> dict[str, Any]:
    """Not our data at all."""
    ref, _card = await asked(office)
    return {"ref": ref, "data": "v9:what:ever"}


@pytest.mark.parametrize(
    "tamper, noted",
    [
        (tamper_a, "refused_unknown"),
        (tamper_b, "refused_unknown"),
        (tamper_c, "refused_already"),
        (tamper_d, "refused_invalid"),
        (tamper_e, "refused_forbidden"),
        (tamper_f, "refused_unknown"),
        (tamper_g, "refused_unknown"),
    ],
)
async def test_c084_what_a_press_claims_is_never_believed(paying: House, tamper: Any, noted: str) -> None:
    async with running(paying) as office:
        press = await tamper(office, paying)
        before = [(r.id, r.state, r.decision) for r in await office.pendings(open_only=False)]
        told = await office.press(press.pop("ref"), press.pop("data"), **press)
        assert told != "" and "sk-live" not in told
        assert [(r.id, r.state, r.decision) for r in await office.pendings(open_only=False)] == before
        assert paying.ran == []
        assert (await office.audit())[-1] == noted
        assert await office.store.verify_audit() is None


async def test_c084_button_data_is_short_and_its_id_cannot_be_guessed(paying: House) -> None:
    async with running(paying) as office:
        _ref, card = await asked(office)
        assert all(len(b.data.encode()) <= 64 for b in card.buttons)
        random_part = card.card_id.removeprefix("p_")
        assert len(random_part) * 6 >= 96


async def test_a_rule_s_denial_is_a_result_and_no_card(house: House) -> None:
    house.plan["go"] = [calls(call("send", to="x"), call("look", at="y")), "noted"]
    rules = (Rule(tool="send", decision="deny", reason="never"),)
    async with running(house, house.agent(rules=rules)) as office:
        await office.say("go")
        assert results(house) == [("denied: never", True), ("saw y", False)]
        assert house.world.cards == {} and house.world.texts() == ["noted"]


async def test_c040_a_call_that_is_no_longer_what_was_approved_is_asked_about_again(paying: House) -> None:
    """The tool has grown a parameter between card and click: other arguments would run."""

    @tool(name="pay")
    async def dearer(order: str, amount: float = 10, key: str = "", fee: float = 5) -> str:
        """Pay."""
        paying.ran.append(f"pay {order} {amount:g} and {fee:g}")
        return "paid"

    async with running(paying) as office:
        ref, card = await asked(office)
        await office.kill()
    agent = paying.agent()
    others = tuple(t for t in agent.tools if t.name != "pay")
    async with running(paying, replace(agent, tools=(*others, dearer))) as office:
        await office.settle()
        await office.press(ref, button(card, "Approve"))
        assert paying.ran == []
        again, changed = office.world.card()
        assert again != ref and changed.args_hash != card.args_hash
        assert {f.name: f.value for f in changed.fields}["fee"] == "5"
        await office.press(again, button(changed, "Approve"))
        assert paying.ran == ["pay A 10 and 5"] and paying.world.texts() == ["paid"]
