"""What a model reads about decisions: one text for each, none to be taken for another."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.approvals import (
    Answer,
    Approve,
    Deny,
    Expire,
    KnownCall,
    Pending,
    PendingKind,
    Resolution,
    Supersede,
    settle,
)
from gateway.messages import Json, call_hash
from gateway.questions import GIVE_UP, RUN_AGAIN, TREAT_AS_DONE, Question
from gateway.verdicts import BROKE_OFF, INTERRUPTED, READS, SKIPPED, STOPPED, Case, edit_note, expired, reads

ARGS: Json = {"to": "acme", "amount": 25}
UNKNOWN = Question(text="What became of it?", allow_text=False, about="unknown")


def pending(kind: PendingKind = "approval", **more: Any) -> Pending:
    question = Question(text="Which?") if kind == "question" else None
    base: dict[str, Any] = {
        "pending_id": "p_1",
        "kind": kind,
        "call_id": "c1",
        "tool": "pay",
        "args": ARGS,
        "args_hash": call_hash("pay", ARGS),
        "code": "abcde",
        "requested_at": 100.0,
        "expires_at": 1300.0,
        "question": question,
    }
    return Pending(**{**base, **more})


CUT = pending("question", question=UNKNOWN)
EVERY: dict[Case, tuple[Pending, Resolution]] = {
    "approved": (pending(), Approve()),
    "edited": (pending(), Approve(edited_args={**ARGS, "amount": 20})),
    "denied": (pending(), Deny()),
    "denied_with_feedback": (pending(), Deny(feedback="not on Friday")),
    "sibling_denied": (pending(), Supersede(by="denial")),
    "request_expired": (pending(), Expire()),
    "question_expired": (pending("question"), Expire()),
    "closed_by_stop": (pending(), Supersede(by="/stop")),
    "closed_by_new": (pending(), Supersede(by="/new")),
    "closed_by_message": (pending("question"), Supersede(by="a newer message")),
    "closed_otherwise": (pending(), Supersede(by="a move")),
    "request_cancelled": (pending(), Supersede(by="cancelled")),
    "question_cancelled": (pending("question"), Supersede(by="cancelled")),
    "unknown_run_again": (CUT, Answer(values=(RUN_AGAIN,))),
    "unknown_done": (CUT, Answer(values=(TREAT_AS_DONE,))),
    "unknown_done_with_result": (CUT, Answer(values=(TREAT_AS_DONE, "refund R-1"))),
    "unknown_given_up": (CUT, Answer(values=(GIVE_UP,))),
}
OF_NO_PENDING = {"denied_by_rule", "stopped", "broke_off", "unknown"}


def read(known: KnownCall) -> str:
    return known.note if known.result is None else known.result.content


def test_the_table_holds_every_case_and_every_decision_about_a_pending_is_tried_here() -> None:
    assert set(READS) == set(get_args(Case))
    assert set(EVERY) | OF_NO_PENDING == set(READS)


def test_no_two_cases_read_the_same() -> None:
    said = [read(settle(asked, word, "Ada")) for asked, word in EVERY.values()]
    said += [reads("denied_by_rule", reason="too much"), STOPPED, BROKE_OFF, INTERRUPTED]
    assert len(set(said)) == len(said) == len(READS)
    assert len(set(READS.values())) == len(READS)


@pytest.mark.parametrize("case", EVERY)
def test_each_decision_reads_as_its_entry_says(case: Case) -> None:
    asked, word = EVERY[case]
    pattern = re.sub(r"\\\{\w+\\\}", ".*", re.escape(READS[case]))
    assert re.fullmatch(pattern, read(settle(asked, word, "Ada")), re.DOTALL)


@pytest.mark.parametrize("case", EVERY)
def test_c047_only_what_a_person_refused_is_told_as_refused(case: Case) -> None:
    asked, word = EVERY[case]
    known = settle(asked, word, "Ada")
    text = read(known)
    refused = case in ("denied", "denied_with_feedback")
    assert (known.state == "denied") == refused
    assert text.startswith("denied") == refused
    if known.result is not None:
        assert known.result.is_error == (case not in ("unknown_done", "unknown_done_with_result"))
    if case.startswith(("closed", "request_", "question_")):
        assert re.search(r"[Nn]obody refused|[Nn]o person refused|took this question back", text)


def test_what_was_closed_as_cancelled_says_by_whom() -> None:
    result = settle(pending(), Supersede(by="cancelled"), "Ada").result
    assert result is not None and result.content.startswith("cancelled: Ada took this request back")


def test_a_denied_sibling_is_skipped_and_a_result_told_by_a_person_is_read() -> None:
    assert read(settle(pending(), Supersede(by="denial"), "Ada")) == SKIPPED
    told = read(settle(CUT, Answer(values=(TREAT_AS_DONE, "line one\nline two")), "Ada"))
    assert "Ada has checked" in told and told.endswith(":\nline one\nline two")


def test_a_call_that_runs_again_keeps_its_arguments_and_says_that_it_had_begun() -> None:
    known = settle(CUT, Answer(values=(RUN_AGAIN,)), "Ada")
    assert (known.state, known.args, known.args_hash) == ("allowed", CUT.args, CUT.args_hash)
    assert "Ada had it run again" in known.note


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "expired before"), (20.0, "expired before"), (60.0, "after 1 minute before"), (5400.0, "90 min")],
)
def test_c047_an_expiry_says_after_how_long(seconds: float | None, words: str) -> None:
    assert words in expired("request", seconds) and words in expired("question", seconds)


# ---- what a person changed


def note(before: Json, after: Json, *secret: str) -> str:
    said = edit_note(before, after, secret, "Ada")
    return said.removeprefix("[Ada approved this call with changed arguments. Changed: ").removesuffix("]")


def test_an_edit_is_named_down_to_the_nested_value() -> None:
    before = {"to": {"name": "x", "city": "Ulm"}, "rows": [{"n": 1}, {"n": 2}], "same": [1], "gone": None}
    after = {
        "to": {"name": "y", "city": "Ulm"},
        "rows": [{"n": 1}, {"n": 3}, {"n": 4}],
        "same": [1],
        "new": 0,
    }
    assert note(before, after) == (
        'gone: null -> (absent); new: (absent) -> 0; rows.1.n: 2 -> 3; rows.2: (absent) -> {"n":4}; '
        'to.name: "x" -> "y"'
    )


def test_a_value_that_changed_its_kind_is_named_whole() -> None:
    assert note({"a": {"b": 1}}, {"a": [1]}) == 'a: {"b":1} -> [1]'
    assert note({"a": 1}, {"a": "1"}) == 'a: 1 -> "1"'
    assert note({"a": 1}, {"a": 1}) == "nothing"


@pytest.mark.parametrize(
    ("before", "after", "secret", "said"),
    [
        ({"key": "old"}, {"key": "new"}, "key", "key: (not shown)"),
        ({"to": {"pin": "old"}}, {"to": {"pin": "new"}}, "to.pin", "to.pin: (not shown)"),
        ({"to": {"pin": "old"}}, {}, "to.pin", "to: (not shown)"),
        ({"to": {"pin": "old"}}, {"to": "new"}, "to.pin", "to: (not shown)"),
        ({"rows": [{"pin": "old"}]}, {"rows": [{"pin": "new"}]}, "rows.0.pin", "rows.0.pin: (not shown)"),
        ({"rows": []}, {"rows": [{"pin": "new"}]}, "rows.0.pin", "rows.0: (not shown)"),
        (
            {"a.b": "old", "a": {"b": 1}},
            {"a.b": "new", "a": {"b": 2}},
            "a.b",
            "a.b: 1 -> 2; a.b: (not shown)",
        ),
    ],
)
def test_of_what_is_masked_an_edit_tells_no_value(before: Json, after: Json, secret: str, said: str) -> None:
    assert note(before, after, secret) == said


LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
VALUE = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.sampled_from("abc"), VALUE, max_size=3)


@given(OBJECT, OBJECT)
def test_an_edit_is_silent_exactly_when_nothing_changed(before: Json, after: Json) -> None:
    assert (note(before, after) == "nothing") == (call_hash("t", before) == call_hash("t", after))


@given(OBJECT, OBJECT, st.sampled_from(["a", "a.b", "b.0", "c.a.b"]))
def test_a_secret_never_shows_in_an_edit(before: Json, after: Json, secret: str) -> None:
    def planted(value: Any, steps: list[str]) -> Any:
        if not steps:
            return "hush-hush"
        inner = value if isinstance(value, dict) else {}
        return {**inner, steps[0]: planted(inner.get(steps[0]), steps[1:])}

    hidden = planted(before, secret.split("."))
    assert "hush" not in note(hidden, after, secret)
    assert "hush" not in note(after, hidden, secret)
