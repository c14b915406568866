"""HTTP bodies in and out: what a request may hold, what an answer looks like. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, TypeVar

import msgspec

from channels.web.backend import (
    Answered,
    BackendError,
    ClickResult,
    Json,
    PendingCard,
    Posted,
    Scope,
    SessionView,
)
from channels.web.limits import ID_CHARS, TEXT_CHARS

PENDING_KEYS = (
    "pending_id",
    "kind",
    "session_id",
    "agent",
    "tool",
    "args",
    "reason",
    "requested_at",
    "expires_at",
    "approvers",
    "card",
    "preview",
    "preview_kind",
    "reveal",
    "hidden",
    "works_for",
)
CLICK_STATUS: Mapping[str, int] = {
    "resumed": 200,
    "recorded": 200,
    "already": 200,
    "forbidden": 403,
    "unknown": 404,
    "expired": 409,
    "superseded": 409,
    "invalid": 422,
}


class ApiError(Exception):
    """A request that is answered with an error. `field` is the dotted path of the culprit."""

    def __init__(self, status: int, code: str, message: str, *, mend: str = "", field: str = "") -> None:
        self.status, self.code, self.message, self.mend, self.field = status, code, message, mend, field
        super().__init__(message)


class _Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of request bodies: an unknown key is an error that names it."""


class EmptyBody(_Body, frozen=True, kw_only=True):
    """A request whose address says it all."""


class MessageBody(_Body, frozen=True, kw_only=True):
    """`POST /agents/{agent}/messages`. `message_id` makes sending again harmless."""

    text: str
    session_id: str | None = None
    message_id: str | None = None


class ResolveBody(_Body, frozen=True, kw_only=True):
    """`POST /pending-approvals/{id}/resolve`."""

    decision: Literal["approve", "deny"]
    edited_args: dict[str, Any] | None = None
    scope: Scope = "once"
    feedback: str = ""


class CardBody(_Body, frozen=True, kw_only=True):
    """`POST /pending-cards/{card}/resolve`."""

    decision: Literal["approve", "deny"]


class AnswerBody(_Body, frozen=True, kw_only=True):
    """`POST /pending-questions/{id}/answer`."""

    answer: Answered


class GiveBody(_Body, frozen=True, kw_only=True):
    """`POST /pending/{id}/give`: who decides from now on."""

    to: str


class RenderBody(_Body, frozen=True, kw_only=True):
    """`POST /page/render`: an answer so far."""

    text: str


class LoginBody(_Body, frozen=True, kw_only=True):
    """`POST /page/login`."""

    token: str


_B = TypeVar("_B", bound=_Body)
_PLACE = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")


def decode(kind: type[_B], body: bytes) -> _B:
    """The body of a request. Raises ApiError: 400 for what is not JSON, 422 for a wrong shape."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _PLACE.search(text)
        field = found.group(1) if found else ""
        words = text[: found.start()] if found else text
        unknown = re.search(r"unknown field `([^`]*)`", words) or re.search(
            r"required field `([^`]*)`", words
        )
        if unknown:
            field = f"{field}.{unknown.group(1)}" if field else unknown.group(1)
        mend = f"allowed: {', '.join(kind.__struct_fields__)}"
        raise ApiError(422, "invalid_body", _with_place(words, field), mend=mend, field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        mend = "send one JSON object as the body"
        raise ApiError(400, "malformed_json", f"the body is not JSON: {error}", mend=mend) from None


def _with_place(words: str, field: str) -> str:
    return f"{field}: {words}" if field and f"`{field}`" not in words else words


def check_message(body: MessageBody) -> MessageBody:
    """The limits that a type cannot say. Raises ApiError."""
    if not body.text.strip():
        raise ApiError(
            422, "empty_text", "text: there is nothing to say", field="text", mend="write a message"
        )
    if len(body.text) > TEXT_CHARS:
        told = f"text: {len(body.text):,} characters, {TEXT_CHARS:,} are allowed"
        raise ApiError(422, "text_too_long", told, field="text", mend="send it in parts")
    for name in ("session_id", "message_id"):
        value = getattr(body, name)
        if value is not None and not 0 < len(value) <= ID_CHARS:
            told = f"{name}: an id has 1 to {ID_CHARS} characters"
            raise ApiError(422, "invalid_body", told, field=name, mend=f"leave {name} out, or use a real id")
    return body


def check_resolve(body: ResolveBody) -> ResolveBody:
    """Refuse what contradicts itself. Raises ApiError."""
    if body.decision == "deny" and body.edited_args is not None:
        told = "edited_args: a denied call is not run, so it cannot be edited"
        raise ApiError(422, "invalid_body", told, field="edited_args", mend="leave edited_args out")
    if body.decision == "deny" and body.scope != "once":
        told = "scope: a denial holds for this call only"
        raise ApiError(422, "invalid_body", told, field="scope", mend="leave scope out")
    return body


def check_answer(body: AnswerBody) -> Answered:
    """The answer, if there is anything in it. Raises ApiError."""
    said = body.answer
    values = said.values() if isinstance(said, dict) else said if isinstance(said, list) else [said]
    blank = all(isinstance(value, str) and not value.strip() for value in values)
    if blank and said != []:  # an empty list chooses none of the options
        raise ApiError(422, "empty_answer", "answer: there is nothing in it", field="answer")
    return said


def error_body(error: ApiError | BackendError) -> Json:
    """`{"error": {"code", "message", "mend"?, "field"?}}`."""
    inner: Json = {"code": error.code, "message": error.message}
    if error.mend:
        inner["mend"] = error.mend
    if error.field:
        inner["field"] = error.field
    return {"error": inner}


def posted_body(posted: Posted) -> Json:
    """The 202 of a message. `answer` is there for a command only."""
    body: Json = {
        "session_id": posted.session_id,
        "turn_id": posted.turn_id,
        "message_id": posted.message_id,
        "queued": posted.queued,
        "duplicate": posted.duplicate,
    }
    return body if posted.answer is None else {**body, "answer": posted.answer}


def click_body(result: ClickResult) -> Json:
    """The answer to a decision: the outcome first, then what there is to know."""
    return {**result.details, "outcome": result.outcome, "message": result.message}


def pending_body(card: PendingCard) -> Json:
    """One entry of `GET /pending`."""
    return {key: getattr(card, key) for key in PENDING_KEYS}


def session_body(view: SessionView) -> Json:
    """`GET /sessions/{id}` for programs."""
    return {
        "session_id": view.session_id,
        "agent": view.agent,
        "status": view.status,
        "messages": list(view.messages),
    }


def plain(value: Any) -> Json:
    """A value of `backend` as a JSON object."""
    return asdict(value)
