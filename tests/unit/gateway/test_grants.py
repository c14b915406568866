"""Grants: what the card says is what is allowed, listed for those who look, and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.approvals import Approve, Deny, Resolution
from gateway.gate import Condition, Rule
from gateway.messages import Actor, call_hash
from gateway.notices import covers_text
from gateway.requests import Who
from gateway.resolutions import Click
from tests.unit.gateway.scene import ELSEWHERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

SECRET = "sk-live-0123456789"


@pytest.fixture
def paying(house: House) -> House:
    for order in ("A", "B"):
        house.plan[f"pay {order}"] = [calls(call("pay", order=order)), f"paid {order}"]
        house.plan[f"again {order}"] = [calls(call("pay", order=order)), f"again {order}"]
    return house


async def approved(office: Office, text: str, label: str, **more: Any) -> None:
    """Ask for it, and press this button."""
    await office.say(text, **more)
    ref, card = office.world.card()
    await office.press(ref, button(card, label))


async def decided(office: Office, pending_id: str, word: Resolution) -> None:
    """Ann's word, without a card."""
    click = Click(pending_id=pending_id, resolution=word, actor=Actor("talk", "w", "ann"), name="Ann")
    assert (await office.gateway.resolutions.decide(click)).outcome in ("resumed", "recorded")


def _who(actor: Actor) -> Who:
    return Who(actor=actor, via="test")


async def said(office: Office, text: str, **more: Any) -> str:
    await office.say(text, **more)
    return office.world.texts(more.get("key", office.world.said[-1][0]))[-1]


async def test_the_card_says_exactly_what_more_than_one_approval_would_cover(paying: House) -> None:
    async with running(paying) as office:
        await office.say("pay A")
        _ref, card = paying.world.card()
        labels = [b.label for b in card.buttons]
        assert labels[:3] == ["Approve", "Approve for this session", "Always approve"]
        assert "with exactly these arguments (the hidden ones included), and nothing else" in card.summary
        assert "in every session of helper" in card.summary and SECRET not in card.summary
        await office.say("/deny")
        _ref, closed = paying.world.card(state="decided")
        assert "exactly these arguments" not in closed.summary


async def test_what_several_people_decide_is_granted_once_only(paying: House) -> None:
    rule = {"quorum": 2, "approvers": ("talk:ann", "talk:bob")}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay A")
        _ref, card = paying.world.card()
        assert {"Approve for this session", "Always approve"}.isdisjoint(b.label for b in card.buttons)
        assert "nothing else" not in card.summary
        (record,) = await office.pendings()
        assert covers_text(record) == ""


async def test_always_holds_in_every_session_for_exactly_these_arguments(paying: House) -> None:
    async with running(paying) as office:
        await approved(office, "pay A", "Always approve")
        await office.say("again A", key=ELSEWHERE)
        assert paying.ran == ["pay A 10", "pay A 10"] and await office.pendings() == []
        await office.say("pay B", key=ELSEWHERE)
        assert len(await office.pendings()) == 1 and paying.ran == ["pay A 10", "pay A 10"]


async def test_for_this_session_holds_here_and_ends_with_it(paying: House) -> None:
    async with running(paying) as office:
        await approved(office, "pay A", "Approve for this session")
        await office.say("again A")
        assert paying.ran == ["pay A 10", "pay A 10"]
        await office.say("again A", key=ELSEWHERE)
        assert len(await office.pendings()) == 1
        await office.say("/new")
        assert await said(office, "/grants") == "Nothing is granted here."
        await office.say("pay A")
        assert len(await office.pendings()) == 2


async def test_grants_lists_those_of_this_agent_and_session_with_secrets_masked(paying: House) -> None:
    async with running(paying) as office:
        assert await said(office, "/grants") == "Nothing is granted here."
        await approved(office, "pay A", "Approve for this session")
        paying.clock.advance(minutes=1)
        await approved(office, "pay B", "Always approve")
        text = await said(office, "/grants")
        first, second = text.splitlines()
        assert '"order":"B"' in first and "(always, helper; by Ann (talk:w:ann), " in first
        assert '"order":"A"' in second and "(this session; by Ann" in second
        assert SECRET not in text
        elsewhere = await said(office, "/grants", key=ELSEWHERE)
        assert elsewhere == first


async def test_a_revoked_grant_is_asked_about_again(paying: House) -> None:
    async with running(paying) as office:
        await approved(office, "pay A", "Always approve")
        (grant,) = await office.store.grants(paying.clock.now())
        assert (await said(office, f"/grants revoke {grant.code.upper()}")).startswith("Revoked: pay")
        assert await said(office, f"/grants revoke {grant.code}") == f"There is no grant '{grant.code}' here."
        await office.say("again A")
        assert paying.ran == ["pay A 10"] and len(await office.pendings()) == 1
        lines = {line.kind: line for line in await office.store.audit_lines()}
        digest = call_hash("pay", grant.grant.args)
        assert lines["granted"].args_hash == lines["revoked"].args_hash == digest
        assert (lines["revoked"].actor, lines["revoked"].body["grant"]) == ("talk:w:ann", grant.id)
        assert lines["revoked"].pending_id == grant.pending_id


