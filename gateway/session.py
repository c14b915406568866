"""The warm form of a conversation. Pure: what is durable goes through the journal in the options."""

from __future__ import annotations

from gateway.agent import Agent
from gateway.history import Transcript
from gateway.loop import resume_agent, run_agent
from gateway.messages import Message, user
from gateway.options import LoopOptions, LoopSession, RunResult
from gateway.providers.base import Model


class Session:
    """The warm form of a conversation: one transcript, many turns."""

    def __init__(
        self,
        agent: Agent,
        model: Model,
        transcript: Transcript | None = None,
        *,
        summary_model: Model | None = None,
    ) -> None:
        self.agent, self.model, self.summary_model = agent, model, summary_model
        self.transcript = transcript if transcript is not None else Transcript()
        self._waiting: list[Message] = []

    def deliver(self, text: str | Message) -> None:
        """Append the next event: what the next turn answers."""
        self._waiting.append(user(text) if isinstance(text, str) else text)

    async def run_turn(self, options: LoopOptions | None = None) -> RunResult:
        """Run the loop over the same transcript. Raises ValueError when nothing was delivered."""
        if not self._waiting:
            raise ValueError("nothing was delivered: there is no turn to run")
        message = self._waiting.pop(0)
        return await run_agent(self.agent, self.model, message, self.transcript, options=options)

    async def resume(self, options: LoopOptions) -> RunResult:
        """Go on with the step that is open, or with a turn that was cut off."""
        return await resume_agent(self.agent, self.model, self.transcript, (), options=options)


async def inline(session: LoopSession, message: Message | None, options: LoopOptions) -> RunResult:
    """Run the loop here. See LoopRunner."""
    if message is None:
        return await resume_agent(session.agent, session.model, session.transcript, (), options=options)
    return await run_agent(session.agent, session.model, message, session.transcript, options=options)
