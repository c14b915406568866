"""What goes out, in lanes. Runs inside the writer's transaction.

What is posted in a thread is one lane: the rows go out one after the other. Every card message that
is brought up to date (`ref`) is a lane of its own: a redraw waits for no answer, nor the reverse.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection

from gateway.messages import Json, ThreadKey
from gateway.store.rows import CardCopy, Delivery, Outgoing
from gateway.store.sqlite_ops import scheduling
from gateway.store.sqlite_ops.codec import SQL, Row, delivery, dumps


def enqueue(db: Connection, rows: Sequence[Outgoing], runner: str, now: float) -> list[Delivery]:
    """Add rows; those with nothing before them in their lane are claimed by this runner."""
    claimed = []
    for row in rows:
        if row.kind == "redraw":
            db.execute(SQL["drop_older_redraws"], (row.pending_id, row.ref, *row.key))
        busy = db.execute(SQL["lane_is_busy"], (*row.key, row.ref)).fetchone() is not None
        state, holder, attempts = ("queued", "", 0) if busy else ("sending", runner, 1)
        payload, reply_to = dict(row.payload), str(row.payload.get("reply_to", ""))
        payload.pop("reply_to", None)
        id_ = db.execute(
            SQL["insert_delivery"],
            (
                *row.key,
                row.kind,
                state,
                row.session_id,
                row.pending_id,
                dumps(payload),
                row.ref,
                reply_to,
                holder,
                attempts,
                now,
                now,
            ),
        ).lastrowid
        if not busy and id_ is not None:
            claimed.append(
                Delivery(
                    id=id_,
                    key=row.key,
                    kind=row.kind,
                    payload=payload,
                    session_id=row.session_id,
                    pending_id=row.pending_id,
                    ref=row.ref,
                    refs=(),
                    attempts=1,
                    repeat=False,
                    reply_to=reply_to,
                )
            )
    return claimed


def due(db: Connection, runner: str, now: float, limit: int) -> list[Delivery]:
    """See Store.due_deliveries."""
    heads = [row[0] for row in db.execute(SQL["lane_heads"]).fetchall()]
    claimed = []
    for id_ in heads:
        row = db.execute(SQL["claim_delivery"], (runner, id_, now)).fetchone()
        if row is not None:
            claimed.append(delivery(row))
        if len(claimed) == limit:
            break
    return claimed


def _next(db: Connection, lane: Row, runner: str, now: float) -> list[Delivery]:
    """The next row of a lane (thread key and ref), claimed."""
    id_ = db.execute(SQL["next_in_lane"], lane).fetchone()[0]
    row = db.execute(SQL["claim_delivery"], (runner, id_, now)).fetchone() if id_ is not None else None
    return [delivery(row)] if row is not None else []


def part_sent(db: Connection, delivery_id: int, ref: str) -> None:
    """See Store.part_sent."""
    db.execute(SQL["delivery_part"], (ref, delivery_id))


def sent(
    db: Connection,
    delivery_id: int,
    ref: str | None,
    runner: str,
    now: float,
    opened: ThreadKey | None = None,
) -> list[Delivery]:
    """See Store.sent. A card of which something was decided while it was on its way is redrawn."""
    row = db.execute(SQL["delivery_sent"], (now, ref, ref, delivery_id)).fetchone()
    if row is None:
        return []
    kind, pending_id, refs = row[5], row[6], json.loads(row[7])
    following = _next(db, row[:5], runner, now)
    if opened is not None and (opening := json.loads(row[8]).get("opens")) is not None:
        scheduling.opened(db, opening, opened, runner, now)
    _settle(db, kind, pending_id, row[4])
    if kind == "card" and refs and _states(db, pending_id) - {"open"}:
        key = ThreadKey(*row[:4])
        redraw = _redraw(key, pending_id, refs[-1], json.loads(row[8]))
        following += enqueue(db, [redraw], runner, now)
    return following


def retry_later(db: Connection, delivery_id: int, at: float, error: str, unsure: bool) -> None:
    """See Store.retry_later."""
    db.execute(SQL["delivery_retry"], (at, error, int(unsure), delivery_id))


def give_up(db: Connection, delivery_id: int, error: str, runner: str, now: float) -> list[Delivery]:
    """See Store.give_up."""
    row = db.execute(SQL["delivery_failed"], (error, now, delivery_id)).fetchone()
    return [] if row is None else _next(db, row, runner, now)


def card_copies(db: Connection, pending_id: str) -> list[CardCopy]:
    """See Store.card_copies."""
    copies = []
    for channel, workspace, conversation, thread, refs, state, attempts, doubtful, payload in db.execute(
        SQL["card_copies"], (pending_id,)
    ):
        copies.append(
            CardCopy(
                key=ThreadKey(channel, workspace, conversation, thread),
                refs=tuple(json.loads(refs)),
                unsure=bool(doubtful) or attempts > (1 if state == "sent" else 0),
                dress=json.loads(payload),
            )
        )
    return copies


def adopt_card(db: Connection, pending_id: str, key: ThreadKey, ref: str, now: float) -> None:
    """See Store.adopt_card. One of which something is decided by now is redrawn at once."""
    card = db.execute(SQL["card_of"], (pending_id,)).fetchone()[0]
    db.execute(SQL["adopt_card"], (*key, card, ref, now, now, now))
    if _states(db, card) - {"open"}:
        enqueue_later(db, [_redraw(key, card, ref, {})], now)


def _settle(db: Connection, kind: str, pending_id: str, ref: str) -> None:
    """A card that shows how its requests ended, or cannot be changed any more, is looked at no more."""
    if kind == "redraw" and "open" not in (_states(db, pending_id) or {"open"}):
        db.execute(SQL["settle_card"], (pending_id, ref))


def _states(db: Connection, card: str) -> set[str]:
    """In which states the requests on a card are."""
    return {row[0] for row in db.execute(SQL["card_states"], (card,))}


def redraws_of(db: Connection, pending_id: str) -> list[Outgoing]:
    """One redraw for every copy of a pending's card that is out there."""
    row = db.execute(SQL["card_of"], (pending_id,)).fetchone()
    copies = {(copy.key, copy.refs[-1]): copy for copy in card_copies(db, pending_id) if copy.refs}
    return [_redraw(key, row[0], ref, copy.dress) for (key, ref), copy in copies.items()]


