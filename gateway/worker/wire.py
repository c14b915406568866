"""What the gateway and a worker say to each other.

The gateway speaks first: `Run`, with everything that one run needs, pickled; the worker trusts the
process that started it. What comes back is typed JSON and nothing else: a worker runs foreign tools,
and the gateway takes only what has exactly these shapes.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gateway.agent import Agent
from gateway.approvals import KnownCall, Pending, Resolution, TurnCheckpoint
from gateway.budget import Spent
from gateway.events import LoopEvent
from gateway.gate import Grant, Scope
from gateway.journal import CallRow
from gateway.messages import Json, Message, ToolResult, ToolUse
from gateway.outcome import Outcome
from gateway.providers.base import Usage
from gateway.questions import Question
from gateway.tools.base import Said, ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTool:
    """A tool that stays with the gateway; the worker's model may call it."""

    name: str
    description: str
    input_schema: Json
    safe: bool
    idempotent: bool
    timeout: float
    secret: frozenset[str]
    system: str
    unasked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run. `agent` comes without its tools. references: modules with tools, looked up in `folder`
    first, of which only those named in `own` may be used. models: sections of the configuration, by name."""

    agent: Agent
    references: tuple[str, ...]
    folder: Path
    own: frozenset[str]
    remote: tuple[RemoteTool, ...]
    models: Mapping[str, Any]
    data_dir: Path
    log: tuple[Message, ...]
    message: Message | None
    grants: tuple[Grant, ...]
    scope: Scope
    session_id: str
    turn_id: str
    spent: Spent
    known: Mapping[str, KnownCall]
    approver: bool
    approver_name: str


class LaneCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that runs: see gateway.journal.Ready."""

    call: ToolUse
    tool: str
    args: Json
    args_hash: str
    note: str = ""
    approved: bool = False
    redact: tuple[str, ...] = ()
    grant: str = ""
    said: dict[str, Said] = {}


class Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="frame", omit_defaults=True):
    """Base of everything on the pipe."""


# ---- from the gateway


class Run(Frame, frozen=True, kw_only=True, tag="run"):
    """Do this: a pickled Job."""

    job: bytes


class Reply(Frame, frozen=True, kw_only=True, tag="reply"):
    """What was asked under this number. Which field is set depends on the request."""

    id: int
    messages: list[Message] = []
    text: str | None = None
    ended: ToolEnded | None = None
    said: list[Resolution | None] = []
    revoked: list[str] = []


class Catalogue(Frame, frozen=True, kw_only=True, tag="catalogue"):
    """The tools that stay with the gateway have changed."""

    tools: list[RemoteTool]


class Cancel(Frame, frozen=True, kw_only=True, tag="cancel"):
    """The turn is stopped."""

    reason: str


class ToolEnded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a call of a remote tool ended. Exactly one of output, question, child, denied says it."""

    output: ToolOutput | None = None
    question: Question | None = None
    key: str = ""
    child: str = ""
    pendings: tuple[Pending, ...] = ()
    denied: str | None = None


# ---- from the worker: requests, answered by a Reply


class Assistant(Frame, frozen=True, kw_only=True, tag="assistant"):
    """Journal.assistant."""

    id: int
    message: Message
    rows: list[CallRow]


class Started(Frame, frozen=True, kw_only=True, tag="started"):
    """Journal.started."""

    id: int
    lane: list[LaneCall]


class Results(Frame, frozen=True, kw_only=True, tag="results"):
    """Journal.results."""

    id: int
    message: Message
    final: bool


class Marker(Frame, frozen=True, kw_only=True, tag="marker"):
    """Journal.marker."""

    id: int
    message: Message


class FullResult(Frame, frozen=True, kw_only=True, tag="full_result"):
    """Journal.full_result."""

    id: int
    call_id: str


class Revoked(Frame, frozen=True, kw_only=True, tag="revoked"):
    """Journal.revoked."""

    id: int
    grants: list[str]


class RunTool(Frame, frozen=True, kw_only=True, tag="run_tool"):
    """A remote tool is to run: a call that was told as started."""

    id: int
    call_id: str
    tool: str
    args: Json


class Decide(Frame, frozen=True, kw_only=True, tag="decide"):
    """The person at hand is to decide: one by one, or first about all of them."""

    id: int
    pendings: list[Pending]
    together: bool


# ---- from the worker: told, not answered


class Abandoned(Frame, frozen=True, kw_only=True, tag="abandoned"):
    """Nobody waits for the reply to this request any more."""

    id: int


class Told(Frame, frozen=True, kw_only=True, tag="event"):
    """An event of the loop."""

    event: LoopEvent


class Appended(Frame, frozen=True, kw_only=True, tag="appended"):
    """The transcript is one entry longer."""

    message: Message


class Done(Frame, frozen=True, kw_only=True, tag="done"):
    """Journal.done."""

    call: LaneCall
    result: ToolResult
    full: str | None = None


class Finished(Frame, frozen=True, kw_only=True, tag="finished"):
    """The run has an outcome. Its messages have been told one by one."""

    outcome: Outcome
    text: str = ""
    pending: TurnCheckpoint | None = None
    spent: Spent = Spent()
    usage: Usage = Usage()
    detail: str = ""


class Failed(Frame, frozen=True, kw_only=True, tag="failed"):
    """The run has none. `error` is the class of the error."""

    error: str
    message: str


Request = Assistant | Started | Results | Marker | FullResult | Revoked | RunTool | Decide
FromWorker = Request | Abandoned | Told | Appended | Done | Finished | Failed
FromGateway = Run | Reply | Catalogue | Cancel

_FROM_WORKER = msgspec.json.Decoder(FromWorker)
_FROM_GATEWAY = msgspec.json.Decoder(FromGateway)
_ENCODER = msgspec.json.Encoder()


def encoded(frame: FromWorker | FromGateway) -> bytes:
    """The body of a frame."""
    return _ENCODER.encode(frame)


def from_worker(body: bytes) -> FromWorker:
    """Raises msgspec.DecodeError or ValidationError for anything that is not one of these."""
    return _FROM_WORKER.decode(body)


def from_gateway(body: bytes) -> FromGateway:
    """Raises msgspec.DecodeError or ValidationError for anything that is not one of these."""
    return _FROM_GATEWAY.decode(body)


def run_frame(job: Job) -> Run:
    """The order to do this job."""
    return Run(job=pickle.dumps(job))


def job_of(run: Run) -> Job:
    """Only for what came from the process that started this one."""
    job: Job = pickle.loads(run.job)  # noqa: S301 - from our own parent, over a pipe that only it writes to
    return job
