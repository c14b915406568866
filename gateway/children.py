"""The subagents of one turn: begins their conversations, waits for them, says what came of them.

A subagent's conversation is a session of its own, with journal, checkpoint and lease like any other;
nothing here is needed to survive. A call that is run again, after a stop or a crash, finds the
conversation that it had begun and waits for it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from gateway.agent import Agent
from gateway.cancel import CancelToken
from gateway.clock import Clock
from gateway.errors import ToolError
from gateway.messages import File, Image
from gateway.outcome import Outcome
from gateway.store.base import Store
from gateway.store.rows import ChildBegun, ChildOrder, ChildRefusal, ChildState, Claim
from gateway.tools.base import SubagentCall, ToolOutput
from gateway.tools.waiting import ChildWaits, DeniedInside
from gateway.verdicts import subagent_ended, subagent_refused, with_session

POLL = 0.2  # seconds between two looks at a conversation that another process goes on with
MOST_PARTS = 10  # files and pictures that come back with the words


class Runs(Protocol):
    """Who runs the turns of this process."""

    @property
    def draining(self) -> bool: ...

    def start(self, claim: Claim) -> object: ...

    def wake(self, session_id: str) -> None: ...

    def cancel(self, session_id: str, reason: str) -> bool: ...

    async def settled(self, session_id: str) -> None: ...


class Children:
    """See gateway.tools.base.Subagents."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runs: Runs,
        agents: Mapping[str, Agent],
        claim: Claim,
        token: CancelToken,
    ) -> None:
        """`claim`, `token`: of the turn that calls."""
        self._store, self._clock, self._runs, self._agents = store, clock, runs, agents
        self._claim, self._token = claim, token
        self._begun: set[str] = set()

    async def call(self, order: SubagentCall) -> ToolOutput:
        """Begin the conversation, or go on waiting for it."""
        caller = self._agents[self._claim.agent]
        root = await self._root_agent(caller)
        beginning = asyncio.ensure_future(self._begin(order, root, caller))
        try:
            begun = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            beginning.add_done_callback(self._begun_too_late)
            raise
        if begun.refused:
            return ToolOutput(text=_why_not(begun.refused, order, root, caller), is_error=True)
        child = begun.session_id
        self._begun.add(child)
        if begun.claim is not None:
            self._runs.start(begun.claim)
        try:
            state = await self._end_of(child)
        except asyncio.CancelledError:
            if self._token.cancelled:  # at once; the end of our own step would come to it as well
                self._runs.cancel(child, self._token.reason)
            raise
        return await self._told(order, child, state)

    def _begun_too_late(self, beginning: asyncio.Future[ChildBegun]) -> None:
        """We were stopped while the conversation was written down. It is ours, and ends as it begins."""
        if beginning.cancelled() or beginning.exception() is not None or self._runs.draining:
            return
        claim = beginning.result().claim
        if claim is not None and self._token.cancelled:
            self._runs.start(claim)
            self._runs.cancel(claim.lease.session_id, self._token.reason)

    def let_go(self) -> None:
        """The turn has ended: nobody waits for what still runs."""
        for child in self._begun:
            self._runs.cancel(child, "its caller has ended")

    async def _begin(self, order: SubagentCall, root: Agent, caller: Agent) -> ChildBegun:
        return await self._store.begin_child(
            ChildOrder(
                lease=self._claim.lease,
                call_id=order.call_id,
                agent=order.agent,
                text=order.text,
                session=order.conversation,
                only=order.only,
                max_depth=root.max_depth,
                max_children=caller.max_children,
                max_calls=root.max_subagent_calls,
                rate=root.subagent_rate,
                at=self._clock.now(),
            )
        )

    async def _root_agent(self, caller: Agent) -> Agent:
        """The agent of the outermost session, whose limits hold for the whole tree."""
        view = await self._store.session(self._claim.root) if self._claim.root else None
        return self._agents.get(view.agent, caller) if view is not None else caller

    async def _end_of(self, child: str) -> ChildState:
        """How the conversation ended. Raises ChildWaits."""
        while True:
            for _ in range(2):
                await self._runs.settled(child)
                state = await self._store.child_state(child)
                if state is None:
                    raise ToolError("the conversation with the subagent is gone")
                if state.ended:
                    return state
                if state.waits:
                    raise ChildWaits(child, state.waits)
                # What a crash or a stop has left is ours to take up, unless another process is at it.
                self._runs.wake(child)
            await asyncio.sleep(POLL)

    async def _told(self, order: SubagentCall, child: str, state: ChildState) -> ToolOutput:
        """What the caller's model reads. Raises DeniedInside."""
        match Outcome(state.outcome):
            case Outcome.COMPLETED:
                parts = await self._parts(child, order.call_id)
                return ToolOutput(text=with_session(state.text, child), parts=parts)
            case Outcome.DENIED:
                raise DeniedInside(state.detail)
            case outcome:
                text = subagent_ended(order.agent, outcome.status, state.detail, state.text)
                return ToolOutput(text=with_session(text, child), is_error=True)

    async def _parts(self, child: str, call_id: str) -> tuple[Image | File, ...]:
        """The files and pictures that its tools have made for this call."""
        turn_id = await self._store.turn_of_message(child, call_id)
        turn = await self._store.turn(turn_id) if turn_id is not None else None
        log = await self._store.log(child, turn.first_seq) if turn is not None else []
        parts = {part.path: part for message in log for r in message.results for part in r.parts}
        return tuple(parts.values())[:MOST_PARTS]


def _why_not(why: ChildRefusal, order: SubagentCall, root: Agent, caller: Agent) -> str:
    """Which limit, as the model reads it, with the key in the configuration."""
    limits: dict[ChildRefusal, tuple[str, int]] = {
        "depth": (f"agents.{root.name}.max_depth", root.max_depth),
        "children": (f"agents.{caller.name}.max_children", caller.max_children),
        "calls": (f"agents.{root.name}.max_subagent_calls", root.max_subagent_calls),
        "rate": (f"agents.{root.name}.subagent_rate", root.subagent_rate),
    }
    key, limit = limits.get(why, ("", 0))
    return subagent_refused(why, key=key, limit=limit, agent=order.agent, session=order.conversation)
