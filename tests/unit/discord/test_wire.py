"""What a gateway's dispatch means: the cases of public failures, and what the corpus cannot show."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from channels.base import (
    Actor,
    Button,
    Card,
    Choice,
    Form,
    FormField,
    InboundMessage,
    InboundPress,
    MessageRef,
    pack_press,
)
from channels.discord import cards, commands, refs, wire, wire_text, wire_values
from channels.discord.wire_json import Node
from channels.discord.wire_values import ChannelInfo, CommandGiven, FormSent, Ignored, Parsed, PlaceWanted
from tests.unit.discord.reading import KNOWN, ME, read, recordings

RECORDED = recordings()
RECORDED_CARD = RECORDED["button_approve_in_thread"]["data"]["message"]["id"]
GUILD, GENERAL = "1103945870121320448", "1103945871022075904"
ADA = Actor("discord", "", "204255221017214977")


def recorded(name: str, **changes: Any) -> dict[str, Any]:
    """A recording with other values in its payload."""
    found = copy.deepcopy(RECORDED[name])
    found["data"] |= changes
    return found


def message(name: str, **changes: Any) -> InboundMessage:
    parsed = read(recorded(name, **changes))
    assert isinstance(parsed, InboundMessage)
    return parsed


# ---- cases


def test_c016_all_that_an_acknowledgement_needs_is_read_without_asking_anybody() -> None:
    data = RECORDED["button_approve_in_thread"]["data"]
    parsed = wire.parse("INTERACTION_CREATE", data, ME, parents=lambda _: None)
    handle = wire.handle_of(data)
    assert isinstance(parsed, InboundPress)
    assert handle is not None
    assert (handle.id, handle.token) == (refs.interaction_of(parsed.action_id), data["token"])
    assert handle.at == parsed.sent_at  # from where the three seconds count, by Discord's clock


@pytest.mark.parametrize(
    "name", [name for name in RECORDED if RECORDED[name]["event"] == "INTERACTION_CREATE"]
)
def test_c016_every_interaction_can_be_acknowledged_also_one_that_is_ignored(name: str) -> None:
    handle = wire.handle_of(RECORDED[name]["data"])
    assert handle is not None
    assert handle.id == RECORDED[name]["data"]["id"]


def test_c017_what_a_press_and_a_command_lead_to_needs_no_token() -> None:
    given, press = read(RECORDED["command_ask_in_channel"]), read(RECORDED["button_approve_in_thread"])
    assert isinstance(given, CommandGiven)
    assert isinstance(press, InboundPress)
    token = RECORDED["command_ask_in_channel"]["data"]["token"]
    assert token not in repr(given)
    assert token not in repr(press)
    response = "1566753742200000000"
    assert given.in_thread(response) == refs.thread_key(GUILD, GENERAL, response)
    assert press.message_ref is not None
    assert refs.unpack_ref(press.message_ref) == (press.thread.thread, RECORDED_CARD)


def test_c018_a_press_is_read_from_its_custom_id_alone_whoever_posted_the_card_and_when() -> None:
    data = RECORDED["button_approve_in_thread"]["data"]
    bare = {key: data[key] for key in ("id", "type", "token", "channel", "guild_id", "member", "data")}
    posted_by_another_process = bare | {"message": {"id": RECORDED_CARD}}
    parsed = wire.parse("INTERACTION_CREATE", posted_by_another_process, ME, parents=lambda _: None)
    assert isinstance(parsed, InboundPress)
    assert parsed == read(RECORDED["button_approve_in_thread"])
    assert parsed.data == data["data"]["custom_id"]


def test_c018_a_button_of_a_forgotten_version_is_a_press_that_can_be_answered() -> None:
    parsed = read(RECORDED["button_of_an_older_version"])
    assert isinstance(parsed, InboundPress)
    assert parsed.message_ref == MessageRef(f"{parsed.thread.thread}:{RECORDED_CARD}")


@pytest.mark.parametrize("mention", ["start", "always", "never"])
@pytest.mark.parametrize("name", ["message_by_other_bot_reply_ping", "message_by_other_bot_in_thread"])
def test_c036_another_program_counts_only_when_it_types_a_mention(name: str, mention: str) -> None:
    assert read(RECORDED[name] | {"mention": mention}) == Ignored(
        reason=wire_values.NOT_ADDRESSED, kind=_kind(name)
    )
    called = message("message_by_other_bot_with_mention")
    assert (called.from_bot, called.addressed) == (True, True)


def _kind(name: str) -> str:
    return "MESSAGE_CREATE 19" if "reply" in name else "MESSAGE_CREATE"


@pytest.mark.parametrize("mention", ["start", "always", "never"])
@pytest.mark.parametrize("name", ["message_own", "message_own_by_interaction", "edit_of_our_own"])
def test_c036_our_own_message_never_comes_back(name: str, mention: str) -> None:
    parsed = read(RECORDED[name] | {"mention": mention})
    assert isinstance(parsed, Ignored)
    assert parsed.reason == wire_values.OWN


def test_c036_our_own_message_is_known_by_its_application_too() -> None:
    stranger = {"id": "5", "username": "x"}
    for trace in ({"application_id": ME.application}, {"webhook_id": ME.application}):
        parsed = read(recorded("message_mention_in_channel", author=stranger, **trace))
        assert isinstance(parsed, Ignored)
        assert parsed.reason == wire_values.OWN


@pytest.mark.parametrize(
    "name",
    [
        "message_mention_in_channel",
        "command_status",
        "button_approve_in_thread",
        "button_opens_form",
        "modal_edit",
    ],
)
def test_c086_a_person_is_the_id_and_never_a_name(name: str) -> None:
    named = recorded(name)
    data = named["data"]
    person = data["author"] if "author" in data else data["member"]["user"]
    person |= {"username": "310848622642069504", "global_name": "admin"}
    data["member"]["nick"] = "alice"
    parsed = read(named)
    spoke = _who(parsed)
    assert spoke.actor == ADA
    assert spoke.author == "alice"


def _who(parsed: Parsed) -> InboundMessage | InboundPress:
    if isinstance(parsed, CommandGiven):
        return parsed.message
    if isinstance(parsed, wire_values.FormWanted | FormSent):
        return parsed.press
    assert isinstance(parsed, InboundMessage | InboundPress)
    return parsed


def test_c086_the_same_person_is_the_same_actor_in_a_guild_and_in_a_direct_message() -> None:
    assert message("message_mention_in_channel").actor == message("message_direct").actor == ADA


# ---- identity


@pytest.mark.parametrize("name", ["message_mention_in_channel", "button_approve_in_thread", "command_status"])
def test_what_is_delivered_twice_has_one_identity(name: str) -> None:
    assert read(RECORDED[name]) == read(copy.deepcopy(RECORDED[name]))


def test_an_edit_has_the_identity_and_the_thread_of_the_message() -> None:
    said, edit = message("message_mention_in_channel"), message("edit_by_person")
    assert (edit.thread, edit.message_id, edit.actor) == (said.thread, said.message_id, said.actor)
    assert edit.edited


def test_a_message_that_was_fetched_is_placed_by_what_is_known_of_its_channel() -> None:
    """What REST tells of a message names no guild; it must not pass for a direct message."""
    for name in ("message_in_thread", "message_mention_in_channel", "message_post_with_mention"):
        live = message(name)
        fetched = copy.deepcopy(RECORDED[name])
        for key in ("guild_id", "member", "channel_type"):
            del fetched["data"][key]
        assert read(fetched) == replace(live, guest=True, guest_unsure=True)


# ---- places


def test_an_unknown_channel_is_asked_for_and_then_the_same_payload_is_read() -> None:
    data = RECORDED["message_in_unknown_channel"]["data"]
    wanted = wire.parse("MESSAGE_CREATE", data, ME, parents=KNOWN.get)
    assert wanted == PlaceWanted(channel=data["channel_id"])
    fetched = {"id": data["channel_id"], "type": 11, "guild_id": GUILD, "parent_id": GENERAL}
    told = wire.channel_info(fetched)
    assert told is not None
    parsed = wire.parse("MESSAGE_CREATE", data, ME, parents=({**KNOWN, data["channel_id"]: told}).get)
    assert isinstance(parsed, InboundMessage)
    assert parsed.thread == refs.thread_key(GUILD, GENERAL, data["channel_id"])


@pytest.mark.parametrize(
    "junk", [None, [], {"id": "x", "type": 0}, {"type": 0}, {"id": "1"}, {"id": "1", "type": "0"}]
)
def test_what_describes_no_channel_tells_nothing(junk: object) -> None:
    assert wire.channel_info(junk) is None


@pytest.mark.parametrize(("archived", "locked"), [(True, False), (False, True), (True, True)])
def test_a_thread_is_closed_when_it_is_archived_or_locked(archived: bool, locked: bool) -> None:
    state = {"archived": archived, "locked": locked}
    told = wire.channel_info({"id": "1", "type": 12, "parent_id": "2", "thread_metadata": state})
    assert told == ChannelInfo(kind=12, parent="2", closed=True)


def test_a_category_is_no_parent() -> None:
    assert KNOWN[GENERAL].parent == ""


# ---- what was said earlier in a thread

THREAD = refs.thread_key(GUILD, GENERAL, RECORDED["message_in_thread"]["data"]["channel_id"])


def told_earlier(name: str, **changes: Any) -> InboundMessage | None:
    return wire.earlier(recorded(name, **changes)["data"], THREAD, ME, KNOWN.get)


def test_the_message_that_a_thread_began_with_is_part_of_its_history() -> None:
    data = RECORDED["message_thread_starter"]["data"]
    starter = told_earlier("message_thread_starter")
    assert starter is not None
    assert (starter.thread, starter.message_id) == (THREAD, data["referenced_message"]["id"])
    assert starter.text == "please refund order 4711"


@pytest.mark.parametrize("name", ["message_own", "message_pin_notice", "message_withheld_content"])
def test_our_own_messages_and_what_is_no_talk_are_not_told_as_history(name: str) -> None:
    assert told_earlier(name) is None
    assert wire.earlier(None, THREAD, ME, KNOWN.get) is None


def test_history_tells_what_was_said_to_others_and_by_other_programs() -> None:
    aside = told_earlier("message_in_thread_to_somebody_else")
    other = told_earlier("message_by_other_bot_in_thread")
    assert aside is not None
    assert aside.text == "@Bo lunch?"
    assert other is not None
    assert other.from_bot


# ---- words and files


def test_a_quote_is_cut_at_its_limit() -> None:
    quoted = copy.deepcopy(RECORDED["message_reply_to_us"]["data"]["referenced_message"])
    quoted["content"] = "x" * 9000
    assert len(message("message_reply_to_us", referenced_message=quoted).quote) == 4000


def test_a_file_has_a_fresh_address_wherever_in_the_message_it_is() -> None:
    for name in ("message_with_files", "message_forwarded"):
        data = RECORDED[name]["data"]
        handle = refs.unpack_file(message(name).attachments[0].file_id)
        assert (handle.channel, handle.message) == (data["channel_id"], data["id"])
        assert wire.file_url(data, handle.attachment).startswith("https://cdn.discordapp.com/attachments/")
        assert wire.file_url(data, "404") == ""


def test_a_file_that_came_with_a_command_is_known_by_its_address() -> None:
    given = read(RECORDED["command_ask_with_file"])
    assert isinstance(given, CommandGiven)
    assert refs.unpack_file(given.message.attachments[0].file_id).url.startswith(
        "https://cdn.discordapp.com/"
    )


def test_the_preview_of_a_link_never_speaks_for_the_person_who_posted_it() -> None:
    assert "Ignore" not in message("message_link_with_preview").text


def test_halves_of_surrogate_pairs_are_replaced() -> None:
    assert message("message_direct", content="a\ud800b").text == "a\ufffdb"


def test_a_mention_in_an_embed_calls_nobody() -> None:
    parsed = read(RECORDED["message_by_webhook"])
    assert isinstance(parsed, Ignored)
    assert parsed.reason == wire_values.NOT_ADDRESSED


# ---- forms


def test_a_submitted_form_hands_on_the_data_as_it_came() -> None:
    parsed = read(RECORDED["modal_edit"])
    assert isinstance(parsed, FormSent)
    assert parsed.data == RECORDED["modal_edit"]["data"]["data"]
    assert parsed.press.values == {}


def test_a_form_that_goes_on_in_an_ephemeral_message_still_belongs_to_the_card() -> None:
    first, second = read(RECORDED["modal_edit"]), read(RECORDED["modal_second_page"])
    assert isinstance(first, FormSent)
    assert isinstance(second, FormSent)
    assert second.press.message_ref == first.press.message_ref
    assert (first.page, second.page) == (0, 1)
    assert second.handle.message != first.handle.message


# ---- what we ourselves draw and register


@pytest.mark.parametrize(
    "definition", commands.definitions(["a", "b"], ["m", "n"]), ids=lambda one: one["name"]
)
def test_every_command_that_is_registered_is_read(definition: dict[str, Any]) -> None:
    target = RECORDED["command_about_message"]["data"]["data"]
    options = [
        {"name": option["name"], "type": option["type"], "value": option["name"].upper()}
        for option in definition.get("options", [])
    ]
    parsed = read(recorded("command_status", data={**target, **definition, "options": options}))
    assert isinstance(parsed, CommandGiven)
    assert parsed.name == definition["name"]
    if parsed.kind == "other":
        words = [option["value"] for option in options]
        assert parsed.message.text == " ".join([f"/{parsed.name}", *words])
        assert parsed.message.hidden


def test_every_control_of_a_card_is_read_as_what_it_is() -> None:
    data = [pack_press("pd_1", str(index)) for index in range(60)]
    for multi in (False, True):
        card = Card(
            card_id="pd_1",
            kind="question",
            state="open",
            title="Which?",
            choices=tuple(Choice(label=one, data=one) for one in data),
            multi=multi,
            buttons=(Button(label="Other", data="v1:pd_1:t"), Button(label="Confirm", data="v1:pd_1:c")),
            forms=(Form(data="v1:pd_1:t", title="Other", fields=(FormField(name="x", label="x"),)),),
        )
        drawn = Node(cards.card(card, page=1))
        controls = [one.text("custom_id") for one in wire_text.components(drawn) if one.text("custom_id")]
        kinds = {refs.read_control(control).kind for control in controls}
        assert kinds == {"press", "form", "page", "many" if multi else "pick"}


# ---- counting


def test_an_ignored_payload_is_counted_under_its_kind_without_anybodys_words() -> None:
    parsed = wire.parse(
        "MESSAGE_CREATE", {"id": "1", "type": 171, "content": "secret"}, ME, parents=KNOWN.get
    )
    assert parsed == Ignored(reason=wire_values.UNKNOWN_MESSAGE, kind="MESSAGE_CREATE 171", unknown=True)
    other = wire.parse("X" * 500, None, ME, parents=KNOWN.get)
    assert isinstance(other, Ignored)
    assert len(other.kind) == wire.KIND_LIMIT
