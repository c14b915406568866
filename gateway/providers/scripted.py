"""The offline model: it says what its script says. For the demo, for tests, for a first look.

What it replies is a function of the request alone: the position in the script is read off the
history (for rules: the assistant messages since the person last spoke; for a flat list: all of
them). So a gateway that dies in the middle of a turn and comes back gets the reply it would have
got. Only failures with `times` count attempts, in this process.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from gateway.clock import Clock, SystemClock
from gateway.errors import ModelAuthError, ModelError, ModelOverloaded, ModelRateLimited, ModelRejected
from gateway.messages import ENCODER, Block, Message, Text, Thinking, ToolUse
from gateway.providers.arguments import CUT_AT_LIMIT, parse_arguments
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta, StopReason, Usage
from gateway.providers.memo import IdentityMemo
from gateway.providers.script import Call, Failure, Reply, Rule, Script, load_script, parse_script
from gateway.providers.templates import Scope, Unresolved, fill, fill_text, results_of

__all__ = ["Call", "Reply", "ReplyLike", "Rule", "Script", "ScriptedModel", "load_script", "parse_script"]

ReplyLike = Reply | Mapping[str, Any] | str
ScriptLike = Script | Sequence[ReplyLike] | Mapping[str, Any] | Callable[[ModelRequest], ReplyLike]


class ScriptedModel:
    """A `Model` that follows a script.

    script: a Script (see `load_script`), a flat sequence of replies, a mapping with `rules` or
    `replies`, or a function of the request. A reply is a Reply, a mapping of its fields, or just
    the text. What a function returns is taken as it is: no templates.
    chunk: characters per delta. delay: seconds between deltas. Raises ConfigError for a bad script.
    """

    def __init__(
        self,
        script: ScriptLike,
        *,
        id: str = "scripted",
        chunk: int = 24,
        delay: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        self._id = id
        self._chunk, self._delay = max(1, chunk), delay
        self._clock = clock or SystemClock()
        self._choose = script if callable(script) else _follow(_as_script(script))
        self._failed: dict[tuple[str, int], int] = {}
        self._size = IdentityMemo[Message, int](_size)

    @property
    def id(self) -> str:
        return self._id

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        """The script's reply. Raises what the reply's `error` says; ModelRejected where the script
        has no reply, or names a result that the turn does not have."""
        await asyncio.sleep(0)  # a model call always gives the others a turn, as a real one does
        reply = _as_reply(self._choose(request))
        if reply.delay:
            await self._clock.sleep(reply.delay)
        await self._stream(reply.text, on_delta)
        if reply.error is not None and self._fails(request, reply):
            raise _error(self._id, reply.error, reply.retry_after)
        content, stop = _content(request, reply)
        return ModelResponse(content=content, stop=stop, usage=self._usage(request, reply), model=self._id)

    async def close(self) -> None:
        """Nothing to let go."""

    async def _stream(self, text: str, on_delta: OnDelta | None) -> None:
        if on_delta is None:
            return
        for start in range(0, len(text), self._chunk):
            if start and self._delay:
                await self._clock.sleep(self._delay)
            on_delta(text[start : start + self._chunk])

    def _fails(self, request: ModelRequest, reply: Reply) -> bool:
        if reply.times is None:
            return True
        place = (request.session_id, len(request.messages))
        self._failed[place] = self._failed.get(place, 0) + 1
        return self._failed[place] <= reply.times

    def _usage(self, request: ModelRequest, reply: Reply) -> Usage:
        """An estimate that depends on nothing but the texts: four characters to a token."""
        seen = len(request.system) + sum(map(self._size, request.messages))
        said = len(reply.text) + len(reply.thinking) + sum(len(ENCODER.encode(c.args)) for c in reply.calls)
        return Usage(input=-(-seen // 4), output=max(1, -(-said // 4)))


def spoken(messages: Sequence[Message]) -> tuple[int, str]:
    """Index and text of what a person last said; (-1, "") when nobody said anything.

    Notes of the gateway do not count; a summary does when nothing was said after it.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.kind != "note" and message.text:
            return index, message.text
    return -1, ""


