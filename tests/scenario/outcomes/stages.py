"""A stage: one channel with a gateway on it, and the people who press. What a test says about clicks it
says to a stage, and the same on every channel.

Ada asks; Ada and Bob press. A card's controls are known by what they carry, so that it does not matter how
they are labelled or how many calls share a card. A press goes out also when its control is gone from the
card by then: somebody's screen was not up to date.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from gateway.app import Gateway
from gateway.messages import Json
from gateway.store.base import Store
from gateway.store.rows import PendingRecord
from tests.scenario.outcomes.play import PATIENCE, Play

Person = Literal["ada", "bob"]
APPROVE: Final = "a"  # what the data of a control ends with; see gateway.bridge
EDIT: Final = "e"
DENY: Final = "d"
FEEDBACK: Final = "f"
SECOND_OPTION: Final = "1"
ABOUT_ALL: Final = ("Y", "N")  # what is about every call of a card carries the id of the first
NO_SUCH: Final = "zz"  # no request has a control like this


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """What somebody presses: the control of a request that stands for `choice`, with the fields of its form
    where it has one. `wrong`: something that no request of this card knows.

    forged: the id of a request that never was. garbage: no id at all. foreign: the control of the card,
    pressed on another message of another place.
    """

    choice: str
    user: Person = "ada"
    values: Mapping[str, str] | None = None
    wrong: Literal["", "forged", "garbage", "foreign"] = ""


@dataclass(slots=True)
class Asked:
    """What Ada has asked for: the ids of the requests, in the order of their calls; and where."""

    ids: list[str]
    place: Any = ""
    session_id: str = ""


@dataclass
class Stage(ABC):
    """See the module's docstring. `rule`: of the agent's rule; people in it are called by `person`.

    outcome: of the last press, where the channel tells it in a word.
    """

    play: Play
    rule: Json = field(default_factory=dict)
    life: AsyncExitStack = field(default_factory=AsyncExitStack)
    outcome: str = ""

    # ---- the life of the process

    @property
    @abstractmethod
    def gateway(self) -> Gateway:
        """The one that runs now."""

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[object]:
        """A gateway on the play's database, from its start to its end."""

    async def restart(self) -> None:
        """Another process takes over."""
        await self.life.aclose()
        await self.life.enter_async_context(self.running())

    @property
    def store(self) -> Store:
        return self.gateway.store

    # ---- people

    @abstractmethod
    def person(self, who: Person) -> str:
        """Somebody as a rule and the record name them: `channel:...`."""

    # ---- what they do

    @abstractmethod
    async def ask(self, text: str, count: int = 1) -> Asked:
        """Ada tells the agent to do something; once `count` requests are open and their cards drawn."""

    @abstractmethod
    async def say(self, asked: Asked, text: str) -> None:
        """Ada says something where she has asked; once it is carried out."""

    @abstractmethod
    async def press(self, asked: Asked, pending_id: str, press: Press) -> str:
        """Press a control; the words that the person alone is answered with, or that the form shows."""

    @abstractmethod
    async def rest(self) -> None:
        """Wait until all that was begun is done."""

    # ---- what they see

    @abstractmethod
    async def card_words(self, asked: Asked, pending_id: str) -> str:
        """All words of the card that a request is on."""

    @abstractmethod
    async def controls(self, asked: Asked, pending_id: str) -> list[str]:
        """What the live controls of a request stand for: the end of their data."""

    async def card(
        self, asked: Asked, pending_id: str, ready: Callable[[str, list[str]], bool]
    ) -> tuple[str, list[str]]:
        """Words and controls of a card once they are as wanted; as they are when that takes too long."""
        seen = ("", [""])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while True:
                    words = await self.card_words(asked, pending_id)
                    seen = (words, await self.controls(asked, pending_id))
                    if ready(*seen):
                        break
                    await asyncio.sleep(0.01)  # a request over HTTP gives no events
        return seen

    # ---- what is stored

    async def record(self, pending_id: str) -> PendingRecord:
        found = await self.store.pending(pending_id)
        assert found is not None, f"no request {pending_id}"
        return found

    async def open_ids(self, count: int) -> list[str]:
        """The ids of the open requests once there are `count`, in the order of their calls."""
        async with asyncio.timeout(PATIENCE):
            while len(records := await self.store.pendings()) < count:  # noqa: ASYNC110 - rows give no events
                await asyncio.sleep(0.01)
        return [record.id for record in sorted(records, key=lambda record: record.pending.call_id)]


def data_of(pending_id: str, press: Press) -> str:
    """What the pressed control carries."""
    match press.wrong:
        case "forged":
            return f"v1:p_AAAAAAAAAAAAAAAAAAAA:{press.choice}"
        case "garbage":
            return "v1:garbage"
        case _:
            return f"v1:{pending_id}:{press.choice}"


def choices_in(data: list[str], pending_id: str) -> list[str]:
    """Which choices of a request these controls carry. Before the data there may be a mark of a form, after
    it the names of the form's fields."""
    mark = f"v1:{pending_id}:"
    found = [one.partition(mark)[2].partition("?")[0] for one in data if mark in one]
    return [choice for choice in found if choice not in ABOUT_ALL]


# Makes a stage whose gateway does not run yet.
Make = Callable[[Play], AbstractAsyncContextManager[Stage]]
