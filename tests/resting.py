"""Whether a gateway of this process has anything left to do."""

from __future__ import annotations

from gateway.app import Gateway
from gateway.store.sqlite import SqliteStore

# `sending` too: a row is claimed in the database before there is a task that sends it.
_ON_THE_WAY = "SELECT count(*) FROM deliveries WHERE state IN ('queued', 'sending')"


async def at_rest(gateway: Gateway) -> bool:
    """Waits for what is being carried out and sent; True when nothing of it has led to more: no turn, press
    or command is at work, and no row of the outbox is to go out, now or later."""
    store, turns, intake = gateway.store, gateway.turns, gateway.intake
    assert isinstance(store, SqliteStore)
    await intake.idle()
    await gateway.deliveries.idle()
    views = await store.sessions()
    rows = await store._read(lambda db: db.execute(_ON_THE_WAY).fetchone()[0])
    busy = turns._running or turns._claiming or gateway.deliveries._tasks or intake._tasks
    return not busy and rows == 0 and all(view.status in ("idle", "pending") for view in views)
