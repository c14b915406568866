"""A folder with a configuration, a script and tools: what a gateway needs, and what it leaves there."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from gateway.history import repaired
from gateway.messages import Message, decode_message
from tests.scenario.processes.gateway import GatewayProcess, until

TOKEN = "777:AAsecretsecretsecretsecretsecretsecret"
ADA, BOB = 4242, 4343
TOOLS = Path(__file__).with_name("ledger_tools.py")
Json = dict[str, Any]


def step(*calls: str, order: str = "{order}", **more: Any) -> Json:
    """One reply of the scripted model that calls these tools with the order."""
    return {"calls": [{"tool": name, "args": {"order": order}} for name in calls], **more}


def rule(match: str, *replies: Json) -> Json:
    """How the scripted model answers messages like `match ORDER`."""
    return {"match": rf"^{match} (?P<order>\w+)", "replies": list(replies)}


RULES = (
    rule("pay", step("note", "pay"), {"text": "Paid {order}."}),
    rule("note", step("note"), {"text": "Noted {order}."}),
    rule("wait", step("wait"), {"text": "Waited {order}."}),
    {"match": "^hello", "replies": [{"text": "Hello yourself."}]},
)


@dataclass(kw_only=True)
class House:
    """One installation. `api_base`: of the Telegram server; "" without that channel. `agent`: more
    lines for the agent's table, `pay`: for the rule that asks about payments, `more`: more tables."""

    folder: Path
    api_base: str = ""
    web: bool = False
    rules: Sequence[Json] = RULES
    agent: str = ""
    pay: str = ""
    more: str = ""
    drain: str = "10s"
    processes: list[GatewayProcess] = field(default_factory=list)

    def furnish(self) -> None:
        """Write everything down."""
        shutil.copy(TOOLS, self.folder / "ledger_tools.py")
        (self.folder / "script.json").write_text(json.dumps({"rules": list(self.rules)}))
        (self.folder / "config.toml").write_text(self._config())

    def _config(self) -> str:
        channels = ""
        if self.api_base:
            users = f'"{ADA}", "{BOB}"'
            channels += (
                f'[channels.telegram]\ntoken = "env:BOT"\napi_base = "{self.api_base}"\nusers = [{users}]\n'
            )
        if self.web:
            channels += "[channels.web]\nport = 0\n"
        return (
            f'[gateway]\ndatabase = "sqlite:///gate.db"\ndrain = "{self.drain}"\ndefault_agent = "clerk"\n'
            '[models.main]\nprovider = "scripted"\nscript = "script.json"\n'
            f'[agents.clerk]\ntools = ["ledger_tools:tools"]\ndefault_decision = "allow"\n{self.agent}\n'
            f'[[agents.clerk.rules]]\ntool = "pay*"\ndecision = "ask"\n{self.pay}\n{channels}{self.more}'
        )

    # ---- processes

    async def start(
        self, fault: str = "", level: str = "info", env: Mapping[str, str] = {}, *, ready: bool = True
    ) -> GatewayProcess:
        """One more gateway on this folder; by default it runs when this returns."""
        arguments = ("run", "--config", "config.toml", "--log-level", level)
        gateway = await GatewayProcess.start(self.folder, *arguments, fault=fault, env={"BOT": TOKEN, **env})
        self.processes.append(gateway)
        if ready:
            await gateway.logged("running: ")
        return gateway

    async def start_and_rest(self) -> GatewayProcess:
        """A gateway that has brought to an end whatever was left."""
        gateway = await self.start()
        await self.rest()
        return gateway

    async def clear(self) -> None:
        """End what still runs."""
        for gateway in self.processes:
            await gateway.kill()

    async def client(self, gateway: GatewayProcess) -> httpx.AsyncClient:
        """An HTTP client of a gateway's web channel."""
        url = (await gateway.logged(r"listening at (\S+)"))[1]
        return httpx.AsyncClient(base_url=url, timeout=30)

    def make_due(self, schedule: str) -> None:
        """Set a schedule of the configuration back by two hours, while no gateway runs."""
        database = sqlite3.connect(self.folder / "gate.db", timeout=10)
        try:
            with database:
                database.execute(
                    "UPDATE timers SET due_at = due_at - 7200,"
                    " body = json_set(body, '$.timing.since', json_extract(body, '$.timing.since') - 7200)"
                    " WHERE name = ?",
                    (schedule,),
                )
        finally:
            database.close()

    # ---- what it leaves

    def ledger(self, tool: str = "") -> list[Json]:
        """The side effects, in order."""
        path = self.folder / "ledger.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if not tool or line["tool"] == tool]

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """What a query finds, read beside the gateway."""
        database = sqlite3.connect(f"file:{self.folder / 'gate.db'}?mode=ro", uri=True, timeout=10)
        try:
            return database.execute(sql, values).fetchall()
        finally:
            database.close()

    def value(self, sql: str, *values: Any) -> Any:
        """The only value that a query finds."""
        ((value,),) = self.rows(sql, *values)
        return value

    def log(self, session: str = "") -> list[Message]:
        """A session's messages; of the only session when none is named."""
        (session,) = [session] if session else [row[0] for row in self.rows("SELECT id FROM sessions")]
        bodies = self.rows("SELECT body FROM messages WHERE session_id = ? ORDER BY seq", session)
        return [decode_message(body) for (body,) in bodies]

    def assert_valid(self) -> None:
        """Every session's history can be sent to a provider as it is."""
        for (session,) in self.rows("SELECT id FROM sessions"):
            log = self.log(session)
            assert repaired(log) == log
            open_calls: list[str] = []
            for message in log:
                assert [result.tool_use_id for result in message.results] == open_calls
                open_calls = [call.id for call in message.calls]
            assert open_calls == []

    def size(self) -> list[Any]:
        """How many turns, messages and lines of the record there are."""
        return self.rows(
            "SELECT (SELECT count(*) FROM turns), (SELECT count(*) FROM messages),"
            " (SELECT count(*) FROM audit)"
        )

    def tool_of(self, pending_id: str) -> str:
        """The tool that a pending is about."""
        tool: str = self.value("SELECT json_extract(body, '$.tool') FROM pendings WHERE id = ?", pending_id)
        return tool

    def open_pendings(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT id FROM pendings WHERE state = 'open'")]

    def at_rest(self) -> bool:
        """Nothing runs, nothing waits to be sent or carried out."""
        busy = (
            "SELECT (SELECT count(*) FROM sessions WHERE status NOT IN ('idle', 'pending'))"
            " + (SELECT count(*) FROM deliveries WHERE state IN ('queued', 'sending'))"
            " + (SELECT count(*) FROM inbox WHERE state = 'queued' AND kind = 'press')"
        )
        return bool(self.value(busy) == 0)

    async def rest(self) -> None:
        """Wait until it is at rest."""
        await until(self.at_rest, "the gateway comes to rest")
