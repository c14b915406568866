"""The gate: operators, dot-paths, order, specificity, grants, and what must hold for any input."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.gate import (
    MALFORMED,
    MISSING,
    Condition,
    Decision,
    Gate,
    Grant,
    Operator,
    Rule,
    Scope,
    Verdict,
    look_up,
    same_value,
)

NAN = float("nan")
PLACE = Scope(tenant="acme", environment="production", agent="desk")
LENIENCY = {"deny": 0, "ask": 1, "allow": 2}


def one_rule(decision: Verdict, field: str, op: Operator, value: Any) -> Gate:
    """A gate whose default differs from the rule's decision, so that the verdict tells whether it held."""
    rule = Rule(tool="pay", decision=decision, when=(Condition(field=field, op=op, value=value),))
    return Gate(rules=(rule,), default_decision="deny" if decision == "allow" else "allow")


def holds(decision: Verdict, field: str, op: Operator, value: Any, args: dict[str, Any]) -> bool:
    return one_rule(decision, field, op, value).evaluate("pay", args).verdict == decision


# Operators: (op, rule's value, arguments that satisfy, arguments that do not, malformed arguments)

OPERATORS: list[tuple[Operator, Any, list[Any], list[Any], list[Any]]] = [
    ("eq", 20, [20, 20.0], [21, -20], ["20", True, NAN, [20], {}]),
    ("eq", "eu", ["eu"], ["us", "EU", ""], [1, False, ["eu"]]),
    ("eq", True, [True], [False], [1, "true", [True]]),
    ("eq", [1, {"a": 2}], [[1, {"a": 2.0}]], [[1], [1, {"a": True}], []], ["x", 1, {"a": 2}]),
    ("eq", None, [None], [0, "", False, [], "x"], []),
    ("ne", "eu", ["us"], ["eu"], [1, True, ["us"]]),
    ("ne", 1, [2], [1, 1.0], [True, "1", NAN]),
    ("ne", None, [0, "", "x"], [None], []),
    ("gt", 500, [501, 500.01, 10**400], [500, -1], ["501", True, NAN, float("inf"), None, [501], {}]),
    ("gte", 500, [500, 501], [499.99], ["500", True, NAN, None]),
    ("lt", 500, [499, 1e-9], [500, 501], ["499", False, NAN, None, float("-inf")]),
    ("lte", 20, [20, 0, -5], [20.01], ["20", True, NAN, None, []]),
    ("in", ["eu", "us"], ["eu", "us"], ["de", ""], [1, True, ["eu"], {}]),
    ("in", [1, 2], [1, 2.0], [3], [True, "1", NAN]),
    ("in", [None, "eu"], [None, "eu"], ["us"], []),
    ("in", [], [], ["eu", 1, None], []),
    ("contains", "ab", ["cab", "ab", ["x", "ab"]], ["a", "", [], ["abc"]], [1, None, True, {"ab": 1}, [1]]),
    ("contains", 3, [[1, 3], [3.0]], [[], [1]], ["3", 3, [True], ["3"], [NAN]]),
    ("matches", r"\A[a-z]+\Z", ["abc"], ["ABC", "abc\n", ""], [1, True, None, ["abc"], {}]),
    ("matches", "evil", ["an evil plan"], ["good", "EVIL"], [0, None]),
]


def cases(column: int) -> list[Any]:
    return [
        pytest.param(row[0], row[1], found, id=f"{row[0]}-{row[1]!r}-{str(found)[:12]}")
        for row in OPERATORS
        for found in row[column]
    ]


@pytest.mark.parametrize("decision", ["allow", "ask", "deny"])
@pytest.mark.parametrize(("op", "value", "found"), cases(2))
def test_a_fitting_argument_satisfies(op: Operator, value: Any, found: Any, decision: Verdict) -> None:
    assert holds(decision, "x", op, value, {"x": found})


@pytest.mark.parametrize("decision", ["allow", "ask", "deny"])
@pytest.mark.parametrize(("op", "value", "found"), cases(3))
def test_a_well_formed_other_argument_does_not_satisfy(
    op: Operator, value: Any, found: Any, decision: Verdict
) -> None:
    assert not holds(decision, "x", op, value, {"x": found})


