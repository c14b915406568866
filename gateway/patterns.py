"""What the log of a turn tells about the model's behaviour: whether it goes in circles. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

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
    last = _signature(replies[0])
    same = 0
    for reply in replies:
        if _signature(reply) != last:
            break
        same += 1
    if same >= stall_after:
        return Outcome.STALLED, f"the model said the same {same} times"
    counts = Counter(call_hash(call.name, call.input) for reply in replies for call in reply.calls)
    for call in replies[0].calls:
        if counts[call_hash(call.name, call.input)] > loop_limit:
            times = counts[call_hash(call.name, call.input)]
            return Outcome.LOOP_DETECTED, f"{call.name} was called {times} times with the same arguments"
    return None


def _replies_of_this_turn(log: Sequence[Message]) -> Iterator[Message]:
    """The assistant's messages since the last message of a person, newest first."""
    for message in reversed(log):
        if message.role == "assistant":
            yield message
        elif not message.kind and (message.text or not message.results):
            return


def _signature(reply: Message) -> tuple[str, tuple[str, ...]]:
    return reply.text, tuple(call_hash(call.name, call.input) for call in reply.calls)
