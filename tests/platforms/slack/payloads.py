"""What Slack tells the app, in Slack's shapes: events in their wrapping, and what interactions share."""

from __future__ import annotations

import copy
from typing import Any

from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.limits import Json
from tests.platforms.slack.sockets import Sockets
from tests.platforms.slack.state import Channel

MESSAGE_EVENTS = {
    "channel": ("message.channels", "channels:history"),
    "group": ("message.groups", "groups:history"),
    "im": ("message.im", "im:history"),
    "mpim": ("message.mpim", "mpim:history"),
}
EVENT_SCOPES = {
    "app_mention": "app_mentions:read",
    "user_change": "users:read",
    "assistant_thread_started": "assistant:write",
    "assistant_thread_context_changed": "assistant:write",
}


class Events(Sockets):
    """Wraps events and hands those over that the app subscribed to and may see."""

    def fire(self, event: Json, channel: Channel | None = None, user: str = "") -> list[Delivery]:
        """Tell the app of an event; [] when it is not subscribed, lacks the scope or is no member."""
        kind = str(event["type"])
        wanted, scope = kind, EVENT_SCOPES.get(kind)
        if kind == "message" and channel is not None:
            wanted, scope = MESSAGE_EVENTS[channel.kind]
        if wanted not in self.app.events or (scope is not None and scope not in self.app.scopes):
            return []
        if channel is not None and self.app.bot_user not in channel.members:
            return []
        body = self.wrapped(event, shared=channel is not None and channel.shared)
        return [self.deliver("events_api", body, user)]

    def wrapped(self, event: Json, *, shared: bool = False) -> Json:
        """The body of an event."""
        authorization = {
            "enterprise_id": None,
            "team_id": "T1",
            "user_id": self.app.bot_user,
            "is_bot": True,
            "is_enterprise_install": False,
        }
        return {
            "token": self.app.verification,
            "team_id": "T1",
            "context_team_id": "T1",
            "context_enterprise_id": None,
            "api_app_id": self.app.id,
            "event": copy.deepcopy(event),
            "type": "event_callback",
            "event_id": self.new_id("Ev"),
            "event_time": int(self.now()),
            "authorizations": [authorization],
            "is_ext_shared_channel": shared,
            "event_context": self.new_id("4-"),
        }

    def fire_message(self, channel: Channel, message: Json) -> list[Delivery]:
        """A new message, and the mention of our bot in it."""
        inner = {
            **{name: value for name, value in message.items() if not name.startswith("reply_")},
            "channel": channel.id,
            "event_ts": message["ts"],
        }
        user = str(message.get("user", ""))
        told = self.fire({**inner, "channel_type": channel.kind}, channel, user)
        mentioned = f"<@{self.app.bot_user}" in str(message.get("text", ""))
        if mentioned and channel.kind != "im" and user != self.app.bot_user:
            mention = {name: value for name, value in inner.items() if name != "subtype"}
            told += self.fire({**mention, "type": "app_mention"}, channel, user)
        return told

    def fire_changed(self, channel: Channel, message: Json, previous: Json) -> list[Delivery]:
        """message_changed: an edit of a person, of a program, or of Slack itself."""
        ts = self.new_ts()
        event = {
            "type": "message",
            "subtype": "message_changed",
            "message": message | {"source_team": "T1", "user_team": message.get("team", "T1")},
            "previous_message": previous,
            "channel": channel.id,
            "hidden": True,
            "ts": ts,
            "event_ts": ts,
            "channel_type": channel.kind,
        }
        return self.fire(event, channel, str(message.get("user", "")))

    def fire_deleted(self, channel: Channel, previous: Json) -> list[Delivery]:
        """message_deleted."""
        ts = self.new_ts()
        event = {
            "type": "message",
            "subtype": "message_deleted",
            "previous_message": previous,
            "channel": channel.id,
            "hidden": True,
            "deleted_ts": previous["ts"],
            "ts": ts,
            "event_ts": ts,
            "channel_type": channel.kind,
        }
        return self.fire(event, channel, str(previous.get("user", "")))

    def post_from_bot(self, channel: Channel, body: Json, *, parsed: bool = False) -> Json:
        """Our bot posts: stored, seen, echoed to the app like every message."""
        message = self.from_our_bot(body)
        root = channel.messages.get(message.get("thread_ts", ""))
        if root is not None:
            message["parent_user_id"] = root.get("user", "")
        thread = self.assistants.get((channel.id, message.get("thread_ts", "")))
        if thread is not None:
            thread.status = ""
        channel.posted.append(self.now())
        self.store(channel, message)
        self.page(channel.id, message, parsed=parsed)
        self.fire_message(channel, message)
        return message

    # ---- interactions

    def interaction(self, kind: str, user: str, **more: Any) -> Json:
        """The fields that all interaction payloads share, and `more`."""
        person = self.users[user]
        return {
            "type": kind,
            "user": {"id": user, "username": person.name, "name": person.name, "team_id": person.team},
            "api_app_id": self.app.id,
            "token": self.app.verification,
            "team": {"id": person.team, "domain": self.teams[person.team]["domain"]},
            "enterprise": None,
            "is_enterprise_install": False,
            **more,
        }

    def place(self, channel: Channel) -> Json:
        """A conversation as interactions name it."""
        names = {"im": "directmessage", "group": "privategroup"}
        return {"id": channel.id, "name": names.get(channel.kind, channel.name)}

    def refresh_view(self, view: Json) -> Json:
        """A view as payloads and answers carry it: with what its person filled in so far."""
        values = self.states.get((view["user"], view["id"]), {})
        shown = {name: value for name, value in view.items() if name != "user"}
        return copy.deepcopy(shown | {"state": {"values": values}})
