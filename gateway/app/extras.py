"""What is installed only by those who use it, and what to say when it is not there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import ConfigError

_OURS = ("gateway", "channels")


@contextmanager
def extra(key: str, name: str) -> Iterator[None]:
    """Around an import of what the extra `name` of this package brings. Raises ConfigError for `key`, with
    what to install, where it is not there."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in _OURS:
            raise
        raise ConfigError(
            key, f"needs the package {package}, which is not installed", f"pip install 'threadgate[{name}]'"
        ) from error
