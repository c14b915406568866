"""One call of a server's tool: run, asked back about, run again.

Where the server speaks the newer protocol, a question comes as the call's result, and the answer continues
that very call. Before that a question was a request of its own, during the call: it is answered `cancel`, the
call's result is thrown away, a person is asked, and the call runs again from its start; the same question,
recognised by its words and its form, then gets the answer. Over standard input and output such a question
does not say which call it belongs to. With several under way it waits until only one can be meant.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Literal

import pydantic
from mcp.client import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    URL_ELICITATION_REQUIRED,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    InputResponses,
)

from gateway.errors import ToolError
from gateway.log import excerpt
from gateway.messages import Json
from gateway.tools.base import Said
from gateway.tools.mcp.asking import (
    LONGEST_STATE,
    AskedKey,
    Form,
    Unanswerable,
    content_fault,
    read_keys,
    to_content,
    to_question,
)
from gateway.tools.mcp.settings import ConnectionLost
from gateway.tools.waiting import NeedsAnswer

MOST_ROUNDS = 12  # of questions in one call
ROUND_PAUSE = 0.1  # seconds before a server that only wants to be asked again is
TIME_TO_END = 5.0  # seconds that a call gets after its question was answered with cancel
LONGEST_ERROR = 2_000  # characters of what a server says about an error
_log = logging.getLogger(__name__)
_current: ContextVar[Call | None] = ContextVar("mcp_call", default=None)


class Call:
    """One run of a call, and what was said to its questions before."""

    def __init__(self, server: str, tool: str, args: Json, said: Mapping[str, Said]) -> None:
        self.server, self.tool, self.args = server, tool, args
        self._said = read_keys(said)
        self._seen: Counter[str] = Counter()
        self.asked: NeedsAnswer | None = None
        self.confused = False  # a question that may have been this call's was cancelled
        self.overdue = False
        self.task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def reply(self, form: Form, request: str = "", state: str | None = None) -> ElicitResult:
        """What was said to this question. Raises NeedsAnswer when nothing was, or what does not fit."""
        key = AskedKey(digest=form.digest, nth=self._seen[form.digest], request=request, state=state)
        if state is not None:
            key = AskedKey(digest=key.digest, nth=key.nth, request=request, state=state, schema=form.schema)
        self._seen[form.digest] += 1
        said = [entry for entry in self._said if (entry[0].digest, entry[0].nth) == (key.digest, key.nth)]
        if not said:
            raise _needs(form, key, "")
        last, answer = max(said, key=lambda entry: entry[0].attempt)
        result, fault = _result(form.schema, answer)
        if fault:
            raise _needs(form, key, fault, last.attempt + 1)
        return result

    def resumed(self) -> tuple[InputResponses, str] | None:
        """How to go on where the last run stopped, for a server that can: the answer, and its own state."""
        last = next(((key, said) for key, said in reversed(self._said)), None)
        if last is None or last[0].state is None or last[0].schema is None:
            return None
        result, fault = _result(last[0].schema, last[1])
        if fault:
            return None
        for key, _ in self._said:  # the server has had these answers
            self._seen[key.digest] = max(self._seen[key.digest], key.nth + 1)
        return {last[0].request: result}, last[0].state

    def from_the_start(self) -> bool:
        """The server has forgotten where the call stopped: whether it may begin anew. After one question
        nothing had happened yet, after several there may have."""
        self._seen.clear()
        return len({(key.digest, key.nth) for key, _ in self._said}) == 1

    def ask(self, asked: NeedsAnswer) -> None:
        """The question was answered with cancel. The call may end by itself, for a while."""
        self.asked = self.asked or asked
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TIME_TO_END, self._give_up)

    def _give_up(self) -> None:
        self.overdue = True
        if self.task is not None:
            self.task.cancel()

    def ended(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _needs(form: Form, key: AskedKey, fault: str, attempt: int = 0) -> NeedsAnswer:
    fields: dict[str, Any] = {name: getattr(key, name) for name in key.__struct_fields__}
    return NeedsAnswer(to_question(form, fault), AskedKey(**{**fields, "attempt": attempt}).text())


def _result(schema: Json, said: Said) -> tuple[ElicitResult, str]:
    """The answer for the server, and what is wrong with it."""
    if said.closed:
        action: Literal["cancel", "decline"] = "cancel" if said.closed == "expired" else "decline"
        return ElicitResult(action=action), ""
    content = to_content(schema, said.values)
    if content is None:
        return ElicitResult(action="decline"), ""
    return ElicitResult(action="accept", content=content), content_fault(schema, content)


class Ledger:
    """The calls under way over one connection, and whose question it is when a server asks."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._running: set[Call] = set()
        self._asking = 0
        self._alone = False
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def running(self, call: Call, *, alone: bool) -> AsyncIterator[None]:
        """The call runs; it begins only when no question is looking for its call. `alone`: beside none."""
        while self._asking or self._alone or (alone and self._running):
            await self._changed.wait()
        self._running.add(call)
        self._alone = alone
        try:
            yield
        finally:
            self._running.discard(call)
            self._alone = self._alone and not alone
            self._tell()

    async def elicited(self, context: ClientRequestContext, params: Any) -> ElicitResult:
        """What a server gets to a question that it asks during a call."""
        if not isinstance(params, ElicitRequestFormParams):
            _log.warning("tool server %s wants a person to open an address; it is declined", self._server)
            return ElicitResult(action="decline")
        call = _current.get() or await self._whose()
        if call is None or call.asked is not None:
            return ElicitResult(action="cancel")
        form = Form(server=self._server, message=params.message, schema=dict(params.requested_schema))
        try:
            return call.reply(form)
        except NeedsAnswer as asked:
            call.ask(asked)
            return ElicitResult(action="cancel")
        except Unanswerable as error:
            _log.warning("tool server %s asks what nobody can be shown: %s", self._server, error)
            return ElicitResult(action="decline")

    async def _whose(self) -> Call | None:
        self._asking += 1
        try:
            while len(self._running) > self._asking:
                await self._changed.wait()
            if len(self._running) == 1:
                return next(iter(self._running))
            for call in self._running:
                call.confused = True
            return None
        finally:
            self._asking -= 1
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


