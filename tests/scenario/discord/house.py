"""A whole gateway on Discord, in this process, over real sockets: what people do and what they see.

The model and its tools are those of tests/scenario/telegram/house.py: what it is told, it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from discord import AutoShardedClient
from discord.gateway import DiscordWebSocket

from channels.discord.adapter import DiscordChannel
from gateway.agent import Agent
from gateway.app import Gateway, Parts
from gateway.app.people import ConfiguredRules
from gateway.clock import Clock, SystemClock
from gateway.messages import Json
from gateway.providers.base import Model
from gateway.store.schedule_rows import Standing
from gateway.store.sqlite import SqliteStore
from tests.clock import FakeClock
from tests.platforms.discord.ids import ADA, APPROVALS, BOB, BOT, CLEO, DAN, FORUM, G1, GENERAL, OPS
from tests.platforms.discord.interactions import Interaction
from tests.platforms.discord.server import DiscordServer
from tests.resting import at_rest
from tests.scenario.telegram.house import PATIENCE, PICTURE, QUESTIONS, House, HouseModel, section

__all__ = [
    "ADA",
    "APPROVALS",
    "BOB",
    "BOT",
    "CLEO",
    "DAN",
    "FORUM",
    "G1",
    "GENERAL",
    "ME",
    "OPS",
    "PATIENCE",
    "PICTURE",
    "QUESTIONS",
    "House",
    "HouseModel",
    "Post",
    "Scene",
    "control",
    "plain",
    "running",
    "section",
    "walk",
]

T = TypeVar("T")
ME = f"<@{BOT}>"
_STEP = 0.5  # seconds that pass at once with a clock that stands still


def plain(text: str) -> str:
    """Words without the marks of small grey letters."""
    return re.sub(r"^-# ", "", text, flags=re.MULTILINE)


def walk(components: list[Any]) -> Iterator[Json]:
    for component in components:
        yield component
        yield from walk(component.get("components", []))


def control(post: Post, label: str) -> Json:
    """A control of a message as it is on the wire."""
    return next(c for c in walk(post.message["components"]) if c.get("label") == label)


@dataclass(frozen=True)
class Post:
    """A message of the bot, as it is now. `place`: the channel, thread or direct conversation."""

    server: DiscordServer
    place: str
    id: str

    @property
    def message(self) -> Json:
        return self.server.look(self.place, self.id)

    @property
    def text(self) -> str:
        """All words that people see in it."""
        return self.server.shown(self.place, self.id)

    @property
    def labels(self) -> list[str]:
        """The words on its controls."""
        return self.server.labels(self.place, self.id)

    @property
    def files(self) -> list[tuple[str, bytes]]:
        return self.server.attached(self.place, self.id)


@dataclass
class Scene:
    """A running gateway and the people around it."""

    house: House
    server: DiscordServer
    channel: DiscordChannel
    gateway: Gateway
    clock: Clock

    # ---- what people do

    def say(self, text: str, user: str = ADA, place: str = GENERAL, **more: Any) -> str:
        """Somebody writes, in private where `place` is their own id; the message's id."""
        return str(self.server.say(user, place, text, **more)["id"])

    def call(self, text: str, user: str = ADA, place: str = GENERAL, **more: Any) -> str:
        """Somebody mentions the bot. In a channel what comes back is the id of the thread as well."""
        return self.say(f"{ME} {text}", user, place, **more)

    async def press(self, post: Post, label: str, user: str = ADA) -> str:
        """Press a button, and wait for what the person is told about it."""
        before = len(self.whispers(user))
        pressed = await self.server.press(user, post.place, post.id, label).taken()
        assert not pressed.failed, pressed.failed
        return await self.told(user, before)

    async def choose(self, post: Post, picks: list[str], user: str = ADA, custom_id: str = "") -> Interaction:
        """Set a select to these options."""
        chosen = await self.server.choose(user, post.place, post.id, picks, custom_id).taken()
        assert not chosen.failed, chosen.failed
        return chosen

    async def fill_in(self, post: Post, label: str, values: Json, user: str = ADA) -> Interaction:
        """Press a button that opens a form, and submit it; the submission, once it is answered."""
        opened = await self.server.press(user, post.place, post.id, label).taken()
        assert opened.modal is not None, opened.texts or opened.failed
        return await self.server.submit(opened, values).taken()

    async def command(self, name: str, user: str = ADA, place: str = GENERAL, **options: Any) -> str:
        """A slash command; the words of the answer, which nobody else sees."""
        made = await self.server.slash(user, place, name, **options).taken()
        assert not made.failed, made.failed
        return await self.answer_to(made)

    async def at_work(self, place: str) -> None:
        """Wait until the tool is at work, and its thread is there."""
        await self.house.at_work.wait()
        await self.until(lambda: place in self.server.channels, "the thread")

    # ---- what they see

    def whispers(self, user: str = ADA) -> list[str]:
        """All words for this person's eyes only that are complete."""
        return [plain(text) for text in self.server.private_texts(user) if text]

    async def told(self, user: str = ADA, before: int = 0) -> str:
        """The newest words for this person's eyes only, once there are more than `before`."""
        found = await self.until(
            lambda: self.whispers(user) if len(self.whispers(user)) > before else [], f"words for {user}"
        )
        return found[-1]

    async def answer_to(self, made: Interaction) -> str:
        """The newest words for the eyes of whoever pressed, chose, submitted or commanded."""
        found = await self.until(lambda: [text for text in made.texts if text], "an answer")
        return plain(found[-1])

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
                self._tick(clock, _STEP)
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
            self._tick(clock, min(5.0, left))
            with contextlib.suppress(TimeoutError):  # everybody does what is due by then
                await self.server.wait_for(lambda: False, 0.01)

    def _tick(self, clock: FakeClock, seconds: float) -> None:
        clock.advance(seconds)
        self.server.advance(seconds)

    def _seen(self) -> str:
        posts = [post for place in self.server.channels for post in self.posts(place)]
        lines = [f"{post.place}: {post.text!r} {post.labels}" for post in posts]
        lines += [f"to {user} only: {words!r}" for user in self.server.users for words in self.whispers(user)]
        return "\n".join([*lines, *(f"{user} saw: {trouble}" for user, trouble in self.server.troubles)])

    def posts(self, place: str = GENERAL) -> list[Post]:
        """The bot's messages there, oldest first; a user's id stands for the conversation with them."""
        if place not in self.server.channels and place not in self.server.users:
            return []
        here = self.server.dm(place).id if place in self.server.users else place
        return [Post(self.server, here, message["id"]) for message in self.server.from_bot(here)]

    def texts(self, place: str = GENERAL) -> list[str]:
        """What the bot has written there."""
        return [post.text for post in self.posts(place)]

    async def sees(self, begins: str, place: str = GENERAL, count: int = 1) -> Post:
        """Wait until the bot has written something that begins so, `count` times; the newest."""

        def found() -> list[Post]:
            posts = [post for post in self.posts(place) if post.text.startswith(begins)]
            return posts if len(posts) >= count else []

        return (await self.until(found, f"{begins!r} in {place}"))[-1]

    def cards(self, label: str = "Approve", place: str = GENERAL) -> list[Post]:
        """The bot's messages that have a control with these words now."""
        return [post for post in self.posts(place) if label in post.labels]

    async def card(self, label: str = "Approve", place: str = GENERAL) -> Post:
        """Wait for a card with this control; the newest."""
        what = f"a card with {label!r} in {place}"
        return (await self.until(lambda: self.cards(label, place), what))[-1]

    async def shows(self, post: Post, words: str) -> Post:
        """Wait until a message says this."""
        await self.until(lambda: words in post.text, f"{words!r} in {post.text!r}")
        return post

    async def rest(self) -> None:
        """Wait until everything that came in is carried out and everything that goes out is out."""
        async with asyncio.timeout(PATIENCE * 2):
            while True:
                await self.taken_in()
                if await at_rest(self.gateway):
                    return
                if isinstance(self.clock, FakeClock):
                    self._tick(self.clock, _STEP)
                await asyncio.sleep(0.01)  # rows give no events

    async def taken_in(self) -> None:
        """Wait until all that the platform has told was heard and stored."""
        async with asyncio.timeout(PATIENCE):
            while not self._heard():  # noqa: ASYNC110 - what a client has read gives no events
                await asyncio.sleep(0.005)

    def _heard(self) -> bool:
        told = {session.id: session.seq for session in self.server.live()}
        heard = {ws.session_id: ws.sequence for ws in self.sockets()}
        behind = [id for id, sequence in heard.items() if id in told and sequence != told[id]]
        return not behind and not self.channel._hearing._lines

    def sockets(self) -> list[DiscordWebSocket]:
        """The library's own ends of the connections."""
        client = self.channel._gateway._client
        if isinstance(client, AutoShardedClient):
            return [info._parent.ws for info in client.shards.values()]
        return [client.ws] if client is not None and client.ws is not None else []


