"""The state behind the Web API: workspaces, people, conversations, messages, views, files, and a clock."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from tests.platforms.slack import limits
from tests.platforms.slack.limits import Json
from tests.platforms.slack.state import (
    App,
    Assistant,
    Call,
    Channel,
    File,
    Page,
    ResponseUrl,
    Stream,
    Trigger,
    User,
)
from tests.platforms.slack.words import notified

T = TypeVar("T")


class Timer:
    """Something that happens once, when the server's clock gets there."""

    def __init__(self, world: World, due: float, act: Callable[[], None]) -> None:
        self.due, self._act, self._world = due, act, world
        loop = asyncio.get_running_loop()
        self._handle = loop.call_later(max(0.0, due - world.now()), self.fire)
        world.timers.append(self)

    def fire(self) -> None:
        self.cancel()
        self._act()

    def cancel(self) -> None:
        self._handle.cancel()
        if self in self._world.timers:
            self._world.timers.remove(self)


class World:
    """State, ids and time. No sockets."""

    def __init__(self) -> None:
        self.app = App()
        self.teams = {
            "T1": {"id": "T1", "name": "Acme", "domain": "acme"},
            "T2": {"id": "T2", "name": "Other", "domain": "other"},
        }
        self.users: dict[str, User] = {}
        self.groups: dict[str, Json] = {}
        self.channels: dict[str, Channel] = {}
        self.files: dict[str, File] = {}
        self.homes: dict[str, Json] = {}
        self.views: dict[str, list[Json]] = defaultdict(list)  # user id -> stack, top last
        self.ephemeral: dict[str, list[Json]] = defaultdict(list)
        self.assistants: dict[tuple[str, str], Assistant] = defaultdict(Assistant)
        self.streams: dict[tuple[str, str], Stream] = {}
        self.states: dict[tuple[str, str], Json] = {}  # (user, message or view) -> state.values
        self.triggers: dict[str, Trigger] = {}
        self.response_urls: dict[str, ResponseUrl] = {}
        self.calls: list[Call] = []
        self.pages: list[Page] = []
        self.failures: list[str] = []
        self.troubles: list[tuple[str, str, str]] = []  # user, kind, reason: what people saw go wrong
        self.timers: list[Timer] = []
        self.enforce_rates = False
        self.trigger_life = limits.TRIGGER_LIFE
        self.base = ""  # address of the server, without a slash at the end
        self._offset = 0.0
        self._last_ts = 0
        self._ids = itertools.count(1)
        self._watchers: set[asyncio.Future[None]] = set()
        self._populate()

    def _populate(self) -> None:
        self.users[self.app.bot_user] = User(self.app.bot_user, self.app.name, "Threadgate", is_bot=True)
        self.user("U1", "ada", "Ada Ash", owner=True, admin=True)
        self.user("U2", "bob", "Bob Birch")
        self.user("U3", "cleo", "Cleo Cedar")
        self.user("UG", "gus", "Gus Guest", guest=True)
        self.user("UX", "xena", "Xena Xylo", team="T2")
        self.group("S1", "ops", ["U1", "U2"])
        self.group("S2", "empty", [])
        everyone = ["U1", "U2", "U3", "UG"]
        self.channel("C1", "general", everyone)
        self.channel("C2", "approvals", everyone)
        self.channel("C3", "elsewhere", everyone, bot=False)
        self.channel("C4", "old", everyone, archived=True)
        self.channel("G1", "secret", ["U1", "U2"], kind="group")
        self.channel("CX", "shared", ["U1", "U2", "UX"], shared=True)
        self.channel("M1", "mpdm-ada--bob--threadgate-1", ["U1", "U2"], kind="mpim")
        for id, user in (("D1", "U1"), ("D2", "U2"), ("D3", "U3"), ("DG", "UG")):
            self.channel(id, "", [user], kind="im").user = user

    # ---- who and where

    def user(self, id: str, name: str, real_name: str = "", **flags: Any) -> User:
        """Register a person. `flags` are fields of User."""
        self.users[id] = User(id, name, real_name or name.title(), **flags)
        return self.users[id]

    def group(self, id: str, handle: str, users: list[str], *, disabled: bool = False) -> Json:
        """A user group."""
        self.groups[id] = {"id": id, "handle": handle, "users": list(users), "disabled": disabled}
        return self.groups[id]

    def channel(
        self,
        id: str,
        name: str,
        members: list[str],
        *,
        kind: str = "channel",
        bot: bool = True,
        shared: bool = False,
        archived: bool = False,
    ) -> Channel:
        """A conversation. `bot`: our bot is a member."""
        people = {*members, self.app.bot_user} if bot else set(members)
        self.channels[id] = Channel(id, name, kind, people, archived=archived, shared=shared)
        return self.channels[id]

    def direct(self, user: str) -> Channel:
        """The DM of our bot with a person; made when there is none."""
        for channel in self.channels.values():
            if channel.kind == "im" and channel.user == user:
                return channel
        place = self.channel(f"D{user}", "", [user], kind="im")
        place.user = user
        return place

    # ---- time

    def now(self) -> float:
        """Unix seconds of the server's clock."""
        return time.time() + self._offset

    def at(self, due: float, act: Callable[[], None]) -> Timer:
        """Do something when the clock is there, in real time or by `advance`."""
        return Timer(self, due, act)

    def advance(self, seconds: float) -> None:
        """Move the server's clock on; what is due by then happens now, in order."""
        self._offset += seconds
        for timer in sorted(self.timers, key=lambda timer: timer.due):
            if timer.due <= self.now() and timer in self.timers:
                timer.fire()
        self.changed()

    def new_ts(self) -> str:
        """A message's ts: unique, never falling."""
        self._last_ts = max(self._last_ts + 1, int(self.now() * 1_000_000))
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def new_id(self, prefix: str) -> str:
        """An id that looks like the platform's."""
        return f"{prefix}{next(self._ids):08d}"

    def new_trigger(self, user: str, view: str = "") -> str:
        """A fresh trigger_id."""
        id = f"{next(self._ids)}.{int(self.now())}.{uuid.uuid4().hex}"
        self.triggers[id] = Trigger(user, self.now() + self.trigger_life, view=view)
        return id

    def new_response_url(self, user: str, channel: str, **more: Any) -> str:
        """A fresh response_url; `more` are fields of ResponseUrl."""
        id = uuid.uuid4().hex
        self.response_urls[id] = ResponseUrl(user, channel, self.now() + limits.RESPONSE_URL_LIFE, **more)
        return f"{self.base}/response/T1/{id}"

    # ---- messages

    def store(self, channel: Channel, message: Json) -> Json:
        """Keep a message and, for a reply, bring its root up to date."""
        channel.messages[message["ts"]] = message
        root = channel.messages.get(message.get("thread_ts", ""))
        if root is not None and root is not message:
            root["thread_ts"] = root["ts"]
            root["reply_count"] = root.get("reply_count", 0) + 1
            root["reply_users"] = sorted({*root.get("reply_users", []), message.get("user", "")} - {""})
            root["reply_users_count"] = len(root["reply_users"])
            root["latest_reply"] = message["ts"]
        self.changed()
        return message

    def from_our_bot(self, body: Json) -> Json:
        """A message of our bot with these fields."""
        profile = {"id": self.app.bot_id, "app_id": self.app.id, "name": self.app.name, "team_id": "T1"}
        message = {
            "type": "message",
            "user": self.app.bot_user,
            "ts": self.new_ts(),
            "bot_id": self.app.bot_id,
            "app_id": self.app.id,
            "team": "T1",
            "bot_profile": {**profile, "deleted": False, "updated": 1_700_000_000, "icons": {}},
        }
        return message | body

    def with_ids(self, blocks: list[Json]) -> list[Json]:
        """Blocks as Slack stores them: every one has a block_id, every control an action_id."""
        for block in blocks:
            block.setdefault("block_id", uuid.uuid4().hex[:5])
            for control in controls(block):
                control.setdefault("action_id", uuid.uuid4().hex[:5])
        return blocks

    def page(self, channel: str, message: Json, *, parsed: bool) -> None:
        """Note whom a message of our bot notifies."""
        names = {user.name: user.id for user in self.users.values()}
        for who in notified(message, names, parsed=parsed):
            self.pages.append(Page(channel, message["ts"], who))

    def status(self, channel: str, thread_ts: str) -> str:
        """What the assistant's status says now, "" for nothing."""
        thread = self.assistants.get((channel, thread_ts))
        if thread is None or self.now() - thread.status_at > limits.STATUS_LIFE:
            return ""
        return thread.status

    # ---- watching

    def changed(self) -> None:
        """Tell everybody in `wait_for`."""
        for watcher in list(self._watchers):
            if not watcher.done():
                watcher.set_result(None)

    async def wait_for(self, check: Callable[[], T], within: float = 30.0) -> T:
        """Wait until `check` is true; bounded. Returns what it gave. TimeoutError otherwise."""
        async with asyncio.timeout(within):
            while not (value := check()):
                watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._watchers.add(watcher)
                try:
                    await watcher
                finally:
                    self._watchers.discard(watcher)
        return value

    def check(self) -> None:
        """Raise AssertionError for every misuse seen so far."""
        assert not self.failures, "\n".join(self.failures)


def controls(block: Json) -> list[Json]:
    """The interactive elements of a block."""
    found = list(block.get("elements", [])) if block.get("type") == "actions" else []
    for name in ("accessory", "element"):
        if isinstance(block.get(name), dict) and block[name].get("type") != "image":
            found.append(block[name])
    return found
