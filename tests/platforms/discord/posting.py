"""Messages of our bot: from a payload to what is stored, shown, told and notified."""

from __future__ import annotations

import copy
import itertools
import re
from typing import Any

from tests.platforms.discord import limits, permissions
from tests.platforms.discord.asking import Upload
from tests.platforms.discord.checks import check_mentions, check_message, mentioned, paged
from tests.platforms.discord.entities import Channel, iso
from tests.platforms.discord.errors import Refused, too_many
from tests.platforms.discord.limits import Json
from tests.platforms.discord.shapes import Report
from tests.platforms.discord.words import walk
from tests.platforms.discord.world import World

LINK = re.compile(r"(?<!<)https?://[^\s<>)\]]+")
Files = dict[int, Upload]


def event_of(world: World, place: Channel, message: Json) -> Json:
    """A message as the gateway tells of it."""
    told = copy.deepcopy(message)
    if place.guild:
        told["guild_id"] = place.guild
        member = world.guilds[place.guild].members.get(message["author"]["id"])
        if member is not None and "webhook_id" not in message:
            told["member"] = member.public(user=False)
    return told


def announce(world: World, place: Channel, message: Json) -> Json:
    """Store a new message and tell of it."""
    world.store(place, message)
    told = event_of(world, place, message)
    world.dispatch("MESSAGE_CREATE", told, guild=place.guild, channel=place)
    return message


def update(world: World, place: Channel, message: Json) -> Json:
    """Tell of a changed message."""
    told = event_of(world, place, message)
    world.dispatch("MESSAGE_UPDATE", told, guild=place.guild, channel=place)
    return message


# ---- rights


def check_sendable(world: World, place: Channel, *, files: bool = False, embeds: bool = False) -> None:
    """Our bot may write there; an archived thread is opened by that. Raises Refused."""
    if place.type == limits.DM:
        if world.users[place.user].closed:
            raise Refused(50007)
        return
    if place.type in (limits.FORUM, limits.CATEGORY):
        raise Refused(50008)
    world.need(place, "SEND_MESSAGES_IN_THREADS" if place.is_thread else "SEND_MESSAGES")
    if files:
        world.need(place, "ATTACH_FILES")
    if embeds:
        world.need(place, "EMBED_LINKS")
    moderator = permissions.has(world.may(world.bot_id, place), "MANAGE_THREADS")
    if place.is_thread and place.locked and not moderator:
        raise Refused(160005)


def unarchive(world: World, place: Channel) -> None:
    """Writing into an archived thread opens it."""
    if place.archived:
        place.archived, place.archived_at = False, world.now()
        world.dispatch("THREAD_UPDATE", place.public(me=world.bot_id), guild=place.guild, channel=place)


# ---- files


def attach(world: World, place: Channel, body: Json, files: Files) -> list[Json]:
    """Keep the uploads; the attachments in the order of the payload."""
    if len(files) > limits.FILES:
        raise Refused(50035, errors={"files": {"_errors": [{"code": "BASE_TYPE_MAX_LENGTH"}]}})
    described = {str(entry["id"]): entry for entry in body.get("attachments") or []}
    made = []
    for index, upload in sorted(files.items()):
        if len(upload.content) > limits.FILE:
            raise Refused(40005)
        entry = described.get(str(index), {})
        media_type = "" if upload.media_type == "application/octet-stream" else upload.media_type
        shown = world.upload(place.id, entry.get("filename") or upload.name, upload.content, media_type)
        if entry.get("description"):
            shown["description"] = entry["description"]
        made.append(shown)
    return made


def resolve(report: Report, components: list[Json], attachments: list[Json]) -> list[Json]:
    """Components as they are stored: numbered, `attachment://` replaced. Raises Refused."""
    urls = {entry["filename"]: entry for entry in attachments}
    for name in sorted(report.attachments - urls.keys()):
        words = f"The referenced attachment {name} was not found"
        report.error("UNFURLED_MEDIA_ITEM_REFERENCED_ATTACHMENT_NOT_FOUND", words, ("components",))
    report.settle()
    stored = copy.deepcopy(components)
    numbers = itertools.count(1)
    for component in walk(stored):
        component.setdefault("id", next(numbers))
        media: list[Any] = [component.get("file"), component.get("media")]
        media += [item.get("media") for item in component.get("items") or []]
        for entry in media:
            if entry and entry["url"].startswith("attachment://"):
                attachment = urls[entry["url"].removeprefix("attachment://")]
                entry["url"] = entry["proxy_url"] = attachment["url"]
                entry["attachment_id"] = attachment["id"]
        if component["type"] == 13:
            size = next((a["size"] for a in attachments if a["url"] == component["file"]["url"]), 0)
            component.setdefault("size", size)
    return stored


