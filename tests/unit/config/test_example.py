"""config.example.toml loads, explains every key, and has no key that does not exist."""

from __future__ import annotations

import re
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import msgspec
import pytest

from gateway.config import load_config
from gateway.config.values import Document

EXAMPLE = (Path(__file__).parents[3] / "config.example.toml").read_text(encoding="utf-8")
# A switched-off key has no space after the sign; prose has one.
ENABLED = re.sub(r"^#(?=[A-Za-z\[])", "", EXAMPLE, flags=re.MULTILINE)


class EveryVariable(dict[str, str]):
    """An environment in which everything is set."""

    def get(self, key: str, default: Any = None) -> str:
        return f"value-of-{key}"


def write(folder: Path, text: str) -> Path:
    (folder / "script.toml").write_text("replies = []\n")
    path = folder / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def keys_of_types(kind: Any) -> Iterator[tuple[str, str]]:
    """(table type, key) of all fields of all tables."""
    if get_origin(kind) in (Union, types.UnionType, tuple, dict):
        for inner in get_args(kind):
            yield from keys_of_types(inner)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            yield kind.__name__, field.encode_name
            yield from keys_of_types(field.type)


def keys_of_table(kind: Any, raw: Any) -> Iterator[tuple[str, str]]:
    """The same, as far as a parsed file uses them."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        (kind,) = [part for part in get_args(kind) if part is not type(None)]
        yield from keys_of_table(kind, raw)
    elif origin in (tuple, dict):
        for item in raw.values() if isinstance(raw, dict) else raw:
            yield from keys_of_table(get_args(kind)[0 if origin is tuple else 1], item)
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            if field.encode_name in raw:
                yield kind.__name__, field.encode_name
                yield from keys_of_table(field.type, raw[field.encode_name])


def test_the_example_loads_as_it_stands_and_uses_nothing_that_is_missing(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, EXAMPLE), env={"ANTHROPIC_API_KEY": "dummy-key"})
    assert config.unsupported() == []
    assert config.gateway.default_agent == "assistant"


def test_the_example_loads_with_every_key_switched_on(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, ENABLED), env=EveryVariable())
    assert config.unsupported() == []


def test_every_key_of_the_types_stands_in_the_example() -> None:
    shown = set(keys_of_table(Document, tomllib.loads(ENABLED)))
    assert sorted(set(keys_of_types(Document)) - shown) == []


def test_every_key_of_the_example_is_explained_once_in_the_lines_above_it() -> None:
    explained: set[str] = set()
    table, above = "", ""
    for line in EXAMPLE.splitlines():
        bare = re.sub(r"^#(?=[A-Za-z\[])", "", line)
        key = re.match(r"([a-z_]+) = ", bare)
        header = re.fullmatch(r"\[+([a-z]+)\.?([a-z]*)\.?([a-z]*)\]+", bare)
        if header:
            # Names that users choose do not tell tables apart, those of channels do.
            table = f"{header[1]}.{header[2]}" if header[1] == "channels" else f"{header[1]}.{header[3]}"
        elif key and above.startswith("# "):
            explained.add(f"{table}.{key[1]}")
        elif key:
            assert f"{table}.{key[1]}" in explained, f"{line}: no comment above"
        above = line
    assert len(explained) > 70


@pytest.mark.parametrize(
    "default",
    [
        *("busy", "while_pending", "on_denial", "on_unknown", "max_steps", "loop_limit"),
        *("max_depth", "max_children", "max_subagent_calls", "subagent_rate"),
    ],
)
def test_the_example_shows_the_defaults_of_the_agent(default: str) -> None:
    (field,) = [one for one in msgspec.structs.fields(_agent_section()) if one.name == default]
    assert tomllib.loads(EXAMPLE)["agents"]["assistant"][default] == field.default


def _agent_section() -> type[msgspec.Struct]:
    (field,) = [one for one in msgspec.structs.fields(Document) if one.name == "agents"]
    section: type[msgspec.Struct] = get_args(field.type)[1]
    return section
