"""What a model reads about people's decisions: one table, and nothing else says it. Pure.

Every entry says something different, so that a model never takes one thing for another: what nobody
refused is never told as a refusal, and what did not run never as something that did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from gateway.messages import Json, canonical_json

Case = Literal[
    "approved",
    "edited",
    "denied",
    "denied_with_feedback",
    "denied_by_rule",
    "sibling_denied",
    "request_expired",
    "question_expired",
    "closed_by_stop",
    "closed_by_new",
    "closed_by_message",
    "closed_otherwise",
    "request_cancelled",
    "question_cancelled",
    "stopped",
    "broke_off",
    "unknown",
    "unknown_run_again",
    "unknown_done",
    "unknown_done_with_result",
    "unknown_given_up",
]

READS: Final[Mapping[Case, str]] = {
    # What a person approved as it was asked is told by its result alone.
    "approved": "",
    "edited": "[{by} approved this call with changed arguments. Changed: {changes}]",
    "denied": "denied by {by}",
    "denied_with_feedback": "denied by {by}: {feedback}",
    "denied_by_rule": "denied: {reason}",
    "sibling_denied": "skipped: another call of the same step was denied, so this one did not run.",
    "request_expired": (
        "not run: the approval request expired{after} before anybody answered. The tool did not run and "
        "no person refused it; ask again only if the user still wants it."
    ),
    "question_expired": (
        "not answered: the question expired{after} before anybody answered. No person refused to "
        "answer; ask again only if the user still wants it."
    ),
    "closed_by_stop": (
        "not run: the request was closed by /stop before anybody decided. Nobody refused it; the user "
        "wanted everything to stop."
    ),
    "closed_by_new": (
        "not run: the request was closed by /new before anybody decided. Nobody refused it; the user has "
        "begun another conversation."
    ),
    "closed_by_message": (
        "not run: the request was closed by a newer message before anybody decided. Nobody refused it; "
        "go by what the user has written since."
    ),
    "closed_otherwise": (
        "not run: the request was closed by {cause} before anybody decided. Nobody refused it."
    ),
    "request_cancelled": (
        "cancelled: {by} took this request back before anybody decided. It did not run, and nobody "
        "refused it."
    ),
    "question_cancelled": "cancelled: {by} took this question back before anybody answered it.",
    "stopped": "stopped by user: this call was not finished.",
    "broke_off": "not run: the turn broke off before this call began. Nobody refused it.",
    "unknown": "interrupted, outcome unknown: the call had started and may or may not have run.",
    "unknown_run_again": (
        "[this call had begun before and was interrupted, nobody knows how far it came; {by} had it "
        "run again]"
    ),
    "unknown_done": "interrupted, but {by} has checked: treat this call as done.",
    "unknown_done_with_result": (
        "interrupted, but {by} has checked: the call took effect. What it came to, in their words:\n{result}"
    ),
    "unknown_given_up": ("interrupted, outcome unknown: a person looked and decided to go on without it."),
}

SKIPPED: Final = READS["sibling_denied"]
STOPPED: Final = READS["stopped"]
BROKE_OFF: Final = READS["broke_off"]
INTERRUPTED: Final = READS["unknown"]
GAVE_UP: Final = READS["unknown_given_up"]

_CLOSED_BY: Final[Mapping[str, Case]] = {
    "denial": "sibling_denied",
    "/stop": "closed_by_stop",
    "/new": "closed_by_new",
    "a newer message": "closed_by_message",
}


def reads(case: Case, **words: str) -> str:
    """The text of a case. `words` are the names in its braces."""
    return READS[case].format(**words)


def closed(cause: str, thing: Literal["request", "question"], by: str) -> str:
    """What is read of a request or question that was closed before anybody decided."""
    if cause == "cancelled":
        return reads("request_cancelled" if thing == "request" else "question_cancelled", by=by)
    return reads(_CLOSED_BY.get(cause, "closed_otherwise"), cause=cause)


def expired(thing: Literal["request", "question"], seconds: float | None) -> str:
    """What is read of one that ran out, `seconds` after it was asked where that is known."""
    minutes = 0 if seconds is None else round(seconds / 60)
    after = f" after {minutes} minute{'' if minutes == 1 else 's'}" if minutes > 0 else ""
    return reads("request_expired" if thing == "request" else "question_expired", after=after)


# ---- what came of a subagent

_NO_SUBAGENT: Final[Mapping[str, str]] = {
    "depth": "not run: {key} is {limit}, and this would be a level more. Do it yourself.",
    "children": "not run: {key} is {limit}, and so many are at work already. Call it when they are done.",
    "calls": "not run: {key} is {limit}, and so many calls of this turn are used up. Go on without it.",
    "rate": "not run: {key} is {limit} in a minute, and those are used up. Go on without it, or later.",
    "session": "not run: there is no session {session!r} of yours with {agent}. Leave it out to begin anew.",
    "busy": "not run: the session {session} is at work for another call. Call it when that is done.",
}


def subagent_refused(why: str, *, key: str, limit: int, agent: str, session: str) -> str:
    """What is read of a call of a subagent that a limit forbids; `key` names it in the configuration."""
    return _NO_SUBAGENT[why].format(key=key, limit=limit, agent=agent, session=session)


def subagent_ended(agent: str, status: str, detail: str, text: str) -> str:
    """What is read of a subagent that came to no answer: how it ended, and what words there are."""
    why = f" ({detail})" if detail else ""
    said = f" What it has said:\n{text}" if text else ""
    return f"{agent} ended without an answer: {status}{why}.{said}"


def with_session(text: str, session: str) -> str:
    """A subagent's words, with the session in which it can be asked to go on."""
    return f"{text or '(no words)'}\n\n[session: {session}]"


