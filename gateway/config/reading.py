"""From TOML tables to typed values, collecting every problem on the way.

The types in `values.py` are the only description of the file: this walks them. msgspec checks
plain values; tables are walked here, because all problems are wanted and each with its dotted key.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from gateway.config.parsing import NAME, Parser, Source
from gateway.config.problems import Bad, nearest
from gateway.errors import ConfigError

Table = TypeVar("Table", bound=msgspec.Struct)


class Reader:
    """Reads tables and keeps the problems found; a value with a problem is read as None."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.problems: list[ConfigError] = []

    def table(self, kind: type[Table], raw: dict[str, Any], key: str = "") -> Table | None:
        """A value of `kind`, or None if anything in its table is wrong."""
        before = len(self.problems)
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        for name in [name for name in raw if name not in fields]:
            self._problem(
                _join(key, name), "unknown key", nearest(name, fields, none="this table has no keys")
            )
        values = {}
        for name, field in fields.items():
            if name in raw:
                values[name] = self._value(field.type, raw[name], _join(key, name))
            elif field.required:
                self._problem(_join(key, name), "is missing", f"add it to [{key}]")
        return kind(**values) if len(self.problems) == before else None

    def by_name(self, raw: Any, key: str) -> Any:
        """A list of tables that have a `name` each, as a table of tables; anything else as it is."""
        if not isinstance(raw, list):
            return raw
        tables: dict[str, Any] = {}
        for place, table in enumerate(raw):
            name = table.get("name") if isinstance(table, dict) else None
            if not isinstance(name, str) or not NAME.fullmatch(name):
                said = "is missing" if name is None else "is not a name"
                self._problem(f"{key}[{place}].name", said, "letters, digits, _ and - only")
            elif name in tables:
                self._problem(f"{key}[{place}].name", f"two are called {name!r}", "give each its own")
            else:
                tables[name] = {at: value for at, value in table.items() if at != "name"}
        return tables

    def _problem(self, key: str, problem: str, mend: str = "") -> None:
        self.problems.append(ConfigError(key, problem, mend))

    def _value(self, kind: Any, raw: Any, key: str) -> Any:
        kind = _without_none(kind)
        parser = _parser(kind)
        if parser is not None:
            return self._parsed(parser, raw, key)
        origin, inner = get_origin(kind), get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self.table(kind, raw, key) if self._is(dict, raw, key) else None
        if origin is dict:
            return self._named(inner[1], raw, key) if self._is(dict, raw, key) else None
        if origin is tuple:
            return self._list(inner[0], raw, key) if self._is(list, raw, key) else None
        if origin is Literal:
            return self._choice(inner, raw, key)
        return self._plain(kind, raw, key)

    def _parsed(self, parser: Parser, raw: Any, key: str) -> Any:
        try:
            return parser.read(raw, self._source)
        except Bad as bad:
            self._problem(key, bad.problem, bad.mend)
            return None

    def _is(self, kind: type, raw: Any, key: str) -> bool:
        if isinstance(raw, kind):
            return True
        wanted = "a table" if kind is dict else "a list"
        self._problem(key, f"expected {wanted}", f"write [{key}]" if kind is dict else "put it into [ ]")
        return False

    def _named(self, kind: Any, raw: dict[str, Any], key: str) -> dict[str, Any]:
        for name in raw:
            if not NAME.fullmatch(name):
                self._problem(_join(key, name), "is not a name", "letters, digits, _ and - only")
        return {name: self._value(kind, value, _join(key, name)) for name, value in raw.items()}

    def _list(self, kind: Any, raw: list[Any], key: str) -> tuple[Any, ...]:
        return tuple(self._value(kind, value, f"{key}[{place}]") for place, value in enumerate(raw))

    def _choice(self, choices: tuple[str, ...], raw: Any, key: str) -> Any:
        if raw not in choices:
            self._problem(key, f"{raw!r} is not possible here", nearest(str(raw), choices))
        return raw

    def _plain(self, kind: Any, raw: Any, key: str) -> Any:
        try:
            return msgspec.convert(raw, kind)
        except msgspec.ValidationError as error:
            self._problem(key, _in_words(str(error)))
            return None


_WORDS = {
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "a text in quotes",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "a table",
    " >= ": " from ",
    " <= ": " up to ",
}


def _in_words(problem: str) -> str:
    """What msgspec says about a plain value, without the names of its types."""
    for name, words in _WORDS.items():
        problem = problem.replace(name, words)
    return problem[:1].lower() + problem[1:]


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _without_none(kind: Any) -> Any:
    """`X | None` means that the key may be left out; TOML has no null."""
    if get_origin(kind) in (Union, types.UnionType):
        (kind,) = [part for part in get_args(kind) if part is not type(None)]
    return kind


def _parser(kind: Any) -> Parser | None:
    if get_origin(kind) is not Annotated:
        return None
    return next((mark for mark in kind.__metadata__ if isinstance(mark, Parser)), None)
