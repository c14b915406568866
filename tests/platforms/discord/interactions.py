"""Interactions: presses, commands and forms; the clocks of three seconds and fifteen minutes; what the
person saw of it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.asking import Ask
from tests.platforms.discord.checks import check_choices, check_shape
from tests.platforms.discord.clockwork import Timer
from tests.platforms.discord.components import check_modal
from tests.platforms.discord.entities import Channel
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.gateway import Gateway
from tests.platforms.discord.limits import Json
from tests.platforms.discord.posting import (
    announce,
    compose,
    notify,
    pages,
    publish,
    rewrite,
    update,
)
from tests.platforms.discord.shapes import Report, anything, integer
from tests.platforms.discord.words import shown

COMMAND, COMPONENT, AUTOCOMPLETE, MODAL_SUBMIT = 2, 3, 4, 5
MESSAGE, DEFER, DEFER_UPDATE, UPDATE, CHOICES, MODAL = 4, 5, 6, 7, 8, 9
TAKES = {
    COMMAND: (MESSAGE, DEFER, MODAL),
    COMPONENT: (MESSAGE, DEFER, DEFER_UPDATE, UPDATE, MODAL),
    AUTOCOMPLETE: (CHOICES,),
    MODAL_SUBMIT: (MESSAGE, DEFER, DEFER_UPDATE, UPDATE),
}
NO_RESPONSE = "The application did not respond"


@dataclass(eq=False)
class Interaction:
    """One interaction and what the person saw of it."""

    world: Interactions
    id: str
    token: str
    kind: int  # 2 command, 3 component, 4 autocomplete, 5 modal submit
    user: str
    channel: str
    payload: Json
    at: float
    source: Json | None = None  # the message with the control
    timer: Timer | None = None
    response: int | None = None  # type of the first response
    failed: str = ""  # what Discord told the person when none came in time
    modal: Json | None = None
    submitted: bool = False  # the modal was sent
    choices: list[Json] | None = None
    original: Json | None = None  # what `@original` is
    messages: list[Json] = field(default_factory=list)  # that came of it, as they are now

    @property
    def acknowledged(self) -> bool:
        return self.response is not None

    @property
    def texts(self) -> list[str]:
        """The words of what was shown for this person's eyes only, "" while it says `thinking`."""
        return [shown(message) for message in self.messages if message["flags"] & limits.EPHEMERAL]

    async def taken(self, within: float = 30.0) -> Interaction:
        """Wait for the first response, or for its failing."""
        await self.world.wait_for(lambda: self.acknowledged or self.failed, within)
        return self

    async def told(self, count: int = 1, within: float = 30.0) -> list[str]:
        """Wait for that many texts for this person's eyes only, none of them still `thinking`."""
        await self.world.wait_for(lambda: len([t for t in self.texts if t]) >= count, within)
        return self.texts


