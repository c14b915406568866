"""Called by name: bare words that are commands, and people about whom the platform has not told yet."""

from __future__ import annotations

import pytest

from gateway.app.people import ConfiguredRules
from gateway.commands import BARE, Command, read_command
from gateway.errors import StandingUnknown
from tests.unit.gateway.scene import HERE, House, running


@pytest.mark.parametrize("word", sorted(BARE))
def test_behind_the_bots_name_the_bare_word_is_the_command(word: str) -> None:
    assert read_command(f" {word.upper()} ", bare=True) == Command(name=word, words=())
    assert read_command(word) is None


@pytest.mark.parametrize("text", ["", "stop it", "approve", "deny abcd", "model", "stop.", "start"])
def test_anything_else_behind_the_bots_name_is_talk(text: str) -> None:
    assert read_command(text, bare=True) is None


def test_a_sign_in_front_works_behind_the_bots_name_as_everywhere() -> None:
    assert read_command("!deny abcd no", bare=True) == Command(name="deny", words=("abcd", "no"))


async def test_a_quoted_message_is_never_a_bare_word(house: House) -> None:
    async with running(house) as office:
        await office.say("stop", mentioned=True, quote="why does it")
        assert len(await office.log(HERE)) == 2
        await office.say("status", mentioned=True)
        assert office.world.texts(HERE)[-1].startswith("Agent ")
        assert len(await office.log(HERE)) == 2


async def test_who_may_be_no_guest_is_neither_let_in_nor_turned_away_until_that_is_known(
    house: House,
) -> None:
    rules = ConfiguredRules(default_agent="helper", users={"talk": frozenset({"*", "kim"})})
    async with running(house, rules=rules) as office:
        with pytest.raises(StandingUnknown):
            await office.say("hello", user="zoe", guest=True, guest_unsure=True)
        assert office.world.texts(HERE) == [] and await office.store.sessions() == []
        await office.say("hello", user="kim", guest=True, guest_unsure=True)
        await office.say("hi", user="max", guest=True)
        await office.say("hello again", user="zoe")
        said = [m.text for m in await office.log(HERE) if m.role == "user"]
        assert said == ["hello", "hello again"]


async def test_where_ids_are_listed_it_does_not_matter_whether_somebody_is_a_guest(house: House) -> None:
    rules = ConfiguredRules(default_agent="helper", users={"talk": frozenset({"ann"})})
    async with running(house, rules=rules) as office:
        await office.say("let me in", user="zoe", guest=True, guest_unsure=True)
        await office.say("hello", guest=True, guest_unsure=True)
        assert [m.text for m in await office.log(HERE) if m.role == "user"] == ["hello"]
