"""A whole gateway on Telegram, in this process, over a real socket: what people do and what they see.

The model does what it is told:

pay X N         a call of `pay`, which asks; `pay both`, `pay raw TEXT` likewise
four            a call of `make` and three of `pay` in one step
drift           a call of `pay` with the amount that `house.drift` holds at that moment
pick, ask, open a question with several answers, with one, with free text only; `ask fixed`: no free text
make NAME...    a call of `make`, which gives back files; `make then pay`, `make then work`: a file first
work            a call that runs until the test lets it go
slow WORDS      the first half of the answer, then a wait for the test, then the rest
long N          an answer of N sections, too long for one message
anything else   is repeated
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from channels.telegram.adapter import TelegramChannel
from channels.telegram.webhook import WebhookSettings
from gateway.agent import Agent
from gateway.app import Gateway, Parts
from gateway.app.people import ConfiguredRules
from gateway.clock import Clock, SystemClock
from gateway.gate import Gate, Rule
from gateway.messages import File, Image, Json, Message, ThreadKey
from gateway.providers.base import Model, ModelRequest, ModelResponse, OnDelta
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.store.schedule_rows import Standing
from gateway.store.sqlite import SqliteStore
from gateway.tools.base import Tool, ToolOutput, tool
from tests.clock import FakeClock
from tests.platforms.telegram import Click, TelegramServer
from tests.platforms.telegram.driving import TOKEN
from tests.platforms.telegram.pushing import pushed
from tests.resting import at_rest

T = TypeVar("T")
ADA, BOB, EVE, GROUP, FORUM = 4242, 4343, 4444, -100200, -100300
BOT = TOKEN.partition(":")[0]
PATIENCE = 15.0  # seconds; only a failing test waits that long
HOOK = "/hooks/telegram"
PICTURE = b"\x89PNG\r\n\x1a\n" + b"picture" * 9
QUESTIONS: dict[str, Json] = {
    "pick": {"question": "Which ones?", "options": ["red", "green", "blue"], "multi": True},
    "ask": {"question": "Where?", "options": ["staging", "prod"]},
    "ask fixed": {"question": "Where?", "options": ["staging", "prod"], "allow_text": False},
    "open": {"question": "Which name?"},
}


@dataclass
class House:
    """What outlives a gateway: the folder with the database, what the tools did, what is held back."""

    folder: Path
    paid: list[Json] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    at_work: asyncio.Event = field(default_factory=asyncio.Event)
    drift: float = 80
    answers: dict[str, str] = field(default_factory=dict)  # what the model says to these words

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def tools(self) -> tuple[Tool, ...]:
        """See the module's docstring."""

        @tool
        async def pay(order: str, amount: float) -> str:
            """Pay."""
            self.paid.append({"order": order, "amount": amount})
            return f"paid {amount:g} for {order}"

        @tool
        async def make(names: list[str]) -> ToolOutput:
            """Make files."""
            return ToolOutput(text="made", parts=tuple(map(self._made, names)))

        @tool(timeout=60)
        async def work() -> str:
            """Work until let go."""
            self.at_work.set()
            await self.let_go.wait()
            return "worked"

        return pay, make, work

    def _made(self, name: str) -> Image | File:
        path = self.data / name
        if name not in ("../secret.txt", "gone.txt", "link.txt"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(PICTURE if name.endswith(".png") else f"content of {name}".encode())
        if name.endswith(".png"):
            return Image(path=name, media_type="image/png", name=name)
        return File(path=name, media_type="text/plain", name=Path(name).name)

    def agent(self, **changes: Any) -> Agent:
        """The agent; `rule` changes the rule that asks about `pay`."""
        rule = Rule(tool="pay", decision="ask", reason="money leaves the house", **changes.pop("rule", {}))
        gate = Gate(rules=(rule,), default_decision="allow")
        return Agent(name="assistant", tools=self.tools(), gate=gate, **changes)

    def said(self) -> list[Message]:
        """What people have said, as the model was told last."""
        return [m for m in self.requests[-1].messages if m.role == "user" and not m.results]


class HouseModel:
    """See the module's docstring."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._scripted = ScriptedModel(self._reply, chunk=12)

    @property
    def id(self) -> str:
        return self._scripted.id

    def _reply(self, request: ModelRequest) -> Reply:
        start, text = spoken(request.messages)
        results = [r for m in request.messages[start + 1 :] for r in m.results]
        if text == "drift" and not results:
            return Reply(
                text="", calls=(Call(tool="pay", args={"order": "A-1", "amount": self._house.drift}),)
            )
        if text == "make then pay" and len(results) == 1:
            return Reply(text="", calls=(Call(tool="pay", args={"order": "A-1", "amount": 5}),))
        if text == "make then work" and len(results) == 1:
            return Reply(text="", calls=(Call(tool="work"),))
        if results:
            return Reply(text="Result: " + "; ".join(r.content for r in results))
        calls = _calls(text)
        if calls:
            return Reply(text="", calls=tuple(calls))
        return Reply(text=self._house.answers.get(text) or _words(text))

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self._house.requests.append(replace(request, messages=list(request.messages)))
        text = spoken(request.messages)[1]
        if text.startswith("slow "):
            if on_delta is not None:
                on_delta(_words(text)[:20])
            self._house.at_work.set()
            await self._house.let_go.wait()
        return await self._scripted.complete(request, on_delta)

    async def close(self) -> None:
        await self._scripted.close()


def _words(text: str) -> str:
    if text.startswith("long "):
        return "\n\n".join(section(n) for n in range(1, int(text.split()[1]) + 1))
    return f"You said: {text}"


def section(number: int) -> str:
    """One section of a long answer: a heading, bold words, a list, code."""
    filler = " ".join(f"word{number}x{index}" for index in range(290))
    return f"## Part {number}\n\n**Bold {number}** {filler}\n\n- item `code{number}`\n- last of {number}"


def _calls(text: str) -> list[Call]:
    if text in QUESTIONS:
        return [Call(tool="ask_user", args=QUESTIONS[text])]
    match text.split():
        case ["pay", "both"]:
            return [Call(tool="pay", args={"order": order, "amount": 10}) for order in ("A-1", "A-2")]
        case ["four"]:
            pays = [Call(tool="pay", args={"order": order, "amount": 1}) for order in ("B", "C", "D")]
            return [Call(tool="make", args={"names": ["a.txt"]}), *pays]
        case ["pay", "raw", *_]:
            return [Call(tool="pay", args={"order": text.removeprefix("pay raw "), "amount": 1})]
        case ["pay", order, amount]:
            return [Call(tool="pay", args={"order": order, "amount": float(amount)})]
        case ["make", "then", _]:
            return [Call(tool="make", args={"names": ["first.txt"]})]
        case ["make", *names]:
            return [Call(tool="make", args={"names": names})]
        case ["work"]:
            return [Call(tool="work")]
    return []


def labels(message: Json) -> list[str]:
    """The words on a message's buttons."""
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["text"] for row in rows for button in row]


