"""What people do with requests besides deciding them: list, show again, take back, pass on; and the
grants that decisions left behind. The same for commands, the page and the HTTP API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway import notices
from gateway.approvals import CANCELLED, CLOSED_OUTCOME, ClickOutcome
from gateway.clock import Clock
from gateway.messages import Actor, Json, ThreadKey
from gateway.resolutions import MOST_LOOKED_AT, ClickResult, Resolutions
from gateway.store.base import Store
from gateway.store.rows import Delivery, Given, GrantRecord, Outgoing, PendingRecord

MOST_GRANTS = 1_000  # that are looked at


class People(Protocol):
    """What the configuration says about people and places."""

    def is_admin(self, actor: Actor) -> bool: ...

    def posts(self, key: ThreadKey) -> bool: ...

    def person(self, entry: str, channel: str) -> str:
        """Somebody as rules write it, of a text that a person wrote. Raises ValueError: the mend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Who wants something. `key`: the thread in which it was said; None: none (the page, the API)."""

    actor: Actor
    name: str = ""
    via: str = ""
    key: ThreadKey | None = None

    @property
    def words(self) -> str:
        """In words."""
        return notices.person(self.actor, self.name)


class Requests:
    """`private`: the thread in which somebody alone is written to, None where there is none."""

    def __init__(
        self,
        store: Store,
        resolutions: Resolutions,
        people: People,
        clock: Clock,
        nudge: Callable[[str], None],
        on_deliveries: Callable[[Sequence[Delivery]], None],
        private: Callable[[Actor], Awaitable[ThreadKey | None]],
    ) -> None:
        self._store, self._resolutions, self._people, self._clock = store, resolutions, people, clock
        self._nudge, self._on_deliveries, self._private = nudge, on_deliveries, private

    # ---- requests

    async def everything(self, actor: Actor) -> list[PendingRecord] | None:
        """All that is open, oldest first; None for somebody who may not see that."""
        if not self._runs(actor):
            return None
        return await self._store.pendings(limit=MOST_LOOKED_AT)

    async def by_code(self, code: str) -> PendingRecord | None:
        """The request with this code: codes come back some day, one that is open is meant."""
        found = await self._store.pendings(code=code.casefold(), open_only=False)
        return next((r for r in found if r.state == "open"), found[-1] if found else None)

    async def cancel(self, pending_id: str, who: Who) -> ClickResult:
        """Take a request back. The agent reads `cancelled`, and nobody has refused anything."""
        record = await self._open(pending_id)
        if isinstance(record, ClickResult):
            return record
        own = who.actor == record.requester or self._resolutions.is_operator(who.actor)
        if not own and not await self._decides(who, record):
            words = notices.MAY_NOT_CANCEL.format(
                requester=record.requester, deciders=notices.deciders_text(record)
            )
            return await self._forbidden(who, record, "cancel", words)
        resolved = await self._resolutions.withdraw(record.id, who.actor, who.name, by=CANCELLED, via=who.via)
        if resolved.outcome not in ("resumed", "recorded"):
            return _closed(resolved.record)
        return ClickResult(
            outcome=resolved.outcome,
            text=notices.CANCELLED_NOW,
            record=resolved.record,
            still_open=resolved.still_open,
        )

    async def give(self, pending_id: str, who: Who, to: str) -> ClickResult:
        """Have somebody else decide: instead of those so far, or with them where several must agree."""
        record = await self._open(pending_id)
        if isinstance(record, ClickResult):
            return record
        if not await self._decides(who, record):
            words = notices.MAY_NOT_GIVE.format(deciders=notices.deciders_text(record))
            return await self._forbidden(who, record, "give", words)
        pending, channel = record.pending, (who.key or record.key).channel
        if wrong := self.fault(record, to, channel):
            return _invalid(record, wrong)
        entry = self._people.person(to, channel)
        before = pending.approvers or ("requester",)
        given = Given(
            pending_id=record.id,
            approvers=tuple(dict.fromkeys((*before, entry))) if pending.quorum > 1 else (entry,),
            actor=who.actor,
            by=who.words,
            at=self._clock.now(),
            via=who.via,
        )
        changed = await self._store.give(given)
        if changed is None:
            return _closed(await self._store.pending(record.id))
        await self._tell(changed, entry, who)
        self._nudge(record.home)
        text = notices.GIVEN.format(deciders=notices.deciders_text(changed))
        return ClickResult(outcome="recorded", text=text, record=changed)

    def fault(self, record: PendingRecord, to: str, channel: str) -> str:
        """What is wrong with having this one decide, as somebody wrote it in a channel; empty: nothing."""
        try:
            entry = self._people.person(to, channel)
        except ValueError as error:
            return str(error)
        barred = record.pending.four_eyes and entry in _spellings(record.requester)
        return notices.FOUR_EYES if barred else ""

    async def show(self, pending_id: str, who: Who) -> ClickResult:
        """Post the card once more: where this was said, or in its own thread. Others stay live."""
        record = await self._open(pending_id)
        if isinstance(record, ClickResult):
            return record
        key = who.key or record.key
        own = key == record.key or who.actor == record.requester or self._runs(who.actor)
        if not own and not await self._decides(who, record):
            words = notices.MAY_NOT_SEE.format(
                requester=record.requester, deciders=notices.deciders_text(record)
            )
            return await self._forbidden(who, record, "show", words)
        if not self._people.posts(key):
            return ClickResult(outcome="recorded", text=notices.ON_THE_PAGE, record=record)
        body: Json = {"via": who.via, "tool": record.pending.tool, "where": ":".join(key)}
        now = self._clock.now()
        await self._store.audit(
            "shown", str(who.actor), body, now, session_id=record.session_id, pending_id=record.id
        )
        await self._send(_card(record, key, managed=True))
        return ClickResult(outcome="recorded", text=notices.POSTED_AGAIN, record=record)

    async def _open(self, pending_id: str) -> PendingRecord | ClickResult:
        record = await self._store.pending(pending_id)
        return record if record is not None and record.state == "open" else _closed(record)

    def _runs(self, actor: Actor) -> bool:
        """Operators, and those who decide in the actor's channel."""
        return self._resolutions.is_operator(actor) or self._people.is_admin(actor)

    async def _decides(self, who: Who, record: PendingRecord) -> bool:
        roles = await self._resolutions.standing(who.actor, record)
        return self._resolutions.may_decide(who.actor, roles, record)

    async def _forbidden(self, who: Who, record: PendingRecord, word: str, text: str) -> ClickResult:
        """Attempts are on record too."""
        body: Json = {"via": who.via, "word": word}
        now = self._clock.now()
        await self._store.audit(
            "refused_forbidden", str(who.actor), body, now, session_id=record.session_id, pending_id=record.id
        )
        return ClickResult(outcome="forbidden", text=text, record=record)

    async def _tell(self, record: PendingRecord, entry: str, who: Who) -> None:
        """The thread reads who decides now; the one who does gets the card in private, where possible."""
        text = notices.GIVEN_TOLD.format(
            code=record.pending.code,
            tool=record.pending.tool,
            by=who.words,
            deciders=notices.deciders_text(record),
        )
        payload: Json = {"text": text}
        person = _actor(entry, record.key if who.key is None else who.key)
        if person is not None and person.channel == record.key.channel:
            payload["mentions"] = [list(person)]
        elif entry.startswith(f"{record.key.channel}:role:"):
            payload["roles"] = [entry.removeprefix(f"{record.key.channel}:role:")]
        notice = Outgoing(key=record.key, kind="notice", payload=payload, session_id=record.home)
        rows = [notice]
        place = None if person is None else await self._private(person)
        shown = {copy.key for copy in await self._store.card_copies(record.id)}
        if place is not None and place not in shown and self._people.posts(place):
            rows.append(_card(record, place, revealed=True))
        await self._send(*rows)

    async def _send(self, *rows: Outgoing) -> None:
        self._on_deliveries(await self._store.enqueue(rows, self._clock.now()))

    # ---- grants

    async def grants(self, *, agent: str = "", session_id: str = "") -> list[GrantRecord]:
        """What is granted now, newest first: to one agent in one session, or everywhere."""
        now = self._clock.now()
        return await self._store.grants(now, agent=agent, session_id=session_id, limit=MOST_GRANTS)

    async def revoke(self, grant_id: str, who: Who) -> tuple[ClickOutcome, str]:
        """Take a grant back: whoever gave it, those who run the gateway, those who decide in the channel."""
        record = await self._store.grant(grant_id)
        if record is None:
            return "unknown", notices.NO_SUCH_GRANT.format(code=grant_id)
        given = record.grant
        if str(who.actor) != given.granted_by and not self._admin_of(who.actor, record):
            body: Json = {"via": who.via, "word": "revoke", "grant": grant_id}
            await self._store.audit(
                "refused_forbidden",
                str(who.actor),
                body,
                self._clock.now(),
                session_id=given.session_id,
                pending_id=record.pending_id,
            )
            return "forbidden", notices.MAY_NOT_REVOKE.format(by=record.by)
        if not await self._store.revoke(grant_id, who.words, who.actor, self._clock.now()):
            return "unknown", notices.NO_SUCH_GRANT.format(code=record.code)
        return "recorded", notices.REVOKED.format(tool=given.tool)

    def _admin_of(self, actor: Actor, record: GrantRecord) -> bool:
        """An operator anywhere; whoever decides in a channel, for what was granted there."""
        if self._resolutions.is_operator(actor):
            return True
        return actor.channel == record.key.channel and self._people.is_admin(actor)


