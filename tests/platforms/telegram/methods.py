"""The methods of the Bot API that are served, each with the parameters that exist."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.platforms.telegram.checks import (
    CAPTION_LIMIT,
    NOTICE_LIMIT,
    TEXT_LIMIT,
    Json,
    Params,
    Refused,
    bad,
    checked_markup,
    checked_text,
    checked_words,
    detected,
    utf16_len,
)
from tests.platforms.telegram.world import QUERY_LIFE, Bot, Chat, World

Handler = Callable[[World, Bot, Params], Awaitable[Any]]
METHODS: dict[str, tuple[frozenset[str], Handler]] = {}

OPEN_TOPIC, CLOSED_TOPIC = "open", "closed"
SEND = "chat_id message_thread_id disable_notification protect_content reply_parameters reply_markup"
CHAT_ACTIONS = frozenset(
    [
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    ]
)
CONFLICT = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
CONFLICT_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; "
    "use deleteWebhook to delete the webhook first"
)
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same "
    "as a current content and reply markup of the message"
)
TOO_OLD = "query is too old and response timeout expired or query ID is invalid"


def method(name: str, parameters: str = "") -> Callable[[Handler], Handler]:
    """Register a method under its name with the parameters that exist."""

    def register(handler: Handler) -> Handler:
        METHODS[name] = (frozenset(parameters.split()), handler)
        return handler

    return register


@method("getMe")
async def get_me(world: World, bot: Bot, params: Params) -> Json:
    return {
        **bot.user,
        "can_join_groups": True,
        "can_read_all_group_messages": not bot.privacy,
        "supports_inline_queries": False,
    }


# ---- updates


@method("getUpdates", "offset limit timeout allowed_updates")
async def get_updates(world: World, bot: Bot, params: Params) -> list[Json]:
    if bot.webhook.get("url"):
        raise Refused(409, CONFLICT_WEBHOOK)
    if bot.poll is not None and not bot.poll.done():
        bot.poll.set_exception(Refused(409, CONFLICT))
    limit, timeout = params.integer("limit", 100) or 100, params.integer("timeout", 0) or 0
    if not 1 <= limit <= 100 or not 0 <= timeout <= 50:
        world.failures.append(f"getUpdates with limit {limit} and timeout {timeout}")
    allowed = params.json("allowed_updates")
    if allowed is not None:
        bot.allowed = allowed or None
    _confirm(bot, params.integer("offset", 0) or 0)
    world.changed()
    if not bot.updates and timeout > 0:
        bot.poll = asyncio.get_running_loop().create_future()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(timeout, 50)):
                    await bot.poll
        finally:
            if bot.poll is not None and bot.poll.done():
                bot.poll = None
    return bot.updates[: max(1, min(limit, 100))]


def _confirm(bot: Bot, offset: int) -> None:
    if offset < 0:
        bot.updates = bot.updates[offset:]
    elif offset > 0:
        bot.updates = [update for update in bot.updates if update["update_id"] >= offset]


@method(
    "setWebhook",
    "url certificate ip_address max_connections allowed_updates drop_pending_updates secret_token",
)
async def set_webhook(world: World, bot: Bot, params: Params) -> bool:
    url, secret = params.text("url", "") or "", params.text("secret_token")
    match = re.fullmatch(r"https://[^/:]+(?::(\d+))?(/.*)?", url)
    if url and (match is None or (match[1] or "443") not in {"443", "80", "88", "8443"}):
        raise bad("bad webhook: An HTTPS URL must be provided for webhook")
    if secret is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", secret):
        raise bad("secret token contains unallowed characters")
    bot.webhook = {"url": url, "secret_token": secret} if url else {}
    allowed = params.json("allowed_updates")
    if allowed is not None:
        bot.allowed = allowed or None
    if not 1 <= (params.integer("max_connections", 40) or 0) <= 100:
        raise bad("invalid max_connections specified")
    bot.connections = params.integer("max_connections", 40) or 40
    if params.flag("drop_pending_updates"):
        bot.updates.clear()
    return True


@method("deleteWebhook", "drop_pending_updates")
async def delete_webhook(world: World, bot: Bot, params: Params) -> bool:
    bot.webhook = {}
    if params.flag("drop_pending_updates"):
        bot.updates.clear()
    return True


@method("getWebhookInfo")
async def get_webhook_info(world: World, bot: Bot, params: Params) -> Json:
    return {
        "url": bot.webhook.get("url", ""),
        "has_custom_certificate": False,
        "pending_update_count": len(bot.updates),
    }


# ---- sending


@method("sendMessage", f"{SEND} text entities link_preview_options allow_paid_broadcast message_effect_id")
async def send_message(world: World, bot: Bot, params: Params) -> Json:
    chat, topic = _target(world, params)
    entities = params.json("entities", [])
    text = checked_text(params.text("text"), entities)
    body: Json = {"text": text}
    if marks := sorted(entities + detected(text, entities), key=lambda e: e["offset"]):
        body["entities"] = marks
    return _post(world, bot, chat, topic, params, body)


@method("sendDocument", f"{SEND} document caption caption_entities disable_content_type_detection thumbnail")
async def send_document(world: World, bot: Bot, params: Params) -> Json:
    return await _send_file(world, bot, params, "document")


@method("sendPhoto", f"{SEND} photo caption caption_entities has_spoiler show_caption_above_media")
async def send_photo(world: World, bot: Bot, params: Params) -> Json:
    return await _send_file(world, bot, params, "photo")


async def _send_file(world: World, bot: Bot, params: Params, kind: str) -> Json:
    chat, topic = _target(world, params)
    upload = params.upload(kind)
    if upload is None:
        raise bad(f"there is no {kind} in the request")
    if chat.no_documents:
        raise bad("not enough rights to send documents to the chat")
    if not upload.content:
        raise bad("file must be non-empty")
    if len(upload.content) > 50_000_000:
        raise Refused(413, "Request Entity Too Large")
    caption, entities = params.text("caption", "") or "", params.json("caption_entities", [])
    checked_words(caption, entities, limit=CAPTION_LIMIT, too_long="message caption is too long")
    file_id = world.store_file(upload.content, upload.name)
    handle = {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": len(upload.content)}
    if kind == "document":
        body: Json = {"document": {**handle, "file_name": upload.name, "mime_type": upload.media_type}}
    else:
        body = {"photo": [{**handle, "width": 100, "height": 100}]}
    if caption:
        body["caption"] = caption
    if marks := entities + detected(caption, entities):
        body["caption_entities"] = marks
    return _post(world, bot, chat, topic, params, body)


def _post(world: World, bot: Bot, chat: Chat, topic: int | None, params: Params, body: Json) -> Json:
    markup = checked_markup(params.json("reply_markup"))
    reply = params.json("reply_parameters")
    if reply:
        original = chat.messages.get(reply["message_id"])
        if original is None and not reply.get("allow_sending_without_reply"):
            raise bad("message to be replied not found")
        if original is not None:
            body["reply_to_message"] = {k: v for k, v in original.items() if k != "reply_to_message"}
    _count(world, chat)
    if markup and "inline_keyboard" in markup:
        body["reply_markup"] = markup
    message = world.post(chat, bot, topic, body)
    if markup and "force_reply" in markup:
        chat.force_replies[message["message_id"]] = markup
    return message


def _target(world: World, params: Params) -> tuple[Chat, int | None]:
    chat = world.chat(params.integer("chat_id"))
    topic = params.integer("message_thread_id")
    if topic is not None:
        state = chat.topics.get(topic)
        if state is None or state not in (OPEN_TOPIC, CLOSED_TOPIC):
            raise bad("message thread not found")
        if state == CLOSED_TOPIC:
            raise bad("TOPIC_CLOSED")
    return chat, topic


def _count(world: World, chat: Chat) -> None:
    """One a second in a chat, twenty a minute in a group."""
    now = world.clock()
    if world.enforce_rates:
        recent = [at for at in chat.sent_at if at > now - 60]
        if chat.type != "private" and len(recent) >= 20:
            raise _too_many(int(60 - (now - recent[-20])) + 1)
        if chat.type == "private" and recent and now - recent[-1] < 0.95:
            raise _too_many(1)
    chat.sent_at.append(now)


def _too_many(seconds: int) -> Refused:
    return Refused(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})


def check_flood(world: World, params: Params) -> None:
    """The 429 that a test has asked for. Raises Refused."""
    chat = world.chats.get(_as_int(params.values.get("chat_id")))
    if chat is None:
        return
    if chat.floods:
        raise _too_many(chat.floods.pop(0))
    left = chat.flood_until - world.clock()
    if left > 0:
        raise _too_many(int(left) + 1)


def _as_int(value: str | None) -> int:
    try:
        return int(value or 0)
    except ValueError:
        return 0


# ---- changing


@method(
    "editMessageText", "chat_id message_id inline_message_id text entities link_preview_options reply_markup"
)
async def edit_message_text(world: World, bot: Bot, params: Params) -> Json:
    chat, message = _own(world, bot, params, "edit")
    entities = params.json("entities", [])
    text = checked_text(params.text("text"), entities)
    marks = sorted(entities + detected(text, entities), key=lambda e: e["offset"])
    return _change(world, chat, message, checked_markup(params.json("reply_markup")), text, marks)


@method("editMessageReplyMarkup", "chat_id message_id inline_message_id reply_markup")
async def edit_message_reply_markup(world: World, bot: Bot, params: Params) -> Json:
    chat, message = _own(world, bot, params, "edit")
    markup = checked_markup(params.json("reply_markup"))
    return _change(world, chat, message, markup, message.get("text", ""), message.get("entities", []))


def _change(
    world: World, chat: Chat, message: Json, markup: Json | None, text: str, marks: list[Json]
) -> Json:
    same = message.get("text", "") == text and message.get("entities", []) == marks
    if same and message.get("reply_markup") == markup:
        raise bad(NOT_MODIFIED)
    changed = {k: v for k, v in message.items() if k not in {"text", "entities", "reply_markup"}}
    changed.update(text=text, edit_date=int(time.time()))
    if marks:
        changed["entities"] = marks
    if markup:
        changed["reply_markup"] = markup
    chat.messages[message["message_id"]] = changed
    world.changed()
    return changed


def _own(world: World, bot: Bot, params: Params, what: str) -> tuple[Chat, Json]:
    chat = world.chat(params.integer("chat_id"))
    message = chat.messages.get(params.integer("message_id") or 0)
    if message is None:
        raise bad(f"message to {what} not found")
    if message["from"]["id"] != bot.id:
        raise bad(f"message can't be {'edited' if what == 'edit' else 'deleted'}")
    return chat, message


@method("deleteMessage", "chat_id message_id")
async def delete_message(world: World, bot: Bot, params: Params) -> bool:
    chat, message = _own(world, bot, params, "delete")
    if time.time() - message["date"] > 48 * 3600:
        raise bad("message can't be deleted")
    del chat.messages[message["message_id"]]
    world.changed()
    return True


@method("setMessageReaction", "chat_id message_id reaction is_big")
async def set_message_reaction(world: World, bot: Bot, params: Params) -> bool:
    chat = world.chat(params.integer("chat_id"))
    if params.integer("message_id") not in chat.messages:
        raise bad("message to react not found")
    if chat.no_reactions:
        raise bad("REACTION_INVALID")
    chat.reactions.append(
        {"message_id": params.integer("message_id"), "reaction": params.json("reaction", [])}
    )
    world.changed()
    return True


@method("answerCallbackQuery", "callback_query_id text show_alert url cache_time")
async def answer_callback_query(world: World, bot: Bot, params: Params) -> bool:
    text = params.text("text", "") or ""
    if len(text) > NOTICE_LIMIT:
        raise bad("MESSAGE_TOO_LONG")
    click = world.clicks.get(params.text("callback_query_id", "") or "")
    if click is None or click.bot is not bot or click.answered or world.clock() - click.asked_at > QUERY_LIFE:
        raise bad(TOO_OLD)
    click.answers.append({"text": text, "show_alert": params.flag("show_alert")})
    world.changed()
    return True


# ---- signs of life


@method("sendChatAction", "chat_id message_thread_id action")
async def send_chat_action(world: World, bot: Bot, params: Params) -> bool:
    chat, _ = _target(world, params)
    action = params.text("action", "") or ""
    if action not in CHAT_ACTIONS:
        raise bad("wrong parameter action in request")
    chat.actions.append(action)
    world.changed()
    return True


@method("sendMessageDraft", "chat_id message_thread_id draft_id text entities")
async def send_message_draft(world: World, bot: Bot, params: Params) -> bool:
    chat, _ = _target(world, params)
    if chat.type != "private":
        raise bad("message drafts can be sent only in private chats")
    if not params.integer("draft_id"):
        raise bad("DRAFT_ID_INVALID")
    text = params.text("text", "") or ""
    checked_words(text, params.json("entities", []), limit=TEXT_LIMIT, too_long="message is too long")
    chat.drafts.append({"draft_id": params.integer("draft_id"), "text": text})
    chat.draft = text
    world.changed()
    return True


# ---- files, people, commands


@method("getFile", "file_id")
async def get_file(world: World, bot: Bot, params: Params) -> Json:
    file = world.files.get(params.text("file_id", "") or "")
    if file is None:
        raise bad("invalid file_id")
    if len(file["content"]) > 20_000_000:
        raise bad("file is too big")
    file_id = params.text("file_id")
    return {
        "file_id": file_id,
        "file_unique_id": f"u{file_id}",
        "file_size": len(file["content"]),
        "file_path": file["path"],
    }


@method("getChat", "chat_id")
async def get_chat(world: World, bot: Bot, params: Params) -> Json:
    chat = world.chat(params.integer("chat_id"))
    return {**chat.public(), "accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": _NO_GIFTS}


_NO_GIFTS = {
    "unlimited_gifts": False,
    "limited_gifts": False,
    "unique_gifts": False,
    "premium_subscription": False,
    "gifts_from_channels": False,
}


@method("getChatMember", "chat_id user_id")
async def get_chat_member(world: World, bot: Bot, params: Params) -> Json:
    chat = world.chat(params.integer("chat_id"))
    user = params.integer("user_id") or 0
    if user not in world.users:
        raise bad("user not found")
    return _member(world, user, chat.members.get(user, "left"))


@method("getChatAdministrators", "chat_id")
async def get_chat_administrators(world: World, bot: Bot, params: Params) -> list[Json]:
    chat = world.chat(params.integer("chat_id"))
    if chat.type == "private":
        raise bad("there are no administrators in the private chat")
    admins = [user for user, status in chat.members.items() if status in {"administrator", "creator"}]
    return [_member(world, user, chat.members[user]) for user in admins]


_RIGHTS = (
    "can_be_edited is_anonymous can_manage_chat can_delete_messages can_manage_video_chats "
    "can_restrict_members can_promote_members can_change_info can_invite_users can_post_stories "
    "can_edit_stories can_delete_stories"
)


def _member(world: World, user: int, status: str) -> Json:
    member: Json = {"user": world.users[user], "status": status}
    if status == "administrator":
        member.update(dict.fromkeys(_RIGHTS.split(), False))
    if status == "creator":
        member["is_anonymous"] = False
    return member


@method("setMyCommands", "commands scope language_code")
async def set_my_commands(world: World, bot: Bot, params: Params) -> bool:
    commands = params.json("commands", [])
    if len(commands) > 100:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    for entry in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", entry["command"]):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= utf16_len(entry["description"]) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
    bot.commands[params.text("scope", "") or ""] = commands
    world.changed()
    return True


@method("deleteMyCommands", "scope language_code")
async def delete_my_commands(world: World, bot: Bot, params: Params) -> bool:
    bot.commands.pop(params.text("scope", "") or "", None)
    return True
