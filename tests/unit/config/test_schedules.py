"""Schedules in the configuration: both spellings, what is wrong with one, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.app.build import build_parts
from gateway.messages import ThreadKey
from gateway.store.schedule_rows import Standing
from gateway.timetable import Timing

MINIMAL = "[models.main]\nprovider = 'scripted'\n[agents.assistant]\n"
CHANNELS = (
    "[channels.web]\n[channels.telegram]\ntoken = '777:AAsecretsecretsecretsecretsecretsecret'\n"
    "[channels.slack]\nbot_token = 'xoxb-1-secret'\napp_token = 'xapp-1-secret'\n"
)
START = "agent = 'assistant'\ninstruction = 'Look.'\n"


def table(*lines: str, name: str = "watch", thread: str = "web") -> str:
    own = f"name = '{name}'\nthread = '{thread}'\n" if name else f"thread = '{thread}'\n"
    return f"[[schedules]]\n{START}{own}" + "".join(f"{line}\n" for line in lines)


@pytest.fixture
def standing(load: Any, tmp_path: Any) -> Any:
    """The schedules that a gateway would keep."""

    def run(text: str) -> list[Standing]:
        (tmp_path / "script.json").write_text('{"replies": [{"text": "hello"}]}')
        scripted = MINIMAL.replace("'scripted'\n", "'scripted'\nscript = 'script.json'\n")
        return list(build_parts(load(scripted + CHANNELS + text)).schedules)

    return run


def test_both_spellings_mean_the_same(standing: Any) -> None:
    listed = standing(table("every = '4h'"))
    named = standing(f"[schedules.watch]\n{START}thread = 'web'\nevery = '4h'\n")
    assert (
        listed
        == named
        == [
            Standing(
                name="watch",
                agent="assistant",
                key=ThreadKey("web", "local", "schedule-watch", ""),
                timing=Timing(every=14_400.0),
                instruction="Look.",
            )
        ]
    )


def test_everything_that_can_be_said_arrives(standing: Any) -> None:
    more = ("cron = '0  8 * * mon-fri'", "timezone = 'Europe/Berlin'", "missed = 'skip'", "tenant = 'acme'")
    (only,) = standing(table(*more, thread="slack:T1:C9"))
    assert only.timing == Timing(cron="0 8 * * mon-fri", zone="Europe/Berlin")
    assert (only.missed, only.tenant) == ("skip", "acme")
    assert only.key == ThreadKey("slack", "T1", "C9", "")


def test_a_time_of_day_is_that_of_every_day_and_utc_where_nothing_is_said(standing: Any) -> None:
    first, second = standing(
        table("at = '08:05'", name="a", thread="telegram:42") + table("at = '08:05'", name="b")
    )
    assert first.timing == second.timing == Timing(cron="5 8 * * *")
    assert first.key == ThreadKey("telegram", "777", "42", "")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (table(), "schedules.watch"),
        (table("at = '08:30'", "every = '4h'"), "schedules.watch"),
        (table("every = '30s'"), "schedules.watch.every"),
        (table("every = '400d'"), "schedules.watch.every"),
        (table("cron = '0 8 * *'"), "schedules.watch.cron"),
        (table("cron = '0 0 31 2 *'"), "schedules.watch.cron"),
        (table("at = '8:30'"), "schedules.watch.at"),
        (table("at = '08:30'", "timezone = 'Mars/Base'"), "schedules.watch.timezone"),
        (table("every = '4h'", "missed = 'twice'"), "schedules.watch.missed"),
        (table("every = '4h'", "often = true"), "schedules.watch.often"),
        (table("every = '4h'", name=""), "schedules[0].name"),
        (table("every = '4h'", name="every day"), "schedules[0].name"),
        (table("every = '4h'") + table("every = '5h'"), "schedules[1].name"),
        (table("every = '4h'", thread="discord:1:2"), "schedules.watch.thread"),
        (table("every = '4h'", thread="webhook:pager"), "schedules.watch.thread"),
        (table("every = '4h'", thread="web:1"), "schedules.watch.thread"),
        (table("every = '4h'", thread="slack:general"), "schedules.watch.thread"),
        (table("every = '4h'").replace("'assistant'", "'nobody'"), "schedules.watch.agent"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(problems: Any, text: str, key: str) -> None:
    assert list(problems(MINIMAL + CHANNELS + text)) == [key]


def test_the_page_needs_its_channel(problems: Any) -> None:
    assert list(problems(MINIMAL + table("every = '4h'"))) == ["schedules.watch.thread"]
