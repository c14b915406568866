"""The stage on Discord: a channel of a guild in which Ada and Bob are; a thread begins there."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from channels.discord.refs import form_id
from gateway.app import Gateway
from gateway.messages import Json
from tests.platforms.discord import words
from tests.platforms.discord.interactions import Interaction
from tests.platforms.discord.server import DiscordServer
from tests.scenario.discord import house
from tests.scenario.outcomes.play import Play
from tests.scenario.outcomes.stages import Asked, Person, Press, Stage, choices_in, data_of

PEOPLE: dict[Person, str] = {"ada": house.ADA, "bob": house.BOB}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A card as it was when it was drawn."""

    post: house.Post
    message: Json


@dataclass
class DiscordStage(Stage):
    """See Stage."""

    server: DiscordServer = field(kw_only=True)
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
        return f"discord:{PEOPLE[who]}"

    async def ask(self, text: str, count: int = 1) -> Asked:
        thread = self.scene.call(text)
        ids = await self.open_ids(count)

        def cards() -> dict[str, house.Post]:
            posts = self.scene.posts(thread)
            found = {id: post for id in ids for post in posts if choices_in(_data(post.message), id)}
            return found if len(found) == count else {}

        shown = await self.scene.until(cards, "the cards")
        await self.rest()
        drawn = {id: Drawn(post, copy.deepcopy(post.message)) for id, post in shown.items()}
        return Asked(ids=ids, place=(thread, drawn))

    async def say(self, asked: Asked, text: str) -> None:
        self.scene.say(text.replace("/", "!"), place=asked.place[0])
        await self.rest()

    async def press(self, asked: Asked, pending_id: str, press: Press) -> str:
        drawn, user, data = _drawn(asked, pending_id), PEOPLE[press.user], data_of(pending_id, press)
        carried = next((one for one in _data(drawn.message) if one in (data, form_id(data))), data)
        place, message = drawn.post.place, drawn.post.id
        if press.wrong == "foreign":
            place, message = await self._elsewhere()
        made = self._made(place, message, carried, user)
        await made.taken()
        if press.values is not None and made.modal is not None:
            inputs = [row.get("label", "") for row in made.modal["components"]]
            names = {name: name if name in inputs else inputs[0] for name in press.values}
            made = await self.server.submit(made, {names[n]: v for n, v in press.values.items()}).taken()
        assert not made.failed, made.failed
        return await self.scene.answer_to(made)

    def _made(self, place: str, message: str, carried: str, user: str) -> Interaction:
        """The press of a button, or of the option of a select; of one that is not there any more, too."""
        selects = [c for c in words.controls(self.server.look(place, message)) if c["type"] == 3]
        if any(option["value"] == carried for select in selects for option in select["options"]):
            return self.server.choose(user, place, message, [carried])
        return self.server.forge(user, place, message, carried)

    async def _elsewhere(self) -> tuple[str, str]:
        """Place and id of a message of the bot in another place."""
        thread = self.scene.call("status", place=house.APPROVALS)
        posts = await self.scene.until(lambda: self.scene.posts(thread), "an answer elsewhere")
        await self.rest()
        return posts[0].place, posts[0].id

    async def rest(self) -> None:
        await self.scene.rest()

    async def card_words(self, asked: Asked, pending_id: str) -> str:
        return _drawn(asked, pending_id).post.text

    async def controls(self, asked: Asked, pending_id: str) -> list[str]:
        return choices_in(_data(_drawn(asked, pending_id).post.message), pending_id)


def _drawn(asked: Asked, pending_id: str) -> Drawn:
    found: Drawn = asked.place[1][pending_id]
    return found


def _data(message: Json) -> list[str]:
    found = []
    for control in words.controls(message):
        found += [str(control["custom_id"])] if control["type"] == 2 else []
        found += [str(option["value"]) for option in control.get("options") or []]
    return found


@asynccontextmanager
async def stage(play: Play) -> AsyncIterator[Stage]:
    """The stage; the gateway is not running yet."""
    async with DiscordServer() as server:
        yield DiscordStage(play, server=server)
        server.check()
