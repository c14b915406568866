"""What a person's word does: a closed table, and one text for each decision."""

from __future__ import annotations

import string
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.approvals import (
    CLOSED_OUTCOME,
    NEXT,
    Answer,
    Approve,
    Deny,
    Expire,
    KnownCall,
    Pending,
    PendingKind,
    PendingState,
    Resolution,
    Supersede,
    TurnCheckpoint,
    allowed_deciders,
    may_decide,
    new_code,
    next_state,
    settle,
)
from gateway.budget import Spent
from gateway.messages import Actor, ToolResult, call_hash
from gateway.questions import (
    GIVE_UP,
    RUN_AGAIN,
    TREAT_AS_DONE,
    Option,
    Question,
    TypedAnswer,
    check_answer,
    normal_answer,
    read_typed_answer,
)
from gateway.verdicts import GAVE_UP

WORDS = st.one_of(
    st.builds(
        Approve,
        scope=st.sampled_from(["once", "session", "always"]),
        edited_args=st.none() | st.just({"n": 2}) | st.just({}),
    ),
    st.builds(Deny, feedback=st.sampled_from(["", "not now"])),
    st.builds(Answer, values=st.lists(st.text(min_size=1), min_size=1, max_size=3).map(tuple)),
    st.just(Expire()),
    st.builds(Supersede, by=st.just("/new")),
)


def pending(kind: PendingKind = "approval", **more: object) -> Pending:
    base: dict[str, object] = {
        "pending_id": "p_1",
        "kind": kind,
        "call_id": "c1",
        "tool": "pay",
        "args": {"n": 1},
        "args_hash": call_hash("pay", {"n": 1}),
        "code": "abcde",
    }
    if kind == "question":
        base["question"] = Question(text="Which?")
    return Pending(**{**base, **more})  # type: ignore[arg-type]


def test_the_table_is_closed_over_kinds_words_and_states() -> None:
    words = get_args(Resolution)
    assert {kind for kind, _ in NEXT} == set(get_args(PendingKind))
    assert {word for _, word in NEXT} == set(words)
    reached = set(NEXT.values())
    assert reached == set(get_args(PendingState)) - {"open"}
    assert set(CLOSED_OUTCOME) == reached
    assert next_state("question", Approve()) is None
    assert next_state("question", Deny()) is None
    assert next_state("approval", Answer(values=("x",))) is None


@given(st.sampled_from(get_args(PendingKind)), WORDS, st.sampled_from(["", "unknown"]))
def test_settle_covers_exactly_what_the_table_allows(kind: PendingKind, word: Resolution, about: str) -> None:
    question = Question(text="?", about=about) if kind == "question" else None  # type: ignore[arg-type]
    asked = pending(kind, question=question)
    if next_state(kind, word) is None:
        with pytest.raises(ValueError, match=kind):
            settle(asked, word, "Ada")
        return
    known = settle(asked, word, "Ada")
    assert known.state in ("allowed", "done", "denied")
    if known.state == "allowed":
        assert known.result is None
        assert known.args is not None
    else:
        assert known.result is not None
        assert known.result.tool_use_id == "c1"
        assert known.news
    assert (known.state == "denied") == (next_state(kind, word) == "denied")


def test_an_approval_binds_the_stored_arguments_by_their_hash() -> None:
    asked = pending()
    assert settle(asked, Approve(), "Ada") == KnownCall(
        state="allowed", args=asked.args, args_hash=asked.args_hash
    )


def test_an_edit_names_what_changed_appeared_and_went() -> None:
    edited = settle(
        pending(args={"a": 1, "b": "x", "c": True}),
        Approve(edited_args={"a": 2, "c": True, "d": None}),
        "Ada",
    )
    assert edited.args == {"a": 2, "c": True, "d": None}
    assert edited.args_hash == ""
    assert edited.note == (
        "[Ada approved this call with changed arguments. "
        'Changed: a: 1 -> 2; b: "x" -> (absent); d: (absent) -> null]'
    )


def test_an_edit_of_a_masked_argument_is_named_without_its_values() -> None:
    asked = pending(args={"key": "old", "to": {"card": "9"}}, secret=("key", "to.card"))
    note = settle(asked, Approve(edited_args={"key": "new", "to": {"card": "8"}}), "Ada").note
    assert note.endswith("Changed: key: (not shown); to.card: (not shown)]")


