"""/pending: what waits here, for me, everywhere; shown again, taken back, passed on."""

from __future__ import annotations

import re
from typing import Any

import pytest

from channels.base import Actor as ChannelActor
from gateway.app.people import ConfiguredRules
from gateway.messages import Actor, ThreadKey
from gateway.notices import MOST_LISTED, PENDING_MORE, POSTED_AGAIN, ago
from gateway.requests import Who
from gateway.store.rows import PendingRecord
from tests.unit.gateway.scene import ELSEWHERE, HERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

BY_BOB = {"approvers": ("talk:bob",)}


@pytest.fixture
def paying(house: House) -> House:
    for order in ("A", "B"):
        house.plan[f"pay {order}"] = [calls(call("pay", order=order)), f"paid {order}"]
    house.plan["ask"] = [calls(call("ask_user", question="Which account?")), "asked"]
    return house


async def said(office: Office, text: str, **more: Any) -> str:
    """The last thing written where the command was given."""
    await office.say(text, **more)
    return office.world.texts(more.get("key", HERE))[-1]


async def one(office: Office, text: str = "pay A", **more: Any) -> PendingRecord:
    """Somebody asks for something that waits."""
    await office.say(text, **more)
    return (await office.pendings())[-1]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59.9, "less than a minute"),
        (60, "1 min"),
        (3599, "59 min"),
        (3 * 3600 + 5, "3 h"),
        (86_399, "23 h"),
        (86_400 * 2.5, "2 d"),
    ],
)
def test_an_age_is_one_number_and_its_unit(seconds: float, words: str) -> None:
    assert ago(seconds) == words


async def test_each_line_has_code_what_age_and_who_may_decide(paying: House) -> None:
    async with running(paying) as office:
        record = await one(office)
        paying.clock.advance(minutes=200)
        expected = f"- `{record.pending.code}` pay (waits 3 h; who may decide: talk:w:ann (who asked))"
        assert await said(office, "/pending") == f"{expected}\n\n{PENDING_MORE}"


async def test_mine_is_what_i_may_decide_everywhere(paying: House) -> None:
    async with running(paying, paying.agent(rule=BY_BOB)) as office:
        here = await one(office)
        there = await one(office, "pay B", key=ELSEWHERE)
        text = await said(office, "/pending mine", user="bob")
        assert here.pending.code in text and there.pending.code in text
        assert await said(office, "/pending mine") == "Nothing waits for your decision."


async def test_all_is_for_those_who_run_it_or_decide_in_the_channel(paying: House) -> None:
    async with running(paying, approvers={"talk": ("talk:bob",)}) as office:
        assert await said(office, "/pending all", user="bob") == "Nothing waits for anybody's decision."
        here, there = await one(office), await one(office, "pay B", key=ELSEWHERE)
        assert (await said(office, "/pending all")).startswith("Only those who run me")
        text = await said(office, "/pending all", user="bob")
        assert here.pending.code in text and there.pending.code in text


async def test_what_is_asked_in_another_thread_is_not_told_where_others_read_along(paying: House) -> None:
    async with running(paying, approvers={"talk": ("talk:bob",)}) as office:
        record = await one(office, "ask", key=ELSEWHERE)
        text = await said(office, "/pending all", user="bob")
        assert record.pending.code in text and "account" not in text
        assert "account" in await said(office, "/pending", key=ELSEWHERE)
        assert "account" in await said(office, "/pending all", user="bob", private=True)


async def test_a_long_list_is_bounded_and_says_how_many_more(paying: House) -> None:
    count = MOST_LISTED + 3
    paying.plan["many"] = [calls(*(call("pay", order=f"o{n}") for n in range(count))), "ok"]
    async with running(paying) as office:
        await office.say("many")
        text = await said(office, "/pending")
        lines = text.splitlines()
        assert len(lines) == MOST_LISTED + 3 and lines[-3] == "- and 3 more"
        found = {match for line in lines if (match := re.search(r"`(\w+)`", line))}
        assert len(found) == MOST_LISTED