async def test_who_may_revoke_is_whoever_gave_it_or_decides_in_the_channel(paying: House) -> None:
    async with running(paying, approvers={"talk": ("talk:bob",)}) as office:
        await approved(office, "pay A", "Always approve")
        (grant,) = await office.store.grants(paying.clock.now())
        requests = office.gateway.requests
        outcome, text = await requests.revoke(grant.id, _who(Actor("talk", "w", "eve")))
        assert outcome == "forbidden" and "Ann (talk:w:ann)" in text
        assert (await office.audit())[-1] == "refused_forbidden"
        other = Actor("elsewhere", "w", "bob")
        assert (await requests.revoke(grant.id, _who(other)))[0] == "forbidden"
        assert len(await office.store.grants(paying.clock.now())) == 1
        assert (await said(office, f"/grants revoke {grant.code}", user="bob")).startswith("Revoked")


async def test_an_operator_may_revoke_anything(paying: House) -> None:
    async with running(paying) as office:
        await approved(office, "pay A", "Always approve")
        (grant,) = await office.store.grants(paying.clock.now())
        outcome, _ = await office.gateway.requests.revoke(grant.id, _who(Actor("web", "", "local")))
        assert outcome == "recorded" and await office.store.grants(paying.clock.now()) == []
        outcome, _ = await office.gateway.requests.revoke(grant.id, _who(Actor("web", "", "local")))
        assert outcome == "unknown"


async def test_usage_is_told_for_anything_else(paying: House) -> None:
    async with running(paying) as office:
        for words in ("revoke", "revoke a b", "list"):
            assert "/grants revoke CODE" in await said(office, f"/grants {words}")


def _deny(order: str) -> Rule:
    return Rule(tool="pay", decision="deny", when=(Condition(field="order", op="eq", value=order),))


async def test_a_rule_s_denial_is_never_undone_by_a_grant(paying: House) -> None:
    async with running(paying) as office:
        await approved(office, "pay A", "Always approve")
    async with running(paying, paying.agent(rules=(_deny("A"),))) as office:
        await office.say("again A")
        assert paying.ran == ["pay A 10"] and await office.pendings() == []
        (result,) = [r for m in await office.log() for r in m.results][-1:]
        assert result.is_error and result.content.startswith("denied: ")


async def test_a_person_s_denial_stands_beside_a_grant_of_other_arguments(paying: House) -> None:
    async with running(paying) as office:
        await approved(office, "pay A", "Always approve")
        await approved(office, "pay B", "Deny")
        await office.say("again A")
        assert paying.ran == ["pay A 10", "pay A 10"]
        await office.say("again B")
        assert paying.ran == ["pay A 10", "pay A 10"] and len(await office.pendings()) == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_a_person_s_denial_of_one_call_is_not_undone_by_a_grant_of_its_twin(
    paying: House, order: tuple[int, int]
) -> None:
    """Two calls with the same arguments in one step: one is always allowed, the other one denied."""
    paying.plan["twice"] = [calls(call("pay", order="A"), call("pay", order="A")), "ok"]
    async with running(paying, paying.agent(on_denial="continue")) as office:
        await office.say("twice")
        (asked,) = [message.calls for message in await office.log() if message.calls]
        by_call = {record.pending.call_id: record for record in await office.pendings()}
        first, second = (by_call[one.id] for one in asked)
        words: list[tuple[str, Resolution]] = [(first.id, Approve(scope="always")), (second.id, Deny())]
        for place in order:
            await decided(office, *words[place])
        await office.settle()
        assert paying.ran == ["pay A 10"]
        contents = [result.content for message in await office.log() for result in message.results]
        assert contents[0].startswith("paid") and contents[1].startswith("denied by Ann")


async def test_what_runs_by_a_grant_is_on_record_with_it(paying: House) -> None:
    async with running(paying) as office:
        await approved(office, "pay A", "Always approve")
        await office.say("again A")
        (grant,) = await office.store.grants(paying.clock.now())
        lines = list(reversed(await office.store.audit_lines()))
        assert [line.kind for line in lines] == ["requested", "approved", "granted", "executed", "executed"]
        asked, granted = lines[-2:]
        assert asked.pending_id == grant.pending_id and "grant" not in asked.body
        assert (granted.body["grant"], granted.actor, granted.pending_id) == (grant.id, "talk:w:ann", "")
        assert asked.args_hash == granted.args_hash == call_hash("pay", grant.grant.args)


async def test_a_grant_covers_what_was_approved_not_what_was_proposed(paying: House) -> None:
    async with running(paying) as office:
        await office.say("pay A")
        (record,) = await office.pendings()
        edited = {**record.pending.args, "amount": 5}
        await decided(office, record.id, Approve(scope="always", edited_args=edited))
        await office.settle()
        (grant,) = await office.store.grants(paying.clock.now())
        assert grant.grant.args == edited and paying.ran == ["pay A 5"]
        await office.say("again A")
        assert len(await office.pendings()) == 1


async def test_a_grant_that_is_revoked_lets_nothing_run_in_the_turn_that_goes_on(paying: House) -> None:
    pay = call("pay", order="A")
    paying.plan["twice"] = [calls(pay), calls(call("look", at="door")), calls(pay), "twice"]
    async with running(paying) as office:
        await approved(office, "pay A", "Always approve")
        hold = paying.hold("look")
        await office.talk.say("twice")
        await hold.is_reached()
        assert paying.ran == ["pay A 10", "pay A 10", "look door"]
        (grant,) = await office.gateway.requests.grants()
        await office.gateway.requests.revoke(grant.id, _who(Actor("talk", "w", "ann")))
        hold.go.set()
        await office.settle()
        assert paying.ran == ["pay A 10", "pay A 10", "look door"]
        assert [record.state for record in await office.pendings()] == ["open"]
