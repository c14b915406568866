"""Which messages the end of a turn sends, and where to. Pure."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import msgspec

from gateway.approvals import Pending
from gateway.messages import File, Image, Json, Message, ThreadKey
from gateway.notices import NO_ANSWER, UNKNOWN_REPORTED, stop_text
from gateway.options import RunResult
from gateway.outcome import Outcome
from gateway.silence import silent
from gateway.store.rows import FEEDBACK, Claim, Outgoing
from gateway.store.schedule_rows import WAKE
from gateway.verdicts import INTERRUPTED

WEBHOOK = "webhook"  # the channel of rows that are posted to an address of the configuration
DONE = "done"
MOST_ON_A_CARD = 20  # a longer list is not read before it is approved


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """posts: whether a thread is written to through the outbox (a web page reads the rows
    itself). tells: whether a notice reaches it, be it a line of a page. places: the thread that a `notify`
    entry names, None when no channel knows it.
    approvers: who may decide in a thread when the rule does not say. hooks: the webhooks that are told of
    an event of this name. silence: by agent, the word that is never posted."""

    posts: Callable[[ThreadKey], bool]
    tells: Callable[[ThreadKey], bool] = lambda key: False
    places: Callable[[str], ThreadKey | None] = lambda entry: None
    approvers: Callable[[ThreadKey], tuple[str, ...]] = lambda key: ()
    hooks: Callable[[str], Sequence[ThreadKey]] = lambda event: ()
    silence: Mapping[str, str | None] = field(default_factory=dict)

    def asked(self, claim: Claim, pendings: Sequence[Pending]) -> list[Pending]:
        """What is new of a stop, as it is stored: with the people who are asked, and on which card."""
        return on_cards([self._addressed(claim, pending) for pending in pendings])

    def _addressed(self, claim: Claim, pending: Pending) -> Pending:
        """The pending with the people of its thread, where its rule names none."""
        people = self.approvers(claim.key) if not pending.approvers and pending.kind == "approval" else ()
        return msgspec.structs.replace(pending, approvers=("requester", *people)) if people else pending

    def at_the_end(
        self, claim: Claim, result: RunResult, log_length: int, added: Sequence[Message] = ()
    ) -> tuple[Outgoing, ...]:
        """The answer, or why there is none; then the files of the turn's tools. None of that where the agent
        chose to say nothing. `added`: what the turn has put into the log."""
        if claim.parent:  # a subagent's words go to its caller
            return self._unknown(claim, result)
        told = self._told(claim, result)
        if not self.posts(claim.key):
            return (*self._lines(claim, result, added), *told)
        if result.silent:  # but what a crash has left in doubt is told
            return (*self._unknown(claim, result), *told)
        return (*self._words(claim, result, log_length), *_files(claim, added), *told)

    def _told(self, claim: Claim, result: RunResult) -> tuple[Outgoing, ...]:
        """How the turn ended, for the webhooks that want to know."""
        session = claim.lease.session_id
        event: Json = {
            "type": DONE,
            "session_id": session,
            "turn_id": claim.lease.turn_id,
            "agent": claim.agent,
            "outcome": result.outcome.value,
            "status": result.outcome.status,
            "text": result.text,
            "pending": list(result.pending.outstanding) if result.pending is not None else [],
        }
        hooks = [_in_order(key, session) for key in self.hooks(DONE)]
        return tuple(Outgoing(key=key, kind="notice", payload={"event": event}) for key in hooks)

    def _words(self, claim: Claim, result: RunResult, log_length: int) -> tuple[Outgoing, ...]:
        session = claim.lease.session_id
        told = self._unknown(claim, result)
        if result.outcome is Outcome.COMPLETED and result.text.strip():
            payload = {"seq": log_length - 1, "reply_to": _replies_to(claim)}
            return (*told, Outgoing(key=claim.key, kind="answer", payload=payload, session_id=session))
        said = result.text if result.text.strip() else ""
        text = said or stop_text(result.outcome, result.detail) or NO_ANSWER
        notice = {"text": text, "reply_to": _replies_to(claim)}
        return (*told, Outgoing(key=claim.key, kind="notice", payload=notice, session_id=session))

    def at_a_stop(
        self,
        claim: Claim,
        result: RunResult,
        new: Sequence[Pending],
        log_length: int,
        added: Sequence[Message] = (),
    ) -> tuple[Outgoing, ...]:
        """The files of the steps before, the words that came with the calls, and the new cards, in
        every place that their rule names as well. `added`: what the turn has put into the log."""
        session = claim.lease.session_id
        out = list(self._unknown(claim, result))
        talks = not claim.parent and self.posts(claim.key)
        out += _files(claim, added) if talks else self._lines(claim, result, added)
        last = result.messages[-1] if result.messages else None
        words = last.text if last is not None and last.role == "assistant" else ""
        if words and talks and not silent(words, self.silence.get(claim.agent)):
            out.append(
                Outgoing(key=claim.key, kind="answer", payload={"seq": log_length - 1}, session_id=session)
            )
        for pending in (p for p in new if p.card_id == p.pending_id):  # the first one of each card
            named = [*filter(None, map(self.places, pending.notify)), *self.hooks(f"{pending.kind}:pending")]
            places = dict.fromkeys([claim.key, *(_in_order(key, claim.home) for key in named)])
            for key in filter(self.posts, places):
                out += card_rows(key, session, [p for p in new if p.card_id == pending.card_id])
        return (*out, *(() if claim.parent else self._told(claim, result)))

    def _lines(self, claim: Claim, result: RunResult, added: Sequence[Message]) -> tuple[Outgoing, ...]:
        """What a page, which reads the words itself, shows of the files of the turn's tools: a line each."""
        if claim.parent or result.silent or self.posts(claim.key) or not self.tells(claim.key):
            return ()
        files = [row.payload["file"] for row in _files(claim, added)]
        return tuple(
            Outgoing(
                key=claim.key,
                kind="notice",
                payload={"text": file["name"], "file": file},
                session_id=claim.lease.session_id,
            )
            for file in files
        )

    def _unknown(self, claim: Claim, result: RunResult) -> tuple[Outgoing, ...]:
        """With `on_unknown = "report"` the model has read that a call was cut off; so must people."""
        cut = {r.tool_use_id for m in result.messages for r in m.results if r.content == INTERRUPTED}
        tools = ", ".join(f"`{call.tool}`" for call in claim.calls if call.call_id in cut)
        if not tools or not self.posts(claim.key):
            return ()
        notice = {"text": UNKNOWN_REPORTED.format(tools=tools)}
        return (Outgoing(key=claim.key, kind="notice", payload=notice, session_id=claim.home),)


