"""What Slack sends -> the channel's values. Pure, and free of the library: plain JSON comes in.

`parse` takes any JSON without raising: what is none of our business comes back as `Ignored` with one
of the reasons of `wire_values`.
"""

from __future__ import annotations

from typing import Final, get_args

from channels.base import InboundChange, InboundMessage
from channels.slack import refs, wire_actions
from channels.slack import wire_messages as messages
from channels.slack import wire_values as v
from channels.slack.wire_values import (
    AskSent,
    AskWanted,
    AssistantOpened,
    FormSent,
    FormWanted,
    HomeOpened,
    Ignored,
    Kind,
    Me,
    Mention,
    Node,
    Parsed,
    PeopleChanged,
)
from channels.tolerant import Malformed

__all__ = [
    "KIND_LIMIT",
    "MENTIONS",
    "AskSent",
    "AskWanted",
    "AssistantOpened",
    "FormSent",
    "FormWanted",
    "HomeOpened",
    "Ignored",
    "Kind",
    "Me",
    "Mention",
    "Parsed",
    "PeopleChanged",
    "earlier",
    "parse",
    "response_url",
]

MENTIONS: Final[tuple[Mention, ...]] = get_args(Mention)
KIND_LIMIT: Final = 80  # characters of what an ignored payload is counted under

_PEOPLE: Final = frozenset({"team_join", "user_change", "user_profile_changed"})
_LEFT: Final = frozenset({"channel_left", "group_left"})
_CLOSED: Final = frozenset({"channel_archive", "channel_deleted", "group_archive", "group_deleted"})
_OPENED: Final = frozenset({"channel_unarchive", "group_unarchive"})
_ASSISTANT: Final = frozenset({"assistant_thread_started", "assistant_thread_context_changed"})
_UNUSED: Final = frozenset(
    {
        "agent_session_title_changed",
        "app_context_changed",
        "app_deleted",
        "app_installed",
        "app_requested",
        "app_uninstalled_team",
        "call_rejected",
        "channel_created",
        "channel_history_changed",
        "channel_rename",
        "channel_shared",
        "channel_unshared",
        "email_domain_changed",
        "emoji_changed",
        "entity_details_requested",
        "function_executed",
        "group_close",
        "group_history_changed",
        "group_open",
        "group_rename",
        "invite_requested",
        "link_shared",
        "member_left_channel",
        "user_connection",
        "user_huddle_changed",
        "user_status_changed",
    }
)
_UNUSED_FAMILIES: Final = (
    "dnd_updated",
    "file_",
    "grid_migration_",
    "im_",
    "message_metadata_",
    "pin_",
    "reaction_",
    "resources_",
    "scope_",
    "shared_channel_invite_",
    "star_",
    "team_",
    "user_resource_",
    "workflow_",
)


def parse(kind: Kind, payload: object, me: Me, *, mention: Mention = "start", now: float) -> Parsed:
    """What one payload means. Never raises, whatever it is.

    kind: "event" for the Events API's body, "interactive" for an interaction's JSON, "command" for the
    fields of a slash command. now: Unix seconds, for what Slack gives no time for. `author` and `guest`
    of messages and presses are not known here.
    """
    node = Node(payload)
    try:
        parsed = _read(kind, node, me, mention, now)
    except Malformed as error:
        parsed = Ignored(reason=f"{v.MALFORMED}: {error}", unknown=True)
    if isinstance(parsed, Ignored):
        return Ignored(reason=parsed.reason, kind=_kind_of(kind, node), unknown=parsed.unknown)
    return parsed


def earlier(message: object, channel: str, me: Me) -> InboundMessage | None:
    """One message that conversations.replies tells of; None for our own and for what is no talk."""
    return messages.earlier(Node(message), channel, me)


def response_url(payload: object) -> str:
    """Where a press or command can be answered for a while, "" when it cannot."""
    return Node(payload).text("response_url")


def _read(kind: Kind, node: Node, me: Me, mention: Mention, now: float) -> Parsed:
    match kind:
        case "event":
            return _event(node, me, mention)
        case "interactive":
            return wire_actions.interaction(node, me, now)
        case "command":
            return wire_actions.command(node, me, now)


def _kind_of(kind: Kind, node: Node) -> str:
    """What an ignored payload is, without anything that a person wrote."""
    names = [kind, node.text("type")]
    if kind == "event" and node.at("event"):
        names = [kind, node.text("event", "type"), node.text("event", "subtype")]
    elif kind == "interactive":
        names += [action.text("type") for action in node.nodes("actions")][:1]
    return " ".join(filter(None, names))[:KIND_LIMIT]


