"""The methods that write: chat.*, reactions.* and the status of assistant threads."""

from __future__ import annotations

import copy
from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.checks import check_blocks, too_long
from tests.platforms.slack.limits import Json, units
from tests.platforms.slack.opinion import second_opinion
from tests.platforms.slack.payloads import Events
from tests.platforms.slack.state import Channel, Refused, Stream
from tests.platforms.slack.web_api import Args, invalid, method, place

WORDS = "text blocks:json attachments:json markdown_text parse link_names:bool metadata:json"
LOOKS = "icon_emoji icon_url username as_user:bool"


# ---- what a message says


def content(world: Events, args: Args, *, longest: int | None = None) -> Json:
    """The checked text and blocks of a message. Raises Refused."""
    text, blocks, markdown = args.get("text"), args.get("blocks"), args.get("markdown_text")
    if markdown is not None:
        if text or blocks:
            raise Refused("markdown_text_conflict")
        if units(markdown) > limits.MARKDOWN:
            raise Refused("msg_too_long")
        text, blocks = markdown, [{"type": "markdown", "text": markdown}]
    if not text and not blocks and not args.get("attachments"):
        raise Refused("no_text")
    body: Json = {"text": str(text or "")}
    if longest is not None and units(body["text"]) > longest:
        raise Refused("msg_too_long")
    if units(body["text"]) > limits.TEXT_CUT:
        world.failures.append(f"a text of {units(body['text'])} characters was cut")
        body["text"] = body["text"][: limits.TEXT_CUT]
    if blocks:
        body["blocks"] = checked(world, blocks)
    if args.get("attachments"):
        _check_attachments(args["attachments"])
        body["attachments"] = args["attachments"]
    if "metadata" in args:  # an empty one takes away what was there
        body["metadata"] = _metadata(args["metadata"])
    return body


def _metadata(given: Any) -> Json:
    """What a message carries along. Raises Refused."""
    if given in ({}, None):
        return {}
    if not isinstance(given, dict) or not isinstance(given.get("event_type"), str):
        raise Refused("invalid_metadata_format")
    if not given["event_type"] or not isinstance(given.get("event_payload"), dict):
        raise Refused("invalid_metadata_format")
    if given.keys() - {"event_type", "event_payload", "entities"}:
        raise Refused("invalid_metadata_schema")
    return given


def checked(world: Events, blocks: Any, surface: str = "message") -> list[Json]:
    """Blocks as they are stored. Raises Refused."""
    errors = check_blocks(blocks, surface)
    if errors:
        messages = {"messages": [f"[ERROR] {error}" for error in errors]}
        raise Refused("invalid_blocks", errors=errors, response_metadata=messages)
    if too_long(blocks):
        raise Refused("msg_blocks_too_long")
    _ask_again(world, blocks, surface)
    return world.with_ids(copy.deepcopy(blocks))


def _ask_again(world: Events, blocks: list[Json], surface: str) -> None:
    if objection := second_opinion(blocks, surface):
        world.failures.append(f"slackblocks refuses what was accepted here: {objection}")
        raise Refused("invalid_blocks", errors=[objection])


def _check_attachments(attachments: Any) -> None:
    if not isinstance(attachments, list) or len(attachments) > limits.ATTACHMENTS:
        raise Refused("too_many_attachments")
    for attachment in attachments:
        if "blocks" in attachment and (errors := check_blocks(attachment["blocks"], "message")):
            raise Refused("invalid_attachments", errors=errors)


def _parsed(args: Args, default: bool = False) -> bool:
    """Whether bare names in the text notify people."""
    parse = args.get("parse")
    return bool(args.get("link_names")) or parse == "full" or (parse is None and default)


def _thread(world: Events, channel: Channel, args: Args, name: str = "thread_ts") -> Json:
    """The thread that a message belongs to, as its fields. Raises Refused."""
    ts = args.get(name)
    if not ts:
        return {}
    root = channel.messages.get(ts)
    if root is None:
        raise Refused("thread_not_found")
    if root.get("thread_ts", ts) != ts:
        world.failures.append(f"{ts} is a reply and was used as the thread {name}")
    return {"thread_ts": ts}


