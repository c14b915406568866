"""The conversation: provider-neutral messages, blocks, ids and keys.

A message is a role and a tuple of blocks. What a provider needs back verbatim (signatures,
reasoning) rides as `opaque` data in the block it belongs to; the message names the model that
wrote it, and only that model ever gets the opaque data back.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NewType

import msgspec

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
PendingId = NewType("PendingId", str)
Json = dict[str, Any]
Role = Literal["user", "assistant"]


class ThreadKey(NamedTuple):
    """Where people talk. All strings; `thread` is empty where the platform has no threads."""

    channel: str
    workspace: str
    conversation: str
    thread: str


class Actor(NamedTuple):
    """Who did something, by the platform's stable id, never by a name that can be changed."""

    channel: str
    workspace: str
    user: str

    def __str__(self) -> str:
        return ":".join(part for part in self if part)


class Text(msgspec.Struct, frozen=True, kw_only=True, tag="text", omit_defaults=True):
    """Words, in Markdown where a model wrote them."""

    text: str
    opaque: Json | None = None


class Thinking(msgspec.Struct, frozen=True, kw_only=True, tag="thinking", omit_defaults=True):
    """A model's reasoning. `opaque` holds the vendor's whole block, byte for byte."""

    text: str = ""
    opaque: Json | None = None


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, tag="tool_use", omit_defaults=True):
    """One call that the model asks for. `invalid` says why the arguments could not be read."""

    id: str
    name: str
    input: Json
    invalid: str | None = None
    opaque: Json | None = None


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, tag="tool_result", omit_defaults=True):
    """The one answer to one call. `content` is text; `parts` are images or files beside it."""

    tool_use_id: str
    content: str
    is_error: bool = False
    parts: tuple[Image | File, ...] = ()


class Image(msgspec.Struct, frozen=True, kw_only=True, tag="image", omit_defaults=True):
    """A picture by reference: a path below the data folder. Bytes never live in the log.
    `source` is the platform's handle, for one that is fetched before it is read."""

    path: str
    media_type: str
    name: str = ""
    source: str = ""


class File(msgspec.Struct, frozen=True, kw_only=True, tag="file", omit_defaults=True):
    """A file by reference: a path below the data folder, with its size in bytes. `source`: as for
    an image."""

    path: str
    media_type: str
    name: str = ""
    size: int = 0
    source: str = ""


Block = Text | Thinking | ToolUse | ToolResult | Image | File


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, weakref=True):
    """One entry of the session log.

    `model` is the id of the model that wrote an assistant message. `kind` marks rows that are not
    plain talk: `summary` stands for the first `covers` messages of the log in what the model
    sees, `trim` leaves out their bulky tool results, `note` is the gateway speaking (for example
    after a crash). `keeps`: places in the part that a summary covers whose words the model still sees:
    what a person had asked for, when the cut falls within their turn. `author` is a display name, for the
    model's eyes only.
    """

    role: Role
    content: tuple[Block, ...]
    model: str = ""
    kind: Literal["", "summary", "trim", "note"] = ""
    author: str = ""
    covers: int = 0
    keeps: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The visible words, blocks joined by a blank line."""
        return "\n\n".join(block.text for block in self.content if isinstance(block, Text) and block.text)

    @property
    def calls(self) -> list[ToolUse]:
        """The tool calls, in the order in which the model wrote them."""
        return [block for block in self.content if isinstance(block, ToolUse)]

    @property
    def results(self) -> list[ToolResult]:
        """The tool results that this message carries."""
        return [block for block in self.content if isinstance(block, ToolResult)]


ENCODER = msgspec.json.Encoder()
_MESSAGE = msgspec.json.Decoder(Message)
_MESSAGES = msgspec.json.Decoder(list[Message])


def user(text: str, *parts: Image | File, author: str = "") -> Message:
    """A person's message. One of files alone has no words."""
    words = (Text(text=text),) if text or not parts else ()
    return Message(role="user", content=(*words, *parts), author=author)


def assistant(*blocks: Block, model: str = "") -> Message:
    """A model's message."""
    return Message(role="assistant", content=blocks, model=model)


def tool_results(results: Sequence[ToolResult]) -> Message:
    """The message that answers every call of one assistant message, in call order."""
    return Message(role="user", content=tuple(results))


def encode_message(message: Message) -> str:
    """The stored form: compact JSON."""
    return ENCODER.encode(message).decode()


def decode_message(body: str | bytes) -> Message:
    """The value of one stored message. Raises msgspec.ValidationError for a foreign shape."""
    return _MESSAGE.decode(body)


def decode_messages(bodies: Sequence[str]) -> list[Message]:
    """Many stored messages in one decoding pass; several times faster than one by one."""
    return _MESSAGES.decode("[" + ",".join(bodies) + "]")


def canonical_json(value: Any) -> str:
    """One spelling for one value: sorted keys, no spaces, no NaN. Raises ValueError for NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def call_hash(tool: str, args: Json) -> str:
    """Binds gate, card, stored row and execution to one tool with one set of arguments (SHA-256)."""
    return hashlib.sha256(f"{tool}\n{canonical_json(args)}".encode()).hexdigest()


def new_id(prefix: str) -> str:
    """An unguessable id: 120 random bits behind a readable prefix, 4 + 20 characters at most."""
    return f"{prefix}_{secrets.token_urlsafe(15)}"
