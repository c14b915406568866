"""Presses, modals, shortcuts and slash commands as Slack sends them -> the channel's values. Pure.

What a control carries and what `state.values` says comes from a client: it is passed on as it is,
and whoever acts on it checks it against what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from channels.base import Actor, InboundMessage, InboundPress, MessageRef, ThreadKey, unpack_press
from channels.render.inbound import slack_decoded
from channels.slack import refs
from channels.slack import wire_values as v
from channels.slack.wire_messages import quoted_message
from channels.slack.wire_values import Ignored, Me, Node, Parsed
from channels.tolerant import Malformed

CHOSEN: Final = "chosen"  # the value of a press that confirms several options
HELP: Final = "/help"

_ONE: Final = frozenset({"static_select", "radio_buttons", "overflow"})  # choosing is pressing
_SEVERAL: Final = frozenset({"multi_static_select", "checkboxes"})  # counts with Confirm
_INPUTS: Final = frozenset(
    {
        "channels_select",
        "conversations_select",
        "datepicker",
        "datetimepicker",
        "email_text_input",
        "external_select",
        "feedback_buttons",
        "file_input",
        "icon_button",
        "multi_channels_select",
        "multi_conversations_select",
        "multi_external_select",
        "multi_users_select",
        "number_input",
        "plain_text_input",
        "rich_text_input",
        "timepicker",
        "url_text_input",
        "users_select",
        "workflow_button",
    }
)
_LEGACY: Final = frozenset(
    {
        "dialog_cancellation",
        "dialog_submission",
        "dialog_suggestion",
        "interactive_message",
        "message_suggestion",
        "workflow_step_edit",
    }
)


def interaction(payload: Node, me: Me, now: float) -> Parsed:
    """An interactive payload. Raises Malformed."""
    kind = payload.text("type")
    match kind:
        case "block_actions":
            return _actions(payload, me, now)
        case "view_submission":
            return _submitted(payload, me, now)
        case "message_action":
            return _asked(payload, me)
        case "view_closed":
            return Ignored(reason=v.VIEW_CLOSED)
        case "shortcut":
            return Ignored(reason=v.OTHER_SHORTCUT)
        case "block_suggestion":
            return Ignored(reason=v.SUGGESTION)
    if kind in _LEGACY:
        return Ignored(reason=v.LEGACY)
    return Ignored(reason=v.UNKNOWN_PAYLOAD, unknown=True)


def command(form: Node, me: Me, now: float) -> Parsed:
    """A slash command: what stands behind its name is one of our commands. Raises Malformed."""
    words = slack_decoded(form.text("text"), bot=(me.user,)).text.strip().lstrip("/!")
    channel = form.need("channel_id")
    return InboundMessage(
        thread=refs.thread_key(me.team, channel),
        message_id=refs.command_id(form.need("trigger_id")),
        actor=v.actor_of(me, form.need("user_id"), form.text("team_id")),
        text=f"/{words}" if words else HELP,
        sent_at=now,
        private=channel.startswith("D"),
        hidden=True,
    )


# ---- controls


def _actions(payload: Node, me: Me, now: float) -> Parsed:
    """Slack reports one use of a control at a time; of several, the first that means something."""
    found: Parsed | None = None
    for index, action in enumerate(payload.nodes("actions")):
        means = _action(payload, action, index, me, now)
        if not isinstance(means, Ignored):
            return means
        found = found or means
    if found is None:
        raise Malformed("actions")
    return found


def _action(payload: Node, action: Node, index: int, me: Me, now: float) -> Parsed:
    if payload.text("view", "type") not in ("", "home"):
        return Ignored(reason=v.IN_A_MODAL)
    element = action.text("type")
    if element == "button" and action.text("url"):
        return Ignored(reason=v.LINK)
    if element in _SEVERAL or element in _INPUTS:
        return Ignored(reason=v.NOT_A_PRESS)
    if element not in _ONE and element != "button":
        return Ignored(reason=v.UNKNOWN_ELEMENT, unknown=True)
    data = action.text("value") if element == "button" else action.text("selected_option", "value")
    if not data:
        return Ignored(reason=v.NO_DATA)
    press = _press(payload, action, data, index, me, now)
    if not action.text("action_id").startswith(refs.FORM):
        return press
    return v.FormWanted(press=press, trigger_id=payload.need("trigger_id"), label=action.text("text", "text"))


def _press(payload: Node, action: Node, data: str, index: int, me: Me, now: float) -> InboundPress:
    actor = _presser(payload, me)
    listed = payload.text("view", "type") == "home"
    thread, ref = (refs.home_key(me.team, actor.user), None) if listed else _pressed(payload, me)
    return InboundPress(
        thread=thread,
        action_id=refs.press_id(action.need_ts("action_ts"), actor.user, index),
        actor=actor,
        data=data,
        message_ref=ref,
        sent_at=now,
        values=_chosen(payload, data),
        listed=listed,
    )


def _presser(payload: Node, me: Me) -> Actor:
    """`team` of the payload may be the one that owns the channel; the person's own is with the person."""
    return v.actor_of(me, payload.need("user", "id"), payload.text("user", "team_id"))


