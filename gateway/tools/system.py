"""The tools that every agent has: asking people, and paging through a capped result.

They pass the gate like any other, but the default decision does not hold for them: only a rule
that names them does. An agent's own tool of the same name replaces the built-in one.
"""

from __future__ import annotations

from typing import Any

from gateway.approvals import Option, Question
from gateway.messages import Json
from gateway.tools.base import CallContext, Tool

RESULT_CAP = 30_000  # characters of a tool result that enter the conversation
RESULT_HEAD, RESULT_TAIL = 24_000, 4_000
PAGE = 20_000  # characters that one read_result returns

ASK_USER_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1, "description": "what to ask, in one sentence"},
        "options": {
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
        },
        "multi": {"type": "boolean", "default": False, "description": "several options may be chosen"},
        "allow_text": {"type": "boolean", "default": True, "description": "an own answer is welcome"},
    },
    "required": ["question"],
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
    description="Ask the person a question and wait for the answer.",
    input_schema=ASK_USER_SCHEMA,
    handler=_never_runs,
    system="ask_user",
)


async def _read_result(args: Json, context: CallContext) -> str:
    whole = await context.full_result(args["ref"]) if context.full_result is not None else None
    if whole is None:
        return f"there is no stored result {args['ref']!r}"
    offset = args.get("offset", 0)
    piece = whole[offset : offset + PAGE]
    end = offset + len(piece)
    return f"[characters {offset} to {end} of {len(whole)}]\n{piece}"


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
    options = tuple(_option(entry) for entry in args.get("options") or ())
    if not options and not args.get("allow_text", True):
        return "a question without options must allow a free answer"
    return Question(
        text=args["question"],
        options=options,
        multi=bool(args.get("multi", False)) and bool(options),
        allow_text=bool(args.get("allow_text", True)),
    )


def _option(entry: Any) -> Option:
    if isinstance(entry, str):
        return Option(label=entry)
    return Option(
        label=entry["label"], value=entry.get("value", ""), description=entry.get("description", "")
    )