@pytest.mark.parametrize("words", ["x", "show", "cancel", "give", "give abc", "show a b", "mine all"])
async def test_usage_is_told_for_anything_else(paying: House, words: str) -> None:
    async with running(paying) as office:
        assert (await said(office, f"/pending {words}")).startswith("Write `/pending`")


@pytest.mark.parametrize("verb", ["show zzzzz", "cancel zzzzz", "give zzzzz talk:bob"])
async def test_a_code_that_nobody_has_is_told(paying: House, verb: str) -> None:
    async with running(paying) as office:
        assert await said(office, f"/pending {verb}") == "There is no request 'zzzzz'."


# ---- show


async def test_show_posts_the_card_again_and_the_old_one_stays_live(paying: House) -> None:
    async with running(paying) as office:
        record = await one(office)
        (first,) = paying.world.live()
        await office.say(f"/pending show {record.pending.code.upper()}")
        both = paying.world.live()
        assert len(both) == 2 and first in both
        (second,) = set(both) - {first}
        card = paying.world.cards[second]
        assert card.card_id == record.id
        await office.press(second, button(card, "Approve"))
        assert paying.world.live() == [] and paying.ran == ["pay A 10"]
        assert all(card.status.startswith("Approved by Ann") for card in paying.world.cards.values())
        assert (await office.audit())[:3] == ["requested", "shown", "approved"]


async def test_show_in_another_thread_is_for_those_who_may_decide(paying: House) -> None:
    async with running(paying, paying.agent(rule=BY_BOB)) as office:
        record = await one(office)
        text = f"/pending show {record.pending.code}"
        assert await said(office, text, user="bob", key=ELSEWHERE) == POSTED_AGAIN
        assert list(paying.world.places.values()).count(ELSEWHERE) == 1
        await office.say("/stop")
    async with running(paying, paying.agent(rule={"approvers": ("talk:eve",)})) as office:
        record = await one(office, "pay B")
        told = await said(office, f"/pending show {record.pending.code}", user="bob", key=ELSEWHERE)
        assert told.startswith("You may not see this one here")
        assert (await office.audit())[-1] == "refused_forbidden"


async def test_what_is_closed_is_told_and_not_shown(paying: House) -> None:
    async with running(paying) as office:
        record = await one(office)
        await office.say("/approve")
        for verb in ("show", "cancel"):
            told = await said(office, f"/pending {verb} {record.pending.code}")
            assert told.startswith("Already decided. Approved by Ann")
        told = await said(office, f"/pending give {record.pending.code} bob")
        assert told.startswith("Already decided") and len(paying.world.cards) == 1


# ---- cancel


async def test_the_requester_takes_a_request_back_and_nobody_has_refused_it(paying: House) -> None:
    async with running(paying, paying.agent(rule=BY_BOB)) as office:
        record = await one(office)
        await office.say(f"/pending cancel {record.pending.code}")
        assert "Cancelled. It did not run" in "\n".join(paying.world.texts())
        (after,) = await office.pendings(open_only=False)
        assert after.state == "superseded" and paying.ran == []
        (result,) = [r for m in await office.log() for r in m.results]
        assert result.is_error and result.content.startswith("cancelled: Ann (talk:w:ann)")
        assert "denied" not in result.content and "nobody refused" in result.content
        _ref, card = paying.world.card(state="superseded")
        assert card.status.startswith("Cancelled by Ann (talk:w:ann)") and not card.buttons
        assert await office.audit() == ["requested", "cancelled"]
        assert "paid A" in paying.world.texts()  # the agent went on, knowing that