# ---- new messages


def compose(
    world: World,
    place: Channel,
    body: Json,
    files: Files,
    *,
    ephemeral: bool = False,
    at: tuple[str, ...] = (),
) -> tuple[Json, Report]:
    """A message of our bot from a payload, not yet stored. Raises Refused."""
    report = check_message(body, at=at)
    check_mentions(body.get("allowed_mentions"))
    attachments = attach(world, place, body, files)
    flags = (body.get("flags") or 0) & limits.SENDABLE_FLAGS & ~limits.EPHEMERAL
    flags |= limits.EPHEMERAL if ephemeral else 0
    message = world.message(place, world.bot_id, (body.get("content") or "").strip(), flags=flags)
    message["attachments"] = attachments
    message["embeds"] = [{"type": "rich", **embed} for embed in body.get("embeds") or []]
    message["tts"] = bool(body.get("tts"))
    message["components"] = resolve(report, body.get("components") or [], attachments)
    if body.get("nonce") is not None:
        message["nonce"] = body["nonce"]
    _refuse_empty(message, body)
    if place.type != limits.DM:
        message["application_id"] = world.app_id
    return message, report


def _refuse_empty(message: Json, body: Json) -> None:
    if message["flags"] & limits.V2:
        something = bool(message["components"])
    else:
        something = any(message[part] for part in ("content", "embeds", "attachments"))
    if not something and not body.get("sticker_ids"):
        raise Refused(50006)


def refer(world: World, place: Channel, message: Json, reference: Json | None) -> str:
    """Make it a reply. Returns whom it answers, "" for nobody. Raises Refused."""
    if not reference:
        return ""
    if not permissions.has(world.may(world.bot_id, place), "READ_MESSAGE_HISTORY"):
        raise Refused(160002)
    original = place.messages.get(str(reference["message_id"]))
    if original is None:
        if reference.get("fail_if_not_exists") is False:
            return ""
        words = [{"code": "REPLIES_UNKNOWN_MESSAGE", "message": "Unknown message"}]
        raise Refused(50035, errors={"message_reference": {"_errors": words}})
    message["type"] = 19
    where: Json = {"type": 0, "channel_id": place.id, "message_id": original["id"]}
    message["message_reference"] = where | ({"guild_id": place.guild} if place.guild else {})
    message["referenced_message"] = copy.deepcopy(original)
    return str(original["author"]["id"])


def notify(world: World, place: Channel, message: Json, allowed: Json | None, replied: str = "") -> None:
    """Set whom the message mentions, and note who is notified by that."""
    texts = [message["content"]] + [c["content"] for c in walk(message["components"]) if c["type"] == 10]
    reached = paged(mentioned("\n".join(texts)), allowed, replied)
    message["mentions"] = [world.users[who].public() for who in reached if who in world.users]
    message["mention_roles"] = [who[1:] for who in reached if who.startswith("&")]
    message["mention_everyone"] = bool({"everyone", "here"} & set(reached))


def pages(message: Json) -> list[str]:
    """Whom a message notifies, of those that `notify` set."""
    everyone = ["everyone"] if message["mention_everyone"] else []
    return [u["id"] for u in message["mentions"]] + [f"&{r}" for r in message["mention_roles"]] + everyone


def unfurl(world: World, place: Channel, message: Json) -> bool:
    """Previews of links, as Discord adds them a moment later. Whether there are any."""
    if message["flags"] & (limits.SUPPRESS_EMBEDS | limits.V2) or message["embeds"]:
        return False
    author = str(message["author"]["id"])
    if not permissions.has(world.may(author, place), "EMBED_LINKS"):
        return False
    links = list(dict.fromkeys(LINK.findall(message["content"])))[:5]
    message["embeds"] = [{"type": "link", "url": link, "title": "A preview"} for link in links]
    return bool(links)


