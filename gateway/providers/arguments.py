"""Tool arguments as models write them: text that should be a JSON object. Pure.

Nothing is repaired. Half an object that a lenient reader completes looks valid and would run.
"""

from __future__ import annotations

import json
from typing import Any

from gateway.messages import Json

CUT_AT_LIMIT = "the reply was cut at the output limit, so this call may be incomplete; it was not run"


def parse_arguments(text: str) -> tuple[Json, str | None]:
    """(arguments, what is wrong with them). Nothing at all means no arguments.

    What cannot be read yields ({}, reason): stored arguments are always a JSON object.
    """
    if not text.strip():
        return {}, None
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return {}, f"the arguments are not valid JSON: {error}"
    if "\\ud" in text or "\\uD" in text:
        # Escapes can spell half a character, which no store and no wire can hold.
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return {}, "the arguments hold half of a surrogate pair"
    return check_arguments(value)


def check_arguments(value: Any) -> tuple[Json, str | None]:
    """The same verdict for arguments that arrive parsed already."""
    if isinstance(value, dict):
        return value, None
    return {}, f"the arguments must be a JSON object, not {_kind(value)}"


def _no_constant(name: str) -> None:
    # Python reads NaN and Infinity; JSON has neither, and canonical_json refuses them later.
    raise ValueError(f"{name} is not JSON")


def _kind(value: Any) -> str:
    kinds = {type(None): "null", bool: "a boolean", str: "a string", list: "an array"}
    return kinds.get(type(value), "a number")