# ---- events


def _event(payload: Node, me: Me, mention: Mention) -> Parsed:
    if payload.text("type") != "event_callback":
        return _outer(payload)
    if _elsewhere(payload, me):
        return Ignored(reason=v.ELSEWHERE)
    event = payload.at("event")
    kind = event.need("type")
    if kind in ("message", "app_mention"):
        return messages.message_event(event, me, mention)
    if kind in _ASSISTANT:
        return _assistant(event, me)
    if kind in _PEOPLE or kind.startswith("subteam_"):
        return PeopleChanged(user=_person(event) if kind in _PEOPLE else "")
    return _place(event, kind, me) or _app(event, kind, me)


def _outer(payload: Node) -> Ignored:
    match payload.text("type"):
        case "app_rate_limited":
            return Ignored(reason=v.RATE_LIMITED)
        case "url_verification":
            return Ignored(reason=v.URL_VERIFICATION)
    return Ignored(reason=v.UNKNOWN_PAYLOAD, unknown=True)


def _elsewhere(payload: Node, me: Me) -> bool:
    """Whether it is for another workspace that has our app. `team_id` does not tell: in a channel that is
    shared it is the workspace of whoever wrote, and one of those that see it is named for all."""
    if payload.flag("is_ext_shared_channel"):
        return False
    told = list(payload.nodes("authorizations"))
    teams = {one.text("team_id") for one in told}
    whole_organisation = any(one.flag("is_enterprise_install") for one in told)
    return bool(told) and not whole_organisation and "" not in teams and me.team not in teams


def _person(event: Node) -> str:
    """`user` is the whole person in these events, the id alone in some."""
    return event.text("user", "id") or event.text("user")


def _place(event: Node, kind: str, me: Me) -> Parsed | None:
    """What became of a conversation; None for events of other kinds."""
    if kind == "member_joined_channel":
        return _back(event, me) if event.need("user") == me.user else Ignored(reason=v.SOMEBODY_ELSE)
    if kind in _OPENED:
        return _back(event, me)
    if kind == "channel_id_changed":
        return InboundChange(
            thread=refs.thread_key(me.team, event.need("old_channel_id")),
            kind="moved",
            moved_to=refs.thread_key(me.team, event.need("new_channel_id")),
        )
    if kind in _LEFT:
        return Ignored(reason=v.WE_LEFT)
    return Ignored(reason=v.CLOSED) if kind in _CLOSED else None


def _back(event: Node, me: Me) -> InboundChange:
    channel = event.text("channel", "id") or event.need("channel")
    return InboundChange(thread=refs.thread_key(me.team, channel), kind="back")


def _app(event: Node, kind: str, me: Me) -> Parsed:
    """What concerns the app itself, and the rest."""
    match kind:
        case "app_home_opened":
            return HomeOpened(
                actor=v.actor_of(me, event.need("user")),
                tab=event.text("tab") or "home",
                channel=event.text("channel"),
                view_hash=event.text("view", "hash"),
            )
        case "agent_session_stopped":
            return _stop(event, me)
        case "app_uninstalled":
            return Ignored(reason=v.UNINSTALLED)
        case "tokens_revoked":
            bots = [one.value for one in event.nodes("tokens", "bot")]
            return Ignored(reason=v.TOKENS_REVOKED if me.user in bots or me.bot in bots else v.UNUSED_EVENT)
    if kind in _UNUSED or kind.startswith(_UNUSED_FAMILIES):
        return Ignored(reason=v.UNUSED_EVENT)
    return Ignored(reason=v.UNKNOWN_EVENT, unknown=True)


def _stop(event: Node, me: Me) -> InboundMessage:
    """Slack's own stop button beside a thread where the agent works."""
    event_ts = event.need_ts("event_ts")
    channel = event.need("channel")
    return InboundMessage(
        thread=refs.thread_key(me.team, channel, thread_ts=event.need_ts("thread_ts")),
        message_id=refs.stop_id(event_ts),
        actor=v.actor_of(me, event.need("user")),
        text="/stop",
        sent_at=float(event_ts),
        private=channel.startswith("D"),
    )


def _assistant(event: Node, me: Me) -> AssistantOpened:
    thread = event.at("assistant_thread")
    return AssistantOpened(
        thread=refs.thread_key(me.team, thread.need("channel_id"), thread_ts=thread.need_ts("thread_ts")),
        actor=v.actor_of(me, thread.need("user_id")),
        context=thread.text("context", "channel_id"),
        changed=event.text("type") == "assistant_thread_context_changed",
    )
