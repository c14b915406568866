"""Answers to interactions, and the webhook of their tokens."""

from __future__ import annotations

from tests.platforms.discord import limits
from tests.platforms.discord.asking import Answer, Ask, route
from tests.platforms.discord.interactions import DEFER, MESSAGE, Interaction
from tests.platforms.discord.limits import Json


@route("POST", "/interactions/{interaction}/{token}/callback", query="with_response", open=True)
def respond(ask: Ask) -> Answer:
    found = ask.server.respond(ask.params["interaction"], ask.params["token"], ask)
    if ask.query.get("with_response") not in ("1", "true"):
        return None
    about: Json = {"id": found.id, "type": found.kind, "channel_id": found.channel}
    if found.payload.get("guild_id"):
        about["guild_id"] = found.payload["guild_id"]
    answer: Json = {"interaction": about}
    resource: Json = {"type": found.response}
    if found.original is not None and found.response in (MESSAGE, DEFER, 7):
        flags = found.original["flags"]
        about["response_message_id"] = found.original["id"]
        about["response_message_loading"] = bool(flags & limits.LOADING)
        about["response_message_ephemeral"] = bool(flags & limits.EPHEMERAL)
        resource["message"] = found.original
    return answer | {"resource": resource}


def _found(ask: Ask) -> Interaction:
    return ask.server.by_token(ask.params["app"], ask.params["token"])


@route("POST", "/webhooks/{app}/{token}", query="wait with_components thread_id", open=True)
def follow_up(ask: Ask) -> Answer:
    return ask.server.follow_up(_found(ask), ask)


MESSAGE_OF = "/webhooks/{app}/{token}/messages/{message}"


@route("GET", MESSAGE_OF, query="thread_id", open=True)
def get_message(ask: Ask) -> Answer:
    return ask.server.message_of(_found(ask), ask.params["message"])


@route("PATCH", MESSAGE_OF, query="thread_id with_components", open=True)
def edit_message(ask: Ask) -> Answer:
    found = _found(ask)
    return ask.server.change_by_token(found, ask.server.message_of(found, ask.params["message"]), ask)


@route("DELETE", MESSAGE_OF, query="thread_id", open=True)
def delete_message(ask: Ask) -> Answer:
    found = _found(ask)
    ask.server.remove_by_token(found, ask.server.message_of(found, ask.params["message"]))
    return None
