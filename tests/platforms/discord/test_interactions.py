"""Interactions as Discord keeps them: one acknowledgement, three seconds, fifteen minutes."""

from __future__ import annotations

import asyncio
from typing import Any

import discord
import pytest
from discord import app_commands

from tests.platforms.discord import ids, limits
from tests.platforms.discord.bots import Bot, Raw
from tests.platforms.discord.interactions import NO_RESPONSE, Interaction
from tests.platforms.discord.limits import V2, Json
from tests.platforms.discord.server import DiscordServer

PRESSED = {"type": 2, "style": 1, "label": "Go", "custom_id": "v1:p:go"}
PICKED = {
    "type": 3,
    "custom_id": "v1:p:many",
    "min_values": 0,
    "max_values": 2,
    "options": [{"label": "Red", "value": "r"}, {"label": "Blue", "value": "b", "default": True}],
}
CARD: Json = {
    "flags": V2,
    "components": [
        {
            "type": 17,
            "components": [
                {"type": 10, "content": "Approve?"},
                {"type": 1, "components": [PRESSED]},
                {"type": 1, "components": [PICKED]},
            ],
        }
    ],
}
MODAL: Json = {
    "title": "Why?",
    "custom_id": "v1:p:why",
    "components": [
        {
            "type": 18,
            "label": "Reason",
            "component": {"type": 4, "custom_id": "reason", "style": 2, "max_length": 10, "value": "old"},
        },
        {
            "type": 18,
            "label": "Colour",
            "component": {"type": 21, "custom_id": "colour", "options": PICKED["options"]},
        },
    ],
}


async def a_card(raw: Raw, channel: str = ids.GENERAL) -> str:
    """A card in a channel; its id."""
    _, message = await raw("POST", f"/channels/{channel}/messages", CARD)
    return str(message["id"])


async def a_press(raw: Raw, user: str = ids.ADA) -> Interaction:
    """A press of its button."""
    return raw.server.press(user, ids.GENERAL, await a_card(raw), "Go")


async def answer(raw: Raw, interaction: Interaction, kind: int, data: Any = None) -> tuple[int, Any]:
    """The first response."""
    body = {"type": kind} | ({"data": data} if data is not None else {})
    return await raw("POST", f"/interactions/{interaction.id}/{interaction.token}/callback", body)


def original(interaction: Interaction, message: str = "@original") -> str:
    return f"/webhooks/{ids.APP}/{interaction.token}/messages/{message}"


async def test_a_press_says_who_pressed_what_and_where(bot: Bot, raw: Raw) -> None:
    press = await a_press(raw)
    got = await bot.next()
    assert (str(got.id), got.type) == (press.id, discord.InteractionType.component)
    assert (got.user.id, got.channel_id, got.guild_id) == (int(ids.ADA), int(ids.GENERAL), int(ids.G1))
    assert got.data is not None
    assert got.data.get("custom_id") == "v1:p:go"
    assert got.message is not None
    assert got.permissions.administrator
    raw.server.check()


async def test_a_second_acknowledgement_is_refused(raw: Raw) -> None:
    press = await a_press(raw)
    assert (await answer(raw, press, 6))[0] == 204
    status, refusal = await answer(raw, press, 6)
    assert (status, refusal["code"]) == (400, 40060)
    assert press.response == 6


async def test_after_three_seconds_the_person_is_told_and_the_interaction_is_unknown(raw: Raw) -> None:
    press = await a_press(raw)
    raw.server.advance(limits.FIRST_RESPONSE)
    assert press.failed == NO_RESPONSE
    assert raw.server.troubles == [(ids.ADA, NO_RESPONSE)]
    status, refusal = await answer(raw, press, 6)
    assert (status, refusal["code"]) == (404, 10062)


async def test_an_acknowledged_interaction_never_fails_later(raw: Raw) -> None:
    press = await a_press(raw)
    await answer(raw, press, 6)
    raw.server.advance(60)
    assert press.failed == ""


