"""The world behind the Bot API: people, chats, messages and each bot's queue of updates."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.platforms.telegram.checks import Json, Refused, bad, detected, utf16_slice

T = TypeVar("T")
QUERY_LIFE = 15.0  # seconds within which a callback query can be answered


@dataclass
class Bot:
    """One bot account. Its queue is kept here, as on the platform: offsets confirm."""

    token: str
    id: int
    username: str
    name: str
    privacy: bool = False
    updates: list[Json] = field(default_factory=list)
    allowed: list[str] | None = None
    webhook: Json = field(default_factory=dict)
    commands: dict[str, list[Json]] = field(default_factory=dict)
    connections: int = 40  # by which updates are posted to the webhook
    poll: asyncio.Future[None] | None = None  # the getUpdates that waits now

    @property
    def user(self) -> Json:
        return {"id": self.id, "is_bot": True, "first_name": self.name, "username": self.username}


@dataclass
class Chat:
    """One conversation. `gone` is the 403 that a bot gets there."""

    id: int
    type: str
    title: str = ""
    forum: bool = False
    members: dict[int, str] = field(default_factory=dict)  # user id -> status
    topics: dict[int, str] = field(default_factory=dict)  # topic id -> open, closed or deleted
    messages: dict[int, Json] = field(default_factory=dict)
    next_message: int = 1
    gone: str = ""
    moved_to: int | None = None
    no_documents: bool = False
    floods: list[int] = field(default_factory=list)  # retry_after of the next calls
    flood_until: float = 0.0
    actions: list[str] = field(default_factory=list)
    drafts: list[Json] = field(default_factory=list)
    draft: str = ""  # what clients show now; a message of the bot takes it away
    no_reactions: bool = False
    reactions: list[Json] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)
    force_replies: dict[int, Json] = field(default_factory=dict)  # what people's clients obey

    def public(self) -> Json:
        shape: Json = {"id": self.id, "type": self.type}
        if self.type == "private":
            shape["first_name"] = self.title
        else:
            shape["title"] = self.title
        if self.forum:
            shape["is_forum"] = True
        return shape


@dataclass
class Click:
    """One callback query and what the bot answered to it."""

    id: str
    bot: Bot
    update: Json
    asked_at: float
    answers: list[Json] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        return bool(self.answers)

    @property
    def text(self) -> str:
        return str(self.answers[0].get("text", "")) if self.answers else ""


@dataclass(frozen=True)
class Call:
    """One entry of the journal."""

    method: str
    values: dict[str, str]
    status: int
    answer: Json
    at: float


@dataclass
class Script:
    """An answer prepared for calls to come."""

    method: str
    error: Refused
    times: int


class World:
    """State and what people do. No sockets: see server.py."""

    def __init__(self) -> None:
        self.users: dict[int, Json] = {}
        self.chats: dict[int, Chat] = {}
        self.bots: dict[str, Bot] = {}
        self.clicks: dict[str, Click] = {}
        self.files: dict[str, Json] = {}
        self.journal: list[Call] = []
        self.failures: list[str] = []
        self.scripts: list[Script] = []
        self.enforce_rates = False
        self.clock: Callable[[], float] = time.monotonic
        self._ids = itertools.count(1)
        self._update_ids = itertools.count(9001)
        self._topic_ids = itertools.count(500)
        self._watchers: set[asyncio.Future[None]] = set()

    # ---- who and where

    def bot(
        self, token: str, username: str = "gate_bot", name: str = "Gate", *, privacy: bool = False
    ) -> Bot:
        """Register a bot. `token` is `<id>:<secret>`. privacy: groups show it only what is meant for it."""
        self.bots[token] = Bot(token, int(token.split(":")[0]), username, name, privacy)
        return self.bots[token]

    def user(
        self, id: int, name: str, *, is_bot: bool = False, username: str = "", started: bool = True
    ) -> Json:
        """A person (or a foreign bot). `started`: has opened a private chat with our bots."""
        person = {"id": id, "is_bot": is_bot, "first_name": name}
        self.users[id] = {**person, "username": username} if username else person
        if started and not is_bot:
            self.chats[id] = Chat(id, "private", name, members={id: "member"})
        return self.users[id]

    def group(
        self, id: int, title: str, users: list[int], *, admins: list[int] | None = None, forum: bool = False
    ) -> Chat:
        """A group with every registered bot in it. `id` is negative."""
        members = {user: "administrator" if user in (admins or []) else "member" for user in users}
        self.chats[id] = Chat(id, "supergroup", title, forum, members)
        return self.chats[id]

    def topic(self, chat: int) -> int:
        """A new topic of a forum; its id."""
        topic = next(self._topic_ids)
        self.chats[chat].topics[topic] = "open"
        return topic

    # ---- what people do

    def say(
        self,
        chat: int,
        user: int,
        text: str,
        entities: list[Json] | None = None,
        *,
        topic: int | None = None,
        reply_to: int | None = None,
        **more: Any,
    ) -> Json:
        """A person writes. Returns the update as the first bot gets it. `more` are message fields."""
        place = self.chats[chat]
        message = self._message(place, self.users[user], topic)
        if text:
            message["text"] = text
        marks = detected(text, []) if entities is None else entities
        if marks:
            message["entities"] = marks
        if reply_to is not None:
            original = place.messages[reply_to]
            message["reply_to_message"] = {k: v for k, v in original.items() if k != "reply_to_message"}
        message.update(more)
        place.messages[message["message_id"]] = message
        return self._deliver("message", message)

    def edit(self, chat: int, message_id: int, text: str) -> Json:
        """A person changes an own message."""
        message = self.chats[chat].messages[message_id]
        message.update(text=text, edit_date=int(time.time()))
        message.pop("entities", None)
        if marks := detected(text, []):
            message["entities"] = marks
        return self._deliver("edited_message", message)

    def send_file(
        self, chat: int, user: int, content: bytes, name: str, media_type: str, caption: str = ""
    ) -> Json:
        """A person sends a document."""
        file_id = self.store_file(content, name)
        document = {
            "file_id": file_id,
            "file_unique_id": f"u{file_id}",
            "file_name": name,
            "mime_type": media_type,
            "file_size": len(content),
        }
        more: Json = {"document": document}
        if caption:
            more["caption"] = caption
        return self.say(chat, user, "", [], **more)

    def send_photo(self, chat: int, user: int, content: bytes, **more: Any) -> Json:
        """A person sends a picture; with `media_group_id` it is a piece of an album."""
        small, large = (self.store_file(part, "photo.jpg") for part in (content[:1], content))
        sizes = [
            {"file_id": id, "file_unique_id": f"u{id}", "width": edge, "height": edge, "file_size": size}
            for id, edge, size in ((small, 90, 1), (large, 800, len(content)))
        ]
        return self.say(chat, user, "", [], photo=sizes, **more)

    def click(self, message: Json, button: str, user: int) -> Click:
        """A person presses the button with this label or data. AssertionError when there is none."""
        buttons = [b for row in message.get("reply_markup", {}).get("inline_keyboard", []) for b in row]
        for candidate in buttons:
            if button in (candidate["text"], candidate.get("callback_data")):
                return self.press(message, candidate["callback_data"], user)
        labels = [candidate["text"] for candidate in buttons]
        raise AssertionError(f"no button {button!r} on this message, only {labels}")

    def press(self, message: Json, data: str, user: int) -> Click:
        """Any data for any message that a client can see, as a forged client may send it."""
        chat = self.chats[message["chat"]["id"]]
        query = {
            "id": str(4_000_000_000 + next(self._ids)),
            "from": self.users[user],
            "message": chat.messages.get(message["message_id"], message),
            "chat_instance": f"i{chat.id}",
            "data": data,
        }
        return self.push_query(query)

    def push_query(self, query: Json) -> Click:
        """Deliver this callback query as it is, well-formed or not."""
        bot = next(iter(self.bots.values()))
        update = self._push(bot, {"callback_query": query})
        click = Click(query["id"], bot, update, self.clock())
        self.clicks[click.id] = click
        return click

    def push(self, body: Json, bot: Bot | None = None) -> Json:
        """Deliver an update with this content as it is."""
        return self._push(bot or next(iter(self.bots.values())), body)

    def redeliver(self, update: Json) -> Json:
        """The same content once more, under a new update id, as after a lost confirmation."""
        body = {key: value for key, value in update.items() if key != "update_id"}
        return self._push(next(iter(self.bots.values())), body)

    def send_again(self, update: Json) -> None:
        """The very same update once more, whatever has been confirmed."""
        for bot in self.bots.values():
            bot.updates.append(update)
            self._wake(bot)

    # ---- trouble

    def flood(self, chat: int, seconds: int, times: int | None = None) -> None:
        """429 with retry_after: for the next `times` calls to the chat, or for that many seconds."""
        if times is None:
            self.chats[chat].flood_until = self.clock() + seconds
        else:
            self.chats[chat].floods += [seconds] * times

    def fail_next(
        self, method: str, code: int, description: str, parameters: Json | None = None, times: int = 1
    ) -> None:
        """Answer the next calls of a method (`*`: any) with this error."""
        self.scripts.append(Script(method, Refused(code, description, parameters), times))

    def block(self, user: int) -> None:
        self._bot_is(self.chats[user], "kicked", "member", "Forbidden: bot was blocked by the user")

    def unblock(self, user: int) -> None:
        self._bot_is(self.chats[user], "member", "kicked")

    def kick(self, chat: int) -> None:
        place = self.chats[chat]
        self._bot_is(place, "kicked", "member", f"Forbidden: bot was kicked from the {place.type} chat")

    def invite(self, chat: int) -> None:
        """The bots are let into a group again."""
        self._bot_is(self.chats[chat], "member", "left")

    def _bot_is(self, chat: Chat, now: str, was: str, gone: str = "") -> None:
        chat.gone = gone
        who = self.users[min(chat.members)]
        for bot in self.bots.values():
            old, new = ({"user": bot.user, "status": status} for status in (was, now))
            self._push(
                bot,
                {
                    "my_chat_member": {
                        "chat": chat.public(),
                        "from": who,
                        "date": int(time.time()),
                        "old_chat_member": old,
                        "new_chat_member": new,
                    }
                },
            )

    def migrate(self, chat: int, new_id: int, *, told: bool = True) -> Chat:
        """A group becomes a supergroup with a new id. `told`: both chats say so in a service message."""
        old = self.chats[chat]
        new = self.group(new_id, old.title, list(old.members))
        old.moved_to = new_id
        if told:
            author = self.users[min(old.members)]
            self._deliver("message", {**self._message(old, author, None), "migrate_to_chat_id": new_id})
            self._deliver("message", {**self._message(new, author, None), "migrate_from_chat_id": chat})
        return new

    # ---- what can be seen

    def messages(self, chat: int) -> list[Json]:
        """All messages of a chat that still exist, in order."""
        return [self.chats[chat].messages[key] for key in sorted(self.chats[chat].messages)]

    def from_bot(self, chat: int) -> list[Json]:
        """The messages that our bots wrote there."""
        ids = {bot.id for bot in self.bots.values()}
        return [m for m in self.messages(chat) if m.get("from", {}).get("id") in ids]

    def calls(self, method: str) -> list[Call]:
        """The journal of one method."""
        return [call for call in self.journal if call.method == method]

    def paged(self, chat: int) -> list[str]:
        """Whom messages of our bots mention so that they get notified: names or ids."""
        names = []
        for message in self.from_bot(chat):
            for entity in message.get("entities", []) + message.get("caption_entities", []):
                if entity["type"] == "mention":
                    text = message.get("text") or message.get("caption", "")
                    names.append(utf16_slice(text, entity["offset"], entity["length"]))
                elif entity["type"] == "text_mention":
                    names.append(str(entity["user"]["id"]))
        return names

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

    async def wait_messages(self, chat: int, count: int, within: float = 30.0) -> list[Json]:
        """Wait until our bots have written that many messages there; those messages."""
        return await self.wait_for(
            lambda: self.from_bot(chat) if len(self.from_bot(chat)) >= count else [], within
        )

    async def wait_calls(self, method: str, count: int, within: float = 30.0) -> list[Call]:
        """Wait until a method was called that often; those calls."""
        return await self.wait_for(
            lambda: self.calls(method) if len(self.calls(method)) >= count else [], within
        )

    def changed(self) -> None:
        """Tell everybody in `wait_for`."""
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)

    def check(self) -> None:
        """Raise AssertionError for every misuse seen so far."""
        assert not self.failures, "\n".join(self.failures)

    # ---- shared with the methods

    def store_file(self, content: bytes, name: str) -> str:
        file_id = f"F{next(self._ids):06d}"
        self.files[file_id] = {"content": content, "name": name, "path": f"documents/{file_id}"}
        return file_id

    def _message(self, chat: Chat, author: Json, topic: int | None) -> Json:
        message: Json = {
            "message_id": chat.next_message,
            "from": author,
            "chat": chat.public(),
            "date": int(time.time()),
        }
        chat.next_message += 1
        if topic is not None:
            message["message_thread_id"] = topic
            message["is_topic_message"] = True
        return message

    def post(self, chat: Chat, bot: Bot, topic: int | None, body: Json) -> Json:
        """A message of a bot."""
        message = {**self._message(chat, bot.user, topic), **body}
        chat.draft = ""
        chat.messages[message["message_id"]] = message
        self.changed()
        return message

    def chat(self, chat_id: int | None) -> Chat:
        """The chat that a call names. Raises what the platform raises."""
        chat = self.chats.get(chat_id) if chat_id is not None else None
        if chat is None:
            if chat_id in self.users:
                raise Refused(403, "Forbidden: bot can't initiate conversation with a user")
            raise bad("chat not found")
        if chat.moved_to is not None:
            text = "Bad Request: group chat was upgraded to a supergroup chat"
            raise Refused(400, text, {"migrate_to_chat_id": chat.moved_to})
        if chat.gone:
            raise Refused(403, chat.gone)
        return chat

    def _deliver(self, kind: str, message: Json) -> Json:
        first: Json | None = None
        for bot in self.bots.values():
            if message["chat"]["type"] == "private" or not bot.privacy or _meant_for(bot, message):
                update = self._push(bot, {kind: message})
                first = first or update
        self.changed()
        return first or {"update_id": 0, kind: message}

    def _push(self, bot: Bot, body: Json) -> Json:
        update = {"update_id": next(self._update_ids), **body}
        if bot.allowed is None or any(kind in bot.allowed for kind in body):
            bot.updates.append(update)
            self._wake(bot)
        return update

    def _wake(self, bot: Bot) -> None:
        if bot.poll is not None and not bot.poll.done():
            bot.poll.set_result(None)
        self.changed()


def _meant_for(bot: Bot, message: Json) -> bool:
    if message.get("reply_to_message", {}).get("from", {}).get("id") == bot.id:
        return True
    for entity in message.get("entities", []) + message.get("caption_entities", []):
        covered = utf16_slice(message.get("text", ""), entity["offset"], entity["length"]).lower()
        if entity["type"] == "bot_command" and (
            "@" not in covered or covered.endswith(f"@{bot.username.lower()}")
        ):
            return True
        if entity["type"] == "mention" and covered == f"@{bot.username.lower()}":
            return True
    return False
