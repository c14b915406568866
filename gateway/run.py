"""One run of the loop: the moving parts that `_run_loop` would otherwise carry in a dozen names.

Each method is one phase of a step (guard, reason, bucket, act, observe) or one way to end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, TypeVar

import msgspec

from gateway.approvals import KnownCall, Pending, Resolution, TurnCheckpoint, settle
from gateway.bucket import Buckets, Circumstances, asked_by_call, refuse_all, sort_calls
from gateway.budget import Budget, Meter
from gateway.cancel import Stopped
from gateway.errors import IntelligenceUnavailable, ModelError, ModelRejected
from gateway.events import (
    AssistantDelta,
    AssistantText,
    BudgetCheck,
    Compacted,
    LoopDenied,
    LoopDone,
    LoopMaxTurns,
    LoopPendingApproval,
    LoopPendingQuestion,
    LoopStopped,
    ToolFinished,
)
from gateway.history import unique_ids
from gateway.journal import Ready
from gateway.markers import estimate
from gateway.messages import Message, Text, Thinking, ToolResult, ToolUse, tool_results
from gateway.options import Approver, LoopInput, RunResult
from gateway.outcome import Outcome
from gateway.patterns import in_circles
from gateway.providers.base import Model, ModelRequest, ModelResponse, ToolSpec, Usage
from gateway.silence import HeldBack, silent, with_silence
from gateway.squeeze import squeeze
from gateway.tools.lanes import LaneContext, run_lanes
from gateway.tools.waiting import ChildWaits, NeedsAnswer
from gateway.toolset import toolset
from gateway.verdicts import SKIPPED, STOPPED

T = TypeVar("T")

COMPACT_AT = 0.8  # share of the context window at which old history is cut
MAX_COMPACTIONS = 2  # attempts in one turn
MAX_CUTS = 2  # retries after a reply was cut at the output limit
TIME_IS_UP = "the time for this turn is used up"
UNANSWERED = "no model answered: {error}"
REFUSED = "the model does not take the request: {error}"
TOO_LONG = "the conversation is too long for the model and could not be cut further; /new begins a fresh one"
CUT_RESULT = "not run: the reply was cut at the output limit. Write a shorter call, or several."


class Run:
    """The moving parts of one run: what `_run_loop` would otherwise carry in a dozen names."""

    def __init__(self, given: LoopInput, before: int) -> None:
        self.agent, self.model, self.options = given.agent, given.model, given.options
        self.transcript, self._before = given.transcript, before
        self._gate = given.options.gate or given.agent.gate
        self.emit, self._clock = given.options.on_event, given.options.clock
        budget = Budget(
            max_steps=self.agent.max_steps, max_tokens=self.agent.max_tokens, deadline=self.agent.deadline
        )
        self.meter = Meter(budget, self.options.spent, self._clock.monotonic())
        self.usage = Usage()
        self.tools, self._specs, self._beside = toolset(self.agent)
        self.closing: tuple[Outcome, str] | None = None
        self._cut = self._grown = False
        self._held = HeldBack(self.agent.silence)

    @property
    def cancelled(self) -> bool:
        return self.options.cancel.cancelled

    # ---- guards

    def guard(self) -> tuple[Outcome, str] | None:
        """The first reason not to take another step, in the promised order."""
        if self.cancelled:
            return Outcome.CANCELLED, self.options.cancel.reason
        match self.meter.exhausted(self._clock.monotonic()):
            case "deadline":
                return Outcome.DEADLINE, TIME_IS_UP
            case "steps":
                return Outcome.MAX_TURNS, f"{self.meter.steps} steps are used up"
            case "tokens":
                return Outcome.EXHAUSTED_TOKENS, f"{self.meter.tokens} tokens are used up"
            case None:
                return None

    # ---- reason

    async def reason(self) -> Message | RunResult:
        """One model call: the reply, or the end of the turn. Raises Stopped."""
        self.tools, self._specs, self._beside = toolset(self.agent)
        self._emit_budget()
        self._grown = False
        self._held.anew()
        await self._compact_if_near_the_window()
        response = await self._complete()
        if response.stop != "refusal" and not _useful(response):
            self._delta("")
            response = await self._complete()  # one quiet retry
        self.meter.steps += 1
        if response.stop == "refusal":
            return self._refused(response)
        if not _useful(response):
            return self.stopped(Outcome.STALLED, "the model gave no answer")
        self._cut = response.stop == "length"
        blocks = tuple(b for b in response.content if not (isinstance(b, Text) and not b.text.strip()))
        reply = unique_ids(
            Message(role="assistant", content=blocks, model=response.model or self.model.id),
            self.transcript.call_ids,
        )
        if reply.text and not silent(reply.text, self.agent.silence):
            self.emit(AssistantText(text=reply.text))
        return reply

    def _emit_budget(self) -> None:
        budget, now = self.meter.budget, self._clock.monotonic()
        self.emit(
            BudgetCheck(
                step=self.meter.steps + 1,
                max_steps=budget.max_steps,
                tokens=self.meter.tokens,
                max_tokens=budget.max_tokens,
                seconds=round(self.meter.seconds(now), 3),
                deadline=budget.deadline,
            )
        )

    async def _complete(self) -> ModelResponse:
        """Ask the model; when the request is too long, cut and ask again."""
        while True:
            try:
                response = await self._ask(self.transcript.visible(), self._specs, stream=True)
                self.transcript.measured(response.usage.input)
                return response
            except ModelRejected as error:
                if not error.context_too_long:
                    raise IntelligenceUnavailable(REFUSED.format(error=error)) from error
                if not await self._compact("too_long"):
                    raise IntelligenceUnavailable(TOO_LONG) from error
            except ModelError as error:
                raise IntelligenceUnavailable(UNANSWERED.format(error=error)) from error

    async def _ask(
        self,
        messages: Sequence[Message],
        specs: tuple[ToolSpec, ...],
        *,
        stream: bool,
        model: Model | None = None,
    ) -> ModelResponse:
        request = ModelRequest(
            system=with_silence(self.agent.system_prompt, self.agent.silence),
            messages=messages,
            tools=specs,
            max_output_tokens=self.agent.max_output_tokens,
            session_id=self.options.session_id,
        )
        async with self.options.cancel.within(self.meter.left(self._clock.monotonic())):
            response = await (model or self.model).complete(request, self._delta if stream else None)
        self.usage += response.usage
        self.meter.tokens += response.usage.total
        return response

    def _delta(self, text: str) -> None:
        """A piece of the growing reply; none: it begins anew."""
        if not text:
            self._held.anew()
            if self._grown:
                self.emit(AssistantDelta(text=""))
            self._grown = False
        elif shown := self._held.shown(text):
            self.emit(AssistantDelta(text=shown))
            self._grown = True

    def _refused(self, response: ModelResponse) -> RunResult:
        text = "".join(b.text for b in response.content if isinstance(b, Text)).strip()
        text = "" if silent(text, self.agent.silence) else text
        if text:
            self.emit(AssistantText(text=text))
            self.transcript.append(
                Message(role="assistant", content=(Text(text=text),), model=response.model or self.model.id)
            )
        return self.stopped(Outcome.REFUSED, text or "the model declined to answer", text=text)

    # ---- compaction

    async def _compact_if_near_the_window(self) -> None:
        if self.transcript.tokens(self._beside) > COMPACT_AT * self.agent.context_window:
            await self._compact("window")

    async def _compact(self, reason: Literal["window", "too_long"]) -> bool:
        """Append markers that shrink what the model sees; False when nothing more can go."""
        if self.meter.compactions >= MAX_COMPACTIONS:
            return False
        before, asked = self.transcript.tokens(self._beside), False

        async def summarise(messages: Sequence[Message]) -> str | None:
            nonlocal asked
            asked = True
            try:
                return await self._sum_up(messages)
            except (ModelError, IntelligenceUnavailable):
                return None

        target = int(0.6 * self.agent.context_window) if reason == "window" else before // 2
        seen = estimate(self.transcript.visible())
        room = int(COMPACT_AT * 4 * self.agent.context_window)
        squeezed = await squeeze(
            self.transcript.log, target * seen // max(1, before), summarise, room=min(room, 2 * 4 * before)
        )
        if squeezed is not None or asked:  # finding nothing to cut costs nothing and is no attempt
            self.meter.compactions += 1
        if squeezed is None:
            return False
        for marker in squeezed.markers:
            await self.options.journal.marker(marker)
            self.transcript.append(marker)
        after = self.transcript.tokens(self._beside)
        self.emit(Compacted(reason=reason, before=before, after=after, how=squeezed.how))
        return True

    async def _sum_up(self, messages: Sequence[Message]) -> str | None:
        model = self.options.summary_model or self.model
        response = await self._ask(messages, (), stream=False, model=model)
        text = "".join(b.text for b in response.content if isinstance(b, Text)).strip()
        return None if silent(text, self.agent.silence) else text or None

    # ---- act

    async def bucket(self, batch: Message, known: Mapping[str, KnownCall]) -> Buckets:
        """Sort the calls, write the new ones down, ask a person who is at hand."""
        fresh = not known
        if fresh:
            self.closing = self._why_stop_before_acting(batch)
        if self.closing is not None or (fresh and self._cut):
            reason = CUT_RESULT if self.closing is None else f"not run: {self.closing[1]}"
            buckets = refuse_all(batch.calls, reason, self.tools)
            await self.options.journal.assistant(batch, buckets.rows)
            return buckets
        at, buckets = await self._sorted(batch, known)
        if fresh:
            await self.options.journal.assistant(batch, buckets.rows)
        for decision in buckets.decisions:
            self.emit(decision)
        if self.options.approver is not None and buckets.waiting and self.closed_by(buckets) is None:
            return await self._ask_at_hand(self.options.approver, batch, buckets, at)
        return buckets

    async def _sorted(self, batch: Message, known: Mapping[str, KnownCall]) -> tuple[Circumstances, Buckets]:
        """The calls of a step by what may become of them. A grant that was revoked while the turn runs lets
        nothing run."""
        while True:
            at = self._circumstances()
            buckets = sort_calls(batch.calls, known, at)
            used = {ready.grant for ready in buckets.run if ready.grant}
            revoked = await self.options.journal.revoked(sorted(used)) if used else ()
            if not revoked:
                return at, buckets
            left = tuple(grant for grant in at.gate.grants if grant.id not in revoked)
            self._gate = replace(at.gate, grants=left)

    def _circumstances(self) -> Circumstances:
        return Circumstances(
            agent=self.agent,
            tools=self.tools,
            gate=self._gate,
            scope=self.options.scope,
            session_id=self.options.session_id,
            now=self._clock.now(),
        )

    def _why_stop_before_acting(self, batch: Message) -> tuple[Outcome, str] | None:
        if self._cut:
            self.meter.output_cuts += 1
            if self.meter.output_cuts > MAX_CUTS:
                return Outcome.STALLED, "the model's reply was cut at the output limit again and again"
            return None
        return in_circles(self.transcript.log, self.agent.stall_after, self.agent.loop_limit)

    async def _ask_at_hand(
        self, approver: Approver, batch: Message, buckets: Buckets, at: Circumstances
    ) -> Buckets:
        """The same step, sorted again with what a person said about the calls that wait."""
        decided = {p.call_id: KnownCall(state="waiting", pending=p) for p in buckets.waiting}
        said: Mapping[str, Resolution | None] = {}
        if len(buckets.waiting) > 1:
            said = await self._at_hand(partial(approver.decide_together, buckets.waiting)) or {}
        stopped = False  # by a denial: nothing more is asked, but what was said about all calls holds
        for pending in buckets.waiting:
            resolution = said.get(pending.pending_id)
            if pending.pending_id not in said and not stopped:
                resolution = await self._at_hand(partial(approver.decide, pending))
            if self.cancelled:
                break
            if resolution is None:
                continue
            known = decided[pending.call_id] = settle(pending, resolution, self.options.approver_name)
            stopped = stopped or (known.state == "denied" and self.agent.on_denial == "stop")
        place = {call.id: number for number, call in enumerate(batch.calls)}
        asked = sort_calls([call for call in batch.calls if call.id in decided], decided, at)
        for decision in asked.decisions:
            self.emit(decision)
        return Buckets(
            run=sorted([*buckets.run, *asked.run], key=lambda ready: place[ready.call.id]),
            settled={**buckets.settled, **asked.settled},
            waiting=asked.waiting,
            news=[*buckets.news, *asked.news],
            denied=asked.denied or buckets.denied,
        )

    async def _at_hand(self, ask: Callable[[], Awaitable[T]]) -> T | None:
        """A person's word, None when the turn is stopped meanwhile. The time that it takes does not count."""
        began = self._clock.monotonic()
        try:
            async with self.options.cancel.within(None):
                return await ask()
        except Stopped:
            return None
        finally:
            self.meter.waited(self._clock.monotonic() - began)

    def closed_by(self, buckets: Buckets) -> str | None:
        """The denial that ends this step, and with it the turn; None when nothing does."""
        return buckets.denied if self.agent.on_denial == "stop" else None

    async def act(self, calls: Sequence[ToolUse], buckets: Buckets) -> dict[str, ToolResult]:
        """Run what may run, whatever else is waiting; after a denial nothing more runs."""
        for call in calls:
            if call.id in buckets.news:
                self._tell(call, buckets.settled[call.id])
        if self.closed_by(buckets) is not None:
            return {}
        results: dict[str, ToolResult] = {}
        ready: Sequence[Ready] = buckets.run
        while ready:
            context = LaneContext(
                session_id=self.options.session_id,
                turn_id=self.options.turn_id,
                journal=self.options.journal,
                emit=self.emit,
                cancel=self.options.cancel,
                left=lambda: self.meter.left(self._clock.monotonic()),
                whole=self._whole,
                subagents=self.options.subagents,
                until_denied=self.agent.on_denial == "stop",
            )
            results |= await run_lanes(ready, context)
            if context.denied:
                buckets.denied = context.denied[0]
            ready = await self._waits(ready, context, buckets)
        return results

    async def _waits(self, ready: Sequence[Ready], context: LaneContext, buckets: Buckets) -> Sequence[Ready]:
        """Note what calls wait for; those that a person at hand could help at once, to run again."""
        again = []
        for one in ready:
            match context.waits.get(one.call.id):
                case NeedsAnswer(question=question, key=key):
                    pending = asked_by_call(one, question, key, self._circumstances())
                    answered = await self._answer_at_hand(one, pending)
                    if answered is None:
                        buckets.waiting.append(pending)
                    else:
                        again.append(answered)
                case ChildWaits(session_id=child, pendings=pendings):
                    buckets.waiting += [
                        msgspec.structs.replace(p, call_id=one.call.id, session=p.session or child)
                        for p in pendings
                    ]
        return again

    async def _answer_at_hand(self, ready: Ready, pending: Pending) -> Ready | None:
        """The call with its question answered; None when nobody is at hand, or says nothing."""
        if self.options.approver is None or self.closing is not None:
            return None
        resolution = await self._at_hand(partial(self.options.approver.decide, pending))
        if resolution is None:
            return None
        known = settle(pending, resolution, self.options.approver_name)
        return replace(ready, said={**ready.said, **known.said})

    async def _whole(self, call_id: str) -> str | None:
        """The text of an earlier result: one that was capped, or left out to save room."""
        if (full := await self.options.journal.full_result(call_id)) is not None:
            return full
        result = self.transcript.result(call_id)
        return None if result is None else result.content

    # ---- observe

    async def observe(
        self, calls: Sequence[ToolUse], buckets: Buckets, results: Mapping[str, ToolResult]
    ) -> None:
        """Exactly one result per call, in call order, in one message."""
        missing = STOPPED if self.closed_by(buckets) is None else SKIPPED
        have = {**buckets.settled, **results}
        for call in calls:
            if call.id not in have:
                have[call.id] = ToolResult(tool_use_id=call.id, content=missing, is_error=True)
                self._tell(call, have[call.id])
        message = tool_results([have[call.id] for call in calls])
        self.transcript.append(message)
        final = self.closing is not None or self.closed_by(buckets) is not None or self.cancelled
        for said in await self.options.journal.results(message, final=final):
            self.transcript.append(said)

    def _tell(self, call: ToolUse, result: ToolResult) -> None:
        """The result of a call that did not run just now."""
        self.emit(
            ToolFinished(call_id=call.id, tool=call.name, content=result.content, is_error=result.is_error)
        )

    # ---- ends

    def done(self, reply: Message) -> RunResult:
        """The text is the answer."""
        self.transcript.append(reply)
        if silent(reply.text, self.agent.silence):
            self.emit(LoopDone(text="", steps=self.meter.steps, tokens=self.meter.tokens))
            return replace(self._result(Outcome.COMPLETED), silent=True)
        self.emit(LoopDone(text=reply.text, steps=self.meter.steps, tokens=self.meter.tokens))
        detail = "the answer was cut at the output limit" if self._cut else ""
        return self._result(Outcome.COMPLETED, text=reply.text, detail=detail)

    def denied(self, reason: str) -> RunResult:
        """A person said no."""
        self.emit(LoopDenied(reason=reason, steps=self.meter.steps, tokens=self.meter.tokens))
        return self._result(Outcome.DENIED, detail=reason)

    def pending(self, buckets: Buckets, results: Mapping[str, ToolResult]) -> RunResult:
        """The step is incomplete and stays out of the log; the checkpoint carries it."""
        ids = [pending.pending_id for pending in buckets.waiting]
        approval = any(pending.kind == "approval" for pending in buckets.waiting)
        event = LoopPendingApproval if approval else LoopPendingQuestion
        self.emit(event(pending=ids, steps=self.meter.steps, tokens=self.meter.tokens))
        checkpoint = TurnCheckpoint(
            results_so_far={**buckets.settled, **results},
            outstanding={pending.pending_id: pending for pending in buckets.waiting},
            spent=self.meter.spent(self._clock.monotonic()),
        )
        outcome = Outcome.PENDING_APPROVAL if approval else Outcome.PENDING_QUESTION
        return self._result(outcome, pending=checkpoint)

    def stopped(self, outcome: Outcome, detail: str = "", text: str = "") -> RunResult:
        """Every other end."""
        steps, tokens = self.meter.steps, self.meter.tokens
        if outcome is Outcome.CANCELLED:
            detail = detail or self.options.cancel.reason
        elif outcome is Outcome.DEADLINE:
            detail = detail or TIME_IS_UP
        if outcome is Outcome.MAX_TURNS:
            self.emit(LoopMaxTurns(steps=steps, tokens=tokens))
        else:
            self.emit(LoopStopped(outcome=outcome.value, detail=detail, steps=steps, tokens=tokens))
        return self._result(outcome, detail=detail, text=text)

    def _result(
        self, outcome: Outcome, *, text: str = "", detail: str = "", pending: TurnCheckpoint | None = None
    ) -> RunResult:
        return RunResult(
            outcome=outcome,
            text=text,
            messages=tuple(self.transcript.log[self._before :]),
            pending=pending,
            spent=self.meter.spent(self._clock.monotonic()),
            usage=self.usage,
            detail=detail,
        )


def _useful(response: ModelResponse) -> bool:
    if response.stop == "malformed":
        return False
    return any(
        isinstance(block, ToolUse) or (isinstance(block, Text) and block.text.strip())
        for block in response.content
        if not isinstance(block, Thinking)
    )
