"""What can be seen: messages as they are now, controls, files, notices, calls, and who was paged."""

from __future__ import annotations

import fnmatch

from tests.platforms.discord import limits, words
from tests.platforms.discord.entities import Call
from tests.platforms.discord.interactions import Interaction, Interactions
from tests.platforms.discord.limits import Json


class Seeing(Interactions):
    """Read only."""

    def messages(self, channel: str) -> list[Json]:
        """All messages of a channel, thread or direct conversation that still exist, in order. A user's id
        stands for the direct conversation with them."""
        place = self.dm(channel) if channel in self.users else self.channels[channel]
        return sorted(place.messages.values(), key=lambda message: int(message["id"]))

    def from_bot(self, channel: str) -> list[Json]:
        """What our bot wrote there; no system messages."""
        found = self.messages(channel)
        return [m for m in found if m["author"]["id"] == self.bot_id and m["type"] in (0, 19, 20, 23)]

    def look(self, channel: str, message: str, user: str = "") -> Json:
        """One message; also one that only `user` sees. AssertionError when it is gone."""
        if message in self.channels[channel].messages:
            return self.channels[channel].messages[message]
        for one in self.ephemeral[user]:
            if one["id"] == message:
                return one
        raise AssertionError(f"no message {message} in {channel}")

    def shown(self, channel: str, message: str, user: str = "") -> str:
        """All words of a message: content, embeds, text displays."""
        return words.shown(self.look(channel, message, user))

    def labels(self, channel: str, message: str, user: str = "") -> list[str]:
        """The labels of live buttons and of the options of live selects."""
        return words.labels(self.look(channel, message, user))

    def attached(self, channel: str, message: str, user: str = "") -> list[tuple[str, bytes]]:
        """The files that people see on a message: names and contents."""
        found = words.visible_files(self.look(channel, message, user))
        return [(self.files[id].name, self.files[id].content) for id in found]

    def thread_of(self, channel: str, message: str) -> str:
        """The id of the thread on a message, "" for none."""
        return message if message in self.channels and self.channels[message].parent == channel else ""

    def threads(self, channel: str) -> list[str]:
        """The ids of the threads of a channel or forum, oldest first."""
        found = [c.id for c in self.channels.values() if c.is_thread and c.parent == channel]
        return sorted(found, key=int)

    def private_texts(self, user: str) -> list[str]:
        """The words of all messages for this person's eyes only that are still there."""
        return [words.shown(message) for message in self.ephemeral[user]]

    def is_typing(self, channel: str) -> bool:
        """Whether our bot's typing shows now: for ten seconds, or until it writes."""
        wrote = max((self.sent_at(m["id"]) for m in self.from_bot(channel)), default=0.0)
        since = max(wrote, self.now() - limits.TYPING_LIFE)
        return any(c == channel and at > since for c, at in self.typing)

    def called(self, pattern: str) -> list[Call]:
        """The journal of the calls that match, as `POST /channels/*/messages`: by route or by path."""
        names = ((call, (call.route, f"{call.method} {call.path}")) for call in self.calls)
        return [call for call, both in names if any(fnmatch.fnmatchcase(name, pattern) for name in both)]

    def paged(self, channel: str = "") -> list[str]:
        """Whom our bot's messages have notified: user ids, `&` and a role id, `everyone`, `here`."""
        return [page.who for page in self.pages if channel in ("", page.channel)]

    def previews(self, channel: str) -> list[str]:
        """The ids of our bot's messages that carry a preview of a link."""
        found = self.from_bot(channel)
        return [m["id"] for m in found if any(e["type"] == "link" for e in m["embeds"])]

    def open_modal(self, user: str) -> Interaction | None:
        """The form that a person has before them, by the interaction that opened it."""
        found = [i for i in self.interactions if i.user == user and i.modal and not i.submitted]
        return found[-1] if found else None

    def check(self) -> None:
        """Raise AssertionError for every misuse seen so far."""
        unseen = [
            f"message {m['id']} has files that no component shows"
            for place in self.channels.values()
            for m in place.messages.values()
            if len(words.visible_files(m)) < len(m["attachments"])
        ]
        found = self.failures + unseen
        assert not found, "\n".join(found)

    # ---- waiting

    async def wait_messages(self, channel: str, count: int, within: float = 30.0) -> list[Json]:
        """Wait until our bot has that many messages there, none of them `thinking`; those messages."""

        def found() -> list[Json]:
            if channel not in self.users and channel not in self.channels:
                return []
            done = [m for m in self.from_bot(channel) if not m["flags"] & limits.LOADING]
            return done if len(done) >= count else []

        return await self.wait_for(found, within)

    async def wait_calls(self, pattern: str, count: int, within: float = 30.0) -> list[Call]:
        """Wait until that many calls were made; those calls."""
        return await self.wait_for(
            lambda: self.called(pattern) if len(self.called(pattern)) >= count else [], within
        )

    async def wait_ephemerals(self, user: str, count: int, within: float = 30.0) -> list[str]:
        """Wait until a person has that many private messages with words; all their words."""

        def found() -> list[str]:
            texts = [text for text in self.private_texts(user) if text]
            return texts if len(texts) >= count else []

        return await self.wait_for(found, within)

    async def wait_thread(self, channel: str, count: int = 1, within: float = 30.0) -> str:
        """Wait until a channel has that many threads; the newest one's id."""
        return await self.wait_for(
            lambda: self.threads(channel)[-1] if len(self.threads(channel)) >= count else "", within
        )

    async def wait_modal(self, user: str, within: float = 30.0) -> Interaction:
        """Wait until a person has a form before them."""
        found = await self.wait_for(lambda: self.open_modal(user), within)
        assert found is not None
        return found