@dataclass
class Scene:
    """A running gateway and the people around it."""

    house: House
    server: TelegramServer
    channel: TelegramChannel
    gateway: Gateway
    clock: Clock

    # ---- what people do

    def say(self, text: str, user: int = ADA, chat: int | None = None, **more: Any) -> Json:
        """Somebody writes, in private unless `chat` is named; the update."""
        return self.server.say(user if chat is None else chat, user, text, **more)

    def call(self, text: str, user: int = ADA, chat: int = GROUP, **more: Any) -> Json:
        """Somebody speaks to the bot in a group."""
        return self.say(f"@gate_bot {text}", user, chat, **more)

    async def press(self, message: Json, label: str, user: int = ADA) -> Click:
        """Press a button and wait until that is answered."""
        click = self.server.click(message, label, user)
        await self.until(lambda: click.answered, f"an answer to {label!r}")
        return click

    async def reply(self, text: str, user: int = ADA, chat: int | None = None) -> Json:
        """Reply to the newest prompt that asks for a reply."""
        place = self.server.chats[user if chat is None else chat]
        prompt = await self.until(lambda: max(place.force_replies, default=0), "a prompt")
        place.force_replies.pop(prompt)
        return self.server.say(place.id, user, text, reply_to=prompt)

    # ---- what they see

    async def until(self, check: Callable[[], T], what: str) -> T:
        """Wait for something that can be seen on the platform. With a clock that stands still, time
        passes meanwhile, a second at a time."""
        if isinstance(self.clock, FakeClock):
            return await self._while_time_passes(self.clock, check, what)
        try:
            return await self.server.wait_for(check, PATIENCE)
        except TimeoutError:
            raise AssertionError(f"never seen: {what}\n{self._seen()}") from None

    async def _while_time_passes(self, clock: FakeClock, check: Callable[[], T], what: str) -> T:
        async with asyncio.timeout(PATIENCE * 2):
            while not (value := check()):
                clock.advance(0.5)
                self.server.changed()
                try:
                    return await self.server.wait_for(check, 0.02)
                except TimeoutError:
                    continue
        return value

    def _seen(self) -> str:
        return "\n".join(f"{id}: {self.texts(id)}" for id in self.server.chats)

    def texts(self, chat: int = ADA) -> list[str]:
        """What the bot has written there."""
        return [m.get("text") or m.get("caption", "") for m in self.server.from_bot(chat)]

    def messages(self, begins: str, chat: int = ADA) -> list[Json]:
        """The bot's messages that begin so."""
        return [m for m in self.server.from_bot(chat) if m.get("text", "").startswith(begins)]

    async def sees(self, begins: str, chat: int = ADA, count: int = 1) -> Json:
        """Wait until the bot has written something that begins so, `count` times; the newest."""

        def found() -> list[Json]:
            messages = self.messages(begins, chat)
            return messages if len(messages) >= count else []

        return (await self.until(found, f"{begins!r} in {chat}"))[-1]

    def cards(self, label: str, chat: int = ADA) -> list[Json]:
        """Messages that have a button with this label now."""
        return [m for m in self.server.from_bot(chat) if label in labels(m)]

    async def card(self, label: str = "Approve", chat: int = ADA) -> Json:
        """Wait for a card with this button; the newest."""
        return (await self.until(lambda: self.cards(label, chat), f"a card with {label!r} in {chat}"))[-1]

    async def shows(self, message: Json, words: str) -> Json:
        """Wait until a message says this; the message as it is then."""
        chat = self.server.chats[message["chat"]["id"]]

        def now() -> Json | None:
            found = chat.messages[message["message_id"]]
            return found if words in found["text"] else None

        found = await self.until(now, f"{words!r} in {message['text']!r}")
        assert found is not None
        return found

    def gateway_key(self, chat: int, topic: int | None = None) -> ThreadKey:
        """The gateway's name of a place."""
        return ThreadKey("telegram", BOT, str(chat), str(topic) if topic else "")

    async def rest(self) -> None:
        """Wait until everything that came in is carried out and everything that goes out is out."""
        async with asyncio.timeout(PATIENCE * 2):
            while True:
                await self.until(lambda: not self.server.bots[TOKEN].updates, "everything taken in")
                if await at_rest(self.gateway):
                    return
                if isinstance(self.clock, FakeClock):
                    self.clock.advance(0.5)
                await asyncio.sleep(0.01)  # rows give no events


