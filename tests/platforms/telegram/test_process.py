"""The server as its own process, steered over HTTP, as the crash tests use it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[3]


class Remote:
    """What a test sees of the process."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def do(self, verb: str, **arguments: Any) -> Any:
        answer = (await self.client.post(f"/_control/{verb}", json=arguments)).json()
        assert "error" not in answer, answer
        return answer["result"]

    async def state(self) -> Any:
        return (await self.client.get("/_control/state")).json()


@pytest.fixture
async def remote() -> AsyncIterator[Remote]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.platforms.telegram",
        "--token",
        "777:s",
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        word, port = (await process.stdout.readline()).decode().split()
    assert word == "ready"
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        yield Remote(client)
    process.terminate()
    async with asyncio.timeout(20):
        assert await process.wait() == 0


async def test_people_are_steered_and_watched_over_http(remote: Remote) -> None:
    await remote.do("user", id=42, name="Ada")
    update = await remote.do("say", chat=42, user=42, text="hello")
    got = (await remote.client.post("/bot777:s/getUpdates")).json()["result"]
    assert got == [update]
    keyboard = '{"inline_keyboard": [[{"text": "Go", "callback_data": "d"}]]}'
    sent = await remote.client.post(
        "/bot777:s/sendMessage", data={"chat_id": "42", "text": "card", "reply_markup": keyboard}
    )
    card = sent.json()["result"]["message_id"]
    click = await remote.do("click", chat=42, message_id=card, button="Go", user=42)
    assert click["update"]["callback_query"]["data"] == "d"
    state = await remote.state()
    assert [m["text"] for m in state["chats"]["42"]["messages"]] == ["hello", "card"]
    assert [call["method"] for call in state["journal"]] == ["getUpdates", "sendMessage"]
    assert state["failures"] == []


async def test_another_process_can_wait_for_what_a_bot_does(remote: Remote) -> None:
    await remote.do("user", id=42, name="Ada")
    await remote.do("hold", method="sendMessage")
    sending = asyncio.create_task(
        remote.client.post("/bot777:s/sendMessage", data={"chat_id": "42", "text": "later"})
    )
    waiting = asyncio.create_task(remote.do("wait_messages", chat=42, count=1))
    await remote.do("release", method="sendMessage")
    assert [m["text"] for m in await waiting] == ["later"]
    assert (await sending).json()["ok"]
    late = await remote.client.post("/_control/wait_calls", json={"method": "getMe", "count": 1, "within": 0})
    assert late.status_code == 504


async def test_a_wrong_verb_or_argument_is_an_error(remote: Remote) -> None:
    assert (await remote.client.post("/_control/explode")).status_code == 404
    assert (await remote.client.post("/_control/say", json={"chat": 1})).status_code == 400
