"""What the gateway itself says to people, in one place. Pure; Markdown; no secret, no traceback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from gateway.approvals import Answer, Approve, ClickOutcome, Deny, Supersede
from gateway.messages import Actor
from gateway.outcome import Outcome
from gateway.store.rows import PendingRecord

STOPS: dict[Outcome, str] = {
    Outcome.REFUSED: "The model declined to answer this.",
    Outcome.DENIED: "Stopped: {detail}. The denied call was not run.",
    Outcome.MAX_TURNS: "Stopped: {detail}. Write to me to go on from here.",
    Outcome.EXHAUSTED_TOKENS: "Stopped: {detail}. Write to me to go on from here.",
    Outcome.DEADLINE: "Stopped: {detail}. Write to me to go on from here.",
    Outcome.STALLED: "Stopped: I was getting nowhere ({detail}). Try to put it another way.",
    Outcome.LOOP_DETECTED: "Stopped: I was going in circles ({detail}). Try to put it another way.",
    Outcome.CANCELLED: "Stopped ({detail}).",
    Outcome.CRASHED: "Something went wrong on my side: {detail}. Your message is kept; /new starts afresh.",
}

DRAINED = "I am being restarted in the middle of this. I will go on by myself afterwards."
UNKNOWN_REPORTED = (
    "Careful: I was interrupted while {tools} was running, and it may or may not have taken effect. "
    "I went on knowing that; please check."
)
NO_ANSWER = "I have no answer to that."
QUEUED = "Noted. I am still busy with an earlier message; yours is next in line ({ahead} before it)."
QUEUED_BEHIND_PENDING = (
    "Noted. Your message is kept and comes next; first {count} open request{s} above must be decided "
    "(/pending shows what waits, /stop gives it up)."
)
SHOWN = "I have sent it to you in private."
SHOWN_ALREADY = "It is in our private conversation."
WRITE_TO_ME = "I cannot write to you in private yet. Send me a message there first, and press again."
NOT_LISTED = "You are not on the list of people that I answer. Somebody who runs me can add your id."
TAKEN_AS_ANSWER = "Taken as your answer: {answer}. (Not meant as one? `/stop`, and say it again.)"
FILE_NOT_SENT = "I could not send the file {name}: {reason}."
FILE_NOT_FETCHED = "I could not fetch the file {name}: {reason}. I go on without it."
UNAVAILABLE = "no model could be reached ({detail})"


def stop_text(outcome: Outcome, detail: str) -> str:
    """What the thread is told about a turn that did not end with an answer; empty for those that
    need no words (an answer, a card)."""
    template = STOPS.get(outcome)
    return "" if template is None else template.format(detail=detail.rstrip(".") or outcome.status)


def queued_text(ahead: int, waiting: int) -> str:
    """What a person is told whose message cannot be taken up now."""
    if waiting:
        return QUEUED_BEHIND_PENDING.format(count=waiting, s="" if waiting == 1 else "s")
    return QUEUED.format(ahead=ahead)


def when(at: float) -> str:
    """A moment for people: minutes, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def person(actor: Actor, name: str = "") -> str:
    """Who, in words: the display name on one line, with the id that cannot be changed."""
    shown = " ".join("".join(c for c in name if c.isprintable()).split())[:60]
    return f"{shown} ({actor})" if shown else str(actor)


def deciders_text(record: PendingRecord) -> str:
    """Who may decide, in words."""
    pending = record.pending
    names = [str(record.requester) if a == "requester" else a for a in pending.approvers]
    words = ", ".join(dict.fromkeys(names)) or f"{record.requester} (who asked)"
    if pending.four_eyes:
        words += f"; not {record.requester}, who asked"
    if pending.quorum > 1:
        words += f"; {pending.quorum} people must agree"
    return words


def fate_text(record: PendingRecord, *, timed: bool = True) -> str:
    """What became of a pending, in one line; empty while it is open. Not `timed`: whoever shows it
    tells the time by other means."""
    at = f", {when(record.decided_at)}" if timed and record.decided_at is not None else ""
    match record.state, record.decision:
        case "approved", Approve(scope=scope, edited_args=edited):
            how = {"once": "", "session": " for this session", "always": " from now on"}[scope]
            return f"Approved{how}{' with changes' if edited is not None else ''} by {record.decided_by}{at}"
        case "denied", Deny(feedback=feedback):
            return f"Denied by {record.decided_by}{at}" + (f": {feedback}" if feedback else "")
        case "answered", Answer(values=values):
            return f"Answered by {record.decided_by}{at}: {', '.join(values)}"
        case "expired", _:
            return f"Expired{at}. Nothing was run and nobody refused it."
        case "superseded", Supersede(by="denial"):
            return f"Closed, because another call of the same step was denied{at}. It did not run."
        case "superseded", Supersede(by=cause):
            return f"Closed by {cause}{at}. It did not run."
        case _:
            return ""


def agreed_text(record: PendingRecord) -> str:
    """Who has agreed so far to what several people decide; empty where one is enough."""
    if record.pending.kind == "question" or not record.votes:
        return ""
    return f"{len(record.votes)} of {record.pending.quorum} agree: {', '.join(record.votes)}"


def click_text(
    outcome: ClickOutcome, record: PendingRecord | None, *, still_open: int = 0, votes_missing: int = 0
) -> str:
    """The one visible answer to a click."""
    if record is None or outcome == "unknown":
        return "This request is not known here (any more). Nothing was changed."
    match outcome:
        case "resumed":
            return f"{fate_text(record)}."
        case "recorded" if votes_missing:
            people = "1 more person" if votes_missing == 1 else f"{votes_missing} more people"
            return f"Noted: you agree. {people} must agree."
        case "recorded":
            return f"{fate_text(record)}. {still_open} more of this step still open."
        case "already":
            return f"Already decided. {fate_text(record)}."
        case "expired" | "superseded":
            return fate_text(record)
        case "forbidden":
            return f"You may not decide this. Who may: {deciders_text(record)}."
        case _:
            return "That cannot be done."


def all_text(answers: Sequence[tuple[ClickOutcome, str]]) -> str:
    """The one answer to a press that was about every call of a card: (outcome, text) of each."""
    if len(answers) == 1:
        return answers[0][1]
    done = [text for outcome, text in answers if outcome in ("resumed", "recorded")]
    others = [text for outcome, text in answers if outcome not in ("resumed", "recorded")]
    words = [f"{len(done)} of {len(answers)} calls: {done[-1]}"] if done else []
    return " ".join([*words, *dict.fromkeys(others)])
