"""What the command line says: lists that are whole at any width, and what is not installed."""

from __future__ import annotations

import importlib
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from gateway.app.asking import Ask, ask_once
from gateway.app.console import ONLY_HERE
from gateway.app.extras import extra
from gateway.app.oneshot import chat_here, list_mcp
from gateway.app.tables import show
from gateway.cli import app
from gateway.errors import ConfigError

ID = "p_4gQdl52Oe71ZO60OlRSZ"
CONFIG = """
[models.main]
provider = "scripted"
script = "script.toml"
[agents.desk]
[[agents.desk.rules]]
tool = "refnd"
decision = "ask"
[mcp.files]
command = ["there-is-no-such-program"]
"""


def configured(folder: Path) -> Path:
    (folder / "script.toml").write_text('[[replies]]\ntext = "hi"\n')
    path = folder / "config.toml"
    path.write_text(CONFIG)
    return path


@pytest.mark.parametrize("columns", [20, 60, 300])
@pytest.mark.parametrize("window", [True, False])
def test_nothing_that_has_to_be_copied_is_cut(columns: int, window: bool) -> None:
    console = Console(file=io.StringIO(), width=columns, force_terminal=window, no_color=True)
    show(("code", "id"), [("hh48c", ID), ("k7mpw", f"{ID}x" * 9)], console=console)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert ID in said and f"{ID}x" * 9 in said and "…" not in said


def test_a_package_that_is_not_installed_is_one_error_that_says_what_to_install() -> None:
    with pytest.raises(ConfigError) as caught, extra("channels.slack", "slack"):
        importlib.import_module("there_is_no_such_package.inside")
    assert caught.value.key == "channels.slack"
    assert "there_is_no_such_package" in caught.value.problem
    assert "pip install 'threadgate[slack]'" in caught.value.mend


def test_a_module_of_our_own_that_is_missing_is_no_matter_of_installing() -> None:
    with pytest.raises(ModuleNotFoundError), extra("channels.slack", "slack"):
        importlib.import_module("gateway.there_is_no_such_module")


def test_the_version_is_told() -> None:
    said = CliRunner().invoke(app, ["--version"])
    assert said.exit_code == 0 and re.fullmatch(r"threadgate \d+\.\d+\.\d+\n", said.output)


async def test_an_answer_comes_with_a_line_for_what_is_wrong_but_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await ask_once(configured(tmp_path), Ask(agent="desk", text="hello")) == 0
    said = capsys.readouterr()
    assert said.out == "hi\n"
    rule, server = said.err.splitlines()
    assert rule.startswith("threadgate: agents.desk.rules[0].tool: the agent has no tool 'refnd'")
    assert server.startswith("threadgate: tool server files is down: there is no program")


async def test_tool_servers_are_listed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await list_mcp(configured(tmp_path), as_json=True) == 1
    line = json.loads(capsys.readouterr().out)
    assert (line["server"], line["state"], line["tools"]) == ("files", "down", [])
    assert "there-is-no-such-program" in line["reason"]


async def test_commands_of_chats_are_not_taken_for_words_to_the_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["/help", "/etc/passwd is a path", "/quit"])
    monkeypatch.setattr("builtins.input", lambda *_: next(typed))
    assert await chat_here(configured(tmp_path), "desk") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ONLY_HERE in said
    assert said.count("hi") >= 1
