"""What all interactions have in common: who did it, where, and how it can be answered. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from channels.base import Actor
from channels.discord import wire_values as v
from channels.discord.wire_json import Node
from channels.discord.wire_values import Handle, Ignored, Place, PlaceWanted, Scene
from channels.tolerant import Malformed

_ELSEWHERE_PRIVATE: Final = 2  # context: a conversation among people, without the bot


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One interaction."""

    node: Node
    handle: Handle
    actor: Actor
    author: str
    place: Place
    scene: Scene

    @property
    def data(self) -> Node:
        return self.node.at("data")


def read_use(node: Node, scene: Scene) -> Use | PlaceWanted | Ignored:
    """The interaction, if it is for us. Raises Malformed."""
    if scene.me.application and node.id("application_id") not in ("", scene.me.application):
        return Ignored(reason=v.ELSEWHERE)
    if _not_there(node):
        return Ignored(reason=v.NOT_THERE)
    place = _place(node, scene)
    if place is None:
        return PlaceWanted(channel=_channel(node))
    member = node.at("member")
    user = member.at("user") or node.at("user")
    if not user.id("id"):
        raise Malformed("user.id")
    return Use(
        node=node,
        handle=handle(node),
        actor=v.actor_of(user.id("id")),
        author=v.name_of(user, member),
        place=place,
        scene=scene,
    )


def handle(node: Node) -> Handle:
    """How to answer. Raises Malformed."""
    return Handle(
        id=node.need_id("id"),
        token=node.need("token"),
        application=node.id("application_id"),
        message=node.id("message", "id"),
    )


def _not_there(node: Node) -> bool:
    """Whether somebody brought the application along to where the bot is not: it could not answer."""
    if node.number("context") == _ELSEWHERE_PRIVATE or node.number("channel", "type") == v.GROUP:
        return True
    owners = node.at("authorizing_integration_owners")
    return bool(owners) and bool(node.id("guild_id")) and owners.at("0").value is None


def _channel(node: Node) -> str:
    return node.id("channel", "id") or node.need_id("channel_id")


def _place(node: Node, scene: Scene) -> Place | None:
    """The interaction brings its channel along; what is lacking there may be known otherwise."""
    channel, told = _channel(node), v.channel_info(node.at("channel"))
    if told is None or (told.is_thread and not told.parent):
        told = scene.parents(channel)
    return v.place_in(channel, node.id("guild_id"), told, scene.parents)