def own(world: Events, channel: Channel, ts: Any, error: str) -> Json:
    """A message of our bot. Raises Refused."""
    message = channel.messages.get(str(ts))
    if message is None:
        raise Refused("message_not_found")
    if message.get("user") != world.app.bot_user:
        raise Refused(error)
    return message


def streaming(world: Events, channel: Channel, ts: str) -> Stream | None:
    """The stream that still runs in this message."""
    stream = world.streams.get((channel.id, ts))
    return stream if stream and world.now() - stream.started <= limits.STREAM_LIFE else None


# ---- posting


@method(
    "chat.postMessage",
    f"channel!channel_not_found {WORDS} {LOOKS} thread_ts reply_broadcast:bool unfurl_links:bool "
    "unfurl_media:bool mrkdwn:bool container_id",
    scope="chat:write",
)
def post_message(world: Events, args: Args) -> Json:
    channel = place(world, args, write=True)
    body = content(world, args) | _thread(world, channel, args)
    if args.get("reply_broadcast") and "thread_ts" in body:
        body["subtype"] = "thread_broadcast"
    message = world.post_from_bot(channel, body, parsed=_parsed(args))
    return {"channel": channel.id, "ts": message["ts"], "message": copy.deepcopy(message)}


@method(
    "chat.update",
    f"channel!channel_not_found ts!message_not_found {WORDS} as_user:bool reply_broadcast:bool file_ids:list",
    scope="chat:write",
)
def update(world: Events, args: Args) -> Json:
    channel = place(world, args, write=True)
    message = own(world, channel, args["ts"], "cant_update_message")
    if streaming(world, channel, message["ts"]) is not None:
        raise Refused("streaming_state_conflict")
    if not any(args.get(name) for name in ("text", "blocks", "attachments", "markdown_text")):
        raise Refused("no_text")
    body = content(world, args, longest=limits.TEXT_EDITED)
    previous = copy.deepcopy(message)
    if "blocks" not in body:
        message.pop("blocks", None)
        message["edited"] = {"user": world.app.bot_user, "ts": world.new_ts()}
    message.update(body)
    world.page(channel.id, message, parsed=_parsed(args, default=True))
    world.fire_changed(channel, copy.deepcopy(message), previous)
    world.changed()
    shown = copy.deepcopy(message)
    return {"channel": channel.id, "ts": message["ts"], "text": message["text"], "message": shown}


@method("chat.delete", "channel!channel_not_found ts!message_not_found as_user:bool", scope="chat:write")
def delete(world: Events, args: Args) -> Json:
    channel = place(world, args, write=True)
    message = own(world, channel, args["ts"], "cant_delete_message")
    if streaming(world, channel, message["ts"]) is not None:
        raise Refused("cant_delete_message")
    del channel.messages[message["ts"]]
    world.fire_deleted(channel, message)
    world.changed()
    return {"channel": channel.id, "ts": message["ts"]}


@method(
    "chat.postEphemeral",
    f"channel!channel_not_found user!user_not_found {WORDS} {LOOKS} thread_ts",
    scope="chat:write",
)
def post_ephemeral(world: Events, args: Args) -> Json:
    channel = place(world, args, write=True)
    if args["user"] not in channel.members:
        raise Refused("user_not_in_channel")
    body = content(world, args)
    ts = world.new_ts()
    shown = {"channel": channel.id, "user": args["user"], "ts": ts, **body}
    if args.get("thread_ts"):
        shown["thread_ts"] = args["thread_ts"]
    world.ephemeral[args["user"]].append(shown)
    world.page(channel.id, shown, parsed=_parsed(args))
    world.changed()
    return {"message_ts": ts}


@method("chat.getPermalink", "channel!channel_not_found message_ts!message_not_found")
def get_permalink(world: Events, args: Args) -> Json:
    channel = place(world, args)
    if args["message_ts"] not in channel.messages:
        raise Refused("message_not_found")
    digits = args["message_ts"].replace(".", "")
    return {"channel": channel.id, "permalink": f"https://acme.slack.com/archives/{channel.id}/p{digits}"}


