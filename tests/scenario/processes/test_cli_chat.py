"""`threadgate chat` in a pseudo-terminal, as a person sees it; and the demo across a restart."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.demo_process import Demo, free_port
from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import LIMIT, PROGRAM, environment, until
from tests.scenario.processes.house import House

pytestmark = pytest.mark.crash


class Screen:
    """The terminal of one running program: what it shows, and a keyboard."""

    def __init__(self, process: asyncio.subprocess.Process, keyboard: int) -> None:
        self.process, self.shown = process, ""
        self._keyboard, self._news = keyboard, asyncio.Event()
        asyncio.get_running_loop().add_reader(keyboard, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._keyboard, 65_536)
        except OSError:  # the program has closed its end
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._keyboard)
        self.shown += data.decode(errors="replace")
        self._news.set()

    async def shows(self, text: str) -> None:
        """Wait until a text is on the screen, and forget everything up to it."""
        try:
            async with asyncio.timeout(LIMIT):
                while text not in self.shown:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} was never shown, only: {self.shown}") from None
        self.shown = self.shown.partition(text)[2]

    def types(self, line: str) -> None:
        """A line and Enter; "" is Enter alone."""
        os.write(self._keyboard, f"{line}\n".encode())

    def ends_input(self) -> None:
        """Ctrl-D."""
        os.write(self._keyboard, b"\x04")

    async def ended(self) -> int:
        async with asyncio.timeout(LIMIT):
            return await self.process.wait()

    async def close(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        asyncio.get_running_loop().remove_reader(self._keyboard)
        os.close(self._keyboard)


@pytest.fixture
async def house(furnish: Furnish) -> House:
    return furnish()


@pytest.fixture
async def screen(house: House) -> AsyncIterator[Screen]:
    """`threadgate chat`, at its first prompt."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *(PROGRAM, "chat", "--config", "config.toml"),
        cwd=house.folder,
        env=environment(TERM="xterm"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen = Screen(process, ours)
    await screen.shows("you> ")
    yield screen
    await screen.close()


async def test_an_approval_is_given_live_and_the_answer_follows(house: House, screen: Screen) -> None:
    screen.types("pay A1")
    await screen.shows("Approve pay?")
    await screen.shows("A1")
    await screen.shows("[1] Approve")
    assert house.ledger("pay") == []
    screen.types("1")
    await screen.shows("Paid A1.")
    assert len(house.ledger("pay")) == 1
    await screen.shows("you> ")
    screen.types("/quit")
    assert await screen.ended() == 0
    house.assert_valid()


async def test_a_denial_ends_the_turn_and_the_next_message_is_answered(house: House, screen: Screen) -> None:
    screen.types("pay A1")
    await screen.shows("[3] Deny")
    screen.types("nonsense")
    await screen.shows("'nonsense' is none of the choices.")
    screen.types("3")
    await screen.shows("you> ")
    screen.types("hello")
    await screen.shows("Hello yourself.")
    await screen.shows("you> ")
    screen.ends_input()
    assert await screen.ended() == 0
    assert house.ledger("pay") == []
    house.assert_valid()


async def test_what_is_left_open_stays_pending_after_the_chat(house: House, screen: Screen) -> None:
    screen.types("pay A1")
    await screen.shows("decide later")
    screen.types("")
    await screen.shows("you> ")
    screen.types("/quit")
    assert await screen.ended() == 0
    assert len(house.open_pendings()) == 1


async def test_a_demo_that_was_killed_still_has_the_card_and_pays_once(tmp_path: Path) -> None:
    demo = Demo(tmp_path, free_port())
    try:
        await demo.start()
        async with httpx.AsyncClient(base_url=demo.url, timeout=30) as client:
            body = {"text": "refund order A-1001"}
            posted = (await client.post("/agents/assistant/messages?wait=1", json=body)).json()
            (pending_id,) = posted["pending"]
        await demo.kill()
        await demo.start()
        async with httpx.AsyncClient(base_url=demo.url, timeout=30) as client:
            path = f"/pending-approvals/{pending_id}/resolve"
            outcomes = [
                (await client.post(path, json={"decision": "approve"})).json()["outcome"] for _ in range(2)
            ]

            async def completed() -> bool:
                session = (await client.get(f"/sessions/{posted['session_id']}")).json()
                return bool(session["status"] == "completed")

            await until(completed, "the refund is answered")
        assert outcomes == ["resumed", "already"]
        assert [entry["order_id"] for entry in demo.ledger] == ["A-1001"]
        assert await demo.stop() == 0
    finally:
        await demo.kill()
