"""The record: everything that people and the clock do about a request is a line, and says what it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from channels.base import Actor as ChannelActor
from channels.base import InboundPress, MessageRef, unpack_press
from gateway.app import record
from gateway.approvals import Approve
from gateway.clock import SystemClock
from gateway.errors import ConfigError
from gateway.gate import Rule
from gateway.messages import Actor, call_hash
from gateway.resolutions import Click
from gateway.store.rows import AuditLine, PendingRecord
from gateway.store.sqlite import SqliteStore
from tests.unit.gateway.scene import House, Office, call, calls, running
from tests.unit.gateway.talk import button

REFUSAL = ("denied", "refused by", "rejected", "declined", "said no")


@pytest.fixture
def paying(house: House) -> House:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    house.plan["look"] = [calls(call("look", at="A")), "looked"]
    house.plan["ask"] = [calls(call("ask_user", question="Why?")), "asked"]
    return house


async def lines(office: Office) -> list[AuditLine]:
    return list(reversed(await office.store.audit_lines()))


async def opened(office: Office, label: str, *, user: str = "ann", whole: bool = False) -> Any:
    """Somebody opens a form of the open card, or the card itself."""
    ref, card = office.world.card()
    data = {form.title: form.data for form in card.forms} | {b.label: b.data for b in card.buttons}
    press = InboundPress(
        thread=office.world.places[ref],
        action_id="o1",
        actor=ChannelActor("talk", "w", user),
        data=data[label],
        message_ref=MessageRef(ref),
        sent_at=0.0,
    )
    assert unpack_press(press.data) is not None
    cards = office.gateway._cards
    return await (cards.card(press) if whole else cards.form(press))


async def word(office: Office, record: PendingRecord, resolution: Any) -> None:
    click = Click(pending_id=record.id, resolution=resolution, actor=Actor("talk", "w", "ann"), name="Ann")
    await office.gateway.resolutions.decide(click)
    await office.settle()


async def test_request_view_edit_decision_grant_run_and_revocation_are_a_line_each(paying: House) -> None:
    async with running(paying) as office:
        await office.say("pay")
        assert not isinstance(await opened(office, "Edit"), str)
        assert not isinstance(await opened(office, "Approve", whole=True), str)
        (waiting,) = await office.pendings()
        edited = {**waiting.pending.args, "amount": 7}
        await word(office, waiting, Approve(scope="session", edited_args=edited))
        (grant,) = await office.store.grants(paying.clock.now())
        await office.say(f"/grants revoke {grant.code}")
        found = await lines(office)
        assert [line.kind for line in found] == [
            "requested",
            "viewed",
            "viewed",
            "edited",
            "approved",
            "granted",
            "executed",
            "revoked",
        ]
        assert [line.body.get("what") for line in found[1:3]] == ["form", "card"]
        changed = call_hash("pay", edited)
        assert {line.kind: line.args_hash for line in found if line.kind != "viewed"} == {
            "requested": waiting.pending.args_hash,
            "edited": changed,
            "approved": waiting.pending.args_hash,
            "granted": changed,
            "executed": changed,
            "revoked": changed,
        }
        assert {line.pending_id for line in found} == {waiting.id}
        assert {line.actor for line in found} == {"talk:w:ann"}
        assert found[3].body["changed"] == ["amount"]
        assert "sk-live" not in json.dumps([line.body for line in found])
        assert await office.store.verify_audit() is None


async def test_who_may_not_see_a_request_has_viewed_nothing(paying: House) -> None:
    async with running(paying) as office:
        await office.say("pay")
        told = await opened(office, "Edit", user="bob")
        assert isinstance(told, str) and told.startswith("You may not decide this")
        assert [line.kind for line in await lines(office)] == ["requested"]


async def test_what_a_rule_allows_runs_without_a_line(paying: House) -> None:
    async with running(paying) as office:
        await office.say("look")
        assert paying.ran == ["look A"] and await lines(office) == []


async def test_a_run_that_was_cut_off_and_begun_again_is_two_lines(paying: House) -> None:
    paying.plan["jot"] = [calls(call("note", text="x")), "jotted"]
    hold = paying.hold("note")
    asks = paying.agent(rules=(_ask("note"),))
    async with running(paying, asks) as office:
        await office.say("jot")
        ref, card = paying.world.card()
        await office.talk.press(ref, button(card, "Approve"))
        await hold.is_reached()
        await office.kill()
    paying.holds.clear()
    async with running(paying, asks) as office:
        await office.settle()
        runs = [line for line in await lines(office) if line.kind == "executed"]
        assert paying.ran == ["note x", "note x"]
        assert [line.body["attempt"] for line in runs] == [1, 2]


async def test_what_a_person_says_to_run_again_is_on_record_as_run(paying: House) -> None:
    paying.plan["go"] = [calls(call("send", to="Bob")), "sent"]
    hold = paying.hold("send")
    async with running(paying) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.kill()
    paying.holds.clear()
    async with running(paying) as office:
        await office.settle()
        ref, card = paying.world.card()
        await office.press(ref, button(card, "run again"))
        found = await lines(office)
        assert [line.kind for line in found] == ["requested", "answered", "executed"]
        assert found[2].actor == "talk:w:ann" and paying.ran == ["send Bob", "send Bob"]


@pytest.mark.parametrize("text", ["pay", "ask"])
@pytest.mark.parametrize("end", ["expired", "superseded by /stop", "superseded by a message", "cancelled"])
async def test_c047_no_end_but_a_person_s_no_is_written_or_told_as_a_refusal(
    paying: House, text: str, end: str
) -> None:
    mode = "supersede" if end == "superseded by a message" else "queue"
    rules = (_ask("ask_user", expires=60.0),)
    agent = paying.agent(while_pending=mode, rules=rules, rule={"expires": 60.0})
    async with running(paying, agent) as office:
        await office.say(text)
        (waiting,) = await office.pendings()
        match end:
            case "expired":
                paying.clock.advance(minutes=2)
                await office.settle()
            case "superseded by /stop":
                await office.say("/stop")
            case "superseded by a message":
                await office.say("something else")
            case _:
                await office.say(f"/pending cancel {waiting.pending.code}")
        (after,) = await office.pendings(open_only=False)
        kind = end.partition(" ")[0]
        assert after.state == ("superseded" if kind == "cancelled" else kind)
        written = [line.kind for line in await lines(office)]
        assert written == ["requested", kind]
        (content,) = [result.content for message in await office.log() for result in message.results]
        cards = [card.status for card in paying.world.cards.values()]
        told = [*paying.world.texts(), *cards, content, *map(str, written)]
        assert [words for words in told if any(sign in words.casefold() for sign in REFUSAL)] == []


async def test_a_denial_is_written_and_told_as_one(paying: House) -> None:
    async with running(paying) as office:
        await office.say("pay")
        await office.say("/deny")
        assert [line.kind for line in await lines(office)] == ["requested", "denied"]
        (content,) = [result.content for message in await office.log() for result in message.results]
        assert content.startswith("denied by Ann")


def _ask(tool: str, **more: Any) -> Rule:
    return Rule(tool=tool, decision="ask", **more)


# ---- reading it


async def test_the_record_is_read_in_pieces_whatever_its_length(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "gate.db", clock=SystemClock())
    await store.open()
    count = 2 * record.PIECE + 1
    for n in range(count):
        await store.audit("tried", "web:x", {"n": n}, 1.0)
    sizes = [len(piece) async for piece in record._pieces(store)]
    assert sizes == [record.PIECE, record.PIECE, 1]
    seen: list[int] = []
    checked = await record._checked(store, seen.append)
    assert (checked.seq, checked.bad, sum(seen)) == (count, None, count) and len(seen) == 3
    await store.close()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", 0.0),
        ("1970-01-02", 86_400.0),
        ("1970-01-01T01:00", 3_600.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
    ],
)
def test_a_moment_is_read_as_utc_where_it_says_no_zone(text: str, moment: float) -> None:
    assert record.read_since(text) == moment


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "7d"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--since"):
        record.read_since(text)
