"""Bucket first, then execute: every call of a step goes into one of run / settled / waiting.

Nothing runs while this looks, so the order in which a model wrote its calls cannot matter. Pure:
what is already known of a call (after a stop, a decision or a crash) comes in as `KnownCall`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from gateway.agent import Agent
from gateway.approvals import KnownCall, Pending, new_code
from gateway.events import Decided
from gateway.gate import Decision, Gate, Scope
from gateway.journal import CallRow, Ready
from gateway.messages import ToolResult, ToolUse, call_hash, new_id
from gateway.questions import GIVE_UP, RUN_AGAIN, TREAT_AS_DONE, Option, Question
from gateway.tools.base import MASK, Tool, full_name, hidden_texts
from gateway.tools.system import read_question
from gateway.verdicts import INTERRUPTED, reads

_CHANGED = "the arguments are no longer those that were decided on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the decision about a call may depend on, besides the call. `now`: Unix seconds."""

    agent: Agent
    tools: Mapping[str, Tool]
    gate: Gate
    scope: Scope
    session_id: str
    now: float


@dataclass(slots=True, kw_only=True)
class Buckets:
    """A step, sorted. `denied`: a person refused one of the calls. `news`: settled calls, by id,
    that watchers have not been told of yet."""

    run: list[Ready] = field(default_factory=list)
    settled: dict[str, ToolResult] = field(default_factory=dict)
    waiting: list[Pending] = field(default_factory=list)
    rows: list[CallRow] = field(default_factory=list)
    decisions: list[Decided] = field(default_factory=list)
    news: list[str] = field(default_factory=list)
    denied: str | None = None


def sort_calls(calls: Sequence[ToolUse], known: Mapping[str, KnownCall], at: Circumstances) -> Buckets:
    """Sort one step's calls. The rows are those not yet written down."""
    buckets = Buckets()
    for written in calls:
        call = _as_meant(written, at.tools)
        if call.id in known:
            _go_on(call, known[call.id], at, buckets)
        else:
            _decide(call, at, buckets)
    return buckets


def _as_meant(call: ToolUse, tools: Mapping[str, Tool]) -> ToolUse:
    """The call under the tool's full name, which rules, cards and records know."""
    name = full_name(call.name, tools)
    return call if name == call.name else msgspec.structs.replace(call, name=name)


def refuse_all(calls: Sequence[ToolUse], reason: str, tools: Mapping[str, Tool]) -> Buckets:
    """A step of which nothing may run, and why, as the model reads it."""
    buckets = Buckets()
    for call in calls:
        result = ToolResult(tool_use_id=call.id, content=reason, is_error=True)
        _settle(call, result, buckets, news=True)
        buckets.rows.append(_row(call, call.input, "", "refused", tools.get(call.name), result))
    return buckets


def _go_on(call: ToolUse, known: KnownCall, at: Circumstances, buckets: Buckets) -> None:
    match known.state:
        case "undecided":
            _decide(call, at, buckets)
        case "done" | "denied":
            if known.result is None:
                raise ValueError(f"call {call.id} is {known.state} without a result")
            _settle(call, known.result, buckets, news=known.news)
            if known.state == "denied":
                buckets.denied = known.result.content
        case "waiting":
            if known.pending is None:
                raise ValueError(f"call {call.id} waits without a pending")
            buckets.waiting.append(known.pending)
        case "allowed" | "started":
            _carry_on(call, known, at, buckets)
        case _:
            assert_never(known.state)


def _settle(call: ToolUse, result: ToolResult, buckets: Buckets, *, news: bool) -> None:
    buckets.settled[call.id] = result
    if news:
        buckets.news.append(call.id)


def _carry_on(call: ToolUse, known: KnownCall, at: Circumstances, buckets: Buckets) -> None:
    """A call that was allowed, and perhaps begun, before the program or the turn stopped."""
    tool = at.tools.get(call.name)
    begun = known.state == "started"
    if tool is None and begun:
        _settle(call, _interrupted(call), buckets, news=True)
    elif tool is None:
        _refuse(call, f"the tool {call.name!r} is no longer available", "invalid", at, buckets)
    elif begun and not (tool.safe or tool.idempotent):
        _unknown_outcome(call, tool, known, at, buckets)
    else:
        _run_approved(call, tool, known, at, buckets)