@pytest.mark.parametrize(("op", "value", "found"), cases(4))
def test_a_malformed_argument_closes_the_gate_and_never_opens_it(
    op: Operator, value: Any, found: Any
) -> None:
    assert not holds("allow", "x", op, value, {"x": found})
    assert holds("ask", "x", op, value, {"x": found})
    assert holds("deny", "x", op, value, {"x": found})


@pytest.mark.parametrize(("op", "value"), [(row[0], row[1]) for row in OPERATORS])
def test_a_missing_argument_satisfies_only_ne_and_never_in_an_allow_rule(op: Operator, value: Any) -> None:
    assert not holds("allow", "x", op, value, {"y": 1})
    assert holds("ask", "x", op, value, {"y": 1}) is (op == "ne")
    assert holds("deny", "x", op, value, {}) is (op == "ne")


@pytest.mark.parametrize("op", ["eq", "ne", "in"])
def test_null_counts_as_missing_where_the_rule_does_not_speak_of_null(op: Operator) -> None:
    value: Any = ["eu"] if op == "in" else "eu"
    assert not holds("allow", "x", op, value, {"x": None})
    assert holds("deny", "x", op, value, {"x": None}) is (op == "ne")


@pytest.mark.parametrize(
    ("op", "value"), [("gt", "500"), ("lte", True), ("in", "eu"), ("matches", 3), ("matches", "(unclosed")]
)
def test_a_rule_whose_own_value_does_not_fit_its_operator_fails_closed(op: Operator, value: Any) -> None:
    assert not holds("allow", "x", op, value, {"x": "eu"})
    assert holds("deny", "x", op, value, {"x": "eu"})


def test_a_pattern_that_runs_away_counts_as_malformed() -> None:
    slow, text = r"(?=.*a)(a|a)*\Z", "a" * 60 + "!a"
    assert not holds("allow", "x", "matches", slow, {"x": text})
    assert holds("deny", "x", "matches", slow, {"x": text})


def test_all_conditions_of_a_rule_must_hold() -> None:
    rule = Rule(
        tool="pay",
        decision="allow",
        when=(Condition(field="amount", op="lte", value=20), Condition(field="country", op="eq", value="DE")),
    )
    gate = Gate(rules=(rule,))
    assert gate.evaluate("pay", {"amount": 5, "country": "DE"}).verdict == "allow"
    assert gate.evaluate("pay", {"amount": 5, "country": "FR"}).verdict == "ask"
    assert gate.evaluate("pay", {"amount": 50, "country": "DE"}).verdict == "ask"


# Dot-paths


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("amount", 7),
        ("customer.address.country", "DE"),
        ("items.0.sku", "A"),
        ("items.1.tags.1", "cold"),
        ("items", [{"sku": "A"}, {"sku": "B", "tags": ["x", "cold"]}]),
        ("file.name", "literal key"),
        ("deep.er.key", "under a literal key"),
        ("both.a", 1),
        ("nothing", None),
        ("0", "a key that looks like an index"),
        ("customer.address.zip", MISSING),
        ("items.2.sku", MISSING),
        ("nothing.at.all", MISSING),
        ("", MISSING),
        ("customer.", MISSING),
        ("amount.currency", MALFORMED),
        ("items.sku", MALFORMED),
        ("items.-1", MALFORMED),
        ("items.٠", MALFORMED),
        ("items." + "9" * 5000, MALFORMED),
    ],
)
def test_a_dot_path_finds_what_it_names(path: str, found: Any) -> None:
    args = {
        "amount": 7,
        "customer": {"address": {"country": "DE"}},
        "items": [{"sku": "A"}, {"sku": "B", "tags": ["x", "cold"]}],
        "file.name": "literal key",
        "file": {"name": "not this one"},
        "deep.er": {"key": "under a literal key"},
        "deep": {"er": {"key": "not this one"}},
        "both.a": 1,
        "nothing": None,
        "0": "a key that looks like an index",
    }
    assert look_up(args, path) == found