@pytest.mark.parametrize("kind", [1, 8, 12])
async def test_a_response_that_does_not_fit_is_refused(raw: Raw, kind: int) -> None:
    press = await a_press(raw)
    status, refusal = await answer(raw, press, kind, {"choices": []})
    assert (status, refusal["code"]) == (400, 50035)
    assert not press.acknowledged


async def test_the_token_is_good_for_fifteen_minutes_and_only_after_the_first_response(raw: Raw) -> None:
    press = await a_press(raw)
    follow = f"/webhooks/{ids.APP}/{press.token}"
    words = {"content": "x", "flags": limits.EPHEMERAL}
    assert await raw.refused("POST", follow, words) == (404, 10015)
    await answer(raw, press, 6)
    assert (await raw("POST", follow, words))[0] == 200
    assert press.texts == ["x"]
    raw.server.advance(limits.TOKEN_LIFE + 1)
    assert await raw.refused("POST", follow, words) == (401, 50027)
    assert await raw.refused("PATCH", original(press), {"content": "y"}) == (401, 50027)
    bot_path = f"/channels/{ids.GENERAL}/messages/{press.original['id']}" if press.original else ""
    assert (await raw("PATCH", bot_path, {"components": [{"type": 10, "content": "Decided"}]}))[0] == 200


async def test_an_ephemeral_message_is_seen_by_one_person_and_reached_by_the_token_alone(raw: Raw) -> None:
    press = await a_press(raw)
    data = {"content": f"only you <@{ids.BOB}>", "flags": limits.EPHEMERAL}
    await answer(raw, press, 4, data)
    assert press.original is not None
    assert raw.server.private_texts(ids.ADA) == [data["content"]]
    assert raw.server.paged() == []
    assert len(raw.server.messages(ids.GENERAL)) == 1
    path = f"/channels/{ids.GENERAL}/messages/{press.original['id']}"
    assert await raw.refused("PATCH", path, {"content": "x"}) == (404, 10008)
    await raw("PATCH", original(press), {"content": "changed"})
    assert press.texts == ["changed"]
    assert (await raw("DELETE", original(press)))[0] == 204
    assert raw.server.private_texts(ids.ADA) == []
    assert await raw.refused("GET", original(press)) == (404, 10008)


async def test_the_first_follow_up_fills_a_deferred_response(raw: Raw) -> None:
    press = await a_press(raw)
    await answer(raw, press, 5, {"flags": limits.EPHEMERAL})
    assert press.texts == [""]
    await raw("POST", f"/webhooks/{ids.APP}/{press.token}", {"content": "done"})
    await raw("POST", f"/webhooks/{ids.APP}/{press.token}", {"content": "for all"})
    assert press.texts == ["done"]
    assert [m["content"] for m in raw.server.from_bot(ids.GENERAL)][1:] == ["for all"]


async def test_a_deferred_response_that_was_deleted_is_not_filled(raw: Raw) -> None:
    press = await a_press(raw)
    await answer(raw, press, 5)
    assert (await raw("DELETE", original(press)))[0] == 204
    assert await raw.refused("PATCH", original(press), {"content": "x"}) == (404, 10008)
    _, later = await raw("POST", f"/webhooks/{ids.APP}/{press.token}", {"content": "anew"})
    assert [m["id"] for m in raw.server.from_bot(ids.GENERAL)][1:] == [later["id"]]


async def test_the_bot_token_edits_a_public_response_long_after_the_token_is_dead(raw: Raw) -> None:
    press = await a_press(raw)
    await answer(raw, press, 5)
    assert press.original is not None
    await raw("PATCH", original(press), {"content": f"started <@{ids.ADA}>"})
    assert press.original["edited_timestamp"] is None
    assert raw.server.paged() == [ids.ADA]
    raw.server.advance(22 * 60)
    path = f"/channels/{ids.GENERAL}/messages/{press.original['id']}"
    assert (await raw("PATCH", path, {"content": "done"}))[0] == 200
    assert press.original["content"] == "done"