async def run_call(
    session: ClientSession, ledger: Ledger, call: Call, *, alone: bool = False
) -> CallToolResult | None:
    """One run of a call over a connection, in a task of its own; None when it has to run again, alone.

    Raises NeedsAnswer, ToolError, ConnectionLost."""
    call.task = asyncio.current_task()
    _current.set(call)
    try:
        async with ledger.running(call, alone=alone):
            result = await _rounds(session, call)
    except asyncio.CancelledError:
        if call.overdue and call.asked is not None:
            raise call.asked from None
        raise
    except (MCPError, pydantic.ValidationError, RuntimeError) as error:
        if call.confused:
            return None
        if call.asked is not None:
            raise call.asked from None
        raise _in_our_words(call, error) from error
    finally:
        call.ended()
    if call.confused:
        return None
    if call.asked is not None:
        raise call.asked
    return result


async def _rounds(session: ClientSession, call: Call) -> CallToolResult:
    """The call until it has a result, its questions answered from what was said."""
    resumed = call.resumed()
    responses, state = resumed if resumed is not None else (None, None)
    for _ in range(MOST_ROUNDS):
        try:
            result = await session.call_tool(
                call.tool,
                call.args,
                input_responses=responses,
                request_state=state,
                allow_input_required=True,
            )
        except MCPError as error:
            if resumed is None or error.code != INVALID_PARAMS or not call.from_the_start():
                raise
            resumed, responses, state = None, None, None
            continue
        if isinstance(result, CallToolResult):
            return result
        resumed = None
        responses, state = _responses(call, result), result.request_state
        if not responses:
            await asyncio.sleep(ROUND_PAUSE)
    raise ToolError(f"the tool server {call.server!r} asks more than {MOST_ROUNDS} times in one call")


def _responses(call: Call, result: InputRequiredResult) -> InputResponses | None:
    """The answers to what a server wants to know before it goes on. Raises NeedsAnswer, ToolError."""
    requests = result.input_requests or {}
    # Only the state of a single question is kept: the answer to it is then all that the server waits for.
    kept = result.request_state if len(requests) == 1 else None
    if kept is not None and len(kept) > LONGEST_STATE:
        kept = None
    responses: InputResponses = {}
    for name, request in requests.items():
        if not isinstance(request, ElicitRequest):
            raise ToolError(
                f"the tool server {call.server!r} asks for {request.method}, which there is not here"
            )
        if not isinstance(request.params, ElicitRequestFormParams):
            raise ToolError(_address_wanted(call.server, request.params.message))
        form = Form(
            server=call.server, message=request.params.message, schema=dict(request.params.requested_schema)
        )
        try:
            responses[name] = call.reply(form, name, kept)
        except Unanswerable as error:
            raise ToolError(
                f"the tool server {call.server!r} asks what nobody can be shown: {error}"
            ) from error
    return responses or None


def _address_wanted(server: str, message: str) -> str:
    said = excerpt(message, LONGEST_ERROR)
    return f"the tool server {server!r} wants a person to open an address, which is not offered here: {said}"


def _in_our_words(call: Call, error: Exception) -> Exception:
    """What a failed call is for the loop."""
    if isinstance(error, pydantic.ValidationError):
        return ToolError(f"the tool server {call.server!r} answered with what is no result of a call")
    if not isinstance(error, MCPError):
        return ToolError(f"the tool server {call.server!r}: {excerpt(str(error), LONGEST_ERROR)}")
    return server_error(call.server, error)


def server_error(server: str, error: MCPError) -> Exception:
    """What an error of the protocol means. ConnectionLost is not the call's fault."""
    message = excerpt(error.error.message, LONGEST_ERROR)
    if error.code == CONNECTION_CLOSED:
        return ConnectionLost(server, "the connection was closed")
    if error.code == URL_ELICITATION_REQUIRED:
        return ToolError(_address_wanted(server, message))
    return ToolError(f"the tool server {server!r} reports an error: {message}")