def test_a_decoy_literal_key_does_not_hide_the_nested_value() -> None:
    args = {"customer.address": {}, "customer": {"address": {"country": "IR"}}}
    assert holds("deny", "customer.address.country", "eq", "IR", args)


# Order, scope, tool patterns


def rule(decision: Verdict, tool: str = "pay", **scope: str) -> Rule:
    return Rule(tool=tool, decision=decision, scope=Scope(**scope))


def test_the_first_matching_rule_in_file_order_wins() -> None:
    assert Gate(rules=(rule("ask"), rule("deny"), rule("allow"))).evaluate("pay", {}).rule == "rule 1: pay"
    assert Gate(rules=(rule("deny", "other"), rule("allow"))).evaluate("pay", {}).rule == "rule 2: pay"


@pytest.mark.parametrize("more_specific_first", [True, False])
@pytest.mark.parametrize(
    ("general", "specific"),
    [
        ({}, {"agent": "desk"}),
        ({}, {"agent": "d*"}),
        ({"agent": "d*"}, {"agent": "desk"}),
        ({"agent": "d*", "tenant": "a*", "environment": "p*"}, {"environment": "production"}),
        ({"agent": "desk"}, {"agent": "desk", "tenant": "acme"}),
        ({"agent": "desk"}, {"agent": "desk", "tenant": "a?me"}),
        ({"agent": "d[ef]sk"}, {"agent": "d[ef]sk", "tenant": "*e"}),
    ],
)
def test_the_most_specific_scope_wins_wherever_it_stands(
    general: dict[str, str], specific: dict[str, str], more_specific_first: bool
) -> None:
    rules = [rule("allow", **specific), rule("deny", **general)]
    ordered = rules if more_specific_first else rules[::-1]
    assert Gate(rules=tuple(ordered)).evaluate("pay", {}, PLACE).verdict == "allow"


@pytest.mark.parametrize("scope", [{"tenant": "other"}, {"environment": "test*"}, {"agent": "Desk"}])
def test_a_rule_of_another_scope_does_not_apply(scope: dict[str, str]) -> None:
    assert Gate(rules=(rule("allow", **scope),)).evaluate("pay", {}, PLACE).rule == "default"


@pytest.mark.parametrize(
    ("pattern", "tool", "applies"),
    [
        ("pay", "pay", True),
        ("pay", "Pay", False),
        ("pay*", "pay_out", True),
        ("*", "anything", True),
        ("p?y", "pay", True),
        ("p[ao]y", "poy", True),
        ("pay", "pay_out", False),
        ("files.*", "files.read", True),
        ("a[b]", "a[b]", True),
    ],
)
def test_a_tool_is_named_or_globbed_with_exact_case(pattern: str, tool: str, applies: bool) -> None:
    assert (Gate(rules=(rule("deny", pattern),)).evaluate(tool, {}).verdict == "deny") is applies


def test_the_tool_pattern_does_not_count_toward_specificity() -> None:
    assert Gate(rules=(rule("deny", "*"), rule("allow", "pay"))).evaluate("pay", {}).verdict == "deny"


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_without_a_matching_rule_the_default_decides(default: Verdict) -> None:
    decision = Gate(rules=(rule("deny", "other"),), default_decision=default).evaluate("pay", {})
    assert (decision.verdict, decision.rule) == (default, "default")


def test_an_ask_carries_what_its_rule_says() -> None:
    asking = Rule(
        tool="pay",
        decision="ask",
        approvers=("telegram:4",),
        notify=("slack:T1:C9",),
        expires=60.0,
        quorum=2,
        four_eyes=True,
        redact=("iban",),
        reason="more than we pay unasked",
    )
    assert Gate(rules=(asking,)).evaluate("pay", {}) == Decision(
        verdict="ask",
        reason="more than we pay unasked",
        rule="rule 1: pay",
        approvers=("telegram:4",),
        notify=("slack:T1:C9",),
        expires=60.0,
        quorum=2,
        four_eyes=True,
        redact=("iban",),
    )