def _run_approved(call: ToolUse, tool: Tool, known: KnownCall, at: Circumstances, buckets: Buckets) -> None:
    """What runs is exactly what was decided: same tool, same arguments, still fitting the schema."""
    args = tool.canonical(known.args if known.args is not None else call.input)
    digest = call_hash(tool.name, args)
    problems = tool.problems(args)
    if problems:
        text = "invalid arguments: " + "; ".join(problems)
        _refuse(call, text, "invalid", at, buckets)
    elif known.args_hash and known.args_hash != digest:
        _judge(call, tool, args, at, buckets, changed=True)
    else:
        rule = at.gate.evaluate(tool.name, args, at.scope, session_id=at.session_id, now=at.now)
        buckets.run.append(
            Ready(
                call=call,
                tool=tool,
                args=args,
                args_hash=digest,
                note=known.note,
                approved=True,
                said=known.said,
                redact=rule.redact,
                grant=rule.grant,
            )
        )


def _unknown_outcome(
    call: ToolUse, tool: Tool, known: KnownCall, at: Circumstances, buckets: Buckets
) -> None:
    if at.agent.on_unknown == "report":
        _settle(call, _interrupted(call), buckets, news=True)
        return
    args = known.args if known.args is not None else tool.canonical(call.input)
    question = Question(
        text=f"The program stopped while {call.name} was running. Nobody knows whether it took effect.",
        options=(
            Option(label=RUN_AGAIN, description="run the same call once more"),
            Option(
                label=TREAT_AS_DONE, description="it did take effect; go on, perhaps with what it came to"
            ),
            Option(label=GIVE_UP, description="do not run it; the agent is told"),
        ),
        allow_text=False,
        about="unknown",
    )
    buckets.waiting.append(_pending(call, tool, args, question, None, at))


def _interrupted(call: ToolUse) -> ToolResult:
    return ToolResult(tool_use_id=call.id, content=INTERRUPTED, is_error=True)


def _decide(call: ToolUse, at: Circumstances, buckets: Buckets) -> None:
    tool = at.tools.get(call.name)
    if call.invalid is not None:
        return _refuse(call, f"invalid JSON arguments: {call.invalid}", "invalid", at, buckets)
    if tool is None:
        offered = ", ".join(sorted(at.tools)) or "none"
        return _refuse(call, f"there is no tool {call.name!r}; available: {offered}", "invalid", at, buckets)
    problems = tool.problems(call.input)
    if problems:
        return _refuse(call, "invalid arguments: " + "; ".join(problems), "invalid", at, buckets)
    return _judge(call, tool, tool.canonical(call.input), at, buckets)


def _judge(
    call: ToolUse,
    tool: Tool,
    args: dict[str, object],
    at: Circumstances,
    buckets: Buckets,
    *,
    changed: bool = False,
) -> None:
    """The gate's word on valid arguments. `changed`: they are not those that were decided on
    before, so that a person has to look again, whatever the rules allow."""
    decision = at.gate.evaluate(tool.name, args, at.scope, session_id=at.session_id, now=at.now)
    if tool.system and decision.rule == "default":
        decision = Decision(verdict="allow", reason="built-in tool", rule="built-in")
    if tool.unasked and decision.rule == "default" and decision.verdict == "ask":
        decision = Decision(verdict="allow", reason="reads only", rule="reads only")
    if changed and decision.verdict == "allow":
        decision = Decision(verdict="ask", reason=_CHANGED, rule=decision.rule, redact=decision.redact)
    if decision.verdict == "deny":
        text = reads("denied_by_rule", reason=decision.reason)
        return _refuse(call, text, "deny", at, buckets, decision.rule)
    if tool.system == "ask_user":
        return _ask(call, tool, args, decision, at, buckets)
    digest = call_hash(tool.name, args)
    buckets.decisions.append(_said(call, decision.verdict, decision.reason, decision.rule))
    if decision.verdict == "allow":
        buckets.run.append(
            Ready(
                call=call,
                tool=tool,
                args=args,
                args_hash=digest,
                redact=decision.redact,
                grant=decision.grant,
            )
        )
        buckets.rows.append(_row(call, args, digest, "allowed", tool))
    else:
        buckets.waiting.append(_pending(call, tool, args, None, decision, at))
        buckets.rows.append(_row(call, args, digest, "waiting", tool))
    return None


