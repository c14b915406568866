"""A model that cannot be reached: nothing that was said or done is lost, and people know how to go on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.errors import ModelRejected, StoreUnavailable
from gateway.events import AssistantDelta
from gateway.markers import estimate
from gateway.messages import Image, Message, Text, ToolResult
from gateway.providers.base import ModelRequest, ModelResponse, OnDelta
from gateway.providers.retry import ResilientModel
from gateway.providers.scripted import Reply
from gateway.store.rows import Lease
from gateway.tools.base import ToolOutput, tool
from gateway.verdicts import BROKE_OFF, INTERRUPTED
from tests.unit.gateway.scene import House, HouseModel, Office, call, calls, running
from tests.unit.gateway.talk import button

DOWN = Reply(error="overloaded")
GO_ON = "`go on` will do"


def resilient(house: House, attempts: int = 4) -> dict[str, Any]:
    """Parts with the patient model that the configuration makes."""
    model = ResilientModel([HouseModel(house)], clock=house.clock, attempts=attempts, jitter=lambda: 0.5)
    return {"model_of": lambda agent: model}


def read(house: House) -> list[Message]:
    """What the model was asked last."""
    return list(house.requests[-1].messages)


def results(house: House) -> list[ToolResult]:
    return [result for message in read(house) for result in message.results]


# ---- waits


@pytest.mark.parametrize("failure", ["rate_limited", "overloaded"])
async def test_c076_stop_ends_a_wait_that_the_endpoint_asked_for_at_once(house: House, failure: Any) -> None:
    house.plan["hello"] = [Reply(error=failure, retry_after=60)]
    async with running(house, **resilient(house)) as office:
        before = house.clock.monotonic()
        await office.talk.say("hello")
        await office.until(lambda: house.clock.sleeping)
        await office.say("/stop")
        assert house.clock.monotonic() == before
        assert len(house.requests) == 1
        assert not office.busy
        assert any(text.startswith("Stopped (/stop by Ann") for text in house.world.texts())
        await office.say("and now?")
        assert house.world.texts()[-1] == "you said: and now?"
        assert [m.text for m in read(house)] == ["hello", "and now?"]


async def test_a_newer_message_that_interrupts_ends_a_wait_at_once(house: House) -> None:
    house.plan["hello"] = [Reply(error="rate_limited", retry_after=60)]
    async with running(house, house.agent(busy="interrupt"), **resilient(house)) as office:
        await office.talk.say("hello")
        await office.until(lambda: house.clock.sleeping)
        await office.say("rather this")
        assert house.world.texts()[-1] == "you said: rather this"


async def test_a_wait_that_ends_by_itself_is_not_told(house: House) -> None:
    house.plan["hello"] = [Reply(text="here", error="rate_limited", retry_after=60, times=1)]
    async with running(house, **resilient(house)) as office:
        await office.talk.say("hello")
        await office.until(lambda: house.clock.sleeping)
        house.clock.advance(66)
        await office.settle()
        assert house.world.texts() == ["here"]


async def test_an_absurd_wait_is_told_and_not_waited(house: House) -> None:
    house.plan["hello"] = [Reply(error="rate_limited", retry_after=86_400)]
    async with running(house, **resilient(house)) as office:
        await office.say("hello")
        (told,) = house.world.texts()
        assert "asks to wait 24 h" in told
        assert GO_ON in told


# ---- going on


@pytest.mark.parametrize("restart", [False, True])
async def test_the_next_message_goes_on_with_what_was_said_and_done(house: House, restart: bool) -> None:
    house.plan["go"] = [calls(call("look", at="x"), call("send", to="a"), text="I look."), DOWN]
    async with running(house, **resilient(house, attempts=1)) as office:
        await office.say("go")
        told = house.world.texts()[-1]
        assert "overloaded or cannot be reached" in told
        assert GO_ON in told
        await _go_on(office, house, restart=restart)
    if restart:
        async with running(house) as office:
            await _go_on(office, house, restart=False)


async def _go_on(office: Office, house: House, *, restart: bool) -> None:
    if restart:
        await office.kill()
        return
    await office.say("go on")
    assert house.world.texts()[-1] == "you said: go on"
    assert [m.text for m in read(house)] == ["go", "I look.", "", "go on"]
    assert [(r.content, r.is_error) for r in results(house)] == [("saw x", False), ("sent to a", False)]
    assert house.ran == ["look x", "send a"]
    await office.log()


@pytest.mark.parametrize("restart", [False, True])
async def test_an_approved_call_runs_once_and_its_result_outlives_the_outage(
    house: House, restart: bool
) -> None:
    house.plan["pay"] = [calls(call("pay", order="A-1"), call("look", at="x")), DOWN]
    async with running(house, **resilient(house, attempts=1)) as office:
        await office.say("pay")
        ref, card = house.world.card()
        await office.press(ref, button(card, "Approve"))
        assert GO_ON in house.world.texts()[-1]
        if restart:
            await office.kill()
        else:
            await office.say("go on")
    async with running(house) as office:
        await office.say("go on" if restart else "really?")
        assert [r.content for r in results(house)] == ["paid 10 for A-1", "saw x"]
        assert sorted(house.ran) == ["look x", "pay A-1 10"]
        assert house.world.live() == []
        again = await office.press(ref, button(card, "Approve"))
        assert again.startswith("Already decided")
        assert sorted(house.ran) == ["look x", "pay A-1 10"]


async def test_messages_that_waited_behind_an_outage_are_all_kept_and_answered_together(
    house: House,
) -> None:
    house.plan["one"] = house.plan["two"] = [DOWN]
    hold = house.hold("one")
    async with running(house, **resilient(house, attempts=1)) as office:
        await office.talk.say("one")
        await hold.is_reached()
        await office.talk.say("two")
        hold.go.set()
        await office.settle()
        assert [GO_ON in text for text in house.world.texts()[-2:]] == [True, True]
        await office.say("three")
        assert [m.text for m in read(house)] == ["one", "two", "three"]
        assert house.world.texts()[-1] == "you said: three"


async def test_a_step_that_could_not_go_on_keeps_what_is_on_record_of_each_call(house: House) -> None:
    house.plan["go"] = [calls(call("send", to="a"), call("send", to="b"), call("note", text="c"))]
    hold = house.hold("send")
    async with running(house) as office:
        await office.talk.say("go")
        await hold.is_reached()
        hold.go.set()
        second = house.hold("send")
        await second.is_reached()
        await office.kill()
    house.holds.clear()
    async with running(house, house.agent(name="somebody else")) as office:
        await office.settle()
        (told,) = house.world.texts()
        assert "no longer configured" in told
        log = await office.log()
        assert [r.content for m in log for r in m.results] == ["sent to a", INTERRUPTED, BROKE_OFF]
    async with running(house) as office:
        await office.say("go on")
        assert house.ran == ["send a", "send b"]
        assert [r.content for r in results(house)] == ["sent to a", INTERRUPTED, BROKE_OFF]


async def test_a_conversation_that_is_too_long_is_told_as_such_and_takes_the_next_message(
    house: House,
) -> None:
    house.plan["hello"] = [Reply(error="too_long")]
    async with running(house, **resilient(house)) as office:
        await office.say("hello")
        (told,) = house.world.texts()
        assert "too long for the model" in told
        assert "/new" in told
        assert "no model" not in told
        await office.say("shorter")
        assert house.world.texts()[-1] == "you said: shorter"


async def test_a_request_that_is_refused_is_told_as_such(house: House) -> None:
    house.plan["hello"] = [Reply(error="rejected")]
    async with running(house, **resilient(house)) as office:
        await office.say("hello")
        (told,) = house.world.texts()
        assert "the model does not take the request" in told


async def test_a_reply_that_broke_off_is_void_for_those_who_watch_it_grow(house: House) -> None:
    house.plan["hello"] = [Reply(text="here", error="overloaded", times=1)]
    async with running(house, **resilient(house)) as office:
        await office.talk.say("hello")
        await office.until(lambda: house.clock.sleeping)
        house.clock.advance(5)
        await office.settle()
        pieces = [event.text for _, event in house.events if isinstance(event, AssistantDelta)]
        assert pieces == ["here", "", "here"]
        assert house.world.texts() == ["here"]


# ---- compaction and crashes


class Narrow(HouseModel):
    """Takes no more than that many estimated tokens; sums up what it is asked to sum up."""

    most = 100_000

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
        if not request.tools:
            return ModelResponse(content=(Text(text="They sent things."),), stop="end")
        if estimate(request.messages) > self.most:
            raise ModelRejected("prompt is too long", context_too_long=True)
        return await super().complete(request, on_delta)


@pytest.mark.parametrize("fatal", [1, 2, 3])
async def test_c057_a_crash_between_the_markers_of_a_compaction_does_no_harm(
    house: House, fatal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Narrow(house)
    steps = [calls(call("send", to="x" * 2_500 + str(n)), text=f"step {n} " + "w" * 3_000) for n in range(3)]
    house.plan["go"] = [*steps, "over"]
    written: list[str] = []
    async with running(house, model_of=lambda agent: model) as office:
        await office.say("go")
        await office.say("small talk")
        model.most = 400
        really = office.store.marker

        async def marker(lease: Lease, message: Message, events: str) -> None:
            written.append(message.kind)
            if len(written) == fatal:
                raise StoreUnavailable("about to die")
            await really(lease, message, events)

        monkeypatch.setattr(office.store, "marker", marker)
        await office.talk.say("and?")
        await office.until(lambda: not office.gateway.turns._running)
        await office.settle()
        await office.kill()
    assert written == ["trim", "summary"][:fatal]
    async with running(house, model_of=lambda agent: model) as office:
        await office.say("hello")
        assert house.world.texts()[-2:] == ["you said: and?", "you said: hello"]
        assert len(house.ran) == 3
        log = await office.log()
        assert [m.text for m in log if m.role == "user" and m.text and m.kind == ""] == [
            *("go", "small talk", "and?", "hello"),
        ]
        assert [m.kind for m in log if m.kind] == (["trim", "summary"])
        assert [m.text for m in read(house)] == ["They sent things.", "and?", "you said: and?", "hello"]


# ---- what goes with it


async def test_another_model_sums_up_when_the_agent_names_one(house: House) -> None:
    asked: list[tuple[str, bool]] = []

    class Listening(Narrow):
        name, most = "main", 60

        async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelResponse:
            asked.append((self.name, bool(request.tools)))
            return await super().complete(request, on_delta)

    main, cheap = Listening(house), Listening(house)
    cheap.name = "cheap"
    models = {"main": main, "cheap": cheap}
    agent = house.agent(summary_model="cheap")
    async with running(house, agent, model_of=lambda agent: models[agent.model]) as office:
        await office.say("hello " + "x" * 120)
        await office.say("and?")
        assert house.world.texts()[-1] == "you said: and?"
        assert asked == [("main", True), ("main", True), ("cheap", False), ("main", True)]


async def test_files_that_a_turn_has_made_are_sent_although_it_broke_off(house: House) -> None:
    @tool
    async def draw() -> ToolOutput:
        """Draw."""
        return ToolOutput(text="drawn", parts=(Image(path="s/1.png", media_type="image/png", name="1.png"),))

    house.plan["go"] = [calls(call("draw")), DOWN]
    helper = house.agent()
    async with running(
        house, replace(helper, tools=(*helper.tools, draw)), **resilient(house, attempts=1)
    ) as office:
        await office.talk.say("go")
        await office.quiet()
        session = await office.session()
        assert GO_ON in house.world.texts()[0]
        assert (await office.log())[-1].results[0].parts[0].path == "s/1.png"
        told = "\n".join(house.world.texts())
        files = [message.files for _, message in house.world.messages if message.files]
        assert session.status == "idle"
        assert files or "1.png" in told  # sent, or told why it could not be
