"""The tools that every agent has: asking people, and paging through a capped result.

They pass the gate like any other, but the default decision does not hold for them: only a rule
that names them does. An agent's own tool of the same name replaces the built-in one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, get_args

import msgspec

from gateway.answer_values import AnswerKind
from gateway.errors import ToolError
from gateway.messages import Json
from gateway.questions import Option, Question
from gateway.tools.base import CallContext, Tool

RESULT_CAP = 30_000  # characters of a tool result that enter the conversation
RESULT_HEAD, RESULT_TAIL = 24_000, 4_000
PAGE = 20_000  # characters that one read_result returns
MOST_QUESTIONS = 20  # in one call
MOST_OPTIONS = 1_000  # of one question; what no menu holds is answered by number
YES_NO = (Option(label="Yes", value="true"), Option(label="No", value="false"))
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}", re.ASCII)

_OPTIONS: Json = {
    "type": "array",
    "description": "answers to choose from; leave out for a free answer",
    "items": {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "properties": {
                    "label": {"type": "string", "minLength": 1},
                    "value": {"type": "string"},
                    "description": {"type": "string"},
                },
                "required": ["label"],
                "additionalProperties": False,
            },
        ]
    },
}
_ASKED: Json = {
    "question": {"type": "string", "minLength": 1, "description": "what to ask, in one sentence"},
    "options": _OPTIONS,
    "multi": {"type": "boolean", "default": False, "description": "several options may be chosen"},
    "min": {"type": "integer", "minimum": 0, "description": "with multi: at least so many options"},
    "max": {"type": "integer", "minimum": 1, "description": "with multi: at most so many options"},
    "allow_text": {"type": "boolean", "default": True, "description": "an own answer is welcome"},
    "kind": {
        "enum": list(get_args(AnswerKind)),
        "default": "text",
        "description": "what a free answer has to be; it is checked, dates come back as YYYY-MM-DD",
    },
}

ASK_USER_SCHEMA: Json = {
    "type": "object",
    "properties": {
        **_ASKED,
        "confirm": {
            "type": "boolean",
            "default": False,
            "description": "one answer, too, can be changed until the person presses Confirm; for what "
            "cannot be taken back. Several answers or questions are always confirmed",
        },
        "questions": {
            "type": "array",
            "description": "several questions at once, answered together as an object of values by name; "
            "instead of options and the like, question is then what they are about",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "short and unique: letters, digits, _ and -"},
                    **_ASKED,
                },
                "required": ["name", "question"],
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}

READ_RESULT_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "ref": {"type": "string", "description": "the reference that the shortened result names"},
        "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "first character"},
    },
    "required": ["ref"],
    "additionalProperties": False,
}


async def _never_runs(args: Json, context: CallContext) -> str:
    raise AssertionError("ask_user is answered by a person, not run")


ASK_USER = Tool(
    name="ask_user",
    description="Ask the person a question, or several at once, and wait for the answer.",
    input_schema=ASK_USER_SCHEMA,
    handler=_never_runs,
    system="ask_user",
)


async def _read_result(args: Json, context: CallContext) -> str:
    whole = await context.full_result(args["ref"]) if context.full_result is not None else None
    if whole is None:
        raise ToolError(f"there is no stored result {args['ref']!r}")
    offset = args.get("offset", 0)
    piece = whole[offset : offset + PAGE]
    end = offset + len(piece)
    if not piece:
        return f"[the result ends after {len(whole)} characters]"
    more = f"; go on with offset={end}" if end < len(whole) else "; this is the end"
    return f"[characters {offset} to {end} of {len(whole)}{more}]\n{piece}"


READ_RESULT = Tool(
    name="read_result",
    description="Read on in a tool result that was shortened.",
    input_schema=READ_RESULT_SCHEMA,
    handler=_read_result,
    safe=True,
    system="read_result",
)


def capped(call_id: str, text: str) -> str:
    """What enters the conversation of a long result: head, tail, size, and how to read the rest."""
    if len(text) <= RESULT_CAP:
        return text
    gap = len(text) - RESULT_HEAD - RESULT_TAIL
    note = f"[{gap} of {len(text)} characters left out; read_result(ref={call_id!r}, offset={RESULT_HEAD})]"
    return f"{text[:RESULT_HEAD]}\n\n{note}\n\n{text[-RESULT_TAIL:]}"


def read_question(args: Json) -> Question | str:
    """The question that `ask_user` was called with; a sentence for the model when no person
    could answer it."""
    if "questions" in args:
        return _several(args)
    if "question" not in args:
        return "question: is missing; give question, or questions with a name and a question each"
    return _one(args)


def _several(args: Json) -> Question | str:
    entries = args["questions"]
    defaults = {name: schema["default"] for name, schema in _ASKED.items() if "default" in schema}
    own = {"question", "questions", "confirm"}
    if stray := sorted(n for n in args.keys() - own if n not in defaults or args[n] != defaults[n]):
        return f"{stray[0]}: belongs into each of questions"
    if not 1 <= len(entries) <= MOST_QUESTIONS:
        return f"questions: there are {len(entries)}; ask 1 to {MOST_QUESTIONS} at once"
    parts: list[Question] = []
    for entry in entries:
        name = entry["name"]
        if not _NAME.fullmatch(name):
            return f"questions: {name!r} is no name; use 1 to 40 letters, digits, _ and -, a letter first"
        if name.casefold() in {part.name.casefold() for part in parts}:
            return f"questions: two are called {name!r}; give each its own name"
        part = _one(entry)
        if isinstance(part, str):
            return f"questions.{name}: {part}"
        parts.append(msgspec.structs.replace(part, name=name))
    names = ", ".join(part.name for part in parts)
    about = args.get("question") or f"{len(parts)} question{'' if len(parts) == 1 else 's'}: {names}"
    return Question(text=about, allow_text=False, parts=tuple(parts))


def _one(args: Json) -> Question | str:
    options = tuple(_option(entry) for entry in args.get("options") or ())
    kind: AnswerKind = args.get("kind", "text")
    allow_text, multi = bool(args.get("allow_text", True)), bool(args.get("multi", False)) and bool(options)
    if not args["question"].strip():
        return "question: is empty; say what to ask"
    fault = _option_fault(options) or _count_fault(args, len(options), multi=multi)
    if fault:
        return fault
    if kind == "boolean":
        if options:
            return 'options: kind = "boolean" has its own; leave options out, or kind'
        if "name" not in args:  # two buttons instead of a form
            options, allow_text = YES_NO, False
    elif not options and not allow_text:
        return "a question without options must allow a free answer; give options, or leave allow_text out"
    return Question(
        text=args["question"],
        options=options,
        multi=multi,
        allow_text=allow_text,
        kind=kind,
        min=args.get("min", 1) if multi else 1,
        max=args.get("max") if multi else None,
        confirm=bool(args.get("confirm", False)),
    )


def _option_fault(options: Sequence[Option]) -> str:
    """What is wrong with the options, empty when nothing is."""
    if len(options) > MOST_OPTIONS:
        return f"options: there are {len(options)}, at most {MOST_OPTIONS} can be offered; ask more narrowly"
    if any(not option.label.strip() or not option.result.strip() for option in options):
        return "options: one has no label; say what people choose"
    shown = [(option.label, option.result) for option in options]
    twice = next((label for place, (label, _) in enumerate(shown) if shown[place] in shown[:place]), None)
    return (
        ""
        if twice is None
        else f"options: {twice!r} is there twice; leave one out, or give each its own value"
    )


def _count_fault(args: Json, count: int, *, multi: bool) -> str:
    """What is wrong with min and max, empty when nothing is."""
    least, most = args.get("min"), args.get("max")
    if least is None and most is None:
        return ""
    if not multi:
        given = "min" if least is not None else "max"
        return f"{given}: counts options; give options and multi = true, or leave it out"
    if least is not None and least > count:
        return f"min: is {least}, but there are {count} options"
    if least is not None and most is not None and least > most:
        return f"min: is {least}, more than max, {most}"
    return ""


def _option(entry: Any) -> Option:
    if isinstance(entry, str):
        return Option(label=entry)
    return Option(
        label=entry["label"], value=entry.get("value", ""), description=entry.get("description", "")
    )
