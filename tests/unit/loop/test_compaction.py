"""Making room: what is cut, where, how often, and that the next short message always passes."""

from __future__ import annotations

import pytest

from gateway.errors import IntelligenceUnavailable, ModelOverloaded, ModelRejected
from gateway.events import Compacted
from gateway.history import Transcript
from gateway.loop import run_agent
from gateway.markers import (
    DROPPED,
    STUB,
    cut_before,
)
from gateway.messages import (
    Message,
    Text,
    user,
)
from gateway.outcome import Outcome
from gateway.providers.base import ModelRequest, ModelResponse
from gateway.squeeze import squeeze
from tests.unit.loop.histories import TOO_LONG, looked, said, talk
from tests.unit.loop.scene import Log, Ran, Replies, Tape, agent, call, options, says


class Window:
    """A model with a small window: it refuses what is longer, also a request for a summary."""

    id = "small"

    def __init__(self, characters: int, summary: ModelResponse | Exception | None = None) -> None:
        self._characters, self._summary = characters, summary
        self.sizes: list[int] = []

    async def complete(self, request: ModelRequest, on_delta: object = None) -> ModelResponse:
        size = sum(len(m.text) + sum(len(r.content) for r in m.results) for m in request.messages)
        self.sizes.append(size)
        if not request.tools and self._summary is not None:
            if isinstance(self._summary, Exception):
                raise self._summary
            return self._summary
        if size > self._characters:
            raise ModelRejected("too long", context_too_long=True)
        return says("fits")

    async def close(self) -> None:
        """Nothing is open."""


async def test_c069_bulky_old_results_go_first_and_cost_no_model_call() -> None:
    history = [user("q"), *looked(1, 40_000), said("a"), user("q2"), said("a2")]
    log, tape, model = Log(), Tape(), Window(10_000)
    result = await run_agent(agent(), model, "hi", history, options=options(log, journal=tape))
    assert result.outcome is Outcome.COMPLETED
    assert [event.how for event in log.of("prompt:compaction")] == ["trimmed"]
    assert (tape.log, len(model.sizes)) == (["marker trim"], 2)


async def test_c069_old_turns_are_summed_up_next() -> None:
    log = Log()
    model = Window(2_000, summary=says("They talked a lot."))
    result = await run_agent(agent(), model, "hi", talk(10), options=options(log))
    assert result.outcome is Outcome.COMPLETED
    (event,) = log.of("prompt:compaction")
    assert isinstance(event, Compacted)
    assert (event.how, event.reason) == ("summarised", "too_long")
    assert event.after < event.before
    marker = next(m for m in result.messages if m.kind == "summary")
    assert (marker.text, marker.covers) == ("They talked a lot.", 20)


async def test_c069_without_a_model_for_the_summary_whole_old_turns_are_dropped() -> None:
    log = Log()
    model = Window(6_000, summary=ModelOverloaded("timed out"))
    result = await run_agent(agent(), model, "hi", talk(10), options=options(log))
    assert result.outcome is Outcome.COMPLETED
    assert [event.how for event in log.of("prompt:compaction")] == ["dropped"]
    assert next(m for m in result.messages if m.kind == "summary").text == DROPPED


async def test_c069_at_most_two_attempts_a_turn_each_smaller_then_one_clear_word() -> None:
    log, model = Log(), Window(100)
    with pytest.raises(IntelligenceUnavailable, match="/new"):
        await run_agent(agent(), model, "hi " + "x" * 300, talk(10), options=options(log))
    events = log.of("prompt:compaction")
    assert len(events) == 2
    assert all(event.after < event.before for event in events)
    assert events[1].before == events[0].after


async def test_c069_the_session_accepts_the_next_short_message() -> None:
    transcript = Transcript(talk(2))
    model = Window(2_000)
    with pytest.raises(IntelligenceUnavailable):
        await run_agent(agent(), model, "x" * 400_000, transcript)
    result = await run_agent(agent(), model, "hello?", transcript)
    assert (result.outcome, result.text) == (Outcome.COMPLETED, "fits")


