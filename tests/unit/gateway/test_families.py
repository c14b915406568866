"""One session is carried from model to model, whatever happened in it: every strict endpoint takes every
request. The real adapters and SDKs, as the configuration makes them."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from gateway.agent import Agent
from gateway.app.build import models_of
from gateway.clock import Clock
from gateway.config.parsing import SecretText
from gateway.config.values import ModelSection
from gateway.messages import Json
from gateway.providers.base import Model
from gateway.providers.gemini_wire import UNSIGNED
from tests.platforms.anthropic import replies as claude
from tests.platforms.anthropic.server import AnthropicServer
from tests.platforms.gemini import replies as gemini
from tests.platforms.gemini.server import GeminiServer
from tests.platforms.openai import replies as chat
from tests.platforms.openai.server import OpenAIServer
from tests.unit.gateway.scene import House, Office, running

Wanted = Sequence[tuple[str, Json]]  # tool, arguments
BUSY = {"retry-after": "9999"}  # longer than anybody waits: the next model is asked at once
_ids = itertools.count(1)


class Family(Protocol):
    """One vendor's strict endpoint."""

    @property
    def refused(self) -> list[tuple[Json, str]]: ...

    @property
    def accepted(self) -> list[Json]: ...

    def section(self) -> ModelSection: ...

    def will(self, text: str, wanted: Wanted = (), *, end: str = "", thinks: bool = True) -> None:
        """The next reply. `end`: length or refusal."""

    def will_fail(self) -> None: ...


@dataclass
class Claude:
    server: AnthropicServer = field(default_factory=AnthropicServer)

    @property
    def refused(self) -> list[tuple[Json, str]]:
        return self.server.refused

    @property
    def accepted(self) -> list[Json]:
        return self.server.accepted

    def section(self) -> ModelSection:
        server = self.server
        return ModelSection(
            provider="anthropic", model=server.model, api_key=SecretText(server.key), base_url=server.base_url
        )

    def will(self, text: str, wanted: Wanted = (), *, end: str = "", thinks: bool = True) -> None:
        blocks = [claude.think("let me see", self.server.model)] if thinks else []
        blocks += [claude.text(text)] if text else []
        blocks += [claude.call(name, args, f"toolu_{next(_ids)}") for name, args in wanted]
        stop = {"": None, "length": "max_tokens", "refusal": "refusal"}[end]
        self.server.script.append(claude.Say(blocks=tuple(blocks), stop=stop))

    def will_fail(self) -> None:
        self.server.script.append(claude.Fail(status=529, headers=BUSY))


@dataclass
class Chat:
    provider: Any
    server: OpenAIServer

    @property
    def refused(self) -> list[tuple[Json, str]]:
        return self.server.refused

    @property
    def accepted(self) -> list[Json]:
        return self.server.accepted

    def section(self) -> ModelSection:
        server = self.server
        return ModelSection(
            provider=self.provider, model=server.model, api_key=SecretText(server.key), base_url=server.url
        )

    def will(self, text: str, wanted: Wanted = (), *, end: str = "", thinks: bool = True) -> None:
        made = tuple(chat.call(name, args, f"call_{next(_ids)}") for name, args in wanted)
        thought = "let me see" if thinks and self.provider != "openai" else ""
        finish = {"": None, "length": "length", "refusal": "content_filter"}[end]
        self.server.script.append(chat.Say(text=text, reasoning=thought, calls=made, finish=finish))

    def will_fail(self) -> None:
        self.server.script.append(chat.Fail(status=503, headers=BUSY))


