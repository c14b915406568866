"""The part of the bridge that is about questions: how they are drawn, and what a press on one means.

Choices on such a card (the last part of a button's data):
    <n>  option n, from 0      c  confirm what is chosen or answered      t  own words (a form)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from channels.base import (
    Button,
    CardField,
    Choice,
    FieldKind,
    Form,
    FormField,
    InboundPress,
    Tone,
    pack_press,
    unpack_press,
)
from gateway.answer_values import AnswerKind
from gateway.approvals import Answer
from gateway.notices import NOT_ANSWERED, NOTHING_ANSWERED, SO_FAR, kind_hint, part_text, question_hint
from gateway.questions import (
    TREAT_AS_DONE,
    Question,
    answer_words,
    missing_parts,
    pack_answers,
    read_field,
    unpack_answers,
)
from gateway.store.rows import PendingRecord

CONFIRM, TEXT = "c", "t"
ANSWER_FIELD, CHOSEN_FIELD = "answer", "chosen"
OWN_WORDS: Final = ".other"  # after the name of a question that has options: its field for other answers

_FIELDS: Final[dict[AnswerKind, FieldKind]] = {
    "text": "text",
    "number": "number",
    "integer": "integer",
    "date": "date",
    "boolean": "boolean",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Toggle:
    """One option of a question with several answers, switched on or off."""

    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """What is chosen instead of all that was before, to be confirmed."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Answers to some of several questions, to be confirmed: `name=value` each. `emptied`: the names of
    those whose answers were taken back."""

    values: tuple[str, ...]
    emptied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A press that makes no sense, and what to tell the person."""

    text: str
    field: str = ""


# ---- drawing


def summary(record: PendingRecord, question: Question) -> str:
    """What is asked, how much of it has to be answered, and an answer so far that no option shows."""
    own = [value for value in record.votes if value not in question.results]
    told = record.votes if question.confirm else own
    shown = bool(told) and record.state == "open" and question.confirmed and not question.parts
    so_far = SO_FAR.format(answer=answer_words(question, told)) if shown else ""
    return "\n".join(filter(None, (question.text, question_hint(question), so_far)))


def fields(record: PendingRecord, question: Question) -> tuple[CardField, ...]:
    """Several questions, each with its options and its answer so far."""
    values = record.decision.values if isinstance(record.decision, Answer) else record.votes
    given = unpack_answers(values)
    return tuple(
        CardField(name=part.name, value=part_text(part, given.get(part.name))) for part in question.parts
    )


def buttons(record: PendingRecord, question: Question) -> tuple[Button, ...]:
    """The controls beside the options."""

    def button(label: str, choice: str, tone: Tone = "plain") -> Button:
        return Button(label=label, data=pack_press(record.id, choice), tone=tone)

    if question.about == "unknown":
        return (button("Done, with result…", TEXT),)
    if question.parts:
        if missing_parts(question, record.votes):
            return (button("Answer…", TEXT, "primary"),)
        return (button("Confirm", CONFIRM, "primary"), button("Change…", TEXT))
    ready = question.multi or (question.confirm and record.votes)
    confirm = (button("Confirm", CONFIRM, "primary"),) if ready else ()
    own = (button("Other…" if question.options else "Answer…", TEXT),) if question.allow_text else ()
    return confirm + own


def choices(record: PendingRecord, question: Question) -> tuple[Choice, ...]:
    """The options, those with the same label told apart."""
    return tuple(
        Choice(
            label=f"✓ {label}" if question.confirm and not question.multi and chosen else label,
            data=pack_press(record.id, str(index)),
            description=option.description,
            chosen=chosen,
        )
        for index, (option, label) in enumerate(zip(question.options, question.labels, strict=True))
        for chosen in (option.result in record.votes,)
    )


def forms(record: PendingRecord, question: Question) -> tuple[Form, ...]:
    """The one form of a question, where it has one."""
    data = pack_press(record.id, TEXT)
    if question.about == "unknown":
        result = FormField(
            name=ANSWER_FIELD,
            label="What did the call come to?",
            kind="long_text",
            hint="the agent reads it as the result; leave it empty when there is none",
        )
        return (Form(data=data, title=f"Treat {record.pending.tool} as done", fields=(result,)),)
    if question.parts:
        given = unpack_answers(record.votes)
        inputs = (field for part in question.parts for field in _inputs(part, given.get(part.name, ())))
        return (Form(data=data, title="Your answers", fields=tuple(inputs)),)
    if not question.allow_text:
        return ()
    answer = FormField(
        name=ANSWER_FIELD,
        label=question.text,
        kind="long_text" if question.kind == "text" else _FIELDS[question.kind],
        value=", ".join(value for value in record.votes if value not in question.results),
        required=True,
        hint=kind_hint(question.kind),
    )
    return (Form(data=data, title="Your answer", fields=(answer,)),)


