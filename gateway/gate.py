"""The gate: rules are data; a call goes in, a decision comes out. Pure.

How a call is decided:

1. Rules that name the tool and the scope, and whose conditions all hold, apply. Of these the one
   with the most specific scope decides (number of exact parts, then number of partial globs);
   among equals, the first in file order. No rule: `default_decision`.
2. A grant turns an `ask` into an `allow` when tool and arguments are exactly those granted. It
   never lifts a deny.

What a condition does with an argument that does not fit it:

- *Missing*: satisfies nothing, except `ne` in an ask or deny rule. `null` counts as missing for
  eq, ne and in, unless the rule itself speaks of null.
- *Malformed* (another JSON type than the rule's value, NaN, a path through something that is not
  a container): never satisfies an allow rule and always satisfies an ask or deny rule, so that
  a mistake closes the gate and never opens it. `true` is not a number.

`matches` looks for the pattern anywhere in the text (`regex.search`); write `\\A...\\Z` to hold
the whole text. A pattern that is still running after REGEX_LIMIT seconds counts as malformed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from gateway.messages import Json
from gateway.patience import Escalation, Quiet

if TYPE_CHECKING:
    import regex

Verdict = Literal["allow", "ask", "deny"]
Reveal = Literal["everyone", "approvers"]
Operator = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "matches"]

REGEX_LIMIT = 0.25  # seconds for one search
_INDEX_DIGITS = 9  # longer than any list


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One test of one argument. `field` is a dot-path (`customer.address.country`, `items.0.sku`)."""

    field: str
    op: Operator
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where a call happens, or as part of a rule: where the rule holds (glob patterns)."""

    tenant: str = "*"
    environment: str = "*"
    agent: str = "*"


ANYWHERE = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. `tool` is a name or a glob. All conditions of `when` must hold.

    approvers: who may decide an ask, as written in the configuration; empty: the requester.
    notify: other threads that get the card. expires: seconds until an ask lapses, None: never.
    quorum: how many different people must agree. redact: arguments masked wherever people look. reveal:
    who sees the arguments without asking for them. remind: after so many seconds without a decision;
    escalate: who is asked then too; quiet: when neither happens.
    """

    tool: str
    decision: Verdict
    when: tuple[Condition, ...] = ()
    scope: Scope = ANYWHERE
    approvers: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    expires: float | None = None
    quorum: int = 1
    four_eyes: bool = False
    redact: tuple[str, ...] = ()
    reveal: Reveal = "everyone"
    reason: str = ""
    remind: tuple[float, ...] = ()
    escalate: Escalation | None = None
    quiet: Quiet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A stored permission given with a click: this tool with exactly these arguments.

    `args` is the complete canonical argument object; a call with one argument more, less or
    different does not match. session: only there; always: everywhere the agent runs.
    `expires_at` in Unix seconds.
    """

    id: str
    kind: Literal["session", "always"]
    tool: str
    args: Json
    agent: str
    session_id: str = ""
    granted_by: str = ""
    granted_at: float = 0.0
    expires_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the gate says, and why. `rule` names the rule (`rule 2: issue_refund`), the grant
    (`grant <id>`) or `default`. The rest is the deciding rule's, for an ask."""

    verdict: Verdict
    reason: str
    rule: str
    approvers: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    expires: float | None = None
    quorum: int = 1
    four_eyes: bool = False
    redact: tuple[str, ...] = ()
    reveal: Reveal = "everyone"
    remind: tuple[float, ...] = ()
    escalate: Escalation | None = None
    quiet: Quiet | None = None
    grant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The rules of one agent. `grants` are those that hold for the session at hand."""

    rules: tuple[Rule, ...] = ()
    default_decision: Verdict = "ask"
    grants: tuple[Grant, ...] = ()

    def evaluate(
        self,
        tool: str,
        args: Mapping[str, Any],
        scope: Scope = ANYWHERE,
        *,
        session_id: str = "",
        now: float = 0.0,
    ) -> Decision:
        """Decide one call: `args` are its canonical arguments, `now` is in Unix seconds.

        Never raises, whatever JSON the arguments are.
        """
        decision = self._by_rules(tool, args, scope)
        if decision.verdict != "ask":
            return decision
        for grant in self.grants:
            if _granted(grant, tool, args, scope, session_id, now):
                return Decision(
                    verdict="allow",
                    reason=f"granted by {grant.granted_by or 'a person'}",
                    rule=f"grant {grant.id}",
                    redact=decision.redact,
                    grant=grant.id,
                )
        return decision

    def _by_rules(self, tool: str, args: Mapping[str, Any], scope: Scope) -> Decision:
        best: tuple[int, int] = (-1, -1)
        found: tuple[int, Rule] | None = None
        for number, rule in enumerate(self.rules, start=1):
            rank = _specificity(rule.scope)
            if rank > best and _applies(rule, tool, args, scope):
                best, found = rank, (number, rule)
        if found is None:
            return Decision(verdict=self.default_decision, reason="no rule matches", rule="default")
        number, rule = found
        name = f"rule {number}: {rule.tool}"
        return Decision(
            verdict=rule.decision,
            reason=rule.reason or f"{name} says {rule.decision}",
            rule=name,
            approvers=rule.approvers,
            notify=rule.notify,
            expires=rule.expires,
            quorum=rule.quorum,
            four_eyes=rule.four_eyes,
            redact=rule.redact,
            reveal=rule.reveal,
            remind=rule.remind,
            escalate=rule.escalate,
            quiet=rule.quiet,
        )


def _granted(
    grant: Grant, tool: str, args: Mapping[str, Any], scope: Scope, session_id: str, now: float
) -> bool:
    if grant.kind == "session" and (not session_id or grant.session_id != session_id):
        return False
    if grant.expires_at is not None and grant.expires_at <= now:
        return False
    return grant.tool == tool and grant.agent == scope.agent and same_value(grant.args, args)


# Scope and tool patterns


def _glob(pattern: str, name: str) -> bool:
    return pattern == name or fnmatchcase(name, pattern)


@lru_cache(maxsize=1024)
def _specificity(scope: Scope) -> tuple[int, int]:
    """(exact parts, partial globs): the greater, the more specific."""
    parts = (scope.tenant, scope.environment, scope.agent)
    exact = sum(1 for part in parts if not any(sign in part for sign in "*?["))
    whole = sum(1 for part in parts if part == "*")
    return exact, len(parts) - exact - whole


def _applies(rule: Rule, tool: str, args: Mapping[str, Any], scope: Scope) -> bool:
    return (
        _glob(rule.tool, tool)
        and _glob(rule.scope.tenant, scope.tenant)
        and _glob(rule.scope.environment, scope.environment)
        and _glob(rule.scope.agent, scope.agent)
        and all(_satisfied(condition, args, rule.decision) for condition in rule.when)
    )


# Conditions. A test says True, False, or one of the two marks below.


@dataclass(frozen=True, slots=True)
class _Mark:
    name: str


MISSING = _Mark("missing")
MALFORMED = _Mark("malformed")
Answer = bool | _Mark


def _satisfied(condition: Condition, args: Mapping[str, Any], verdict: Verdict) -> bool:
    found = look_up(args, condition.field)
    answer: Answer = found if isinstance(found, _Mark) else _TESTS[condition.op](found, condition.value)
    if isinstance(answer, bool):
        return answer
    if verdict == "allow":
        return False
    return answer is MALFORMED or condition.op == "ne"


def look_up(args: Any, path: str) -> Any:
    """The value at a dot-path, MISSING, or MALFORMED for a path through a plain value.

    Steps are keys of objects or indexes of lists. Where a key itself contains dots, the longest
    literal key wins.
    """
    if isinstance(args, Mapping):
        return _in_object(args, path)
    if isinstance(args, list | tuple):
        step, _, rest = path.partition(".")
        if not (step.isascii() and step.isdecimal() and len(step) <= _INDEX_DIGITS):
            return MALFORMED
        if int(step) >= len(args):
            return MISSING
        return look_up(args[int(step)], rest) if rest else args[int(step)]
    return MISSING if args is None else MALFORMED


def _in_object(args: Mapping[str, Any], path: str) -> Any:
    if path in args:
        return args[path]
    steps = path.split(".")
    worst: _Mark = MISSING
    for cut in range(len(steps) - 1, 0, -1):
        key = ".".join(steps[:cut])
        if key not in args:
            continue
        found = look_up(args[key], ".".join(steps[cut:]))
        if not isinstance(found, _Mark):
            return found
        if found is MALFORMED:
            worst = MALFORMED
    return worst


def _kind(value: Any) -> str:
    """The JSON type, or "" for what is none (NaN, infinity, foreign objects)."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "number"
        case float():
            return "number" if math.isfinite(value) else ""
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
    return ""


