"""What the gateway itself says to people, in one place. Pure; Markdown; no secret, no traceback."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from gateway.answer_values import AnswerKind
from gateway.approvals import Answer, Approve, ClickOutcome, Deny, Pending, Supersede
from gateway.messages import Actor, Json, ThreadKey, canonical_json
from gateway.outcome import Outcome
from gateway.questions import Question, answer_words, missing_parts
from gateway.store.rows import GrantRecord, PendingRecord
from gateway.store.schedule_rows import ScheduleRecord
from gateway.timetable import moment_text, timing_text
from gateway.tools.base import masked
from gateway.tools.ports import Note

STOPS: dict[Outcome, str] = {
    Outcome.REFUSED: "The model declined to answer this.",
    Outcome.DENIED: "Stopped: {detail}. The denied call was not run.",
    Outcome.MAX_TURNS: "Stopped: {detail}. Write to me to go on from here.",
    Outcome.EXHAUSTED_TOKENS: "Stopped: {detail}. Write to me to go on from here.",
    Outcome.DEADLINE: "Stopped: {detail}. Write to me to go on from here.",
    Outcome.STALLED: "Stopped: I was getting nowhere ({detail}). Try to put it another way.",
    Outcome.LOOP_DETECTED: "Stopped: I was going in circles ({detail}). Try to put it another way.",
    Outcome.CANCELLED: "Stopped ({detail}).",
    Outcome.CRASHED: (
        "Something went wrong on my side: {detail}. Your message is kept, and so is what was done: write "
        "to me (`go on` will do) and I go on from there. /new starts afresh."
    ),
}

DRAINED = "I am being restarted in the middle of this. I will go on by myself afterwards."
UNKNOWN_REPORTED = (
    "Careful: I was interrupted while {tools} was running, and it may or may not have taken effect. "
    "I went on knowing that; please check."
)
NO_ANSWER = "I have no answer to that."
QUEUED = "Noted. I am still busy with an earlier message; yours is next in line ({ahead} before it)."
QUEUED_BEHIND_PENDING = (
    "Noted. Your message is kept and comes next; the {open} above must be decided first (/pending shows "
    "what waits, /stop gives it up)."
)
SHOWN = "I have sent it to you in private."
SHOWN_ALREADY = "It is in our private conversation."
WRITE_TO_ME = "I cannot write to you in private yet. Send me a message there first, and press again."
NOT_LISTED = "You are not on the list of people that I answer. Somebody who runs me can add your id."
NOT_TAKEN_AS_ANSWER = (
    "I could not take that as your answer: {fault}. Write it again, or answer on the card; the question is "
    "still open."
)
ONE_QUESTION = "This is one question: answer it with one value, or with a list of them."
NOT_ANSWERED = "Not answered yet: {names}."
NOTHING_ANSWERED = "No answer was found in that. Write a line for each question, like `{name}: ...`."
SO_FAR = "Your answer so far: {answer}"
NOTED_AS_ANSWER = "Noted as your answer: {answer}. It counts when you press Confirm on the card."
TAKEN_AS_ANSWER = "Taken as your answer: {answer}. (Not meant as one? `/stop`, and say it again.)"
FILE_NOT_SENT = "I could not send the file {name}: {reason}."
FILE_NOT_FETCHED = "I could not fetch the file {name}: {reason}. I go on without it."
MOST_LISTED = 20  # lines of a list
CANCELLED_NOW = "Cancelled. It did not run, and the agent is told so."
WHO_HINT = "a mention or an id, as rules name people: slack:T1:U2, discord:3, telegram:4"
MAY_NOT_CANCEL = "You may not cancel this. Who may: {requester} (who asked), or whoever decides: {deciders}."
MAY_NOT_GIVE = "You may not pass this on. Who may: {deciders}."
MAY_NOT_SEE = "You may not see this one here. Who may: {deciders}, or {requester} (who asked)."
GIVEN = "Who may decide now: {deciders}."
GIVEN_TOLD = "`{code}` ({tool}) was passed on by {by}. Who may decide now: {deciders}."
FOUR_EYES = "Whoever asked may not decide this; pass it on to somebody else."
POSTED_AGAIN = "Here it is again. The older cards stay live."
ON_THE_PAGE = "It is on the page of its session."
NO_MODEL = "No model is configured here."
NOT_WAITING = "There is no request {code!r}."
PENDING_USAGE = (
    "Write `/pending` for this thread, `/pending mine` or `/pending all`; with a code `/pending show CODE`, "
    "`/pending cancel CODE`, `/pending give CODE WHO`."
)
PENDING_MORE = "`/pending show CODE` brings one here with its buttons, also to pass it on or to take it back."
GRANTS_USAGE = "Write `/grants` for what is granted here, `/grants revoke CODE` to take one back."
NOTHING_WAITS = "Nothing waits for a decision here."
NOTHING_IS_YOURS = "Nothing waits for your decision."
NOTHING_AT_ALL = "Nothing waits for anybody's decision."
NOT_ALL = "Only those who run me, and those who decide in this channel, see what waits everywhere."
NO_GRANTS = "Nothing is granted here."
SCHEDULES_USAGE = (
    "Write `/schedules` for this thread, `/schedules all` for everywhere; `/schedules cancel CODE` ends one."
)
NO_SCHEDULES = "Nothing is scheduled here."
NO_SCHEDULES_AT_ALL = "Nothing is scheduled."
NO_SUCH_SCHEDULE = "There is no schedule {code!r} here."
NOT_ALL_SCHEDULES = (
    "Only those who run me, and those who decide in this channel, see what is scheduled everywhere."
)
SCHEDULE_CANCELLED = "Cancelled: {code} is not carried out any more. What runs already is not stopped."
AGENT_MAY_NOT_CANCEL_SCHEDULE = (
    "this was made for {by}, who can take it back, as can those who decide in this channel; "
    "the person you work for now cannot"
)
MAY_NOT_CANCEL_SCHEDULE = (
    "You may not cancel this. Who may: {by}, and those who run me or decide in this channel."
)
NO_SUCH_GRANT = "There is no grant {code!r} here."
REVOKED = "Revoked: {tool} is asked about again. What runs already is not stopped."
MAY_NOT_REVOKE = "You may not revoke this. Who may: {by}, and those who run me or decide in this channel."


def stop_text(outcome: Outcome, detail: str) -> str:
    """What the thread is told about a turn that did not end with an answer; empty for those that
    need no words (an answer, a card)."""
    template = STOPS.get(outcome)
    return "" if template is None else template.format(detail=detail.rstrip(".") or outcome.status)


def queued_text(ahead: int, waiting: int) -> str:
    """What a person is told whose message cannot be taken up now."""
    if waiting:
        return QUEUED_BEHIND_PENDING.format(
            open="open request" if waiting == 1 else f"{waiting} open requests"
        )
    return QUEUED.format(ahead=ahead)


def when(at: float) -> str:
    """A moment for people: minutes, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def person(actor: Actor, name: str = "") -> str:
    """Who, in words: the display name on one line, with the id that cannot be changed."""
    shown = " ".join("".join(c for c in name if c.isprintable()).split())[:60]
    return f"{shown} ({actor})" if shown else str(actor)


