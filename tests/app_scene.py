"""A real gateway behind a real socket, with a model that says what the message asks for.

pay X N         a call of `pay` (asks; `api_key` is secret)
pay both, pay three, four   several calls of `pay` in one step; `four` peeks first
mixed           peek and pay in one step
raw ANYTHING    a call of `pay` for just that order
drift           a call of `pay` with the amount that `house.drift` holds at that moment
peek X          a call of `peek` (allowed, reads only)
deep            a call of `send`, which a test brings along: a password in an object
work, deaf      a call that runs until the test lets it go; `deaf` does not listen to /stop
ask, ask open   a question with two options, a question for free text only; `ask fixed`: no free text
choose          a question with 26 options that begin alike, and one with a value of its own
wake me         a wake-up every four hours
slow            an answer whose second half waits for the test
anything else   is repeated
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from gateway.agent import Agent
from gateway.app import Gateway, Parts, Web
from gateway.app.people import ConfiguredRules
from gateway.app.webhooks import Hook
from gateway.clock import Clock, SystemClock
from gateway.gate import Gate, Rule
from gateway.messages import Json
from gateway.providers.base import Model, ModelRequest, ModelResponse, OnDelta
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.store.sqlite import SqliteStore
from gateway.tools.base import Tool, tool

PATIENCE = 15  # seconds; only a failing test waits that long
SEVERAL: list[Json] = [
    {"name": "env", "question": "Where?", "options": ["prod", "staging"], "allow_text": False},
    {"name": "count", "question": "How many?", "kind": "integer"},
    {"name": "sure", "question": "Sure?", "kind": "boolean"},
    {"name": "tell", "question": "Whom to tell?", "options": ["ops", "all"], "multi": True, "min": 0},
]
SECRET = "sk-live-0123456789"
LABELS = [f"{'The same beginning of every label, '.ljust(80, '-')}then {n:9}" for n in range(1, 27)]


@dataclass
class House:
    """What outlives a gateway: the database file, what the tools did, what the test holds back."""

    folder: Path
    paid: list[Json] = field(default_factory=list)
    peeked: list[str] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    let_answer: asyncio.Event = field(default_factory=asyncio.Event)
    let_work: asyncio.Event = field(default_factory=asyncio.Event)
    at_work: asyncio.Event = field(default_factory=asyncio.Event)
    half_said: asyncio.Event = field(default_factory=asyncio.Event)
    drift: float = 80
    late: asyncio.Event = field(default_factory=asyncio.Event)  # a deaf call has ended after all

    def tools(self) -> tuple[Tool, ...]:
        """See the module's docstring."""

        @tool(secret=["api_key"], preview=lambda args: f"with {args.get('api_key')} to {args['order']}")
        async def pay(order: str, amount: float, api_key: str = SECRET) -> str:
            """Pay."""
            self.paid.append({"order": order, "amount": amount, "api_key": api_key})
            return f"paid {amount:g} for {order}"

        @tool(safe=True)
        async def peek(order: str) -> str:
            """Look."""
            self.peeked.append(order)
            return f"{order} exists"

        @tool(timeout=60)
        async def work() -> str:
            """Work until let go."""
            self.at_work.set()
            await self.let_work.wait()
            return "worked"

        @tool(timeout=60)
        async def deaf() -> str:
            """Work until let go, whatever anybody says."""
            self.at_work.set()
            while not self.let_work.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await self.let_work.wait()
            self.late.set()
            return "too late"

        return pay, peek, work, deaf

    def agent(self, **changes: Any) -> Agent:
        """The agent; `rule` changes the rule that asks about `pay`."""
        rule = Rule(tool="pay", decision="ask", reason="money leaves the house")
        rules = (*changes.pop("rules", ()), replace(rule, **changes.pop("rule", {})))
        tools = changes.pop("tools", self.tools())
        return Agent(
            name="assistant", tools=tools, gate=Gate(rules=rules, default_decision="allow"), **changes
        )


class HouseModel:
    """The scripted model, with an answer that stops half way until the test lets it go on."""

    def __init__(self, house: House) -> None:
        self._house, self._scripted = house, ScriptedModel(self._reply, chunk=6)

    def _reply(self, request: ModelRequest) -> Reply:
        if spoken(request.messages)[1] == "drift" and not request.messages[-1].results:
            return Reply(calls=(Call(tool="pay", args={"order": "A-1", "amount": self._house.drift}),))
        return _reply(request)

    @property
    def id(self) -> str:
        return self._scripted.id

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        self._house.requests.append(replace(request, messages=list(request.messages)))
        if spoken(request.messages)[1] == "slow" and on_delta is not None:
            on_delta = await self._half(on_delta)
        return await self._scripted.complete(request, on_delta)

    async def _half(self, on_delta: OnDelta) -> OnDelta:
        """Say the first piece, wait, and go on after it."""
        on_delta("You sa")
        self._house.half_said.set()
        await self._house.let_answer.wait()
        said = False

        def rest(text: str) -> None:
            nonlocal said
            if said:
                on_delta(text)
            said = True

        return rest

    async def close(self) -> None:
        await self._scripted.close()


def _reply(request: ModelRequest) -> Reply:
    start, text = spoken(request.messages)
    results = [r for m in request.messages[start + 1 :] for r in m.results]
    if results:
        return Reply(text="Result: " + "; ".join(r.content for r in results))
    calls = _calls(text)
    words = {"mixed": "Both.", "work": "At it.", "deaf": "At it."}.get(text, "")
    if calls and not words and text.startswith("pay "):
        words = "I will pay."
    return Reply(text=words if calls else f"You said: {text}", calls=tuple(calls))


