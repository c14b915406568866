"""Updates of the Bot API -> the channel's values. Pure, and free of the library: plain JSON comes in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from channels.base import (
    Actor,
    Attachment,
    InboundChange,
    InboundMessage,
    InboundPress,
    MessageRef,
    ThreadKey,
)
from channels.telegram import forms
from channels.telegram.marks import Mark, positions, to_markdown

CHANNEL: Final = "telegram"
UPDATES: Final = ("message", "edited_message", "callback_query", "my_chat_member")
ALBUM_LARGEST: Final = 10  # pieces
QUOTE_LIMIT: Final = 1000  # characters of a message that is replied to
_FORM_REPLY: Final = "reply:"
_OUT: Final = frozenset({"kicked", "left"})  # what a bot is that was blocked or removed


class User(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    type: str = "private"


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    user: User | None = None


class FileHandle(msgspec.Struct, frozen=True, kw_only=True):
    file_id: str
    file_size: int = 0
    file_name: str = ""
    mime_type: str = ""


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    text: str = ""


class Button(msgspec.Struct, frozen=True, kw_only=True):
    text: str = ""
    callback_data: str = ""


class Keyboard(msgspec.Struct, frozen=True, kw_only=True):
    inline_keyboard: tuple[tuple[Button, ...], ...] = ()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    message_id: int
    chat: Chat
    date: int = 0
    from_: User | None = msgspec.field(name="from", default=None)
    sender_chat: Chat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    text: str = ""
    caption: str = ""
    entities: tuple[Entity, ...] = ()
    caption_entities: tuple[Entity, ...] = ()
    reply_to_message: Message | None = None
    quote: Quote | None = None
    reply_markup: Keyboard | None = None
    photo: tuple[FileHandle, ...] = ()
    document: FileHandle | None = None
    voice: FileHandle | None = None
    audio: FileHandle | None = None
    video: FileHandle | None = None
    video_note: FileHandle | None = None
    migrate_to_chat_id: int | None = None
    migrate_from_chat_id: int | None = None
    album: tuple[Message, ...] = ()  # ours: the messages that `albums` has put behind this one


class Callback(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    from_: User | None = msgspec.field(name="from", default=None)
    message: Message | None = None
    data: str = ""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    status: str


class MembershipChange(msgspec.Struct, frozen=True, kw_only=True):
    chat: Chat
    old_chat_member: Membership
    new_chat_member: Membership


class Update(msgspec.Struct, frozen=True, kw_only=True):
    update_id: int
    my_chat_member: MembershipChange | None = None
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: Callback | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The bot itself. `username` is empty until the platform has told it."""

    id: int
    username: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """An update that is none of our business, and why. `query_id`: a press that still needs an answer."""

    reason: str
    query_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOpened:
    """A button was pressed whose press counts only with the fields filled in."""

    press: InboundPress
    names: tuple[str, ...]
    label: str
    card: int  # message id


Parsed = InboundMessage | InboundPress | InboundChange | FormOpened | Ignored


def parse(update: Mapping[str, Any], me: Me, seal: forms.Seal, now: float, *, addressed_only: bool) -> Parsed:
    """What one update means to us. `now` (Unix seconds) is when a press happened: Telegram does not say.

    addressed_only: in groups, messages that do not speak to the bot are ignored.
    """
    try:
        shape = msgspec.convert(update, Update)
    except msgspec.ValidationError as error:
        return Ignored(reason=f"malformed: {error}", query_id=_query_id(update))
    if shape.callback_query is not None:
        return _press(shape.callback_query, me, now)
    if shape.my_chat_member is not None:
        return _membership(shape.my_chat_member, me)
    if shape.message is not None and (moved := _moved(shape.message, me)) is not None:
        return moved
    if shape.message is not None:
        return _message(shape.message, me, seal, edited=False, addressed_only=addressed_only)
    if shape.edited_message is not None:
        return _message(shape.edited_message, me, seal, edited=True, addressed_only=addressed_only)
    return Ignored(reason="an update of another kind")


def _membership(change: MembershipChange, me: Me) -> Parsed:
    """Somebody has blocked or unblocked us, thrown us out or let us in again."""
    was, now = change.old_chat_member.status, change.new_chat_member.status
    if was in _OUT and now not in _OUT:
        return InboundChange(thread=_whole_chat(me, change.chat.id), kind="back")
    return Ignored(reason=f"we were {was} there and are {now} now")


def _moved(message: Message, me: Me) -> InboundChange | None:
    """A group that became a supergroup says so twice: in the old chat and in the new one."""
    old, new = message.chat.id, message.migrate_to_chat_id
    if message.migrate_from_chat_id is not None:
        old, new = message.migrate_from_chat_id, message.chat.id
    if new is None:
        return None
    return InboundChange(thread=_whole_chat(me, old), kind="moved", moved_to=_whole_chat(me, new))


def _whole_chat(me: Me, chat: int) -> ThreadKey:
    return ThreadKey(CHANNEL, str(me.id), str(chat), "")


