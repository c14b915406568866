"""The server refuses what Discord refuses; otherwise the channel's tests would prove nothing."""

from __future__ import annotations

from typing import Any

import discord
import pytest

from tests.platforms.discord import ids, limits
from tests.platforms.discord.bots import Bot, Raw
from tests.platforms.discord.limits import V2, Json
from tests.platforms.discord.server import DiscordServer

MESSAGES = f"/channels/{ids.GENERAL}/messages"


def button(custom_id: str, **more: Any) -> Json:
    return {"type": 2, "style": 1, "label": "Go", "custom_id": custom_id} | more


def row(*children: Json) -> Json:
    return {"type": 1, "components": list(children)}


def option(number: int, **more: Any) -> Json:
    return {"label": f"o{number}", "value": str(number)} | more


def select(count: int, **more: Any) -> Json:
    return {"type": 3, "custom_id": "s", "options": [option(n) for n in range(count)]} | more


def display(text: str) -> Json:
    return {"type": 10, "content": text}


@pytest.mark.parametrize(
    ("body", "where", "code"),
    [
        ({"content": "x" * 2001}, "content", "BASE_TYPE_BAD_LENGTH"),
        ({"content": 5}, "content", "BASE_TYPE_STRING"),
        ({"content": "x", "nonce": "n" * 26}, "nonce", "BASE_TYPE_MAX_LENGTH"),
        ({"content": "x", "flags": 1 << 3}, "flags", "MESSAGE_FLAGS_INVALID"),
        ({"content": "x", "embeds": [{"title": "t"}] * 11}, "embeds", "BASE_TYPE_BAD_LENGTH"),
        ({"embeds": [{"description": "x" * 4097}]}, "embeds.0.description", "BASE_TYPE_BAD_LENGTH"),
        ({"embeds": [{"description": "x" * 3100}] * 2}, "embeds", "MAX_EMBED_SIZE_EXCEEDED"),
        ({"content": "x", "components": [row()]}, "components.0.components", "BASE_TYPE_BAD_LENGTH"),
        ({"content": "x", "components": [display("t")]}, "components.0.type", "UNION_TYPE_CHOICES"),
        ({"content": "x", "components": [row(button("a"))] * 6}, "components", "BASE_TYPE_BAD_LENGTH"),
        (
            {"content": "x", "components": [row(button("a"), button("a"))]},
            "components.0.components.1.custom_id",
            "COMPONENT_CUSTOM_ID_DUPLICATED",
        ),
        (
            {"content": "x", "components": [row(button("c" * 101))]},
            "components.0.components.0.custom_id",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            {"content": "x", "components": [row(button("a", label="l" * 81))]},
            "components.0.components.0.label",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            {"content": "x", "components": [row(button("a", label=None))]},
            "components.0.components.0",
            "BUTTON_COMPONENT_MISSING_LABEL",
        ),
        (
            {"content": "x", "components": [row(button("a"), select(2))]},
            "components.0.components",
            "COMPONENT_LAYOUT_WIDTH_EXCEEDED",
        ),
        (
            {"content": "x", "components": [row(select(26))]},
            "components.0.components.0.options",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            {"content": "x", "components": [row(select(1, options=[option(1), option(1)]))]},
            "components.0.components.0.options.1.value",
            "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED",
        ),
        (
            {"content": "x", "components": [row(select(2, max_values=3))]},
            "components.0.components.0.max_values",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            {"flags": V2, "content": "x", "components": [display("t")]},
            "content",
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
        ),
        (
            {"flags": V2, "components": [display("t" * 3000), display("t" * 1001)]},
            "components",
            "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED",
        ),
        (
            {"flags": V2, "components": [{"type": 17, "components": [display("t")] * 21}] * 2},
            "components",
            "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED",
        ),
        (
            {"flags": V2, "components": [{"type": 17, "components": [{"type": 17, "components": []}]}]},
            "components.0.components.0.type",
            "UNION_TYPE_CHOICES",
        ),
        (
            {"flags": V2, "components": [{"type": 13, "file": {"url": "attachment://no.txt"}}]},
            "components",
            "UNFURLED_MEDIA_ITEM_REFERENCED_ATTACHMENT_NOT_FOUND",
        ),
        (
            {"content": "x", "message_reference": {"message_id": "300000000000000099"}},
            "message_reference",
            "REPLIES_UNKNOWN_MESSAGE",
        ),
        (
            {"content": "x", "allowed_mentions": {"parse": ["users"], "users": [ids.ADA]}},
            "allowed_mentions",
            "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
        ),
    ],
)
async def test_a_message_that_breaks_a_rule_is_refused_with_the_place_of_the_fault(
    raw: Raw, body: Json, where: str, code: str
) -> None:
    assert (await raw.wrong("POST", MESSAGES, body)).get(where) == code
    assert raw.server.messages(ids.GENERAL) == []


