"""The stage on the web: the HTTP API, to which Ada and Bob come with tokens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx

from gateway.app import Gateway, Parts, Web
from gateway.app.people import ConfiguredRules
from gateway.messages import Json
from gateway.store.sqlite import SqliteStore
from tests.app_scene import House, Scene
from tests.scenario.outcomes.play import PATIENCE, Play
from tests.scenario.outcomes.stages import (
    APPROVE,
    DENY,
    EDIT,
    FEEDBACK,
    NO_SUCH,
    SECOND_OPTION,
    Asked,
    Person,
    Press,
    Stage,
    data_of,
)

TOKENS: dict[Person, str] = {"ada": "token-of-ada", "bob": "token-of-bob"}


@dataclass
class WebStage(Stage):
    """See Stage. A press is a request; the controls are those that a page draws."""

    scene: Scene = field(init=False)

    @property
    def gateway(self) -> Gateway:
        return self.scene.gateway

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        agent, model = self.play.agent(**self.rule), self.play.model()
        parts = Parts(
            store=SqliteStore(self.play.folder / "gateway.db", clock=self.play.clock),
            agents={agent.name: agent},
            model_of=lambda _: model,
            rules=ConfiguredRules(
                default_agent=agent.name, users={"web": frozenset("*")}, workspaces={"web": "local"}
            ),
            web=Web(port=0, tokens={str(name): token for name, token in TOKENS.items()}),
            operators=("cli:local",),
            drain=0.2,
            data_dir=self.play.folder,
            clock=self.play.clock,
        )
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(Gateway(parts))
            assert gateway.web is not None
            client = httpx.AsyncClient(base_url=gateway.web.url, timeout=PATIENCE, trust_env=False)
            await stack.enter_async_context(client)
            self.scene = Scene(House(self.play.folder), gateway, client)
            self._be("ada")
            yield

    def _be(self, who: Person) -> None:
        """From now on the requests are this person's."""
        self.scene.client.headers["authorization"] = f"Bearer {TOKENS[who]}"

    def person(self, who: Person) -> str:
        return f"web:{who}"

    async def ask(self, text: str, count: int = 1) -> Asked:
        stopped = await self.scene.ask(text)
        return Asked(ids=await self.open_ids(count), session_id=stopped["session_id"])

    async def say(self, asked: Asked, text: str) -> None:
        await self.scene.ask(text, asked.session_id)

    async def press(self, asked: Asked, pending_id: str, press: Press) -> str:
        self._be(press.user)
        if press.wrong:
            pending_id = data_of(pending_id, press).split(":")[1]
        record = await self.store.pending(pending_id)
        path, body = _request(pending_id, press, record.pending.args if record else {})
        response = await self.scene.client.post(path, json=body)
        self._be("ada")
        body = response.json()
        self.outcome = body["outcome"]
        return str(body["message"])

    async def rest(self) -> None:
        turns = self.gateway.turns
        async with asyncio.timeout(PATIENCE):
            while True:
                views = await self.store.sessions()
                rests = all(v.status == "pending" or (v.status == "idle" and not v.queued) for v in views)
                if rests and not (turns._running or turns._claiming):
                    return
                await asyncio.sleep(0.01)  # rows give no events

    async def card_words(self, asked: Asked, pending_id: str) -> str:
        view = await self.scene.view(asked.session_id)
        (shared,) = {card["card"] for card in view["cards"] if card["pending_id"] == pending_id}
        calls = [card for card in view["cards"] if card["card"] == shared]
        return "\n".join(f"{call['status']} {call['deciders']}" for call in calls)

    async def controls(self, asked: Asked, pending_id: str) -> list[str]:
        card = await self._card(asked, pending_id)
        if card["state"] != "open":
            return []
        if card["kind"] == "question":
            return [str(place) for place, _ in enumerate(card["options"])]
        return [APPROVE, DENY, FEEDBACK, *([EDIT] if card["schema"] else [])]

    async def _card(self, asked: Asked, pending_id: str) -> Json:
        """What the page gets of a card."""
        view = await self.scene.view(asked.session_id)
        return next(dict(card) for card in view["cards"] if card["pending_id"] == pending_id)


def _request(pending_id: str, press: Press, args: Json) -> tuple[str, Json]:
    """What a page sends for a press: (path, body). `args`: what the form held when it was opened."""
    resolve, answer = f"/pending-approvals/{pending_id}/resolve", f"/pending-questions/{pending_id}/answer"
    values = press.values or {}
    asks: dict[str, tuple[str, Json]] = {
        APPROVE: (resolve, {"decision": "approve"}),
        EDIT: (resolve, {"decision": "approve", "edited_args": {**args, **_typed(values)}}),
        DENY: (resolve, {"decision": "deny"}),
        FEEDBACK: (resolve, {"decision": "deny", "feedback": values.get("feedback", "")}),
        NO_SUCH: (answer, {"answer": "yes"}),
        SECOND_OPTION: (answer, {"answer": "prod"}),
    }
    return asks[press.choice]


def _typed(values: Mapping[str, str]) -> Json:
    """What is typed into the page's form of arguments, by the kinds of its fields."""
    return {name: json.loads(text) for name, text in values.items() if name in ("amount", "tags")}


@asynccontextmanager
async def stage(play: Play) -> AsyncIterator[Stage]:
    """The stage; the gateway is not running yet."""
    yield WebStage(play)
