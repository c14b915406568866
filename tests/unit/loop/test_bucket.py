"""Bucket first, then execute: what is decided about a call, before anything runs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.approvals import KnownCall
from gateway.bucket import Buckets, Circumstances, sort_calls
from gateway.gate import Condition, Rule, Scope
from gateway.loop import run_agent
from gateway.messages import ToolResult, ToolUse, call_hash
from gateway.questions import GIVE_UP, RUN_AGAIN, TREAT_AS_DONE
from gateway.tools.base import MASK, Tool
from gateway.tools.system import ASK_USER
from gateway.verdicts import INTERRUPTED
from tests.unit.loop.scene import Log, Ran, Replies, agent, answers, call, options, rule, says

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}


def at(*tools: Tool, rules: tuple[Rule, ...] = (), **more: object) -> Circumstances:
    desk = agent(*tools, rules=rules, default="ask", **more)
    named = {tool.name: tool for tool in (ASK_USER, *tools)}
    return Circumstances(agent=desk, tools=named, gate=desk.gate, scope=Scope(), session_id="s1", now=1_000.0)


def fates(buckets: Buckets) -> dict[str, str]:
    """Call id -> in which bucket it is; a call in two of them fails the test."""
    found = [(ready.call.id, "run") for ready in buckets.run]
    found += [(call_id, "settled") for call_id in buckets.settled]
    found += [(pending.call_id, "waiting") for pending in buckets.waiting]
    assert len(dict(found)) == len(found)
    return dict(found)


def everything() -> Circumstances:
    ran = Ran()
    tools = [ran.tool(name, input_schema=NUMBER) for name in ("look", "pay", "erase")]
    rules = (rule("look", "allow"), rule("erase", "deny"))
    return at(*tools, rules=rules)


CALLS = (
    call("c1", "look", n=1),
    call("c2", "pay", n=2),
    call("c3", "erase", n=3),
    call("c4", "look", n="four"),
    call("c5", "look", invalid="no comma"),
    call("c6", "nothing"),
    call("c7", "ask_user", question="Which?"),
    call("c8", "ask_user", question="Which?", allow_text=False),
)
FATES = {
    "c1": "run",
    "c2": "waiting",
    "c3": "settled",
    "c4": "settled",
    "c5": "settled",
    "c6": "settled",
    "c7": "waiting",
    "c8": "settled",
}


@given(st.permutations(CALLS))
def test_the_order_in_which_calls_are_written_changes_the_fate_of_none(calls: list[ToolUse]) -> None:
    buckets = sort_calls(calls, {}, everything())
    assert fates(buckets) == FATES
    order = [c.id for c in calls]
    assert [row.call.id for row in buckets.rows] == order
    assert [decision.call_id for decision in buckets.decisions] == order
    for bucket in ([r.call.id for r in buckets.run], [p.call_id for p in buckets.waiting]):
        assert bucket == [call_id for call_id in order if call_id in bucket]


async def test_the_outcome_of_a_step_is_the_same_for_every_order_of_its_calls() -> None:
    for calls in itertools.permutations(CALLS[:3]):
        ran = Ran()
        tools = [ran.tool(name, input_schema=NUMBER) for name in ("look", "pay", "erase")]
        rules = (rule("look", "allow"), rule("erase", "deny"), rule("pay", "ask"))
        result = await run_agent(agent(*tools, rules=rules), Replies(says("", *calls)), "hi")
        assert ran.calls == [("look", {"n": 1})]
        assert result.pending is not None
        assert {i: r.content for i, r in result.pending.results_so_far.items()} == {
            "c1": "ok",
            "c3": "denied: rule 2: erase says deny",
        }
        assert [p.call_id for p in result.pending.outstanding.values()] == ["c2"]
        assert result.messages[-1].role == "assistant"


async def test_what_is_pending_keeps_its_sibling_from_nothing_and_the_step_out_of_the_log() -> None:
    ran = Ran()
    reply = says("", call("c1", "pay"), call("c2", "look"))
    desk = agent(ran.tool("look"), ran.tool("pay"), rules=[rule("pay", "ask")])
    result = await run_agent(desk, Replies(reply), "hi")
    assert ran.names == ["look"]
    assert answers(result.messages) == {}


def test_arguments_are_checked_before_the_gate_sees_them_and_never_become_a_card() -> None:
    tool = Ran().tool("pay", input_schema=NUMBER)
    buckets = sort_calls([call("c1", "pay", n="a lot", m=1)], {}, at(tool))
    assert buckets.waiting == []
    text = buckets.settled["c1"].content
    assert text.startswith("invalid arguments: ")
    assert 'n: the value is not of type "integer"' in text
    assert "'m' was unexpected" in text
    assert [(d.decision, d.rule) for d in buckets.decisions] == [("invalid", "")]


def test_broken_json_and_unknown_tools_are_error_results_that_say_what_to_mend() -> None:
    tool = Ran().tool("pay")
    calls = [call("c1", "pay", invalid="line 1 column 3"), call("c2", "buy")]
    buckets = sort_calls(calls, {}, at(tool))
    assert buckets.settled["c1"].content == "invalid JSON arguments: line 1 column 3"
    assert buckets.settled["c2"].content == "there is no tool 'buy'; available: ask_user, pay"
    assert all(result.is_error for result in buckets.settled.values())


def test_the_gate_sees_the_canonical_arguments() -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number", "default": 500}}}
    tool = Ran().tool("pay", input_schema=schema)
    rules = (
        rule("pay", "deny", when=(Condition(field="amount", op="gt", value=100),)),
        rule("pay", "allow"),
    )
    buckets = sort_calls([call("c1", "pay")], {}, at(tool, rules=rules))
    assert fates(buckets) == {"c1": "settled"}


def test_card_row_and_hash_are_of_the_same_canonical_arguments() -> None:
    schema = {"type": "object", "properties": {"n": {"default": 3}, "key": {"type": "string"}}}
    tool = Ran().tool("pay", input_schema=schema, secret=frozenset({"key"}))
    buckets = sort_calls([call("c1", "pay", key="hush")], {}, at(tool))
    (pending,), (row,) = buckets.waiting, buckets.rows
    assert pending.args == row.args == {"n": 3, "key": "hush"}
    assert pending.args_hash == row.args_hash == call_hash("pay", {"n": 3, "key": "hush"})
    assert (pending.secret, pending.kind, row.state) == (("key",), "approval", "waiting")
    assert pending.requested_at == 1_000.0


def test_what_a_rule_says_about_asking_is_on_the_pending() -> None:
    ask = rule(
        "pay",
        "ask",
        approvers=("telegram:4",),
        notify=("telegram:5:6",),
        expires=60.0,
        quorum=2,
        four_eyes=True,
        redact=("n",),
        reason="money",
    )
    (pending,) = sort_calls([call("c1", "pay")], {}, at(Ran().tool("pay"), rules=(ask,))).waiting
    assert (pending.approvers, pending.notify) == (("telegram:4",), ("telegram:5:6",))
    assert (pending.expires_at, pending.quorum, pending.four_eyes) == (1_060.0, 2, True)
    assert (pending.secret, pending.reason, pending.rule) == (("n",), "money", "rule 1: pay")


async def test_c041_three_calls_that_ask_at_once_get_three_ids() -> None:
    reply = says("", *(call(f"c{n}", "pay", n=n) for n in range(3)))
    desk = agent(Ran().tool("pay"), default="ask")
    result = await run_agent(desk, Replies(reply), "hi")
    assert result.pending is not None
    waiting = result.pending.outstanding
    assert len(waiting) == len({p.code for p in waiting.values()}) == 3
    assert all(key == p.pending_id and len(key) >= 20 for key, p in waiting.items())
    assert [p.call_id for p in waiting.values()] == ["c0", "c1", "c2"]


# ---- calls of which something is known already


def known(state: str, **more: object) -> dict[str, KnownCall]:
    return {"c1": KnownCall(state=state, **more)}  # type: ignore[arg-type]


def test_c040_what_runs_are_the_stored_arguments_not_those_of_the_message() -> None:
    tool = Ran().tool("note")
    stored = {"n": "alpha"}
    allowed = known("allowed", args=stored, args_hash=call_hash("note", stored))
    (ready,) = sort_calls([call("c1", "note", n="beta")], allowed, at(tool)).run
    assert (ready.args, ready.args_hash) == (stored, call_hash("note", stored))


@pytest.mark.parametrize("default", ["ask", "allow"])
def test_c040_a_hash_that_does_not_match_runs_nothing_and_makes_a_new_approval(default: str) -> None:
    tool = Ran().tool("pay")
    swapped = known("allowed", args={"n": 20}, args_hash=call_hash("pay", {"n": 80}))
    where = at(tool, rules=(rule("pay", default),))  # type: ignore[arg-type]
    buckets = sort_calls([call("c1", "pay", n=80)], swapped, where)
    assert fates(buckets) == {"c1": "waiting"}
    assert buckets.waiting[0].args == {"n": 20}


def test_c040_arguments_that_no_longer_fit_the_schema_are_refused() -> None:
    tool = Ran().tool("pay", input_schema=NUMBER)
    buckets = sort_calls([call("c1", "pay", n=1)], known("allowed", args={"n": "x"}), at(tool))
    assert fates(buckets) == {"c1": "settled"}
    assert buckets.settled["c1"].is_error


def test_a_tool_that_is_gone_by_now_is_an_error_result() -> None:
    buckets = sort_calls([call("c1", "pay")], known("allowed"), at())
    assert buckets.settled["c1"].content == "the tool 'pay' is no longer available"


def test_c074_a_call_that_had_started_is_not_run_again_but_asked_about() -> None:
    tool = Ran().tool("send")
    buckets = sort_calls([call("c1", "send", n=1)], known("started", args={"n": 1}), at(tool))
    (pending,) = buckets.waiting
    assert (pending.kind, fates(buckets)) == ("question", {"c1": "waiting"})
    assert pending.question is not None
    assert [o.label for o in pending.question.options] == [RUN_AGAIN, TREAT_AS_DONE, GIVE_UP]
    assert (pending.question.about, pending.question.allow_text) == ("unknown", False)


def test_c074_with_report_a_call_that_had_started_is_an_error_result() -> None:
    tool = Ran().tool("send")
    buckets = sort_calls([call("c1", "send")], known("started"), at(tool, on_unknown="report"))
    assert buckets.settled["c1"] == ToolResult(tool_use_id="c1", content=INTERRUPTED, is_error=True)
    assert buckets.news == ["c1"]


@pytest.mark.parametrize("trait", ["safe", "idempotent"])
def test_c074_a_call_that_may_run_twice_runs_again_without_a_question(trait: str) -> None:
    traits: dict[str, Any] = {trait: True}
    tool = Ran().tool("look", **traits)
    buckets = sort_calls([call("c1", "look")], known("started", args={"n": 1}), at(tool))
    assert [ready.args for ready in buckets.run] == [{"n": 1}]


def test_c074_a_started_call_whose_tool_is_gone_has_an_unknown_end() -> None:
    buckets = sort_calls([call("c1", "send")], known("started"), at())
    assert buckets.settled["c1"].content == INTERRUPTED


@pytest.mark.parametrize("state", ["done", "denied", "waiting"])
def test_a_known_call_that_lacks_its_half_is_an_error_and_never_runs(state: str) -> None:
    with pytest.raises(ValueError, match="c1"):
        sort_calls([call("c1", "pay")], known(state), at(Ran().tool("pay")))


# ---- secrets


async def test_secret_values_never_appear_in_an_event() -> None:
    schema = {
        "type": "object",
        "properties": {"key": {"type": "string", "maxLength": 12, "pattern": "^[a-z0-9]+$"}, "n": {}},
    }
    ran, log = Ran(), Log()
    tool = ran.tool("login", input_schema=schema, secret=frozenset({"key"}))
    model = Replies(
        says("", call("c1", "login", key="hunter2")),
        says("", call("c2", "login", key="hunter2-and-more"), call("c3", "login", key=["hunter2"])),
        says("done"),
    )
    result = await run_agent(agent(tool), model, "hi", options=options(log))
    assert ran.calls == [("login", {"key": "hunter2"})]
    assert log.of("tool:started")[0].args == {"key": MASK}
    assert answers(result.messages)["c2"].is_error
    assert "hunter2" not in repr(log.events)


async def test_what_a_rule_masks_is_masked_in_events_too() -> None:
    log = Log()
    tool = Ran().tool("pay", input_schema={"type": "object"})
    desk = agent(tool, rules=[rule("pay", "allow", redact=("iban", "to.card"))])
    model = Replies(says("", call("c1", "pay", iban="DE1", to={"card": "99", "name": "Ada"})), says("x"))
    await run_agent(desk, model, "hi", options=options(log))
    assert log.of("tool:started")[0].args == {"iban": MASK, "to": {"card": MASK, "name": "Ada"}}


# ---- names and built-in tools


@pytest.mark.parametrize("name", ["search.documents", "search/documents.by_similarity", "find people"])
async def test_c065_rules_cards_and_calls_use_the_original_name_of_a_tool(name: str) -> None:
    ran = Ran()
    desk = agent(ran.tool(name), rules=[rule(name, "ask")])
    result = await run_agent(desk, Replies(says("", call("c1", name))), "hi")
    assert result.pending is not None
    assert [p.tool for p in result.pending.outstanding.values()] == [name]


def test_a_question_passes_the_default_decision_but_not_a_rule_that_denies_it() -> None:
    asked = call("c1", "ask_user", question="Which?")
    denied = agent(default="deny")
    where = Circumstances(
        agent=denied,
        tools={"ask_user": ASK_USER},
        gate=denied.gate,
        scope=Scope(),
        session_id="",
        now=0.0,
    )
    assert fates(sort_calls([asked], {}, where)) == {"c1": "waiting"}
    assert fates(sort_calls([asked], {}, at(rules=(rule("ask_user", "deny"),)))) == {"c1": "settled"}


async def test_an_agents_own_tool_replaces_the_built_in_one_and_is_gated() -> None:
    ran = Ran()
    own = ran.tool("ask_user", "blue", input_schema={"type": "object"})
    model = Replies(says("", call("c1", "ask_user", question="Which?")), says("blue"))
    result = await run_agent(agent(own), model, "hi")
    assert (ran.names, result.text) == (["ask_user"], "blue")
    gated = await run_agent(
        agent(own, default="ask"), Replies(says("", call("c1", "ask_user", question="Which?"))), "hi"
    )
    assert gated.pending is not None
    assert [p.kind for p in gated.pending.outstanding.values()] == ["approval"]


def test_c054_options_given_as_objects_keep_label_and_value() -> None:
    asked = call("c1", "ask_user", question="Which?", options=["West", {"label": "East", "value": "e1"}])
    (pending,) = sort_calls([asked], {}, at()).waiting
    assert pending.question is not None
    assert [(o.label, o.result) for o in pending.question.options] == [("West", "West"), ("East", "e1")]
