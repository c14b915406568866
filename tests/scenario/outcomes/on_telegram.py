"""The stage on Telegram: a group in which Ada and Bob are, by long polling."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from gateway.app import Gateway
from gateway.messages import Json
from tests.platforms.telegram import TelegramServer
from tests.platforms.telegram.driving import TOKEN
from tests.scenario.outcomes.play import Play
from tests.scenario.outcomes.stages import EDIT, Asked, Person, Press, Stage, choices_in, data_of
from tests.scenario.telegram import house

PEOPLE: dict[Person, int] = {"ada": house.ADA, "bob": house.BOB}
GROUP = house.GROUP


@dataclass
class TelegramStage(Stage):
    """See Stage. What a form asks for is asked for with a prompt, to which people reply."""

    server: TelegramServer = field(kw_only=True)
    scene: house.Scene = field(init=False)

    @property
    def gateway(self) -> Gateway:
        return self.scene.gateway

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        place, agent = house.House(self.play.folder), self.play.agent(**self.rule)
        async with house.running(
            place, self.server, agent=agent, model=self.play.model(), clock=self.play.clock
        ) as self.scene:
            yield

    def person(self, who: Person) -> str:
        return f"telegram:{house.BOT}:{PEOPLE[who]}"

    async def ask(self, text: str, count: int = 1) -> Asked:
        self.scene.call(text)
        ids = await self.open_ids(count)

        def cards() -> dict[str, Json]:
            found = {id: one for id in ids for one in self._posts() if choices_in(_data(one), id)}
            return found if len(found) == count else {}

        shown = await self.scene.until(cards, "the cards")
        await self.rest()
        return Asked(ids=ids, place=shown)

    async def say(self, asked: Asked, text: str) -> None:
        self.scene.call(text)
        await self.rest()

    async def press(self, asked: Asked, pending_id: str, press: Press) -> str:
        card, data = self._card(asked, pending_id), data_of(pending_id, press)
        if press.wrong == "foreign":
            card = await self._elsewhere()
        user = PEOPLE[press.user]
        click = self.server.press(card, self._full(asked, pending_id, data), user)
        await self.scene.until(lambda: click.answered, "an answer to a press")
        if press.values is None:
            return click.text
        lines = [f"{name}: {v}" if press.choice == EDIT else v for name, v in press.values.items()]
        reply = await self.scene.reply("\n".join(lines), user, GROUP)
        said = reply["message"]["message_id"]
        answers = await self.scene.until(lambda: self._answers_to(said), "an answer to a reply")
        return str(answers[0]["text"])

    def _answers_to(self, message_id: int) -> list[Json]:
        return [m for m in self._posts() if m.get("reply_to_message", {}).get("message_id") == message_id]

    async def _elsewhere(self) -> Json:
        """A message of the bot in another place."""
        self.scene.say("/status")
        return await self.scene.sees("Nothing has been said")

    async def rest(self) -> None:
        await self.scene.rest()

    async def card_words(self, asked: Asked, pending_id: str) -> str:
        return str(self._now(asked, pending_id)["text"])

    async def controls(self, asked: Asked, pending_id: str) -> list[str]:
        return choices_in(_data(self._now(asked, pending_id)), pending_id)

    def _posts(self) -> list[Json]:
        return self.server.from_bot(GROUP)

    def _card(self, asked: Asked, pending_id: str) -> Json:
        """The card as it was when it was drawn."""
        card: Json = asked.place[pending_id]
        return card

    def _now(self, asked: Asked, pending_id: str) -> Json:
        message_id = self._card(asked, pending_id)["message_id"]
        return self.server.chats[GROUP].messages[message_id]

    def _full(self, asked: Asked, pending_id: str, data: str) -> str:
        """All that the button with this data carries; the data itself where the card never had one."""
        carried = _data(self._card(asked, pending_id))
        return next((one for one in carried if one.partition("?")[0] == data), data)


def _data(message: Json) -> list[str]:
    rows: list[Any] = message.get("reply_markup", {}).get("inline_keyboard", [])
    return [button["callback_data"] for row in rows for button in row]


@asynccontextmanager
async def stage(play: Play) -> AsyncIterator[Stage]:
    """The stage; the gateway is not running yet."""
    async with TelegramServer() as server:
        server.bot(TOKEN)
        server.user(house.ADA, "Ada", username="ada")
        server.user(house.BOB, "Bob")
        server.group(GROUP, "Shop", [house.ADA, house.BOB])
        yield TelegramStage(play, server=server)
        server.check()