def asker_text(record: PendingRecord) -> str:
    """Which agent asks, where it is not the one that people talk to; else empty."""
    return f"Asked by {record.agent}, working for {record.works_for}." if record.works_for else ""


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
            return f"Answered by {record.decided_by}{at}: {answer_words(record.pending.question, values)}"
        case "expired", _:
            return f"Expired{at}. Nothing was run and nobody refused it."
        case "superseded", Supersede(by="cancelled"):
            return f"Cancelled by {record.decided_by}{at}. It did not run, and nobody refused it."
        case "superseded", Supersede(by="denial"):
            return f"Closed, because another call of the same step was denied{at}. It did not run."
        case "superseded", Supersede(by=cause):
            return f"Closed by {cause}{at}. It did not run."
        case _:
            return ""


def drafted_text(question: Question, values: Sequence[str]) -> str:
    """What somebody is told who has answered some of several questions."""
    missing = ", ".join(part.name for part in missing_parts(question, values))
    then = NOT_ANSWERED.format(names=missing) if missing else "Press Confirm when all of it is right."
    return f"Noted: {answer_words(question, values)}. {then}" if values else then


_KIND_HINTS: dict[AnswerKind, str] = {
    "text": "",
    "number": "a number, like 12.50",
    "integer": "a whole number, like 12",
    "date": "a date, like 2026-03-31",
    "boolean": "yes or no",
}


