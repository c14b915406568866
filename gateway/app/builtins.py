"""The built-in tools of the configured agents, over the store and the rules of this gateway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.app.people import ConfiguredRules
from gateway.attachments import to_fetch
from gateway.clock import Clock
from gateway.config.values import AgentSection, ToolsSection
from gateway.errors import ConfigError, ToolError
from gateway.messages import Json, ThreadKey
from gateway.store.base import Store
from gateway.store.rows import Outgoing
from gateway.tools.base import CallContext, Tool
from gateway.tools.files import Room, file_tools
from gateway.tools.http_fetch import Fetcher, http_fetch_tool
from gateway.tools.notes import memory_tool
from gateway.tools.ports import Origin, OutFile
from gateway.tools.posting import post_message_tool, send_file_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIns:
    """Makes the tools that `tools` of an agent names without a module."""

    store: Store
    rules: ConfiguredRules
    settings: ToolsSection
    data_dir: Path
    clock: Clock

    def __call__(self, name: str, agent: str, section: AgentSection) -> Sequence[Tool]:
        """The tools of one name for one agent. Raises ConfigError."""
        origins, posts = StoredOrigins(self.store), Outbox(self.store, self.rules, self.clock)
        match name:
            case "http_fetch":
                return (http_fetch_tool(Fetcher(allow=self.settings.http_fetch.allow)),)
            case "files":
                return file_tools(self._room())
            case "send_file":
                return (send_file_tool(self._room(), posts, origins),)
            case "post_message":
                return (post_message_tool(self._targets(agent, section), posts, origins),)
            case "memory":
                return (memory_tool(self.store, origins, self.clock, self.rules.private),)
            case _:
                raise ConfigError(f"agents.{agent}.tools", f"there is no built-in tool {name!r}")

    def _room(self) -> Room:
        return Room(self.data_dir, Attached(self.store))

    def _targets(self, agent: str, section: AgentSection) -> dict[str, ThreadKey]:
        targets = {}
        for place, entry in enumerate(section.post_to):
            key = self.rules.place(entry)
            if key is None:
                mend = "write it with its workspace, like slack:T1:C9"
                raise ConfigError(f"agents.{agent}.post_to[{place}]", f"{entry!r} is no thread here", mend)
            targets[entry] = key
        return targets


class StoredOrigins:
    """See gateway.tools.ports.Origins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, context: CallContext) -> Origin:
        """Raises ToolError for a call outside of any thread, StoreError."""
        origin = await self._store.origin(context.turn_id)
        if origin is None:
            raise ToolError("this needs a conversation, and there is none here")
        return origin


class Attached:
    """See gateway.tools.ports.Attachments."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def of(self, session_id: str) -> Sequence[Json]:
        """What is in the session's log, in order. Raises StoreError."""
        return [
            {"path": block.path, "name": block.name, "media_type": block.media_type}
            for block in to_fetch(await self._store.log(session_id))
        ]


class Outbox:
    """See gateway.tools.ports.Posts. What is added is sent by whichever gateway looks next."""

    def __init__(self, store: Store, rules: ConfiguredRules, clock: Clock) -> None:
        self._store, self._rules, self._clock = store, rules, clock

    async def words(self, target: ThreadKey, text: str, key: str, origin: Origin) -> None:
        """Drawn as an answer is. Raises StoreError."""
        row = Outgoing(key=target, kind="answer", payload={"text": text})
        await self._store.post_once([row], key, self._clock.now())

    async def file(self, file: OutFile, caption: str, key: str, origin: Origin) -> bool:
        """To a chat as messages, to a web page as a line with a link. Raises StoreError."""
        sent: Json = {"path": file.path, "name": file.name, "media_type": file.media_type}
        if self._rules.posts(origin.key):
            rows = [_row(origin, "answer", {"file": sent})]
            if caption.strip():
                rows.insert(0, _row(origin, "answer", {"text": caption}))
        elif self._rules.tells(origin.key):
            rows = [_row(origin, "notice", {"text": caption.strip() or file.name, "file": sent})]
        else:
            return False
        await self._store.post_once(rows, key, self._clock.now())
        return True


def _row(origin: Origin, kind: str, payload: Json) -> Outgoing:
    return Outgoing(key=origin.key, kind=kind, payload=payload, session_id=origin.session_id)  # type: ignore[arg-type]