async def test_the_pressed_message_can_be_updated_in_the_response(raw: Raw) -> None:
    press = await a_press(raw)
    status, _ = await answer(raw, press, 7, {"components": [{"type": 10, "content": "Approved"}]})
    assert status == 204
    [card] = raw.server.messages(ids.GENERAL)
    assert raw.server.shown(ids.GENERAL, card["id"]) == "Approved"
    assert raw.server.labels(ids.GENERAL, card["id"]) == []


async def test_controls_are_found_as_they_are_now(raw: Raw) -> None:
    server, card = raw.server, await a_card(raw)
    assert server.labels(ids.GENERAL, card) == ["Go", "Red", "Blue"]
    picked = server.choose(ids.ADA, ids.GENERAL, card, ["Red", "Blue"])
    assert picked.payload["data"]["values"] == ["r", "b"]
    none = server.choose(ids.ADA, ids.GENERAL, card, [], custom_id="v1:p:many")
    assert none.payload["data"]["values"] == []
    with pytest.raises(AssertionError, match="no button"):
        server.press(ids.ADA, ids.GENERAL, card, "Deny")
    await raw(
        "PATCH", f"/channels/{ids.GENERAL}/messages/{card}", {"components": [{"type": 10, "content": "x"}]}
    )
    with pytest.raises(AssertionError, match="no button"):
        server.press(ids.ADA, ids.GENERAL, card, "Go")
    assert server.forge(ids.ADA, ids.GENERAL, card, "v1:p:go").payload["data"]["custom_id"] == "v1:p:go"


# ---- forms


async def test_a_form_is_filled_in_and_sent_once(bot: Bot, raw: Raw) -> None:
    press = await a_press(raw)
    assert (await answer(raw, press, 9, MODAL))[0] == 204
    assert raw.server.open_modal(ids.ADA) is press
    for values in ({"Reason": "far too long"}, {"Reason": ""}, {"Colour": "Green"}, {"Name": "x"}):
        with pytest.raises(AssertionError):
            raw.server.submit(press, {"Colour": "Red"} | values)
    sent = raw.server.submit(ids.ADA, {"colour": "Blue"})
    assert raw.server.open_modal(ids.ADA) is None
    await bot.next()
    got = await bot.next()
    assert got.type is discord.InteractionType.modal_submit
    inner = [entry["component"] for entry in sent.payload["data"]["components"]]
    assert [entry["value"] for entry in inner] == ["old", "b"]
    assert sent.payload["message"]["id"] == press.payload["message"]["id"]
    status, refusal = await answer(raw, sent, 9, MODAL)
    assert (status, refusal["code"]) == (400, 50035)
    await answer(raw, sent, 6)
    with pytest.raises(AssertionError):
        raw.server.submit(press, {})


@pytest.mark.parametrize(
    ("change", "where", "code"),
    [
        ({"title": "t" * 46}, "data.title", "BASE_TYPE_BAD_LENGTH"),
        ({"components": []}, "data.components", "BASE_TYPE_BAD_LENGTH"),
        ({"components": MODAL["components"] * 3}, "data.components", "BASE_TYPE_BAD_LENGTH"),
        (
            {"components": [MODAL["components"][0], MODAL["components"][0]]},
            "data.components.1.component.custom_id",
            "COMPONENT_CUSTOM_ID_DUPLICATED",
        ),
        (
            {"components": [MODAL["components"][0] | {"label": "l" * 46}]},
            "data.components.0.label",
            "BASE_TYPE_BAD_LENGTH",
        ),
        (
            {"components": [{"type": 1, "components": [PRESSED]}]},
            "data.components.0.components.0.type",
            "UNION_TYPE_CHOICES",
        ),
    ],
)
async def test_a_form_that_breaks_a_rule_is_refused(raw: Raw, change: Json, where: str, code: str) -> None:
    press = await a_press(raw)
    status, refusal = await answer(raw, press, 9, MODAL | change)
    assert (status, refusal["code"]) == (400, 50035)
    node = refusal["errors"]
    for step in where.split("."):
        node = node[step]
    assert node["_errors"][0]["code"] == code
    assert press.modal is None