def test_a_denial_says_by_whom_and_why() -> None:
    result = settle(pending(), Deny(feedback="not on Friday"), "Ada").result
    assert result == ToolResult(tool_use_id="c1", content="denied by Ada: not on Friday", is_error=True)
    assert settle(pending(), Deny(), "Ada").result == ToolResult(
        tool_use_id="c1", content="denied by Ada", is_error=True
    )


@pytest.mark.parametrize(
    ("seconds", "words"), [(None, "expired before"), (60.0, "after 1 minute before"), (5400.0, "90 minutes")]
)
def test_c047_an_expiry_is_never_told_as_a_refusal(seconds: float | None, words: str) -> None:
    asked = pending(requested_at=100.0, expires_at=None if seconds is None else 100.0 + seconds)
    known = settle(asked, Expire(), "Ada")
    assert known.result is not None
    text = known.result.content
    assert words in text
    assert "no person refused it" in text
    assert "did not run" in text
    assert "denied" not in text
    assert "Ada" not in text


def test_a_closed_request_names_what_closed_it_and_nobody_refused() -> None:
    result = settle(pending(), Supersede(by="/new"), "Ada").result
    assert result is not None
    assert "closed by /new before anybody decided. Nobody refused it" in result.content


def test_an_answer_is_the_result_and_several_are_a_list() -> None:
    one = settle(pending("question"), Answer(values=("blue",)), "Ada").result
    two = settle(pending("question"), Answer(values=("blue", "red")), "Ada").result
    assert one == ToolResult(tool_use_id="c1", content="blue")
    assert two == ToolResult(tool_use_id="c1", content="- blue\n- red")


@pytest.mark.parametrize(
    ("answer", "state", "error"),
    [(RUN_AGAIN, "allowed", False), (TREAT_AS_DONE, "done", False), (GIVE_UP, "done", True)],
)
def test_c074_the_three_answers_about_an_unknown_end(answer: str, state: str, error: bool) -> None:
    asked = pending("question", question=Question(text="?", about="unknown"))
    known = settle(asked, Answer(values=(answer,)), "Ada")
    assert known.state == state
    if state == "allowed":
        assert (known.args, known.args_hash) == (asked.args, asked.args_hash)
    else:
        assert known.result is not None
        assert known.result.is_error is error
    if answer == GIVE_UP:
        assert known.result == ToolResult(tool_use_id="c1", content=GAVE_UP, is_error=True)


def test_a_checkpoint_survives_its_stored_form_and_decisions_win_over_what_was_open() -> None:
    open_, other = pending(), pending(pending_id="p_2", call_id="c2")
    checkpoint = TurnCheckpoint(
        results_so_far={"c0": ToolResult(tool_use_id="c0", content="ok")},
        outstanding={"p_1": open_, "p_2": other},
        decided={"c1": settle(open_, Approve(edited_args={"n": 5}), "Ada")},
        spent=Spent(steps=3, tokens=5, seconds=1.5, output_cuts=1, compactions=1),
    )
    again = msgspec.json.decode(msgspec.json.encode(checkpoint), type=TurnCheckpoint)
    assert again == checkpoint
    known = again.known()
    assert {call_id: call.state for call_id, call in known.items()} == {
        "c0": "done",
        "c1": "allowed",
        "c2": "waiting",
    }
    assert not known["c0"].news


# ---- who may decide

ADA, BOB = Actor("telegram", "1", "10"), Actor("telegram", "1", "11")


def decides(actor: Actor, roles: frozenset[str] = frozenset(), **more: object) -> bool:
    base: dict[str, object] = {"approvers": (), "requester": ADA, "four_eyes": False, "operators": ()}
    return may_decide(actor, roles, **{**base, **more})  # type: ignore[arg-type]


def test_c044_without_approvers_the_requester_decides_and_nobody_else() -> None:
    assert decides(ADA)
    assert not decides(BOB)
    assert not decides(Actor("telegram", "1", ""))


def test_c044_with_approvers_only_they_and_the_operators_decide() -> None:
    assert not decides(ADA, approvers=("telegram:11",))
    assert decides(BOB, approvers=("telegram:11",))
    assert decides(BOB, approvers=("telegram:1:11",))
    assert not decides(BOB, approvers=("telegram:2:11",))
    assert decides(BOB, frozenset({"3"}), approvers=("telegram:role:3",))
    assert decides(ADA, approvers=("requester", "telegram:11"))
    assert decides(BOB, approvers=("telegram:12",), operators=("telegram:1:11",))