# ---- streams

CHUNKS = {
    "markdown_text": {"text"},
    "task_update": {"id", "title", "status", "details", "output", "sources"},
    "plan_update": {"title"},
    "blocks": {"blocks"},
}


def _words(world: Events, args: Args) -> tuple[str, list[Json]]:
    """What one call adds to a stream: text and blocks. Raises Refused."""
    markdown, chunks = args.get("markdown_text") or "", args.get("chunks") or []
    if markdown and chunks:
        raise Refused("cannot_provide_both_markdown_text_and_chunks")
    blocks: list[Json] = []
    for chunk in chunks:
        kind = chunk.get("type") if isinstance(chunk, dict) else None
        if kind not in CHUNKS or not chunk.keys() - {"type"} <= CHUNKS[kind]:
            raise Refused("invalid_chunks")
        markdown += chunk.get("text", "") if kind == "markdown_text" else ""
        if kind == "blocks":
            blocks += checked(world, chunk["blocks"])
    if units(markdown) > limits.MARKDOWN:
        raise Refused("msg_too_long")
    return markdown, blocks


@method(
    "chat.startStream",
    "channel!channel_not_found thread_ts! markdown_text chunks:json recipient_user_id recipient_team_id "
    "task_display_mode icon_emoji icon_url username",
    scope="chat:write",
)
def start_stream(world: Events, args: Args) -> Json:
    channel = place(world, args, write=True)
    text, blocks = _words(world, args)
    if channel.kind != "im":
        for name in ("recipient_user_id", "recipient_team_id"):
            if not args.get(name):
                raise Refused(f"missing_{name}")
    user = args.get("recipient_user_id")
    if user and (user not in world.users or world.users[user].team != args.get("recipient_team_id")):
        raise Refused("user_not_found")
    body: Json = {"text": text, "blocks": blocks, "streaming_state": "in_progress"}
    message = world.post_from_bot(channel, body | _thread(world, channel, args))
    world.streams[(channel.id, message["ts"])] = Stream(world.now(), text)
    return {"channel": channel.id, "ts": message["ts"]}


def _going_on(world: Events, args: Args) -> tuple[Channel, Json, Stream]:
    channel = place(world, args, write=True)
    message = own(world, channel, args["ts"], "message_not_owned_by_app")
    stream = streaming(world, channel, message["ts"])
    if stream is None:
        message.pop("streaming_state", None)
        raise Refused("message_not_in_streaming_state")
    return channel, message, stream


@method(
    "chat.appendStream",
    "channel!channel_not_found ts!message_not_found markdown_text chunks:json",
    scope="chat:write",
)
def append_stream(world: Events, args: Args) -> Json:
    channel, message, stream = _going_on(world, args)
    text, blocks = _words(world, args)
    if not text and not blocks and not args.get("chunks"):
        raise Refused("no_text")
    stream.text += text
    message["text"] = stream.text
    message["blocks"] = message.get("blocks", []) + blocks
    world.page(channel.id, message, parsed=False)
    world.changed()
    return {"channel": channel.id, "ts": message["ts"]}


@method(
    "chat.stopStream",
    "channel!channel_not_found ts!message_not_found markdown_text blocks:json metadata:json chunks:json "
    "session_status",
    scope="chat:write",
)
def stop_stream(world: Events, args: Args) -> Json:
    channel, message, stream = _going_on(world, args)
    text, blocks = _words(world, args)
    if args.get("blocks") and len(args["blocks"]) > limits.BLOCKS["message"]:
        raise Refused("msg_blocks_too_many")
    more = checked(world, args["blocks"]) if args.get("blocks") else []
    previous = copy.deepcopy(message)
    del world.streams[(channel.id, message["ts"])]
    message["text"] = stream.text + text
    message["blocks"] = message.get("blocks", []) + blocks + more
    if "metadata" in args:
        message["metadata"] = _metadata(args["metadata"])
    message.pop("streaming_state", None)
    world.page(channel.id, message, parsed=False)
    world.fire_changed(channel, copy.deepcopy(message), previous)
    world.changed()
    return {"channel": channel.id, "ts": message["ts"], "message": copy.deepcopy(message)}


