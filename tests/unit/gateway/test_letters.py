"""What the end of a turn sends, what is known of a step that goes on, what a turn leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.approvals import (
    Answer,
    Approve,
    Deny,
    Expire,
    KnownCall,
    Pending,
    PendingState,
    Resolution,
    Supersede,
    TurnCheckpoint,
)
from gateway.knowledge import known_calls, new_pendings
from gateway.letters import Letters
from gateway.messages import Actor, File, Json, ThreadKey, ToolResult, assistant, call_hash, tool_results
from gateway.messages import Text as Words
from gateway.notices import STOPS, queued_text, stop_text
from gateway.options import RunResult
from gateway.outcome import Outcome
from gateway.questions import RUN_AGAIN, Question
from gateway.store.rows import FEEDBACK, CallRecord, Claim, Lease, PendingRecord

KEY, DESK, WEB = (
    ThreadKey("talk", "w", "room", ""),
    ThreadKey("talk", "w", "desk", ""),
    ThreadKey("web", "local", "x", ""),
)
ANN = Actor("talk", "w", "ann")
LETTERS = Letters(
    posts=lambda key: key.channel != "web",
    places=lambda entry: {"desk": DESK, "room": KEY, "page": WEB}.get(entry),
    approvers=lambda key: ("talk:bob",) if key == KEY else (),
)


def claim(key: ThreadKey = KEY, message_id: str = "m1") -> Claim:
    lease = Lease(session_id="s", turn_id="s.1", runner="r", epoch=1)
    return Claim(
        kind="message",
        lease=lease,
        key=key,
        agent="helper",
        tenant="",
        requester=ANN,
        message_id=message_id,
        log_length=1,
    )


def pending(args: Json | None = None, **changes: Any) -> Pending:
    given: dict[str, Any] = {
        "pending_id": "p_1",
        "kind": "approval",
        "call_id": "c",
        "tool": "pay",
        "args": args or {"n": 1},
        "args_hash": call_hash("pay", args or {"n": 1}),
        "code": "abcde",
    }
    return Pending(**{**given, **changes})


# ---- letters


def test_an_answer_goes_out_by_its_place_in_the_log_as_a_reply() -> None:
    (row,) = LETTERS.at_the_end(claim(), RunResult(outcome=Outcome.COMPLETED, text="fine"), 2)
    assert (row.key, row.kind, row.payload) == (KEY, "answer", {"seq": 1, "reply_to": "m1"})


def test_nothing_is_posted_where_people_read_the_rows_themselves() -> None:
    done = RunResult(outcome=Outcome.COMPLETED, text="fine")
    assert LETTERS.at_the_end(claim(WEB), done, 2) == ()


def test_an_empty_answer_is_said_to_be_none() -> None:
    (row,) = LETTERS.at_the_end(claim(), RunResult(outcome=Outcome.COMPLETED, text=" "), 2)
    assert row.kind == "notice" and row.payload["text"].strip() != ""


def test_c067_an_agent_that_says_nothing_sends_nothing_and_no_file_of_its_tools() -> None:
    part = File(path="a.txt", media_type="text/plain", name="a.txt")
    made = tool_results([ToolResult(tool_use_id="c", content="made", parts=(part,))])
    quiet = RunResult(outcome=Outcome.COMPLETED, silent=True)
    assert LETTERS.at_the_end(claim(), quiet, 4, [made]) == ()


def test_c067_the_word_for_nothing_is_not_posted_beside_a_card() -> None:
    letters = Letters(posts=lambda key: True, silence={"helper": "NO_REPLY"})
    for words, kinds in (("NO_REPLY", ["card"]), ("May I?", ["answer", "card"])):
        asked = RunResult(outcome=Outcome.PENDING_APPROVAL, messages=(assistant(Words(text=words)),))
        assert [row.kind for row in letters.at_a_stop(claim(), asked, [pending()], 2)] == kinds


def test_words_that_a_denial_left_behind_are_no_message_to_reply_to() -> None:
    done = RunResult(outcome=Outcome.COMPLETED, text="fine")
    (row,) = LETTERS.at_the_end(claim(message_id=f"p_1{FEEDBACK}"), done, 2)
    assert row.payload["reply_to"] == ""


@pytest.mark.parametrize("outcome", [o for o in Outcome if o is not Outcome.COMPLETED and not o.pending])
def test_every_other_end_is_told_in_words_that_name_the_reason(outcome: Outcome) -> None:
    assert outcome in STOPS
    (row,) = LETTERS.at_the_end(claim(), RunResult(outcome=outcome, detail="the reason."), 2)
    assert row.kind == "notice" and row.payload["text"] != ""
    if "{detail}" in STOPS[outcome]:
        assert "the reason" in row.payload["text"] and ".." not in row.payload["text"]


@pytest.mark.parametrize("outcome", [Outcome.COMPLETED, Outcome.PENDING_APPROVAL, Outcome.PENDING_QUESTION])
def test_an_answer_or_a_card_needs_no_words(outcome: Outcome) -> None:
    assert stop_text(outcome, "x") == ""


def test_a_card_goes_to_the_thread_and_once_to_every_place_that_is_told() -> None:
    asked = pending(notify=("desk", "desk", "room", "page", "nowhere"))
    result = RunResult(outcome=Outcome.PENDING_APPROVAL, messages=(assistant(Words(text="May I?")),))
    rows = LETTERS.at_a_stop(claim(), result, [asked], 2)
    assert [(r.kind, r.key) for r in rows] == [("answer", KEY), ("card", KEY), ("card", DESK)]
    assert rows[0].payload == {"seq": 1}


def test_a_card_of_a_web_conversation_can_still_be_told_elsewhere() -> None:
    rows = LETTERS.at_a_stop(
        claim(WEB), RunResult(outcome=Outcome.PENDING_APPROVAL), [pending(notify=("desk",))], 2
    )
    assert [(r.kind, r.key) for r in rows] == [("card", DESK)]


def test_the_channel_s_people_join_the_requester_only_where_a_rule_names_nobody() -> None:
    assert "talk:bob" in LETTERS.asked(claim(), [pending()])[0].approvers
    assert LETTERS.asked(claim(), [pending(approvers=("x",))])[0].approvers == ("x",)
    assert LETTERS.asked(claim(DESK), [pending()])[0].approvers == ()
    asked = pending(kind="question", question=Question(text="?"))
    assert LETTERS.asked(claim(), [asked])[0].approvers == ()


def test_a_waiting_message_s_author_is_told_what_it_waits_for() -> None:
    assert "the 2 open requests above" in queued_text(0, 2)
    assert "the open request above" in queued_text(0, 1)


# ---- knowledge


def call(state: Any = "allowed", *, attempt: int = 0, result: ToolResult | None = None) -> CallRecord:
    args = {"n": 1}
    return CallRecord(
        call_id="c",
        tool="pay",
        args=args,
        args_hash=call_hash("pay", args),
        state=state,
        repeatable=False,
        attempt=attempt,
        result=result,
    )


STATES: dict[type[Resolution], PendingState] = {
    Approve: "approved",
    Deny: "denied",
    Answer: "answered",
    Expire: "expired",
    Supersede: "superseded",
}


def asked(
    decision: Resolution | None = None, *, attempt: int = 0, args: Json | None = None, **changes: Any
) -> PendingRecord:
    return PendingRecord(
        pending=pending(args, **changes),
        session_id="s",
        turn_id="s.1",
        agent="helper",
        key=KEY,
        requester=ANN,
        state=STATES[type(decision)] if decision is not None else "open",
        current=True,
        attempt=attempt,
        requested_at=0.0,
        decision=decision,
        decided_by="Ann" if decision is not None else "",
    )


def known(row: CallRecord, *decisions: PendingRecord) -> KnownCall:
    return known_calls([row], decisions)["c"]


UNKNOWN: dict[str, Any] = {"kind": "question", "question": Question(text="?", about="unknown")}
RESULT = ToolResult(tool_use_id="c", content="kept")


@pytest.mark.parametrize(
    "row, decisions, state, args",
    [
        (call(), [], "allowed", {"n": 1}),
        (call("started", attempt=1), [], "started", {"n": 1}),
        (call("waiting"), [], "undecided", None),
        (call("waiting"), [asked()], "waiting", None),
        (call("waiting"), [asked(Approve())], "allowed", {"n": 1}),
        (call("waiting"), [asked(Approve(edited_args={"n": 2}))], "allowed", {"n": 2}),
        (call("waiting"), [asked(Deny())], "denied", None),
        (call("waiting"), [asked(Expire())], "done", None),
        (call("waiting"), [asked(Supersede(by="denial"))], "done", None),
        (call("started", attempt=1), [asked(Approve())], "started", {"n": 1}),
        (call("started", attempt=1), [asked(Approve(edited_args={"n": 2}))], "started", {"n": 2}),
        (
            call("started", attempt=1),
            [asked(Approve(edited_args={"n": 2})), asked(attempt=1, args={"n": 2}, **UNKNOWN)],
            "waiting",
            None,
        ),
        (
            call("started", attempt=1),
            [asked(Approve()), asked(Answer(values=(RUN_AGAIN,)), attempt=1, args={"n": 2}, **UNKNOWN)],
            "allowed",
            {"n": 2},
        ),
        (
            call("started", attempt=2),
            [asked(Answer(values=(RUN_AGAIN,)), attempt=1, **UNKNOWN)],
            "started",
            {"n": 1},
        ),
        (call("done", result=RESULT), [asked()], "done", None),
    ],
)
def test_what_is_known_of_a_call(
    row: CallRecord, decisions: list[PendingRecord], state: str, args: Json | None
) -> None:
    found = known(row, *decisions)
    assert found.state == state
    if state in ("allowed", "started"):
        assert found.args == args
    if row.result is not None:
        assert found.result == RESULT


def test_only_calls_that_nobody_was_asked_about_are_new() -> None:
    outstanding = {"p_1": pending(), "p_2": pending(pending_id="p_2", call_id="d")}
    assert new_pendings(TurnCheckpoint(outstanding=outstanding), [asked()]) == ["p_2"]
