"""Server-sent events: order, ids, resuming without a gap."""

from __future__ import annotations

import httpx

from channels.base import OutboundMessage
from channels.web.adapter import WebChannel, web_thread
from tests.sse import Frame, frames
from tests.web_backend import MemoryBackend


async def read(client: httpx.AsyncClient, path: str, until: str, **headers: str) -> list[Frame]:
    """The frames of a stream up to the first of type `until`."""
    got = []
    async with client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200
        async for frame in frames(response):
            got.append(frame)
            if frame.type == until:
                break
    return got


async def test_the_stream_of_a_message_starts_with_session_and_ends_with_done(
    client: httpx.AsyncClient,
) -> None:
    async with client.stream("POST", "/agents/assistant/messages/stream", json={"text": "hello"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        got = [frame async for frame in frames(response)]
    types = [frame.type for frame in got]
    assert (types[0], types[-1]) == ("session", "done")
    assert [frame.data["type"] for frame in got] == types


async def test_the_pieces_of_a_growing_reply_are_whole_for_whoever_joins_late(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    posted = (await client.post("/agents/assistant/messages", json={"text": "slow"})).json()
    session = backend.rows[posted["session_id"]]
    await backend.until(lambda: bool(session.growing))
    pieces = []
    async with client.stream("GET", f"/sessions/{session.id}/events") as response:
        async for frame in frames(response):
            if frame.type == "assistant:delta":
                pieces.append(str(frame.data["text"]))
                backend.gate.set()
            if frame.type == "done":
                break
    assert len(pieces) > 1
    assert "".join(pieces) == "You said: **slow**"


async def test_stored_events_have_rising_ids_and_deltas_have_none(
    client: httpx.AsyncClient, backend: MemoryBackend
) -> None:
    got = []
    async with client.stream("POST", "/agents/assistant/messages/stream", json={"text": "slow"}) as response:
        async for frame in frames(response):
            got.append(frame)
            if frame.type == "assistant:delta":
                backend.gate.set()
    assert "assistant:delta" in [frame.type for frame in got]
    assert all((frame.id is None) == (frame.type == "assistant:delta") for frame in got)
    ids = [int(frame.id) for frame in got if frame.id]
    assert ids == sorted(set(ids))


async def test_last_event_id_continues_without_a_gap(client: httpx.AsyncClient) -> None:
    posted = (await client.post("/agents/assistant/messages?wait=1", json={"text": "hello"})).json()
    path = f"/sessions/{posted['session_id']}/events"
    whole = await read(client, path, "done")
    for cut in range(len(whole) - 1):
        rest = await read(client, path, "done", **{"Last-Event-ID": str(whole[cut].id)})
        assert whole[: cut + 1] + rest == whole


async def test_the_query_names_the_start_where_a_header_cannot(client: httpx.AsyncClient) -> None:
    posted = (await client.post("/agents/assistant/messages?wait=1", json={"text": "hello"})).json()
    path = f"/sessions/{posted['session_id']}/events"
    whole = await read(client, path, "done")
    assert await read(client, f"{path}?after={whole[0].id}", "done") == whole[1:]
    header_wins = await read(
        client, f"{path}?after={whole[0].id}", "done", **{"Last-Event-ID": str(whole[1].id)}
    )
    assert header_wins == whole[2:]


async def test_one_stream_follows_a_session_over_stop_and_resume(client: httpx.AsyncClient) -> None:
    stopped = (await client.post("/agents/assistant/messages?wait=1", json={"text": "refund 25"})).json()
    async with client.stream("GET", f"/sessions/{stopped['session_id']}/events") as response:
        events = frames(response)
        first = []
        async for frame in events:
            first.append(frame.type)
            if frame.type == "done":
                break
        await client.post(f"/pending-approvals/{stopped['pending'][0]}/resolve", json={"decision": "approve"})
        second = []
        async for frame in events:
            second.append(frame.type)
            if frame.type == "done":
                break
    assert first[-2:] == ["approval:pending", "done"]
    assert (second[0], second[-1]) == ("session", "done")


async def test_a_position_that_is_no_id_is_refused_before_the_stream(client: httpx.AsyncClient) -> None:
    posted = (await client.post("/agents/assistant/messages?wait=1", json={"text": "hello"})).json()
    response = await client.get(
        f"/sessions/{posted['session_id']}/events", headers={"Last-Event-ID": "over there"}
    )
    assert (response.status_code, response.json()["error"]["field"]) == (422, "Last-Event-ID")


async def test_a_stream_of_an_unknown_session_is_404(client: httpx.AsyncClient) -> None:
    response = await client.get("/sessions/nowhere/events")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_session")


async def test_a_reader_that_leaves_is_forgotten(client: httpx.AsyncClient, backend: MemoryBackend) -> None:
    posted = (await client.post("/agents/assistant/messages?wait=1", json={"text": "hello"})).json()
    listeners = backend.rows[posted["session_id"]].listeners
    await read(client, f"/sessions/{posted['session_id']}/events", "done")
    await backend.until(lambda: not listeners)
    assert not listeners


async def test_the_page_hears_of_deliveries_on_the_same_stream(
    channel: WebChannel, client: httpx.AsyncClient
) -> None:
    posted = (await client.post("/agents/assistant/messages?wait=1", json={"text": "hello"})).json()
    async with client.stream("GET", f"/sessions/{posted['session_id']}/events?changes=1") as response:
        events = frames(response)
        async for frame in events:
            if frame.type == "done":
                break
        thread = web_thread(posted["session_id"])
        ref = await channel.send(thread, OutboundMessage(text="stopped", kind="notice"))
        change = await anext(events)
        await channel.edit(ref, OutboundMessage(text="an answer"))
        nudge = await anext(events)
    assert change.type == "changed"
    assert change.data == {"conversation": posted["session_id"], "kind": "notice", "text": "stopped"}
    assert nudge.data == {"conversation": posted["session_id"], "kind": "answer", "text": ""}


async def test_a_program_that_follows_a_session_sees_no_nudges(
    channel: WebChannel, client: httpx.AsyncClient
) -> None:
    posted = (await client.post("/agents/assistant/messages?wait=1", json={"text": "hello"})).json()
    async with client.stream("GET", f"/sessions/{posted['session_id']}/events") as response:
        events = frames(response)
        async for frame in events:
            if frame.type == "done":
                break
        channel.nudge(posted["session_id"])
        body = {"text": "again", "session_id": posted["session_id"]}
        await client.post("/agents/assistant/messages", json=body)
        assert (await anext(events)).type == "session"
