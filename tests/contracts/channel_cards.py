"""What every channel must draw and take of cards with several requests, previews, people who are asked, and
forms of every kind. Part of the channel contract: see channel.py."""

from __future__ import annotations

from dataclasses import replace

import pytest

from channels.base import Button, CardField, Form, FormField
from tests.contracts.harness import (
    PERSONAL,
    ChannelHarness,
    a_shared_card,
    an_approval,
    decide,
    in_order,
    settled,
)

ORDERS = ["A-2001", "A-2002", "A-2003"]
REDRAWN = "Bob agrees; one more must."


def ending_in(labels: tuple[str, ...], words: str) -> list[str]:
    """The labels that say this, with or without the number of their call."""
    return [label for label in labels if label.endswith(words)]


class CardContract:
    """Subclassed by ChannelContract."""

    # ---- several requests on one card

    async def test_every_call_of_a_card_is_listed_with_its_own_buttons(self, harness: ChannelHarness) -> None:
        card = a_shared_card(ORDERS)
        ref = await harness.channel.show(harness.thread, card)
        seen = await harness.look(ref)
        assert "Approve 3 calls?" in seen.text
        listed = [piece for n, order in enumerate(ORDERS, 1) for piece in (f"{n}", "issue_refund", order)]
        assert in_order(seen.text, listed)
        for call in card.calls:
            assert call.code in seen.text
        assert len(ending_in(seen.buttons, "Approve")) == 3
        assert len(ending_in(seen.buttons, "Deny")) == 3
        assert {"Approve all (3)", "Deny all (3)"} <= set(seen.buttons)
        assert len(seen.buttons) == 8

    async def test_a_button_of_one_call_is_a_press_about_that_call(self, harness: ChannelHarness) -> None:
        card = a_shared_card(ORDERS)
        ref = await harness.channel.show(harness.thread, card)
        await harness.press_call(ref, 2, "Deny")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert (press.data, press.message_ref) == (f"v1:{card.calls[1].card_id}:d", ref)

    @pytest.mark.parametrize(("label", "choice"), [("Approve all (3)", "Y"), ("Deny all (3)", "N")])
    async def test_a_button_for_all_calls_is_one_press(
        self, harness: ChannelHarness, label: str, choice: str
    ) -> None:
        card = a_shared_card(ORDERS)
        ref = await harness.channel.show(harness.thread, card)
        await harness.restart()
        await harness.press(ref, label)
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert (press.data, press.message_ref) == (f"v1:{card.card_id}:{choice}", ref)

    async def test_a_decided_call_says_so_and_loses_its_own_buttons_only(
        self, harness: ChannelHarness
    ) -> None:
        card = a_shared_card(ORDERS)
        ref = await harness.channel.show(harness.thread, card)
        await harness.channel.redraw(ref, decide(card, 2, "Denied by Ada at noon"))
        seen = await harness.look(ref)
        assert in_order(seen.text, [ORDERS[0], ORDERS[1], ORDERS[2]])
        assert "Denied by Ada at noon" in seen.text
        assert len(ending_in(seen.buttons, "Approve")) == len(ending_in(seen.buttons, "Deny")) == 2
        assert {"Approve all (2)", "Deny all (2)"} <= set(seen.buttons)
        await harness.press_call(ref, 3, "Approve")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert press.data == f"v1:{card.calls[2].card_id}:a"

    async def test_a_card_whose_calls_are_all_decided_keeps_their_words_and_has_no_buttons(
        self, harness: ChannelHarness
    ) -> None:
        card = a_shared_card(ORDERS)
        ref = await harness.channel.show(harness.thread, card)
        for number in (1, 2, 3):
            card = decide(card, number, f"Approved by Ada as number {number}")
        await harness.restart()
        await harness.channel.redraw(ref, card)
        await harness.channel.redraw(ref, card)
        seen = await harness.look(ref)
        assert seen.buttons == ()
        assert in_order(seen.text, [f"Approved by Ada as number {number}" for number in (1, 2, 3)])

    async def test_a_form_of_one_call_becomes_a_press_about_that_call(self, harness: ChannelHarness) -> None:
        card = a_shared_card(ORDERS)
        data = f"v1:{card.calls[1].card_id}:f"
        form = Form(data=data, title="Why not?", fields=(FormField(name="feedback", label="Reason"),))
        button = Button(label="Deny with feedback", data=data)
        second = replace(card.calls[1], buttons=(*card.calls[1].buttons, button), forms=(form,))
        card = replace(card, calls=(card.calls[0], second, card.calls[2]))
        ref = await harness.channel.show(harness.thread, card)
        harness.inbox.cards += card.calls
        await harness.press_call(ref, 2, "Deny with feedback")
        await harness.submit(form, {"feedback": "Too much money."})
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert (press.data, dict(press.values)) == (data, {"feedback": "Too much money."})
        assert press.message_ref == ref

    @pytest.mark.parametrize("size", [2_000, 20_000])
    async def test_every_character_of_every_call_can_be_read_before_it_runs(
        self, harness: ChannelHarness, size: int
    ) -> None:
        scripts = [[f"call{n}step{step};" for step in range(size // 12)] for n in (1, 2, 3)]
        card = a_shared_card([" ".join(script) for script in scripts])
        ref = await harness.channel.show(harness.thread, card)
        seen = await harness.seen()
        readable = [m.text for m in seen] + [file.decode() for m in seen for file in m.files]
        everything = [word for script in scripts for word in script]
        assert any(in_order(text, everything) for text in (*readable, "\n".join(m.text for m in seen)))
        assert sum(len(m.files) for m in seen) <= 1
        buttons = (await harness.look(ref)).buttons
        assert len(ending_in(buttons, "Approve")) == 3
        assert "Approve all (3)" in buttons

    async def test_calls_that_have_no_room_for_buttons_are_listed_with_their_codes(
        self, harness: ChannelHarness
    ) -> None:
        orders = [f"B-{number:04}" for number in range(1, 41)]
        card = a_shared_card(orders)
        ref = await harness.channel.show(harness.thread, card)
        seen = await harness.seen()
        readable = "\n".join([m.text for m in seen] + [file.decode() for m in seen for file in m.files])
        assert all(order in readable for order in orders)
        assert all(call.code in readable for call in card.calls)
        buttons = (await harness.look(ref)).buttons
        drawn = len(ending_in(buttons, "Approve"))
        assert 1 <= drawn <= 40
        assert len(ending_in(buttons, "Deny")) >= drawn
        assert {"Approve all (40)", "Deny all (40)"} <= set(buttons)
        if drawn < 40:
            assert "/approve" in readable

    # ---- previews

    @pytest.mark.parametrize("kind", ["text", "diff"])
    async def test_a_preview_stands_beside_the_arguments_as_inert_text(
        self, harness: ChannelHarness, kind: str
    ) -> None:
        preview = "-old `line`\n+new @everyone <b>line</b>\n [Approve](https://evil.example) \u202eend"
        card = an_approval(preview=preview, preview_kind=kind)
        ref = await harness.channel.show(harness.thread, card)
        text = (await harness.look(ref)).text
        literals = ("-old", "line`", "+new", "<b>line</b>", "[Approve](https://evil.example)", r"\u{202E}")
        for literal in (*literals, "order_id", "A-1001"):
            assert literal in text
        assert "\u202e" not in text
        assert await harness.paged() == []

    async def test_a_preview_of_one_call_of_several_is_shown_with_it(self, harness: ChannelHarness) -> None:
        card = a_shared_card(ORDERS)
        second = replace(card.calls[1], preview="-20 EUR\n+30 EUR", preview_kind="diff")
        card = replace(card, calls=(card.calls[0], second, card.calls[2]))
        ref = await harness.channel.show(harness.thread, card)
        assert in_order((await harness.look(ref)).text, [ORDERS[1], "-20 EUR", "+30 EUR", ORDERS[2]])

    async def test_a_preview_that_is_too_long_is_cut_in_sight_and_whole_in_the_file(
        self, harness: ChannelHarness
    ) -> None:
        lines = [f"+line{number};" for number in range(3_000)]
        card = an_approval(preview="\n".join(lines), preview_kind="diff")
        ref = await harness.channel.show(harness.thread, card)
        seen = await harness.seen()
        readable = [m.text for m in seen] + [file.decode() for m in seen for file in m.files]
        assert any(in_order(text, [*lines]) for text in (*readable, "\n".join(m.text for m in seen)))
        drawn = await harness.look(ref)
        assert "+line0;" in drawn.text
        assert "Approve" in drawn.buttons

    # ---- who is asked

    async def test_people_who_are_asked_are_mentioned_when_a_card_is_shown(
        self, harness: ChannelHarness
    ) -> None:
        await harness.channel.show(harness.thread, an_approval(asks=(harness.person,)))
        assert await harness.paged() == [harness.person.user]

    async def test_people_who_are_asked_on_a_card_of_several_calls_are_mentioned_once(
        self, harness: ChannelHarness
    ) -> None:
        card = replace(a_shared_card(ORDERS), asks=(harness.person,))
        await harness.channel.show(harness.thread, card)
        assert await harness.paged() == [harness.person.user]

    async def test_a_card_that_is_redrawn_mentions_nobody_again(self, harness: ChannelHarness) -> None:
        card = an_approval(asks=(harness.person,))
        ref = await harness.channel.show(harness.thread, card)
        for words in (REDRAWN, f"{REDRAWN} Still."):
            await harness.channel.redraw(ref, replace(card, status=words))
        await harness.channel.redraw(ref, settled(card, "Approved by Ada"))
        assert await harness.paged() in ([], [harness.person.user])
        assert "Approved by Ada" in (await harness.look(ref)).text

    async def test_a_role_that_is_asked_is_mentioned_when_a_card_is_shown(
        self, harness: ChannelHarness
    ) -> None:
        if not harness.role:
            pytest.skip("this platform has no role that could be mentioned in this conversation")
        await harness.channel.show(harness.thread, an_approval(ask_roles=(harness.role,)))
        assert await harness.paged() == [harness.role]

    async def test_words_of_a_card_mention_nobody_beside_those_who_are_asked(
        self, harness: ChannelHarness
    ) -> None:
        bait = "@everyone <!channel> <@U2> <@&5> @ada"
        fields = (CardField(name=bait, value=bait),)
        card = an_approval(title=bait, summary=bait, deciders=bait, fields=fields, asks=(harness.person,))
        await harness.channel.show(harness.thread, card)
        assert await harness.paged() == [harness.person.user]

    # ---- for deciders only

    async def test_a_card_without_its_arguments_has_a_button_to_see_them_and_does_not_deny_them(
        self, harness: ChannelHarness
    ) -> None:
        show = Button(label="Show me", data="v1:p_abcdefghijklmnopqrst:v", tone="primary")
        card = an_approval(summary="Shown in private to those who may decide.", fields=(), buttons=(show,))
        ref = await harness.channel.show(harness.thread, card)
        seen = await harness.look(ref)
        assert seen.buttons == ("Show me",)
        assert "no argument" not in seen.text.casefold()
        await harness.press(ref, "Show me")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert (press.data, press.message_ref) == ("v1:p_abcdefghijklmnopqrst:v", ref)

    # ---- forms

    @pytest.mark.parametrize("restart", [False, True], ids=["at once", "after a restart"])
    async def test_a_form_of_every_kind_comes_back_as_it_was_filled_in(
        self, harness: ChannelHarness, restart: bool
    ) -> None:
        data = "v1:p_abcdefghijklmnopqrst:e"
        options = ("red", "green", "blue")
        form = Form(
            data=data,
            title="Edit",
            fields=(
                FormField(name="day", label="day", kind="date", value="2027-01-01", required=True),
                FormField(name="tags", label="tags", kind="multi", options=options),
                FormField(name="loud", label="loud", kind="boolean", value="false"),
                FormField(name="price", label="price", kind="number", value="1.5"),
                FormField(name="count", label="count", kind="integer", value="2"),
            ),
        )
        card = an_approval(forms=(form,))
        card = replace(card, buttons=(*card.buttons, Button(label="Edit", data=data)))
        harness.inbox.cards.append(card)
        ref = await harness.channel.show(harness.thread, card)
        if restart:
            await harness.restart()
        filled: dict[str, str | tuple[str, ...]] = {
            "day": "2027-02-28",
            "tags": ("red", "blue"),
            "loud": "true",
            "price": "2.25",
            "count": "3",
        }
        await harness.press(ref, "Edit")
        await harness.submit(form, filled)
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert dict(press.values) == filled

    # ---- in private

    @pytest.mark.parametrize("place", ["private", PERSONAL])
    async def test_a_card_in_private_is_a_card_like_any_other(
        self, harness: ChannelHarness, place: str
    ) -> None:
        key = harness.personal if place == PERSONAL else await harness.channel.private(harness.person)
        assert key is not None
        ref = await harness.channel.show(key, an_approval())
        assert "A-1001" in (await harness.look(ref)).text
        await harness.press(ref, "Approve")
        [press] = await harness.inbox.wait_for(lambda: harness.inbox.presses)
        assert (press.data, press.message_ref) == ("v1:p_abcdefghijklmnopqrst:approve", ref)
        await harness.restart()
        await harness.channel.redraw(ref, settled(an_approval(), "Approved by Ada"))
        assert (await harness.look(ref)).buttons == ()