def _ask(
    call: ToolUse,
    tool: Tool,
    args: dict[str, object],
    decision: Decision,
    at: Circumstances,
    buckets: Buckets,
) -> None:
    question = read_question(args)
    if isinstance(question, str):
        return _refuse(call, f"invalid arguments: {question}", "invalid", at, buckets)
    buckets.decisions.append(_said(call, "ask", "a question for a person", decision.rule))
    buckets.waiting.append(_pending(call, tool, args, question, decision, at))
    buckets.rows.append(_row(call, args, call_hash(tool.name, args), "waiting", tool))
    return None


def _refuse(
    call: ToolUse, text: str, verdict: str, at: Circumstances, buckets: Buckets, rule: str = ""
) -> None:
    result = ToolResult(tool_use_id=call.id, content=text, is_error=True)
    _settle(call, result, buckets, news=True)
    buckets.decisions.append(_said(call, "deny" if verdict == "deny" else "invalid", text, rule))
    tool = at.tools.get(call.name)
    buckets.rows.append(_row(call, call.input, "", "refused", tool, result))


def _said(call: ToolUse, verdict: str, reason: str, rule: str) -> Decided:
    return Decided(call_id=call.id, tool=call.name, decision=verdict, reason=reason, rule=rule)  # type: ignore[arg-type]


def _row(
    call: ToolUse,
    args: dict[str, object],
    digest: str,
    state: str,
    tool: Tool | None,
    result: ToolResult | None = None,
) -> CallRow:
    repeatable = tool is not None and (tool.safe or tool.idempotent)
    return CallRow(
        call=call,
        args=args,
        args_hash=digest,
        state=state,  # type: ignore[arg-type]
        repeatable=repeatable,
        result=result,
    )


def _pending(
    call: ToolUse,
    tool: Tool,
    args: dict[str, object],
    question: Question | None,
    decision: Decision | None,
    at: Circumstances,
) -> Pending:
    expires = decision.expires if decision is not None else None
    secret = tuple(sorted(tool.secret | set(decision.redact if decision is not None else ())))
    shown = tool.previewed(args, at.session_id)
    return Pending(
        pending_id=new_id("p"),
        kind="question" if question is not None else "approval",
        call_id=call.id,
        tool=tool.name,
        args=args,
        args_hash=call_hash(tool.name, args),
        code=new_code(),
        reason=decision.reason if decision is not None else "",
        rule=decision.rule if decision is not None else "",
        approvers=decision.approvers if decision is not None else (),
        notify=decision.notify if decision is not None else (),
        expires_at=None if expires is None else at.now + expires,
        quorum=decision.quorum if decision is not None else 1,
        four_eyes=decision.four_eyes if decision is not None else False,
        secret=secret,
        preview=_safe(shown.text, args, secret),
        preview_kind=shown.kind,
        preview_image=shown.image,
        reveal=decision.reveal if decision is not None else "everyone",
        schema=tool.input_schema,
        question=question,
        requested_at=at.now,
        remind=decision.remind if decision is not None else (),
        escalate=decision.escalate if decision is not None else None,
        quiet=decision.quiet if decision is not None else None,
    )


def asked_by_call(ready: Ready, question: Question, key: str, at: Circumstances) -> Pending:
    """What a running call has to ask before it can go on."""
    question = msgspec.structs.replace(question, about="call", key=key)
    return _pending(ready.call, ready.tool, dict(ready.args), question, None, at)


def _safe(text: str, args: dict[str, object], secret: Sequence[str]) -> str:
    """The author's preview, without the secret values that it may repeat."""
    for value in hidden_texts(args, secret):
        text = text.replace(value, MASK)
    return text