def _in_order(key: ThreadKey, session_id: str) -> ThreadKey:
    """What a webhook is told of one session comes in order, and waits for no other session's."""
    return key._replace(thread=session_id) if key.channel == WEBHOOK else key


def batched(pendings: Sequence[Pending], most: int) -> list[Sequence[Pending]]:
    """The same in order, at most so many together."""
    return [pendings[start : start + most] for start in range(0, len(pendings), most)]


def on_cards(pendings: Sequence[Pending]) -> list[Pending]:
    """The same pendings, those that one card shows together: the approvals of a step that go to the
    same places and people. Questions have a card each."""
    groups: dict[tuple[object, ...], list[Pending]] = {}
    for pending in pendings:
        alone = pending.kind == "question"
        to = (pending.notify, pending.approvers, pending.reveal, pending.escalate)
        kind = (pending.pending_id,) if alone else to
        groups.setdefault(kind, []).append(pending)
    shared = {
        p.pending_id: msgspec.structs.replace(p, card=group[0].pending_id, place=place)
        for everyone in groups.values()
        for group in batched(everyone, MOST_ON_A_CARD)
        if len(group) > 1
        for place, p in enumerate(group)
    }
    return [shared.get(p.pending_id, p) for p in pendings]


def card_rows(key: ThreadKey, session: str, pendings: Sequence[Pending]) -> list[Outgoing]:
    """The card of these pendings, and before it what their tools' authors show beside them."""
    card = Outgoing(key=key, kind="card", payload={}, session_id=session, pending_id=pendings[0].card_id)
    return [*_pictures(key, session, pendings), card]


def _pictures(key: ThreadKey, session: str, pendings: Sequence[Pending]) -> list[Outgoing]:
    """The pictures that the tools' authors show beside these calls, where everybody may see them."""
    paths = [p.preview_image for p in pendings if p.preview_image and p.reveal == "everyone"]
    return [
        Outgoing(key=key, kind="answer", payload={"file": _file(path)}, session_id=session) for path in paths
    ]


def _file(path: str) -> Json:
    media_type = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return {"path": path, "name": PurePosixPath(path).name, "media_type": media_type}


def _name(part: Image | File) -> str:
    return part.name or PurePosixPath(part.path).name


def _files(claim: Claim, added: Sequence[Message]) -> tuple[Outgoing, ...]:
    """One row for each file that a tool has made."""
    parts = {part.path: part for m in added for r in m.results for part in r.parts}
    return tuple(
        Outgoing(
            key=claim.key,
            kind="answer",
            payload={"file": {"path": part.path, "name": _name(part), "media_type": part.media_type}},
            session_id=claim.lease.session_id,
        )
        for part in parts.values()
    )


def _replies_to(claim: Claim) -> str:
    """The platform's id of the message that the turn answers; empty where it has none."""
    own = claim.message_id.endswith(FEEDBACK) or claim.message_id.startswith(WAKE)
    return "" if own else claim.message_id
