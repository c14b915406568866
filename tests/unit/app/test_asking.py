"""`threadgate ask`, piece by piece: what is read, what is written where, and what the flags change."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from gateway.app.asking import MOST_READ, Ask, Watcher, _as_wanted, read_words, seconds_of
from gateway.errors import ConfigError
from gateway.events import (
    AssistantDelta,
    AssistantText,
    Event,
    LoopDone,
    LoopStopped,
    SessionStarted,
    ToolFinished,
    ToolStarted,
    TurnDone,
)
from tests.unit.loop.scene import agent

BEGUN = SessionStarted(session_id="s_1", turn_id="s_1.1", agent="desk")


def ended(outcome: str, code: int, text: str = "", pending: list[str] | None = None) -> TurnDone:
    return TurnDone(
        session_id="s_1",
        turn_id="s_1.1",
        outcome=outcome,
        status=outcome,
        text=text,
        pending=pending or [],
        exit_code=code,
    )


# ---- what is read


@contextmanager
def pipe(data: bytes) -> Iterator[IO[bytes]]:
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        yield stream


@pytest.mark.parametrize(
    ("text", "piped", "asked"),
    [
        ("-", b"all of it\n", "all of it\n"),
        ("", b"all of it\n", "all of it\n"),
        ("Sum up:", b"\nall of it\n", "Sum up:\n\nall of it"),
        ("Sum up:", b"", "Sum up:"),
        ("Sum up:", b" \n", "Sum up:"),
        ("-", b"\xef\xbb\xbfna\xc3\xafve \xff", "naïve \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_a_pipe_follows_the_text_and_stands_in_for_a_dash(text: str, piped: bytes, asked: str) -> None:
    with pipe(piped) as stdin:
        assert read_words(text, stdin, is_terminal=False) == asked


def test_a_file_is_read_like_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "diff").write_text("+ one line\n")
    with (tmp_path / "diff").open("rb") as stdin:
        assert read_words("Review:", stdin, is_terminal=False) == "Review:\n\n+ one line"


def test_what_cannot_end_is_not_read_beside_a_text() -> None:
    with Path(os.devnull).open("rb") as stdin:
        assert read_words("hello", stdin, is_terminal=False) == "hello"
    primary, secondary = os.openpty()
    try:
        with os.fdopen(os.dup(secondary), "rb", buffering=0) as terminal:
            assert read_words("hello", terminal, is_terminal=True) == "hello"
            assert read_words("", terminal, is_terminal=True) == ""
    finally:
        os.close(primary)
        os.close(secondary)


def test_a_closed_standard_input_is_an_empty_one() -> None:
    assert read_words("hello", None, is_terminal=False) == "hello"
    assert read_words("-", None, is_terminal=False) == ""


def test_a_large_input_is_taken_and_one_that_is_too_large_is_told() -> None:
    large = "x" * (MOST_READ - 1)
    assert read_words("-", io.BytesIO(large.encode()), is_terminal=False) == large
    with pytest.raises(ConfigError, match="holds more than 10 MB"):
        read_words("-", io.BytesIO(b"x" * (MOST_READ + 1)), is_terminal=False)


# ---- flags


def test_budgets_and_model_replace_those_of_the_agent_and_nothing_else() -> None:
    desk = agent(model="main", failover=("spare", "cheap"), max_steps=25, max_tokens=1_000)
    wanted = Ask(agent="desk", text="go", max_steps=3, deadline=90.0, model="spare")
    changed = _as_wanted(desk, wanted)
    assert (changed.max_steps, changed.max_tokens, changed.deadline) == (3, 1_000, 90.0)
    assert (changed.model, changed.failover) == ("spare", ("cheap",))
    assert _as_wanted(desk, Ask(agent="desk", text="go")) == desk


@pytest.mark.parametrize(("text", "seconds"), [("", None), ("90s", 90.0), ("1h30m", 5_400.0)])
def test_a_deadline_is_written_as_in_the_configuration(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["90", "-1s", "soon"])
def test_a_deadline_that_is_none_names_the_option_and_the_mend(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--deadline: .*10m"):
        seconds_of(text)


# ---- what is written


class Sink(io.StringIO):
    """A stream that is a terminal, or whose reader goes away after so many lines."""

    def __init__(self, *, terminal: bool = False, lines: int | None = None) -> None:
        super().__init__()
        self._terminal, self._lines = terminal, lines

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        if self._lines is not None and len(self.getvalue().splitlines()) >= self._lines:
            raise BrokenPipeError
        return super().write(text)


def played(
    *events: Event, as_json: bool = False, out: Sink | None = None, **more: Any
) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = out or Sink(), Sink(**more)
    watcher = Watcher(out, err, as_json=as_json)
    for event in (BEGUN, *events):
        watcher(event)
    return watcher.ended(), out.getvalue(), err.getvalue()


TALK = (
    AssistantDelta(text="I lo"),
    AssistantText(text="I look."),
    ToolStarted(call_id="c", tool="look", args={}),
    ToolFinished(call_id="c", tool="look", content="no such\nthing", is_error=True),
    AssistantText(text="Nothing there."),
    LoopDone(text="Nothing there.", steps=2, tokens=9),
    ended("completed", 0, "Nothing there."),
)


def test_the_answer_alone_is_on_standard_output() -> None:
    assert played(*TALK) == (0, "Nothing there.\n", "")


def test_somebody_at_a_terminal_sees_beside_it_what_goes_on() -> None:
    code, out, err = played(*TALK, terminal=True)
    assert (code, out) == (0, "Nothing there.\n")
    assert err.splitlines() == [
        "threadgate: I look.",
        "threadgate: running look ...",
        "threadgate: look: no such thing",
    ]


def test_as_json_every_event_is_one_line_and_nothing_else() -> None:
    code, out, err = played(*TALK, as_json=True)
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["type"] for line in lines] == [event.type for event in (BEGUN, *TALK)]


def test_what_waits_is_named_by_its_id_alone_and_explained_beside_it() -> None:
    code, out, err = played(ended("pending_approval", 8, pending=["p_1", "p_2"]))
    assert (code, out) == (8, "p_1\np_2\n")
    assert err.splitlines()[0] == (
        "threadgate: waits for a person: threadgate resolve p_1 approve|deny|answer"
    )


def test_another_end_is_told_in_one_line_with_the_way_on() -> None:
    stop = LoopStopped(outcome="stalled", detail="the model\nsaid the same", steps=3, tokens=1)
    code, out, err = played(stop, ended("stalled", 3))
    assert (code, out) == (3, "")
    assert err == "threadgate: stalled: the model said the same; go on with --session s_1\n"


def test_a_refusal_is_the_answer_and_is_not_said_twice() -> None:
    stop = LoopStopped(outcome="refused", detail="I will not.", steps=1, tokens=1)
    code, out, err = played(stop, ended("refused", 5, "I will not."))
    assert (code, out, err) == (5, "I will not.\n", "threadgate: refused; go on with --session s_1\n")


def test_a_terminal_is_not_steered_by_an_answer_and_a_file_gets_it_as_it_is() -> None:
    done = ended("completed", 0, "\x1b]0;title\x07done")
    assert played(done)[1] == "\x1b]0;title\x07done\n"
    assert "\x1b" not in played(done, out=Sink(terminal=True))[1]


def test_secrets_are_not_told_beside_the_answer() -> None:
    stop = LoopStopped(outcome="stalled", detail="key sk-ant-api03-abcdefghijklmnopqrstuv", steps=1, tokens=1)
    assert "abcdefghijklmnop" not in played(stop, ended("stalled", 3))[2]


def test_a_reader_who_goes_away_changes_nothing_about_the_end() -> None:
    code, out, err = played(*TALK, as_json=True, out=Sink(lines=1))
    assert (code, len(out.splitlines()), err) == (0, 1, "")


def test_a_session_that_somebody_else_runs_is_told() -> None:
    watcher = Watcher(Sink(), err := Sink(), as_json=False)
    assert watcher.ended() == 1
    assert "somebody else is busy" in err.getvalue()