def _pressed(payload: Node, me: Me) -> tuple[ThreadKey, MessageRef]:
    """The thread and the message of a press. Of an ephemeral message there is only the container."""
    message, container = payload.at("message"), payload.at("container")
    channel = payload.text("channel", "id") or container.need("channel_id")
    ts = message.ts("ts") or container.need_ts("message_ts")
    thread_ts = message.ts("thread_ts") or container.ts("thread_ts")
    return refs.thread_key(me.team, channel, ts=ts, thread_ts=thread_ts), refs.pack_ref(channel, ts)


def _chosen(payload: Node, data: str) -> Mapping[str, tuple[str, ...]]:
    """What is chosen in the controls for several options that belong to the same card."""
    state = payload.at("state") or payload.at("view", "state")
    card = _card_of(data)
    several = [one for one in _inputs(state) if one.text("type") in _SEVERAL]
    if not card or not several:
        return {}
    chosen = [option.text("value") for one in several for option in one.nodes("selected_options")]
    mine = [value for value in chosen if _card_of(value) == card]
    belongs = mine or any(_offers(block, card) for block in _blocks(payload))
    return {CHOSEN: tuple(dict.fromkeys(mine))} if belongs else {}


def _card_of(data: str) -> str:
    unpacked = unpack_press(data)
    return unpacked[0] if unpacked else ""


def _blocks(payload: Node) -> Iterator[Node]:
    yield from payload.nodes("message", "blocks")
    yield from payload.nodes("view", "blocks")


def _offers(block: Node, card: str) -> bool:
    """Whether a block has a control in which several options of this card can be chosen."""
    elements = [*block.nodes("elements"), block.at("accessory"), block.at("element")]
    return any(
        _card_of(option.text("value")) == card
        for element in elements
        if element.text("type") in _SEVERAL
        for option in _options(element)
    )


def _options(element: Node) -> Iterator[Node]:
    yield from element.nodes("options")
    for group in element.nodes("option_groups"):
        yield from group.nodes("options")


# ---- modals


def _submitted(payload: Node, me: Me, now: float) -> Parsed:
    view = payload.at("view")
    match view.text("callback_id"):
        case refs.FORM_CALLBACK:
            return _form(payload, view, me, now)
        case refs.ASK_CALLBACK:
            return _ask(payload, view, me, now)
    return Ignored(reason=v.OTHER_VIEW)


def _form(payload: Node, view: Node, me: Me, now: float) -> Parsed:
    place = refs.unpack_form(view.text("private_metadata"))
    if place is None:
        raise Malformed("view.private_metadata")
    view_id = view.need("id")
    press = InboundPress(
        thread=place.thread,
        action_id=refs.view_press_id(view_id),
        actor=_presser(payload, me),
        data=place.data,
        message_ref=place.ref,
        sent_at=now,
        listed=place.ref is None,
    )
    return v.FormSent(
        press=press,
        view_id=view_id,
        view_hash=view.text("hash"),
        view=view.value if isinstance(view.value, Mapping) else {},
    )


def _ask(payload: Node, view: Node, me: Me, now: float) -> Parsed:
    place = refs.unpack_ask(view.text("private_metadata"))
    if place is None:
        raise Malformed("view.private_metadata")
    typed = [one.text("value").strip() for one in _inputs(view.at("state"))]
    view_id = view.need("id")
    message = InboundMessage(
        thread=place.thread,
        message_id=refs.ask_id(view_id),
        actor=_presser(payload, me),
        text="\n".join(filter(None, typed)),
        sent_at=now,
        private=place.thread.conversation.startswith("D"),
        quote=place.quoted,
        attachments=place.attachments,
    )
    return v.AskSent(message=message, view_id=view_id)


def _asked(payload: Node, me: Me) -> Parsed:
    """The message shortcut."""
    if payload.text("callback_id") != refs.ASK_CALLBACK:
        return Ignored(reason=v.OTHER_SHORTCUT)
    message = payload.at("message")
    ts = message.ts("ts") or payload.need_ts("message_ts")
    channel = payload.need("channel", "id")
    place = refs.AskPlace(
        thread=refs.thread_key(me.team, channel, ts=ts, thread_ts=message.ts("thread_ts")),
        message_id=ts,
        quoted=quoted_message(message, me),
        attachments=v.attachments_of(message.nodes("files")),
    )
    return v.AskWanted(place=place, trigger_id=payload.need("trigger_id"), actor=_presser(payload, me))


def _inputs(state: Node) -> Iterator[Node]:
    """What is typed or chosen, input by input."""
    for _, actions in state.items("values"):
        for _, one in actions.items():
            yield one