async def test_c069_results_of_the_running_turn_can_go_too() -> None:
    ran, log = Ran(), Log()
    tool = ran.tool("look", "x" * 20_000)
    steps = [says(f"step {n}", call(f"c{n}", "look", n=n)) for n in range(6)]
    model = Replies(*steps, TOO_LONG, says("done"))
    result = await run_agent(agent(tool), model, "hi", options=options(log))
    assert result.outcome is Outcome.COMPLETED
    assert [event.how for event in log.of("prompt:compaction")] == ["trimmed"]
    shown = [r.content for m in model.seen[-1] for r in m.results]
    assert shown[:4] == [STUB.format(size=20_000, ref=f"c{n}") for n in range(4)]
    assert shown[-1] == "x" * 20_000


async def test_c069_when_only_the_last_results_are_too_long_they_are_left_out_as_well() -> None:
    ran = Ran()
    tool = ran.tool("look", "x" * 25_000, safe=True)
    reply = says("", *(call(f"c{n}", "look", n=n) for n in range(3)))
    model = Replies(reply, TOO_LONG, says("done"))
    result = await run_agent(agent(tool), model, "hi")
    assert result.outcome is Outcome.COMPLETED
    assert [r.content for r in model.seen[-1][-1].results] == [
        STUB.format(size=25_000, ref=f"c{n}") for n in range(3)
    ]


async def test_near_the_window_history_is_cut_before_the_model_is_asked() -> None:
    log, model = Log(), Replies(says("They talked."), says("hello"))
    desk = agent(context_window=2_000)
    await run_agent(desk, model, "hi", talk(10), options=options(log))
    (event,) = log.of("prompt:compaction")
    assert event.reason == "window"
    assert event.before > 1_600 > event.after
    assert [m.text for m in model.seen[1]] == ["They talked.", "hi"]


async def test_the_request_for_a_summary_is_one_message_without_tools() -> None:
    model = Replies(TOO_LONG, says("Sum."), says("hello"))
    await run_agent(agent(), model, "hi", [user("old question"), *looked(1, 10), said("old answer")])
    request = model.requests[1]
    assert (request.tools, [m.role for m in request.messages]) == ((), ["user"])
    assert "old question" in request.messages[0].text
    assert 'calls look with {"n":1}' in request.messages[0].text


async def test_a_second_compaction_sums_up_the_first_and_never_the_same_part_twice() -> None:
    asked: list[str] = []

    async def summarise(messages: object) -> str:
        asked.append(messages[0].text)  # type: ignore[index]
        return f"summary {len(asked)}"

    transcript = Transcript([*talk(5), user("now")])
    first = await squeeze(transcript.log, 10, summarise)
    assert first is not None
    for marker in first.markers:
        transcript.append(marker)
    assert await squeeze(transcript.log, 10, summarise) is None
    assert len(asked) == 1
    for message in (said("x" * 900), user("later")):
        transcript.append(message)
    second = await squeeze(transcript.log, 10, summarise)
    assert second is not None
    assert asked[1].startswith("Summary of what came before:\nsummary 1")
    for marker in second.markers:
        transcript.append(marker)
    assert [m.text for m in transcript.visible()] == ["summary 2", "later"]


async def test_what_an_earlier_summary_said_survives_when_turns_are_dropped() -> None:
    async def nobody(messages: object) -> None:
        return None

    log = [*talk(2), Message(role="user", kind="summary", content=(Text(text="The plan."),), covers=4)]
    transcript = Transcript([*log, *talk(4), user("now")])
    squeezed = await squeeze(transcript.log, 10, nobody)
    assert squeezed is not None
    assert squeezed.markers[-1].text == f"The plan.\n\n{DROPPED}"


def test_c057_a_cut_moves_to_where_no_call_is_open() -> None:
    log = [user("a"), *looked(1, 5), said("b"), user("c"), *looked(2, 5), said("d"), user("e")]
    for index in range(len(log)):
        place = cut_before(log, index)
        assert place <= index
        assert place == 0 or (log[place].role == "user" and not log[place].results)
