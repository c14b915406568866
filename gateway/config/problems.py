"""What can be wrong with a configuration, and how it is reported: every problem at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from gateway.errors import ConfigError


class Bad(ValueError):
    """One value cannot be used. Becomes a ConfigError with the value's key; never holds a secret."""

    def __init__(self, problem: str, mend: str = "") -> None:
        self.problem, self.mend = problem, mend
        super().__init__(problem)


class ConfigErrors(ConfigError):
    """Several problems of one configuration. `key`, `problem` and `mend` are the first one's."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        self.problems = tuple(problems)
        first = problems[0]
        super().__init__(first.key, first.problem, first.mend)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def combined(problems: Sequence[ConfigError]) -> ConfigError:
    """One error for what was found: a single problem is itself."""
    return problems[0] if len(problems) == 1 else ConfigErrors(problems)


def nearest(word: str, known: Iterable[str], *, none: str = "") -> str:
    """A mend for a word that is not among the known ones."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"one of: {', '.join(names)}" if names else none
