"""Histories for tests of what is cut and what stays."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from gateway.errors import ModelRejected
from gateway.messages import Image, Message, Text, Thinking, ToolResult, assistant, tool_results, user
from tests.unit.loop.scene import call

TOO_LONG = ModelRejected("prompt is too long", context_too_long=True)


def said(text: str) -> Message:
    return assistant(Text(text=text))


def looked(number: int, size: int) -> list[Message]:
    """A step with one call and a result of that many characters."""
    asked = call(f"old{number}", "look", n=number)
    return [assistant(asked), tool_results([ToolResult(tool_use_id=asked.id, content="x" * size)])]


def talk(turns: int, size: int = 400) -> list[Message]:
    return [m for n in range(turns) for m in (user(f"{n} " + "q" * size), said(f"{n} " + "a" * size))]


def steps(count: int, size: int = 400) -> list[Message]:
    return [m for n in range(count) for m in looked(n, size)]


async def nobody(messages: object) -> None:
    """No model answers."""


async def somebody(messages: object) -> str:
    return "They looked around."


KINDS = st.sampled_from(["ask", "say", "look", "bulk", "two", "picture", "note", "long", "think"])
PICTURE = Image(path="s/1.png", media_type="image/png", name="chart.png")


def built(shape: Sequence[str], first: int = 0) -> list[Message]:
    """A valid history; entries from `first` on have their own ids."""
    log: list[Message] = []
    for number, kind in enumerate(shape, first):
        match kind:
            case "ask":
                log.append(user(f"question {number} " + "q" * 100))
            case "long":
                log.append(user(f"pasted {number} " + "p" * 3_000, PICTURE))
            case "note":
                log.append(Message(role="user", kind="note", content=(Text(text="note"),)))
            case "say":
                log.append(said(f"answer {number} " + "a" * 100))
            case "think":
                log.append(assistant(Thinking(text="hm"), Text(text=f"so {number}")))
            case "two":
                asked = [call(f"{number}-{n}", "look", n=n) for n in range(2)]
                results = [ToolResult(tool_use_id=a.id, content=f"two {number}") for a in asked]
                log += [assistant(Text(text="both"), *asked), tool_results(results)]
            case "picture":
                shown = ToolResult(tool_use_id=f"{number}", content="", parts=(PICTURE,))
                log += [assistant(call(f"{number}", "look")), tool_results([shown])]
            case _:
                log += looked(number, 3_000 if kind == "bulk" else 20)
    return log
