"""A whole gateway on Slack, in this process, over real sockets: what people do and what they see.

The model and its tools are those of tests/scenario/telegram/house.py: what it is told, it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from channels.slack import manifest
from channels.slack.adapter import SlackChannel
from channels.slack.remnants import UNSEEN
from gateway.agent import Agent
from gateway.app import Gateway, Parts
from gateway.app.people import ConfiguredRules
from gateway.clock import Clock, SystemClock
from gateway.messages import Json
from gateway.providers.base import Model
from gateway.store.schedule_rows import Standing
from gateway.store.sqlite import SqliteStore
from tests.clock import FakeClock
from tests.platforms.slack import SlackServer
from tests.resting import at_rest
from tests.scenario.telegram.house import PATIENCE, PICTURE, QUESTIONS, House, HouseModel, section

__all__ = ["PATIENCE", "PICTURE", "QUESTIONS", "House", "HouseModel", "Post", "Scene", "running", "section"]

T = TypeVar("T")
ADA, BOB, CLEO, GUEST, OUTSIDER = "U1", "U2", "U3", "UG", "UX"
GENERAL, APPROVALS, SECRET, SHARED, GROUP = "C1", "C2", "G1", "CX", "M1"
HERS, HIS = "D1", "D2"  # the direct conversations of Ada and Bob with the bot
ME = "<@UBOT>"
TRANSPORTS = pytest.mark.parametrize("transport", ["socket", "http"])


@dataclass(frozen=True)
class Post:
    """A message of the bot, as it is now."""

    server: SlackServer
    channel: str
    ts: str

    @property
    def message(self) -> Json:
        return self.server.message(self.channel, self.ts)

    @property
    def text(self) -> str:
        """All words that people see in it."""
        return self.server.shown(self.channel, self.ts).replace(UNSEEN, "")

    @property
    def labels(self) -> list[str]:
        """The words on its controls."""
        return list(self.server.labels(self.channel, self.ts))

    @property
    def thread(self) -> str:
        return str(self.message.get("thread_ts", ""))

    @property
    def blocks(self) -> list[Json]:
        return list(self.message.get("blocks", []))


@dataclass
class Scene:
    """A running gateway and the people around it."""

    house: House
    server: SlackServer
    channel: SlackChannel
    gateway: Gateway
    clock: Clock

    # ---- what people do

    def say(
        self, text: str, user: str = ADA, channel: str = GENERAL, thread: str | None = None, **more: Any
    ) -> Any:
        """Somebody writes; `.ts` of what comes back is the message's."""
        return self.server.say(user, channel, text, thread_ts=thread, **more)

    def call(
        self, text: str, user: str = ADA, channel: str = GENERAL, thread: str | None = None, **more: Any
    ) -> Any:
        """Somebody mentions the bot."""
        return self.say(f"{ME} {text}", user, channel, thread, **more)

    async def press(self, post: Post, label: str, user: str = ADA) -> str:
        """Press a button, or pick an option, and wait for what the person is told about it."""
        before = len(self.server.ephemerals(user))
        pressed = self.server.press(user, post.channel, post.ts, label)
        await pressed.taken()
        return await self.told(user, before)

    async def told(self, user: str = ADA, before: int = 0) -> str:
        """The newest words for this person's eyes only, once there are more than `before`."""
        found = await self.until(
            lambda: self.whispers(user) if len(self.whispers(user)) > before else [], f"words for {user}"
        )
        return found[-1]

    def whispers(self, user: str = ADA) -> list[str]:
        """All words for this person's eyes only."""
        return [_words(message) for message in self.server.ephemerals(user)]

    async def fill_in(self, post: Post, label: str, values: Json, user: str = ADA) -> Any:
        """Press a button that opens a modal, and submit it; what became of the submission."""
        await self.server.press(user, post.channel, post.ts, label).taken()
        await self.server.wait_view(user)
        return await self.server.submit_view(user, values)

    async def command(self, text: str, user: str = ADA, channel: str = GENERAL) -> str:
        """`/threadgate TEXT`; the words of the answer, which nobody else sees."""
        before = len(self.server.ephemerals(user))
        await self.server.slash(user, channel, text).taken()
        return await self.told(user, before)

    # ---- what they see

    async def until(self, check: Callable[[], T], what: str) -> T:
        """Wait for something that can be seen on the platform. With a clock that stands still, time
        passes meanwhile, half a second at a time."""
        try:
            if isinstance(self.clock, FakeClock):
                return await self._while_time_passes(self.clock, check)
            return await self.server.wait_for(check, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"never seen: {what}\n{self._seen()}") from None

    async def _while_time_passes(self, clock: FakeClock, check: Callable[[], T]) -> T:
        async with asyncio.timeout(PATIENCE * 2):
            while not (value := check()):
                clock.advance(0.5)
                self.server.advance(0.5)
                try:
                    return await self.server.wait_for(check, 0.02)
                except TimeoutError:
                    continue
        return value

    async def passes(self, seconds: float) -> None:
        """Let so much time pass, some seconds at a time. Only with a clock that stands still."""
        clock = self.clock
        assert isinstance(clock, FakeClock)
        until = clock.monotonic() + seconds
        while (left := until - clock.monotonic()) > 0:
            clock.advance(min(5.0, left))
            self.server.advance(min(5.0, left))
            with contextlib.suppress(TimeoutError):  # everybody does what is due by then
                await self.server.wait_for(lambda: False, 0.01)

    def _seen(self) -> str:
        lines = [f"{post.channel} {post.thread}: {post.text!r} {post.labels}" for post in self._everything()]
        lines += [f"to {user} only: {words!r}" for user in self.server.users for words in self.whispers(user)]
        return "\n".join(lines)

    def _everything(self) -> list[Post]:
        return [post for channel in self.server.channels for post in self.posts(channel)]

    def posts(self, channel: str = GENERAL, thread: str | None = None) -> list[Post]:
        """The bot's messages there, oldest first."""
        found = [Post(self.server, channel, m["ts"]) for m in self.server.from_bot(channel)]
        return [post for post in found if thread is None or post.thread == thread]

    def texts(self, channel: str = GENERAL, thread: str | None = None) -> list[str]:
        """What the bot has written there."""
        return [post.text for post in self.posts(channel, thread)]

    async def sees(
        self, begins: str, channel: str = GENERAL, thread: str | None = None, count: int = 1
    ) -> Post:
        """Wait until the bot has written something that begins so, `count` times; the newest."""

        def found() -> list[Post]:
            posts = [post for post in self.posts(channel, thread) if post.text.startswith(begins)]
            return posts if len(posts) >= count else []

        return (await self.until(found, f"{begins!r} in {channel}"))[-1]

    def cards(self, label: str = "Approve", channel: str = GENERAL, thread: str | None = None) -> list[Post]:
        """The bot's messages that have a control with these words now."""
        return [post for post in self.posts(channel, thread) if label in post.labels]

    async def card(self, label: str = "Approve", channel: str = GENERAL, thread: str | None = None) -> Post:
        """Wait for a card with this control; the newest."""
        what = f"a card with {label!r} in {channel}"
        return (await self.until(lambda: self.cards(label, channel, thread), what))[-1]

    async def shows(self, post: Post, words: str) -> Post:
        """Wait until a message says this."""
        await self.until(lambda: words in post.text, f"{words!r} in {post.text!r}")
        return post

    async def rest(self) -> None:
        """Wait until everything that came in is carried out and everything that goes out is out."""
        async with asyncio.timeout(PATIENCE * 2):
            while True:
                await self.until(lambda: not any(d.in_flight for d in self.server.deliveries), "all taken in")
                if await at_rest(self.gateway):
                    return
                if isinstance(self.clock, FakeClock):
                    self.clock.advance(0.5)
                    self.server.advance(0.5)
                await asyncio.sleep(0.01)  # rows give no events


