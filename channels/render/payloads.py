"""What each platform would be sent for a text: the part of the payload that rendering decides."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal, assert_never

from channels.render.discord import discord_messages
from channels.render.plain import plain_text
from channels.render.slack import slack_messages
from channels.render.telegram import telegram_messages

Platform = Literal["slack", "discord", "telegram", "plain"]


def payloads(platform: Platform, markdown: str) -> list[dict[str, Any]]:
    """One dict per message. telegram: text, entities; slack: text, blocks; discord: content;
    plain: text. A blank text gives none."""
    match platform:
        case "telegram":
            return [
                {
                    "text": message.text,
                    "entities": [
                        {name: value for name, value in asdict(entity).items() if value is not None}
                        for entity in message.entities
                    ],
                }
                for message in telegram_messages(markdown)
            ]
        case "slack":
            return [
                {"text": message.text, "blocks": list(message.blocks)} for message in slack_messages(markdown)
            ]
        case "discord":
            return [{"content": content} for content in discord_messages(markdown)]
        case "plain":
            text = plain_text(markdown)
            return [{"text": text}] if text.strip() else []
        case _:
            assert_never(platform)
