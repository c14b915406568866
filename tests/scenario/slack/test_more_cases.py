"""More public failures of other bots, each with its id: restarts, threads, approvals, secrets on Slack."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gateway.messages import Json, ThreadKey
from gateway.tools.base import tool
from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.scenario.slack.house import (
    ADA,
    BOB,
    GENERAL,
    HERS,
    HIS,
    ME,
    TRANSPORTS,
    House,
    Post,
    Scene,
    running,
)

REPEAT = "may be a repeat"
NO_ANSWER = "Stopped: I was getting nowhere (the model gave no answer)."
LOUD = ("slack_sdk", "slack_bolt", "aiohttp", "channels.slack", "channels.slack.library", "gateway")
FEEDBACK = "What should be done instead?"


@pytest.fixture
async def scene(house: House, server: SlackServer) -> AsyncIterator[Scene]:
    async with running(house, server) as scene:
        yield scene


def raw(server: SlackServer, channel: str, **fields: Any) -> str:
    """A message as nobody here can write it: stored, and told to the app as every message is. Its ts."""
    message: Json = {"type": "message", "ts": server.new_ts(), "team": "T1", **fields}
    server.store(server.channels[channel], message)
    server.fire_message(server.channels[channel], message)
    return str(message["ts"])


def results(house: House) -> list[tuple[str, bool]]:
    """What the model was last told about its calls, in order."""
    return [(r.content, r.is_error) for m in house.requests[-1].messages for r in m.results]


async def lines(scene: Scene, kind: str) -> list[Json]:
    """The lines of the record of one kind: whose arguments they are about."""
    found = [line for line in await scene.gateway.store.audit_lines() if line.kind == kind]
    return [{"pending": line.pending_id, "args": line.args_hash} for line in found]


def button(post: Post, label: str) -> Json:
    """A button of a message as it is on the wire."""
    for block in post.blocks:
        for found in [*block.get("elements", []), block.get("accessory", {})]:
            if found.get("type") == "button" and found["text"]["text"] == label:
                return dict(found)
    raise AssertionError(f"no button {label!r} in {post.labels}")


# ---- what was sent before a restart


@pytest.mark.parametrize("arrived", [True, False], ids=["it arrived", "it was lost"])
async def test_c031_answers_that_were_sent_are_not_sent_again_after_a_restart(
    house: House, server: SlackServer, arrived: bool
) -> None:
    async with running(house, server) as scene:
        asked = scene.call("number 0")
        await scene.sees("You said: number 0")
        for number in (1, 2):
            scene.say(f"number {number}", thread=asked.ts)
            await scene.sees(f"You said: number {number}")
        await scene.rest()
        held = server.hold("chat.postMessage")
        scene.say("the last one", thread=asked.ts)
        await scene.until(lambda: held.waiting, "the request is on its way")
        await scene.gateway.stop()
    if not arrived:
        server.kick_bot(GENERAL)  # what was on its way is refused
    server.release("chat.postMessage")
    await server.wait_for(lambda: len(server.called("chat.postMessage")) == 4)
    server.channels[GENERAL].members.add(server.app.bot_user)
    before = ["You said: number 0", "You said: number 1", "You said: number 2"]
    before += ["You said: the last one"] if arrived else []
    assert scene.texts() == before
    for _ in range(2):  # and a further restart has nothing left to send
        async with running(house, server) as scene:
            await scene.until(lambda: len(scene.texts()) > len(before), "the one that was on its way")
            await scene.rest()
        texts = scene.texts()
        assert texts[:-1] == before
        assert texts[-1].startswith("You said: the last one") and REPEAT in texts[-1]


# ---- threads and sessions


async def session_of(scene: Scene, channel: str, ts: str) -> str:
    view = await scene.gateway.store.session_of(ThreadKey("slack", "T1", channel, ts))
    assert view is not None, f"no session in {channel} {ts}"
    return str(view.id)


@TRANSPORTS
@pytest.mark.parametrize(("place", "called"), [(HERS, ""), (GENERAL, f"{ME} ")], ids=["direct", "channel"])
async def test_c033_the_reply_in_the_bots_thread_goes_on_with_the_session_of_the_first_message(
    house: House, server: SlackServer, transport: str, place: str, called: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        first = scene.say(f"{called}name three rivers", channel=place)
        assert "thread_ts" not in first.message
        answer = await scene.sees("You said: name three rivers", place)
        assert answer.thread == first.ts
        scene.say("which was the second?", channel=place, thread=first.ts)
        await scene.sees("You said: which was the second?", place, thread=first.ts)
        assert [m.text for m in house.requests[-1].messages] == [
            "name three rivers",
            "You said: name three rivers",
            "which was the second?",
        ]
        other = scene.say(f"{called}another root", channel=place)
        await scene.sees("You said: another root", place, thread=other.ts)
        ts = server.new_ts()
        raw(server, place, user=ADA, text=f"{called}a root of itself", ts=ts, thread_ts=ts)
        await scene.sees("You said: a root of itself", place, thread=ts)
        await scene.rest()
        assert [m.text for m in house.said()] == ["a root of itself"]
        sessions = [await session_of(scene, place, one) for one in (first.ts, other.ts, ts)]
        assert len(set(sessions)) == 3
        assert len(await scene.gateway.store.sessions()) == 3


async def test_c033_new_begins_afresh_only_in_the_thread_where_it_is_typed(
    house: House, server: SlackServer, scene: Scene
) -> None:
    one, two = scene.say("one", channel=HERS), scene.say("two", channel=HERS)
    await scene.sees("You said: one", HERS, thread=one.ts)
    await scene.sees("You said: two", HERS, thread=two.ts)
    before = [await session_of(scene, HERS, ts) for ts in (one.ts, two.ts)]
    scene.say("/new", channel=HERS, thread=one.ts)
    await scene.sees("A fresh conversation begins here.", HERS, thread=one.ts)
    scene.say("one again", channel=HERS, thread=one.ts)
    await scene.sees("You said: one again", HERS, thread=one.ts)
    assert [m.text for m in house.said()] == ["one again"]
    scene.say("two again", channel=HERS, thread=two.ts)
    await scene.sees("You said: two again", HERS, thread=two.ts)
    assert [m.text for m in house.said()] == ["two", "two again"]
    after = [await session_of(scene, HERS, ts) for ts in (one.ts, two.ts)]
    assert after[0] != before[0] and after[1] == before[1]


@TRANSPORTS
async def test_c034_replies_with_a_subtype_are_messages_and_notices_are_none(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport, users=("*",)) as scene:
        asked = scene.call("hello")
        own = await scene.sees("You said: hello")
        said = scene.say("and the third?", thread=asked.ts, broadcast=True)
        assert said.message["subtype"] == "thread_broadcast"
        assert (await scene.sees("You said: and the third?")).thread == asked.ts
        server.redeliver(said)
        both = scene.call("and the fourth?", thread=asked.ts, broadcast=True)
        assert len(both.deliveries) == 2  # a message and a mention
        assert (await scene.sees("You said: and the fourth?")).thread == asked.ts
        shared = scene.say("and this?", thread=asked.ts, files=[("a.txt", b"a river")])
        assert shared.message["subtype"] == "file_share"
        server.redeliver(shared)
        assert (await scene.sees("You said: and this?")).thread == asked.ts
        at = {"thread_ts": asked.ts}
        notices: list[Json] = [
            {"subtype": "message_replied", "hidden": True, "message": server.message(GENERAL, asked.ts)},
            {"subtype": "channel_join", "user": BOB, "text": f"<@{BOB}> has joined the channel"},
            {"subtype": "channel_join", "user": server.app.bot_user, "text": f"{ME} has joined the channel"},
            {"subtype": "channel_topic", "user": BOB, "text": f"<@{BOB}> set the channel topic: ask {ME}"},
        ]
        for notice in notices:
            place = {"channel": GENERAL, "channel_type": "channel", "ts": server.new_ts(), **at}
            assert server.emit({"type": "message", **place, **notice}, GENERAL)
        mine = {"bot_id": server.app.bot_id, "app_id": server.app.id}
        raw(server, GENERAL, subtype="bot_message", text=f"{ME} go on", **mine, **at)
        server.fire_message(server.channels[GENERAL], own.message)
        scene.say("the end", thread=asked.ts)
        await scene.sees("You said: the end")
        await scene.rest()
        answers = [text.partition("\n")[0] for text in scene.texts() if text.startswith("You said")]
        words = ["hello", "and the third?", "and the fourth?", "and this?", "the end"]
        assert answers == [f"You said: {one}" for one in words]
        assert len(house.requests) == len(words)
        assert len(await scene.gateway.store.sessions()) == 1


@TRANSPORTS
async def test_c036_two_bots_never_talk_to_each_other_without_end(
    house: House, server: SlackServer, transport: str
) -> None:
    """Everybody is heard here, and still no program is: neither by mention nor in a thread of ours."""
    server.user("UB9", "deploys", is_bot=True)
    server.channels[GENERAL].members.add("UB9")
    house.answers["nothing"] = " "
    async with running(house, server, transport=transport, users=("*",)) as scene:
        asked = scene.call("nothing")
        notice = await scene.sees(NO_ANSWER)
        before = len(house.requests)
        modern = {"user": "UB9", "bot_id": "B9", "app_id": "A9", "bot_profile": {"id": "B9", "app_id": "A9"}}
        for _ in range(3):  # the other one answers whatever we write, in every way that it can
            newest = scene.posts()[-1]
            quote = f"{ME} you said: {newest.text}"
            told = server.bot_says(GENERAL, quote, thread_ts=asked.ts)
            assert {d.payload_type for d in told.deliveries} == {"message", "app_mention"}
            raw(server, GENERAL, text=quote, thread_ts=asked.ts, **modern)
            raw(server, GENERAL, text="and a word in your thread", thread_ts=asked.ts, **modern)
            raw(server, GENERAL, text=quote, **modern)
            await scene.rest()
        server.fire_message(server.channels[GENERAL], notice.message)  # our own words once more
        await scene.rest()
        assert scene.texts() == [notice.text]
        assert len(house.requests) == before and len(await scene.gateway.store.sessions()) == 1
        scene.say("and a word in your thread", "UG", thread=asked.ts)  # of a person it is heard
        await scene.rest()
        assert len(scene.texts()) == 1  # of a guest only when their own id is listed
        scene.say("and a word in your thread", BOB, thread=asked.ts)
        await scene.sees("You said: and a word in your thread", thread=asked.ts)
        await scene.rest()
        assert len(house.requests) == before + 1


# ---- approvals


@TRANSPORTS
async def test_c038_presses_commands_and_other_chats_come_through_while_turns_run_and_wait(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        busy = scene.say("work", channel=HERS)  # runs all the time
        await house.at_work.wait()
        asked = scene.say("pay A-1 30", channel=HERS)  # waits for a press, in the same conversation
        card = await scene.card(channel=HERS)
        typed = scene.say("and then?", channel=HERS, thread=asked.ts)
        await typed.taken()
        await scene.sees("Noted. Your message is kept", HERS, thread=asked.ts)
        scene.say("hello", BOB, HIS)
        await scene.sees("You said: hello", HIS)
        click = server.press(ADA, card.channel, card.ts, "Approve")
        await click.taken()
        await scene.sees("Result: paid 30 for A-1", HERS, thread=asked.ts)
        await scene.sees("You said: and then?", HERS, thread=asked.ts)
        assert not house.let_go.is_set()
        stop = scene.say("/stop", channel=HERS, thread=busy.ts)
        await stop.taken()
        await scene.sees("Stopped", HERS, thread=busy.ts)
        await scene.rest()
        # Slack waits three seconds and then says it again: nothing had to be said twice.
        assert [len(d.attempts) for d in server.deliveries] == [1] * len(server.deliveries)
        assert "Result: worked" not in scene.texts(HERS)
    assert house.paid == [{"order": "A-1", "amount": 30}]


@TRANSPORTS
async def test_c040_what_was_approved_runs_whatever_the_model_would_say_now(
    house: House, server: SlackServer, transport: str
) -> None:
    async with running(house, server, transport=transport) as scene:
        scene.call("drift")
        card = await scene.card()
        assert "80" in card.text
        await scene.rest()
        asked = len(house.requests)
    house.drift = 20
    async with running(house, server, transport=transport) as scene:
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 80 for A-1")
        await scene.rest()
        (requested,), (approved,) = await lines(scene, "requested"), await lines(scene, "approved")
    assert requested == approved and len(approved["args"]) == 64
    assert house.paid == [{"order": "A-1", "amount": 80}]
    assert len(house.requests) == asked + 1
    assert results(house) == [("paid 80 for A-1", False)]


async def test_c040_a_call_that_would_run_otherwise_than_its_card_says_is_asked_about_again(
    house: House, server: SlackServer
) -> None:
    """The tool has grown a parameter between card and click: other arguments would run."""

    @tool(name="pay")
    async def dearer(order: str, amount: float, fee: float = 5) -> str:
        """Pay."""
        house.paid.append({"order": order, "amount": amount, "fee": fee})
        return f"paid {amount:g} and {fee:g} for {order}"

    async with running(house, server) as scene:
        scene.call("pay A-1 30")
        card = await scene.card()
        await scene.rest()
    agent = house.agent()
    others = tuple(one for one in agent.tools if one.name != "pay")
    async with running(house, server, agent=replace(agent, tools=(*others, dearer))) as scene:
        await server.press(ADA, card.channel, card.ts, "Approve").taken()
        again = await scene.until(lambda: [c for c in scene.cards() if c.ts != card.ts], "another card")
        await scene.rest()
        assert house.paid == [] and len(again) == 1
        assert "fee" in again[0].text and "fee" not in card.text
        await scene.press(again[0], "Approve")
        await scene.sees("Result: paid 30 and 5 for A-1")
        await scene.rest()
        assert scene.cards() == []
        first, second = await lines(scene, "requested")
    assert first["args"] != second["args"] and first["pending"] != second["pending"]
    assert house.paid == [{"order": "A-1", "amount": 30, "fee": 5}]


@TRANSPORTS
async def test_c041_an_old_button_never_decides_a_newer_request(
    house: House, server: SlackServer, transport: str
) -> None:
    agent = house.agent(rule={"expires": 600.0})
    async with running(house, server, transport=transport, agent=agent, clock=FakeClock()) as scene:
        asked = scene.call("pay A-1 30")
        old = await scene.card()
        # One who may not presses, which changes nothing; the same press by who may comes late.
        noticed = server.press(BOB, old.channel, old.ts, "Approve")
        await noticed.taken()
        await scene.told(BOB)
        late = {**copy.deepcopy(noticed.payload), "user": {**noticed.payload["user"], "id": ADA}}
        late["response_url"] = server.new_response_url(ADA, GENERAL, thread_ts=asked.ts, message_ts=old.ts)
        await scene.rest()
        assert isinstance(scene.clock, FakeClock)
        scene.clock.advance(601)
        await scene.shows(old, "Expired")
        assert old.labels == []
        await scene.sees("Result: not run: the approval request expired", thread=asked.ts)
        scene.say("pay B-1 50", thread=asked.ts)
        new = await scene.card(thread=asked.ts)
        forged = copy.deepcopy(late)  # the old button on the new card
        forged["message"] = copy.deepcopy(new.message)
        forged["container"] = {**forged["container"], "message_ts": new.ts}
        for payload, words in ((late, "Expired"), (forged, "This request is not known here")):
            before = len(scene.whispers())
            payload["actions"][0]["action_ts"] = server.new_ts()
            await server.deliver("interactive", payload, ADA).taken()
            told = await scene.told(before=before)
            assert told.startswith(words)
        await scene.rest()
        assert house.paid == []
        (still,) = await scene.gateway.store.pendings()
        assert still.pending.args["order"] == "B-1"
        await scene.press(new, "Approve")
        await scene.sees("Result: paid 50 for B-1")
    assert house.paid == [{"order": "B-1", "amount": 50}]


async def test_c041_three_calls_at_once_have_three_ids_and_are_decided_in_any_order(scene: Scene) -> None:
    asked = scene.call("four")
    card = await scene.card("Approve all (3)")
    numbered = [f"{n} Approve" for n in (1, 2, 3)]
    assert len({button(card, label)["value"] for label in numbered}) == 3
    assert len({one.id for one in await scene.gateway.store.pendings()}) == 3
    before = card.labels
    scene.call("/approve", thread=asked.ts)
    await scene.sees("More than one request is open.", thread=asked.ts)
    await scene.rest()
    assert card.labels == before and scene.house.paid == []
    for number in (3, 1):
        await scene.press(card, f"{number} Approve")
        await scene.rest()
        assert not any(label.startswith(f"{number} ") for label in card.labels)
        assert "2 Approve" in card.labels
    assert [one["order"] for one in scene.house.paid] == ["D", "B"]
    await scene.press(card, "2 Deny")
    await scene.shows(card, "Denied by ada")
    await scene.rest()
    assert card.labels == []
    assert [one["order"] for one in scene.house.paid] == ["D", "B"]


@TRANSPORTS
async def test_c045_mixed_fates_give_exactly_one_result_each_in_call_order(
    house: House, server: SlackServer, transport: str
) -> None:
    agent = house.agent(rule={"expires": 600.0}, on_denial="continue")
    async with running(house, server, transport=transport, agent=agent, clock=FakeClock()) as scene:
        scene.call("four")
        card = await scene.card("Approve all (3)")
        asked = len(house.requests)
        await scene.press(card, "1 Approve")
        sent = await scene.fill_in(card, "2 Deny with feedback", {FEEDBACK: "not on Friday"})
        assert sent.outcome == "closed"
        await scene.shows(card, "Denied by ada")
        await scene.rest()
        assert len(house.requests) == asked
        assert any(label.startswith("3 ") for label in card.labels)
        assert isinstance(scene.clock, FakeClock)
        scene.clock.advance(601)
        await scene.sees("Result: made; paid 1 for B; denied by ada")
        await scene.rest()
        assert card.labels == []
        assert [f.name for f in server.files.values() if f.shares] == ["a.txt"]  # made once
    assert len(house.requests) == asked + 1
    *_, step, after = house.requests[-1].messages
    assert [r.tool_use_id for r in after.results] == [c.id for c in step.calls]
    (made, made_wrong), (paid, paid_wrong), (denied, denied_wrong), (expired, expired_wrong) = results(house)
    assert (made, made_wrong, paid, paid_wrong) == ("made", False, "paid 1 for B", False)
    assert denied_wrong and denied.startswith("denied by ada") and "not on Friday" in denied
    assert expired_wrong and expired.startswith("not run: the approval request expired")
    assert house.paid == [{"order": "B", "amount": 1}]


# ---- secrets


@TRANSPORTS
@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG], ids=["info", "debug"])
async def test_c089_no_sink_holds_a_token_or_the_address_of_a_file(
    house: House, server: SlackServer, caplog: pytest.LogCaptureFixture, transport: str, level: int
) -> None:
    caplog.set_level(level)
    app = server.app
    async with running(house, server, transport=transport, clock=FakeClock()) as scene:
        for name in LOUD:  # somebody turns them up again
            caplog.set_level(level, logger=name)
        connected = server.connected
        server.drop()  # other connections, with all that is said about them
        if transport == "socket":
            await scene.until(lambda: server.connected >= connected + 2, "new connections")
        for trouble in ("drop", 404, 500):
            server.fail_next("chat.postMessage", trouble)
            scene.say(f"hello {trouble}", channel=HERS)
            await scene.rest()
        server.fail_next("download", 404)
        scene.say("lost", channel=HIS, user=BOB, files=[("lost.txt", b"content")])
        scene.say("look", channel=HIS, user=BOB, files=[("a.txt", b"content")])
        await scene.sees("You said: look", HIS)
        scene.call("pay A-1 30")
        await scene.press(await scene.card(), "Approve")
        await scene.sees("Result: paid 30 for A-1")
        await scene.rest()
        audit = str([line.body for line in await scene.gateway.store.audit_lines()])
    stored = b"".join(path.read_bytes() for path in house.folder.glob("gateway.db*") if path.is_file())
    shown = json.dumps([list(channel.messages.values()) for channel in server.channels.values()])
    model = str(house.requests)
    sinks = {"log": caplog.text, "audit": audit, "store": stored.decode("latin-1"), "model": model}
    sinks["chat"] = shown + json.dumps(list(server.ephemeral.values()))
    assert "given up" in caplog.text  # by the answer to "hello 404"
    assert "paid 30 for A-1" in model and "hello drop" in sinks["store"]
    secrets = {app.bot_token, app.app_token, app.signing_secret, app.verification, *server.response_urls}
    found = [name for name, text in sinks.items() for secret in secrets if secret in text]
    assert found == []
    assert re.search(r"ticket=(?!<redacted>)", caplog.text) is None
    assert "files-pri" not in model and "a.txt" in model
