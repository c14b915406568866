"""What people do with messages and in conversations, and what can be seen there."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.limits import Json
from tests.platforms.slack.methods_files import public_file
from tests.platforms.slack.payloads import Events
from tests.platforms.slack.state import Assistant, Call, Channel, File
from tests.platforms.slack.words import rich_text, shown
from tests.platforms.slack.world import controls

Upload = File | tuple[str, bytes]


@dataclass(eq=False)
class Said:
    """A message of a person, and how the app was told of it."""

    channel: str
    ts: str
    message: Json
    deliveries: list[Delivery] = field(default_factory=list)

    async def taken(self, within: float = 30.0) -> Said:
        """Wait until the app acknowledged every event. AssertionError when it was told of none."""
        assert self.deliveries, "the app was told nothing of this"
        for delivery in self.deliveries:
            await delivery.taken(within)
        return self


@dataclass(eq=False)
class Opened(Said):
    """An assistant thread."""


class People(Events):
    """People who write, and the one who watches."""

    # ---- writing

    def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        files: Sequence[Upload] = (),
        *,
        broadcast: bool = False,
    ) -> Said:
        """A person writes. `text` is as on the wire: `<@UBOT> a &gt; b`."""
        place = self.channels[channel]
        assert user in place.members, f"{user} is not in {channel}"
        message = self._written(place, user, text, thread_ts)
        if files:
            message |= {"subtype": "file_share", "upload": False, "display_as_bot": False}
            message["files"] = [self._shared(user, entry, place, message["ts"]) for entry in files]
        if broadcast:
            assert thread_ts, "only a reply can be sent to the channel too"
            message |= {"subtype": "thread_broadcast", "root": copy.deepcopy(place.messages[thread_ts])}
        self.store(place, message)
        return Said(channel, message["ts"], message, self.fire_message(place, message))

    def _written(self, place: Channel, user: str, text: str, thread_ts: str | None) -> Json:
        person = self.users[user]
        ts = self.new_ts()
        message: Json = {
            "user": user,
            "type": "message",
            "ts": ts,
            "client_msg_id": str(uuid.uuid4()),
            "text": text,
            "team": person.team,
            "blocks": rich_text(text, uuid.uuid4().hex[:5]),
        }
        if place.shared:
            message |= {"user_team": person.team, "source_team": person.team}
            message["user_profile"] = {
                "name": person.name,
                "real_name": person.real_name,
                "team": person.team,
            }
        if thread_ts:
            root = place.messages[thread_ts]
            message |= {"thread_ts": thread_ts, "parent_user_id": root.get("user", "")}
        return message

    def file(
        self, user: str, name: str, content: bytes, mimetype: str = "text/plain", **more: object
    ) -> File:
        """A file of a person, not shared yet. `more`: fields of File, e.g. remote_only=True."""
        id = self.new_id("F")
        self.files[id] = File(id, name, user, mimetype, content, len(content), **more)  # type: ignore[arg-type]
        return self.files[id]

    def _shared(self, user: str, entry: Upload, place: Channel, ts: str) -> Json:
        file = entry if isinstance(entry, File) else self.file(user, *entry)
        file.shares.append((place.id, ts))
        return public_file(self, file, for_event=True)

    def edit(self, user: str, channel: str, ts: str, text: str) -> Said:
        """A person changes an own message."""
        place = self.channels[channel]
        message = place.messages[ts]
        assert message.get("user") == user, f"{user} did not write {ts}"
        previous = copy.deepcopy(message)
        message |= {
            "text": text,
            "blocks": rich_text(text, uuid.uuid4().hex[:5]),
            "edited": {"user": user, "ts": self.new_ts()},
        }
        told = self.fire_changed(place, copy.deepcopy(message), previous)
        if f"<@{self.app.bot_user}" in text and f"<@{self.app.bot_user}" not in previous["text"]:
            mention = {k: v for k, v in message.items() if k != "subtype"} | {"type": "app_mention"}
            told += self.fire({**mention, "channel": channel, "event_ts": ts}, place, user)
        self.changed()
        return Said(channel, ts, message, told)

    def touch(self, channel: str, ts: str, **fields: object) -> Said:
        """Slack itself changes a message, e.g. by a link preview (`attachments=[...]`): no edit."""
        place = self.channels[channel]
        message = place.messages[ts]
        previous = copy.deepcopy(message)
        message.update(fields)
        return Said(channel, ts, message, self.fire_changed(place, copy.deepcopy(message), previous))

    def delete(self, user: str, channel: str, ts: str) -> Said:
        """A person takes an own message away; one with replies leaves a tombstone."""
        place = self.channels[channel]
        message = place.messages[ts]
        assert message.get("user") == user, f"{user} did not write {ts}"
        previous = copy.deepcopy(message)
        if message.get("reply_count"):
            for name in ("blocks", "files", "client_msg_id"):
                message.pop(name, None)
            message |= {"subtype": "tombstone", "text": "This message was deleted.", "user": "USLACKBOT"}
            message["hidden"] = True
            told = self.fire_changed(place, copy.deepcopy(message), previous)
        else:
            del place.messages[ts]
            told = self.fire_deleted(place, previous)
        self.changed()
        return Said(channel, ts, message, told)

    def bot_says(self, channel: str, text: str, thread_ts: str | None = None) -> Said:
        """Another app writes."""
        place = self.channels[channel]
        ts = self.new_ts()
        message: Json = {
            "type": "message",
            "subtype": "bot_message",
            "ts": ts,
            "text": text,
            "bot_id": "B9",
            "app_id": "A9",
            "username": "deploys",
            "team": "T1",
        }
        if thread_ts:
            message["thread_ts"] = thread_ts
        self.store(place, message)
        return Said(channel, ts, message, self.fire_message(place, message))

    def emit(self, event: Json, channel: str | None = None) -> list[Delivery]:
        """Any event, as it is."""
        place = self.channels[channel] if channel is not None else None
        event.setdefault("event_ts", self.new_ts())
        return self.fire(event, place, str(event.get("user", "")))

    def redeliver(self, what: Said | Delivery) -> list[Delivery]:
        """The same content once more, an event under a new event id."""
        again = []
        for delivery in what.deliveries if isinstance(what, Said) else [what]:
            payload = copy.deepcopy(delivery.payload)
            if "event_id" in payload:
                payload["event_id"] = self.new_id("Ev")
            again.append(self.deliver(delivery.kind, payload, delivery.user))
        return again

    def resend(self, delivery: Delivery, retry: int = 1) -> Delivery:
        """The very same payload once more, marked as that repetition."""
        return self.deliver(delivery.kind, delivery.payload, delivery.user, retry=retry)

    # ---- conversations

    def invite_bot(self, channel: str, by: str = "U1") -> list[Delivery]:
        """Our bot is taken into a conversation."""
        place = self.channels[channel]
        place.members.add(self.app.bot_user)
        kind = {"channel": "C", "group": "G"}.get(place.kind, "D")
        event = {"type": "member_joined_channel", "user": self.app.bot_user, "channel": channel}
        return self.emit(event | {"channel_type": kind, "team": "T1", "inviter": by}, channel)

    def kick_bot(self, channel: str) -> None:
        """Our bot is thrown out, and told nothing."""
        self.channels[channel].members.discard(self.app.bot_user)

    def archive(self, channel: str, by: str = "U1") -> list[Delivery]:
        """A channel is archived."""
        told = self.emit({"type": "channel_archive", "channel": channel, "user": by}, channel)
        self.channels[channel].archived = True
        return told

    def open_assistant(self, user: str, context_channel: str = "C1") -> Opened:
        """A person opens a new assistant thread, coming from `context_channel`."""
        place = self.direct(user)
        body = {"subtype": "assistant_app_thread", "text": "New Assistant Thread"}
        message = self.store(place, self.from_our_bot(body))
        message["assistant_app_thread"] = {"title": "New Assistant Thread", "title_blocks": []}
        message["thread_ts"] = message["ts"]
        self.assistants[(place.id, message["ts"])].user = user
        thread = {"user_id": user, "channel_id": place.id, "thread_ts": message["ts"]}
        context = {"channel_id": context_channel, "team_id": "T1", "enterprise_id": None}
        event = {"type": "assistant_thread_started", "assistant_thread": {**thread, "context": context}}
        event["event_ts"] = self.new_ts()
        return Opened(place.id, message["ts"], message, self.fire(event, None, user))

    # ---- seeing

    def messages(self, channel: str) -> list[Json]:
        """All messages of a conversation that still exist, in order."""
        return [self.channels[channel].messages[ts] for ts in sorted(self.channels[channel].messages)]

    def from_bot(self, channel: str) -> list[Json]:
        """Those that our bot wrote."""
        return [
            message
            for message in self.messages(channel)
            if message.get("user") == self.app.bot_user and message.get("subtype") != "assistant_app_thread"
        ]

    def thread(self, channel: str, ts: str) -> list[Json]:
        """The replies of a thread, without its root."""
        return [m for m in self.messages(channel) if m.get("thread_ts") == ts and m["ts"] != ts]

    def message(self, channel: str, ts: str) -> Json:
        """One message. KeyError when it does not exist (any more)."""
        return self.channels[channel].messages[ts]

    def labels(self, channel: str, ts: str) -> list[str]:
        """The words on every control of a message as it is now."""
        return labels_of(self.message(channel, ts).get("blocks", []))

    def shown(self, channel: str, ts: str) -> str:
        """All words of a message that a person sees."""
        return shown(self.message(channel, ts))

    def ephemerals(self, user: str) -> list[Json]:
        """What only this person sees, in order: channel, text, blocks, ts, thread_ts."""
        return self.ephemeral[user]

    def home(self, user: str) -> Json | None:
        """The App Home of a person."""
        return self.homes.get(user)

    def view(self, user: str) -> Json | None:
        """The modal that a person has before them."""
        return self.views[user][-1] if self.views[user] else None

    def assistant(self, channel: str, ts: str) -> Assistant:
        """An assistant thread: title, prompts."""
        return self.assistants[(channel, ts)]

    def called(self, method: str) -> list[Call]:
        """The journal of one method."""
        return [call for call in self.calls if call.method == method]

    def paged(self, channel: str | None = None) -> list[str]:
        """Whom messages of our bot notified, there or anywhere."""
        return [page.who for page in self.pages if channel in (None, page.channel)]

    async def wait_messages(self, channel: str, count: int, within: float = 30.0) -> list[Json]:
        """Wait until our bot has that many messages there; those messages."""
        return await self.wait_for(
            lambda: self.from_bot(channel) if len(self.from_bot(channel)) >= count else [], within
        )

    async def wait_calls(self, method: str, count: int, within: float = 30.0) -> list[Call]:
        """Wait until a method was called that often; those calls."""
        return await self.wait_for(
            lambda: self.called(method) if len(self.called(method)) >= count else [], within
        )

    async def wait_ephemerals(self, user: str, count: int = 1, within: float = 30.0) -> list[Json]:
        """Wait until a person was told that much in private."""
        return await self.wait_for(
            lambda: self.ephemeral[user] if len(self.ephemeral[user]) >= count else [], within
        )

    async def wait_view(self, user: str, within: float = 30.0) -> Json:
        """Wait until a person has a modal before them; that modal."""
        view = await self.wait_for(lambda: self.view(user), within)
        assert view is not None
        return view

    async def wait_home(self, user: str, within: float = 30.0) -> Json:
        """Wait until a person's App Home was published; that view."""
        view = await self.wait_for(lambda: self.home(user), within)
        assert view is not None
        return view


def labels_of(blocks: list[Json]) -> list[str]:
    """The words on all controls: of a button its text, of a select every option's."""
    found = []
    for block in blocks:
        for control in controls(block):
            if "text" in control:
                found.append(str(control["text"]["text"]))
            found += [str(option["text"]["text"]) for option in options_of(control)]
    return found


def options_of(control: Json) -> list[Json]:
    """What a select, overflow, checkbox or radio group offers."""
    groups = control.get("option_groups") or [{"options": control.get("options", [])}]
    return [option for group in groups for option in group["options"]]