# ---- assistant threads


def _assistant(world: Events, args: Args) -> tuple[str, str]:
    channel = place(world, args, "channel_id")
    ts = args.get("thread_ts") or ""
    if ts and ts not in channel.messages:
        raise Refused("invalid_thread_ts")
    return channel.id, ts


@method(
    "assistant.threads.setStatus",
    "channel_id!channel_not_found thread_ts!invalid_thread_ts status loading_messages:json "
    "icon_emoji icon_url username",
    scope="assistant:write|chat:write",
)
def set_status(world: Events, args: Args) -> Json:
    thread = world.assistants[_assistant(world, args)]
    if "status" not in args:
        raise invalid("missing required field: status")
    if len(args.get("loading_messages") or []) > limits.LOADING_MESSAGES:
        raise invalid("no more than 10 items allowed: loading_messages")
    thread.status, thread.status_at = args["status"], world.now()
    thread.loading = list(args.get("loading_messages") or [])
    world.changed()
    return {}


@method(
    "assistant.threads.setTitle",
    "channel_id!channel_not_found thread_ts!invalid_thread_ts title!",
    scope="assistant:write",
)
def set_title(world: Events, args: Args) -> Json:
    key = _assistant(world, args)
    root = world.channels[key[0]].messages[key[1]]
    if root.get("subtype") != "assistant_app_thread":
        raise Refused("invalid_thread_ts")
    previous = copy.deepcopy(root)
    world.assistants[key].title = args["title"]
    root["assistant_app_thread"] = {"title": args["title"], "title_blocks": [], "artifacts": []}
    world.fire_changed(world.channels[key[0]], copy.deepcopy(root), previous)
    world.changed()
    return {}


@method(
    "assistant.threads.setSuggestedPrompts",
    "channel_id!channel_not_found thread_ts title prompts:json!",
    scope="assistant:write",
)
def set_suggested_prompts(world: Events, args: Args) -> Json:
    thread = world.assistants[_assistant(world, args)]
    prompts = args["prompts"]
    if not isinstance(prompts, list) or not 1 <= len(prompts) <= limits.SUGGESTED_PROMPTS:
        raise invalid("from 1 to 4 items allowed: prompts")
    if any(not isinstance(prompt, dict) or prompt.keys() != {"title", "message"} for prompt in prompts):
        raise invalid("each prompt needs a title and a message")
    thread.prompts, thread.prompts_title = prompts, args.get("title", "")
    world.changed()
    return {}


# ---- reactions


def _reacted(world: Events, args: Args) -> tuple[list[Json], Json | None]:
    channel = place(world, args, write=True)
    message = channel.messages.get(args["timestamp"])
    if message is None:
        raise Refused("message_not_found")
    reactions: list[Json] = message.setdefault("reactions", [])
    return reactions, next((entry for entry in reactions if entry["name"] == args["name"]), None)


REACTION = "channel!no_item_specified timestamp!no_item_specified name!invalid_name"


@method("reactions.add", REACTION, scope="reactions:write")
def add_reaction(world: Events, args: Args) -> Json:
    reactions, entry = _reacted(world, args)
    if entry is None:
        entry = {"name": args["name"], "users": [], "count": 0}
        reactions.append(entry)
    if world.app.bot_user in entry["users"]:
        raise Refused("already_reacted")
    entry["users"].append(world.app.bot_user)
    entry["count"] = len(entry["users"])
    world.changed()
    return {}


@method("reactions.remove", f"{REACTION} file file_comment", scope="reactions:write")
def remove_reaction(world: Events, args: Args) -> Json:
    reactions, entry = _reacted(world, args)
    if entry is None or world.app.bot_user not in entry["users"]:
        raise Refused("no_reaction")
    entry["users"].remove(world.app.bot_user)
    entry["count"] = len(entry["users"])
    if not entry["users"]:
        reactions.remove(entry)
    world.changed()
    return {}