# Grants

ARGS = {"order": "A-1", "amount": 30, "lines": [{"sku": "x"}]}


def grant(**changes: Any) -> Grant:
    values = {"id": "g1", "kind": "always", "tool": "pay", "args": ARGS, "agent": "desk"}
    return Grant(**{**values, **changes})


def granted(held: Grant, args: dict[str, Any] = ARGS, *, session_id: str = "s1", now: float = 100.0) -> bool:
    gate = Gate(grants=(held,))
    return gate.evaluate("pay", args, PLACE, session_id=session_id, now=now).verdict == "allow"


def test_a_grant_allows_exactly_what_was_granted() -> None:
    decision = Gate(grants=(grant(granted_by="telegram:4"),)).evaluate("pay", dict(ARGS), PLACE)
    assert (decision.verdict, decision.rule, decision.reason) == (
        "allow",
        "grant g1",
        "granted by telegram:4",
    )


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"order": "A-1", "amount": 31, "lines": [{"sku": "x"}]},
        {"order": "A-1", "amount": True, "lines": [{"sku": "x"}]},
        {"order": "A-1", "amount": 30},
        {**ARGS, "note": None},
        {**ARGS, "lines": [{"sku": "x"}, {"sku": "x"}]},
        {**ARGS, "lines": [{"sku": "x", "n": 2}]},
    ],
)
def test_a_grant_does_not_reach_other_arguments(args: dict[str, Any]) -> None:
    assert not granted(grant(), args)


@pytest.mark.parametrize("changes", [{"tool": "pa*"}, {"tool": "refund"}, {"agent": "d*"}, {"agent": "ops"}])
def test_a_grant_is_no_pattern_and_holds_for_its_tool_and_agent_only(changes: dict[str, Any]) -> None:
    assert not granted(grant(**changes))


def test_a_session_grant_holds_in_its_session_only() -> None:
    held = grant(kind="session", session_id="s1")
    assert granted(held, session_id="s1")
    assert not granted(held, session_id="s2")
    assert not granted(grant(kind="session", session_id=""), session_id="")


def test_a_grant_ends_at_the_second_it_expires() -> None:
    held = grant(expires_at=100.0)
    assert granted(held, now=99.9)
    assert not granted(held, now=100.0)


def test_a_grant_never_lifts_a_deny() -> None:
    denied = Gate(rules=(rule("deny"),), grants=(grant(),))
    assert denied.evaluate("pay", ARGS, PLACE).verdict == "deny"
    assert Gate(default_decision="deny", grants=(grant(),)).evaluate("pay", ARGS, PLACE).verdict == "deny"


def test_a_granted_call_keeps_its_redactions() -> None:
    asking = Rule(tool="pay", decision="ask", redact=("iban",))
    assert Gate(rules=(asking,), grants=(grant(),)).evaluate("pay", ARGS, PLACE).redact == ("iban",)


# What holds for any input

numbers = st.one_of(st.integers(), st.floats(allow_nan=True, allow_infinity=True))
leaves = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=6))
keys = st.sampled_from(["a", "b", "a.b", "0", "", "amount", "ünï"])
json_values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
arguments = st.dictionaries(keys, json_values, max_size=4)
paths = st.one_of(st.sampled_from(["a", "a.b", "a.0", "b.a.b", "amount", ".", ""]), st.text(max_size=5))
operators = st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "matches"])
conditions = st.builds(Condition, field=paths, op=operators, value=json_values)
patterns = st.sampled_from(["*", "desk", "d*", "acme", "ops", "?", "[", "pay"])
scopes = st.builds(Scope, tenant=patterns, environment=patterns, agent=patterns)
verdicts: st.SearchStrategy[Verdict] = st.sampled_from(["allow", "ask", "deny"])


def rules_with(decision: st.SearchStrategy[Verdict]) -> st.SearchStrategy[Rule]:
    return st.builds(
        Rule,
        tool=st.sampled_from(["pay", "p*", "*", "other", "[!"]),
        decision=decision,
        when=st.lists(conditions, max_size=2).map(tuple),
        scope=scopes,
    )