def kind_hint(kind: AnswerKind) -> str:
    """What an own answer has to be, in words; empty where it may be anything."""
    return _KIND_HINTS[kind]


def question_hint(question: Question) -> str:
    """How much of a question is to be answered, and with what; empty where it goes without saying."""
    if not question.multi:
        return kind_hint(question.kind) if not question.options else ""
    least, most, count = question.least, question.most, len(question.options)
    if least == most:
        return f"choose {least}"
    if least > 1:
        return f"choose {least} to {most}" if most < count else f"choose at least {least}"
    some = f"choose at most {most}" if most < count else "choose all that apply"
    return f"{some}, or none" if least == 0 else some


def part_text(part: Question, values: Sequence[str] | None) -> str:
    """One of several questions on a card: its text, its options, its answer so far (None: none yet)."""
    lines = [part.text, question_hint(part)]
    for number, (option, label) in enumerate(zip(part.options, part.labels, strict=True), 1):
        lines.append(f"{number}. {label}" + (f" – {option.description}" if option.description else ""))
    lines.append("(not answered yet)" if values is None else f"→ {answer_words(part, values)}")
    return "\n".join(line for line in lines if line)


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


DECIDERS_APART = "it stands beside each call"
SEVERAL_COVERED = (
    "A call that is approved for this session, or always, is not asked about again with exactly the same "
    "arguments; nothing else is allowed."
)


def covers_text(record: PendingRecord) -> str:
    """How far an approval beyond this one call would reach; empty where there is none: for questions,
    where several decide, and for a call without a session, which is decided on the spot."""
    pending = record.pending
    if pending.kind == "question" or pending.quorum > 1 or not record.session_id:
        return ""
    what = "exactly these arguments" if pending.args else "a call without arguments"
    hidden = " (the hidden ones included)" if pending.secret and pending.args else ""
    return (
        f"Approved for this session, or always (in every session of {record.agent}), {pending.tool} is not "
        f"asked about again with {what}{hidden}, and nothing else is allowed."
    )


# ---- what the clock says


def reminder_text(records: Sequence[PendingRecord]) -> str:
    """Those of one card still wait. Never their arguments: who reads it need not be who decides."""
    first = records[0]
    wanted = "an answer" if first.pending.kind == "question" else "a decision"
    since = when(first.requested_at)
    waits = f"Still waiting for {wanted} since {since}: {_named(records)}."
    return f"{waits} Who may decide: {deciders_text(first)}."


def escalated_text(records: Sequence[PendingRecord]) -> str:
    """Others are asked as well, now that nobody has decided. The records as they are from now on."""
    first = records[0]
    nobody = f"Nobody has decided about {_named(records)} since {when(first.requested_at)}."
    return f"{nobody} I ask others too. Who may decide now: {deciders_text(first)}."


def expired_text(records: Sequence[PendingRecord]) -> str:
    """Those of one card ran out, and how to ask again."""
    first, several = records[0].pending, len(records) > 1
    ends = first.expires_at if first.expires_at is not None else first.requested_at
    after = f" after {ago(ends - first.requested_at)}"
    if first.kind == "question":
        return f"{_named(records)} expired{after} without an answer. {_ASK_AGAIN}"
    what = "The requests" if several else "The request"
    fate = "They were not run and nobody refused them." if several else _NOT_RUN
    return f"{what} for {_named(records)} expired{after}. {fate} {_ASK_AGAIN}"