# ---- commands


async def with_commands(bot: Bot) -> None:
    """Registers /ask, with an autocompleted agent, and a message command."""

    @bot.tree.command(name="ask", description="Ask the agent")
    async def ask(
        interaction: discord.Interaction,
        prompt: str,
        file: discord.Attachment | None = None,
        agent: str = "",
    ) -> None:
        await interaction.response.defer(thinking=True)
        content = (await file.read()).decode() if file else ""
        await interaction.followup.send(f"{prompt} {content} {agent}".strip())

    @ask.autocomplete("agent")
    async def agents(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=f"{typed}{n}", value=f"{typed}{n}") for n in range(2)]

    @bot.tree.context_menu(name="Ask about this")
    async def about(interaction: discord.Interaction, message: discord.Message) -> None:
        await interaction.response.send_message(f"about {message.content}", ephemeral=True)

    await bot.tree.sync()


async def test_commands_are_those_that_were_registered(bot: Bot, server: DiscordServer) -> None:
    with pytest.raises(AssertionError, match="no command"):
        server.slash(ids.ADA, ids.GENERAL, "ask", prompt="x")
    await with_commands(bot)
    for options in ({}, {"prompt": 5}, {"prompt": "x", "other": "y"}):
        with pytest.raises(AssertionError):
            server.slash(ids.ADA, ids.GENERAL, "ask", **options)
    asked = server.slash(ids.ADA, ids.GENERAL, "ask", prompt="hi", file=("a.txt", b"file"))
    await asked.taken()
    [message] = await server.wait_messages(ids.GENERAL, 1)
    assert message["content"] == "hi file"
    assert asked.original is message
    assert (message["type"], message["interaction_metadata"]["user"]["id"]) == (20, ids.ADA)
    server.check()


async def test_a_command_in_a_direct_conversation_has_a_user_and_no_guild(
    bot: Bot, server: DiscordServer
) -> None:
    await with_commands(bot)
    asked = server.slash(ids.BOB, server.dm(ids.BOB).id, "ask", prompt="hi")
    await asked.taken()
    assert "guild_id" not in asked.payload
    assert asked.payload["user"]["id"] == ids.BOB
    await server.wait_messages(ids.BOB, 1)


async def test_autocomplete_and_message_commands_are_answered(bot: Bot, server: DiscordServer) -> None:
    await with_commands(bot)
    typed = server.autocomplete(ids.ADA, ids.GENERAL, "ask", "agent", "sup")
    await typed.taken()
    assert [choice["name"] for choice in typed.choices or []] == ["sup0", "sup1"]
    said = server.say(ids.BOB, ids.GENERAL, "look")
    asked = server.message_command(ids.ADA, ids.GENERAL, said["id"], "Ask about this")
    assert await asked.told() == ["about look"]


# ---- when our bot is away


async def test_a_click_while_the_gateway_is_down_fails_for_the_person_and_the_card_lives_on(
    bot: Bot, raw: Raw
) -> None:
    server, card = raw.server, await a_card(raw)
    server.gateway_open = False
    server.drop()
    await server.wait_for(lambda: not server.live())
    press = server.press(ids.ADA, ids.GENERAL, card, "Go")
    server.advance(3)
    assert press.failed == NO_RESPONSE
    server.gateway_open = True
    await server.wait_ready()
    again = server.press(ids.ADA, ids.GENERAL, card, "Go")
    async with asyncio.timeout(10):
        while str((await bot.next()).id) != again.id:
            pass
    assert (await answer(raw, again, 6))[0] == 204