class Interactions(Gateway):
    """Interactions and their tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.interactions: list[Interaction] = []

    # ---- made by people

    def interact(
        self, kind: int, user: str, place: Channel, data: Json, source: Json | None = None
    ) -> Interaction:
        """Somebody does something that our bot has to answer."""
        assert self.may(user, place), f"{user} does not see {place.id}"
        token = f"aW50ZXJhY3Rpb24.{uuid.uuid4().hex}"
        payload: Json = {
            "id": self.flake(),
            "application_id": self.app_id,
            "type": kind,
            "token": token,
            "version": 1,
            "data": data,
            "channel_id": place.id,
            "channel": self.shown_channel(place) | {"permissions": str(self.may(user, place))},
            "locale": "en-US",
            "app_permissions": str(self.may(self.bot_id, place)),
            "entitlements": [],
            "attachment_size_limit": limits.FILE,
            "authorizing_integration_owners": {"0": place.guild or "0"},
            "context": 0 if place.guild else 1,
        }
        if place.guild:
            member = self.guilds[place.guild].members[user].public()
            payload["member"] = member | {"permissions": str(self.may(user, place))}
            guild: Json = {"id": place.guild, "locale": "en-US", "features": []}
            payload |= {"guild_id": place.guild, "guild": guild, "guild_locale": "en-US"}
        else:
            payload["user"] = self.users[user].public()
        if source is not None:
            payload["message"] = source
        made = Interaction(self, payload["id"], token, kind, user, place.id, payload, self.now(), source)
        made.timer = self.at(self.now() + limits.FIRST_RESPONSE, lambda: self._too_late(made))
        self.interactions.append(made)
        self.dispatch("INTERACTION_CREATE", payload, guild=place.guild, channel=place)
        return made

    def _too_late(self, interaction: Interaction) -> None:
        if interaction.response is None:
            late = "Loading options failed" if interaction.kind == AUTOCOMPLETE else NO_RESPONSE
            interaction.failed = late
            self.changed()

    @property
    def troubles(self) -> list[tuple[str, str]]:
        """Who saw an interaction fail, and how."""
        return [(made.user, made.failed) for made in self.interactions if made.failed]

    # ---- the first response

    def respond(self, id: str, token: str, ask: Ask) -> Interaction:
        """POST .../callback. Raises Refused."""
        found = next((made for made in self.interactions if made.id == id and made.token == token), None)
        if found is None:
            raise Refused(10062)
        if found.response is not None:
            raise Refused(40060)
        if found.failed:
            raise Refused(10062)
        ask.note(check_shape(ask.body, {"type": integer(1, 12)}, {"data": anything}))
        kind, data = ask.body["type"], ask.body.get("data")
        from_message = found.kind == COMPONENT or found.source is not None
        if kind not in TAKES[found.kind] or (kind in (DEFER_UPDATE, UPDATE) and not from_message):
            words = [{"code": "BASE_TYPE_CHOICES", "message": f"{kind} does not answer a {found.kind}"}]
            raise Refused(50035, errors={"type": {"_errors": words}})
        self._first(found, kind, data, ask)
        found.response = kind
        if found.timer is not None:
            found.timer.cancel()
        self.changed()
        return found

    def _first(self, found: Interaction, kind: int, data: Any, ask: Ask) -> None:
        place = self._channel(found)
        report = Report()
        match kind:
            case 4:
                found.original = self._show(found, place, data or {}, ask)
            case 5:
                ask.note(check_shape(data or {}, {}, {"flags": integer(0, 1 << 7)}))
                found.original = self._think(found, place, (data or {}).get("flags") or 0)
            case 6:
                found.original = found.source
            case 7:
                self._change(found, self._alive(found, found.source), data or {}, ask)
                found.original = found.source
            case 8:
                check_choices(data, report)
                report.settle()
                found.choices = data["choices"]
            case 9:
                check_modal(data, report)
                report.settle()
                found.modal = data
        ask.note(report)

    def _channel(self, found: Interaction) -> Channel:
        if found.channel not in self.channels:
            raise Refused(10003)
        return self.channels[found.channel]

    def _dress(self, found: Interaction, message: Json) -> Json:
        """What a message that answers an interaction has more than others."""
        data = found.payload["data"]
        user = self.users[found.user].public()
        kind = {COMMAND: 2, COMPONENT: 3, MODAL_SUBMIT: 5}[found.kind]
        owners = found.payload["authorizing_integration_owners"]
        about = {"id": found.id, "type": kind, "user": user, "authorizing_integration_owners": owners}
        message |= {"webhook_id": self.app_id, "application_id": self.app_id, "interaction_metadata": about}
        if found.kind == COMMAND:
            message["type"] = 20 if data["type"] == 1 else 23
            message["interaction"] = {"id": found.id, "type": 2, "name": data["name"], "user": user}
        return message

    def _show(self, found: Interaction, place: Channel, data: Json, ask: Ask) -> Json:
        """A new message of this interaction."""
        ephemeral = bool((data.get("flags") or 0) & limits.EPHEMERAL)
        message, report = compose(self, place, data, ask.files, ephemeral=ephemeral)
        ask.note(report)
        self._dress(found, message)
        notify(self, place, message, data.get("allowed_mentions"))
        self._place(found, place, message)
        return message

    def _place(self, found: Interaction, place: Channel, message: Json) -> None:
        found.messages.append(message)
        if message["flags"] & limits.EPHEMERAL:
            self.ephemeral[found.user].append(message)
        elif message["flags"] & limits.LOADING:
            announce(self, place, message)
        else:
            publish(self, place, message)

    def _think(self, found: Interaction, place: Channel, flags: int) -> Json:
        flags = flags & limits.EPHEMERAL | limits.LOADING
        message = self._dress(found, self.message(place, self.bot_id, "", flags=flags))
        self._place(found, place, message)
        return message

    # ---- later, by the token

    def by_token(self, app: str, token: str) -> Interaction:
        """The interaction of a webhook address. Raises Refused."""
        found = next((made for made in self.interactions if made.token == token), None)
        if found is None or app != self.app_id or found.response is None:
            raise Refused(10015)
        if self.now() - found.at > limits.TOKEN_LIFE:
            raise Refused(50027)
        return found

    def follow_up(self, found: Interaction, ask: Ask) -> Json:
        """POST of a further message. The first one after a deferred response becomes that one."""
        place = self._channel(found)
        if found.original is not None and found.original["flags"] & limits.LOADING:
            body = {name: value for name, value in ask.body.items() if name != "flags"}
            extra = (ask.body.get("flags") or 0) & (limits.V2 | limits.SUPPRESS_EMBEDS)
            self._change(found, found.original, body | ({"flags": extra} if extra else {}), ask)
            return found.original
        return self._show(found, place, ask.body, ask)

    def message_of(self, found: Interaction, id: str) -> Json:
        """A message that this token reaches. Raises Refused."""
        known = [*found.messages, *([found.source] if found.source else [])]
        wanted = found.original if id == "@original" else next((m for m in known if m["id"] == id), None)
        return self._alive(found, wanted)

    def _alive(self, found: Interaction, message: Json | None) -> Json:
        if message is None:
            raise Refused(10008)
        if message["flags"] & limits.EPHEMERAL:
            alive = any(message is one for one in self.ephemeral[found.user])
        else:
            alive = message["id"] in self._channel(found).messages
        if not alive:
            raise Refused(10008)
        return message

    def change_by_token(self, found: Interaction, message: Json, ask: Ask) -> Json:
        """PATCH of a message."""
        self._change(found, message, ask.body, ask)
        return message

    def _change(self, found: Interaction, message: Json, body: Json, ask: Ask) -> None:
        place = self._channel(found)
        was_loading = message["flags"] & limits.LOADING
        if was_loading:
            message["flags"] &= ~limits.LOADING
        try:
            ask.note(rewrite(self, place, message, body, ask.files))
        except Refused:
            message["flags"] |= was_loading
            raise
        if was_loading:
            message["edited_timestamp"] = None
            self.note_page(message, pages(message))
        if not message["flags"] & limits.EPHEMERAL:
            update(self, place, message)

    def remove_by_token(self, found: Interaction, message: Json) -> None:
        """DELETE of a message."""
        if message is found.original:
            found.original = None
        if message["flags"] & limits.EPHEMERAL:
            self.ephemeral[found.user] = [m for m in self.ephemeral[found.user] if m is not message]
            self.changed()
        else:
            self.delete(found.channel, message["id"])

    def dismiss(self, user: str, message: str) -> None:
        """A person puts a message away that only they see."""
        self.ephemeral[user] = [m for m in self.ephemeral[user] if m["id"] != message]
        self.changed()

    def delete(self, channel: str, *messages: str) -> None:
        """Messages vanish."""
        place = self.channels[channel]
        gone = [id for id in messages if place.messages.pop(id, None) is not None]
        more: Json = {"channel_id": channel} | ({"guild_id": place.guild} if place.guild else {})
        if len(gone) == 1:
            self.dispatch("MESSAGE_DELETE", {"id": gone[0]} | more, guild=place.guild, channel=place)
        elif gone:
            self.dispatch("MESSAGE_DELETE_BULK", {"ids": gone} | more, guild=place.guild, channel=place)
        self.changed()