_NOT_RUN = "It was not run and nobody refused it."
_ASK_AGAIN = "If it is still wanted, write to me and I ask again."


def _named(records: Sequence[PendingRecord]) -> str:
    """What these are about, on one line, each with its code where everybody may see it."""
    return ", ".join(_name(record.pending) for record in records)


def _name(pending: Pending) -> str:
    what = pending.tool
    if pending.question is not None:
        what = visible_line(pending.question.text)
    return f"`{what}`" if pending.reveal == "approvers" else f"`{what}` (code `{pending.code}`)"


# ---- what waits, and what was granted


def ago(seconds: float) -> str:
    """How long something has waited: the largest unit that fits, "3 h"."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "less than a minute"


def waits_text(record: PendingRecord, now: float) -> str:
    """Since when a request waits, and who asked."""
    return f"Asked by {record.requester}, {ago(now - record.requested_at)} ago."


def waiting_text(records: Sequence[PendingRecord], now: float, *, here: ThreadKey | None = None) -> str:
    """What waits, one line each, at most MOST_LISTED. `here`: others read along in this thread, so that
    nothing is told of other threads but that something waits there."""
    lines = [_waiting_line(record, now, here) for record in records[:MOST_LISTED]]
    return "\n".join(lines + _more(len(records)))


def _waiting_line(record: PendingRecord, now: float, here: ThreadKey | None) -> str:
    pending, elsewhere = record.pending, here is not None and record.key != here
    what = pending.question.text if pending.question is not None else pending.tool
    if pending.question is not None and elsewhere:
        what = "a question in another thread"
    waits = ago(max(0.0, now - record.requested_at))
    return f"- `{pending.code}` {what} (waits {waits}; who may decide: {deciders_text(record)})"


def _more(count: int) -> list[str]:
    return [f"- and {count - MOST_LISTED} more"] if count > MOST_LISTED else []


def grants_text(grants: Sequence[GrantRecord]) -> str:
    """What was granted, one line each, at most MOST_LISTED; secret arguments masked."""
    lines = [_grant_line(record) for record in grants[:MOST_LISTED]]
    return "\n".join(lines + _more(len(grants)))


def _grant_line(record: GrantRecord) -> str:
    grant = record.grant
    args = visible_line(canonical_json(masked(grant.args, record.secret)))
    scope = "this session" if grant.kind == "session" else f"always, {grant.agent}"
    since = when(grant.granted_at)
    return f"- `{record.code}` {grant.tool} `{args}` ({scope}; by {record.by}, {since})"


# ---- what is scheduled


def schedules_text(records: Sequence[ScheduleRecord], now: float, *, here: ThreadKey | None = None) -> str:
    """What is scheduled, one line each, at most MOST_LISTED. `here`: others read along in this thread, so
    that of other conversations nothing is told but that something is scheduled there."""
    lines = [_schedule_line(record, now, here) for record in records[:MOST_LISTED]]
    return "\n".join(lines + _more(len(records)))


def _schedule_line(record: ScheduleRecord, now: float, here: ThreadKey | None) -> str:
    elsewhere = here is not None and record.key[:3] != here[:3]
    what = "for another conversation" if elsewhere else visible_line(record.schedule.instruction)
    return f"- `{record.schedule.code}` {what} ({next_text(record, now)}; by {record.schedule.by})"


def next_text(record: ScheduleRecord, now: float) -> str:
    """How often, and when next, in words."""
    timing = record.schedule.timing
    left = f"in {ago(record.due_at - now)}" if record.due_at > now else "now"
    return f"{timing_text(timing)}, next {moment_text(record.due_at, timing.zone)}, {left}"


def moved_on_text(count: int) -> str:
    """What `/new` says of what is scheduled; empty where nothing is."""
    what = "1 schedule goes" if count == 1 else f"{count} schedules go"
    return f" {what} on here (/schedules)." if count else ""


def scheduled_opener(record: ScheduleRecord) -> str:
    """The words with which a scheduled thread begins."""
    return f"Scheduled ({record.name}): {visible_line(record.schedule.instruction)}"


MEMORY_USAGE = (
    "Write `/memory` for what is noted, `/memory forget KEY` to delete a note, `/memory forget all` for all "
    "about you, `/memory forget thread` for all of this thread."
)
FORGOT = "Forgotten: `{key}`."
NO_SUCH_NOTE = "There is no note `{key}`."
NO_NOTES = "Nothing is noted about you or here."


def notes_text(about: Sequence[Note], here: Sequence[Note], elsewhere: int) -> str:
    """What is noted about a person and in a thread. `elsewhere`: how many notes about the person may not be
    shown here."""
    private = f"{elsewhere} more about you: write `/memory` to me in private." if elsewhere else ""
    parts = [_notes_under("About you:", about), private, _notes_under("In this thread:", here)]
    said = [part for part in parts if part]
    return "\n\n".join([*said, MEMORY_USAGE]) if said else NO_NOTES


def forgot_text(count: int, *, thread: bool) -> str:
    """That notes are deleted: all about a person, or all of a thread."""
    notes = "1 note" if count == 1 else f"{count} notes"
    return f"Forgotten: {notes} {'of this thread' if thread else 'about you'}."


def _notes_under(head: str, notes: Sequence[Note]) -> str:
    if not notes:
        return ""
    shown = [f"- `{visible_line(note.key)}`: `{visible_line(note.text)}`" for note in notes[:MOST_LISTED]]
    return "\n".join([head, "", *shown, *_more(len(notes))])


def model_text(now: str, own: str, names: Sequence[str]) -> str:
    """Which model answers, and which could."""
    whose = (
        "" if now == own else f" (chosen here; the agent's own is {own}, `/model default` goes back to it)"
    )
    others = f" There are: {', '.join(names)}. `/model NAME` chooses one for this conversation."
    return f"The model here is {now}{whose}.{others if len(names) > 1 else ''}"


def chosen_model(said: str, names: Sequence[str]) -> str | None:
    """The configured name that somebody means; empty for the agent's own, None for none."""
    if said in names:
        return said
    alike = [name for name in names if name.casefold() == said.casefold()]
    if len(alike) == 1:
        return alike[0]
    return "" if said.casefold() == "default" else None


