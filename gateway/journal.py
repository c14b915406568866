"""What the loop tells the world before it goes on, so that a crash finds everything on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gateway.messages import Json, Message, ToolResult, ToolUse
from gateway.tools.base import Said, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """One call that may run: `args` are the canonical ones, `note` goes before its result,
    `redact` names arguments that a rule masks besides the tool's own secrets. `approved`: somebody or
    a rule had allowed it before this run; `grant`: the id of the grant that allows it. `said`: what was
    answered to questions of this call."""

    call: ToolUse
    tool: Tool
    args: Json
    args_hash: str
    note: str = ""
    approved: bool = False
    redact: tuple[str, ...] = ()
    grant: str = ""
    said: Mapping[str, Said] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One call as it is first written down: to run, refused (with its result), or waiting."""

    call: ToolUse
    args: Json
    args_hash: str
    state: Literal["allowed", "refused", "waiting"]
    repeatable: bool
    result: ToolResult | None = None


class Journal(Protocol):
    """Write-ahead: what these methods were given is durable when the next awaited one returns.

    Each raises LeaseLost when the session belongs to somebody else by now; the loop lets it pass.
    """

    async def assistant(self, message: Message, calls: Sequence[CallRow]) -> None:
        """One reply with its calls, before any of them runs. Replies without calls are not
        journalled here: they end the turn and go into its last transaction."""

    async def started(self, lane: Sequence[Ready]) -> None:
        """These calls begin to run now."""

    def done(self, ready: Ready, result: ToolResult, full: str | None) -> None:
        """One call has its result. `full` is the whole text where `result` holds a capped one."""

    async def results(self, message: Message, *, final: bool = False) -> Sequence[Message]:
        """The step's results, complete. Returns what people have said meanwhile (`steer`),
        already written down; nothing when the turn ends with this step (`final`)."""

    async def marker(self, message: Message) -> None:
        """A compaction marker."""

    async def full_result(self, call_id: str) -> str | None:
        """The whole text of a capped result, None when there is no such call."""

    async def revoked(self, grants: Sequence[str]) -> Sequence[str]:
        """The ids of those of these grants that do not hold any more."""


class MemoryJournal:
    """Keeps nothing beyond the process: for runs without a store."""

    def __init__(self) -> None:
        self._full: dict[str, str] = {}

    async def assistant(self, message: Message, calls: Sequence[CallRow]) -> None:
        """Nothing to do."""

    async def started(self, lane: Sequence[Ready]) -> None:
        """Nothing to do."""

    def done(self, ready: Ready, result: ToolResult, full: str | None) -> None:
        """Keep the whole text for `read_result`."""
        if full is not None:
            self._full[ready.call.id] = full

    async def results(self, message: Message, *, final: bool = False) -> Sequence[Message]:
        """Nobody speaks in between."""
        return ()

    async def marker(self, message: Message) -> None:
        """Nothing to do."""

    async def full_result(self, call_id: str) -> str | None:
        """The whole text, if this run has seen it."""
        return self._full.get(call_id)

    async def revoked(self, grants: Sequence[str]) -> Sequence[str]:
        """Nobody else is there."""
        return ()