@pytest.mark.parametrize(
    "body",
    [
        {"content": "x" * 2000, "nonce": "n" * 25},
        {"embeds": [{"title": "t", "description": "x" * 4096}]},
        {"content": "x", "components": [row(*[button(f"{r}{n}") for n in range(5)]) for r in range(5)]},
        {"content": "x", "components": [row(select(25, min_values=0, max_values=25))]},
        {
            "flags": V2,
            "components": [
                {
                    "type": 17,
                    "accent_color": 0xFFFFFF,
                    "components": [
                        display("t" * 3999),
                        {"type": 14, "divider": True, "spacing": 2},
                        {"type": 9, "components": [display("a")], "accessory": button("b")},
                        row(
                            button("c", style=4), {"type": 2, "style": 5, "label": "L", "url": "https://x.io"}
                        ),
                    ],
                }
            ],
        },
    ],
)
async def test_a_message_at_the_limits_is_taken(raw: Raw, body: Json) -> None:
    status, message = await raw("POST", MESSAGES, body)
    assert status == 200
    assert raw.server.messages(ids.GENERAL) == [message]
    raw.server.check()


@pytest.mark.parametrize(
    "body", [{}, {"content": ""}, {"content": " \n "}, {"components": [row(button("a"))]}, {"flags": V2}]
)
async def test_an_empty_message_is_refused(raw: Raw, body: Json) -> None:
    assert await raw.refused("POST", MESSAGES, body) == (400, 50006)


async def test_unknown_routes_fields_and_parameters_fail_the_test(raw: Raw) -> None:
    await raw("GET", "/channels/5/nothing")
    await raw("POST", MESSAGES, {"content": "x", "colour": 1})
    await raw("GET", f"{MESSAGES}?sort=up")
    with pytest.raises(AssertionError) as caught:
        raw.server.check()
    for words in ("unknown route GET /api/v10/channels/5/nothing", "no field colour", "no parameter sort"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/channels/200000000000000099", 404, 10003),
        ("GET", f"{MESSAGES}/200000000000000099", 404, 10008),
        ("GET", "/guilds/100000000000000099", 404, 10004),
        ("GET", "/users/300000000000000099", 404, 10013),
        ("GET", f"/guilds/{ids.G1}/members/{ids.XENA}", 404, 10007),
        ("PUT", "/applications/1/commands", 403, 20012),
    ],
)
async def test_what_is_not_there_has_its_own_code(
    raw: Raw, method: str, path: str, status: int, code: int
) -> None:
    assert await raw.refused(method, path, [] if method == "PUT" else None) == (status, code)


async def test_a_wrong_token_is_refused(server: DiscordServer, raw: Raw) -> None:
    assert await raw.refused("GET", "/users/@me", token="wrong") == (401, 0)
    async with Bot() as bot:
        with pytest.raises(discord.LoginFailure):
            await bot.login("wrong")
    assert server.calls[-1].status == 401


# ---- permissions