def _words(message: Json) -> str:
    pieces: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("text"), str):
                pieces.append(value["text"])
            for entry in value.values():
                walk(entry)
        elif isinstance(value, list):
            for entry in value:
                walk(entry)

    walk(message.get("blocks") or [])
    text = "\n".join(pieces) or str(message.get("text", ""))
    return re.sub(r"&(amp|lt|gt);", lambda m: {"amp": "&", "lt": "<", "gt": ">"}[m[1]], text)


@asynccontextmanager
async def running(
    house: House,
    server: SlackServer,
    *,
    transport: str = "socket",
    agent: Agent | None = None,
    model: Model | None = None,
    clock: Clock | None = None,
    users: Sequence[str] = ("U1", "U2"),
    approvers: Sequence[str] = (),
    pairing: bool = False,
    operators: Sequence[str] = ("cli:local",),
    context: int = 20,
    more: Sequence[Agent] = (),
    schedules: Sequence[Standing] = (),
    **options: Any,
) -> AsyncIterator[Scene]:
    """A gateway on the house's database, with one bot, by Socket Mode or posted to over HTTP. The app
    has what our manifest gives it and no more."""
    clock = clock or SystemClock()
    chosen, speaker = agent or house.agent(), model or HouseModel(house)
    http = transport == "http"
    url = "https://bot.example/slack/events" if http else ""
    server.install(manifest.manifest("http" if http else "socket", name="Threadgate", url=url))
    secrets = {"signing_secret": server.app.signing_secret} if http else {"app_token": server.app.app_token}
    if isinstance(clock, FakeClock):
        options = {"sleep": clock.sleep, "monotonic": clock.monotonic, **options}
    channel = SlackChannel(
        options.pop("bot_token", server.app.bot_token),
        **{"api_base": server.api_base, "listen": ("127.0.0.1", 0), "between": 0.0, **secrets, **options},
    )
    parts = Parts(
        store=SqliteStore(house.folder / "gateway.db", clock=clock),
        agents={one.name: one for one in (chosen, *more)},
        model_of=lambda _: speaker,
        rules=ConfiguredRules(
            default_agent=chosen.name,
            users={"slack": frozenset(users)},
            approvers={"slack": tuple(approvers)},
            workspaces={"slack": ""},
            operators=tuple(operators),
            pairing=frozenset({"slack"} if pairing else ()),
            context={"slack": context},
            threaded=frozenset({"slack"}),
        ),
        channels=(channel,),
        schedules=schedules,
        operators=operators,
        drain=0.2,
        data_dir=house.data,
        clock=clock,
    )
    async with Gateway(parts) as gateway:
        scene = Scene(house, server, channel, gateway, clock)
        if http:
            server.deliver_to(f"http://127.0.0.1:{channel.http_port}/slack/events")
        else:
            await scene.until(lambda: len(server.connections) >= 1, "a connection")
        yield scene
        server.deliver_to(None)
