"""The methods that look things up: the app itself, conversations, people and groups."""

from __future__ import annotations

import copy
from typing import TypeVar

from tests.platforms.slack.limits import Json
from tests.platforms.slack.payloads import Events
from tests.platforms.slack.state import Channel, Refused
from tests.platforms.slack.web_api import Args, invalid, method, place

T = TypeVar("T")
PAGE = "cursor limit:int"

# ---- the app


@method("api.test", "error")
def api_test(world: Events, args: Args) -> Json:
    if args.get("error"):
        raise Refused(args["error"], args={"error": args["error"]})
    return {"args": args}


@method("auth.test")
def auth_test(world: Events, args: Args) -> Json:
    team = world.teams["T1"]
    return {
        "url": f"https://{team['domain']}.slack.com/",
        "team": team["name"],
        "user": world.app.name,
        "team_id": "T1",
        "user_id": world.app.bot_user,
        "bot_id": world.app.bot_id,
        "is_enterprise_install": False,
    }


@method("apps.connections.open", app_token=True)
def connections_open(world: Events, args: Args) -> Json:
    return {"url": world.open_ticket()}


@method("bots.info", "bot", scope="users:read")
def bots_info(world: Events, args: Args) -> Json:
    app = world.app
    if args.get("bot", app.bot_id) != app.bot_id:
        raise Refused("bot_not_found")
    bot = {"id": app.bot_id, "deleted": False, "name": app.name, "updated": 1_700_000_000}
    return {"bot": bot | {"app_id": app.id, "user_id": app.bot_user, "icons": {}}}


@method("team.info", "team domain include_slackbot_availability:bool", scope="team:read")
def team_info(world: Events, args: Args) -> Json:
    team = world.teams.get(str(args.get("team", "T1")))
    if team is None:
        raise Refused("team_not_found")
    return {"team": {**team, "email_domain": "", "icon": {"image_default": True}}}


# ---- conversations


@method(
    "conversations.info",
    "channel!channel_not_found include_locale:bool include_num_members:bool",
    scope="*:read",
)
def conversations_info(world: Events, args: Args) -> Json:
    channel = place(world, args)
    shown = channel.public()
    if args.get("include_num_members"):
        shown["num_members"] = len(channel.members)
    return {"channel": shown}


@method("conversations.members", f"channel!channel_not_found {PAGE}", scope="*:read")
def conversations_members(world: Events, args: Args) -> Json:
    members, cursor = _page(sorted(place(world, args).members), args, 100)
    return {"members": members, "response_metadata": {"next_cursor": cursor}}


@method("conversations.join", "channel!channel_not_found", scope="channels:join")
def conversations_join(world: Events, args: Args) -> Json:
    channel = place(world, args)
    if channel.kind != "channel":
        raise Refused("method_not_supported_for_channel_type")
    if channel.archived:
        raise Refused("is_archived")
    channel.members.add(world.app.bot_user)
    world.changed()
    return {"channel": channel.public()}


@method(
    "conversations.open",
    "channel users:list return_im:bool prevent_creation:bool",
    scope="im:write|mpim:write",
)
def conversations_open(world: Events, args: Args) -> Json:
    if args.get("channel"):
        channel = place(world, args)
    else:
        users = [user for user in args.get("users") or [] if user]
        if not users:
            raise Refused("users_list_not_supplied")
        if any(user not in world.users for user in users):
            raise Refused("user_not_found")
        channel = world.direct(users[0]) if len(users) == 1 else _group_of(world, users)
    return {"channel": channel.public() if args.get("return_im") else {"id": channel.id}}


def _group_of(world: Events, users: list[str]) -> Channel:
    wanted = {*users, world.app.bot_user}
    for channel in world.channels.values():
        if channel.kind == "mpim" and channel.members == wanted:
            return channel
    return world.channel(world.new_id("M"), "mpdm-new-1", users, kind="mpim")


HISTORY = f"channel!channel_not_found {PAGE} oldest latest inclusive:bool include_all_metadata:bool"