async def test_whoever_may_decide_and_operators_may_cancel_and_others_may_not(paying: House) -> None:
    async with running(paying, paying.agent(rule=BY_BOB)) as office:
        first = await one(office)
        await office.say(f"/pending cancel {first.pending.code}", user="bob")
        second = await one(office, "pay B")
        requests = office.gateway.requests
        eve = await requests.cancel(second.id, Who(actor=Actor("talk", "w", "eve"), via="test"))
        assert eve.outcome == "forbidden" and "talk:w:ann (who asked)" in eve.text
        operator = await requests.cancel(second.id, Who(actor=Actor("web", "", "local"), via="test"))
        assert operator.outcome == "resumed"
        await office.settle()
        assert await office.pendings() == [] and paying.ran == []


async def test_a_cancelled_sibling_waits_for_the_others(paying: House) -> None:
    paying.plan["both"] = [calls(call("pay", order="A"), call("pay", order="B")), "ok"]
    async with running(paying) as office:
        await office.say("both")
        first, second = sorted(await office.pendings(), key=lambda record: str(record.pending.args["order"]))
        await office.say(f"/pending cancel {first.pending.code}")
        assert [r.id for r in await office.pendings()] == [second.id] and paying.ran == []
        await office.say(f"/approve {second.pending.code}")
        assert paying.ran == ["pay B 10"]
        contents = [r.content for m in await office.log() for r in m.results]
        assert contents[0].startswith("cancelled: ") and contents[1] == "paid 10 for B"


async def test_a_question_can_be_taken_back_too(paying: House) -> None:
    async with running(paying) as office:
        record = await one(office, "ask")
        await office.say(f"/pending cancel {record.pending.code}")
        (result,) = [r for m in await office.log() for r in m.results]
        assert result.content.startswith("cancelled: ")


# ---- give


async def test_give_has_somebody_else_decide_and_redraws_every_card(paying: House) -> None:
    async with running(paying) as office:
        record = await one(office)
        await office.say(f"/pending give {record.pending.code} talk:bob")
        assert "Who may decide now: talk:bob." in paying.world.texts()
        assert any("was passed on by Ann (talk:w:ann)" in text for text in paying.world.texts())
        cards = list(paying.world.cards.items())
        assert all(card.deciders == "talk:bob" for _, card in cards)
        ref, card = next((ref, card) for ref, card in cards if paying.world.places[ref] == HERE)
        assert (await office.press(ref, button(card, "Approve"))).startswith("You may not decide this")
        assert (await office.press(ref, button(card, "Approve"), user="bob")).startswith("Approved by Bob")
        assert paying.ran == ["pay A 10"]
        line = next(line for line in await office.store.audit_lines() if line.kind == "reassigned")
        assert (line.body["before"], line.body["after"]) == ([], ["talk:bob"])
        assert (line.actor, line.args_hash) == ("talk:w:ann", record.pending.args_hash)


@pytest.mark.parametrize("who", ["bob", "@bob", "<@bob>", "<@!bob>", "<@bob|Bobby>", "talk:bob"])
async def test_a_person_is_named_by_id_or_mention(paying: House, who: str) -> None:
    async with running(paying) as office:
        record = await one(office)
        await office.say(f"/pending give {record.pending.code} {who}")
        (after,) = await office.pendings()
        assert after.pending.approvers == ("talk:bob",)


async def test_only_whoever_may_decide_passes_a_request_on(paying: House) -> None:
    async with running(paying, paying.agent(rule=BY_BOB)) as office:
        record = await one(office)
        told = await said(office, f"/pending give {record.pending.code} ann")
        assert told.startswith("You may not pass this on. Who may: talk:bob")
        assert (await office.pendings())[0].pending.approvers == ("talk:bob",)
        assert (await office.audit())[-1] == "refused_forbidden"


async def test_with_four_eyes_it_is_never_given_to_whoever_asked(paying: House) -> None:
    async with running(paying, paying.agent(rule={**BY_BOB, "four_eyes": True})) as office:
        record = await one(office)
        for who in ("ann", "talk:w:ann", "requester"):
            told = await said(office, f"/pending give {record.pending.code} {who}", user="bob")
            assert told.startswith("Whoever asked may not decide this")
        assert (await office.pendings())[0].pending.approvers == ("talk:bob",)