rules = rules_with(verdicts)
grants = st.builds(
    Grant,
    id=st.just("g"),
    kind=st.sampled_from(["session", "always"]),
    tool=st.sampled_from(["pay", "other"]),
    args=arguments,
    agent=st.sampled_from(["desk", "*"]),
    session_id=st.sampled_from(["", "s1"]),
    expires_at=st.one_of(st.none(), st.floats(min_value=0, max_value=10)),
)
gates = st.builds(
    Gate,
    rules=st.lists(rules, max_size=5).map(tuple),
    default_decision=verdicts,
    grants=st.lists(grants, max_size=3).map(tuple),
)


def verdict(gate: Gate, args: dict[str, Any]) -> Verdict:
    return gate.evaluate("pay", args, PLACE, session_id="s1", now=5.0).verdict


@given(gates, arguments)
def test_every_call_gets_a_decision_whatever_the_arguments(gate: Gate, args: dict[str, Any]) -> None:
    assert verdict(gate, args) in {"allow", "ask", "deny"}


@given(gates, arguments, rules_with(st.just("deny")), st.integers(min_value=0, max_value=5))
def test_adding_a_deny_rule_anywhere_never_allows_more(
    gate: Gate, args: dict[str, Any], denial: Rule, place: int
) -> None:
    stricter = Gate(
        rules=(*gate.rules[:place], denial, *gate.rules[place:]),
        default_decision=gate.default_decision,
        grants=gate.grants,
    )
    assert LENIENCY[verdict(stricter, args)] <= LENIENCY[verdict(gate, args)]


@given(gates, arguments)
def test_grants_change_nothing_but_an_ask_into_an_allow(gate: Gate, args: dict[str, Any]) -> None:
    held = Gate(
        rules=gate.rules,
        default_decision=gate.default_decision,
        grants=(*gate.grants, Grant(id="g", kind="always", tool="pay", args=args, agent="desk")),
    )
    without = verdict(Gate(rules=gate.rules, default_decision=gate.default_decision), args)
    expected = {"deny": {"deny"}, "allow": {"allow"}, "ask": {"ask", "allow"}}[without]
    assert verdict(held, args) in expected


@given(conditions, arguments)
def test_what_satisfies_an_allow_rule_satisfies_the_same_ask_and_deny_rule(
    condition: Condition, args: dict[str, Any]
) -> None:
    held = {
        decision: holds(decision, condition.field, condition.op, condition.value, args)
        for decision in ("allow", "ask", "deny")
    }
    assert held["ask"] == held["deny"] >= held["allow"]


@given(st.lists(rules, max_size=4), arguments)
def test_the_decision_is_that_of_the_first_among_the_most_specific(
    some: list[Rule], args: dict[str, Any]
) -> None:
    applying = [one for one in some if Gate(rules=(one,)).evaluate("pay", args, PLACE).rule != "default"]

    def rank(one: Rule) -> tuple[int, int]:
        parts = (one.scope.tenant, one.scope.environment, one.scope.agent)
        exact = [part for part in parts if not set(part) & set("*?[")]
        return len(exact), len([part for part in parts if part != "*"]) - len(exact)

    expected = sorted(applying, key=rank, reverse=True)[0].decision if applying else "ask"
    assert Gate(rules=tuple(some)).evaluate("pay", args, PLACE).verdict == expected


@given(json_values, json_values)
def test_equality_is_symmetric_and_tells_true_from_one(left: Any, right: Any) -> None:
    assert same_value(left, right) == same_value(right, left)
    assert not same_value(True, 1)
    assert not same_value(False, 0)


@settings(max_examples=20)
@given(st.integers(min_value=1_000, max_value=20_000))
def test_equality_does_not_mind_depth(depth: int) -> None:
    left: Any = 1
    right: Any = 1
    for _ in itertools.repeat(None, depth):
        left, right = [left], [right]
    assert same_value(left, right)