def test_with_four_eyes_the_requester_never_decides() -> None:
    everybody = ("requester", "telegram:10", "telegram:11")
    assert not decides(ADA, four_eyes=True, approvers=everybody, operators=("telegram:1:10",))
    assert decides(BOB, four_eyes=True, approvers=everybody)


def test_deciders_are_spelled_as_in_the_configuration() -> None:
    assert allowed_deciders((), ADA, ("cli:local",)) == {"telegram:1:10", "cli:local"}
    assert allowed_deciders(("requester", "telegram:role:3"), ADA, ()) == {"telegram:1:10", "telegram:role:3"}
    assert allowed_deciders(("telegram:4",), None, ()) == {"telegram:4"}


# ---- typed answers

ENV = Question(text="Which env?", options=(Option(label="staging"), Option(label="prod")))
STRICT = msgspec.structs.replace(ENV, allow_text=False)
MANY = msgspec.structs.replace(STRICT, multi=True)


@pytest.mark.parametrize(
    ("question", "text", "values"),
    [
        (ENV, "2", ("prod",)),
        (ENV, "Prod", ("prod",)),
        (ENV, "  PROD \n", ("prod",)),
        (ENV, "use the eu cluster", ("use the eu cluster",)),
        (STRICT, "2", ("prod",)),
        (STRICT, "unrelated: what's the time?", None),
        (STRICT, "3", None),
        (STRICT, "0", None),
        (ENV, "3", ("3",)),
        (STRICT, "9" * 5_000, None),
        (ENV, "  ", None),
        (STRICT, "1, 2", None),
        (MANY, "1, Prod", ("staging", "prod")),
        (MANY, "1, 1", ("staging",)),
        (MANY, "1, nothing", None),
        (Question(text="Name?"), "Ada, Countess", ("Ada, Countess",)),
    ],
)
def test_c051_a_typed_answer_is_a_number_a_label_or_where_allowed_a_text(
    question: Question, text: str, values: tuple[str, ...] | None
) -> None:
    assert read_typed_answer(question, text) == TypedAnswer(values=values)


def test_c051_a_label_that_two_options_share_chooses_neither() -> None:
    twins = (Option(label="East", value="e1"), Option(label="east", value="e2"))
    question = Question(text="?", options=twins, allow_text=False)
    assert read_typed_answer(question, "EAST").values is None
    assert read_typed_answer(question, "2").values == ("e2",)


def test_c051_a_label_with_a_comma_is_one_choice() -> None:
    question = Question(text="?", multi=True, options=(Option(label="a, b"), Option(label="c")))
    assert read_typed_answer(question, "a, b").values == ("a, b",)


@given(st.text(), st.booleans(), st.booleans())
def test_c051_a_typed_answer_is_always_one_that_a_submitted_answer_could_be(
    text: str, multi: bool, allow_text: bool
) -> None:
    question = msgspec.structs.replace(ENV, multi=multi, allow_text=allow_text)
    values = read_typed_answer(question, text).values
    if values is None:
        assert not allow_text or not text.strip()
    else:
        assert check_answer(question, values) is None


@pytest.mark.parametrize(
    ("question", "values", "fault"),
    [
        (ENV, (), "is empty"),
        (ENV, (" ",), "is empty"),
        (ENV, ("staging", "prod"), "only one"),
        (STRICT, ("moon",), "'moon' is not one of the options"),
        (STRICT, ("prod",), None),
        (MANY, ("staging", "prod"), None),
        (ENV, ("moon",), None),
    ],
)
def test_a_submitted_answer_is_checked(
    question: Question, values: tuple[str, ...], fault: str | None
) -> None:
    problem = check_answer(question, values)
    if fault is None:
        assert problem is None
    else:
        assert problem is not None
        assert fault in problem


def test_c054_labels_of_a_submitted_answer_become_their_values() -> None:
    question = Question(text="?", options=(Option(label="East", value="e1"), Option(label="West")))
    assert normal_answer(question, ("East", "West", "e1", "other")) == ("e1", "West", "e1", "other")


def test_codes_are_five_letters_that_cannot_be_mistaken_for_one_another() -> None:
    codes = [new_code() for _ in range(200)]
    assert {len(code) for code in codes} == {5}
    assert set("".join(codes)) <= set(string.ascii_lowercase + string.digits) - set("ilo01")
    assert len(set(codes)) > 190
