"""What a message means while something waits for people: queue, supersede, answer."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.agent import WhilePending
from tests.contracts.sqlite_harness import SqliteHarness
from tests.unit.gateway.scene import House, Office, call, calls, running
from tests.unit.gateway.talk import button

ENVS = ["staging", "prod"]


@pytest.fixture
def paying(house: House) -> House:
    house.plan["pay"] = [calls(call("pay", order="A")), "paid"]
    house.plan["ask"] = [calls(call("ask_user", question="Which env?", options=ENVS)), "asked"]
    house.plan["pick"] = [
        calls(call("ask_user", question="Which env?", options=ENVS, allow_text=False)),
        "picked",
    ]
    house.plan["count"] = [calls(call("ask_user", question="How many?", kind="integer")), "counted"]
    house.plan["both"] = [calls(call("pay", order="A"), call("ask_user", question="Why?")), "did both"]
    return house


def results(texts: list[Any]) -> list[str]:
    return [result.content for message in texts for result in message.results]


async def said(office: Office) -> list[str]:
    """What people said, as the model has read it so far."""
    return [m.text for m in await office.log() if m.role == "user" and m.text]


@pytest.mark.parametrize("mode", ["queue", "answer"])
async def test_c051_behind_an_approval_a_message_waits_and_its_author_is_told_once(
    paying: House, mode: WhilePending
) -> None:
    async with running(paying, paying.agent(while_pending=mode)) as office:
        await office.say("pay")
        await office.say("yes, do it")
        await office.say("and another")
        assert len(await office.pendings()) == 1 and paying.ran == []
        assert [text.startswith("Noted. Your message is kept") for text in paying.world.texts()] == [True]
        await office.say("/approve")
        assert await said(office) == ["pay", "yes, do it", "and another"]


async def test_supersede_closes_the_approval_and_the_message_runs(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("pay")
        await office.say("never mind, hello")
        assert await office.pendings() == [] and paying.ran == []
        (record,) = await office.pendings(open_only=False)
        assert record.state == "superseded" and record.decided_by == "Ann (talk:w:ann)"
        assert await said(office) == ["pay", "never mind, hello"]
        (content,) = results(await office.log())
        assert "a newer message" in content and "denied" not in content
        stopped, answer = paying.world.texts()
        assert "a newer message" in stopped and answer == "you said: never mind, hello"
        _ref, card = paying.world.card(state="superseded")
        assert card.status.startswith("Closed by a newer message") and not card.buttons
        assert (await office.audit()) == ["requested", "superseded"]


async def test_supersede_closes_a_question_that_a_message_might_have_answered(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("ask")
        await office.say("prod")
        (record,) = await office.pendings(open_only=False)
        assert record.state == "superseded" and await said(office) == ["ask", "prod"]


async def test_supersede_closes_all_that_is_open(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("both")
        await office.say("hello")
        states = [record.state for record in await office.pendings(open_only=False)]
        assert states == ["superseded", "superseded"] and paying.world.texts()[-1] == "you said: hello"


async def test_a_command_supersedes_nothing(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("pay")
        await office.say("/status")
        await office.say("/approve")
        assert paying.ran == ["pay A 10"]


async def test_the_same_message_again_supersedes_nothing_that_came_later(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("hello", message_id="71")
        await office.say("pay")
        await office.say("hello", message_id="71")
        assert len(await office.pendings()) == 1


async def test_a_superseded_request_cannot_be_approved_any_more(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("pay")
        ref, card = paying.world.card()
        await office.say("hello")
        assert (await office.press(ref, button(card, "Approve"))).startswith("Closed by a newer message")
        assert paying.ran == []


async def test_closing_and_taking_the_message_in_are_one_step(paying: House) -> None:
    """The process dies right after the message was stored: the other one finds the request closed."""
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("pay")
        await office.talk.say("hello")
        await office.kill()
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        assert await office.pendings() == []
        await office.settle()
        assert paying.world.texts()[-1] == "you said: hello" and paying.ran == []


async def test_what_became_of_a_cut_off_call_is_not_superseded(paying: House) -> None:
    paying.plan["go"] = [calls(call("send", to="Bob")), "sent"]
    hold = paying.hold("send")
    agent = paying.agent(while_pending="supersede")
    async with running(paying, agent) as office:
        await office.talk.say("go")
        await hold.is_reached()
        await office.kill()
    paying.holds.clear()
    async with running(paying, agent) as office:
        await office.settle()
        await office.say("hello")
        (record,) = await office.pendings()
        assert record.pending.question is not None and record.pending.question.about == "unknown"
        assert paying.world.texts()[-1].startswith("Noted. Your message is kept")


async def test_another_agent_s_requests_are_not_superseded(paying: House) -> None:
    agents = paying.agent(), paying.agent(name="ops", while_pending="supersede")
    async with running(paying, *agents) as office:
        await office.say("pay")
        await office.say("hello")
        assert len(await office.pendings()) == 1


async def test_answer_takes_the_message_whatever_it_says(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="answer")) as office:
        await office.say("ask")
        await office.say("unrelated: what's the time?")
        assert results(await office.log()) == ["unrelated: what's the time?"]
        assert await said(office) == ["ask"]  # used once, as the answer
        assert any(text.startswith("Taken as your answer") for text in paying.world.texts())


async def test_answer_still_reads_numbers_and_labels_as_options(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="answer")) as office:
        await office.say("ask")
        await office.say("2")
        assert results(await office.log()) == ["prod"]


async def test_answer_finds_the_question_beside_an_approval(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="answer")) as office:
        await office.say("both")
        await office.say("because")
        (record,) = await office.pendings()
        assert record.pending.kind == "approval" and paying.ran == []
        await office.say("/approve")
        assert results(await office.log()) == ["paid 10 for A", "because"]


async def test_by_default_a_message_beside_an_approval_answers_nothing(paying: House) -> None:
    async with running(paying) as office:
        await office.say("both")
        await office.say("because")
        assert len(await office.pendings()) == 2


async def test_answer_to_a_question_without_own_answers_goes_by_the_rules_of_c051(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="answer")) as office:
        await office.say("pick")
        await office.say("use the eu cluster")
        assert await said(office) == ["pick", "use the eu cluster"]
        (record,) = await office.pendings(open_only=False)
        assert record.state == "superseded"


async def test_answer_tells_what_does_not_fit_and_the_question_stays(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="answer")) as office:
        await office.say("count")
        await office.say("quite a few")
        assert len(await office.pendings()) == 1 and "counted" not in paying.world.texts()
        await office.say("3")
        assert results(await office.log()) == ["3"]
        assert await said(office) == ["count"]


async def test_commands_are_never_answers(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="answer")) as office:
        await office.say("ask")
        await office.say("/stop")
        (record,) = await office.pendings(open_only=False)
        assert record.state == "superseded" and record.decision is not None


async def test_the_record_of_it_all_fits_its_hashes(paying: House) -> None:
    async with running(paying, paying.agent(while_pending="supersede")) as office:
        await office.say("pay")
        await office.say("hello")
    store = await SqliteHarness(paying.folder / "gateway.db", paying.clock).open()
    assert await store.verify_audit() is None
    await store.close()