def no_such_model_text(said: str, names: Sequence[str]) -> str:
    """A name that is not configured, and those that are."""
    listed = f" There are: {', '.join(names)}, and `default` for the agent's own." if names else ""
    return f"There is no model {visible_line(said)!r}.{listed or ' No other can be chosen here.'}"


def model_now_text(name: str, *, busy: bool) -> str:
    """Somebody has chosen a model."""
    return f"The model here is {name}{' as soon as I am through with this' if busy else ' from now on'}."


def usage_text(usage: Json) -> str:
    """What the last turn has used, as a sentence to append; empty where no model was asked."""
    if not usage:
        return ""
    cached = f" ({usage['cached']:,} of them from the cache)" if usage.get("cached") else ""
    cost = f", ${usage['cost']:.4f}" if "cost" in usage else ""
    return f" The last turn: {usage['input']:,} tokens in{cached}, {usage['output']:,} out{cost}."


def visible_line(text: str) -> str:
    """Arguments as inert text on one line, at most 300 characters: no mark of Markdown ends it."""
    line = " ".join(text.replace("`", "'").split())
    return line if len(line) <= 300 else f"{line[:300]}..."


def all_text(answers: Sequence[tuple[ClickOutcome, str]]) -> str:
    """The one answer to a press that was about every call of a card: (outcome, text) of each."""
    if len(answers) == 1:
        return answers[0][1]
    done = [text for outcome, text in answers if outcome in ("resumed", "recorded")]
    others = [text for outcome, text in answers if outcome not in ("resumed", "recorded")]
    words = [f"{len(done)} of {len(answers)} calls: {done[-1]}"] if done else []
    return " ".join([*words, *dict.fromkeys(others)])
