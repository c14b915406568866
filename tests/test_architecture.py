"""House rules that tools do not hold: SDK homes, sizes, purity, the lock file, the changelog."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST_FILE, LONGEST_FUNCTION = 500, 60
SOURCES = sorted([*(ROOT / "gateway").rglob("*.py"), *(ROOT / "channels").rglob("*.py")])
OTHERS = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# Each SDK is imported in its own home only.
HOMES: dict[str, str | tuple[str, ...]] = {
    "aiosqlite": "gateway/store/sqlite",
    "anthropic": "gateway/providers/anthropic",
    "asyncpg": "gateway/store/postgres",
    "discord": "channels/discord/",
    "google": "gateway/providers/gemini",
    "markdown_it": "channels/render/",
    "mcp": "gateway/tools/mcp/",
    "mcp_types": "gateway/tools/mcp/",
    "openai": "gateway/providers/openai",
    "slack_bolt": "channels/slack/",
    "slack_sdk": "channels/slack/",
    "sqlite3": "gateway/store/sqlite",
    "starlette": ("channels/web/", "channels/posted", "channels/telegram/webhook", "channels/slack/listener"),
    "sse_starlette": "channels/web/",
    "telegram": "channels/telegram/",
    "typer": "gateway/cli",
}
# What decides or draws does no I/O.
PURE = ("gateway/loop.py", "gateway/run.py", "gateway/gate.py", "gateway/approvals.py", "gateway/history.py")
PURE_TOO = (
    "gateway/markers.py",
    "gateway/squeeze.py",
    "gateway/toolset.py",
    "gateway/bucket.py",
    "gateway/answer_values.py",
    "gateway/questions.py",
    "gateway/verdicts.py",
    "gateway/bridge.py",
    "gateway/bridge_presses.py",
    "gateway/bridge_questions.py",
    "channels/render/",
    "channels/tolerant.py",
    "channels/telegram/render.py",
    *(
        f"channels/{name}/{part}"
        for name in ("discord", "slack")
        for part in ("cards", "choices", "modals", "render", "wire")
    ),
    "channels/discord/commands.py",
    "channels/discord/invite.py",
    "channels/slack/home.py",
    "channels/slack/manifest.py",
)
IO_MODULES = {
    "aiosqlite",
    "httpx",
    "io",
    "os",
    "pathlib",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
}
# Registries of a mirror or a machine have no place in the lock file: hashes say what is meant.
UNWANTED_IN_LOCK = re.compile(r"://|--(?:extra-)?index-url|--find-links|--trusted-host")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(level, module) of every import of a file, also those inside functions."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def files(paths: list[Path]) -> list[object]:
    return [pytest.param(path, id=name(path)) for path in paths]


@pytest.mark.parametrize("path", files(SOURCES))
def test_an_sdk_is_imported_in_its_home_only(path: Path) -> None:
    strangers = [
        module
        for _, module in imports(path)
        if not name(path).startswith(HOMES.get(module.partition(".")[0], ""))
    ]
    assert strangers == []


@pytest.mark.parametrize("path", files([*SOURCES, *OTHERS]))
def test_a_file_stays_short_and_imports_absolutely(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    assert [module for level, module in imports(path) if level] == []


@pytest.mark.parametrize("path", files([*SOURCES, *OTHERS]))
def test_a_function_stays_short(path: Path) -> None:
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LONGEST_FUNCTION
    }
    assert long == {}


@pytest.mark.parametrize(
    "path", files([path for path in SOURCES if name(path).startswith((*PURE, *PURE_TOO))])
)
def test_what_decides_or_draws_does_no_io(path: Path) -> None:
    assert [module for _, module in imports(path) if module.partition(".")[0] in IO_MODULES] == []
    called = [node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    assert [function for function in called if isinstance(function, ast.Name) and function.id == "open"] == []


def test_the_pure_files_exist_so_that_the_rule_holds_something() -> None:
    assert [path for path in PURE if not (ROOT / path).is_file()] == []


def test_only_app_and_bridge_touch_channels() -> None:
    touching = {
        name(path)
        for path in SOURCES
        if name(path).startswith("gateway/")
        and any(module.partition(".")[0] == "channels" for _, module in imports(path))
    }
    assert {
        path
        for path in touching
        if not re.match(r"gateway/(app\.py|app/|bridge(_presses|_questions)?\.py)", path)
    } == set()


def test_channels_import_nothing_of_the_gateway() -> None:
    assert [
        name(path)
        for path in SOURCES
        if name(path).startswith("channels/")
        and any(module.partition(".")[0] == "gateway" for _, module in imports(path))
    ] == []


def test_reading_a_configuration_loads_no_sdk() -> None:
    code = (
        f"import sys, gateway.config, gateway.loop, channels.base\nprint(*(set(sys.modules) & {set(HOMES)}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == []


def test_mocks_are_not_used() -> None:
    using = [
        name(path)
        for path in OTHERS
        if any(module.startswith("unittest.mock") for _, module in imports(path))
    ]
    assert using == []


# Packaging


def required(group: list[str]) -> set[str]:
    """The bare names of requirements."""
    return {re.split(r"[\[<>=~! ;]", line)[0].lower() for line in group}


def all_required() -> set[str]:
    found = required(PROJECT["project"]["dependencies"]) | required(PROJECT["dependency-groups"]["dev"])
    for extra in PROJECT["project"]["optional-dependencies"].values():
        found |= required(extra)
    return found


def locked() -> dict[str, str]:
    """Name -> its block of the lock file."""
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / "requirements.lock").read_text())
    return {re.split(r"[=\[ ;]", block)[0].lower(): block for block in blocks if "==" in block}


def test_the_lock_names_no_registry_and_hashes_everything() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert UNWANTED_IN_LOCK.findall(text) == []
    assert [package for package, block in locked().items() if "--hash=sha256:" not in block] == []


def test_every_dependency_is_locked() -> None:
    assert sorted(all_required() - locked().keys()) == []


def test_every_dependency_has_its_reason_and_no_reason_is_left_over() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    explained = {line.lower() for line in re.findall(r"^- `([^`]+)`", text, flags=re.MULTILINE)}
    assert explained == all_required()


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    headings = re.findall(
        r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    released = [heading.split()[0] for heading in headings if heading != "Unreleased"]
    assert "Unreleased" not in headings[1:]
    assert released[:1] in ([], [PROJECT["project"]["version"]])
    assert released or headings == ["Unreleased"]
