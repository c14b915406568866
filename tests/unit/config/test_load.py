"""load_config: typed values with defaults, and errors that name key and mend, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.config import ConfigErrors, load_config
from gateway.config.checks import unfit
from gateway.config.values import ConditionSection
from gateway.errors import ConfigError
from gateway.log import MASK, redact

MINIMAL = """
[models.main]
provider = "scripted"
[agents.assistant]
"""
TELEGRAM = MINIMAL + "[channels.telegram]\ntoken = 'env:TOKEN'\n"


def test_a_small_file_gets_every_default(load: Any, tmp_path: Path) -> None:
    config = load(MINIMAL)
    assert config.gateway.database.path == tmp_path / "threadgate.db"
    assert config.gateway.data_dir == tmp_path / "var"
    assert config.gateway.default_agent == "assistant"
    assert (config.gateway.environment, config.gateway.drain) == ("production", 10.0)
    assert config.gateway.operators == ("cli:local", "web:local")
    agent = config.agents["assistant"]
    assert (agent.model, agent.busy, agent.on_denial, agent.on_unknown) == ("main", "queue", "stop", "ask")
    assert (agent.max_steps, agent.max_tokens, agent.deadline, agent.default_decision) == (
        25,
        None,
        None,
        "ask",
    )
    assert config.channels.telegram is None
    assert config.metrics is None
    assert config.unsupported() == []
    assert (config.path, config.folder) == (tmp_path / "config.toml", tmp_path)


def test_values_of_all_kinds_are_read(load: Any, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("key-from-a-file\n")
    config = load(
        """
        [gateway]
        database = "sqlite:////var/lib/tg/a%20b.db"
        default_agent = "desk"
        [models.main]
        provider = "anthropic"
        model = "some-model"
        api_key = "file:key.txt"
        base_url = "http://127.0.0.1:8099/anthropic"
        [agents.desk]
        deadline = "10m"
        busy = "steer"
        [[agents.desk.rules]]
        tool = "pay"
        decision = "ask"
        when = [{ field = "a.b", op = "in", value = ["x", 1] }]
        approvers = ["slack:T1:U2", "discord:role:3", "telegram:4", "web:ci", "cli:local"]
        expires = "3d"
        [agents.other]
        [channels.telegram]
        token = "env:TOKEN"
        users = ["456", 789]
        [channels.web]
        token = { ci = "env:PAGER", phone = "plain-secret" }
        [metrics]
        """
    )
    assert config.gateway.database.path == Path("/var/lib/tg/a b.db")
    assert config.models["main"].api_key == "key-from-a-file"
    desk = config.agents["desk"]
    assert (desk.deadline, desk.busy, desk.rules[0].expires) == (600.0, "steer", 259_200.0)
    assert desk.rules[0].when[0].value == ["x", 1]
    assert config.channels.telegram.users == ("456", "789")
    assert config.channels.web.token == {"ci": "pager-secret", "phone": "plain-secret"}
    assert config.metrics is not None


def test_secrets_show_in_no_repr_and_are_masked_in_the_log_from_then_on(load: Any) -> None:
    config = load(
        TELEGRAM + "[gateway]\ndatabase = 'postgresql://me:hunter2-hunter2@db/x'\n"
        "[channels.web]\nhost = '0.0.0.0'\ntoken = 'env:PAGER'\n"
    )
    assert config.channels.telegram.token == "a-telegram-token"
    assert config.channels.web.token == {"default": "pager-secret"}
    for secret in ("a-telegram-token", "pager-secret", "hunter2-hunter2"):
        assert secret not in repr(config)
        assert redact(f"x {secret} y") == f"x {MASK} y"


# Problems: each with its key, several at once


def test_all_problems_are_reported_at_once_with_their_keys(load: Any) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(
            """
            [gateway]
            drain = 10
            databse = "sqlite:///x.db"
            [models.main]
            provider = "antropic"
            [agents.assistant]
            max_step = 3
            max_steps = 0
            tools = ["tools"]
            """
        )
    keys = [problem.key for problem in caught.value.problems]
    assert keys == [
        "gateway.databse",
        "gateway.drain",
        "models.main.provider",
        "agents.assistant.max_step",
        "agents.assistant.tools[0]",
        "agents.assistant.max_steps",
    ]
    assert len(str(caught.value).splitlines()) == len(keys)
    assert caught.value.key == "gateway.databse"


@pytest.mark.parametrize(
    ("text", "key", "mend"),
    [
        (MINIMAL + "[gatewy]\n", "gatewy", "did you mean gateway?"),
        (MINIMAL + "[channels.telgram]\n", "channels.telgram", "did you mean telegram?"),
        (MINIMAL + "[metrics]\nport = 1\n", "metrics.port", "this table has no keys"),
        (MINIMAL + "xyz = 1\n", "agents.assistant.xyz", "one of: busy, "),
        (MINIMAL + "on_denial = 'stopp'\n", "agents.assistant.on_denial", "did you mean stop?"),
        (MINIMAL + "model = 'mainn'\n", "agents.assistant.model", "did you mean main?"),
        (MINIMAL + "failover = ['x']\n", "agents.assistant.failover[0]", "one of: main"),
        (MINIMAL + "summary_model = 'mian'\n", "agents.assistant.summary_model", "did you mean main?"),
        (MINIMAL + "subagents = ['asistant']\n", "agents.assistant.subagents[0]", "did you mean assistant?"),
        (
            MINIMAL + "[gateway]\ndefault_agent = 'asistant'\n",
            "gateway.default_agent",
            "did you mean assistant?",
        ),
        (MINIMAL + "[agents.b]\n", "gateway.default_agent", "one of: assistant, b"),
        (
            MINIMAL + "[[routes]]\nmatch = 'slack:T1:C5'\nagent = 'x'\n",
            "routes[0].agent",
            "one of: assistant",
        ),
        ("[models.main]\nprovider = 'scripted'\n", "agents", "[agents.assistant]"),
        ("[agents.assistant]\n", "agents.assistant.model", "[models.main]"),
        ("[agents.'a b']\n", "agents.a b", "letters, digits"),
        ("[agents]\nassistant = 3\n", "agents.assistant", "[agents.assistant]"),
        ("gateway = 3\n", "gateway", "[gateway]"),
        ("agents = []\n", "agents", "[agents]"),
        ("[agents.a]\nrules = 3\n", "agents.a.rules", "[ ]"),
    ],
)
def test_a_wrong_name_gets_a_mend(problems: Any, text: str, key: str, mend: str) -> None:
    found = problems(text)
    assert mend in found[key].mend


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("max_steps = '25'", "max_steps"),
        ("max_steps = true", "max_steps"),
        ("max_steps = 2.5", "max_steps"),
        ("max_tokens = -1", "max_tokens"),
        ("stall_after = 1", "stall_after"),
        ("system_prompt = 3", "system_prompt"),
        ("while_pending = 'steer'", "while_pending"),
        ("while_pending = true", "while_pending"),
        ("skills = 'skills'", "skills"),
        ("skills = [1]", "skills[0]"),
        ("tools = ['a b:c']", "tools[0]"),
        ("deadline = 600", "deadline"),
        ("deadline = 2026-01-01", "deadline"),
        ("rules = [{ tool = 'x' }]", "rules[0].decision"),
        ("rules = [{ tool = 'x', decision = 'maybe' }]", "rules[0].decision"),
        ("rules = [{ tool = '', decision = 'ask' }]", "rules[0].tool"),
        ("rules = [{ tool = 'x', decision = 'ask', quorum = 0 }]", "rules[0].quorum"),
        ("rules = [{ tool = 'x', decision = 'ask', four_eyes = 1 }]", "rules[0].four_eyes"),
        ("rules = [{ tool = 'x', decision = 'ask', scope = { agnt = 'a' } }]", "rules[0].scope.agnt"),
        ("rules = [{ tool = 'x', decision = 'ask', notify = ['webhook:none'] }]", "rules[0].notify[0]"),
        ("rules = [{ tool = 'x', decision = 'ask', notify = ['slack:T1:C9'] }]", "rules[0].notify[0]"),
        *(
            (f"rules = [{{ tool = 'x', decision = 'ask', expires = '2h', {waiting} }}]", f"rules[0].{key}")
            for waiting, key in (
                ("remind = '1h'", "remind"),
                ("remind = ['1h', '1 day']", "remind[1]"),
                ("remind = ['1h', '2h']", "remind[1]"),
                ("escalate = '4h'", "escalate"),
                ("escalate = { approvers = ['telegram:4'] }", "escalate.after"),
                ("escalate = { after = '1h' }", "escalate"),
                ("escalate = { after = '2h', approvers = ['telegram:4'] }", "escalate.after"),
                ("escalate = { after = '1h', approvers = ['ann'] }", "escalate.approvers[0]"),
                ("escalate = { after = '1h', notify = ['slack:T1:C9'] }", "escalate.notify[0]"),
                ("escalate = { after = '1h', notify = ['webhook:none'] }", "escalate.notify[0]"),
                ("escalate = { after = '1h', aprovers = ['telegram:4'] }", "escalate.aprovers"),
            )
        ),
    ],
)
def test_a_wrong_value_of_an_agent_is_named(problems: Any, line: str, key: str) -> None:
    assert list(problems(MINIMAL + line + "\n")) == [f"agents.assistant.{key}"]


# TOML


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[gateway]\ndrain = '1s'\ndrain = '2s'\n", 3),
        ("[models.main]\nprovider = 'scripted'\n\n[models.main]\n", 4),
    ],
)
def test_a_duplicate_is_reported_with_file_and_line(
    problems: Any, tmp_path: Path, text: str, line: int
) -> None:
    (problem,) = problems(text).values()
    assert problem.key.startswith(f"{tmp_path / 'config.toml'}:{line}:")
    assert "twice" in problem.mend


def test_broken_toml_is_reported_with_file_and_line(problems: Any, tmp_path: Path) -> None:
    (problem,) = problems("[gateway]\ndrain = \n").values()
    assert problem.key.startswith(f"{tmp_path / 'config.toml'}:2:")
    (problem,) = problems("[gateway]\ndrain = 'x").values()
    assert problem.key.startswith(str(tmp_path / "config.toml"))


def test_a_file_that_cannot_be_read_is_an_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as missing:
        load_config(tmp_path / "none.toml", env={})
    assert missing.value.key == str(tmp_path / "none.toml")
    with pytest.raises(ConfigError):
        load_config(tmp_path, env={})
    (tmp_path / "latin.toml").write_bytes(b"# \xe4\n")
    with pytest.raises(ConfigError) as latin:
        load_config(tmp_path / "latin.toml", env={})
    assert "UTF-8" in latin.value.problem


# Secrets


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("env:NOT_SET", "NOT_SET"),
        ("env:EMPTY", "EMPTY"),
        ("file:none.txt", "none.txt"),
        ("file:empty.txt", "empty.txt"),
        ("file:large.txt", "large.txt"),
        ("file:binary.txt", "binary.txt"),
        ("", "is empty"),
    ],
)
def test_a_missing_secret_is_reported_by_key(problems: Any, tmp_path: Path, value: str, part: str) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "large.txt").write_text("x" * 100_000)
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe")
    text = MINIMAL + f"[channels.telegram]\ntoken = '{value}'\n"
    found = problems(text, {"EMPTY": " "})
    assert part in found["channels.telegram.token"].problem


def test_an_error_never_repeats_what_may_be_a_secret(load: Any) -> None:
    text = MINIMAL + "[channels.telegram]\ntoken = 'env:123456:AA-this-is-the-token'\nusers = ['x y']\n"
    with pytest.raises(ConfigErrors) as caught:
        load(text)
    assert "this-is-the-token" not in str(caught.value)


def test_a_needed_secret_that_is_left_out_is_missing(problems: Any) -> None:
    assert problems(MINIMAL + "[channels.telegram]\n")["channels.telegram.token"].problem == "is missing"
    text = "[models.main]\nprovider = 'anthropic'\n[agents.assistant]\n"
    found = problems(text)
    assert list(found) == ["models.main.model", "models.main.api_key"]
    assert found["models.main.api_key"].mend == 'write "env:ANTHROPIC_API_KEY" and set it'
    local = text.replace("'anthropic'", "'openai'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:8000/v1'")
    assert 'a server that wants no key takes any: "none"' in problems(local)["models.main.api_key"].mend
    slack = MINIMAL + "[channels.slack]\nbot_token = 'xoxb-1'\n"
    assert list(problems(slack)) == ["channels.slack.app_token"]


def test_several_web_tokens_are_named_and_each_is_checked(problems: Any) -> None:
    text = MINIMAL + "[channels.web]\ntoken = { ci = 'env:NOT_SET' }\n"
    assert "ci: " in problems(text)["channels.web.token"].problem
    assert "channels.web.token" in problems(MINIMAL + "[channels.web]\ntoken = { 'a b' = 'x' }\n")
    assert "channels.web.token" in problems(MINIMAL + "[channels.web]\ntoken = {}\n")


# Things that must fit together, and what does not exist yet


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("gt", "20"),
        ("lte", True),
        ("in", "eu"),
        ("in", []),
        ("matches", "(unclosed"),
        ("matches", 3),
        ("contains", ["a"]),
        ("eq", object()),
        ("ne", [object()]),
    ],
)
def test_a_condition_whose_value_does_not_fit_its_operator_is_refused(op: Any, value: Any) -> None:
    assert unfit(ConditionSection(field="x", op=op, value=value))


@pytest.mark.parametrize(
    ("op", "value"),
    [
        ("gt", 20),
        ("lte", 0.5),
        ("in", ["eu"]),
        ("matches", r"\Aa+\Z"),
        ("contains", "a"),
        ("eq", {"a": [1, True]}),
    ],
)
def test_a_condition_whose_value_fits_is_accepted(op: Any, value: Any) -> None:
    assert unfit(ConditionSection(field="x", op=op, value=value)) == ""


def test_a_date_in_a_condition_is_refused_with_its_key(problems: Any) -> None:
    condition = "{ field = 'd', op = 'eq', value = 2026-01-01 }"
    rule = f"rules = [{{ tool = 'x', decision = 'ask', when = [{condition}] }}]\n"
    assert list(problems(MINIMAL + rule)) == ["agents.assistant.rules[0].when[0].value"]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[mcp.a]\nrequired = true\n", "mcp.a"),
        ("[mcp.a]\ncommand = ['x']\nurl = 'https://x'\n", "mcp.a"),
        ("[mcp.a__b]\ncommand = ['x']\n", "mcp.a__b"),
        ("[mcp.a]\ncommand = ['x']\ntoken = 'secret-x'\n", "mcp.a.token"),
        ("[mcp.a]\nurl = 'https://x'\nenv = { A = 'b' }\n", "mcp.a.env"),
        ("[mcp.a]\nurl = 'https://x'\ntoken = 'x'\nheaders = { authorization = 'x' }\n", "mcp.a.token"),
        ("[mcp.a]\nurl = 'https://x'\nheaders = { X = 'env:NOT_SET' }\n", "mcp.a.headers"),
        ("[mcp.a]\nurl = 'https://x'\nheaders = { 'X Y' = 'b' }\n", "mcp.a.headers"),
        ("mcp = ['files/read_*']\n", "agents.assistant.mcp[0]"),
        ("mcp = ['/x']\n", "agents.assistant.mcp[0]"),
        (
            "[schedules.a]\nagent = 'assistant'\nthread = 'web'\ninstruction = 'x'\n[channels.web]\n",
            "schedules.a",
        ),
        ("[webhooks.a]\nurl = 'https://x'\nsecret = 's3cret-x'\nevents = ['dne']\n", "webhooks.a.events[0]"),
        ("[models.b]\nprovider = 'scripted'\nscript = 'none.toml'\n", "models.b.script"),
        ("[channels.web]\nport = 70000\n", "channels.web.port"),
    ],
)
def test_a_table_that_does_not_fit_together_is_named(problems: Any, text: str, key: str) -> None:
    assert list(problems(MINIMAL + text)) == [key]


def test_what_is_configured_but_not_available_is_listed_by_key(load: Any) -> None:
    config = load(
        "[models.main]\nprovider = 'anthropic'\nmodel = 'm'\napi_key = 'k'\n"
        "[agents.assistant]\nskills = ['s']\n"
        "[[routes]]\nmatch = 'slack:T1:C5'\nagent = 'assistant'\n[mcp.a]\ncommand = ['x']\n"
    )
    assert config.unsupported() == []


def test_tool_servers_are_read_with_their_secrets_and_agents_narrow_them(load: Any) -> None:
    config = load(
        MINIMAL + "mcp = ['files', 'db/read_*']\n[mcp.files]\ncommand = ['x']\n"
        "env = { KEY = 'env:TOKEN', LEVEL = 'error' }\n"
        "[mcp.db]\nurl = 'https://x/mcp'\ntoken = 'env:PAGER'\ntrust = true\ntimeout = '5s'\n"
    )
    assert config.agents["assistant"].mcp == (("files", "*"), ("db", "read_*"))
    assert config.mcp["files"].env == {"KEY": "a-telegram-token", "LEVEL": "error"}
    assert (config.mcp["db"].token, config.mcp["db"].timeout, config.mcp["db"].trust) == (
        "pager-secret",
        5.0,
        True,
    )
    assert redact("a-telegram-token and error") == f"{MASK} and error"


def test_administrators_as_a_group_may_talk_and_approve_and_are_no_operators(load: Any) -> None:
    rule = "rules = [{ tool = 'x', decision = 'ask', approvers = ['telegram:admins'] }]\n"
    telegram = "[channels.telegram]\ntoken = 'env:TOKEN'\nusers = ['admins', '4']\napprovers = ['admins']\n"
    operators = "[gateway]\noperators = ['telegram:admins']\n"
    assert [line.partition(":")[0] for line in load(MINIMAL + rule + telegram + operators).unsupported()] == [
        "gateway.operators",
    ]


def test_a_configuration_cannot_be_changed(load: Any) -> None:
    config = load(MINIMAL)
    with pytest.raises(AttributeError):
        config.gateway.drain = 1.0
    assert isinstance(config, msgspec.Struct)


def test_a_webhook_is_told_of_what_it_can_be_told_of(load: Any, problems: Any) -> None:
    hook = "[webhooks.pager]\nurl = 'https://x/hook'\nsecret = 'env:PAGER'\n"
    assert load(MINIMAL + hook).unsupported() == []
    assert list(problems(MINIMAL + hook + "events = ['done', 'tool:started']\n")) == [
        "webhooks.pager.events[1]"
    ]


@pytest.mark.parametrize(
    ("memory", "fits"), [("1MB", False), ("255MB", False), ("256MB", True), ("2GB", True)]
)
def test_memory_in_which_no_process_starts_is_refused(
    load: Any, problems: Any, memory: str, fits: bool
) -> None:
    text = MINIMAL + f'isolation = "process"\nmemory = "{memory}"\n'
    if fits:
        assert load(text).agents["assistant"].memory
    else:
        assert "256MB" in problems(text)["agents.assistant.memory"].mend


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("max_steps = 0", "a whole number from 1"),
        ('max_depth = "3"', "a whole number"),
        ("four = 1", "unknown key"),
    ],
)
def test_what_is_wrong_with_a_plain_value_is_said_in_words(problems: Any, line: str, said: str) -> None:
    (error,) = problems(MINIMAL + line + "\n").values()
    assert said in error.problem and "`" not in error.problem
