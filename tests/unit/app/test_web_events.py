"""The event streams over a real gateway: order, ids, late joiners, restarts, other processes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.app_scene import House, Scene, running
from tests.sse import Frame, frames, upto

STEP = ["budget:check", "assistant:delta", "assistant:text"]


def kinds(got: list[Frame]) -> list[str]:
    """The types in order, neighbouring deltas as one."""
    types = [frame.type for frame in got]
    return [t for n, t in enumerate(types) if t != "assistant:delta" or types[n - 1] != t]


async def test_the_stream_of_a_message_keeps_the_promised_order(scene: Scene) -> None:
    path = "/agents/assistant/messages/stream"
    async with scene.client.stream("POST", path, json={"text": "mixed"}) as response:
        got = [frame async for frame in frames(response)]
    # The model answers at once: whether anybody sees its deltas is a matter of luck.
    assert [frame.type for frame in got if frame.type != "assistant:delta"] == [
        "session",
        "budget:check",
        "assistant:text",
        "actauth:decision",
        "actauth:decision",
        "tool:started",
        "tool:result",
        "loop:pending_approval",
        "approval:pending",
        "done",
    ]
    assert all((frame.id is None) == (frame.type == "assistant:delta") for frame in got)
    assert [frame.id for frame in got if frame.id] == [f"1.{n}" for n in range(10)]


async def test_the_first_events_come_before_the_model_has_answered(scene: Scene) -> None:
    path = "/agents/assistant/messages/stream"
    async with scene.client.stream("POST", path, json={"text": "slow"}) as response:
        events = frames(response)
        got = await upto(events, "assistant:delta")
        assert [frame.type for frame in got] == ["session", "budget:check", "assistant:delta"]
        scene.house.let_answer.set()
        rest = await upto(events, "done")
    said = "".join(f.data["text"] for f in [*got, *rest] if f.type == "assistant:delta")
    assert said == "You said: slow"


async def test_a_late_joiner_gets_the_grown_reply_whole_and_in_its_place(scene: Scene) -> None:
    posted = await scene.say("slow")
    await scene.house.half_said.wait()
    streams = []
    for _ in range(3):
        async with scene.client.stream("GET", f"/sessions/{posted['session_id']}/events") as response:
            got = await upto(frames(response), "assistant:delta")
            streams.append([(frame.type, frame.data.get("text")) for frame in got])
    assert streams == [
        [("session", None), ("budget:check", None), ("assistant:delta", "You sa")] for _ in range(3)
    ]
    async with scene.client.stream("GET", f"/sessions/{posted['session_id']}/events") as response:
        events = frames(response)
        got = await upto(events, "assistant:delta")
        scene.house.let_answer.set()
        got += await upto(events, "done")
    assert kinds(got) == ["session", *STEP, "loop:done", "done"]
    assert "".join(f.data["text"] for f in got if f.type == "assistant:delta") == "You said: slow"


async def test_the_view_names_the_last_event_so_that_nothing_is_missed(scene: Scene) -> None:
    posted = await scene.say("slow")
    await scene.house.half_said.wait()
    view = await scene.view(posted["session_id"])
    path = f"/sessions/{posted['session_id']}/events"
    after = {"after": view["last_event_id"]} if view["last_event_id"] else {}
    async with scene.client.stream("GET", path, params=after) as response:
        events = frames(response)
        await upto(events, "assistant:delta")
        scene.house.let_answer.set()
        got = await upto(events, "done")
    assert kinds(got)[-3:] == ["assistant:text", "loop:done", "done"]


async def test_one_stream_follows_stop_resume_and_the_next_turn_without_a_gap(scene: Scene) -> None:
    first = await scene.ask("pay A-1 30")
    path = f"/sessions/{first['session_id']}/events"
    async with scene.client.stream("GET", path) as response:
        events = frames(response)
        got = await upto(events, "done")
        await scene.resolve(first["pending"][0])
        got += await upto(events, "done")
        await scene.say("thanks", first["session_id"])
        got += await upto(events, "done")
    ids = [frame.id for frame in got if frame.id]
    async with scene.client.stream("GET", path) as response:
        events = frames(response)
        again = [frame for _ in range(3) for frame in await upto(events, "done")]
    assert [frame.id for frame in again] == ids
    assert again == [frame for frame in got if frame.id]
    assert [frame.data["outcome"] for frame in got if frame.type == "done"] == [
        "pending_approval",
        "completed",
        "completed",
    ]


async def test_every_position_continues_with_exactly_the_rest(scene: Scene) -> None:
    first = await scene.ask("mixed")
    await scene.resolve(first["pending"][0])
    path = f"/sessions/{first['session_id']}/events"
    async with scene.client.stream("GET", path) as response:
        events = frames(response)
        whole = [frame for _ in range(2) for frame in await upto(events, "done")]
    whole = [frame for frame in whole if frame.id]
    for cut in range(len(whole) - 1):
        last = {"last-event-id": str(whole[cut].id)}
        async with scene.client.stream("GET", path, headers=last) as response:
            rest = [frame async for frame in _some(response, len(whole) - cut - 1)]
        assert rest == whole[cut + 1 :]


async def _some(response: httpx.Response, count: int) -> AsyncIterator[Frame]:
    async for frame in frames(response):
        if frame.id:
            yield frame
            count -= 1
        if not count:
            return


@pytest.mark.parametrize("after", ["over there", "9.0", "1.99", "0.0", "-1.2", "1", "1.2.3", "١.٢"])
async def test_a_position_that_is_no_event_is_refused_before_the_stream(scene: Scene, after: str) -> None:
    posted = await scene.ask("hello")
    response = await scene.client.get(f"/sessions/{posted['session_id']}/events", params={"after": after})
    assert (response.status_code, response.json()["error"]["field"]) == (422, "Last-Event-ID")


async def test_a_stream_goes_on_after_a_restart_from_the_last_event_seen(house: House) -> None:
    async with running(house) as scene:
        first = await scene.ask("pay A-1 30")
        path = f"/sessions/{first['session_id']}/events"
        async with scene.client.stream("GET", path) as response:
            seen = await upto(frames(response), "done")
    async with running(house) as scene:
        last = {"last-event-id": str(seen[-1].id)}
        async with scene.client.stream("GET", path, headers=last) as response:
            events = frames(response)
            await scene.resolve(first["pending"][0])
            rest = await upto(events, "done")
    assert (rest[0].type, rest[0].id) == ("session", "2.0")
    assert rest[-1].data["text"] == "Result: paid 30 for A-1"
    assert len(house.paid) == 1


async def test_a_turn_that_another_process_runs_is_followed_too(house: House) -> None:
    async with running(house) as runner, running(house) as onlooker:
        posted = await runner.say("slow")
        await house.half_said.wait()
        path = f"/sessions/{posted['session_id']}/events"
        async with onlooker.client.stream("GET", path) as response:
            events = frames(response)
            house.let_answer.set()
            got = await upto(events, "done")
        assert kinds(got) == ["session", "budget:check", "assistant:text", "loop:done", "done"]
        body = {"text": "pay A-1 30", "session_id": posted["session_id"]}
        waited = asyncio.create_task(onlooker.client.post("/agents/assistant/messages?wait=1", json=body))
        assert (await waited).json()["outcome"] == "pending_approval"


async def test_a_running_turn_that_is_taken_over_begins_its_reply_anew(house: House) -> None:
    async with running(house) as scene:
        posted = await scene.say("slow")
        await house.half_said.wait()
        path = f"/sessions/{posted['session_id']}/events"
        async with scene.client.stream("GET", path) as response:
            seen = await upto(frames(response), "assistant:delta")
    house.half_said.clear()
    async with running(house) as scene:
        await house.half_said.wait()
        last = {"last-event-id": str([frame.id for frame in seen if frame.id][-1])}
        async with scene.client.stream("GET", path, headers=last) as response:
            events = frames(response)
            got = await upto(events, "assistant:delta")
            house.let_answer.set()
            got += await upto(events, "done")
    assert kinds(got) == ["session", *STEP, "loop:done", "done"]
    assert "".join(f.data["text"] for f in got if f.type == "assistant:delta") == "You said: slow"
    assert [re.sub(r"\..*", "", str(frame.id)) for frame in got if frame.id] == ["1"] * 5


async def test_a_program_hears_of_a_running_tool_while_it_runs(scene: Scene) -> None:
    path = "/agents/assistant/messages/stream"
    async with scene.client.stream("POST", path, json={"text": "work"}) as response:
        events = frames(response)
        got = await upto(events, "tool:started")
        assert not scene.house.let_work.is_set()
        scene.house.let_work.set()
        got += await upto(events, "done")
    (result,) = [frame for frame in got if frame.type == "tool:result"]
    assert result.data["content"] == "worked"
