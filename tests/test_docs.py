"""What README.md and docs/ show is true: every TOML block is (part of) a configuration that loads, every
command of a shell block exists, every link inside of the repository leads somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main

from gateway.cli import app
from gateway.config import load_config

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
PUNCTUATION = re.compile(r"[^\w\- ]")

# What a block may leave out, because its page says "beside a model and an agent".
AROUND = """
[models.main]
provider = "scripted"
script = "script.toml"
[channels.web]
[channels.slack]
bot_token = "xoxb-1"
app_token = "xapp-1"
[channels.telegram]
token = "1:a"
[channels.discord]
token = "a.b.c"
[mcp.files]
command = ["files"]
[agents.assistant]
[agents.ops]
tool_description = "Looks after things."
[gateway]
default_agent = "assistant"
"""


def blocks(*kinds: str) -> list[Any]:
    """Every block of such a kind, named by its page and line."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            if match["kind"] in kinds:
                line = text.count("\n", 0, match.start()) + 1
                body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
                found.append(pytest.param(body, id=f"{page.name}:{line}"))
    return found


class EveryVariable(dict[str, str]):
    """An environment in which everything is set."""

    def get(self, key: str, default: Any = None) -> str:
        return f"value-of-{key}"


def merged(around: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """What is shown, completed by what it leaves out. A table of the block stands for itself: its keys are
    not mixed with those of a namesake, but for agents and channels, which blocks add to."""
    whole = {**around, **shown}
    for name in ("agents", "models", "channels", "mcp", "gateway"):
        whole[name] = {**around.get(name, {}), **shown.get(name, {})}
    for table in ("agents", "channels"):
        for name, section in shown.get(table, {}).items():
            whole[table][name] = {**around[table].get(name, {}), **section}
    main = shown.get("models", {}).get("main")
    if main is not None and "provider" not in main:
        whole["models"]["main"] = {**around["models"]["main"], **main}
    return whole


def as_toml(value: Any) -> str:
    """Enough of TOML for what tomllib reads from a configuration: everything inline."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{name}" = {as_toml(one)}' for name, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else _quoted(str(value))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@pytest.mark.parametrize("block", blocks("toml"))
def test_a_toml_block_of_the_documentation_loads(tmp_path: Path, block: str) -> None:
    shown = tomllib.loads(block)
    whole = merged(tomllib.loads(AROUND), shown)
    (tmp_path / "script.toml").write_text('[[replies]]\ntext = "hi"\n')
    (tmp_path / "skills").mkdir()
    path = tmp_path / "config.toml"
    path.write_text("\n".join(f"{name} = {as_toml(value)}" for name, value in whole.items()) + "\n")

    config = load_config(path, env=EveryVariable())

    assert set(shown.get("agents", {})) <= set(config.agents)
    assert config.unsupported() == []


def commands(text: str) -> list[list[str]]:
    """The words of each call of the command line in a block, without its comment."""
    lines = [line.partition("  #")[0] for line in text.splitlines()]
    return [
        found[1].split()
        for line in lines
        if (found := re.search(r"(?:^|[$|] ?)threadgate ([a-z][^|<>]*)", line.strip()))
    ]


def shell() -> list[Any]:
    return [one for one in blocks("", "console", "bash", "sh") if commands(one.values[0])]


@pytest.mark.parametrize("block", shell())
def test_a_command_of_the_documentation_exists_with_its_options(block: str) -> None:
    for words in commands(block):
        at: Any = typer.main.get_command(app)
        rest = list(words)
        while rest and isinstance(at, click.Group | typer.core.TyperGroup):
            name = rest.pop(0)
            assert name in at.commands, f"threadgate {' '.join(words)}"
            at = at.commands[name]
        known = {name for parameter in at.params for name in parameter.opts}
        assert {word for word in rest if re.fullmatch(r"--[a-z-]+", word)} <= known


def inline() -> list[Any]:
    return [
        pytest.param(match[1], id=f"{page.name}:{match[1][:40]}")
        for page in PAGES
        for match in re.finditer(r"`threadgate ([a-z][^`]*)`", page.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("words", inline())
def test_a_command_within_a_sentence_exists(words: str) -> None:
    at: Any = typer.main.get_command(app)
    for word in words.split():
        if not isinstance(at, click.Group | typer.core.TyperGroup) or not re.fullmatch(r"[a-z]+", word):
            break
        assert word in at.commands, f"threadgate {words}"
        at = at.commands[word]


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {PUNCTUATION.sub("", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings_that_exist(page: Path) -> None:
    for target, anchor in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), f"{target}#{anchor}"


@pytest.mark.parametrize("block", blocks("python"))
def test_a_python_block_of_the_documentation_compiles_and_imports_what_exists(block: str) -> None:
    flags = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    assert compile(block, "block", "exec", flags=flags, dont_inherit=True)
    imports = re.findall(r"^from gateway\S* import .+$", block, re.MULTILINE)
    exec("\n".join(imports), {})  # noqa: S102 - our own words
