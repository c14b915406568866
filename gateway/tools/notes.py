"""The built-in tool `memory`: notes about a person or a thread that outlive the conversation.

Whose notes are read follows from who asked, never from what the model says. In a thread that others
read along in, of a person's notes only those are read that were written in that same conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final, Literal

import msgspec

from gateway.clock import Clock
from gateway.errors import ToolError
from gateway.messages import ThreadKey
from gateway.tools.base import CallContext, Tool, tool
from gateway.tools.ports import Note, Notebook, NoteOwner, Origin, Origins

MOST_NOTES: Final = 100  # of one person or thread
LONGEST_KEY: Final = 60  # characters
LONGEST_NOTE: Final = 2_000

Key = Annotated[str, msgspec.Meta(max_length=LONGEST_KEY)]
About = Literal["person", "thread"]


def place_of(key: ThreadKey) -> str:
    """The conversation that a thread is in, as notes name it."""
    return "\x1f".join(key[:3])


def seen_at(notes: Sequence[Note], key: ThreadKey, *, alone: bool) -> list[Note]:
    """Those notes about a person that may be read in a thread. `alone`: nobody else reads along."""
    return [note for note in notes if alone or note.place == place_of(key)]


def plain_key(text: str) -> str:
    """A key in one spelling: no space around it, one line, lower case."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split()).casefold()


def memory_tool(
    notebook: Notebook, origins: Origins, clock: Clock, is_private: Callable[[ThreadKey], bool]
) -> Tool:
    """`memory` over a notebook. `is_private`: whether a thread has one person in it."""
    memory = _Memory(notebook, clock, is_private)

    @tool(name="memory", idempotent=True)
    async def run(
        action: Literal["remember", "recall", "forget"],
        context: CallContext,
        about: About = "person",
        key: Key = "",
        text: Annotated[str, msgspec.Meta(max_length=LONGEST_NOTE)] = "",
    ) -> str:
        """Notes that outlive this conversation: about the person you are talking to, or about this thread.
        Look here before you ask for something that they may have told you; write down only what will be
        useful later, and no secrets. People can read and delete these notes with /memory.

        Args:
            action: recall reads (without key: everything), remember writes, forget deletes one note
            about: person: the one you are talking to; thread: everybody here may see it
            key: a short name of the note, such as "preferred units"
            text: with remember, what to write; it replaces what the note said before
        """
        origin = await origins.of(context)
        match action:
            case "recall":
                return await memory.recall(origin, about, plain_key(key))
            case "remember":
                return await memory.remember(origin, about, plain_key(key), text.strip())
            case "forget":
                return await memory.forget(origin, about, plain_key(key))

    return run


class _Memory:
    def __init__(self, notebook: Notebook, clock: Clock, is_private: Callable[[ThreadKey], bool]) -> None:
        self._notebook, self._clock, self._is_private = notebook, clock, is_private

    async def recall(self, origin: Origin, about: About, key: str) -> str:
        every = await self._notebook.notes(_owner(origin, about))
        notes = self._seen(every, origin, about)
        if key:
            found = next((note for note in notes if note.key == key), None)
            return found.text if found is not None else f"There is no note {key!r}."
        lines = [f"{note.key}: {note.text}" for note in notes]
        if elsewhere := len(every) - len(notes):
            lines.append(f"({elsewhere} more about this person, for a private conversation only)")
        return "\n".join(lines) or "There are no notes."

    async def remember(self, origin: Origin, about: About, key: str, text: str) -> str:
        if not key or not text:
            raise ToolError("key and text are needed to remember something")
        note = Note(key=key, text=text, place=place_of(origin.key), at=self._clock.now())
        if not await self._notebook.put_note(_owner(origin, about), note, MOST_NOTES):
            raise ToolError(f"there are {MOST_NOTES} notes already; forget one that is not needed any more")
        return f"Noted as {key!r}."

    async def forget(self, origin: Origin, about: About, key: str) -> str:
        if not key:
            raise ToolError("key: say which note to forget")
        owner = _owner(origin, about)
        notes = self._seen(await self._notebook.notes(owner), origin, about)
        if key not in {note.key for note in notes}:
            return f"There is no note {key!r}."
        await self._notebook.forget_notes(owner, key)
        return f"Forgot {key!r}."

    def _seen(self, notes: Sequence[Note], origin: Origin, about: About) -> Sequence[Note]:
        if about == "thread":
            return notes
        return seen_at(notes, origin.key, alone=self._is_private(origin.key))


def _owner(origin: Origin, about: About) -> NoteOwner:
    if about == "thread":
        return NoteOwner.of_thread(origin.key, origin.tenant)
    return NoteOwner.person(origin.requester, origin.tenant)