@method("conversations.history", HISTORY, scope="*:history")
def conversations_history(world: Events, args: Args) -> Json:
    channel = _readable(world, args)
    messages = [m for m in channel.messages.values() if _at_root(m) and _between(m, args)]
    messages.sort(key=lambda message: message["ts"], reverse=True)
    return _messages(messages, args, 100)


@method("conversations.replies", f"{HISTORY} ts!thread_not_found", scope="*:history")
def conversations_replies(world: Events, args: Args) -> Json:
    channel = _readable(world, args)
    root = channel.messages.get(args["ts"])
    if root is None:
        raise Refused("thread_not_found")
    thread = str(root.get("thread_ts", root["ts"]))
    found = sorted(
        (m for m in channel.messages.values() if m.get("thread_ts") == thread and m["ts"] != thread),
        key=lambda message: str(message["ts"]),
    )
    replies = [message for message in found if _between(message, args)]
    first = channel.messages.get(thread)
    return _messages([first, *replies] if first is not None else replies, args, 1_000)


def _readable(world: Events, args: Args) -> Channel:
    channel = place(world, args)
    if world.app.bot_user not in channel.members:
        raise Refused("not_in_channel")
    return channel


def _at_root(message: Json) -> bool:
    is_reply = message.get("thread_ts", message["ts"]) != message["ts"]
    return not is_reply or message.get("subtype") == "thread_broadcast"


def _between(message: Json, args: Args) -> bool:
    ts, oldest, latest = message["ts"], args.get("oldest") or "0", args.get("latest") or "9999999999"
    if args.get("inclusive"):
        return float(oldest) <= float(ts) <= float(latest)
    return float(oldest) < float(ts) < float(latest)


def _messages(messages: list[Json], args: Args, most: int) -> Json:
    page, cursor = _page(messages, args, most)
    hidden = () if args.get("include_all_metadata") else ("metadata",)
    told = [{name: value for name, value in message.items() if name not in hidden} for message in page]
    answer: Json = {"messages": copy.deepcopy(told), "has_more": bool(cursor)}
    return answer | ({"response_metadata": {"next_cursor": cursor}} if cursor else {})


def _page(entries: list[T], args: Args, most: int) -> tuple[list[T], str]:
    """One page and the cursor of the next, "" for none."""
    limit = args.get("limit") or most
    if not 1 <= limit <= 1_000:
        raise invalid("limit must be from 1 to 1000", "invalid_limit")
    cursor = args.get("cursor") or ""
    if cursor and not cursor.startswith("next:"):
        raise Refused("invalid_cursor")
    start = int(cursor.removeprefix("next:") or 0)
    more = start + limit < len(entries)
    return entries[start : start + limit], f"next:{start + limit}" if more else ""


# ---- people


@method("users.info", "user!user_not_found include_locale:bool", scope="users:read")
def users_info(world: Events, args: Args) -> Json:
    user = world.users.get(args["user"])
    if user is None:
        raise Refused("user_not_found")
    return {"user": user.public()}


@method(
    "usergroups.list",
    "include_count:bool include_disabled:bool include_users:bool",
    scope="usergroups:read",
)
def usergroups_list(world: Events, args: Args) -> Json:
    groups = []
    for group in world.groups.values():
        if group["disabled"] and not args.get("include_disabled"):
            continue
        shown = {
            "id": group["id"],
            "team_id": "T1",
            "is_usergroup": True,
            "name": group["handle"].title(),
            "handle": group["handle"],
            "description": "",
            "is_external": False,
            "date_create": 1_600_000_000,
            "date_delete": 1_650_000_000 if group["disabled"] else 0,
        }
        if args.get("include_users"):
            shown["users"] = list(group["users"])
        if args.get("include_count"):
            shown["user_count"] = len(group["users"])
        groups.append(shown)
    return {"usergroups": groups}


@method("usergroups.users.list", "usergroup! include_disabled:bool", scope="usergroups:read")
def usergroups_users_list(world: Events, args: Args) -> Json:
    group = world.groups.get(args["usergroup"])
    if group is None or (group["disabled"] and not args.get("include_disabled")):
        raise Refused("no_such_subteam")
    return {"users": list(group["users"])}
