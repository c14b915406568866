"""What the clock says about a request that was made on a page is read there."""

from __future__ import annotations

from gateway.patience import Escalation
from tests.app_scene import House, Scene, running
from tests.clock import FakeClock


def told(view: dict[str, object], start: str) -> bool:
    notices = view["notices"]
    assert isinstance(notices, list)
    return any(notice["text"].startswith(start) for notice in notices)


async def later(scene: Scene, clock: FakeClock, session: str, seconds: float, start: str) -> None:
    """Time goes by until the page shows a notice that begins so."""
    clock.advance(seconds)
    await scene.gateway.timers.sweep_once()
    await scene.until(session, lambda view: told(view, start))


async def test_reminder_escalation_and_end_are_notices_of_the_session(house: House) -> None:
    clock = FakeClock()
    step = Escalation(after=120.0, approvers=("web:default",))
    rule = {"remind": (60.0,), "escalate": step, "expires": 600.0}
    async with running(house, agent=house.agent(rule=rule), clock=clock) as scene:
        session = (await scene.ask("pay A-1 30"))["session_id"]
        await later(scene, clock, session, 60, "Still waiting for a decision")
        await later(scene, clock, session, 60, "Nobody has decided")
        (pending,) = (await scene.get("/pending"))["pending"]
        assert pending["approvers"][-1] == "web:default"
        await later(scene, clock, session, 480, "The request")
    assert house.paid == []
