"""How a running call says that it cannot go on by itself. Raised by tools, carried by the loop.

None of these is an error. The step stops durably; later the tool is run again from its start, and
finds in its context what was said (`CallContext.said`), or what the subagent came to. A tool that
raises one must not have done anything yet that may not be done again.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.approvals import Pending
from gateway.questions import Question


class Waits(Exception):
    """The call waits; the step stops."""


class NeedsAnswer(Waits):
    """A person has to answer first. `key` tells this question from others of the same call."""

    def __init__(self, question: Question, key: str) -> None:
        super().__init__(question.text)
        self.question, self.key = question, key


class ChildWaits(Waits):
    """A subagent has stopped for people. `pendings`: what is open in its session, or further down."""

    def __init__(self, session_id: str, pendings: Sequence[Pending]) -> None:
        super().__init__(f"the subagent's session {session_id} waits for people")
        self.session_id, self.pendings = session_id, tuple(pendings)


class DeniedInside(Exception):
    """A person said no to a call of the subagent: as much a denial as one of the call itself."""
