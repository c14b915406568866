"""Questions for people: what is asked, and how what they press, type and submit is read. Pure.

An answer is always a tuple of texts: one, several with `multi`, and of several questions
`name=value` each (a name again for each of its values; `name=` alone: none of its options).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from gateway.answer_values import AnswerKind, read_value

RUN_AGAIN, TREAT_AS_DONE, GIVE_UP = "run again", "treat as done", "give up"
NONE: Final = "none"  # what people write who choose none of the options, where that is allowed

_LINE: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s*[:=]\s?(.*)", re.DOTALL | re.ASCII)
_ATTEMPT: Final = 40  # characters; what is longer and no value was not meant as one


class Option(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer that a question offers. `value` is what the model gets; empty: the label."""

    label: str
    value: str = ""
    description: str = ""

    @property
    def result(self) -> str:
        """What the model reads when this is chosen."""
        return self.value or self.label


class Question(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `ask_user` asks. `min` and `max`: how many options, with `multi`. `kind`: what an own answer
    has to be. `about` is "unknown" when the gateway itself asks after a crash, "call" when the
    call itself asks while it runs (`key`: which of its questions). `parts`: several questions
    that are answered together, each with its `name`; `text` is then what they are about. `confirm`: one
    answer can be changed until it is confirmed, like several always can."""

    text: str
    options: tuple[Option, ...] = ()
    multi: bool = False
    allow_text: bool = True
    about: Literal["", "unknown", "call"] = ""
    key: str = ""
    kind: AnswerKind = "text"
    min: int = 1
    max: int | None = None
    name: str = ""
    parts: tuple[Question, ...] = ()
    confirm: bool = False

    @property
    def confirmed(self) -> bool:
        """Whether an answer counts only when it is confirmed."""
        return self.multi or self.confirm or bool(self.parts)

    @property
    def results(self) -> tuple[str, ...]:
        """What the options stand for, in order."""
        return tuple(option.result for option in self.options)

    @property
    def labels(self) -> tuple[str, ...]:
        """The options as people see them: those that share a label with their value beside it."""
        plain = [option.label for option in self.options]
        return tuple(
            f"{option.label} ({option.result})" if plain.count(option.label) > 1 else option.label
            for option in self.options
        )

    @property
    def most(self) -> int:
        """How many options may be chosen."""
        count = len(self.options)
        return 1 if not self.multi else count if self.max is None else min(self.max, count)

    @property
    def least(self) -> int:
        """How many options must be chosen."""
        return self.min if self.multi else 1


# ---- an answer as submitted


def normal_answer(question: Question, values: Sequence[str]) -> tuple[str, ...]:
    """Labels become the values that they stand for, own answers what their kind makes of them. What
    cannot be read stays as it is: `answer_problems` names it."""
    if question.parts:
        names = _names(question)
        return pack_answers(
            {
                name: normal_answer(names[name], found) if name in names else found
                for name, found in unpack_answers(values).items()
            }
        )
    if question.about == "unknown":
        return _about_unknown(values)
    normal = [_normal(question, value) for value in values]
    return tuple(dict.fromkeys(normal)) if question.multi else tuple(normal)


def _normal(question: Question, value: str) -> str:
    plain = [option.label for option in question.options]
    for option, label in zip(question.options, question.labels, strict=True):
        if value == label or (value == option.label and plain.count(value) == 1):
            return option.result
    if value in question.results:
        return value
    try:
        return read_value(question.kind, value) if question.kind != "text" else value
    except ValueError:
        return value


def _about_unknown(values: Sequence[str]) -> tuple[str, ...]:
    """What was decided about a cut-off call; after TREAT_AS_DONE perhaps what it came to."""
    word, *rest = [value.strip() for value in values] or [""]
    return (word, *(text for text in rest if text))


def answer_problems(question: Question, values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(field, what is wrong) of a submitted answer; empty: nothing. The field is `answer`, or the name
    of one of several questions."""
    if not question.parts:
        wrong = check_answer(question, values)
        return (("answer", wrong.removeprefix("answer: ")),) if wrong else ()
    return (
        *given_problems(question, values),
        *((part.name, "is not answered") for part in missing_parts(question, values)),
    )


def given_problems(question: Question, values: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The same for several questions of which some may still be without an answer."""
    names = _names(question)
    problems = []
    for name, found in unpack_answers(values).items():
        if name not in names:
            problems.append((name, f"is none of the questions; there are: {', '.join(names)}"))
        elif wrong := check_answer(names[name], found):
            problems.append((name, wrong.removeprefix("answer: ")))
    return tuple(problems)


def missing_parts(question: Question, values: Sequence[str]) -> tuple[Question, ...]:
    """Those of several questions that have no answer yet."""
    given = unpack_answers(values)
    return tuple(part for part in question.parts if part.name not in given)


def merged_answers(
    question: Question, before: Sequence[str], given: Sequence[str], emptied: Sequence[str] = ()
) -> tuple[str, ...]:
    """What is answered of several questions, with newer answers and without those taken back."""
    answers = {**unpack_answers(before), **unpack_answers(given)}
    order = [part.name for part in question.parts if part.name in answers and part.name not in emptied]
    return pack_answers({name: answers[name] for name in order})


def _names(question: Question) -> dict[str, Question]:
    return {part.name: part for part in question.parts}


def check_answer(question: Question, values: Sequence[str]) -> str | None:
    """What is wrong with a submitted answer, in one line; None when nothing is."""
    if question.parts:
        return _parts_fault(question, values)
    if question.about == "unknown":
        return _unknown_fault(question, _about_unknown(values))
    if any(not value.strip() for value in values) or (not values and question.least > 0):
        return "answer: is empty"
    if len(values) > 1 and not question.multi:
        return "answer: only one value can be chosen"
    normal = normal_answer(question, values)
    own = [value for value in normal if value not in question.results]
    if own and not question.allow_text:
        return f"answer: {own[0]!r} is not one of the options"
    for value in own:
        try:
            read_value(question.kind, value)
        except ValueError as error:
            return f"answer: {error}"
    if question.multi and question.max is not None and len(normal) > question.max:
        return f"answer: choose at most {question.max}"
    if len(normal) < question.least and not own:  # own words may stand for several
        return f"answer: choose at least {question.least}"
    return None


def _parts_fault(question: Question, values: Sequence[str]) -> str | None:
    names = _names(question)
    if names.keys().isdisjoint(unpack_answers(values)):
        return f"answer: write a line for each question, like `name: answer`, for {', '.join(names)}"
    problems = answer_problems(question, values)
    return f"answer: {'; '.join(f'{name}: {wrong}' for name, wrong in problems)}" if problems else None


def _unknown_fault(question: Question, values: Sequence[str]) -> str | None:
    word, *result = values
    if word not in question.results:
        return f"answer: {word!r} is not one of the options" if word else "answer: is empty"
    if result and (word != TREAT_AS_DONE or len(result) > 1):
        return f"answer: only {TREAT_AS_DONE!r} takes a result, in one text"
    return None


# ---- several questions


def pack_answers(answers: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The answers to several questions as the values of one answer."""
    return tuple(
        f"{name}={value}" for name, values in answers.items() for value in (values if values else ("",))
    )


def unpack_answers(values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The values of one answer as those of several questions, by name, in order."""
    answers: dict[str, tuple[str, ...]] = {}
    for entry in values:
        name, _, value = entry.partition("=")
        answers[name] = (*answers.get(name, ()), *((value,) if value else ()))
    return answers


def read_field(part: Question, raw: str | Sequence[str]) -> tuple[str, ...] | None:
    """What a form's field says about one of several questions; None: it was left empty. A platform
    may have had room for a text only: numbers and labels choose there as well."""
    if not isinstance(raw, str):
        values = tuple(value for value in raw if value.strip())
        return normal_answer(part, values) if values or part.least == 0 else None
    words = raw.strip()
    if not words:
        return () if part.multi and part.least == 0 else None
    picked = _picked(part, words)
    return normal_answer(part, (words,)) if picked is None else picked


# ---- what was answered, in words


def answer_words(question: Question | None, values: Sequence[str]) -> str:
    """An answer for people, on one line where its texts have one."""
    if question is None or not question.parts:
        return ", ".join(values) or "none of them"
    given = unpack_answers(values)
    return "; ".join(f"{name}: {', '.join(found) or 'none of them'}" for name, found in given.items())


def answer_text(question: Question | None, values: Sequence[str]) -> str:
    """An answer for the model: one value as it is, several as a list; of several questions one JSON
    object of typed values."""
    if question is None or not question.parts:
        if len(values) == 1:
            return values[0]
        return "\n".join(f"- {value}" for value in values) or "(none of the options)"
    given = unpack_answers(values)
    entries = (f"{json.dumps(part.name)}: {_json(part, given.get(part.name, ()))}" for part in question.parts)
    return f"{{{', '.join(entries)}}}"


def _json(part: Question, values: Sequence[str]) -> str:
    if part.multi:
        return f"[{', '.join(_json_value(part, value) for value in values)}]"
    return _json_value(part, values[0]) if values else "null"


def _json_value(part: Question, value: str) -> str:
    """Numbers and booleans are JSON already; everything else is a text."""
    bare = part.kind in ("number", "integer", "boolean") and value not in part.results
    return value if bare else json.dumps(value, ensure_ascii=False)


# ---- typed answers


class TypedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a typed message means for an open question. `values` None: it is no answer. Then with a
    `fault` it was meant as one, which says how to mend it, and the question stays open; without, the
    question is cancelled and the text becomes the next turn."""

    values: tuple[str, ...] | None
    fault: str = ""


def read_typed_answer(question: Question, text: str) -> TypedAnswer:
    """Numbers and case-folded labels choose options; other text is an answer where allowed, if it is
    what the question asks for."""
    words = text.strip()
    if question.parts:
        return _typed_parts(question, words)
    if question.about == "unknown":
        return TypedAnswer(values=_typed_unknown(question, words))
    picked = _picked(question, words)
    if picked is not None:
        return _checked(question, picked)
    if not words:
        return TypedAnswer(values=None)
    if question.kind == "text":
        return TypedAnswer(values=(words,) if question.allow_text else None)
    try:
        value = read_value(question.kind, words)
    except ValueError as error:
        meant = question.allow_text and question.kind != "boolean" and _like_a_value(words)
        return TypedAnswer(values=None, fault=str(error) if meant else "")
    known = question.allow_text or value in question.results
    return TypedAnswer(values=(value,) if known else None)


def _like_a_value(words: str) -> bool:
    return len(words) <= _ATTEMPT and any(c.isdigit() for c in words)


def _checked(question: Question, values: tuple[str, ...]) -> TypedAnswer:
    wrong = check_answer(question, values)
    return TypedAnswer(values=None if wrong else values, fault=(wrong or "").removeprefix("answer: "))


def _typed_unknown(question: Question, words: str) -> tuple[str, ...] | None:
    picked = _pick(question, words)
    if picked is not None:
        return (picked,)
    word, colon, result = words.partition(":")
    told = colon and word.strip().casefold() == TREAT_AS_DONE and result.strip()
    return (TREAT_AS_DONE, result.strip()) if told else None


def _typed_parts(question: Question, words: str) -> TypedAnswer:
    """`name: value` lines; a value goes on until the next name."""
    names = {part.name.casefold(): part for part in question.parts}
    raw: dict[str, str] = {}
    current = ""
    for line in words.split("\n"):
        match = _LINE.fullmatch(line)
        if match and match[1].casefold() in names:
            current = names[match[1].casefold()].name
            raw[current] = match[2]
        elif current:
            raw[current] += f"\n{line}"
        elif line.strip():
            return TypedAnswer(values=None)
    if not raw:
        return TypedAnswer(values=None)
    read = {part.name: read_field(part, raw[part.name]) for part in question.parts if part.name in raw}
    values = pack_answers({name: found for name, found in read.items() if found is not None})
    problems = answer_problems(question, values)
    if problems:
        return TypedAnswer(values=None, fault="; ".join(f"{name}: {wrong}" for name, wrong in problems))
    return TypedAnswer(values=values)


def _picked(question: Question, words: str) -> tuple[str, ...] | None:
    """The options that a text chooses: one, with `multi` also several between commas or lines."""
    if not question.options:
        return None
    one = _pick(question, words)
    if one is not None:
        return (one,)
    if not question.multi:
        return None
    if question.least == 0 and words.casefold() == NONE:
        return ()
    several = [_pick(question, part.strip()) for part in re.split(r"[,\n]", words)]
    found = [value for value in several if value is not None]
    return tuple(dict.fromkeys(found)) if found and len(found) == len(several) else None


def _pick(question: Question, word: str) -> str | None:
    folded = word.casefold()
    matches = {
        option.result
        for option, label in zip(question.options, question.labels, strict=True)
        if folded in (option.label.casefold(), label.casefold())
    }
    if not matches and word.isdecimal() and len(word) <= 4 and 1 <= int(word) <= len(question.options):
        return question.options[int(word) - 1].result
    return matches.pop() if len(matches) == 1 else None
