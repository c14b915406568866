"""Several calls on one card, cards for deciders only, and what became of each call, on Telegram."""

from __future__ import annotations

from tests.clock import FakeClock
from tests.platforms.telegram import TelegramServer
from tests.scenario.telegram.house import ADA, BOB, EVE, GROUP, House, labels, running

ALL = "Approve all (2)"


def results(house: House) -> list[tuple[str, bool]]:
    """What the model was last told about its calls, in order."""
    return [(r.content, r.is_error) for m in house.requests[-1].messages for r in m.results]


async def test_two_calls_on_one_card_are_decided_each_by_itself(house: House, server: TelegramServer) -> None:
    async with running(house, server) as scene:
        scene.say("pay both")
        card = await scene.card(ALL)
        assert {"1 Approve", "2 Approve", "1 Deny", "2 Deny", "Deny all (2)"} <= set(labels(card))
        await scene.press(card, "2 Approve")
        now = await scene.shows(card, "Approved by Ada")
        assert "1 Approve" in labels(now)
        assert not any(label.startswith("2 ") or "all" in label for label in labels(now))
        await scene.press(card, "1 Approve")
        await scene.sees("Result: paid 10 for A-1; paid 10 for A-2")
        await scene.rest()
        assert labels(server.chats[ADA].messages[card["message_id"]]) == []
    assert sorted(paid["order"] for paid in house.paid) == ["A-1", "A-2"]


async def test_one_press_approves_all_and_a_second_one_is_told_so(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        scene.say("pay both")
        card = await scene.card(ALL)
        first, second = server.click(card, ALL, ADA), server.click(card, ALL, ADA)
        await scene.sees("Result: paid 10 for A-1; paid 10 for A-2")
        await scene.until(lambda: first.answered and second.answered, "two answers")
        await scene.rest()
        assert labels(await scene.shows(card, "Approved by Ada")) == []
    assert first.text.startswith("2 of 2 calls: Approved by Ada")
    assert second.text.startswith("Already decided. Approved by Ada")
    assert len(house.paid) == 2


async def test_one_press_denies_all_and_nothing_runs(house: House, server: TelegramServer) -> None:
    async with running(house, server) as scene:
        scene.say("pay both")
        card = await scene.card(ALL)
        await scene.press(card, "Deny all (2)")
        text = (await scene.shows(card, "Denied by Ada"))["text"]
        await scene.rest()
        text = server.chats[ADA].messages[card["message_id"]]["text"]
        assert text.count("Denied by Ada") == 2
        assert labels(server.chats[ADA].messages[card["message_id"]]) == []
    assert house.paid == []


async def test_arguments_for_deciders_only_are_shown_in_private_to_who_asks_and_may(
    house: House, server: TelegramServer
) -> None:
    rule = {"approvers": (f"telegram:{BOB}",), "reveal": "approvers"}
    async with running(house, server, agent=house.agent(rule=rule), users=(ADA, BOB, EVE)) as scene:
        scene.call("pay A-77 30")
        card = await scene.card("Show me", GROUP)
        assert labels(card) == ["Show me"]
        assert "A-77" not in card["text"]
        assert server.paged(GROUP) == [str(BOB)]
        refused = await scene.press(card, "Show me", EVE)
        assert f"telegram:{BOB}" in refused.text
        await scene.press(card, "Show me", BOB)
        private = await scene.card("Approve", BOB)
        assert "A-77" in private["text"]
        await scene.press(private, "Approve", BOB)
        await scene.sees("Result: paid 30 for A-77", GROUP)
        await scene.rest()
        assert labels(await scene.shows(card, "Approved by Bob")) == []
        assert labels(await scene.shows(private, "Approved by Bob")) == []
        assert "A-77" not in server.chats[GROUP].messages[card["message_id"]]["text"]
    assert house.paid == [{"order": "A-77", "amount": 30}]


async def test_c040_what_was_approved_runs_whatever_the_model_would_say_now(
    house: House, server: TelegramServer
) -> None:
    async with running(house, server) as scene:
        scene.say("drift")
        card = await scene.card()
        await scene.rest()
        asked = len(house.requests)
    house.drift = 20
    async with running(house, server) as scene:
        await scene.press(card, "Approve")
        await scene.sees("Result: paid 80 for A-1")
    assert house.paid == [{"order": "A-1", "amount": 80}]
    assert len(house.requests) == asked + 1


async def test_c045_mixed_fates_give_exactly_one_result_each_in_call_order(
    house: House, server: TelegramServer
) -> None:
    agent = house.agent(rule={"expires": 600.0}, on_denial="continue")
    async with running(house, server, agent=agent, clock=FakeClock()) as scene:
        scene.say("four")
        card = await scene.card("Approve all (3)")
        asked = len(house.requests)
        await scene.press(card, "1 Approve")
        await scene.press(card, "2 Deny with feedback")
        await scene.reply("not on Friday")
        await scene.shows(card, "Denied by Ada")
        assert len(house.requests) == asked
        assert isinstance(scene.clock, FakeClock)
        scene.clock.advance(601)
        await scene.sees("Result: made; paid 1 for B; denied by Ada")
        await scene.rest()
    (made, made_wrong), (paid, paid_wrong), (denied, denied_wrong), (expired, expired_wrong) = results(house)
    assert (made, made_wrong, paid, paid_wrong) == ("made", False, "paid 1 for B", False)
    assert denied_wrong and denied.startswith("denied by Ada") and "not on Friday" in denied
    assert expired_wrong and expired.startswith("not run: the approval request expired")
    assert house.paid == [{"order": "B", "amount": 1}]


async def test_c047_running_out_of_time_is_nobodys_refusal(house: House, server: TelegramServer) -> None:
    agent = house.agent(rule={"expires": 600.0})
    async with running(house, server, agent=agent, clock=FakeClock()) as scene:
        scene.say("pay A-1 30")
        card = await scene.card()
        assert isinstance(scene.clock, FakeClock)
        scene.clock.advance(601)
        now = await scene.shows(card, "Expired")
        assert labels(now) == []
        assert "nobody refused it" in now["text"]
        await scene.sees("Result: not run: the approval request expired after 10 minutes")
        await scene.rest()
        kinds = [line.kind for line in await scene.gateway.store.audit_lines(50, None)]
        late = await scene.press(card, "Approve") if labels(card) else None
    ((text, wrong),) = results(house)
    assert wrong and "no person refused it" in text
    assert "expired" in kinds and "denied" not in kinds
    assert late is not None and "Expired" in late.text
    assert house.paid == []
