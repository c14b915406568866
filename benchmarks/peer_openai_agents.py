"""openai-agents: Runner.run(agent, text, session=SQLiteSession(id, file)); gated tool with
needs_approval=True; paused run = result.to_state().to_string() stored by the app in a `paused_runs`
table of the same SQLite file (WAL, synchronous=FULL); resumed with RunState.from_string + approve.
Tracing is off (its default exporter would try the network).  Session objects are kept per session id,
as a long-lived server would."""

import asyncio
import json
import sqlite3
import uuid
from importlib.metadata import version

import bench as bc
from agents import Agent, ModelResponse, Runner, RunState, SQLiteSession, Usage, set_tracing_disabled
from agents.decorators import tool
from agents.models.interface import Model
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)


class ScriptedModel(Model):
    def __init__(self, latency_s=0.0):
        self.latency_s = latency_s

    async def get_response(
        self,
        system_instructions,
        input,
        model_settings,
        tools,
        output_schema,
        handoffs,
        tracing,
        *,
        previous_response_id=None,
        conversation_id=None,
        prompt=None,
    ):
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        bc.seen_context(len(input))
        last = input[-1]
        is_user = last.get("role") == "user"
        calls = bc.script_reply("user" if is_user else "tool", last["content"] if is_user else "")
        if calls:
            out = [
                ResponseFunctionToolCall(
                    id=f"fc_{c['id']}",
                    call_id=c["id"],
                    name=c["name"],
                    type="function_call",
                    arguments=json.dumps(c["args"]),
                    status="completed",
                )
                for c in calls
            ]
        else:
            out = [
                ResponseOutputMessage(
                    id=f"msg_{uuid.uuid4().hex}",
                    role="assistant",
                    type="message",
                    status="completed",
                    content=[ResponseOutputText(text=bc.FINAL_TEXT, type="output_text", annotations=[])],
                )
            ]
        return ModelResponse(output=out, usage=Usage(), response_id=None)

    def stream_response(self, *a, **kw):
        raise NotImplementedError


@tool
async def lookup(key: str, note: str) -> str:
    """Look a key up."""
    return bc.run_tool("lookup")


@tool(needs_approval=True)
async def delete_file(key: str, note: str) -> str:
    """Delete a file."""
    return bc.run_tool("delete_file")


class PausedRuns:
    """The app's own table for serialized RunStates (the SDK leaves that storage to the app)."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.execute("pragma journal_mode=wal")
        self.db.execute(
            "create table if not exists paused_runs(id integer primary key, session_id text, state text)"
        )

    async def put(self, session_id, state):
        return await asyncio.to_thread(
            lambda: (
                self.db.execute(
                    "insert into paused_runs(session_id, state) values(?,?)", (session_id, state)
                ).lastrowid
            )
        )

    async def take(self, pid):
        return await asyncio.to_thread(
            lambda: self.db.execute(
                "delete from paused_runs where id=? returning session_id, state", (pid,)
            ).fetchone()
        )


class OpenAIAgents:
    name = "openai_agents"

    async def setup(self, db_path, *, model_latency_s=0.0):
        self.path = db_path
        self.agent = Agent(
            name="assistant",
            instructions=bc.SYSTEM_PROMPT,
            model=ScriptedModel(model_latency_s),
            tools=[lookup, delete_file],
        )
        self.sessions = {}
        self.paused = PausedRuns(db_path)

    def session(self, sid):
        s = self.sessions.get(sid)
        if s is None:
            s = self.sessions[sid] = SQLiteSession(sid, self.path)
        return s

    async def plain_turn(self, session_id, text):
        return (await Runner.run(self.agent, text, session=self.session(session_id))).final_output

    tool_turn = plain_turn

    async def pause(self, session_id, text):
        r = await Runner.run(self.agent, text, session=self.session(session_id))
        assert len(r.interruptions) == 1 and r.interruptions[0].name == "delete_file"
        return str(await self.paused.put(session_id, r.to_state().to_string()))

    async def resume(self, handle, approve=True):
        sid, blob = await self.paused.take(int(handle))
        state = await RunState.from_string(self.agent, blob)
        for item in state.get_interruptions():
            state.approve(item) if approve else state.reject(item)
        return (await Runner.run(self.agent, state, session=self.session(sid))).final_output

    async def close(self):
        for s in self.sessions.values():
            s.close()
        self.paused.db.close()

    def info(self):
        return {
            "versions": {p: version(p) for p in ("openai-agents", "openai")},
            "sqlite": sqlite3.sqlite_version,
            **bc.sqlite_modes(self.path),
            "synchronous": "FULL (sqlite default)",
            "storage": "append: one JSON row per item; pause = whole RunState JSON blob in an app table",
        }


if __name__ == "__main__":
    bc.main(OpenAIAgents)
