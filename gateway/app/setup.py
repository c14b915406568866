"""What has to be known or pasted when a platform is set up."""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path

from gateway.config import load_config
from gateway.errors import ConfigError


def slack_manifest(transport: str, url: str, name: str) -> str:
    """The app manifest as JSON. Raises ConfigError."""
    from channels.slack.manifest import text

    if transport not in ("socket", "http"):
        raise ConfigError("--transport", f"is {transport!r}", "socket or http")
    if transport == "socket" and url:
        raise ConfigError("--url", "is for http only", "leave it out, Socket Mode needs no address")
    try:
        return text(transport, name=name, url=url)  # type: ignore[arg-type]
    except ValueError as error:
        raise ConfigError("--url" if "https" in str(error) else "--name", str(error)) from error


def discord_invite(config: Path | None, application: str) -> str:
    """The invite address. Raises ConfigError."""
    from channels.discord.invite import url

    if not application:
        path = config if config is not None else Path("config.toml")
        if not path.exists():
            raise ConfigError(
                "--application", "is missing", "the application's id, or --config FILE with its token"
            )
        section = load_config(path, env=os.environ).channels.discord
        if section is None:
            raise ConfigError("channels.discord", "is missing", "add it, or write --application ID")
        application = _application(section.token)
    if not (application.isascii() and application.isdecimal()):
        raise ConfigError(
            "--application", f"is {application!r}, not an id", "a number, on the application's page"
        )
    return url(application)


def _application(token: str) -> str:
    """The first part of a bot's token is its id. Raises ConfigError."""
    first = token.partition(".")[0]
    try:
        return base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise ConfigError(
            "channels.discord.token", "is not a bot's token", "copy it from the page Bot"
        ) from None