async def test_where_several_must_agree_one_more_may(paying: House) -> None:
    rule = {"approvers": ("talk:ann", "talk:bob"), "quorum": 2}
    async with running(paying, paying.agent(rule=rule)) as office:
        record = await one(office)
        await office.say("/approve")
        await office.say(f"/pending give {record.pending.code} eve")
        (after,) = await office.pendings()
        assert after.pending.approvers == ("talk:ann", "talk:bob", "talk:eve")
        assert after.votes == ("talk:w:ann",)


async def test_a_role_can_be_asked_and_nobody_is_written_to(paying: House) -> None:
    async with running(paying) as office:
        record = await one(office)
        cards = len(paying.world.cards)
        await office.say(f"/pending give {record.pending.code} <@&oncall>")
        (after,) = await office.pendings()
        assert after.pending.approvers == ("talk:role:oncall",) and len(paying.world.cards) == cards


async def test_who_decides_now_gets_the_card_in_private_where_that_is_possible(paying: House) -> None:
    async with running(paying) as office:
        place = await office.talk.private(ChannelActor("talk", "w", "bob"))
        record = await one(office)
        await office.say(f"/pending give {record.pending.code} bob")
        there = [ref for ref, where in paying.world.places.items() if where == place]
        assert place is not None and len(there) == 1
        card = paying.world.cards[there[0]]
        await office.press(there[0], button(card, "Approve"), user="bob")
        assert paying.ran == ["pay A 10"]


RULES = ConfiguredRules(default_agent="a", workspaces={"slack": "", "telegram": "7", "talk": "w"})


@pytest.mark.parametrize(
    ("entry", "channel", "person"),
    [
        ("<@U2>", "slack", "slack:U2"),
        ("<@U2|bob>", "slack", "slack:U2"),
        ("T1:U2", "slack", "slack:T1:U2"),
        ("slack:T1:U2", "telegram", "slack:T1:U2"),
        ("<!subteam^S1|@ops>", "slack", "slack:role:S1"),
        ("<@!123>", "discord", "discord:123"),
        ("<@&45>", "discord", "discord:role:45"),
        ("4", "telegram", "telegram:4"),
        ("web:local", "telegram", "web:local"),
        (" requester ", "telegram", "requester"),
    ],
)
def test_whom_people_mean_is_written_as_in_rules(entry: str, channel: str, person: str) -> None:
    assert RULES.person(entry, channel) == person


@pytest.mark.parametrize(
    ("entry", "channel", "mend"),
    [("@bob", "slack", "Copy member ID"), ("bob", "telegram", "numbers"), ("<@U2>", "discord", "numbers")],
)
def test_a_name_is_no_id_and_the_mend_is_told(entry: str, channel: str, mend: str) -> None:
    with pytest.raises(ValueError, match=mend):
        RULES.person(entry, channel)


async def test_a_name_is_refused_and_nothing_changes(paying: House) -> None:
    async with running(paying) as office:
        record = await one(office)
        told = await said(office, f"/pending give {record.pending.code} slack:bob")
        assert "Copy member ID" in told
        assert (await office.pendings())[0].pending.approvers == ()


async def test_what_waits_for_me_is_found_behind_hundreds_of_others(paying: House) -> None:
    paying.plan["many"] = [calls(*(call("pay", order=f"o{n}") for n in range(210))), "ok"]
    async with running(paying, paying.agent(), paying.agent(name="ops", rule=BY_BOB)) as office:
        await office.say("many")
        await office.say("pay A", key=HERE._replace(conversation="ops"))
        actor = Actor("talk", "w", "bob")
        (mine,) = await office.gateway.resolutions.waiting(actor)
        assert mine.key == ThreadKey("talk", "w", "ops", "")
