"""`threadgate ask`: one message, one turn, an exit code. For cron, CI and pipes.

On standard output there is the answer and nothing else (or, when the turn waits for people, the ids of
what waits, one a line; with `--json` its events, one a line). Everything else goes to standard error.
SIGINT and SIGTERM end it at once; what was done is stored, and the session can go on.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from channels.render.inert import tame
from gateway.agent import Agent
from gateway.app import console
from gateway.app.build import build_parts
from gateway.app.gateway import Parts
from gateway.app.serve import demo_parts
from gateway.app.toolservers import running
from gateway.config import load_config, questionable_rules
from gateway.config.parsing import Source, seconds
from gateway.config.problems import Bad
from gateway.errors import ConfigError
from gateway.events import (
    AssistantText,
    Event,
    LoopDenied,
    LoopDone,
    LoopMaxTurns,
    LoopStopped,
    SessionStarted,
    ToolFinished,
    ToolStarted,
    TurnDone,
    TurnError,
    encode_event,
)
from gateway.log import redact, setup_logging
from gateway.outcome import EXIT_CODES, EXIT_FAILED, Outcome
from gateway.store.rows import SessionView

CLI = "cli"
MOST_READ = 10_000_000  # bytes of standard input
TOLD = (Outcome.COMPLETED, Outcome.PENDING_APPROVAL, Outcome.PENDING_QUESTION)  # told by other means


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked of whom. `session`: goes on with an earlier one; then `text` may be empty, which only
    ends a turn that was interrupted. `model`: the name of a configured model, instead of the agent's.
    The budgets replace the agent's; `deadline` in seconds."""

    agent: str
    text: str
    session: str = ""
    model: str = ""
    max_steps: int | None = None
    max_tokens: int | None = None
    deadline: float | None = None
    as_json: bool = False


async def ask_once(config: Path | None, wanted: Ask) -> int:
    """Run it; the exit code. Raises ConfigError, StoreError, RequiredToolServerDown."""
    if not wanted.text.strip() and not wanted.session:
        raise ConfigError("TEXT", "is empty", "say what to ask")
    setup_logging(logging.ERROR, tracebacks=False)
    return await ask_with(_parts(config, wanted), wanted)


async def ask_with(parts: Parts, wanted: Ask) -> int:
    """The same with parts that are there already."""
    watcher = Watcher(sys.stdout, sys.stderr, as_json=wanted.as_json)
    try:
        async with _interruptible(), running(parts.tool_servers), console.bench(parts, watcher) as at:
            for line in _trouble(parts):
                watcher.note(line)
            watcher.waiting = await _answer(at, wanted)
    except asyncio.CancelledError:
        watcher.note(f"interrupted{watcher.way_on}")
        return EXIT_FAILED
    return watcher.ended()


def _trouble(parts: Parts) -> Iterator[str]:
    """What keeps agents from working as configured, though it stops nothing; one line each."""
    yield from questionable_rules(parts.agents)
    down = parts.tool_servers.down() if parts.tool_servers is not None else {}
    yield from (f"tool server {name} is down: {reason}" for name, reason in down.items())


def seconds_of(deadline: str) -> float | None:
    """`90s`, `10m`, as in the configuration; None for nothing. Raises ConfigError."""
    if not deadline:
        return None
    try:
        return seconds(deadline, Source(folder=Path(), env={}))
    except Bad as bad:
        raise ConfigError("--deadline", bad.problem, bad.mend) from bad


def read_words(text: str, stdin: IO[bytes] | None, *, is_terminal: bool) -> str:
    """What is asked. `-` stands for standard input; without TEXT it is read unless it is a terminal; with
    TEXT a pipe or a file is read too and follows after a blank line. Raises ConfigError for too much."""
    if stdin is None:
        return "" if text == "-" else text
    if text == "-" or (not text and not is_terminal):
        return _all_of(stdin)
    piped = _all_of(stdin) if text and _carries_something(stdin) else ""
    return "\n\n".join(part for part in (text, piped.strip("\n")) if part.strip())


def _carries_something(stdin: IO[bytes]) -> bool:
    """Whether somebody has put a pipe or a file there. A terminal, /dev/null and what a service manager
    leaves open are not read: nothing may ever come."""
    try:
        mode = os.fstat(stdin.fileno()).st_mode
    except (OSError, ValueError):  # not a real file: whatever it holds is there already
        return isinstance(stdin, io.BytesIO)
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _all_of(stdin: IO[bytes]) -> str:
    data = stdin.read(MOST_READ + 1)
    if len(data) > MOST_READ:
        raise ConfigError("TEXT", f"standard input holds more than {MOST_READ // 1_000_000} MB", "send less")
    return data.decode("utf-8-sig", errors="replace")


