"""The stage on Slack: a channel in which Ada and Bob are, by Socket Mode."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from channels.slack.modals import field_name
from gateway.app import Gateway
from gateway.messages import Json
from tests.platforms.slack import SlackServer
from tests.platforms.slack.people import options_of
from tests.scenario.outcomes.play import Play
from tests.scenario.outcomes.stages import Asked, Person, Press, Stage, choices_in, data_of
from tests.scenario.slack import house

PEOPLE: dict[Person, str] = {"ada": house.ADA, "bob": house.BOB}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A card as it was when it was drawn."""

    post: house.Post
    message: Json


@dataclass
class SlackStage(Stage):
    """See Stage."""

    server: SlackServer = field(kw_only=True)
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
        return f"slack:T1:{PEOPLE[who]}"

    async def ask(self, text: str, count: int = 1) -> Asked:
        said = self.scene.call(text)
        ids = await self.open_ids(count)

        def cards() -> dict[str, house.Post]:
            posts = self.scene.posts(thread=said.ts)
            found = {id: post for id in ids for post in posts if choices_in(_data(post.message), id)}
            return found if len(found) == count else {}

        shown = await self.scene.until(cards, "the cards")
        await self.rest()
        drawn = {id: Drawn(post, copy.deepcopy(post.message)) for id, post in shown.items()}
        return Asked(ids=ids, place=(said.ts, drawn))

    async def say(self, asked: Asked, text: str) -> None:
        self.scene.call(text.removeprefix("/"), thread=asked.place[0])
        await self.rest()

    async def press(self, asked: Asked, pending_id: str, press: Press) -> str:
        drawn, user = _drawn(asked, pending_id), PEOPLE[press.user]
        control = _control(drawn.message, data_of(pending_id, press))
        if press.wrong == "foreign":
            drawn = await self._elsewhere()
        before = len(self.scene.whispers(user))
        await self._act(drawn, control, user)
        if press.values is not None:
            view = await self.server.wait_view(user)
            ids = {field_name(block["block_id"]): block["block_id"] for block in view["blocks"]}
            sent = await self.server.submit_view(user, {ids[name]: v for name, v in press.values.items()})
            if sent.errors:
                return "; ".join(f"{field_name(id)}: {text}" for id, text in sent.errors.items())
        return await self.scene.told(user, before)

    async def _act(self, drawn: Drawn, action: Json, user: str) -> None:
        """What Slack sends when somebody uses a control that they see, up to date or not."""
        post, thread = drawn.post, drawn.post.thread
        container: Json = {
            "type": "message",
            "message_ts": post.ts,
            "channel_id": post.channel,
            "is_ephemeral": False,
            "thread_ts": thread,
        }
        payload = self.server.interaction(
            "block_actions",
            user,
            container=container,
            trigger_id=self.server.new_trigger(user),
            channel=self.server.place(self.server.channels[post.channel]),
            state={"values": {}},
            response_url=self.server.new_response_url(
                user, post.channel, thread_ts=thread, message_ts=post.ts, ephemeral=False
            ),
            actions=[{**action, "action_ts": self.server.new_ts()}],
            message=copy.deepcopy(drawn.message),
        )
        await self.server.deliver("interactive", payload, user).taken()

    async def _elsewhere(self) -> Drawn:
        """A message of the bot in another place."""
        said = self.scene.call("status", channel=house.APPROVALS)
        post = await self.scene.sees("Nothing has been said", house.APPROVALS, said.ts)
        await self.rest()
        return Drawn(post, post.message)

    async def rest(self) -> None:
        await self.scene.rest()

    async def card_words(self, asked: Asked, pending_id: str) -> str:
        return _drawn(asked, pending_id).post.text

    async def controls(self, asked: Asked, pending_id: str) -> list[str]:
        return choices_in(_data(_drawn(asked, pending_id).post.message), pending_id)


def _drawn(asked: Asked, pending_id: str) -> Drawn:
    found: Drawn = asked.place[1][pending_id]
    return found


def _controls(message: Json) -> Iterator[Json]:
    for block in message.get("blocks", []):
        yield from block.get("elements", []) if block["type"] == "actions" else []
        yield from [block["accessory"]] if "accessory" in block else []


def _data(message: Json) -> list[str]:
    found = []
    for control in _controls(message):
        found += [str(control["value"])] if "value" in control else []
        found += [str(option["value"]) for option in options_of(control)]
    return found


def _control(message: Json, data: str) -> Json:
    """The control that carries this, as Slack names it in a press; of one that the message never had, what a
    forged client would send."""
    for block in message["blocks"]:
        for control in _controls({"blocks": [block]}):
            named = {name: control[name] for name in ("type", "action_id")} | {"block_id": block["block_id"]}
            if control.get("value") == data:
                return {**named, "value": data, "text": control["text"]}
            for option in options_of(control):
                if option["value"] == data:
                    return {**named, "selected_option": copy.deepcopy(option)}
    words: Any = {"type": "plain_text", "text": "?", "emoji": True}
    return {"type": "button", "action_id": "press1:x", "block_id": "b", "value": data, "text": words}


@asynccontextmanager
async def stage(play: Play) -> AsyncIterator[Stage]:
    """The stage; the gateway is not running yet."""
    async with SlackServer() as server:
        yield SlackStage(play, server=server)
        server.check()
