"""pydantic-ai: Agent.run(..., message_history=...); the framework leaves storage to the app.

variants: append (default)  each run's new_messages_json() is one row (docs "Storing a conversation
                            yourself": "append each run's new_messages()"; examples/chat_app.py), plus a
                            conversation row with the pending DeferredToolRequests
          snapshot          docs' first pattern: the whole Conversation as one JSON column, rewritten per turn
SQLite is used as in the docs' chat_app example (sqlite3 on a one-thread executor) with WAL + FULL.
The stub subclasses Model (not FunctionModel, which estimates token usage over the whole history).
"""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import bench as bc
from pydantic import TypeAdapter
from pydantic_ai import Agent, Conversation, ConversationTypeAdapter, DeferredToolRequests
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

# A Conversation carries its usage, so the default request_limit=50 would end a chat after 50 model calls.
NO_LIMIT = UsageLimits(request_limit=None)
DEFERRED = TypeAdapter(DeferredToolRequests)
USAGE = TypeAdapter(RunUsage)


class ScriptedModel(Model):
    def __init__(self, latency_s=0.0):
        super().__init__()
        self.latency_s = latency_s

    @property
    def model_name(self):
        return "scripted"

    @property
    def system(self):
        return "scripted"

    async def request(self, messages, model_settings, model_request_parameters):
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        bc.seen_context(len(messages))
        last = messages[-1].parts[-1]
        is_user = isinstance(last, UserPromptPart)
        calls = bc.script_reply("user" if is_user else "tool", last.content if is_user else "")
        parts = (
            [ToolCallPart(c["name"], c["args"], tool_call_id=c["id"]) for c in calls]
            if calls
            else [TextPart(bc.FINAL_TEXT)]
        )
        return ModelResponse(
            parts=parts, usage=RequestUsage(input_tokens=1, output_tokens=1), model_name="scripted"
        )


def build_agent(latency_s):
    agent = Agent(
        ScriptedModel(latency_s), instructions=bc.SYSTEM_PROMPT, output_type=[str, DeferredToolRequests]
    )

    @agent.tool_plain
    async def lookup(key: str, note: str) -> str:
        """Look a key up."""
        return bc.run_tool("lookup")

    @agent.tool_plain(requires_approval=True)
    async def delete_file(key: str, note: str) -> str:
        """Delete a file."""
        return bc.run_tool("delete_file")

    return agent


class PydanticAI:
    name = "pydantic_ai"

    async def setup(self, db_path, *, model_latency_s=0.0):
        self.path = db_path
        self.agent = build_agent(model_latency_s)
        self.pool = ThreadPoolExecutor(max_workers=1)
        self.loop = asyncio.get_running_loop()
        await self._db(self._open)

    def _open(self):
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.db.execute("pragma journal_mode=wal")
        self.db.executescript("""
            create table if not exists runs(
                id integer primary key, session_id text not null, messages text not null);
            create index if not exists runs_session on runs(session_id, id);
            create table if not exists conversations(session_id text primary key, usage text, deferred text);
        """)

    async def _db(self, f, *args):
        return await self.loop.run_in_executor(self.pool, f, *args)

    def _read(self, sid):
        rows = self.db.execute("select messages from runs where session_id=? order by id", (sid,)).fetchall()
        conv = self.db.execute(
            "select usage, deferred from conversations where session_id=?", (sid,)
        ).fetchone()
        return [r[0] for r in rows], conv

    def _write(self, sid, new_messages, usage, deferred):
        self.db.execute("begin immediate")
        self.db.execute("insert into runs(session_id, messages) values(?,?)", (sid, new_messages))
        self.db.execute(
            "insert into conversations values(?,?,?) on conflict(session_id) do update set "
            "usage=excluded.usage, deferred=excluded.deferred",
            (sid, usage, deferred),
        )
        self.db.execute("commit")

    async def _load(self, sid):
        rows, conv = await self._db(self._read, sid)
        messages = []
        for r in rows:
            messages.extend(ModelMessagesTypeAdapter.validate_json(r))
        if conv is None:
            return Conversation(messages=messages, conversation_id=sid)
        return Conversation(
            messages=messages,
            conversation_id=sid,
            usage=USAGE.validate_json(conv[0]),
            deferred_tool_requests=DEFERRED.validate_json(conv[1]) if conv[1] else None,
        )

    async def _save(self, sid, result):
        d = result.conversation.deferred_tool_requests
        await self._db(
            self._write,
            sid,
            result.new_messages_json(),
            USAGE.dump_json(result.conversation.usage),
            DEFERRED.dump_json(d) if d else None,
        )

    async def plain_turn(self, session_id, text):
        result = await self.agent.run(text, conversation=await self._load(session_id), usage_limits=NO_LIMIT)
        await self._save(session_id, result)
        return result.output

    tool_turn = plain_turn

    async def pause(self, session_id, text):
        out = await self.plain_turn(session_id, text)
        assert isinstance(out, DeferredToolRequests) and out.approvals[0].tool_name == "delete_file"
        return session_id

    async def resume(self, handle, approve=True):
        conv = await self._load(handle)
        req = conv.deferred_tool_requests
        results = req.build_results(approvals={c.tool_call_id: approve for c in req.approvals})
        result = await self.agent.run(conversation=conv, deferred_tool_results=results, usage_limits=NO_LIMIT)
        await self._save(handle, result)
        return result.output

    async def close(self):
        await self._db(self.db.close)
        self.pool.shutdown()

    def info(self):
        return {
            "versions": {p: version(p) for p in ("pydantic-ai-slim", "pydantic")},
            "sqlite": sqlite3.sqlite_version,
            **bc.sqlite_modes(self.path),
            "synchronous": "FULL (sqlite default)",
            "storage": self.storage,
        }

    storage = "append (app code): one JSON row of new messages per run + 1 conversation row upsert, 1 commit"


class PydanticAISnapshot(PydanticAI):
    name = "pydantic_ai_snapshot"
    storage = "full snapshot (app code): the whole Conversation JSON rewritten per turn"

    def _read_snap(self, sid):
        return self.db.execute("select usage from conversations where session_id=?", (sid,)).fetchone()

    def _write_snap(self, sid, blob):
        self.db.execute(
            "insert into conversations(session_id, usage) values(?,?) on conflict(session_id) do update "
            "set usage=excluded.usage",
            (sid, blob),
        )

    async def _load(self, sid):
        row = await self._db(self._read_snap, sid)
        return ConversationTypeAdapter.validate_json(row[0]) if row else Conversation(conversation_id=sid)

    async def _save(self, sid, result):
        await self._db(self._write_snap, sid, ConversationTypeAdapter.dump_json(result.conversation))


VARIANTS = {"append": PydanticAI, "snapshot": PydanticAISnapshot}
if __name__ == "__main__":
    bc.main(PydanticAI, VARIANTS)
