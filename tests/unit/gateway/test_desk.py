"""Every command, and what it answers."""

from __future__ import annotations

import pytest

from channels.base import Actor, ThreadKey
from gateway.commands import COMMANDS, read_command
from tests.unit.gateway.scene import House, Office, call, calls, running


async def said(office: Office, text: str, **more: object) -> str:
    """The answer to a command."""
    await office.say(text, **more)
    return office.world.texts()[-1]


@pytest.fixture
def paying(house: House) -> House:
    for order in ("A", "B"):
        house.plan[f"pay {order}"] = [calls(call("pay", order=order)), f"paid {order}"]
    house.plan["both"] = [calls(call("pay", order="A"), call("pay", order="B")), "paid both"]
    return house


async def test_help_names_every_command(house: House) -> None:
    async with running(house) as office:
        text = await said(office, "/help")
        assert all(f"/{name}" in text for name in COMMANDS)


async def test_status_says_what_the_thread_is_doing(paying: House) -> None:
    async with running(paying, paying.agent(), paying.agent(name="ops")) as office:
        assert "Nothing has been said" in await said(office, "/status")
        await office.say("hello")
        assert "waiting for you" in await said(office, "/status")
        await office.say("pay A")
        assert "waiting for somebody's decision" in await said(office, "/status")
        await office.say("later")
        assert "1 message(s) wait" in await said(office, "/status")


async def test_stop_says_what_it_found(paying: House) -> None:
    async with running(paying) as office:
        assert await said(office, "/stop") == "There is nothing to stop."
        await office.say("hello")
        assert await said(office, "/stop") == "There is nothing to stop."
        await office.say("pay A")
        await office.say("later")
        await office.say("/stop")
        assert (
            "Stopped. 1 open request(s) were closed. 1 waiting message(s) come next." in paying.world.texts()
        )
        assert paying.world.texts()[-1] == "you said: later"


async def test_new_begins_afresh_and_takes_waiting_messages_along(paying: House) -> None:
    async with running(paying) as office:
        await office.say("pay A")
        old = await office.session()
        await office.say("later")
        await office.say("/new")
        assert "A fresh conversation begins here. 1 open request(s) were closed." in paying.world.texts()
        new = await office.session()
        assert new.id != old.id
        assert [m.text for m in await office.log()] == ["later", "you said: later"]
        assert (await office.store.session(old.id)) is not None
        assert paying.ran == []


async def test_pending_lists_what_waits_here_with_its_code(paying: House) -> None:
    async with running(paying) as office:
        assert await said(office, "/pending") == "Nothing waits for a decision here."
        await office.say("both")
        text = await said(office, "/pending")
        assert all(r.pending.code in text for r in await office.pendings())
        assert "who may decide: talk:w:ann" in text


async def test_approve_and_deny_by_code_or_the_only_one(paying: House) -> None:
    async with running(paying) as office:
        assert await said(office, "/approve") == "Nothing waits for a decision here."
        assert await said(office, "/approve zzzzz") == "There is no request 'zzzzz'."
        await office.say("pay A")
        await office.say("/approve")
        assert paying.ran == ["pay A 10"]
        await office.say("pay B")
        code = (await office.pendings())[0].pending.code
        await office.say(f"/deny {code.upper()} use the other account")
        (record,) = await office.pendings(open_only=False, code=code)
        assert record.state == "denied" and paying.ran == ["pay A 10"]
        assert any("use the other account" in text for text in paying.world.texts())
        assert (await said(office, f"/approve {code}")).startswith("Already decided. Denied by Ann")


async def test_more_than_one_open_request_is_listed_and_nothing_decided(paying: House) -> None:
    async with running(paying) as office:
        await office.say("both")
        for command in ("/approve", "/deny"):
            text = await said(office, command)
            assert text.startswith("More than one request is open")
        assert paying.ran == [] and len(await office.pendings()) == 2


async def test_a_code_gives_nobody_a_right(paying: House) -> None:
    async with running(paying) as office:
        await office.say("pay A")
        code = (await office.pendings())[0].pending.code
        assert (await said(office, f"/approve {code}", user="bob")).startswith("You may not decide this")
        assert paying.ran == []


async def test_a_command_counts_with_the_roles_of_who_writes_it(paying: House) -> None:
    paying.world.roles["bob"] = frozenset({"administrator"})
    async with running(paying, paying.agent(rule={"approvers": ("talk:admins",)})) as office:
        await office.say("pay A")
        code = (await office.pendings())[0].pending.code
        assert (await said(office, f"/approve {code}")).startswith("You may not decide this")
        await office.say(f"/approve {code}", user="bob")
        assert paying.ran == ["pay A 10"]


@pytest.mark.parametrize("where", ["room", "desk", "elsewhere"])
async def test_an_administrator_counts_where_the_request_is_and_where_its_card_stands(
    paying: House, where: str
) -> None:
    paying.world.roles_at[(where, "bob")] = frozenset({"administrator"})
    rule = {"approvers": ("talk:admins",), "notify": ("talk:desk",)}
    async with running(paying, paying.agent(rule=rule)) as office:
        await office.say("pay A")
        code = (await office.pendings())[0].pending.code
        place = ThreadKey("talk", "w", where, "")
        assert office.talk.inbound is not None
        waiting = await office.talk.inbound.waiting(Actor("talk", "w", "bob"))
        await office.say(f"/approve {code}", user="bob", key=place)
        assert bool(paying.ran) is bool(waiting) is (where != "elsewhere")


async def test_a_question_cannot_be_approved(house: House) -> None:
    house.plan["go"] = [calls(call("ask_user", question="Which?")), "ok"]
    async with running(house) as office:
        await office.say("go")
        assert "wants an answer" in await said(office, "/approve")


async def test_agent_shows_and_changes_who_answers_from_now_on(house: House) -> None:
    async with running(house, house.agent(), house.agent(name="ops", model="large")) as office:
        assert await said(office, "/agent") == "The agent here is helper. There are: helper, ops."
        assert await said(office, "/agent nobody") == "There is no agent 'nobody'. There are: helper, ops."
        assert await said(office, "/model") == "The model here is main."
        assert (await said(office, "/agent ops")).endswith("The agent is ops.")
        assert await said(office, "/agent") == "The agent here is ops. There are: helper, ops."
        assert await said(office, "/model") == "The model here is large."
        await office.say("/new")
        assert (await office.session()).agent == "ops"


@pytest.mark.parametrize(
    "text, name, words",
    [
        ("/new", "new", ()),
        ("  /Stop  ", "stop", ()),
        ("/deny@some_bot abc not now", "deny", ("abc", "not", "now")),
        ("/approve\nabc", "approve", ("abc",)),
    ],
)
def test_commands_are_read(text: str, name: str, words: tuple[str, ...]) -> None:
    command = read_command(text)
    assert command is not None and (command.name, command.words) == (name, words)


@pytest.mark.parametrize("text", ["", "new", "/", "/ new", "/newest", "please /stop", "//stop"])
def test_other_words_are_no_commands(text: str) -> None:
    assert read_command(text) is None
