"""The configuration file: one TOML file becomes typed values, or errors that name key and mend.

    config = load_config(Path("config.toml"), env=os.environ)
    missing = config.unsupported()      # configured, but not available yet: do not start
    agents = build_agents(config)       # imports the tools' modules

Empty `users` of a channel means nobody; everyone is `users = ["*"]`, said explicitly.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.config.agents import build_agents, questionable_rules
from gateway.config.checks import contradictions, not_available
from gateway.config.parsing import DatabaseUrl, SecretText, Source
from gateway.config.problems import ConfigErrors, combined
from gateway.config.reading import Reader
from gateway.config.values import Document
from gateway.errors import ConfigError

__all__ = [
    "Config",
    "ConfigErrors",
    "DatabaseUrl",
    "SecretText",
    "build_agents",
    "load_config",
    "questionable_rules",
]

_PLACE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)", re.DOTALL)
_RELATIVE_DEFAULTS = {"database": "sqlite:///threadgate.db", "data_dir": "var"}


class Config(Document, frozen=True, kw_only=True):
    """A configuration that fits together. `path` is its file, absolute."""

    path: Path

    @property
    def folder(self) -> Path:
        """Where relative paths and tool modules are looked up first."""
        return self.path.parent

    def unsupported(self) -> list[str]:
        """Configured features that this version does not have, one line each, the key first."""
        return list(not_available(self))


def load_config(path: Path, *, env: Mapping[str, str]) -> Config:
    """Read and check a configuration file. Secrets are resolved, and masked in the log from then on.

    Raises ConfigError, or ConfigErrors with all problems found.
    """
    path = path.expanduser().absolute()
    raw = _parse(path)
    section = raw.setdefault("gateway", {})
    if isinstance(section, dict):
        for key, value in _RELATIVE_DEFAULTS.items():
            section.setdefault(key, value)
    reader = Reader(Source(folder=path.parent, env=env))
    raw["schedules"] = reader.by_name(raw.get("schedules", {}), "schedules")
    document = reader.table(Document, raw)
    if document is None or reader.problems:
        raise combined(reader.problems)
    problems = list(contradictions(document))
    if problems:
        raise combined(problems)
    if not document.gateway.default_agent:
        (only,) = document.agents
        gateway = msgspec.structs.replace(document.gateway, default_agent=only)
        document = msgspec.structs.replace(document, gateway=gateway)
    values = {name: getattr(document, name) for name in document.__struct_fields__}
    return Config(path=path, **values)


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        mend = "copy config.example.toml and keep what you need, or name another file with --config"
        raise ConfigError(str(path), f"cannot be read: {error.strerror}", mend) from error
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), "is not UTF-8 text", "save it as UTF-8") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem, place = str(error), str(path)
        found = _PLACE.fullmatch(problem)
        if found:
            problem, place = found[1], f"{path}:{found[2]}:{found[3]}"
        mend = (
            "the same key or table stands there twice" if "overwrite" in problem or "twice" in problem else ""
        )
        raise ConfigError(place, problem[:1].lower() + problem[1:], mend) from error
