"""What the log of a turn tells about the model's behaviour: whether it goes in circles. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile

from gateway.gate import same_value
from gateway.messages import Message, call_hash
from gateway.outcome import Outcome


def in_circles(log: Sequence[Message], stall_after: int, loop_limit: int) -> tuple[Outcome, str] | None:
    """Whether the last reply of the log shows a turn that gets nowhere.

    stalled: the same text and calls for `stall_after` replies in a row. loop_detected: one
    identical call (name and arguments) more than `loop_limit` times in this turn.
    """
    replies = list(_replies_of_this_turn(log))
    if not replies:
        return None
    newest = replies[0]
    same = sum(1 for _ in takewhile(lambda reply: _alike(reply, newest), replies))
    if same >= stall_after:
        return Outcome.STALLED, f"the model said the same {same} times"
    if sum(len(reply.calls) for reply in replies) <= loop_limit:
        return None
    counts = Counter(call_hash(call.name, call.input) for reply in replies for call in reply.calls)
    for call in newest.calls:
        times = counts[call_hash(call.name, call.input)]
        if times > loop_limit:
            return Outcome.LOOP_DETECTED, f"{call.name} was called {times} times with the same arguments"
    return None


def _replies_of_this_turn(log: Sequence[Message]) -> Iterator[Message]:
    """The assistant's messages since the last message of a person, newest first."""
    for message in reversed(log):
        if message.role == "assistant":
            yield message
        elif not message.kind and (message.text or not message.results):
            return


def _alike(one: Message, other: Message) -> bool:
    """The same text and the same calls, whatever their ids."""
    if one is other:
        return True
    calls, others = one.calls, other.calls
    return (
        one.text == other.text
        and len(calls) == len(others)
        and all(a.name == b.name and same_value(a.input, b.input) for a, b in zip(calls, others, strict=True))
    )