@asynccontextmanager
async def running(
    house: House,
    server: TelegramServer,
    *,
    mode: str = "polling",
    agent: Agent | None = None,
    model: Model | None = None,
    clock: Clock | None = None,
    users: Sequence[int] = (ADA, BOB),
    approvers: Sequence[str] = (),
    pairing: bool = False,
    operators: Sequence[str] = ("cli:local",),
    more: Sequence[Agent] = (),
    schedules: Sequence[Standing] = (),
    **options: Any,
) -> AsyncIterator[Scene]:
    """A gateway on the house's database, with one bot, polling or being posted to."""
    clock = clock or SystemClock()
    chosen, speaker = agent or house.agent(), model or HouseModel(house)
    url = f"https://bot.example{HOOK}"
    webhook = WebhookSettings(url=url, secret="s3cret", port=0) if mode == "webhook" else None
    if isinstance(clock, FakeClock):
        options = {"sleep": clock.sleep, "monotonic": clock.monotonic, **options}
        server.clock = clock.monotonic
    channel = TelegramChannel(TOKEN, api_base=server.api_base, webhook=webhook, **{"between": 0, **options})
    parts = Parts(
        store=SqliteStore(house.folder / "gateway.db", clock=clock),
        agents={one.name: one for one in (chosen, *more)},
        model_of=lambda _: speaker,
        rules=ConfiguredRules(
            default_agent=chosen.name,
            users={"telegram": frozenset(map(str, users))},
            approvers={"telegram": tuple(approvers)},
            workspaces={"telegram": BOT},
            operators=tuple(operators),
            pairing=frozenset({"telegram"} if pairing else ()),
        ),
        channels=(channel,),
        schedules=schedules,
        operators=operators,
        drain=0.2,
        data_dir=house.data,
        clock=clock,
    )
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(Gateway(parts))
        if webhook is not None:
            address = f"http://127.0.0.1:{channel.webhook_port}{HOOK}"
            await stack.enter_async_context(pushed(server, address))
        yield Scene(house, server, channel, gateway, clock)
