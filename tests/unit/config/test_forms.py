"""The forms of single values: ids of people and threads, durations, addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.parsing import Source, seconds
from gateway.config.problems import Bad
from gateway.patience import Quiet

MINIMAL = """
[models.main]
provider = "scripted"
[agents.assistant]
"""
TELEGRAM = MINIMAL + "[channels.telegram]\ntoken = 'env:TOKEN'\n"


# Ids


@pytest.mark.parametrize("user", ["alice", "@alice", "-100123", "0", "1.5", "٤٥٦", "12 34", "role:3"])
def test_c086_a_name_where_a_telegram_id_belongs_tells_how_to_get_the_id(problems: Any, user: str) -> None:
    problem = problems(TELEGRAM + f"users = ['111', '{user}']\n")["channels.telegram.users[1]"]
    assert user in problem.problem
    assert "the log names the id" in problem.mend


@pytest.mark.parametrize(
    ("channel", "tokens", "good", "bad"),
    [
        (
            "slack",
            "bot_token = 'x'\napp_token = 'y'",
            ["U2", "T1:U2", "T1:W9", "S5"],
            ["alice", "@U2", "T1", "T1:C9"],
        ),
        (
            "discord",
            "token = 'x'",
            ["123", "role:3", "1:role:3"],
            ["alice", "alice#1234", "role:admin", "U2"],
        ),
        ("telegram", "token = 'x'", ["456", "admins"], ["alice", "true", "U2"]),
    ],
)
def test_c086_ids_of_each_platform_are_known_by_their_form(
    load: Any, problems: Any, channel: str, tokens: str, good: list[str], bad: list[str]
) -> None:
    text = MINIMAL + f"[channels.{channel}]\n{tokens}\n"
    section = getattr(load(text + f"users = {good}\napprovers = {good}\n").channels, channel)
    assert section.users == section.approvers == tuple(good)
    found = problems(text + f"users = {bad}\n")
    assert list(found) == [f"channels.{channel}.users[{place}]" for place in range(len(bad))]


def test_c086_no_users_means_nobody_and_everyone_is_said_explicitly(load: Any, problems: Any) -> None:
    assert load(TELEGRAM).channels.telegram.users == ()
    assert load(TELEGRAM + "users = ['*']\n").channels.telegram.users == ("*",)
    assert "channels.telegram.users" in problems(TELEGRAM + "users = ['*', '4']\n")
    assert "channels.telegram.approvers[0]" in problems(TELEGRAM + "approvers = ['*']\n")


@pytest.mark.parametrize(
    "who", ["alice", "telegram", "telegram:alice", "telegramm:4", "slack:alice", "*", "cli:root"]
)
def test_c086_a_name_among_the_approvers_of_a_rule_is_refused(problems: Any, who: str) -> None:
    rule = f"rules = [{{ tool = 'x', decision = 'ask', approvers = ['{who}'] }}]\n"
    assert list(problems(MINIMAL + rule)) == ["agents.assistant.rules[0].approvers[0]"]
    operators = MINIMAL + f"[gateway]\noperators = ['{who}']\n"
    assert list(problems(operators)) == ["gateway.operators[0]"]


@pytest.mark.parametrize(
    "target", ["telegram:@channel", "slack:#general", "discord:general", "irc:1", "slack:T1:U2"]
)
def test_a_name_where_a_thread_belongs_is_refused(problems: Any, target: str) -> None:
    rule = f"rules = [{{ tool = 'x', decision = 'ask', notify = ['{target}'] }}]\n"
    assert list(problems(MINIMAL + rule)) == ["agents.assistant.rules[0].notify[0]"]


def test_threads_and_webhooks_that_get_cards_are_read(load: Any) -> None:
    rule = "rules = [{ tool = 'x', decision = 'ask', notify = ['telegram:-100123:7', 'webhook:pager'] }]\n"
    text = MINIMAL + rule + "[channels.telegram]\ntoken = 'env:TOKEN'\n"
    text += "[webhooks.pager]\nurl = 'https://pager.example.com'\nsecret = 'env:PAGER'\n"
    assert load(text).agents["assistant"].rules[0].notify == ("telegram:-100123:7", "webhook:pager")


# Quiet hours


@pytest.mark.parametrize(
    "span",
    [
        *("", "22-7", "22:00", "22:00-7:00", "24:00-07:00", "22:00-07:60", "22:00 - 07:00", "07:00-07:00"),
        *(
            "22:00-07:00 Berlin",
            "22:00-07:00 Mars/Olympus",
            "22:00-07:00 ../etc/passwd",
            "22:00-07:00 +01:00",
        ),
    ],
)
def test_quiet_hours_that_nobody_can_keep_are_refused(problems: Any, span: str) -> None:
    rule = f"rules = [{{ tool = 'x', decision = 'ask', quiet = '{span}' }}]\n"
    assert list(problems(MINIMAL + rule)) == ["agents.assistant.rules[0].quiet"]


@pytest.mark.parametrize(
    ("span", "quiet"),
    [
        ("22:00-07:00", Quiet(start=1_320, end=420)),
        ("00:00-23:59 UTC", Quiet(start=0, end=1_439, zone="UTC")),
        ("13:00-14:30  America/New_York", Quiet(start=780, end=870, zone="America/New_York")),
    ],
)
def test_quiet_hours_are_read_with_their_zone(load: Any, span: str, quiet: Quiet) -> None:
    rule = f"rules = [{{ tool = 'x', decision = 'ask', quiet = '{span}' }}]\n"
    assert load(MINIMAL + rule).agents["assistant"].rules[0].quiet == quiet


# Durations, addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10s", 10.0), ("10m", 600.0), ("4h", 14_400.0), ("3d", 259_200.0), ("1.5h", 5400.0), ("1h30m", 5400.0)],
)
def test_durations_are_read_in_seconds(text: str, expected: float) -> None:
    assert seconds(text, Source(folder=Path(), env={})) == expected


@given(st.one_of(st.text(max_size=8), st.integers(), st.booleans(), st.floats()))
def test_what_is_no_duration_is_refused_and_never_anything_else(raw: Any) -> None:
    try:
        value = seconds(raw, Source(folder=Path(), env={}))
    except Bad as bad:
        assert "10s" in bad.mend
    else:
        assert value > 0


@pytest.mark.parametrize("raw", ["", "0s", "-1s", "10", "10 s", "s", "10w", "1e3s", "٣s", "9999999999d"])
def test_a_duration_needs_number_and_unit(raw: str) -> None:
    with pytest.raises(Bad):
        seconds(raw, Source(folder=Path(), env={}))


@pytest.mark.parametrize(
    "address",
    [
        "threadgate.db",
        "sqlite:threadgate.db",
        "sqlite://threadgate.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///folder/",
        "sqlite:///a.db?mode=ro",
        "postgres://db/x",
        "postgresql:///x",
        "postgresql://db:port/x",
        "mysql://db/x",
    ],
)
def test_another_database_address_is_refused_with_those_that_work(problems: Any, address: str) -> None:
    problem = problems(MINIMAL + f"[gateway]\ndatabase = '{address}'\n")["gateway.database"]
    assert problem.mend


def test_a_database_address_may_come_from_the_environment(load: Any, tmp_path: Path) -> None:
    text = MINIMAL + "[gateway]\ndatabase = 'env:DB'\n"
    config = load(text, {"DB": "postgresql://me:pw-of-the-database@db:5432/x"})
    assert config.gateway.database.path is None
    assert config.unsupported() == [
        "gateway.database: PostgreSQL is not available in this version, use sqlite:///threadgate.db"
    ]
    assert load(text, {"DB": "sqlite:///sub/x.db"}).gateway.database == f"sqlite:///{tmp_path}/sub/x.db"


@pytest.mark.parametrize(
    "address", ["api.telegram.org", "ftp://x", "https://", "https://a b", "https://x:99999999/"]
)
def test_an_api_address_must_be_http(problems: Any, address: str) -> None:
    assert list(problems(TELEGRAM + f"api_base = '{address}'\n")) == ["channels.telegram.api_base"]


@pytest.mark.parametrize(
    ("host", "open_"),
    [
        ("0.0.0.0", True),  # noqa: S104 (refused, not bound)
        ("192.168.1.5", True),
        ("example.com", True),
        ("::", True),
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("localhost", False),
        ("::1", False),
    ],
)
def test_the_web_channel_needs_a_token_off_loopback(load: Any, problems: Any, host: str, open_: bool) -> None:
    text = MINIMAL + f"[channels.web]\nhost = '{host}'\n"
    if open_:
        assert list(problems(text)) == ["channels.web.token"]
    else:
        assert load(text).channels.web.host == host
    assert load(text + "token = 'env:TOKEN'\n").channels.web.token == {"default": "a-telegram-token"}


# Telegram's webhook and files


HOOK = TELEGRAM + "[channels.telegram.webhook]\nurl = 'https://bot.example/hook'\n"


def test_a_webhook_has_an_address_a_secret_and_a_place_to_listen(load: Any) -> None:
    webhook = load(HOOK + "secret = 'env:PAGER'\n").channels.telegram.webhook
    assert (webhook.url, webhook.secret) == ("https://bot.example/hook", "pager-secret")
    assert webhook.listen == ("127.0.0.1", 8081)
    elsewhere = load(HOOK + "secret = 'x'\nlisten = '[::1]:80'\n").channels.telegram.webhook
    assert elsewhere.listen == ("::1", 80)


@pytest.mark.parametrize("secret", ["two words", "s" * 257, "schlüssel"])
def test_a_webhook_secret_that_telegram_would_refuse_is_named_and_not_shown(
    problems: Any, secret: str
) -> None:
    problem = problems(HOOK + "secret = 'env:HOOK'\n", {"TOKEN": "t", "HOOK": secret})
    found = problem["channels.telegram.webhook.secret"]
    assert secret not in str(found)
    assert "openssl rand" in found.mend


@pytest.mark.parametrize("url", ["http://bot.example/hook", "https://bot.example:9000/hook"])
def test_a_webhook_address_that_telegram_would_refuse_is_refused(problems: Any, url: str) -> None:
    text = HOOK.replace("https://bot.example/hook", url) + "secret = 'x'\n"
    assert list(problems(text)) == ["channels.telegram.webhook.url"]


@pytest.mark.parametrize(
    "listen", ["8081", "127.0.0.1", "host:port", "http://a:1", "a:1/x", "u@a:1", "a:70000"]
)
def test_a_place_to_listen_is_a_host_and_a_port(problems: Any, listen: str) -> None:
    text = HOOK + f"secret = 'x'\nlisten = '{listen}'\n"
    assert list(problems(text)) == ["channels.telegram.webhook.listen"]


@pytest.mark.parametrize(
    ("written", "size"),
    [("'20MB'", 20_000_000), ("'5kB'", 5_000), ("'5KB'", 5_000), ("'2GB'", 2_000_000_000), ("700", 700)],
)
def test_a_size_is_read(load: Any, written: str, size: int) -> None:
    assert load(TELEGRAM + f"file_limit = {written}\n").channels.telegram.file_limit == size


@pytest.mark.parametrize("written", ["'20'", "'0MB'", "0", "-1", "true", "'1TB'", "'20 MB'", "1.5"])
def test_what_is_no_size_is_refused(problems: Any, written: str) -> None:
    assert list(problems(TELEGRAM + f"file_limit = {written}\n")) == ["channels.telegram.file_limit"]
