"""Webhooks over real sockets: what is posted, how it is signed, what happens when a receiver fails.

The receiver checks every request as docs/http-api.md tells receivers to."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.app.webhooks import MOST_ATTEMPTS, Hook, signature
from gateway.messages import Json
from tests.app_scene import PATIENCE, SECRET, House, running
from tests.clock import FakeClock

KEY = "whsec-0123456789abcdef"
EVERYTHING = {"pager": ("approval:pending", "question:pending", "done")}


@dataclass
class Receiver:
    """Takes what is signed with the key, once for each id. `answers`: the statuses of the next requests."""

    clock: FakeClock
    url: str = ""
    answers: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)
    taken: dict[str, Json] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        told, id_ = request.headers, request.headers["X-Threadgate-Delivery"]
        expected = hmac.new(
            KEY.encode(), told["X-Threadgate-Timestamp"].encode() + b"." + body, hashlib.sha256
        )
        fresh = abs(int(told["X-Threadgate-Timestamp"]) - self.clock.now()) <= 300
        signed = hmac.compare_digest(told["X-Threadgate-Signature"], f"v1={expected.hexdigest()}")
        if request.path != "/hook" or request.content_type != "application/json" or not (fresh and signed):
            self.refused.append(id_)
            return web.Response(status=400)
        async with self.news:
            self.tried.append(id_)
            status = self.answers.pop(0) if self.answers else 204
            if status < 300:
                assert json.loads(body)["id"] == id_
                self.taken.setdefault(id_, json.loads(body))
            self.news.notify_all()
        return web.Response(status=status, headers=self.headers)

    async def until(self, ready: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE), self.news:
            await self.news.wait_for(ready)

    def bodies(self, type_: str) -> list[Json]:
        return [body for body in self.taken.values() if body["type"] == type_]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver(FakeClock())
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield made
    await runner.cleanup()
    assert made.refused == []


def hooked(receiver: Receiver, **more: Any) -> dict[str, Any]:
    hook = Hook(url=more.pop("url", receiver.url), secret=KEY)
    return {"webhooks": {"pager": hook}, "hooks": EVERYTHING, "clock": receiver.clock, **more}


async def test_the_end_of_a_turn_is_told_and_signed(house: House, receiver: Receiver) -> None:
    async with running(house, **hooked(receiver)) as scene:
        done = await scene.ask("hello")
        await receiver.until(lambda: receiver.bodies("done"))
    (body,) = receiver.bodies("done")
    assert {name: body[name] for name in ("session_id", "turn_id", "outcome", "text", "pending")} == {
        "session_id": done["session_id"],
        "turn_id": done["turn_id"],
        "outcome": "completed",
        "text": "You said: hello",
        "pending": [],
    }


async def test_a_request_is_told_masked_and_told_again_when_it_is_decided(
    house: House, receiver: Receiver
) -> None:
    async with running(house, **hooked(receiver)) as scene:
        stopped = await scene.ask("pay A-1 30")
        (pending_id,) = stopped["pending"]
        await receiver.until(lambda: receiver.bodies("approval:pending") and receiver.bodies("done"))
        (body,) = receiver.bodies("approval:pending")
        (entry,) = body["pending"]
        assert (entry["pending_id"], entry["tool"], entry["state"]) == (pending_id, "pay", "open")
        assert entry["args"]["order"] == "A-1" and SECRET not in json.dumps(receiver.taken)
        assert receiver.bodies("done")[0]["pending"] == [pending_id]
        assert (await scene.resolve(pending_id))[0] == 200
        await receiver.until(
            lambda: receiver.bodies("approval:changed") and len(receiver.bodies("done")) == 2
        )
        (changed,) = receiver.bodies("approval:changed")[-1]["pending"]
        assert changed["state"] == "decided" and changed["message"].startswith("Approved by web:local")
        assert [body["outcome"] for body in receiver.bodies("done")] == ["pending_approval", "completed"]


async def test_a_rule_tells_its_webhook_whatever_it_wants_to_hear(house: House, receiver: Receiver) -> None:
    agent = house.agent(rule={"notify": ("webhook:pager",), "reveal": "approvers"})
    async with running(house, agent=agent, **hooked(receiver, hooks={"pager": ()})) as scene:
        await scene.ask("pay A-1 30")
        await receiver.until(lambda: receiver.bodies("approval:pending"))
        (entry,) = receiver.bodies("approval:pending")[0]["pending"]
        assert entry["hidden"] and entry["args"] == {}  # it is for those who decide
        assert receiver.bodies("done") == []


async def test_a_question_is_told(house: House, receiver: Receiver) -> None:
    async with running(house, **hooked(receiver)) as scene:
        await scene.ask("ask")
        await receiver.until(lambda: receiver.bodies("question:pending"))


def was_tried(receiver: Receiver, times: int) -> bool:
    return len(receiver.tried) == times


async def test_a_receiver_that_fails_is_tried_again_later_under_the_same_id(
    house: House, receiver: Receiver
) -> None:
    receiver.answers = [500, 503, 302]
    receiver.headers = {"location": "/elsewhere"}  # which is not gone to
    async with running(house, **hooked(receiver)) as scene:
        await scene.ask("hello")
        for tries, pause in ((1, 5.0), (2, 15.0), (3, 45.0)):
            await receiver.until(partial(was_tried, receiver, tries))
            await scene.gateway.deliveries.idle()
            due = await scene.gateway.store.next_delivery_at()
            assert due == receiver.clock.now() + pause
            receiver.clock.advance(pause)
        await receiver.until(lambda: receiver.taken)
    assert len(set(receiver.tried)) == 1 and len(receiver.tried) == 4


async def test_a_receiver_may_ask_for_a_longer_pause(house: House, receiver: Receiver) -> None:
    receiver.answers, receiver.headers = [429], {"retry-after": "60"}
    async with running(house, **hooked(receiver)) as scene:
        await scene.ask("hello")
        await receiver.until(lambda: receiver.tried)
        await scene.gateway.deliveries.idle()
        assert await scene.gateway.store.next_delivery_at() == receiver.clock.now() + 60


async def test_a_receiver_that_is_gone_is_not_tried_again(house: House, receiver: Receiver) -> None:
    receiver.answers = [410]
    async with running(house, **hooked(receiver)) as scene:
        await scene.ask("hello")
        await receiver.until(lambda: receiver.tried)
        await scene.gateway.deliveries.idle()
        assert await scene.gateway.store.next_delivery_at() is None


async def test_after_a_day_it_is_given_up(house: House, receiver: Receiver) -> None:
    receiver.answers = [500] * (MOST_ATTEMPTS + 5)
    async with running(house, **hooked(receiver)) as scene:
        await scene.ask("hello")
        for tries in range(1, MOST_ATTEMPTS + 1):
            await receiver.until(partial(was_tried, receiver, tries))
            await scene.gateway.deliveries.idle()
            receiver.clock.advance(3_600)
            scene.gateway._outbox_changed.set()
        assert await scene.gateway.store.next_delivery_at() is None
    assert len(receiver.tried) == MOST_ATTEMPTS


async def test_one_conversation_waits_for_no_other(house: House, receiver: Receiver) -> None:
    receiver.answers = [500]
    async with running(house, **hooked(receiver)) as scene:
        first = await scene.ask("one")
        await receiver.until(lambda: receiver.tried)
        second = await scene.ask("two")
        await receiver.until(lambda: receiver.taken)
        assert [body["session_id"] for body in receiver.bodies("done")] == [second["session_id"]]
        receiver.clock.advance(10)
        await receiver.until(lambda: len(receiver.taken) == 2)
        assert receiver.bodies("done")[1]["session_id"] == first["session_id"]


async def test_what_a_process_left_is_posted_by_the_next_one(house: House, receiver: Receiver) -> None:
    async with running(house, **hooked(receiver, url="http://127.0.0.1:1/hook")) as scene:
        await scene.ask("hello")
        await scene.gateway.deliveries.idle()
        assert receiver.taken == {}
    receiver.clock.advance(10)
    async with running(house, **hooked(receiver)):
        await receiver.until(lambda: receiver.bodies("done"))
    assert len(receiver.tried) == 1


async def test_neither_address_nor_key_is_written_to_the_log(
    house: House, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="gateway")
    receiver.answers = [500, 410]
    async with running(house, **hooked(receiver)) as scene:
        await scene.ask("hello")
        await receiver.until(lambda: len(receiver.tried) == 1)
        await scene.gateway.deliveries.idle()
        receiver.clock.advance(10)
        await receiver.until(lambda: len(receiver.tried) == 2)
        await scene.gateway.deliveries.idle()
    assert "given up" in caplog.text
    assert KEY not in caplog.text and "/hook" not in caplog.text


def test_the_signature_is_the_one_that_the_documentation_shows() -> None:
    body = b'{"id":"d_7","type":"done"}'
    shown = "v1=1a6ae107b5cab808325acf877d76530ce8a7d626dfff68418b508ada3e0f3362"
    assert signature("s3cret", "1796067351", body) == shown
    assert shown in Path("docs/http-api.md").read_text(encoding="utf-8")