def same_value(left: Any, right: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, but never true; NaN is nothing. Any depth."""
    waiting = [(left, right)]
    while waiting:
        one, other = waiting.pop()
        kind = _kind(one)
        if not kind or kind != _kind(other):
            return False
        if kind == "object":
            if one.keys() != other.keys():
                return False
            waiting.extend((one[key], other[key]) for key in one)
        elif kind == "array":
            if len(one) != len(other):
                return False
            waiting.extend(zip(one, other, strict=True))
        elif one != other:
            return False
    return True


def _equal(found: Any, value: Any) -> Answer:
    if value is None:
        return found is None
    if _kind(found) == _kind(value) != "":
        return same_value(found, value)
    return MISSING if found is None else MALFORMED


def _not_equal(found: Any, value: Any) -> Answer:
    answer = _equal(found, value)
    return not answer if isinstance(answer, bool) else answer


def _one_of(found: Any, value: Any) -> Answer:
    if not isinstance(value, list | tuple):
        return MALFORMED
    answers = [_equal(found, item) for item in value]
    if any(answer is True for answer in answers):
        return True
    if not answers or any(answer is False for answer in answers):
        return False
    return MISSING if found is None else MALFORMED


def _contains(found: Any, value: Any) -> Answer:
    if isinstance(found, str) and isinstance(value, str):
        return value in found
    if not isinstance(found, list | tuple):
        return MALFORMED
    answers = [_equal(item, value) for item in found]
    if any(answer is True for answer in answers):
        return True
    return MALFORMED if any(answer is MALFORMED for answer in answers) else False


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Answer]:
    def test(found: Any, value: Any) -> Answer:
        if _kind(found) != "number" or _kind(value) != "number":
            return MALFORMED
        return compare(found, value)

    return test


@lru_cache(maxsize=512)
def _pattern(text: str) -> regex.Pattern[str] | None:
    import regex  # here, because only rules with `matches` need it and it takes a while

    try:
        return regex.compile(text)
    except regex.error:
        return None


def _matches(found: Any, value: Any) -> Answer:
    pattern = _pattern(value) if isinstance(value, str) else None
    if pattern is None or not isinstance(found, str):
        return MALFORMED
    try:
        return pattern.search(found, timeout=REGEX_LIMIT) is not None
    except TimeoutError:
        return MALFORMED


_TESTS: dict[str, Callable[[Any, Any], Answer]] = {
    "eq": _equal,
    "ne": _not_equal,
    "gt": _ordered(operator.gt),
    "gte": _ordered(operator.ge),
    "lt": _ordered(operator.lt),
    "lte": _ordered(operator.le),
    "in": _one_of,
    "contains": _contains,
    "matches": _matches,
}