@dataclass
class Gemini:
    server: GeminiServer = field(default_factory=GeminiServer)

    @property
    def refused(self) -> list[tuple[Json, str]]:
        return self.server.refused

    @property
    def accepted(self) -> list[Json]:
        return self.server.accepted

    def section(self) -> ModelSection:
        server = self.server
        return ModelSection(
            provider="gemini", model=server.model, api_key=SecretText(server.key), base_url=server.base_url
        )

    def will(self, text: str, wanted: Wanted = (), *, end: str = "", thinks: bool = True) -> None:
        model = self.server.model
        parts = [gemini.think("let me see", model)] if thinks else []
        parts += [gemini.text(text, model, signed="last" if thinks else "")] if text else []
        for number, (name, args) in enumerate(wanted):
            parts.append(gemini.call(name, args, model="" if number else model))
        finish = {"": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[end]
        self.server.script.append(gemini.Say(parts=tuple(parts), finish=finish))

    def will_fail(self) -> None:
        self.server.script.append(gemini.Fail(status=503, details=[gemini.retry_in("9999s")]))


NAMES = ("anthropic", "openai", "deepseek", "kimi", "glm", "gemini")


@pytest.fixture
async def families() -> AsyncIterator[dict[str, Family]]:
    chats = {
        name: Chat(name, OpenAIServer(name, models=(f"{name}-test",)))
        for name in ("openai", "deepseek", "kimi", "glm")
    }
    made: dict[str, Any] = {"anthropic": Claude(), **chats, "gemini": Gemini()}
    async with AsyncExitStack() as stack:
        for family in made.values():
            await stack.enter_async_context(family.server)
        yield made
        for name, family in made.items():
            assert family.refused == [], name


class Models:
    """What `/model` chooses from, closed at the end."""

    def __init__(self, families: dict[str, Family], folder: Path, clock: Clock) -> None:
        sections = {name: family.section() for name, family in families.items()}
        self._of, self._made = models_of(sections, folder, clock), dict[int, Model]()
        self.changes: dict[str, Any] = {"models": tuple(families), "model_of": self.of}

    def of(self, agent: Agent) -> Model:
        model = self._of(agent)
        self._made[id(model)] = model
        return model

    async def close(self) -> None:
        for model in self._made.values():
            await model.close()


@pytest.fixture
async def models(families: dict[str, Family], house: House) -> AsyncIterator[Models]:
    made = Models(families, house.folder, house.clock)
    yield made
    await made.close()


LOOK: Wanted = [("look", {"at": "x"})]


# What the model replies in a turn of each kind: text, calls, how it ends.
KINDS: dict[str, list[dict[str, Any]]] = {
    "words": [{"text": "just words", "thinks": False}],
    "look": [{"text": "looking", "wanted": LOOK}, {"text": "seen"}],
    "steps": [
        {"text": "", "wanted": LOOK},
        {"text": "", "wanted": LOOK, "thinks": False},
        {"text": "seen twice"},
    ],
    "batch": [
        {"text": "", "wanted": [*LOOK, ("no such tool", {}), ("look", {"wrong": 1})]},
        {"text": "one of three"},
    ],
    "cut": [{"text": "a long", "wanted": LOOK, "end": "length"}, {"text": "shorter"}],
    "refusal": [{"text": "", "end": "refusal", "thinks": False}],
    "overload": [{"text": "", "wanted": LOOK}],
    "approve": [{"text": "paying", "wanted": [*LOOK, ("pay", {"order": "A"})]}],
    "deny": [{"text": "paying", "wanted": [*LOOK, ("pay", {"order": "A"})]}],
}


async def walk(office: Office, family: Family, kind: str) -> None:
    """One turn of this kind with this family's model."""
    for reply in KINDS[kind]:
        family.will(**reply)
    if kind == "overload":
        family.will_fail()
    await office.say(f"please {kind}")
    if kind in ("approve", "deny"):
        if kind == "approve":
            family.will("paid")
        (record,) = await office.pendings()
        await office.say(f"/{kind} {record.pending.code}")


@pytest.mark.parametrize(
    "order",
    [
        ("anthropic", "openai", "gemini", "anthropic"),
        ("gemini", "deepseek", "anthropic", "kimi", "gemini", "glm"),
        ("kimi", "gemini", "openai", "deepseek", "glm", "anthropic", "gemini"),
    ],
    ids="-".join,
)
@pytest.mark.parametrize("kinds", [("look",), ("steps", "approve"), ("batch", "overload", "deny", "cut")])
async def test_a_session_is_taken_by_every_model_after_every_other(
    families: dict[str, Family],
    models: Models,
    house: House,
    order: tuple[str, ...],
    kinds: tuple[str, ...],
) -> None:
    async with running(house, house.agent(model=order[0]), **models.changes) as office:
        for name in order:
            await office.say(f"/model {name}")
            for kind in kinds:
                await walk(office, families[name], kind)
            families[name].will("that was it")
            await office.say("and?")
            assert office.world.texts()[-1] == "that was it"


@pytest.mark.parametrize("seed", range(6))
async def test_a_session_on_a_random_walk_through_models_and_mishaps_stays_usable(
    families: dict[str, Family], models: Models, house: House, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    async with running(house, house.agent(model="glm"), **models.changes) as office:
        for _ in range(12):
            name = chance.choice(NAMES)
            await office.say(f"/model {name}")
            await walk(office, families[name], chance.choice(list(KINDS)))
        for name in NAMES:
            await office.say(f"/model {name}")
            families[name].will("still here")
            await office.say("and?")
            assert office.world.texts()[-1] == "still here"


@pytest.mark.parametrize("second", NAMES)
@pytest.mark.parametrize("first", ["anthropic", "deepseek", "gemini"])
async def test_a_turn_that_waits_for_a_person_goes_on_with_another_model(
    families: dict[str, Family], models: Models, house: House, first: str, second: str
) -> None:
    async with running(house, house.agent(model=first), **models.changes) as office:
        families[first].will("paying", [("look", {"at": "x"}), ("pay", {"order": "A"})])
        await office.say("pay A")
        await office.say(f"/model {second}")
        families[second].will("", LOOK)
        families[second].will("paid and seen")
        (record,) = await office.pendings()
        await office.say(f"/approve {record.pending.code}")
        assert office.world.texts()[-1] == "paid and seen"
        assert house.ran == ["look x", "pay A 10", "look x"]


@pytest.mark.parametrize("second", [name for name in NAMES if name != "anthropic"])
async def test_a_model_takes_over_in_the_middle_of_a_turn(
    families: dict[str, Family], models: Models, house: House, second: str
) -> None:
    agent = house.agent(model="anthropic", failover=(second,))
    async with running(house, agent, **models.changes) as office:
        families["anthropic"].will("looking", LOOK)
        families["anthropic"].will_fail()
        families[second].will("", LOOK)
        families[second].will("seen twice")
        await office.say("look")
        assert office.world.texts()[-1] == "seen twice"
        assert house.ran == ["look x", "look x"]


async def test_c060_a_step_of_another_model_in_the_current_turn_carries_the_documented_value(
    families: dict[str, Family], models: Models, house: House
) -> None:
    async with running(
        house, house.agent(model="anthropic", failover=("gemini",)), **models.changes
    ) as office:
        families["anthropic"].will("looking", LOOK)
        families["anthropic"].will_fail()
        families["gemini"].will("seen")
        await office.say("look")
        families["gemini"].will("yes")
        await office.say("/model gemini")
        await office.say("and?")
    during, after = families["gemini"].accepted
    assert [part.get("thoughtSignature") for part in during["contents"][1]["parts"]] == [None, UNSIGNED]
    assert all("thoughtSignature" not in part for part in after["contents"][1]["parts"])