@asynccontextmanager
async def running(
    house: House,
    server: DiscordServer,
    *,
    agent: Agent | None = None,
    model: Model | None = None,
    clock: Clock | None = None,
    users: Sequence[str] = (ADA, BOB),
    approvers: Sequence[str] = (),
    pairing: bool = False,
    operators: Sequence[str] = ("cli:local",),
    context: int = 20,
    more: Sequence[Agent] = (),
    schedules: Sequence[Standing] = (),
    sessions: int = 1,
    **options: Any,
) -> AsyncIterator[Scene]:
    """A gateway on the house's database, with one bot that is connected. `sessions`: how many connections
    to wait for, 0 for none."""
    clock = clock or SystemClock()
    chosen, speaker = agent or house.agent(), model or HouseModel(house)
    if isinstance(clock, FakeClock):
        options = {"sleep": clock.sleep, "monotonic": clock.monotonic, **options}
    agents = {one.name: one for one in (chosen, *more)}
    options = {"agents": tuple(agents), "api_base": server.route_base, **options}
    channel = DiscordChannel(options.pop("token", server.token), **options)
    parts = Parts(
        store=SqliteStore(house.folder / "gateway.db", clock=clock),
        agents=agents,
        model_of=lambda _: speaker,
        rules=ConfiguredRules(
            default_agent=chosen.name,
            users={"discord": frozenset(users)},
            approvers={"discord": tuple(approvers)},
            workspaces={"discord": ""},
            operators=tuple(operators),
            pairing=frozenset({"discord"} if pairing else ()),
            context={"discord": context},
            threaded=frozenset({"discord"}),
        ),
        channels=(channel,),
        schedules=schedules,
        operators=operators,
        drain=0.2,
        data_dir=house.data,
        clock=clock,
    )
    already = len(server.live())
    async with Gateway(parts) as gateway:
        scene = Scene(house, server, channel, gateway, clock)
        if sessions:
            await scene.until(lambda: len(server.live()) == already + sessions, "a connection")
        yield scene