# ---- what a person changed

Path = tuple[str, ...]


def edit_note(proposed: Json, edited: Json, secret: Sequence[str], by: str) -> str:
    """Names exactly what was changed, down to the nested value, as dotted paths; of what `secret`
    covers (names or dotted paths, see tools.base.masked) only that it was changed."""
    covered = [_covered(name, proposed, edited) for name in secret]
    changes = [
        f"{'.'.join(path)}: (not shown)"
        if any(_overlap(path, hidden) for hidden in covered)
        else f"{'.'.join(path)}: {before} -> {after}"
        for path, before, after in _changes((), proposed, edited)
    ]
    return reads("edited", by=by, changes="; ".join(changes) or "nothing")


def _changes(path: Path, before: object, after: object) -> Iterator[tuple[Path, str, str]]:
    """(path, JSON before, JSON after) of every value that differs, as deep as both sides go."""
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _inside(path, before, after, sorted(before.keys() | after.keys()))
    elif isinstance(before, list) and isinstance(after, list):
        places = [str(place) for place in range(max(len(before), len(after)))]
        old, new = (dict(zip(places, side, strict=False)) for side in (before, after))
        yield from _inside(path, old, new, places)
    elif (old_text := canonical_json(before)) != (new_text := canonical_json(after)):
        yield path, old_text, new_text


def _inside(path: Path, before: Json, after: Json, names: Sequence[str]) -> Iterator[tuple[Path, str, str]]:
    for name in names:
        if name not in before:
            yield (*path, name), "(absent)", canonical_json(after[name])
        elif name not in after:
            yield (*path, name), canonical_json(before[name]), "(absent)"
        else:
            yield from _changes((*path, name), before[name], after[name])


def _covered(name: str, *sides: Json) -> Path:
    """The path that a secret's name hides: as far as it leads through objects on both sides."""
    if any(name in side for side in sides):
        return (name,)
    steps = tuple(name.split("."))
    reach = len(steps)
    for side in sides:
        node: object = side
        for depth, step in enumerate(steps):
            if not isinstance(node, dict):
                reach = min(reach, depth)
                break
            node = node.get(step, {})
    return steps[: max(reach, 1)]


def _overlap(one: Path, other: Path) -> bool:
    """Whether one of two paths leads to or through the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