@asynccontextmanager
async def _interruptible() -> AsyncIterator[None]:
    """SIGINT and SIGTERM cancel the block, at once. A second one does not wait for the tidying up."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    told = False

    def stop() -> None:
        nonlocal told
        if told:
            os._exit(EXIT_FAILED)
        told = True
        if task is not None:
            task.cancel()

    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop)
    try:
        yield
    finally:
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)


def _parts(config: Path | None, wanted: Ask) -> Parts:
    path = config if config is not None else Path("config.toml")
    models: Sequence[str] = ()
    if config is None and not path.exists():
        sys.stderr.write("threadgate: no config.toml here; this is the demo agent\n")
        parts = demo_parts(Path.cwd())
    else:
        loaded = load_config(path, env=os.environ)
        parts, models = build_parts(loaded, channels=False), sorted(loaded.models)
    agent = parts.agents.get(wanted.agent)
    if agent is None:
        known = ", ".join(sorted(parts.agents))
        raise ConfigError("AGENT", f"there is no agent {wanted.agent!r}", f"one of {known}")
    if wanted.model and wanted.model not in models:
        mend = f"one of {', '.join(models)}" if models else "the demo has its own"
        raise ConfigError("--model", f"there is no model {wanted.model!r}", mend)
    return replace(parts, agents={**parts.agents, agent.name: _as_wanted(agent, wanted)})


def _as_wanted(agent: Agent, wanted: Ask) -> Agent:
    changes: dict[str, Any] = {
        name: value
        for name in ("max_steps", "max_tokens", "deadline")
        if (value := getattr(wanted, name)) is not None
    }
    if wanted.model:
        others = tuple(name for name in agent.failover if name != wanted.model)
        changes |= {"model": wanted.model, "failover": others}
    return replace(agent, **changes)


async def _answer(at: console.Bench, wanted: Ask) -> Sequence[str]:
    """Have the turn run; the ids of what an earlier one of the session still waits for."""
    if not wanted.session:
        await console.ask(at, wanted.agent, wanted.text)
        return ()
    view = await _earlier(at, wanted)
    if wanted.text.strip():
        await console.ask(at, wanted.agent, wanted.text, session=view)
    await console.go_on(at, view.id)  # a turn that was interrupted, and what was said since
    return [record.id for record in await at.store.pendings(session_id=view.id)]


async def _earlier(at: console.Bench, wanted: Ask) -> SessionView:
    view = await at.store.session(wanted.session)
    if view is None:
        raise ConfigError("--session", f"there is no session {wanted.session!r}", "see threadgate sessions")
    if view.key.channel != CLI:
        where = tame(":".join(part for part in view.key if part))
        raise ConfigError("--session", f"{view.id} belongs to {where}", "go on there")
    if view.agent != wanted.agent:
        raise ConfigError("AGENT", f"{view.id} is a session of {view.agent!r}", view.agent)
    return view


class Watcher:
    """Writes down a turn as it goes. A reader of `out` who has gone away does not end the turn."""

    def __init__(self, out: IO[str], err: IO[str], *, as_json: bool) -> None:
        self._out, self._err, self._json = out, err, as_json
        self._gone = False
        self._session = self._detail = self._said = ""
        self._talkative = err.isatty() and not as_json
        self.done: TurnDone | None = None
        self.waiting: Sequence[str] = ()

    @property
    def way_on(self) -> str:
        """How the session goes on, in words; empty before there is one."""
        return f"; go on with --session {self._session}" if self._session else ""

    def __call__(self, event: Event) -> None:
        if self._json:
            self._write(encode_event(event) + "\n")
        match event:
            case SessionStarted(session_id=session_id):
                self._session, self._detail = session_id, ""
            case AssistantText(text=text):
                self._said = text
            case ToolStarted(tool=tool):
                self._aside(self._said)
                self._aside(f"running {tool} ...")
                self._said = ""
            case ToolFinished(tool=tool, content=content, is_error=True):
                self._aside(f"{tool or 'a call'}: {content}")
            case LoopDone() | LoopDenied() | LoopMaxTurns() | LoopStopped() | TurnError():
                self._detail = _detail(event)
            case TurnDone():
                self.done = event
            case _:
                pass

    def note(self, text: str) -> None:
        """One line on standard error, whoever reads it."""
        self._err.write(f"threadgate: {tame(redact(' '.join(text.split())))}\n")
        self._err.flush()

    def ended(self) -> int:
        """Say how it ended; the exit code."""
        done = self.done
        if done is None and self.waiting:
            self._waits(self.waiting)
            return EXIT_CODES[Outcome.PENDING_APPROVAL]
        if done is None:
            self.note(f"somebody else is busy with this session; it is answered there{self.way_on}")
            return EXIT_FAILED
        if not self._json:
            if done.text.strip():
                self._write(done.text.rstrip("\n") + "\n")
            self._waits(done.pending)
        if done.outcome not in TOLD:
            detail = self._detail if self._detail != done.text else ""
            self.note(f"{done.status}{f': {detail}' if detail else ''}{self.way_on}")
        return done.exit_code

    def _waits(self, pending_ids: Sequence[str]) -> None:
        for pending_id in pending_ids:
            self._write("" if self._json else f"{pending_id}\n")
            self.note(f"waits for a person: threadgate resolve {pending_id} approve|deny|answer")

    def _aside(self, text: str) -> None:
        if self._talkative and text.strip():
            self.note(text)

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._out.write(tame(text) if self._out.isatty() and not self._json else text)
            self._out.flush()
        except BrokenPipeError:
            self._gone = True
            if self._out is sys.__stdout__:  # what is left in its buffer must not fail at the very end
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())


def _detail(event: LoopDone | LoopDenied | LoopMaxTurns | LoopStopped | TurnError) -> str:
    match event:
        case LoopDenied(reason=reason):
            return reason
        case LoopMaxTurns(steps=steps):
            return f"{steps} steps are used up"
        case LoopStopped(detail=detail):
            return detail
        case TurnError(message=message):
            return message
        case _:
            return ""
