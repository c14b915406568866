"""Named places where a crash could matter, so that a test can die at each of them.

`THREADGATE_FAULT=<name>[:<nth>]` makes the process kill itself with SIGKILL when it reaches the
place for the nth time (default: the first). Without it, reaching a place costs one comparison.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from gateway.errors import ConfigError

VARIABLE = "THREADGATE_FAULT"

# What each place lies around, in the order of a message's way.
STEPS: dict[str, str] = {
    "inbox": "the message's insert into the inbox",
    "lease": "the claim of the session",
    "assistant": "the append of a reply with its calls",
    "started": "the journal row that says a call begins",
    "done": "handing over the journal row with a call's result, which the next write makes durable",
    "results": "the append of a step's results",
    "stop": "the transaction of a durable stop",
    "card": "the sending of a card",
    "ref": "storing the reference of a posted card",
    "press": "the press's insert into the inbox",
    "resolution": "the commit of a decision",
    "redraw": "the redrawing of a decided card",
    "redrawn": "storing that a card was redrawn",
    "resume": "the claim of a decided turn",
    "approved": "the run of an approved call",
    "final": "the last transaction of a turn",
    "send": "the sending of the answer",
    "sent": "storing that the answer was sent",
    "timer": "the carrying out of a due timer",
}
POINTS: tuple[str, ...] = tuple(f"{step}.{side}" for step in STEPS for side in ("before", "after"))

_armed: str | None = None
_left = 0


def arm(environment: Mapping[str, str]) -> None:
    """Read the variable. Raises ConfigError for a name that is not in POINTS."""
    global _armed, _left
    wanted = environment.get(VARIABLE, "")
    name, _, nth = wanted.partition(":")
    if not name:
        _armed = None
        return
    if name not in POINTS or (nth and not nth.isdecimal()) or nth == "0":
        raise ConfigError(VARIABLE, f"{wanted!r} is no fault point", f"one of {', '.join(POINTS)}, with :n")
    _armed, _left = name, int(nth or 1)


def reach(name: str) -> None:
    """The process is at this place. Does nothing, or never returns."""
    global _left
    if _armed is None or name != _armed:
        return
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