def post(world: World, place: Channel, body: Json, files: Files) -> tuple[Json, Report]:
    """POST of a message into a channel: everything that Discord does about it. Raises Refused."""
    check_sendable(
        world, place, files=bool(files), embeds=bool(isinstance(body, dict) and body.get("embeds"))
    )
    message, report = compose(world, place, body, files)
    if (body.get("flags") or 0) & limits.EPHEMERAL:
        world.failures.append(f"what was meant for one person's eyes everybody in {place.id} can read")
    twin = _twin(world, place, body)
    if twin is not None:
        return twin, report
    replied = refer(world, place, message, body.get("message_reference"))
    notify(world, place, message, body.get("allowed_mentions"), replied)
    unarchive(world, place)
    publish(world, place, message)
    if body.get("nonce") is not None:
        world.nonces[place.id, str(body["nonce"])] = (message["id"], world.now())
    return message, report


def publish(world: World, place: Channel, message: Json) -> None:
    """Announce a message of our bot, note its pages, and unfurl its links."""
    announce(world, place, message)
    world.note_page(message, pages(message))
    if unfurl(world, place, message):
        update(world, place, message)


def _twin(world: World, place: Channel, body: Json) -> Json | None:
    """With enforce_nonce: the message that was sent with the same nonce a moment ago."""
    id, sent = world.nonces.get((place.id, str(body.get("nonce"))), ("", 0.0))
    if not body.get("enforce_nonce") or world.now() - sent > limits.NONCE_LIFE:
        return None
    return place.messages.get(id)


# ---- edits


def rewrite(world: World, place: Channel, message: Json, body: Json, files: Files) -> Report:
    """Change a message of our bot. Raises Refused, and then nothing has changed."""
    was_v2 = bool(message["flags"] & limits.V2)
    report = check_message(body, v2=was_v2, created=False)
    check_mentions(body.get("allowed_mentions"))
    changed = copy.deepcopy(message)
    if "flags" in body:
        movable = limits.SUPPRESS_EMBEDS | limits.V2
        wanted = (body["flags"] or 0) & movable
        changed["flags"] = changed["flags"] & ~limits.SUPPRESS_EMBEDS | wanted
    if "content" in body:
        changed["content"] = (body["content"] or "").strip()
    if "embeds" in body:
        changed["embeds"] = [{"type": "rich", **embed} for embed in body["embeds"] or []]
    if "attachments" in body:
        kept = {str(entry["id"]) for entry in body["attachments"] or []}
        changed["attachments"] = [entry for entry in changed["attachments"] if entry["id"] in kept]
    changed["attachments"] += attach(world, place, body, files)
    if changed["flags"] & limits.SUPPRESS_EMBEDS or "content" in body:
        changed["embeds"] = [e for e in changed["embeds"] if e["type"] != "link"]
    if "components" in body:
        changed["components"] = resolve(report, body["components"] or [], changed["attachments"])
    if changed["flags"] & limits.V2 and not was_v2 and (changed["content"] or changed["embeds"]):
        raise Refused(50035, errors={"flags": {"_errors": [{"code": "COMPONENTS_V2_BESIDE_CONTENT"}]}})
    _refuse_empty(changed, {})
    # An edit notifies nobody; what the message mentions is reckoned anew.
    notify(world, place, changed, body.get("allowed_mentions"))
    unfurl(world, place, changed)
    changed["edited_timestamp"] = iso(world.now())
    message.clear()
    message.update(changed)
    world.changed()
    return report


def check_old(world: World, place: Channel, message: Json) -> None:
    """Edits of messages that are more than an hour old are counted. Raises Refused."""
    now = world.now()
    if now - world.sent_at(message["id"]) < limits.OLD_MESSAGE:
        return
    recent = [at for at in world.old_edits[place.id] if at > now - limits.OLD_MESSAGE]
    if len(recent) >= limits.OLD_EDITS:
        raise too_many(recent[0] + limits.OLD_MESSAGE - now, code=30046)
    world.old_edits[place.id] = [*recent, now]