async def test_the_bot_may_do_only_what_its_permissions_allow(raw: Raw) -> None:
    server = raw.server
    words = {"content": "x"}
    server.deny_bot(ids.GENERAL, "SEND_MESSAGES")
    assert await raw.refused("POST", MESSAGES, words) == (403, 50013)
    server.deny_bot(ids.GENERAL, "VIEW_CHANNEL")
    assert await raw.refused("POST", MESSAGES, words) == (403, 50001)
    server.deny_bot(ids.GENERAL, "ATTACH_FILES EMBED_LINKS")
    assert await raw.refused("POST", MESSAGES, words, files={"a.txt": b"a"}) == (403, 50013)
    assert await raw.refused("POST", MESSAGES, {"embeds": [{"title": "t"}]}) == (403, 50013)
    server.deny_bot(ids.GENERAL, "READ_MESSAGE_HISTORY")
    said = server.say(ids.ADA, ids.GENERAL, "old")
    assert await raw("GET", MESSAGES) == (200, [])
    reply = words | {"message_reference": {"message_id": said["id"]}}
    assert await raw.refused("POST", MESSAGES, reply) == (400, 160002)
    server.deny_bot(ids.GENERAL, "")
    assert (await raw("POST", MESSAGES, reply))[0] == 200
    assert await raw.refused("POST", f"/channels/{ids.READONLY}/messages", words) == (403, 50013)
    assert (await raw("POST", f"/channels/{ids.PRIVATE}/messages", words))[0] == 200
    assert await raw.refused("POST", f"/channels/{ids.FORUM}/messages", words) == (400, 50008)


async def test_only_its_own_messages_can_be_edited(raw: Raw) -> None:
    said = raw.server.say(ids.ADA, ids.GENERAL, "mine")
    assert await raw.refused("PATCH", f"{MESSAGES}/{said['id']}", {"content": "yours"}) == (403, 50005)
    assert await raw.refused("DELETE", f"{MESSAGES}/{said['id']}") == (403, 50013)


async def test_a_person_who_takes_no_messages_is_told_apart(raw: Raw) -> None:
    _, place = await raw("POST", "/users/@me/channels", {"recipient_id": ids.BOB})
    assert place["recipients"][0]["id"] == ids.BOB
    raw.server.block(ids.BOB)
    assert await raw.refused("POST", f"/channels/{place['id']}/messages", {"content": "x"}) == (403, 50007)


async def test_roles_and_overwrites_decide_what_a_member_may(server: DiscordServer) -> None:
    general, private = server.channels[ids.GENERAL], server.channels[ids.PRIVATE]
    assert server.may(ids.DAN, private) == 0
    assert server.may(ids.BOB, private) != 0
    assert server.may(ids.CLEO, private) == server.may(ids.ADA, private) == (1 << 53) - 1
    assert server.may(ids.XENA, general) == 0
    server.set_overwrite(ids.GENERAL, ids.DAN, deny="VIEW_CHANNEL")
    assert server.may(ids.DAN, general) == 0


# ---- who is notified


@pytest.mark.parametrize(
    ("allowed", "paged"),
    [
        (None, [ids.ADA, "everyone", f"&{ids.OPS}", ids.BOB]),
        ({"parse": []}, []),
        ({"parse": [], "replied_user": True}, [ids.BOB]),
        ({"parse": [], "users": [ids.ADA]}, [ids.ADA]),
        ({"parse": ["everyone"]}, ["everyone"]),
        ({"parse": [], "roles": [ids.OPS]}, [f"&{ids.OPS}"]),
        ({"users": [ids.DAN]}, []),
    ],
)
async def test_allowed_mentions_decide_who_is_paged(raw: Raw, allowed: Json | None, paged: list[str]) -> None:
    said = raw.server.say(ids.BOB, ids.GENERAL, "q")
    body: Json = {"content": f"<@{ids.ADA}> @everyone <@&{ids.OPS}>"}
    body["message_reference"] = {"message_id": said["id"]}
    await raw("POST", MESSAGES, body | ({"allowed_mentions": allowed} if allowed is not None else {}))
    assert sorted(raw.server.paged()) == sorted(paged)


async def test_text_displays_page_too_and_silent_messages_do_not(raw: Raw) -> None:
    await raw("POST", MESSAGES, {"flags": V2, "components": [display(f"<@{ids.ADA}>")]})
    await raw("POST", MESSAGES, {"flags": limits.SILENT, "content": f"<@{ids.BOB}>"})
    assert raw.server.paged(ids.GENERAL) == [ids.ADA]


async def test_links_are_unfurled_unless_that_is_suppressed(raw: Raw) -> None:
    _, plain = await raw("POST", MESSAGES, {"content": "see https://example.com/a"})
    await raw("POST", MESSAGES, {"content": "see https://example.com/a", "flags": limits.SUPPRESS_EMBEDS})
    await raw("POST", MESSAGES, {"content": "see <https://example.com/a>"})
    assert raw.server.previews(ids.GENERAL) == [plain["id"]]


