"""Commands that do one thing and exit: ask, chat, lists, decisions, renderings."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec

from channels.render.inert import visible
from channels.render.payloads import Platform, payloads
from channels.terminal.adapter import Terminal
from gateway.app import console
from gateway.app.build import build_parts
from gateway.app.gateway import Parts
from gateway.app.serve import demo_parts
from gateway.app.tables import show
from gateway.app.toolservers import list_tools, running
from gateway.approvals import Answer, Approve, Deny, GrantScope, Resolution
from gateway.config import load_config, questionable_rules
from gateway.errors import ConfigError
from gateway.events import Event, TurnDone, encode_event
from gateway.log import setup_logging
from gateway.notices import deciders_text, when
from gateway.store.rows import PendingRecord
from gateway.tools.base import masked

_CLICK_CODES = {"resumed": 0, "recorded": 0, "already": 0, "forbidden": 5, "invalid": 2}


def parts_of(config: Path | None) -> Parts:
    """The parts that commands without channels need: of the named file, of config.toml here, or
    of the demo. Raises ConfigError."""
    setup_logging(logging.WARNING, tracebacks=False)
    path = config if config is not None else Path("config.toml")
    if config is None and not path.exists():
        sys.stderr.write("threadgate: no config.toml here; this is the demo agent\n")
        return demo_parts(Path.cwd())
    return build_parts(load_config(path, env=os.environ), channels=False)


class _Lines:
    """One event per line; deltas included."""

    def __init__(self) -> None:
        self.done: TurnDone | None = None

    def __call__(self, event: Event) -> None:
        sys.stdout.write(encode_event(event) + "\n")
        sys.stdout.flush()
        if isinstance(event, TurnDone):
            self.done = event


def _check_agent(parts: Parts, agent: str) -> None:
    if agent not in parts.agents:
        raise ConfigError(
            "AGENT", f"there is no agent {agent!r}", f"one of {', '.join(sorted(parts.agents))}"
        )


def _ended(done: TurnDone | None, as_json: bool) -> int:
    if done is None:
        return 1
    if not as_json:
        for pending_id in done.pending:
            sys.stdout.write(f"waits for a person: {pending_id}\n")
            sys.stdout.write(f"  threadgate resolve {pending_id} approve|deny|answer\n")
        if done.outcome not in ("completed", "pending_approval", "pending_question"):
            sys.stderr.write(f"threadgate: {done.status}\n")
    return done.exit_code


async def chat_here(config: Path | None, agent: str) -> int:
    """`threadgate chat`."""
    parts = parts_of(config)
    name = agent or parts.rules.default_agent
    _check_agent(parts, name)
    terminal = Terminal()
    approver = console.TerminalApprover(terminal)
    for line in questionable_rules(parts.agents):
        terminal.notice(line)
    terminal.notice(f"Talking to {name}. /new starts afresh, /quit or Ctrl-D leaves.")
    async with running(parts.tool_servers), console.bench(parts, console.Watcher(terminal), approver) as at:
        await console.chat(at, name, terminal)
    return 0


# ---- decisions


def read_decision(decision: str, values: list[str], scope: str, edited: dict[str, Any] | None) -> Resolution:
    """The words of `threadgate resolve`. Raises ConfigError."""
    match decision:
        case "approve" if scope in get_args(GrantScope):
            return Approve(scope=scope, edited_args=edited)  # type: ignore[arg-type]
        case "approve":
            raise ConfigError("--scope", f"is {scope!r}", "once, session or always")
        case "deny":
            return Deny(feedback=" ".join(values))
        case "answer" if values:
            return Answer(values=tuple(values))
        case "answer":
            raise ConfigError("VALUES", "the answer is missing", "threadgate resolve ID answer 'staging'")
        case _:
            raise ConfigError("DECISION", f"is {decision!r}", "approve, deny or answer")


async def resolve_once(config: Path | None, wanted: str, resolution: Resolution, *, as_json: bool) -> int:
    """`threadgate resolve`: decide, and run what follows unless a gateway does."""
    parts = parts_of(config)
    watcher = _Lines() if as_json else console.Watcher(Terminal())
    async with running(parts.tool_servers), console.bench(parts, watcher) as at:
        by_code = await at.store.pendings(code=wanted.casefold(), open_only=False)
        pending_id = by_code[0].id if len(by_code) == 1 else wanted
        result = await console.resolve(at, pending_id, resolution)
    if as_json:
        line = {"type": "click", "outcome": result.outcome, "message": result.text, "pending_id": pending_id}
        sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    else:
        sys.stdout.write(f"{result.outcome}: {visible(result.text)}\n")
    if result.outcome not in ("resumed", "recorded"):
        return _CLICK_CODES.get(result.outcome, 1)
    return _ended(watcher.done, as_json) if watcher.done is not None else 0


async def pair_once(config: Path | None, code: str) -> int:
    """`threadgate pair`."""
    async with console.bench(parts_of(config), lambda event: None) as at:
        admitted, text = await console.pair(at, code)
    (sys.stdout if admitted else sys.stderr).write(f"{visible(text)}\n")
    return 0 if admitted else 1


# ---- lists


async def list_mcp(config: Path | None, *, as_json: bool) -> int:
    """`threadgate mcp list`. Raises ConfigError."""
    setup_logging(logging.ERROR)
    loaded = load_config(config or Path("config.toml"), env=os.environ)
    return await list_tools(loaded, as_json=as_json)


async def list_pending(config: Path | None, *, as_json: bool) -> int:
    """`threadgate pending`."""
    async with console.bench(parts_of(config), lambda event: None) as at:
        records = await at.store.pendings()
    if as_json:
        for record in records:
            sys.stdout.write(msgspec.json.encode(_pending_line(record)).decode() + "\n")
        return 0
    rows = []
    for record in records:
        pending = record.pending
        what = pending.question.text if pending.question is not None else pending.tool
        shown = msgspec.json.encode(masked(pending.args, pending.secret)).decode()
        cells = (pending.code, pending.kind, what, shown, when(record.requested_at))
        rows.append((*cells, deciders_text(record), record.id))
    if rows:
        show(("code", "kind", "what", "arguments", "since", "who may decide", "id"), rows)
    else:
        sys.stdout.write("Nothing waits for a decision.\n")
    return 0


def _pending_line(record: PendingRecord) -> dict[str, Any]:
    pending = record.pending
    return {
        "pending_id": record.id,
        "code": pending.code,
        "kind": pending.kind,
        "session_id": record.home,
        "agent": record.agent,
        "tool": pending.tool,
        "args": masked(pending.args, pending.secret),
        "reason": pending.reason,
        "requested_at": record.requested_at,
        "expires_at": pending.expires_at,
        "approvers": list(pending.approvers) or [str(record.requester)],
    }


async def list_sessions(config: Path | None, *, as_json: bool) -> int:
    """`threadgate sessions`."""
    async with console.bench(parts_of(config), lambda event: None) as at:
        views = await at.store.sessions()
    if as_json:
        for view in views:
            line = {
                "session_id": view.id,
                "agent": view.agent,
                "status": view.status,
                "title": view.title,
                "messages": view.log_length,
                "updated_at": view.updated_at,
            }
            sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
        return 0
    rows = [
        (view.id, view.agent, view.status, str(view.log_length), when(view.updated_at), view.title)
        for view in views
    ]
    if rows:
        show(("session", "agent", "status", "messages", "last", "begins with"), rows)
    else:
        sys.stdout.write("There are no sessions yet.\n")
    return 0


# ---- renderings


def render_payloads(platform: str, markdown: str) -> str:
    """The JSON list of messages that would be sent. Raises ConfigError."""
    if platform not in get_args(Platform):
        raise ConfigError("--platform", f"is {platform!r}", ", ".join(get_args(Platform)))
    return msgspec.json.encode(payloads(platform, markdown)).decode()  # type: ignore[arg-type]
