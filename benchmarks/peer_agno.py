"""agno: Agent(db=AsyncSqliteDb(file)), arun/acontinue_run; gated tool with requires_confirmation=True.
add_history_to_context=True with a very large num_history_runs so the model gets the whole history like
the other peers (agno's default is the last 3 runs).  telemetry=False (it would use the network).

variants: default AsyncSqliteDb | sync SqliteDb"""

import asyncio
import json
import logging
import sqlite3
from dataclasses import dataclass
from importlib.metadata import version

import bench as bc
from agno.agent import Agent
from agno.db.sqlite import AsyncSqliteDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools import tool

logging.getLogger("agno").setLevel(logging.ERROR)


@dataclass
class ScriptedModel(Model):
    id: str = "scripted"
    latency_s: float = 0.0

    async def ainvoke(
        self,
        messages,
        assistant_message,
        response_format=None,
        tools=None,
        tool_choice=None,
        run_response=None,
        compress_tool_results=False,
        **kw,
    ):
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        bc.seen_context(len(messages))
        last = messages[-1]
        calls = bc.script_reply(
            "user" if last.role == "user" else "tool", last.content if last.role == "user" else ""
        )
        if calls:
            return ModelResponse(
                role="assistant",
                tool_calls=[
                    {
                        "id": c["id"],
                        "type": "function",
                        "function": {"name": c["name"], "arguments": json.dumps(c["args"])},
                    }
                    for c in calls
                ],
            )
        return ModelResponse(role="assistant", content=bc.FINAL_TEXT)

    def invoke(self, *a, **kw):
        raise NotImplementedError

    invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke


@tool
async def lookup(key: str, note: str) -> str:
    """Look a key up."""
    return bc.run_tool("lookup")


@tool(requires_confirmation=True)
async def delete_file(key: str, note: str) -> str:
    """Delete a file."""
    return bc.run_tool("delete_file")


class Agno:
    name = "agno"

    async def setup(self, db_path, *, model_latency_s=0.0):
        self.path = db_path
        self.db = AsyncSqliteDb(db_file=db_path)
        self.agent = Agent(
            id="bench",
            model=ScriptedModel(latency_s=model_latency_s),
            tools=[lookup, delete_file],
            instructions=bc.SYSTEM_PROMPT,
            db=self.db,
            add_history_to_context=True,
            num_history_runs=1_000_000,
            telemetry=False,
        )

    async def plain_turn(self, session_id, text):
        return (await self.agent.arun(text, session_id=session_id)).content

    tool_turn = plain_turn

    async def pause(self, session_id, text):
        r = await self.agent.arun(text, session_id=session_id)
        assert r.is_paused and len(r.active_requirements) == 1
        return json.dumps([session_id, r.run_id])

    async def resume(self, handle, approve=True):
        sid, run_id = json.loads(handle)
        run = await self.agent.aget_run_output(run_id, session_id=sid)
        for req in run.active_requirements:
            req.confirm() if approve else req.reject()
        r = await self.agent.acontinue_run(run_id=run_id, session_id=sid, requirements=run.requirements)
        return r.content

    async def close(self):
        await self.db.close()

    def info(self):
        return {
            "versions": {p: version(p) for p in ("agno", "sqlalchemy")},
            "sqlite": sqlite3.sqlite_version,
            **bc.sqlite_modes(self.path),
            "synchronous": "FULL (sqlite default)",
            "storage": "one row per run (JSON of the whole run) + session row",
        }


if __name__ == "__main__":
    bc.main(Agno)
