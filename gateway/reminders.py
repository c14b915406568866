"""What the clock has to say about open requests: which messages, and where to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from gateway.approvals import Expire, escalated
from gateway.letters import card_rows
from gateway.messages import Actor, Json, ThreadKey
from gateway.notices import escalated_text, expired_text, reminder_text
from gateway.patience import Escalation
from gateway.store.rows import CardCopy, Firing, Outgoing, PendingRecord, Timer, Verdict

CLOCK = Actor("clock", "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminders:
    """posts: whether a thread gets cards through the outbox. tells: whether a notice can reach it. places:
    the thread that a `notify` entry names, None when no channel knows it."""

    posts: Callable[[ThreadKey], bool]
    tells: Callable[[ThreadKey], bool]
    places: Callable[[str], ThreadKey | None] = lambda entry: None

    def reminder(
        self, timer: Timer, records: Sequence[PendingRecord], copies: Sequence[CardCopy], now: float
    ) -> Firing:
        """`records`: what is open on the card, in the order of its calls. Told where the card is, and where
        it was asked for."""
        places = dict.fromkeys([records[0].key, *(copy.key for copy in copies)])
        text = reminder_text(records)
        rows = [_call(key, text, records) for key in places if self.tells(key)]
        return Firing(timer=timer, at=now, pending_ids=_ids(records), outgoing=tuple(rows))

    def escalation(
        self,
        timer: Timer,
        step: Escalation,
        records: Sequence[PendingRecord],
        copies: Sequence[CardCopy],
        now: float,
    ) -> Firing:
        """The card for the places that do not have it, and a notice where it was asked for."""
        changed = [
            msgspec.structs.replace(record, pending=escalated(record.pending, step)) for record in records
        ]
        origin, session = records[0].key, records[0].session_id
        had = {copy.key for copy in copies}
        places = [key for key in map(self.places, step.notify) if key is not None and self.posts(key)]
        rows = [
            row
            for key in dict.fromkeys(places)
            if key not in had
            for row in card_rows(key, session, [record.pending for record in records])
        ]
        if self.tells(origin):
            rows.append(_call(origin, escalated_text(changed), changed))
        return Firing(timer=timer, at=now, pending_ids=_ids(records), outgoing=tuple(rows), step=step)

    def expiry(self, record: PendingRecord, card: Sequence[PendingRecord], now: float) -> Verdict:
        """The clock's word about a request that ran out. `card`: everything on its card; what ran out there
        at the same moment is told in one notice, with the first of them."""
        together = [
            other
            for other in card
            if other.state in ("open", "expired") and other.pending.expires_at == record.pending.expires_at
        ]
        told = bool(together) and together[0].id == record.id and self.tells(record.key)
        asker = [record.requester] if record.requester.channel == record.key.channel else []
        notice = (_notice(record.key, expired_text(together), record, asker),) if told else ()
        return Verdict(
            pending_id=record.id,
            resolution=Expire(),
            actor=CLOCK,
            by="the clock",
            at=now,
            outgoing=notice,
        )


NOWHERE = Reminders(posts=lambda key: False, tells=lambda key: False)


def wanted(records: Sequence[PendingRecord], key: ThreadKey) -> list[Actor]:
    """The people of this thread's channel who can decide one of these and have not agreed to it yet."""
    people = [actor for record in records for actor in _asked(record, key) if str(actor) not in record.votes]
    return list(dict.fromkeys(people))


def wanted_roles(records: Sequence[PendingRecord], key: ThreadKey) -> list[str]:
    """The platform's ids of the roles and groups of this thread's channel who can decide one of these."""
    prefix = f"{key.channel}:role:"
    names = dict.fromkeys(name for record in records for name in record.pending.approvers)
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _asked(record: PendingRecord, key: ThreadKey) -> list[Actor]:
    barred = record.requester if record.pending.four_eyes else None
    names = record.pending.approvers or ("requester",)
    people = [record.requester if name == "requester" else _person(name, key) for name in names]
    return [one for one in people if one is not None and one.channel == key.channel and one != barred]


def _call(key: ThreadKey, text: str, records: Sequence[PendingRecord]) -> Outgoing:
    """Words for a thread that reach everybody there whose word is wanted."""
    return _notice(key, text, records[0], wanted(records, key), wanted_roles(records, key))


def _notice(
    key: ThreadKey, text: str, record: PendingRecord, people: Sequence[Actor], roles: Sequence[str] = ()
) -> Outgoing:
    """Words for a thread that mention these. Only what is said in the session's own thread is part of the
    session."""
    payload: Json = {"text": text}
    if people:
        payload["mentions"] = [list(one) for one in people]
    if roles:
        payload["roles"] = list(roles)
    session = record.home if record.key == key else ""
    return Outgoing(key=key, kind="notice", payload=payload, session_id=session)


def _person(name: str, key: ThreadKey) -> Actor | None:
    """`channel:user` or `channel:workspace:user` as a person; None for a role, a group, administrators."""
    channel, *rest = name.split(":")
    if not rest or "role" in rest or rest == ["admins"]:
        return None
    workspace = rest[0] if len(rest) > 1 else key.workspace
    return Actor(channel, workspace, rest[-1])


def _ids(records: Sequence[PendingRecord]) -> tuple[str, ...]:
    return tuple(record.id for record in records)
