"""The fixed script that every implementation plays, so that all do the same work."""

from __future__ import annotations

import collections
import itertools
import os
import time
from typing import Any

ALLOWED_TOOL = "lookup"
GATED_TOOL = "delete_file"
SYSTEM_PROMPT = "You are a helpful assistant."
FINAL_TEXT = "final answer: ".ljust(240, "f")
TOOL_RESULT = "result: ".ljust(80, "r")
TOOL_NOTE = "n" * 40
COUNTS: collections.Counter[str] = collections.Counter()  # tool executions in this process
CONTEXT = {"last": 0}  # messages handed to the model at its last call

_ids = itertools.count()
_id_base = f"{os.getpid():x}{time.time_ns() & 0xFFFFFF:06x}"


def user_text(kind: str, number: int) -> str:
    """kind: PLAIN, TOOLS or PAUSE. Always 120 characters."""
    return f"{kind} request {number:06d} ".ljust(120, "u")


def _call(name: str) -> dict[str, Any]:
    number = next(_ids)
    return {
        "id": f"call_{_id_base}_{number:07d}",
        "name": name,
        "args": {"key": f"key-{number:07d}", "note": TOOL_NOTE},
    }


def script_reply(role: str, text: str) -> list[dict[str, Any]] | None:
    """The stub model's brain: the tool calls to ask for, or None for FINAL_TEXT.

    role and text are those of the last message in the prompt (`user` or `tool`).
    """
    if role == "user":
        if text.startswith("TOOLS"):
            return [_call(ALLOWED_TOOL) for _ in range(3)]
        if text.startswith("PAUSE"):
            return [_call(ALLOWED_TOOL), _call(GATED_TOOL)]
    return None


def seen_context(messages: int) -> None:
    """The stub model says how many messages it was given."""
    CONTEXT["last"] = messages


def run_tool(name: str) -> str:
    """What every tool does."""
    COUNTS[name] += 1
    return TOOL_RESULT


def check(text: str) -> None:
    """Raises AssertionError unless a turn ended with the script's answer."""
    if text != FINAL_TEXT:
        raise AssertionError(f"wrong final text: {text!r:.200}")
