"""The server as its own process, steered over HTTP, as tests with several gateways use it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from slack_sdk.web.async_client import AsyncWebClient

from tests.platforms.slack.state import App

ROOT = Path(__file__).resolve().parents[3]


class Remote:
    """What a test sees of the process."""

    def __init__(self, base: str, session: aiohttp.ClientSession) -> None:
        self.base, self.session = base, session
        self.client = AsyncWebClient(token=App().bot_token, base_url=f"{base}/api/")

    async def ask(self, verb: str, **arguments: Any) -> tuple[int, Any]:
        async with self.session.post(f"{self.base}/_control/{verb}", json=arguments) as answer:
            return answer.status, await answer.json()

    async def do(self, verb: str, **arguments: Any) -> Any:
        _, answer = await self.ask(verb, **arguments)
        assert "error" not in answer, answer
        return answer["result"]


@pytest.fixture
async def remote() -> AsyncIterator[Remote]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.platforms.slack", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        word, port = (await process.stdout.readline()).decode().split()
    assert word == "ready"
    async with aiohttp.ClientSession() as session:
        yield Remote(f"http://127.0.0.1:{port}", session)
    process.terminate()
    async with asyncio.timeout(20):
        assert await process.wait() == 0


async def test_people_are_steered_and_watched_over_http(remote: Remote) -> None:
    url = (await remote.client.apps_connections_open(app_token=App().app_token))["url"]
    async with remote.session.ws_connect(url) as ws:
        assert (await ws.receive_json())["type"] == "hello"
        said = await remote.do("say", user="U1", channel="D1", text="hello")
        frame = await ws.receive_json()
        assert frame["payload"]["event"]["ts"] == said["ts"]
        acked = asyncio.create_task(remote.do("wait_acked", id=said["deliveries"][0]))
        await ws.send_json({"envelope_id": frame["envelope_id"]})
        assert (await acked)["acked"] is True
    button = {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": "a", "value": "d"}
    sent = await remote.client.chat_postMessage(
        channel="D1", text="card", blocks=[{"type": "actions", "elements": [button]}]
    )
    press = await remote.do("press", user="U1", channel="D1", ts=sent["ts"], label="Go")
    assert press["payload"]["actions"][0]["value"] == "d"
    assert [message["text"] for message in await remote.do("messages", channel="D1")] == ["hello", "card"]
    async with remote.session.get(f"{remote.base}/_control/state") as answer:
        state = await answer.json()
    assert [call["method"] for call in state["calls"]] == ["apps.connections.open", "chat.postMessage"]
    assert state["failures"] == []


async def test_a_wrong_verb_or_argument_is_an_error(remote: Remote) -> None:
    assert (await remote.ask("explode"))[0] == 404
    assert (await remote.ask("say", user="U1"))[0] == 400
    assert (await remote.ask("wait_calls", method="users.info", count=1, within=0))[0] == 504
    await remote.do("set", ack_within=1.5)
    assert (await remote.ask("set", port=1))[0] == 404
