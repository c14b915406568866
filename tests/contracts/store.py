"""What every store promises (see gateway/store/base.py), as one suite.

A test class per store inherits `StoreContract` and gives a `harness` fixture; `store` is one store
opened on its data.
"""

from __future__ import annotations

from tests.contracts.store_children import ChildContract
from tests.contracts.store_grants import GrantContract
from tests.contracts.store_inbox import InboxContract
from tests.contracts.store_notes import NoteContract
from tests.contracts.store_outbox import OutboxContract
from tests.contracts.store_people import PeopleContract
from tests.contracts.store_record import RecordContract
from tests.contracts.store_scene import StoreHarness
from tests.contracts.store_schedules import ScheduleContract
from tests.contracts.store_stops import StopContract
from tests.contracts.store_timers import TimerContract
from tests.contracts.store_turns import TurnContract

__all__ = ["StoreContract", "StoreHarness"]


class StoreContract(
    InboxContract,
    TurnContract,
    PeopleContract,
    GrantContract,
    StopContract,
    OutboxContract,
    NoteContract,
    RecordContract,
    TimerContract,
    ScheduleContract,
    ChildContract,
):
    """All of it."""