def _as_script(script: Script | Sequence[ReplyLike] | Mapping[str, Any]) -> Script:
    if isinstance(script, Script):
        return script
    if isinstance(script, Mapping):
        return parse_script(dict(script))
    return parse_script([msgspec.to_builtins(r) if isinstance(r, Reply) else r for r in script])


def _as_reply(reply: ReplyLike) -> Reply:
    if isinstance(reply, Reply):
        return reply
    return Reply(text=reply) if isinstance(reply, str) else msgspec.convert(dict(reply), Reply)


def _follow(script: Script) -> Callable[[ModelRequest], Reply]:
    def choose(request: ModelRequest) -> Reply:
        start, text = spoken(request.messages)
        replies, since = script.replies, 0
        groups: dict[str, str] = {}
        if script.rules:
            rule, groups = _match(script, text)
            replies, since = rule.replies, start + 1
        position = sum(m.role == "assistant" for m in request.messages[since:])
        if position >= len(replies):
            raise ModelRejected(
                f"{script.source} has {len(replies)} replies here, number {position + 1} was asked for"
            )
        scope = Scope(groups=groups, results=results_of(request.messages, max(start, 0)))
        try:
            return _filled(replies[position], scope)
        except Unresolved as error:
            raise ModelRejected(f"{script.source}, reply {position + 1}: {error}") from error

    return choose


def _match(script: Script, text: str) -> tuple[Rule, dict[str, str]]:
    for rule in script.rules:
        if rule.pattern is None:
            return rule, {}
        if found := rule.pattern.search(text):
            numbered = {str(n): found[n] or "" for n in range(rule.pattern.groups + 1)}
            return rule, numbered | found.groupdict(default="")
    raise ModelRejected(
        f"{script.source} has no rule for this message; a last rule without match takes the rest"
    )


def _filled(reply: Reply, scope: Scope) -> Reply:
    return msgspec.structs.replace(
        reply,
        text=fill_text(reply.text, scope),
        thinking=fill_text(reply.thinking, scope),
        calls=tuple(
            Call(
                tool=call.tool,
                id=call.id,
                args=fill_text(call.args, scope) if isinstance(call.args, str) else fill(call.args, scope),
            )
            for call in reply.calls
        ),
    )


def _content(request: ModelRequest, reply: Reply) -> tuple[tuple[Block, ...], StopReason]:
    blocks: list[Block] = []
    if reply.thinking:
        blocks.append(Thinking(text=reply.thinking))
    if reply.text:
        blocks.append(Text(text=reply.text))
    base = _call_base(request) if reply.calls else ""
    for number, call in enumerate(reply.calls, 1):
        args, invalid = parse_arguments(call.args) if isinstance(call.args, str) else (call.args, None)
        if reply.stop == "length":
            invalid = CUT_AT_LIMIT
        blocks.append(
            ToolUse(id=call.id or f"call_{base}_{number}", name=call.tool, input=args, invalid=invalid)
        )
    return tuple(blocks), reply.stop or ("tool_calls" if reply.calls else "end")


def _call_base(request: ModelRequest) -> str:
    """Differs for every reply of every session and is the same when that reply is asked for again.

    Each id hangs on the one before it; where compaction hid that one, on the summary.
    """
    messages = request.messages
    digest = hashlib.blake2s(f"{request.session_id} {len(messages)}".encode(), digest_size=5)
    for message in reversed(messages):
        if message.calls:
            digest.update(message.calls[-1].id.encode())
            break
        if message.kind == "summary":
            digest.update(ENCODER.encode(message))
            break
    if messages:
        digest.update(ENCODER.encode(messages[-1]))
    return f"{len(messages)}_{digest.hexdigest()}"


def _size(message: Message) -> int:
    return len(ENCODER.encode(message.content))


def _error(model: str, failure: Failure, retry_after: float | None) -> ModelError:
    match failure:
        case "rate_limited":
            return ModelRateLimited("the script limits the rate", provider=model, retry_after=retry_after)
        case "overloaded":
            return ModelOverloaded("the script is overloaded", provider=model, retry_after=retry_after)
        case "auth":
            return ModelAuthError("the script refuses the key", provider=model)
        case "rejected":
            return ModelRejected("the script refuses the request", provider=model)
        case "too_long":
            return ModelRejected(
                "the script finds the prompt too long", provider=model, context_too_long=True
            )
