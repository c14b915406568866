"""Reference floor: the least code that meets the adapter protocol (stdlib json + sqlite3, blocking,
append-only rows, ONE commit per turn / per pause).  Not a framework: no validation, no hooks, no
streaming, no retries.  It shows what the storage + event loop alone cost, and is the template for
plugging another implementation in.

variants: full (WAL, synchronous=FULL; default) | normal (WAL, synchronous=NORMAL)
          steps (WAL+FULL, a commit after every step: user msg, each model reply, each tool batch)
"""

import asyncio
import json
import sqlite3
import sys

import bench as bc

SCHEMA = """
create table if not exists messages(id integer primary key, session_id text not null, body text not null);
create index if not exists messages_session on messages(session_id, id);
create table if not exists pending(id integer primary key, session_id text not null, body text not null);
"""


class Floor:
    def __init__(self, sync="FULL", steps=False):
        self.sync, self.steps = sync, steps
        self.name = f"floor_{'steps' if steps else sync.lower()}"

    async def setup(self, db_path, *, model_latency_s=0.0):
        self.path, self.lat = db_path, model_latency_s
        self.db = sqlite3.connect(db_path, isolation_level=None)
        self.db.execute("pragma journal_mode=wal")
        self.db.execute(f"pragma synchronous={self.sync}")
        self.db.executescript(SCHEMA)

    # -- storage
    def _load(self, sid):
        return [
            json.loads(r[0])
            for r in self.db.execute("select body from messages where session_id=? order by id", (sid,))
        ]

    def _append(self, sid, msgs):
        self.db.executemany(
            "insert into messages(session_id, body) values(?,?)", [(sid, json.dumps(m)) for m in msgs]
        )

    def _commit(self, sid, msgs):
        self.db.execute("begin immediate")
        self._append(sid, msgs)
        self.db.execute("commit")

    # -- stub model and tools
    async def _model(self, history):
        if self.lat:
            await asyncio.sleep(self.lat)
        bc.seen_context(len(history))
        last = history[-1]
        calls = bc.script_reply(last["role"], last["content"])
        if calls:
            return {"role": "assistant", "content": "", "tool_calls": calls}
        return {"role": "assistant", "content": bc.FINAL_TEXT}

    async def _tool(self, call):
        return {"role": "tool", "id": call["id"], "content": bc.run_tool(call["name"])}

    # -- loop
    async def _loop(self, sid, history, new):
        """Returns final text, or a pending id (int) when a gated call stops the turn."""
        while True:
            reply = await self._model(history)
            history.append(reply)
            new.append(reply)
            calls = reply.get("tool_calls")
            if self.steps:
                self._commit(sid, new)
                new = []
            if not calls:
                if new:
                    self._commit(sid, new)
                return reply["content"]
            free = [c for c in calls if c["name"] != bc.GATED_TOOL]
            gated = [c for c in calls if c["name"] == bc.GATED_TOOL]
            results = await asyncio.gather(*(self._tool(c) for c in free))
            history.extend(results)
            new.extend(results)
            if gated:
                self.db.execute("begin immediate")
                self._append(sid, new)
                pid = self.db.execute(
                    "insert into pending(session_id, body) values(?,?)", (sid, json.dumps(gated))
                ).lastrowid
                self.db.execute("commit")
                return pid
            if self.steps:
                self._commit(sid, new)
                new = []

    async def _turn(self, sid, text):
        history = self._load(sid)
        msg = {"role": "user", "content": text}
        history.append(msg)
        if self.steps:
            self._commit(sid, [msg])
            return await self._loop(sid, history, [])
        return await self._loop(sid, history, [msg])

    async def plain_turn(self, session_id, text):
        return await self._turn(session_id, text)

    tool_turn = plain_turn

    async def pause(self, session_id, text):
        return str(await self._turn(session_id, text))

    async def resume(self, handle, approve=True):
        row = self.db.execute(
            "delete from pending where id=? returning session_id, body", (int(handle),)
        ).fetchone()
        sid, calls = row[0], json.loads(row[1])
        results = [
            await self._tool(c) if approve else {"role": "tool", "id": c["id"], "content": "denied"}
            for c in calls
        ]
        history = self._load(sid)
        history.extend(results)
        return await self._loop(sid, history, results)

    async def close(self):
        self.db.close()

    def info(self):
        return {
            "python": sys.version.split()[0],
            "sqlite": sqlite3.sqlite_version,
            "journal_mode": "wal",
            "synchronous": self.sync,
            "storage": "append: one JSON row per message, 1 commit per turn"
            if not self.steps
            else "append: one JSON row per message, commit after every step",
        }


VARIANTS = {"full": Floor, "normal": lambda: Floor("NORMAL"), "steps": lambda: Floor("FULL", True)}
if __name__ == "__main__":
    bc.main(Floor, VARIANTS)