def _redraw(key: ThreadKey, card: str, ref: str, dress: Json) -> Outgoing:
    """`dress`: the payload of the card, which is drawn again in the same way."""
    return Outgoing(key=key, kind="redraw", payload=dress, pending_id=card, ref=ref)


def enqueue_later(db: Connection, rows: Sequence[Outgoing], now: float) -> int:
    """Add rows without claiming them: whoever looks next sends them. The id of the first, 0 for none."""
    ids = []
    for row in rows:
        if row.kind == "redraw":
            db.execute(SQL["drop_older_redraws"], (row.pending_id, row.ref, *row.key))
        added = db.execute(
            SQL["insert_delivery"],
            (
                *row.key,
                row.kind,
                "queued",
                row.session_id,
                row.pending_id,
                dumps(row.payload),
                row.ref,
                "",
                "",
                0,
                now,
                now,
            ),
        )
        ids.append(added.lastrowid or 0)
    return ids[0] if ids else 0


def redraw_stale(db: Connection, now: float) -> int:
    """See Store.redraw_cards."""
    rows = db.execute(SQL["stale_cards"]).fetchall()
    stale = [_redraw(ThreadKey(*row[:4]), row[4], row[5], json.loads(row[6])) for row in rows]
    enqueue_later(db, stale, now)
    return len(stale)


def move_thread(db: Connection, old: ThreadKey, new: ThreadKey) -> None:
    """See Store.move_thread."""
    there = (new.workspace, new.conversation, old.channel, old.workspace, old.conversation)
    for statement in (
        "move_threads",
        "move_sessions",
        "move_deliveries",
        "move_schedule_places",
        "move_notes",
    ):
        db.execute(SQL[statement], there)