def ends_in_album(updates: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a piece of an album is among the last of these updates, so that more may follow."""
    return any(album_of(update) is not None for update in updates[-ALBUM_LARGEST:])


def albums(updates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The updates with each album made one message: the first, with the others in its `album`.

    Telegram sends one message for each picture, perhaps with other chats' messages in between. An
    album stands where its last piece stood. `update_id` is up to where everything is handed over
    once the update is: what stands between two pieces confirms neither.
    """
    last = {album_of(update): index for index, update in enumerate(updates)}
    merged: list[dict[str, Any]] = []
    begun: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for index, update in enumerate(updates):
        album = album_of(update)
        if album is not None:
            begun.setdefault(album, []).append(update)
            if index < last[album]:
                continue
            update = _one_message(begun.pop(album))
        before = [int(pieces[0]["update_id"]) - 1 for pieces in begun.values()]
        merged.append({**update, "update_id": min([int(update["update_id"]), *before])})
    return merged


def _one_message(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    message = {**pieces[0]["message"], "album": [piece["message"] for piece in pieces[1:]]}
    return {"update_id": pieces[-1]["update_id"], "message": message}


def album_of(update: Mapping[str, Any]) -> tuple[str, str] | None:
    """(album, chat) that an update is a piece of, None for one that stands alone."""
    message = update.get("message")
    if not isinstance(message, Mapping) or not message.get("media_group_id"):
        return None
    return str(message["media_group_id"]), chat_of(update)


def chat_of(update: Mapping[str, Any]) -> str:
    """The chat that an update is about, "" for one that we do not read."""
    for kind in ("message", "edited_message", "my_chat_member", "callback_query"):
        body = update.get(kind)
        if kind == "callback_query" and isinstance(body, Mapping):
            body = body.get("message")
        chat = body.get("chat") if isinstance(body, Mapping) else None
        if isinstance(chat, Mapping):
            return str(chat.get("id", ""))
    return ""


def _query_id(update: Mapping[str, Any]) -> str:
    query = update.get("callback_query")
    return str(query.get("id", "")) if isinstance(query, Mapping) else ""


def thread_key(me: Me, message: Message) -> ThreadKey:
    """Where a message was written: the chat, and the topic where the chat has topics.

    Replies in ordinary groups carry a thread id as well; only `is_topic_message` makes it a topic.
    """
    topic = message.message_thread_id if message.is_topic_message else None
    return ThreadKey(CHANNEL, str(me.id), str(message.chat.id), str(topic) if topic else "")


def pack_ref(chat: int, message_id: int) -> MessageRef:
    return MessageRef(f"{chat}:{message_id}")


def unpack_ref(ref: MessageRef) -> tuple[int, int]:
    """(chat, message). Raises ValueError for a foreign reference."""
    chat, colon, message_id = ref.rpartition(":")
    if not colon:
        raise ValueError(f"not a reference of this channel: {ref!r}")
    return int(chat), int(message_id)


def is_callback(press: InboundPress) -> bool:
    """Whether the press is a button's, which Telegram wants answered, and not a reply to a prompt."""
    return not press.action_id.startswith(_FORM_REPLY)


def replied_message(press: InboundPress) -> int:
    """The message that submitted a form."""
    return int(press.action_id.removeprefix(_FORM_REPLY).split(":")[-1])


# ---- presses


def _press(query: Callback, me: Me, now: float) -> Parsed:
    if query.from_ is None:
        return Ignored(reason="a press without a sender", query_id=query.id)
    if query.message is None:
        return Ignored(reason="a press without a message", query_id=query.id)
    if not query.data:
        return Ignored(reason="a press without data", query_id=query.id)
    data, names = forms.opened(query.data)
    press = InboundPress(
        thread=thread_key(me, query.message),
        action_id=query.id,
        actor=_actor(me, query.from_),
        data=data,
        message_ref=pack_ref(query.message.chat.id, query.message.message_id),
        sent_at=now,
        author=query.from_.name,
    )
    if not names:
        return press
    label = _label(query.message.reply_markup, query.data)
    return FormOpened(press=press, names=names, label=label, card=query.message.message_id)


def _label(keyboard: Keyboard | None, data: str) -> str:
    rows = keyboard.inline_keyboard if keyboard else ()
    return next((button.text for row in rows for button in row if button.callback_data == data), "")


def _actor(me: Me, user: User) -> Actor:
    return Actor(CHANNEL, str(me.id), str(user.id))


# ---- messages


def _message(message: Message, me: Me, seal: forms.Seal, *, edited: bool, addressed_only: bool) -> Parsed:
    sender = message.from_
    if sender is None or message.sender_chat is not None:
        return Ignored(reason="written in the name of a chat, not of a person")
    if sender.id == me.id:
        return Ignored(reason="our own message")
    if not edited and (submitted := _submitted(message, sender, me, seal)) is not None:
        return submitted
    worded = next((piece for piece in (message, *message.album) if piece.caption), message)
    words = message.text or worded.caption
    marks = _Marks(words, message.entities or worded.caption_entities, me)
    if marks.foreign_command:
        return Ignored(reason="a command for another bot")
    private = message.chat.type == "private"
    addressed = private or marks.addressed or _replies_to(message, me)
    if not addressed and addressed_only:
        return Ignored(reason="not addressed to the bot")
    files = tuple(file for piece in (message, *message.album) for file in _attachments(piece))
    text = marks.markdown()
    quote = _quote(message)
    if not text and not files and not (marks.addressed and quote):
        return Ignored(reason="nothing that we read: a service message or a kind without words")
    return InboundMessage(
        thread=thread_key(me, message),
        message_id=str(message.message_id),
        actor=_actor(me, sender),
        text=text,
        sent_at=float(message.date),
        addressed=addressed,
        private=private,
        author=sender.name,
        from_bot=sender.is_bot,
        edited=edited,
        quote=quote,
        attachments=files,
    )


def _submitted(message: Message, sender: User, me: Me, seal: forms.Seal) -> InboundPress | None:
    """The press that a reply to one of our prompts is."""
    prompt_message = message.reply_to_message
    if prompt_message is None or not _replies_to(message, me) or not message.text:
        return None
    prompt = seal.read(prompt_message.text, message.chat.id)
    if prompt is None:
        return None
    return InboundPress(
        thread=thread_key(me, message),
        action_id=f"{_FORM_REPLY}{message.chat.id}:{message.message_id}",
        actor=_actor(me, sender),
        data=prompt.data,
        message_ref=pack_ref(message.chat.id, prompt.card),
        sent_at=float(message.date),
        values=forms.filled(prompt.names, message.text),
        author=sender.name,
    )


def _replies_to(message: Message, me: Me) -> bool:
    """Whether it replies to the bot. In a topic everything 'replies' to the topic's first message."""
    original = message.reply_to_message
    if original is None or original.from_ is None or original.from_.id != me.id:
        return False
    return not (message.is_topic_message and original.message_id == message.message_thread_id)


def _quote(message: Message) -> str:
    if message.quote is not None and message.quote.text:
        return message.quote.text[:QUOTE_LIMIT]
    original = message.reply_to_message
    return (original.text or original.caption)[:QUOTE_LIMIT] if original is not None else ""


_FILES: Final = (
    ("document", "", "application/octet-stream"),
    ("voice", "voice-{}.ogg", "audio/ogg"),
    ("audio", "audio-{}.mp3", "audio/mpeg"),
    ("video", "video-{}.mp4", "video/mp4"),
    ("video_note", "video-{}.mp4", "video/mp4"),
)


def _attachments(message: Message) -> tuple[Attachment, ...]:
    found = []
    for kind, name, media_type in _FILES:
        handle: FileHandle | None = getattr(message, kind)
        if handle is not None:
            found.append(_attachment(handle, name.format(message.message_id), media_type))
    if message.photo:
        largest = max(message.photo, key=lambda size: size.file_size)
        found.append(_attachment(largest, f"photo-{message.message_id}.jpg", "image/jpeg"))
    return tuple(found)


def _attachment(handle: FileHandle, name: str, media_type: str) -> Attachment:
    return Attachment(
        file_id=handle.file_id,
        name=handle.file_name or name or "file",
        media_type=handle.mime_type or media_type,
        size=handle.file_size,
    )


class _Marks:
    """The entities of one text, read once: who is addressed, and what the words are without that."""

    def __init__(self, text: str, entities: tuple[Entity, ...], me: Me) -> None:
        self.addressed = False
        self.foreign_command = False
        self._text = text
        self._marks: list[Mark] = []
        self._called = f"@{me.username}".lower() if me.username else ""
        table = positions(text)
        for entity in entities:
            if 0 <= entity.offset < entity.offset + entity.length < len(table):
                self._read(entity, table[entity.offset], table[entity.offset + entity.length], me)

    def markdown(self) -> str:
        text = to_markdown(self._text, self._marks).strip()
        spoken_to = (
            self._marks and self._marks[0].kind == "drop" and not self._text[: self._marks[0].start].strip()
        )
        return text.lstrip(" ,:") if spoken_to else text

    def _read(self, entity: Entity, start: int, end: int, me: Me) -> None:
        words = self._text[start:end]
        by_name = entity.type == "mention" and self._called and words.lower() == self._called
        if by_name or (entity.user is not None and entity.user.id == me.id):
            self._drop(start, end)
        elif entity.type == "bot_command" and start == 0:
            self._command(words, end)
        else:
            mark = Mark(entity.type, start, end, entity.url, entity.language)
            self._marks.append(mark)

    def _drop(self, start: int, end: int) -> None:
        """Take a mention of us out, and one of the two spaces around it."""
        self.addressed = True
        if (
            end < len(self._text)
            and self._text[end] == " "
            and (start == 0 or self._text[start - 1].isspace())
        ):
            end += 1
        self._marks.append(Mark("drop", start, end))

    def _command(self, words: str, end: int) -> None:
        command, at, name = words.partition("@")
        if at and f"@{name}".lower() != self._called:
            self.foreign_command = True
            return
        self.addressed = True
        if at:
            self._marks.append(Mark("drop", len(command), end))
