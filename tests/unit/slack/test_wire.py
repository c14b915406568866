"""What is said, pressed and changed in Slack: who is meant, by whom, and with which identity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from channels.base import Actor, InboundChange, InboundMessage, InboundPress, ThreadKey
from channels.slack import refs, wire
from channels.slack import wire_values as v
from channels.slack.wire_values import Ignored
from tests.unit.slack.reading import ME, NOW, read, recordings

RECORDED = recordings()
AT = f"<@{ME.user}>"
CHANNEL, TS, ROOT = "C01DEPLOYS", "1764536400.000100", "1764536000.000200"


def event(body: dict[str, Any], *, mention: wire.Mention = "start", **outer: Any) -> wire.Parsed:
    payload = {
        "type": "event_callback",
        "team_id": ME.team,
        "event_id": "Ev1",
        "event": body,
        "authorizations": [{"team_id": ME.team, "is_enterprise_install": False}],
        **outer,
    }
    return wire.parse("event", payload, ME, mention=mention, now=NOW)


def message(text: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "user": "U01",
        "team": ME.team,
        "text": text,
        "ts": TS,
        "channel": CHANNEL,
        "channel_type": "channel",
        **more,
    }


def heard(body: dict[str, Any], **how: Any) -> InboundMessage:
    result = event(body, **how)
    assert isinstance(result, InboundMessage), result
    return result


def reason(body: dict[str, Any], **how: Any) -> str:
    result = event(body, **how)
    assert isinstance(result, Ignored), result
    return result.reason


def changed(text: str, before: str, **more: Any) -> dict[str, Any]:
    inner = {"type": "message", "user": "U01", "team": ME.team, "ts": TS}
    return {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": CHANNEL,
        "channel_type": "channel",
        "ts": "1764536500.000400",
        "message": {**inner, "text": text, **more},
        "previous_message": {**inner, "text": before},
    }


# ---- whom it is said to


def test_a_mention_in_a_channel_is_for_us_and_is_not_part_of_the_words() -> None:
    assert heard(message(f"{AT}: refund 17")) == InboundMessage(
        thread=ThreadKey("slack", ME.team, CHANNEL, TS),
        message_id=TS,
        actor=Actor("slack", ME.team, "U01"),
        text="refund 17",
        sent_at=float(TS),
        mentioned=True,
    )


@pytest.mark.parametrize(
    ("text", "thread_ts", "mention", "expected"),
    [
        ("hi", "", "start", v.NOT_ADDRESSED),
        ("hi", "", "always", v.NOT_ADDRESSED),
        ("hi", "", "never", "addressed"),
        ("hi", ROOT, "start", "ongoing"),
        ("hi", ROOT, "always", v.NOT_ADDRESSED),
        ("hi", ROOT, "never", "ongoing"),
        (f"{AT} hi", ROOT, "always", "addressed"),
        ("<@U02> hi", "", "never", v.TO_OTHERS),
        ("<@U02> hi", ROOT, "start", v.TO_OTHERS),
        ("<!here> lunch", ROOT, "start", v.TO_OTHERS),
        ("hi <@U02>", ROOT, "start", "ongoing"),
        (f"<@U02> {AT} hi", ROOT, "start", "addressed"),
    ],
)
def test_whether_a_mention_is_needed_is_configured(
    text: str, thread_ts: str, mention: wire.Mention, expected: str
) -> None:
    result = event(message(text, thread_ts=thread_ts), mention=mention)
    if isinstance(result, Ignored):
        assert result.reason == expected
    else:
        assert isinstance(result, InboundMessage)
        assert (result.addressed, result.ongoing) == (expected == "addressed", expected == "ongoing")


@pytest.mark.parametrize("kind", ["im", "app_home"])
def test_everything_in_a_private_conversation_is_for_us(kind: str) -> None:
    said = heard(message("<@U02> is who?", channel="D1", channel_type=kind), mention="always")
    assert said.addressed
    assert said.private
    assert said.text == "@U02 is who?"


def test_a_group_conversation_is_no_private_one() -> None:
    assert reason(message("hi", channel="G1", channel_type="mpim")) == v.NOT_ADDRESSED


def test_being_called_into_a_thread_without_a_word_counts() -> None:
    assert heard(message(AT, thread_ts=ROOT)).text == ""
    assert reason(message(AT)) == v.NOTHING


def test_a_forwarded_mention_calls_nobody() -> None:
    share = {"is_share": True, "author_name": "Bob", "text": f"{AT} deploy"}
    assert reason(message("look", attachments=[share])) == v.NOT_ADDRESSED
    assert heard(message(f"{AT} look", attachments=[share])).quote == f"Bob: @{ME.user} deploy"


def test_a_long_forwarded_message_is_cut() -> None:
    share = {"is_share": True, "text": "x" * 9000}
    assert len(heard(message(AT, attachments=[share])).quote) == 4000


# ---- by whom


@pytest.mark.parametrize(
    "mark",
    [{"bot_id": ME.bot}, {"user": ME.user}, {"app_id": ME.app}, {"bot_profile": {"app_id": ME.app}}],
)
def test_our_own_messages_never_come_back(mark: dict[str, Any]) -> None:
    assert reason(message(f"{AT} hi", **mark)) == v.OWN
    assert reason(message("hi", channel="D1", channel_type="im", subtype="bot_message", **mark)) == v.OWN
    edit = {"edited": {"user": "U01", "ts": "1.1"}, **mark}
    assert reason(changed(f"{AT} b", f"{AT} a", **edit)) == v.OWN


def test_what_we_do_not_know_of_ourselves_matches_nobody() -> None:
    me = wire.Me(team=ME.team, user="", bot="")
    payload = {"type": "event_callback", "event": message("hi", channel_type="im")}
    assert isinstance(wire.parse("event", payload, me, now=NOW), InboundMessage)


def test_another_program_is_told_from_a_person() -> None:
    said = heard(message(f"{AT} done", user=None, bot_id="B9", subtype="bot_message"))
    assert said.from_bot
    assert said.actor == Actor("slack", ME.team, "B9")


@pytest.mark.parametrize(
    ("teams", "expected"),
    [
        ({"team": "T2"}, "T2"),
        ({"team": ME.team, "user_team": "T2"}, "T2"),
        ({"team": "T2", "user_team": ME.team}, ME.team),
        ({"team": ME.team, "user_profile": {"team": "T2"}}, "T2"),
        ({"team": None}, ME.team),
        ({"team": "E01GRIDORG"}, ME.team),
        ({"team": "E0OTHER"}, "E0OTHER"),
    ],
)
def test_an_author_is_of_their_own_workspace_and_the_thread_of_ours(
    teams: dict[str, Any], expected: str
) -> None:
    said = heard(message(f"{AT} hi", **teams), is_ext_shared_channel=True, team_id="T2")
    assert said.actor == Actor("slack", expected, "U01")
    assert said.thread.workspace == ME.team


def test_c086_a_name_that_looks_like_an_id_identifies_nobody() -> None:
    profile = {"name": "U01", "display_name": "U01", "real_name": "U01", "team": "T2"}
    said = heard(message(f"{AT} hi", user="U0STRANGER", username="U01", user_profile=profile))
    assert said.actor == Actor("slack", "T2", "U0STRANGER")
    assert said.author == ""

    press = pressed(user={"id": "U0STRANGER", "username": "U01", "name": "U01", "team_id": "T2"})
    assert press.actor == Actor("slack", "T2", "U0STRANGER")

    form = recorded("view_submission_form", user={"id": "U0STRANGER", "name": "U01", "team_id": "T2"})
    assert isinstance(form, wire.FormSent)
    assert form.press.actor == Actor("slack", "T2", "U0STRANGER")

    command = recorded("command_approve", user_id="U0STRANGER", user_name="U01", team_id="T2")
    assert isinstance(command, InboundMessage)
    assert command.actor == Actor("slack", "T2", "U0STRANGER")


def test_what_is_for_another_installation_is_left_to_it() -> None:
    theirs = [{"team_id": "T2", "is_enterprise_install": False}]
    assert reason(message(f"{AT} hi"), authorizations=theirs) == v.ELSEWHERE
    assert heard(message(f"{AT} hi"), authorizations=theirs, is_ext_shared_channel=True).text == "hi"


# ---- words


def test_c010_the_text_is_decoded_once() -> None:
    text = "alert when disk &gt; 90% &amp;&amp; &amp;lt; &amp;copy; <https://example.com/a?x=1&amp;y=2|docs>"
    said = heard(message(f"{AT} {text}"))
    assert said.text == "alert when disk > 90% && &lt; &copy; docs (https://example.com/a?x=1&y=2)"


def test_halves_of_surrogate_pairs_become_a_sign_that_can_be_stored() -> None:
    assert heard(message(f"{AT} a\ud83dz")).text == "a\ufffdz"


def test_a_link_without_words_and_unnamed_blocks_are_read() -> None:
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Alert"}},
        {
            "type": "section",
            "text": {"type": "mrkdwn", "text": f"{AT} disk &gt; 90%"},
            "fields": [{"text": "a"}],
        },
        {"type": "context", "elements": [{"type": "mrkdwn", "text": "x"}, {"type": "image"}]},
        {"type": "markdown", "text": "a < b"},
        {"type": "image", "alt_text": "a & b"},
        {"type": "divider"},
        "junk",
    ]
    assert heard(message("", blocks=blocks)).text == "Alert\ndisk > 90%\na\nx\na < b\na & b"


def test_rich_text_keeps_its_marks_lists_and_code() -> None:
    def bold(text: str) -> dict[str, Any]:
        return {"type": "text", "text": text, "style": {"bold": True, "italic": True}}

    inner = {"type": "rich_text_section", "elements": [bold(" hi ")]}
    pieces = [
        {"type": "link", "url": "https://example.com"},
        {"type": "date", "timestamp": 1, "fallback": "soon"},
        {"type": "color", "value": "#fff"},
        {"type": "hologram"},
    ]
    blocks = [
        {
            "type": "rich_text",
            "elements": [
                {"type": "rich_text_list", "style": "bullet", "indent": 1, "elements": [inner]},
                {"type": "rich_text_list", "style": "ordered", "offset": 2, "elements": [inner]},
                {"type": "rich_text_section", "elements": pieces},
            ],
        }
    ]
    said = heard(message("", channel="D1", channel_type="im", blocks=blocks))
    assert said.text == "    •  *_hi_* \n3.  *_hi_* \nhttps://example.comsoon#fff"


def test_lists_in_lists_without_end_are_cut_off() -> None:
    element: dict[str, Any] = {"type": "rich_text_section", "elements": [{"type": "text", "text": "deep"}]}
    for _ in range(500):
        element = {"type": "rich_text_list", "elements": [element]}
    blocks = [{"type": "rich_text", "elements": [element]}]
    assert "deep" not in heard(message("", channel_type="im", blocks=blocks)).text


# ---- the same message, told more than once


def test_c028_the_mention_and_the_message_are_one_and_retries_under_new_ids_too() -> None:
    mention = {"type": "app_mention", "user": "U01", "text": f"{AT} hi", "ts": "100.1", "channel": "C1"}
    plain = message(f"{AT} hi", ts="100.1", channel="C1")
    told = [
        heard(mention, event_id="Ev1"),
        heard(plain, event_id="Ev2"),
        heard(plain, event_id="Ev3", event_time=9),
    ]
    assert {(said.thread, said.message_id) for said in told} == {
        (ThreadKey("slack", ME.team, "C1", "100.1"), "100.1")
    }
    assert all(said.addressed for said in told)
    assert told[0] == told[1] == told[2]


def test_c032_only_a_persons_edit_counts_and_it_keeps_the_messages_identity() -> None:
    original = heard(message(f"{AT} hello there"))
    grown = {"thread_ts": TS, "reply_count": 1, "latest_reply": "1764536420.000500"}
    assert reason(changed(f"{AT} hello there", f"{AT} hello there", **grown)) == v.NOT_EDITED
    unfurled = {"attachments": [{"from_url": "https://example.com", "fallback": "x"}]}
    assert reason(changed(f"{AT} hello there", f"{AT} hello there", **unfurled)) == v.NOT_EDITED
    edited = {"edited": {"user": "U01", "ts": "1764536499.000000"}}
    assert reason(changed(f"{AT} hello", f"{AT} hello", **edited, **unfurled)) == v.SAME_TEXT

    edit = heard(changed(f"{AT} good night", f"{AT} hello there", **edited))
    assert edit == replace(original, text="good night", edited=True)

    assert reason(changed(f"{AT} b", f"{AT} a", **edited, user="U9", bot_id="B9")) == v.NOT_EDITED
    assert reason(changed(f"{AT} b", f"{AT} a", **edited, user=ME.user, bot_id=ME.bot)) == v.OWN


def test_an_edit_that_takes_the_mention_away_still_changes_what_we_were_told() -> None:
    edit = {"edited": {"user": "U01", "ts": "1.1"}}
    assert heard(changed("never mind", f"{AT} hello", **edit)).addressed
    assert reason(changed("never mind", "hello", **edit)) == v.NOT_ADDRESSED


def test_a_mention_that_was_edited_in_is_an_edit_in_both_events() -> None:
    mark = {"edited": {"user": "U01", "ts": "1764536499.000000"}}
    mention = {"type": "app_mention", "user": "U01", "text": f"{AT} hi", "ts": TS, "channel": CHANNEL, **mark}
    assert heard(mention) == heard(changed(f"{AT} hi", "hi", **mark))


@pytest.mark.parametrize("name", ["message_deleted", "message_changed_tombstone"])
def test_a_deleted_message_is_told_by_its_own_id(name: str) -> None:
    assert read(RECORDED[name]) == InboundChange(
        thread=ThreadKey("slack", ME.team, CHANNEL, TS), kind="deleted", message_id=TS
    )


# ---- what was written before


def test_earlier_messages_are_read_whomever_they_were_said_to() -> None:
    told: list[dict[str, Any]] = [
        {"user": "U02", "text": "<@U01> the build &amp; the deploy", "ts": ROOT},
        {"user": "U01", "text": "on it", "ts": "1764536100.0001"},
        {
            "subtype": "bot_message",
            "bot_id": "B9",
            "text": "",
            "ts": "1764536200.0001",
            "attachments": [{"title": "Build 17 failed"}],
        },
        {"user": ME.user, "bot_id": ME.bot, "text": "Working", "ts": "1764536300.0001"},
        {"subtype": "channel_join", "user": "U03", "text": "joined", "ts": "1764536310.0001"},
        {"user": "U03", "text": "broken", "ts": "soon"},
        {"user": "U03", "text": "", "ts": "1764536320.0001"},
    ]
    told = [{"type": "message", "thread_ts": ROOT, **one} for one in told]
    assert wire.earlier("junk", CHANNEL, ME) is None
    found = [said for one in told if (said := wire.earlier(one, CHANNEL, ME))]
    assert [(said.actor.user, said.text, said.from_bot) for said in found] == [
        ("U02", "@U01 the build & the deploy", False),
        ("U01", "on it", False),
        ("B9", "Build 17 failed", True),
    ]
    assert {said.thread for said in found} == {ThreadKey("slack", ME.team, CHANNEL, ROOT)}


# ---- presses


def recorded(name: str, **instead: Any) -> wire.Parsed:
    payload = {**RECORDED[name]["payload"], **instead}
    return wire.parse(RECORDED[name]["kind"], payload, ME, now=NOW)


def pressed(name: str = "button_in_thread", **instead: Any) -> InboundPress:
    result = recorded(name, **instead)
    assert isinstance(result, InboundPress), result
    return result


def test_a_press_is_identified_by_its_moment_and_its_person() -> None:
    press = pressed()
    assert press == InboundPress(
        thread=ThreadKey("slack", ME.team, CHANNEL, ROOT),
        action_id="1764536450.840180|U01ADA0000",
        actor=Actor("slack", ME.team, "U01ADA0000"),
        data="v1:p7f3a1:a",
        message_ref=refs.pack_ref(CHANNEL, TS),
        sent_at=NOW,
    )
    assert pressed(trigger_id="another", response_url="another") == press


def test_what_a_press_carries_is_passed_on_as_it_is() -> None:
    action = {"type": "button", "action_id": "x", "value": "DROP TABLE", "action_ts": "1.2"}
    assert pressed(actions=[action]).data == "DROP TABLE"


def test_of_several_uses_in_one_payload_the_first_that_means_something_counts() -> None:
    inputs = {"type": "checkboxes", "action_id": "x", "selected_options": [], "action_ts": "1.2"}
    button = {"type": "button", "action_id": "press:0", "value": "v1:a:b", "action_ts": "1.2"}
    press = pressed(actions=[inputs, button])
    assert press.data == "v1:a:b"
    assert press.action_id == "1.2|U01ADA0000|1"


def test_confirming_takes_only_what_belongs_to_the_card() -> None:
    def option(value: str) -> dict[str, Any]:
        return {"value": value}

    chosen = [option("v1:q3:0"), option("v1:other:1"), option("junk"), option("v1:q3:0"), {"value": 7}]
    state = {"values": {"c": {"x": {"type": "checkboxes", "selected_options": chosen}}}}
    assert pressed("confirm_of_checkboxes", state=state).values == {"chosen": ("v1:q3:0",)}
    assert pressed("button_in_thread", state=state).values == {}


def test_the_form_that_is_wanted_packs_where_it_was_wanted() -> None:
    wanted = recorded("button_opens_form")
    assert isinstance(wanted, wire.FormWanted)
    place = refs.unpack_form(wanted.place.pack())
    assert place == refs.FormPlace(
        data="v1:p7f3a1:e", ref=wanted.press.message_ref, thread=wanted.press.thread
    )


def test_a_submitted_form_brings_its_view_for_the_names_of_its_fields() -> None:
    sent = recorded("view_submission_form")
    assert isinstance(sent, wire.FormSent)
    assert sent.view == RECORDED["view_submission_form"]["payload"]["view"]


def test_a_modal_that_is_submitted_again_after_a_fault_is_the_same_press() -> None:
    view = {**RECORDED["view_submission_form"]["payload"]["view"], "hash": "another", "state": {"values": {}}}
    again, first = recorded("view_submission_form", view=view), recorded("view_submission_form")
    assert isinstance(again, wire.FormSent)
    assert isinstance(first, wire.FormSent)
    assert again.press == first.press


def test_the_shortcuts_modal_is_a_message_in_the_thread_of_what_it_is_about() -> None:
    wanted = recorded("message_shortcut_ask_about_in_thread_with_file")
    assert isinstance(wanted, wire.AskWanted)
    view = {"id": "V9", "callback_id": "ask_about", "private_metadata": wanted.place.pack(), "state": {}}
    sent = recorded("view_submission_ask", view=view)
    assert isinstance(sent, wire.AskSent)
    assert sent.message.thread == ThreadKey("slack", ME.team, CHANNEL, ROOT)
    assert sent.message.message_id == "ask|V9"
    assert sent.message.quote == wanted.quoted == "log"
    assert sent.message.attachments == wanted.place.attachments
    assert sent.message.addressed


# ---- commands and the rest


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("", "/help"),
        ("  ", "/help"),
        ("/stop", "/stop"),
        ("!stop", "/stop"),
        ("deny k7 a &amp; b", "/deny k7 a & b"),
    ],
)
def test_a_slash_command_is_one_of_our_commands_said_in_private(typed: str, text: str) -> None:
    said = recorded("command_approve", text=typed)
    assert isinstance(said, InboundMessage)
    assert (said.text, said.hidden, said.addressed) == (text, True, True)
    assert said.thread == ThreadKey("slack", ME.team, CHANNEL, "")


def test_where_an_answer_may_go_is_read_from_presses_and_commands() -> None:
    assert wire.response_url(RECORDED["command_approve"]["payload"]).startswith("https://hooks.slack.com/")
    assert wire.response_url(RECORDED["view_closed"]["payload"]) == ""
    assert wire.response_url("junk") == ""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("message_subtype_unheard_of", "event message hologram_share"),
        ("event_unheard_of", "event hologram_projected"),
        ("event_app_rate_limited", "event app_rate_limited"),
        ("element_datepicker", "interactive block_actions datepicker"),
        ("command_without_trigger", "command"),
    ],
)
def test_what_is_ignored_is_counted_by_its_kind(name: str, kind: str) -> None:
    result = read(RECORDED[name])
    assert isinstance(result, Ignored)
    assert result.kind == kind


def test_the_kind_of_what_is_ignored_is_bounded() -> None:
    result = event({"type": "x" * 5000})
    assert isinstance(result, Ignored)
    assert len(result.kind) == wire.KIND_LIMIT
    assert result.unknown
