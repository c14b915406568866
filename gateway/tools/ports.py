"""What the built-in tools need of the gateway around them, as narrow promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from gateway.messages import Actor, Json, ThreadKey
from gateway.tools.base import CallContext

# What `tools` of an agent may name besides the author's own.
BUILT_IN = ("files", "http_fetch", "memory", "post_message", "send_file")


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call comes from: the thread, who asked, and for which tenant. `session_id`: the session that
    people see, for a subagent's call the one at the top."""

    session_id: str
    key: ThreadKey
    requester: Actor
    tenant: str


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be remembered, about a person or in a thread. `place`: the conversation in which it
    was written, "channel:workspace:conversation". `at`: when, in Unix seconds."""

    key: str
    text: str
    place: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteOwner:
    """Whose notes, of one tenant: a person's (`name` the id) or a thread's (`name` the conversation)."""

    tenant: str
    kind: Literal["person", "thread"]
    channel: str
    workspace: str
    name: str
    thread: str = ""

    @classmethod
    def person(cls, actor: Actor, tenant: str) -> NoteOwner:
        """The notes about a person."""
        return cls(
            tenant=tenant,
            kind="person",
            channel=actor.channel,
            workspace=actor.workspace,
            name=actor.user,
        )

    @classmethod
    def of_thread(cls, key: ThreadKey, tenant: str) -> NoteOwner:
        """The notes of a thread."""
        return cls(
            tenant=tenant,
            kind="thread",
            channel=key.channel,
            workspace=key.workspace,
            name=key.conversation,
            thread=key.thread,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutFile:
    """A file to send: its path below the data folder, and how it is shown."""

    path: str
    name: str
    media_type: str


class Origins(Protocol):
    """Tells where calls come from."""

    async def of(self, context: CallContext) -> Origin:
        """Raises ToolError for a call outside of any thread."""


class Posts(Protocol):
    """The way out, through the outbox. What was posted under a key once is not posted again."""

    async def words(self, target: ThreadKey, text: str, key: str, origin: Origin) -> None:
        """The agent's words to a thread."""

    async def file(self, file: OutFile, caption: str, key: str, origin: Origin) -> bool:
        """A file to the thread that the call comes from; False where nobody can get one."""


class Notebook(Protocol):
    """Notes in the store."""

    async def notes(self, owner: NoteOwner) -> Sequence[Note]:
        """Sorted by key."""

    async def put_note(self, owner: NoteOwner, note: Note, most: int) -> bool:
        """Write one, over the one with the same key; False when there are `most` others already."""

    async def forget_notes(self, owner: NoteOwner, key: str = "") -> int:
        """Delete one note, without a key all of them; how many there were."""


class Attachments(Protocol):
    """The files that people have sent."""

    async def of(self, session_id: str) -> Sequence[Json]:
        """{"path": below the data folder, "name": as it was called, "media_type"} of each, in order."""