async def test_the_same_nonce_gives_the_same_message_when_that_is_enforced(raw: Raw) -> None:
    body = {"content": "x", "nonce": "n1", "enforce_nonce": True}
    _, first = await raw("POST", MESSAGES, body)
    _, second = await raw("POST", MESSAGES, body)
    _, third = await raw("POST", MESSAGES, body | {"enforce_nonce": False})
    assert first["id"] == second["id"] != third["id"]
    assert len(raw.server.messages(ids.GENERAL)) == 2


# ---- edits


async def test_an_edit_that_is_refused_changes_nothing(raw: Raw) -> None:
    _, message = await raw("POST", MESSAGES, {"flags": V2, "components": [display("first")]})
    path = f"{MESSAGES}/{message['id']}"
    assert await raw.wrong("PATCH", path, {"content": "x"}) == {
        "content": "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"
    }
    assert await raw.refused("PATCH", path, {"components": []}) == (400, 50006)
    assert raw.server.shown(ids.GENERAL, message["id"]) == "first"
    await raw("PATCH", path, {"components": [display("second"), row(button("b"))]})
    assert raw.server.shown(ids.GENERAL, message["id"]) == "second"
    assert raw.server.labels(ids.GENERAL, message["id"]) == ["Go"]


async def test_old_messages_can_be_edited_only_so_often(raw: Raw) -> None:
    _, message = await raw("POST", MESSAGES, {"content": "0"})
    raw.server.advance(3_601)
    path = f"{MESSAGES}/{message['id']}"
    for number in range(limits.OLD_EDITS):
        assert (await raw("PATCH", path, {"content": str(number)}))[0] == 200
    assert await raw.refused("PATCH", path, {"content": "more"}) == (429, 30046)
    raw.server.advance(3_600)
    assert (await raw("PATCH", path, {"content": "more"}))[0] == 200


async def test_files_are_kept_replaced_and_shown_only_where_a_component_shows_them(raw: Raw) -> None:
    server = raw.server
    body: Json = {"flags": V2, "components": [{"type": 13, "file": {"url": "attachment://a.txt"}}]}
    body["attachments"] = [{"id": 0, "filename": "a.txt"}]
    _, message = await raw("POST", MESSAGES, body, files={"a.txt": b"one"})
    assert server.attached(ids.GENERAL, message["id"]) == [("a.txt", b"one")]
    server.check()
    hidden = {"flags": V2, "components": [display("t")]}
    await raw("POST", MESSAGES, hidden, files={"b.txt": b"two"})
    with pytest.raises(AssertionError, match="no component shows"):
        server.check()
    _, plain = await raw("POST", MESSAGES, {"content": "x"}, files={"c.txt": b"three", "d.txt": b"four"})
    kept = {"attachments": [{"id": plain["attachments"][1]["id"]}]}
    await raw("PATCH", f"{MESSAGES}/{plain['id']}", kept)
    assert server.attached(ids.GENERAL, plain["id"]) == [("d.txt", b"four")]


async def test_a_file_can_be_fetched_for_a_day(raw: Raw) -> None:
    said = raw.server.say(ids.ADA, ids.GENERAL, files=[("a b.csv", b"1,2")])
    url = said["attachments"][0]["url"]
    async with raw.session.get(url) as answer:
        assert (answer.status, await answer.read()) == (200, b"1,2")
    async with raw.session.get(url.partition("?")[0]) as answer:
        assert answer.status == 404
    raw.server.advance(limits.ATTACHMENT_LIFE + 1)
    async with raw.session.get(url) as answer:
        assert answer.status == 404


async def test_history_is_listed_newest_first_in_pages(raw: Raw) -> None:
    said = [raw.server.say(ids.ADA, ids.GENERAL, str(number))["id"] for number in range(5)]

    async def page(query: str) -> list[str]:
        return [message["content"] for message in (await raw("GET", f"{MESSAGES}?{query}"))[1]]

    assert await page("limit=2") == ["4", "3"]
    assert await page(f"limit=2&before={said[3]}") == ["2", "1"]
    assert await page(f"limit=2&after={said[1]}") == ["3", "2"]
    assert set(await page(f"limit=3&around={said[2]}")) == {"1", "2", "3"}
    assert await raw.wrong("GET", f"{MESSAGES}?limit=101") == {"limit": "NUMBER_TYPE_MAX"}