def _card(
    record: PendingRecord, key: ThreadKey, *, revealed: bool = False, managed: bool = False
) -> Outgoing:
    payload: Json = {"revealed": [record.id]} if revealed and record.pending.reveal == "approvers" else {}
    payload |= {"managed": True} if managed else {}
    return Outgoing(
        key=key,
        kind="card",
        payload=payload,
        session_id=record.session_id,
        pending_id=record.pending.card_id,
    )


def _closed(record: PendingRecord | None) -> ClickResult:
    if record is None:
        return ClickResult(outcome="unknown", text=notices.click_text("unknown", None))
    outcome = CLOSED_OUTCOME.get(record.state, "unknown")
    return ClickResult(outcome=outcome, text=notices.click_text(outcome, record), record=record)


def _invalid(record: PendingRecord, text: str) -> ClickResult:
    return ClickResult(outcome="invalid", text=text, record=record, problems=(("to", text),))


def _spellings(actor: Actor) -> set[str]:
    return {"requester", str(actor), f"{actor.channel}:{actor.user}"}


def _actor(entry: str, near: ThreadKey) -> Actor | None:
    """The person that an entry of `approvers` names; None for a role, or the one who asked."""
    channel, *rest = entry.split(":")
    if not rest or "role" in rest or rest == ["admins"]:
        return None
    workspace = rest[0] if len(rest) > 1 else near.workspace if near.channel == channel else ""
    return Actor(channel, workspace, rest[-1])
