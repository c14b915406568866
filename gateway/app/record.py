"""`threadgate audit`: whether the record is as it was written, and all of it for other programs.
Read piece by piece, so that its length does not matter."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gateway.app.oneshot import parts_of
from gateway.errors import ConfigError
from gateway.messages import canonical_json
from gateway.store.base import Store
from gateway.store.rows import AuditLine, Checked

Format = Literal["jsonl", "csv"]
PIECE = 500  # lines that are in memory at a time
COLUMNS = (
    "seq",
    "at",
    "time",
    "kind",
    "actor",
    "session_id",
    "pending_id",
    "args_hash",
    "body",
    "previous",
    "hash",
)


async def verify(config: Path | None) -> int:
    """`threadgate audit verify`: 0 when every line fits the one before, 1 at the first that does not."""
    async with _store(config) as store:
        with _progress("checking", await _length(store)) as advance:
            checked = await _checked(store, advance)
    if checked.bad is not None:
        sys.stdout.write(
            f"The record was changed: line {checked.bad} does not fit the line before it. "
            f"Lines 1 to {checked.seq} are as they were written.\n"
            if checked.seq
            else f"The record was changed: line {checked.bad} is not the first line that was written.\n"
        )
        return 1
    if not checked.seq:
        sys.stdout.write("The record is empty.\n")
        return 0
    lines = "line" if checked.seq == 1 else "lines"
    # With these two, kept elsewhere, lines that were cut off at the end are noticed later.
    sys.stdout.write(f"The record is whole: {checked.seq} {lines}. Hash of the last: {checked.hash}\n")
    return 0


async def _checked(store: Store, advance: Callable[[int], None]) -> Checked:
    checked = Checked(seq=0, hash="", bad=None, ended=False)
    while not checked.ended and checked.bad is None:
        before = checked.seq
        checked = await store.check_audit(checked.seq, checked.hash, PIECE)
        advance(checked.seq - before)
    return checked


def read_since(text: str) -> float:
    """A moment in ISO form as Unix seconds, UTC where no zone is said; 0 for nothing. Raises ConfigError."""
    if not text:
        return 0.0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            "--since", f"is {text!r}", "a date or moment, 2026-11-30 or 2026-11-30T08:00"
        ) from None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def read_format(text: str) -> Format:
    """Raises ConfigError."""
    if text not in get_args(Format):
        raise ConfigError("--format", f"is {text!r}", "jsonl or csv")
    return text  # type: ignore[return-value]


async def export(config: Path | None, since: float, session: str, form: Format) -> int:
    """`threadgate audit export`: the lines since a moment, of one session or all, on standard output."""
    written = {"jsonl": _as_json, "csv": _as_csv}[form]
    try:
        if form == "csv":
            sys.stdout.write(_csv_row(COLUMNS))
        async with _store(config) as store:
            with _progress("exporting", await _length(store)) as advance:
                async for piece in _pieces(store):
                    advance(len(piece))
                    wanted = (ln for ln in piece if ln.at >= since and session in ("", ln.session_id))
                    sys.stdout.write("".join(written(line) for line in wanted))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


async def _pieces(store: Store) -> AsyncIterator[list[AuditLine]]:
    seq = 0
    while piece := await store.audit_after(seq, PIECE):
        yield piece
        seq = piece[-1].seq


def _as_json(line: AuditLine) -> str:
    return msgspec.json.encode(_fields(line)).decode() + "\n"


def _as_csv(line: AuditLine) -> str:
    return _csv_row((*(v if k != "body" else canonical_json(line.body) for k, v in _fields(line).items()),))


def _csv_row(cells: tuple[object, ...]) -> str:
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(cells)
    return row.getvalue()


def _fields(line: AuditLine) -> dict[str, object]:
    """By the names of COLUMNS."""
    time = datetime.fromtimestamp(line.at, UTC).isoformat(timespec="milliseconds")
    known = {**msgspec.structs.asdict(line), "time": time}
    return {name: known[name] for name in COLUMNS}


@asynccontextmanager
async def _store(config: Path | None) -> AsyncIterator[Store]:
    store = parts_of(config).store
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def _length(store: Store) -> int:
    newest = await store.audit_lines(limit=1)
    return newest[0].seq if newest else 0


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for whoever watches; nothing where nobody does."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    watched = sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not watched) as bar:
        task = bar.add_task(what, total=total)
        yield lambda lines: bar.advance(task, lines)
