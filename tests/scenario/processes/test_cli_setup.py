"""What setting up a platform needs, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.scenario.processes.shell import threadgate

TOKEN = "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcDE.secretsecretsecretsecretsecretsecret"  # of 123456789012345678
MODEL = '[models.main]\nprovider = "scripted"\nscript = "s.json"\n[agents.a]\n'
DISCORD = f'{MODEL}[channels.discord]\ntoken = "{TOKEN}"\n'


async def test_the_manifest_of_slack_is_json_for_the_chosen_transport(tmp_path: Path) -> None:
    socket = json.loads((await threadgate(tmp_path, "slack", "manifest")).done())
    assert socket["settings"]["socket_mode_enabled"] is True
    url = "https://bot.example.com/slack/events"
    http = await threadgate(
        tmp_path, "slack", "manifest", "--transport", "http", "--url", url, "--name", "Ops"
    )
    manifest = json.loads(http.done())
    assert manifest["settings"]["socket_mode_enabled"] is False
    assert manifest["settings"]["event_subscriptions"]["request_url"] == url
    assert manifest["display_information"]["name"] == "Ops"


@pytest.mark.parametrize(
    "wrong, named",
    [
        (("--transport", "carrier"), "--transport"),
        (("--transport", "http"), "--url"),
        (("--transport", "http", "--url", "http://bot.example.com/"), "--url"),
        (("--url", "https://bot.example.com/"), "--url"),
        (("--name", "x" * 100), "--name"),
    ],
)
async def test_a_manifest_that_slack_would_refuse_is_not_printed(
    wrong: tuple[str, ...], named: str, tmp_path: Path
) -> None:
    (await threadgate(tmp_path, "slack", "manifest", *wrong)).failed(2, named)


async def test_the_invite_of_discord_names_the_application_and_what_it_may_do(tmp_path: Path) -> None:
    given = (await threadgate(tmp_path, "discord", "invite", "--application", "42")).done()
    assert given.startswith("https://discord.com/") and "client_id=42" in given and "permissions=" in given
    (tmp_path / "s.json").write_text('{"rules": []}')
    (tmp_path / "config.toml").write_text(DISCORD)
    found = (await threadgate(tmp_path, "discord", "invite")).done()
    assert "client_id=123456789012345678&" in found + "&" and "secret" not in found


async def test_an_invite_without_an_application_says_what_is_missing(tmp_path: Path) -> None:
    (await threadgate(tmp_path, "discord", "invite")).failed(2, "--application")
    (await threadgate(tmp_path, "discord", "invite", "--application", "mybot")).failed(2, "--application")
    (tmp_path / "s.json").write_text('{"rules": []}')
    (tmp_path / "config.toml").write_text(DISCORD.replace(TOKEN, "é.x.y"))
    (await threadgate(tmp_path, "discord", "invite")).failed(2, "channels.discord.token")
