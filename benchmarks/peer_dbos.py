"""dbos on its SQLite system database: the loop is a @DBOS.workflow whose model and tool calls are steps.

The outputs of steps are checkpointed. The approval is DBOS.recv inside the workflow, the decision
DBOS.send (docs: "Human-in-the-Loop"). DBOS keeps no chat history, so a step appends the turn's messages
to an app table (own SQLite file, WAL + FULL), and the model step reads it.

Polling: SQLite has no LISTEN/NOTIFY; DBOS polls every 1.0 s by default for recv, get_event and
get_result. Here the intervals are 10 ms, otherwise every pause and every resume would take up to 1 s more.
The paused workflow lives on as a coroutine; after a restart DBOS.launch() replays it up to the recv.

variants: default (10 ms polls), defaultpoll (1.0 s polls as shipped)
"""

import asyncio
import json
import sqlite3
import uuid
from importlib.metadata import version

import bench as bc
from dbos import DBOS, SetWorkflowID

STATE = {"lat": 0.0, "app": None, "lock": None}
APPROVAL_TOPIC = "approval"


def _load(sid):
    return [
        json.loads(r[0])
        for r in STATE["app"].execute("select body from messages where session_id=? order by id", (sid,))
    ]


@DBOS.step()
async def think(session_id: str, new: list) -> dict:
    history = _load(session_id) + new
    if STATE["lat"]:
        await asyncio.sleep(STATE["lat"])
    bc.seen_context(len(history))
    calls = bc.script_reply(history[-1]["role"], history[-1]["content"])
    if calls:
        return {"role": "assistant", "content": "", "tool_calls": calls}
    return {"role": "assistant", "content": bc.FINAL_TEXT}


@DBOS.step()
async def call_tool(name: str, args: dict) -> str:
    return bc.run_tool(name)


@DBOS.step()
async def save(session_id: str, turn_id: str, new: list) -> None:
    db = STATE["app"]
    db.execute("begin immediate")
    if db.execute("insert or ignore into turns values(?)", (turn_id,)).rowcount:  # idempotent on replay
        db.executemany(
            "insert into messages(session_id, body) values(?,?)", [(session_id, json.dumps(m)) for m in new]
        )
    db.execute("commit")


@DBOS.workflow()
async def agent_turn(session_id: str, text: str) -> str:
    new = [{"role": "user", "content": text}]
    while True:
        reply = await think(session_id, new)
        new.append(reply)
        calls = reply.get("tool_calls")
        if not calls:
            await save(session_id, DBOS.workflow_id, new)
            return reply["content"]
        free = [c for c in calls if c["name"] != bc.GATED_TOOL]
        outs = await asyncio.gather(*(call_tool(c["name"], c["args"]) for c in free))
        new += [{"role": "tool", "id": c["id"], "content": o} for c, o in zip(free, outs, strict=True)]
        for c in calls:
            if c["name"] == bc.GATED_TOOL:
                await DBOS.set_event_async("pending", c["id"])
                decision = await DBOS.recv_async(APPROVAL_TOPIC, timeout_seconds=30 * 86400)
                out = await call_tool(c["name"], c["args"]) if decision == "approve" else "denied"
                new.append({"role": "tool", "id": c["id"], "content": out})


class Dbos:
    name = "dbos"
    s3_mode = "cycle"  # launch() replays every paused workflow, so a batch of 200 would measure that instead

    def __init__(self, poll=0.01):
        self.poll = poll

    async def setup(self, db_path, *, model_latency_s=0.0):
        self.path = db_path
        STATE["lat"] = model_latency_s
        app = STATE["app"] = sqlite3.connect(db_path + ".app", isolation_level=None, check_same_thread=False)
        app.execute("pragma journal_mode=wal")
        app.executescript("""
            create table if not exists messages(id integer primary key, session_id text, body text);
            create index if not exists messages_session on messages(session_id, id);
            create table if not exists turns(id text primary key) without rowid;""")
        cfg = {
            "name": "bench",
            "system_database_url": f"sqlite:///{db_path}",
            "log_level": "ERROR",
            "console_log_level": "ERROR",
            "application_version": "1",
            "executor_id": "local",
            "enable_otlp": False,
            "notification_listener_polling_interval_sec": self.poll,
        }
        self.dbos = DBOS(config=cfg)
        DBOS.launch()

    async def plain_turn(self, session_id, text):
        with SetWorkflowID(uuid.uuid4().hex):
            return await agent_turn(session_id, text)

    tool_turn = plain_turn

    async def pause(self, session_id, text):
        wid = uuid.uuid4().hex
        with SetWorkflowID(wid):
            await DBOS.start_workflow_async(agent_turn, session_id, text)
        assert await DBOS.get_event_async(wid, "pending", timeout_seconds=30)
        return wid

    async def resume(self, handle, approve=True):
        await DBOS.send_async(handle, "approve" if approve else "reject", APPROVAL_TOPIC)
        h = await DBOS.retrieve_workflow_async(handle)
        return await h.get_result(polling_interval_sec=self.poll)

    async def close(self):
        DBOS.destroy(workflow_completion_timeout_sec=0)
        STATE["app"].close()

    def db_bytes(self):
        return bc.sqlite_logical_bytes(self.path) + bc.sqlite_logical_bytes(self.path + ".app")

    def info(self):
        return {
            "versions": {p: version(p) for p in ("dbos", "sqlalchemy")},
            "sqlite": sqlite3.sqlite_version,
            **bc.sqlite_modes(self.path),
            "synchronous": "FULL (sqlite default)",
            "poll_s": self.poll,
            "storage": "workflow row + one row per step output; app table for chat history",
        }


VARIANTS = {"defaultpoll": lambda: Dbos(1.0)}
if __name__ == "__main__":
    bc.main(Dbos, VARIANTS)
