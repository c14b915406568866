"""Our bot, other people, guilds, and the commands that our bot registers."""

from __future__ import annotations

from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.asking import Answer, Ask, route
from tests.platforms.discord.checks import check_commands, check_shape
from tests.platforms.discord.errors import Refused
from tests.platforms.discord.limits import Json
from tests.platforms.discord.shapes import flake

# ---- our bot


@route("GET", "/users/@me")
def me(ask: Ask) -> Answer:
    return ask.server.users[ask.server.bot_id].public() | {
        "verified": True,
        "mfa_enabled": True,
        "email": None,
    }


def application(ask: Ask) -> Json:
    """The application."""
    return {
        "id": ask.server.app_id,
        "name": "threadgate",
        "icon": None,
        "description": "",
        "summary": "",
        "type": None,
        "bot": ask.server.users[ask.server.bot_id].public(),
        "bot_public": True,
        "bot_require_code_grant": False,
        "verify_key": "0" * 64,
        "flags": ask.server.app_flags(),
        "owner": next(iter(ask.server.users.values())).public(),
        "team": None,
        "integration_types_config": {"0": {}},
        "interactions_endpoint_url": None,
    }


@route("GET", "/oauth2/applications/@me")
def oauth_application(ask: Ask) -> Answer:
    return application(ask)


@route("GET", "/applications/@me")
def own_application(ask: Ask) -> Answer:
    return application(ask)


@route("GET", "/gateway")
def gateway(ask: Ask) -> Answer:
    return {"url": f"{ask.server.base.replace('http', 'ws', 1)}/gateway"}


@route("GET", "/gateway/bot")
def gateway_bot(ask: Ask) -> Answer:
    start = {
        "total": limits.IDENTIFIES,
        "remaining": limits.IDENTIFIES - len(ask.server.identifies),
        "reset_after": 86_400_000,
        "max_concurrency": ask.server.max_concurrency,
    }
    address = f"{ask.server.base.replace('http', 'ws', 1)}/gateway"
    return {"url": address, "shards": ask.server.shards, "session_start_limit": start}


@route("GET", "/users/@me/guilds", query="limit before after with_counts")
def my_guilds(ask: Ask) -> Answer:
    return [
        {"id": g.id, "name": g.name, "icon": None, "owner": False, "permissions": "0", "features": []}
        for g in ask.server.guilds.values()
        if g.bot_in
    ]


@route("POST", "/users/@me/channels")
def open_direct(ask: Ask) -> Answer:
    ask.note(check_shape(ask.body, {"recipient_id": flake}))
    user = str(ask.body["recipient_id"])
    if user not in ask.server.users:
        raise Refused(10013)
    if ask.server.users[user].bot:
        raise Refused(50007)
    return ask.server.shown_channel(ask.server.dm(user))


@route("GET", "/users/{user}")
def get_user(ask: Ask) -> Answer:
    if ask.params["user"] not in ask.server.users:
        raise Refused(10013)
    return ask.server.users[ask.params["user"]].public()


# ---- guilds


@route("GET", "/guilds/{guild}", query="with_counts")
def get_guild(ask: Ask) -> Answer:
    return ask.server.guild_of(ask.params["guild"]).public()


@route("GET", "/guilds/{guild}/channels")
def guild_channels(ask: Ask) -> Answer:
    guild = ask.server.guild_of(ask.params["guild"])
    found = [c for c in ask.server.channels.values() if c.guild == guild.id and not c.is_thread]
    return [channel.public() for channel in found]


@route("GET", "/guilds/{guild}/roles")
def guild_roles(ask: Ask) -> Answer:
    guild = ask.server.guild_of(ask.params["guild"])
    return [role.public() for role in guild.roles.values()]


@route("GET", "/guilds/{guild}/members/{user}")
def guild_member(ask: Ask) -> Answer:
    guild = ask.server.guild_of(ask.params["guild"])
    if ask.params["user"] not in ask.server.users:
        raise Refused(10013)
    if ask.params["user"] not in guild.members:
        raise Refused(10007)
    return guild.members[ask.params["user"]].public()


@route("GET", "/guilds/{guild}/members", query="limit after")
def guild_members(ask: Ask) -> Answer:
    guild = ask.server.guild_of(ask.params["guild"])
    if not ask.server.members_intent:
        raise Refused(50001)
    after, limit = int(ask.query.get("after", "0")), int(ask.query.get("limit", "1"))
    found = sorted((m for id, m in guild.members.items() if int(id) > after), key=lambda m: int(m.user.id))
    return [member.public() for member in found[:limit]]


# ---- commands


def scope_of(ask: Ask) -> tuple[list[Json], str]:
    """The list of commands that the path names, and its guild. Raises Refused."""
    if ask.params["app"] != ask.server.app_id:
        raise Refused(20012)
    guild = ask.params.get("guild", "")
    return (ask.server.guild_of(guild).commands if guild else ask.server.commands), guild


def registered(ask: Ask, body: Json, guild: str, old: list[Json]) -> Json:
    """A command as it is stored; one with the same name and type keeps its id."""
    kind = body.get("type") or 1
    twin = next((c for c in old if (c["name"], c["type"]) == (body["name"], kind)), None)
    made: Json = {
        "id": twin["id"] if twin else ask.server.flake(),
        "application_id": ask.server.app_id,
        "version": ask.server.flake(),
        "default_member_permissions": None,
        "dm_permission": True,
        "contexts": None,
        "integration_types": [0],
        "nsfw": False,
        "name_localizations": None,
        "description_localizations": None,
        "description": "",
        "options": [],
    }
    made |= {name: value for name, value in body.items() if name != "id"} | {"type": kind}
    return made | ({"guild_id": guild} if guild else {})


def overwrite(ask: Ask) -> Answer:
    ask.note(check_commands(ask.body))
    commands, guild = scope_of(ask)
    commands[:] = [registered(ask, body, guild, list(commands)) for body in ask.body]
    ask.server.changed()
    return list(commands)


def upsert(ask: Ask) -> Answer:
    ask.note(check_commands([ask.body]))
    commands, guild = scope_of(ask)
    made = registered(ask, ask.body, guild, commands)
    commands[:] = [c for c in commands if c["id"] != made["id"]] + [made]
    ask.server.changed()
    return made


def listed(ask: Ask) -> Answer:
    return list(scope_of(ask)[0])


def one(ask: Ask) -> Json:
    """The command that the path names. Raises Refused."""
    found: Any = [c for c in scope_of(ask)[0] if c["id"] == ask.params["command"]]
    if not found:
        raise Refused(10063)
    command: Json = found[0]
    return command


def fetched(ask: Ask) -> Answer:
    return one(ask)


def removed(ask: Ask) -> Answer:
    scope_of(ask)[0].remove(one(ask))
    ask.server.changed()
    return None


for base in ("/applications/{app}/commands", "/applications/{app}/guilds/{guild}/commands"):
    route("PUT", base)(overwrite)
    route("POST", base)(upsert)
    route("GET", base, query="with_localizations")(listed)
    route("GET", f"{base}/{{command}}")(fetched)
    route("DELETE", f"{base}/{{command}}")(removed)
