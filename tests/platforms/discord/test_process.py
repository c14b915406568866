"""The server as its own process, steered over HTTP, as the crash tests use it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.platforms.discord import ids

ROOT = Path(__file__).resolve().parents[3]


class Remote:
    """What a test sees of the process."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def do(self, verb: str, **arguments: Any) -> Any:
        async with self.session.post(f"/_control/{verb}", json=arguments) as answer:
            body = await answer.json()
        assert "error" not in body, body
        return body["result"]

    async def state(self) -> Any:
        async with self.session.get("/_control/state") as answer:
            return await answer.json()

    async def send(self, channel: str, body: Any) -> Any:
        headers = {"Authorization": f"Bot {(await self.state())['token']}"}
        path = f"/api/v10/channels/{channel}/messages"
        async with self.session.post(path, json=body, headers=headers) as answer:
            return await answer.json()


@pytest.fixture
async def remote() -> AsyncIterator[Remote]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.platforms.discord", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        word, port = (await process.stdout.readline()).decode().split()
    assert word == "ready"
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        yield Remote(session)
    process.terminate()
    async with asyncio.timeout(20):
        assert await process.wait() == 0


async def test_people_are_steered_and_watched_over_http(remote: Remote) -> None:
    said = await remote.do("say", user=ids.ADA, channel=ids.GENERAL, text="hello", files=[["a.txt", "abc"]])
    assert said["attachments"][0]["size"] == 3
    button = {"type": 2, "style": 1, "label": "Go", "custom_id": "d"}
    card = await remote.send(
        ids.GENERAL, {"content": "card", "components": [{"type": 1, "components": [button]}]}
    )
    press = await remote.do("press", user=ids.ADA, channel=ids.GENERAL, message=card["id"], label="Go")
    assert press["response"] is None
    await remote.do("advance", seconds=3)
    assert (await remote.do("taken", id=press["id"]))["failed"] == "The application did not respond"
    assert [m["content"] for m in await remote.do("messages", channel=ids.GENERAL)] == ["hello", "card"]
    state = await remote.state()
    assert [call["route"] for call in state["calls"]] == ["POST /channels/{channel}/messages"]
    assert state["failures"] == []


async def test_another_process_can_wait_for_what_a_bot_does(remote: Remote) -> None:
    pattern = "POST /channels/*/messages"
    await remote.do("hold", pattern=pattern)
    sending = asyncio.create_task(remote.send(ids.GENERAL, {"content": "later"}))
    waiting = asyncio.create_task(remote.do("wait_messages", channel=ids.GENERAL, count=1))
    await remote.do("release", pattern=pattern)
    assert [m["content"] for m in await waiting] == ["later"]
    assert (await sending)["content"] == "later"
    late = {"pattern": "GET /users/@me", "count": 1, "within": 0}
    async with remote.session.post("/_control/wait_calls", json=late) as answer:
        assert answer.status == 504


async def test_settings_are_changed_over_http(remote: Remote) -> None:
    assert await remote.do("set", gateway_open=False, enforced=True) == ["enforced", "gateway_open"]
    async with remote.session.get("/gateway") as answer:
        assert answer.status == 503
    statuses = [(await remote.send(ids.GENERAL, {"content": "x"})).get("retry_after") for _ in range(6)]
    assert statuses[:5] == [None] * 5
    assert statuses[5] > 0


async def test_a_wrong_verb_or_argument_is_an_error(remote: Remote) -> None:
    async with remote.session.post("/_control/explode") as answer:
        assert answer.status == 404
    async with remote.session.post("/_control/say", json={"channel": "1"}) as answer:
        assert answer.status == 400
