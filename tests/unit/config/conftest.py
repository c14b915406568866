"""What the configuration's tests share: a loader of texts, and problems by key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.config import Config, ConfigErrors, load_config
from gateway.errors import ConfigError

ENV = {"TOKEN": "a-telegram-token", "PAGER": "pager-secret"}
Load = Callable[..., Config]
Problems = Callable[..., dict[str, ConfigError]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a text as config.toml of the test's folder."""

    def run(text: str, env: dict[str, str] | None = None, folder: Path = tmp_path) -> Config:
        path = folder / "config.toml"
        path.write_text(text, encoding="utf-8")
        return load_config(path, env=ENV if env is None else env)

    return run


@pytest.fixture
def problems(load: Load) -> Problems:
    """What is wrong with a text, by key."""

    def run(text: str, env: dict[str, str] | None = None) -> dict[str, ConfigError]:
        with pytest.raises(ConfigError) as caught:
            load(text, env)
        found = caught.value.problems if isinstance(caught.value, ConfigErrors) else (caught.value,)
        return {problem.key: problem for problem in found}

    return run