def _calls(text: str) -> list[Call]:
    def pay(order: str, amount: float = 10, **more: str) -> Call:
        return Call(tool="pay", args={"order": order, "amount": amount, **more})

    several = {"pay both": ("A-1", "A-2"), "pay three": ("A-1", "A-2", "A-3")}
    fixed: dict[str, list[Call]] = {
        **{name: [pay(order) for order in orders] for name, orders in several.items()},
        "mixed": [Call(tool="peek", args={"order": "A-1"}), pay("A-2")],
        "four": [Call(tool="peek", args={"order": "A"}), *map(pay, ("B", "C", "D"))],
        "deep": [Call(tool="send", args={"body": {"user": "robin", "password": SECRET}})],
        "work": [Call(tool="work")],
        "deaf": [Call(tool="deaf")],
        "ask": [Call(tool="ask_user", args={"question": "Where?", "options": ["prod", "staging"]})],
        "ask fixed": [
            Call(
                tool="ask_user",
                args={"question": "Where?", "options": ["prod", "staging"], "allow_text": False},
            )
        ],
        "choose": [
            Call(
                tool="ask_user",
                args={"question": "Which?", "options": [*LABELS, {"label": "East", "value": "e1"}]},
            )
        ],
        "wake me": [Call(tool="schedule", args={"every": "4h", "instruction": "peek A-9"})],
        "ask open": [Call(tool="ask_user", args={"question": "Which name?"})],
        "ask number": [Call(tool="ask_user", args={"question": "How many?", "kind": "number"})],
        "ask several": [Call(tool="ask_user", args={"questions": SEVERAL})],
    }
    if text in fixed:
        return fixed[text]
    name, _, rest = text.partition(" ")
    match name, rest.split():
        case "pay", [order, amount]:
            return [pay(order, float(amount), api_key=SECRET)]
        case "peek", [order]:
            return [Call(tool="peek", args={"order": order})]
        case "raw", _:
            return [pay(rest, 1)]
        case _:
            return []


@dataclass
class Scene:
    """A running gateway and a client that talks to it."""

    house: House
    gateway: Gateway
    client: httpx.AsyncClient

    @property
    def url(self) -> str:
        assert self.gateway.web is not None
        return self.gateway.web.url

    async def say(self, text: str, session_id: str = "", **body: Any) -> Json:
        """Post a message; the 202."""
        given = {"text": text, **({"session_id": session_id} if session_id else {}), **body}
        response = await self.client.post("/agents/assistant/messages", json=given)
        assert response.status_code == 202, response.text
        return dict(response.json())

    async def ask(self, text: str, session_id: str = "", **body: Any) -> Json:
        """Post a message and wait for the end of its turn."""
        given = {"text": text, **({"session_id": session_id} if session_id else {}), **body}
        response = await self.client.post("/agents/assistant/messages?wait=1", json=given)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def get(self, path: str) -> Any:
        response = await self.client.get(path)
        assert response.status_code == 200, response.text
        return response.json()

    async def resolve(self, pending_id: str, decision: str = "approve", **body: Any) -> tuple[int, Json]:
        path = f"/pending-approvals/{pending_id}/resolve"
        response = await self.client.post(path, json={"decision": decision, **body})
        return response.status_code, response.json()

    async def answer(self, pending_id: str, answer: object) -> tuple[int, Json]:
        path = f"/pending-questions/{pending_id}/answer"
        response = await self.client.post(path, json={"answer": answer})
        return response.status_code, response.json()

    async def view(self, session_id: str) -> Json:
        """What the page gets."""
        return dict(await self.get(f"/sessions/{session_id}?html=1"))

    async def until(self, session_id: str, ready: Callable[[Json], bool]) -> Json:
        """The page's view once it is as wanted: looked at after each event and each change."""
        async with asyncio.timeout(PATIENCE):
            with self.gateway.hub.listen(session_id, live=False) as listener:
                while not ready(view := await self.view(session_id)):
                    await listener.wait(0.2)
        return view


@asynccontextmanager
async def running(
    house: House,
    *,
    agent: Agent | None = None,
    more: Sequence[Agent] = (),
    tokens: Mapping[str, str] | None = None,
    operators: Sequence[str] = ("web:local",),
    token: str = "",
    clock: Clock | None = None,
    port: int = 0,
    webhooks: Mapping[str, Hook] = MappingProxyType({}),
    hooks: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    models: Sequence[str] = (),
    model: Model | None = None,
) -> AsyncIterator[Scene]:
    """A gateway over the house's database; several may run at once, as if in several processes."""
    clock = clock or SystemClock()
    chosen = agent or house.agent()
    speaker = model or HouseModel(house)
    parts = Parts(
        store=SqliteStore(house.folder / "gateway.db", clock=clock),
        agents={one.name: one for one in (chosen, *more)},
        model_of=lambda _: speaker,
        models=models,
        rules=ConfiguredRules(
            default_agent=chosen.name,
            users={"web": frozenset("*")},
            workspaces={"web": "local", **({"webhook": "local"} if webhooks else {})},
            hooks=hooks,
        ),
        webhooks=webhooks,
        web=Web(port=port, tokens=tokens or {}),
        operators=operators,
        drain=0.2,
        data_dir=house.folder,
        clock=clock,
    )
    async with Gateway(parts) as gateway:
        assert gateway.web is not None
        headers = {"authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(
            base_url=gateway.web.url, headers=headers, timeout=PATIENCE, trust_env=False
        ) as client:
            yield Scene(house, gateway, client)