def _inputs(part: Question, values: Sequence[str]) -> tuple[FormField, ...]:
    """The inputs of one of several questions, filled with its answer so far."""
    if not part.options:
        return (_own_input(part, part.name, part.text, values, required=True),)
    labels = dict(zip(part.results, part.labels, strict=True))
    chosen = [labels[value] for value in values if value in labels]
    menu = FormField(
        name=part.name,
        label=part.text,
        kind="multi" if part.multi else "select",
        value="\n".join(chosen),
        required=part.least > 0 and not part.allow_text,
        options=part.labels,
        hint=question_hint(part),
    )
    if not part.allow_text:
        return (menu,)
    own = [value for value in values if value not in labels]
    name, label = f"{part.name}{OWN_WORDS}", f"{part.name}: or something else"
    return (menu, _own_input(part, name, label, own, required=False))


def _own_input(part: Question, name: str, label: str, values: Sequence[str], *, required: bool) -> FormField:
    return FormField(
        name=name,
        label=label,
        kind=_FIELDS[part.kind],
        value=", ".join(values),
        required=required,
        hint=kind_hint(part.kind),
    )


# ---- reading


Meaning = Answer | Toggle | Picked | Draft | Bad


def read_answer(choice: str, press: InboundPress, question: Question, record: PendingRecord) -> Meaning:
    """What a press on a question's card means."""
    if question.about == "unknown" and choice == TEXT:
        result = text_of(press, ANSWER_FIELD).strip()
        return Answer(values=(TREAT_AS_DONE, result) if result else (TREAT_AS_DONE,))
    if question.parts:
        return _read_parts(choice, press, question, record)
    if choice == TEXT and question.allow_text:
        return _read_own(press, question, record)
    if choice == CONFIRM and question.confirmed:
        chosen = _chosen(press, question, record)
        return Answer(values=chosen) if chosen or not question.least else Bad(text="Nothing is chosen yet.")
    if choice.isdecimal() and int(choice) < len(question.options):
        value = question.options[int(choice)].result
        if question.multi:
            return Toggle(value=value)
        return Picked(values=(value,)) if question.confirm else Answer(values=(value,))
    return Bad(text="This button is not one of this question's.")


def _read_own(press: InboundPress, question: Question, record: PendingRecord) -> Meaning:
    """Own words: the answer, or with what is chosen already something to be confirmed."""
    text = text_of(press, ANSWER_FIELD).strip()
    if not text:
        return Bad(text="The answer is empty.", field=ANSWER_FIELD)
    if not question.confirmed:
        return Answer(values=(text,))
    options = [result for result in question.results if result in record.votes] if question.multi else []
    return Picked(values=(*options, text))


def _chosen(press: InboundPress, question: Question, record: PendingRecord) -> tuple[str, ...]:
    """What is chosen, the options in their order, then own words."""
    picked = _picked(press, question)
    options = record.votes if picked is None else picked
    own = [value for value in record.votes if value not in question.results]
    return (*(result for result in question.results if result in options), *own)


def _read_parts(
    choice: str, press: InboundPress, question: Question, record: PendingRecord
) -> Answer | Draft | Bad:
    if choice == CONFIRM:
        missing = missing_parts(question, record.votes)
        names = ", ".join(part.name for part in missing)
        return Bad(text=NOT_ANSWERED.format(names=names)) if missing else Answer(values=record.votes)
    if choice != TEXT:
        return Bad(text="This button is not one of this question's.")
    given: dict[str, tuple[str, ...]] = {}
    emptied: list[str] = []
    for part in question.parts:
        own = f"{part.name}{OWN_WORDS}"
        if part.name not in press.values and own not in press.values:
            continue
        words = text_of(press, own).strip()
        found = read_field(part, words or press.values.get(part.name, ""))
        if found is None:
            emptied.append(part.name)
        else:
            given[part.name] = found
    if not given and not emptied:
        return Bad(text=NOTHING_ANSWERED.format(name=question.parts[0].name))
    return Draft(values=pack_answers(given), emptied=tuple(emptied))


def _picked(press: InboundPress, question: Question) -> list[str] | None:
    """What is chosen in a control that reports all of it at once; None without one."""
    if CHOSEN_FIELD not in press.values:
        return None
    data = press.values[CHOSEN_FIELD]
    own = unpack_press(press.data)
    places = [unpack_press(d) for d in ((data,) if isinstance(data, str) else data)]
    numbers = [int(n) for id_, n in filter(None, places) if own and id_ == own[0] and n.isdecimal()]
    return [question.options[n].result for n in numbers if n < len(question.options)]


def text_of(press: InboundPress, name: str) -> str:
    """One field of a submitted form as text; empty where it is not there."""
    value = press.values.get(name, "")
    return value if isinstance(value, str) else " ".join(value)
