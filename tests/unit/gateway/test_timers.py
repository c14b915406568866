"""What happens while nobody decides: reminders, escalation, the end; over real rows, with a clock that
jumps, and with several processes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from channels.base import Actor, Card, ThreadKey
from gateway.gate import Rule
from gateway.patience import Escalation, Quiet
from tests.unit.gateway.scene import ELSEWHERE, HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

HOUR = 3600.0
STEP = Escalation(after=4 * HOUR, notify=("talk:desk",), approvers=("talk:w:bob",))
REMIND = {"remind": (HOUR, 24 * HOUR)}
DM = ThreadKey("talk", "w", "dm-bob", "")


@pytest.fixture
def paying(house: House) -> House:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    house.plan["both"] = [calls(call("pay", order="A"), call("pay", order="B")), "paid both"]
    house.plan["ask"] = [calls(call("ask_user", question="Which `one`?")), "fine"]
    return house


def reminders(house: House, key: ThreadKey = HERE) -> list[str]:
    return [text for text in house.world.texts(key) if text.startswith("Still waiting")]


async def later(office: Office, hours: float) -> None:
    """Time goes by, and what is due happens."""
    office.house.clock.advance(hours=hours)
    await office.settle()


def mentions(house: House, key: ThreadKey) -> list[Actor]:
    return [one for where, message in house.world.messages if where == key for one in message.mentions]


def mentioned_roles(house: House, key: ThreadKey) -> list[str]:
    return [role for where, message in house.world.messages if where == key for role in message.mention_roles]


# ---- reminders


async def test_a_reminder_says_what_waits_since_when_and_for_whom(paying: House) -> None:
    async with running(paying, paying.agent(rule=REMIND)) as office:
        await office.say("pay")
        code = (await office.pendings())[0].pending.code
        await later(office, 0.99)
        assert reminders(paying) == []
        await later(office, 0.01)
        (text,) = reminders(paying)
        assert f"`pay` (code `{code}`)" in text and "since 2025-06-15 15:06 UTC" in text
        assert "talk:w:ann (who asked)" in text and "order" not in text
        assert mentions(paying, HERE) == [Actor("talk", "w", "ann")]
        await later(office, 22.9)
        assert len(reminders(paying)) == 1
        await later(office, 0.1)
        assert len(reminders(paying)) == 2
        await later(office, 1000)
        assert len(reminders(paying)) == 2
        assert await office.audit() == ["requested", "reminded", "reminded"]
        assert await office.store.verify_audit() is None


async def test_it_is_said_wherever_the_card_is_and_where_it_was_asked_for(paying: House) -> None:
    rule = {**REMIND, "approvers": ("talk:bob", "talk:role:7"), "notify": ("talk:desk",), "four_eyes": True}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
        await later(office, 1)
        assert len(reminders(paying)) == len(reminders(paying, ELSEWHERE)) == 1
        for key in (HERE, ELSEWHERE):
            assert mentions(paying, key) == [Actor("talk", "w", "bob")]
            assert mentioned_roles(paying, key) == ["7"]
        session = await office.session()
        assert len(await office.store.notices(session.id)) == 1  # the other one is no part of the talk


async def test_the_calls_of_one_card_are_one_reminder(paying: House) -> None:
    async with running(paying, paying.agent(rule=REMIND)) as office:
        await office.say("both")
        codes = [record.pending.code for record in await office.pendings()]
        await later(office, 1)
        (text,) = reminders(paying)
        assert all(code in text for code in codes)
        await office.say(f"/approve {codes[0]}")
        await later(office, 24)
        assert len(reminders(paying)) == 2
        assert codes[0] not in reminders(paying)[1] and codes[1] in reminders(paying)[1]


async def test_who_has_agreed_is_not_called_again(paying: House) -> None:
    rule = {**REMIND, "approvers": ("talk:w:bob", "talk:w:ann"), "quorum": 2}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
        ref, card = paying.world.card()
        await office.press(ref, button(card, "Approve"), user="bob")
        await later(office, 1)
        assert mentions(paying, HERE) == [Actor("talk", "w", "ann")]


async def test_everybody_who_may_decide_is_called_people_and_roles(paying: House) -> None:
    people = (
        "requester",
        "talk:bob",
        "talk:w:eve",
        "other:zoe",
        "talk:role:7",
        "talk:role:8",
        "other:role:9",
    )
    async with running(paying, paying.agent(rule={**REMIND, "approvers": people})) as office:
        await office.say("pay")
        await later(office, 1)
        assert [actor.user for actor in mentions(paying, HERE)] == ["ann", "bob", "eve"]
        assert mentioned_roles(paying, HERE) == ["7", "8"]


async def test_what_only_approvers_may_see_is_not_told_in_a_reminder(paying: House) -> None:
    rule = {**REMIND, "approvers": ("talk:bob",), "reveal": "approvers"}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
        code = (await office.pendings())[0].pending.code
        await later(office, 1)
        (text,) = reminders(paying)
        assert "`pay`" in text and code not in text


async def test_a_question_waits_for_an_answer(paying: House) -> None:
    rules = (Rule(tool="ask_user", decision="ask", remind=(HOUR,)),)
    async with running(paying, paying.agent(rules=rules)) as office:
        await office.say("ask")
        await later(office, 1)
        (text,) = reminders(paying)
        assert text.startswith("Still waiting for an answer since") and "`Which 'one'?`" in text


async def test_nobody_is_reminded_of_what_is_decided(paying: House) -> None:
    async with running(paying, paying.agent(rule={**REMIND, "escalate": STEP})) as office:
        await office.say("pay")
        ref, card = paying.world.card()
        await office.press(ref, button(card, "Approve"))
        await later(office, 1000)
        assert paying.world.texts() == ["paid"] and paying.world.texts(ELSEWHERE) == []


# ---- the clock


async def test_reminders_that_were_missed_are_one(paying: House) -> None:
    async with running(paying, paying.agent(rule=REMIND)) as office:
        await office.say("pay")
    paying.clock.advance(hours=1000)
    async with running(paying, paying.agent(rule=REMIND)) as office:
        await office.settle()
        assert len(reminders(paying)) == 1
        assert await office.store.next_timer_at() is None


async def test_what_ran_out_while_nobody_ran_is_not_reminded_of_nor_passed_on(paying: House) -> None:
    rule = {**REMIND, "escalate": STEP, "expires": 48 * HOUR}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
    paying.clock.advance(hours=49)
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.settle()
        assert await office.audit() == ["requested", "expired"]
        assert len(paying.world.texts()) == 2 and paying.world.texts(ELSEWHERE) == []


async def test_a_clock_that_jumps_back_says_nothing_twice_and_one_that_jumps_on_says_it_at_once(
    paying: House,
) -> None:
    async with running(paying, paying.agent(rule=REMIND)) as office:
        await office.say("pay")
        start = paying.clock.now()
        paying.clock.set_wall(start + 2 * HOUR)
        await office.settle()
        assert len(reminders(paying)) == 1
        for moment in (start - 5 * HOUR, start + HOUR, start + 2 * HOUR, start + 23 * HOUR):
            paying.clock.set_wall(moment)
            await office.settle()
        assert len(reminders(paying)) == 1
        paying.clock.set_wall(start + 24 * HOUR)
        await office.settle()
        assert len(reminders(paying)) == 2


async def test_two_processes_remind_and_escalate_once(paying: House) -> None:
    agent = paying.agent(rule={**REMIND, "escalate": STEP})
    async with running(paying, agent) as one, running(paying, agent) as other:
        await one.say("pay")
        for hours in (1, 3):
            paying.clock.advance(hours=hours)
            await asyncio.gather(*(o.gateway.timers.sweep_once() for o in (one, other, one, other)))
            await one.settle()
            await other.settle()
        assert len(reminders(paying)) == 1
        assert (await one.audit()).count("escalated") == (await one.audit()).count("reminded") == 1
        assert sum(key == ELSEWHERE for key in paying.world.places.values()) == 1


async def test_a_process_that_dies_before_it_has_sent_leaves_it_to_the_next(paying: House) -> None:
    agent = paying.agent(rule=REMIND)
    async with running(paying, agent) as doomed:
        await doomed.say("pay")
        paying.clock.advance(hours=1)
        assert await doomed.gateway.timers.sweep_once() == 1
        await doomed.kill()
    async with running(paying, agent) as office:
        await office.settle()
        assert len(reminders(paying)) == 1
        assert [m.repeat for _, m in paying.world.messages] == [False]


async def test_what_falls_into_quiet_hours_comes_when_they_end(paying: House) -> None:
    # It is 15:06 UTC.
    quiet = Quiet(start=16 * 60, end=20 * 60)
    async with running(paying, paying.agent(rule={**REMIND, "quiet": quiet})) as office:
        await office.say("pay")
        await later(office, 4.8)  # 19:54
        assert reminders(paying) == []
        await later(office, 0.2)  # 20:06
        assert len(reminders(paying)) == 1


async def test_quiet_hours_hold_for_a_process_that_comes_back_in_them_too(paying: House) -> None:
    quiet = Quiet(start=17 * 60, end=20 * 60)
    rule = {**REMIND, "escalate": STEP, "quiet": quiet, "expires": 4.1 * HOUR}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")  # at 15:06: to be reminded of at 16:06, over at 19:12
    paying.clock.advance(hours=3)
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.settle()
        assert reminders(paying) == [] and await office.audit() == ["requested"]
        await later(office, 1.2)
        assert await office.audit() == ["requested", "expired"]  # an end is never put off


# ---- escalation


async def test_after_a_while_others_may_decide_and_see_the_card(paying: House) -> None:
    async with running(paying, paying.agent(rule={"escalate": STEP})) as office:
        await office.say("pay")
        here, card = paying.world.card()
        refused = await office.press(here, button(card, "Approve"), user="bob")
        assert refused.startswith("You may not decide this")
        await later(office, 4)
        there, shown = paying.world.card(key=ELSEWHERE)
        assert "bob" in shown.deciders and "bob" in paying.world.card(key=HERE)[1].deciders
        assert shown.asks == (Actor("talk", "w", "bob"),)
        (text,) = paying.world.texts()
        assert text.startswith("Nobody has decided about `pay`") and "talk:w:ann, talk:w:bob" in text
        told = await office.press(there, button(shown, "Approve"), user="bob")
        assert told.startswith("Approved by Bob") and paying.ran == ["pay A 10"]
        assert paying.world.live() == []
        kinds = [kind for kind in await office.audit() if not kind.startswith("refused")]
        assert kinds[:3] == ["requested", "escalated", "approved"]
        (line,) = [line for line in await office.store.audit_lines() if line.kind == "escalated"]
        assert line.body == {"tool": "pay", "approvers": ["talk:w:bob"], "notify": ["talk:desk"]}


async def test_who_could_decide_before_still_can(paying: House) -> None:
    async with running(paying, paying.agent(rule={"escalate": STEP})) as office:
        await office.say("pay")
        await later(office, 4)
        ref, card = paying.world.card(key=HERE)
        await office.press(ref, button(card, "Approve"), user="ann")
        assert paying.ran == ["pay A 10"]


async def test_every_call_of_a_card_is_passed_on_with_it(paying: House) -> None:
    async with running(paying, paying.agent(rule={"escalate": STEP})) as office:
        await office.say("both")
        await later(office, 4)
        assert len(paying.world.texts()) == 1
        ref, card = paying.world.card(key=ELSEWHERE)
        await office.press(ref, button(card, "Approve all (2)"), user="bob")
        assert paying.ran == ["pay A 10", "pay B 10"]


async def test_calls_that_would_be_passed_on_to_others_do_not_share_a_card(paying: House) -> None:
    paying.plan["mixed"] = [calls(call("pay", order="A"), call("send", to="x")), "done"]
    rules = (Rule(tool="send", decision="ask"),)
    async with running(paying, paying.agent(rule={"escalate": STEP}, rules=rules)) as office:
        await office.say("mixed")
        await later(office, 4)
        titles = {card.title: card for card in paying.world.cards.values()}
        assert "bob" in titles["Approve pay?"].deciders and "bob" not in titles["Approve send?"].deciders


async def test_who_is_asked_later_is_reminded_later(paying: House) -> None:
    rule = {"remind": (5 * HOUR,), "escalate": STEP}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
        await later(office, 4)
        await later(office, 1)
        assert len(reminders(paying, ELSEWHERE)) == len(reminders(paying)) == 1


async def test_an_escalation_and_a_reminder_of_the_same_moment_are_one_message(paying: House) -> None:
    rule = {"remind": (HOUR, 4 * HOUR), "escalate": STEP}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
    paying.clock.advance(hours=4)
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.settle()
        assert len(paying.world.texts()) == 1
        assert await office.audit() == ["requested", "escalated"]


async def test_a_place_that_has_the_card_already_gets_no_second_one(paying: House) -> None:
    rule: dict[str, Any] = {"escalate": STEP, "notify": ("talk:desk",)}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay")
        await later(office, 4)
        cards: list[Card] = [c for r, c in paying.world.cards.items() if paying.world.places[r] == ELSEWHERE]
        assert len(cards) == 1 and "bob" in cards[0].deciders


# ---- the end


async def test_c047_an_end_is_told_in_the_thread_with_how_to_ask_again(paying: House) -> None:
    async with running(paying, paying.agent(rule={"expires": HOUR})) as office:
        await office.say("pay")
        code = (await office.pendings())[0].pending.code
        await later(office, 1)
        told, answer = paying.world.texts()
        assert told.startswith(f"The request for `pay` (code `{code}`) expired after 1 h.")
        assert "not run and nobody refused it" in told and "write to me and I ask again" in told
        assert answer == "paid" and paying.ran == []


async def test_c047_the_calls_of_one_card_end_with_one_notice(paying: House) -> None:
    async with running(paying, paying.agent(rule={"expires": HOUR})) as office:
        await office.say("both")
        codes = [record.pending.code for record in await office.pendings()]
        await later(office, 1)
        told, _answer = paying.world.texts()
        assert all(code in told for code in codes) and "were not run" in told


@pytest.mark.parametrize("place", [0, 1])
async def test_c047_a_click_that_comes_before_the_timer_tells_it_once_too(paying: House, place: int) -> None:
    async with running(paying, paying.agent(rule={"expires": HOUR})) as office:
        await office.say("both")
        code = [record.pending.code for record in await office.pendings()][place]
        paying.clock.advance(hours=1)
        await office.say(f"/approve {code}")
        told = [text for text in paying.world.texts() if text.startswith("The requests for")]
        assert len(told) == 1 and paying.ran == []
        assert (await office.audit()).count("expired") == 2


async def test_c047_a_question_that_ran_out_says_so(paying: House) -> None:
    rules = (Rule(tool="ask_user", decision="ask", expires=HOUR),)
    async with running(paying, paying.agent(rules=rules)) as office:
        await office.say("ask")
        await later(office, 1)
        told, _answer = paying.world.texts()
        assert told.startswith("`Which 'one'?`") and "expired after 1 h without an answer" in told


async def test_a_clock_that_jumps_back_in_a_sweep_loses_no_end(paying: House) -> None:
    async with running(paying, paying.agent(rule={"expires": HOUR})) as office:
        await office.say("pay")
        start, store = paying.clock.now(), office.store
        look = store.due_timers

        async def due_timers(now: float, limit: int = 100) -> list[Any]:
            found = await look(now, limit)
            paying.clock.set_wall(start)
            return found

        office.gateway.timers._store = Jumping(store, due_timers)
        paying.clock.set_wall(start + HOUR)
        assert await office.gateway.timers.sweep_once() == 1
        (record,) = await office.pendings(open_only=False)
        assert record.state == "expired"


class Jumping:
    """A store during whose look at the timers the clock jumps."""

    def __init__(self, store: Any, due_timers: Any) -> None:
        self._store, self.due_timers = store, due_timers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
