"""A long turn, and how much is how much: what goes, what stays, and what can be read again."""

from __future__ import annotations

from gateway.errors import IntelligenceUnavailable
from gateway.loop import run_agent
from gateway.markers import (
    DROPPED_STEPS,
    summary_request,
    trim_marker,
    view,
)
from gateway.messages import (
    Image,
    Message,
    Text,
    ToolResult,
    assistant,
    tool_results,
    user,
)
from gateway.outcome import Outcome
from gateway.providers.base import ModelRequest, ModelResponse, Usage
from gateway.squeeze import squeeze
from tests.unit.loop.histories import TOO_LONG, looked, nobody, said, somebody, steps, talk
from tests.unit.loop.scene import Log, Ran, Replies, agent, call, options, says

# ---- one long turn


async def test_c069_a_long_turn_is_cut_between_its_steps_and_what_was_asked_stays_word_for_word() -> None:
    log = [user("old"), said("yes"), user("Look everywhere.", author="Ada"), *steps(20, 1_500)]
    squeezed = await squeeze(log, 3_000, somebody)
    assert squeezed is not None
    assert squeezed.how == "summarised"
    seen = view([*log, *squeezed.markers])
    assert [m.text for m in seen[:2]] == ["They looked around.", "Look everywhere."]
    assert seen[1] is log[2]
    assert seen[2].calls
    assert seen[2:] == log[len(log) - len(seen) + 2 :]
    assert 4 <= len(seen) - 2 < 10


async def test_c069_without_a_model_the_calls_of_steps_that_are_left_out_are_still_named() -> None:
    log = [user("Look everywhere."), *steps(50, 1_500)]
    squeezed = await squeeze(log, 3_000, nobody)
    assert squeezed is not None
    (marker,) = squeezed.markers
    lines = marker.text.splitlines()
    assert lines[0] == DROPPED_STEPS
    assert len(lines) == 41
    assert lines[-1].startswith('- look {"n":')
    assert lines[-1].endswith("x" * 120 + "...")
    assert view([*log, marker])[1] is log[0]


async def test_c069_a_second_cut_in_the_same_turn_keeps_the_names_of_the_first() -> None:
    log = [user("Look."), *steps(6, 1_500)]
    for number in range(2):
        squeezed = await squeeze(log, 1_000, nobody)
        assert squeezed is not None
        log += [*squeezed.markers, *(m for n in range(6) for m in looked(10 * (number + 1) + n, 1_500))]
    text = view(log)[0].text
    assert text.count(DROPPED_STEPS) == 1
    assert [text.count(f'"n":{n}}}') for n in (0, 5, 10, 14)] == [1, 1, 1, 1]
    assert [m.text for m in view(log)[1:2]] == ["Look."]


async def test_what_people_say_in_a_long_turn_stays_as_well_the_first_and_the_last_words_of_many() -> None:
    log = [user("Look."), *steps(1)]
    for number in range(8):
        log += [user(f"also {number}"), *looked(100 + number, 1_500)]
    squeezed = await squeeze(log, 500, somebody)
    assert squeezed is not None
    words = [m.text for m in view([*log, *squeezed.markers]) if m.text]
    assert words[:6] == ["They looked around.", "Look.", "also 4", "also 5", "also 6", "also 7"]


async def test_words_that_share_a_message_with_results_stay_without_the_results() -> None:
    step, answered = looked(1, 3_000)
    mixed = Message(role="user", content=(*answered.content, Text(text="hurry")), author="Ada")
    log = [user("Look."), step, mixed, *(m for n in range(5, 15) for m in looked(n, 1_500))]
    squeezed = await squeeze(log, 1_000, somebody)
    assert squeezed is not None
    seen = view([*log, *squeezed.markers])
    assert [m.text for m in seen[:3]] == ["They looked around.", "Look.", "hurry"]
    assert (seen[2].author, seen[2].results) == ("Ada", [])


async def test_c069_a_turn_of_many_small_steps_goes_on_in_a_small_window() -> None:
    ran, log = Ran(), Log()
    wanted = [says(f"step {n} " + "w" * 300, call(f"c{n}", "look", n=n)) for n in range(24)]

    async def sums_up(request: ModelRequest) -> ModelResponse:
        return says("They looked.")

    desk = agent(ran.tool("look", "y" * 300), context_window=4_000, max_steps=50)
    cheap = Replies(*[sums_up] * 9)
    model = Replies(*wanted, says("done"))
    result = await run_agent(desk, model, "hi", options=options(log, summary_model=cheap))
    assert (result.outcome, len(ran.calls)) == (Outcome.COMPLETED, 24)
    assert 1 <= len(log.of("prompt:compaction")) == len(cheap.requests) <= 2
    assert all(request.tools == () for request in cheap.requests)
    assert any(m.text == "hi" for m in model.seen[-1])


async def test_the_summary_model_that_cannot_be_reached_does_not_end_the_turn() -> None:
    log, cheap = Log(), Replies(IntelligenceUnavailable("no model answered"))
    model = Replies(TOO_LONG, says("hello"))
    result = await run_agent(agent(), model, "hi", talk(10), options=options(log, summary_model=cheap))
    assert result.outcome is Outcome.COMPLETED
    assert [event.how for event in log.of("prompt:compaction")] == ["dropped"]


async def test_the_tokens_of_a_summary_count() -> None:
    model = Replies(TOO_LONG, says("hello"))
    result = await run_agent(
        agent(), model, "hi", talk(10), options=options(summary_model=Replies(says("Sum.")))
    )
    assert result.spent.tokens == 30


# ---- how much is how much


async def test_the_provider_s_own_count_decides_when_to_cut() -> None:
    """A language of which a character costs a token: by the estimate all is well."""
    ran, log = Ran(), Log()
    dear = Usage(input=1_700, output=5)
    model = Replies(says("a", call("c1", "look"), usage=dear), says("They looked."), says("done"))
    history = talk(4)
    await run_agent(agent(ran.tool("look"), context_window=2_000), model, "hi", history, options=options(log))
    (event,) = log.of("prompt:compaction")
    assert event.before > 1_700 > 1_200 > event.after


async def test_system_prompt_and_tools_count_before_the_first_reply() -> None:
    log, model = Log(), Replies(says("Sum."), says("hello"))
    desk = agent(context_window=2_000, system_prompt="s" * 5_000)
    await run_agent(desk, model, "hi", talk(2), options=options(log))
    assert len(log.of("prompt:compaction")) == 1


# ---- what is read of what was left out


async def test_a_result_that_was_left_out_can_be_read_again() -> None:
    ran = Ran()
    model = Replies(
        says("", call("c1", "look")),
        TOO_LONG,
        says("", call("c2", "read_result", ref="c1", offset=20_000)),
        says("done"),
    )
    result = await run_agent(agent(ran.tool("look", "x" * 25_000)), model, "hi")
    assert "read_result(ref='c1')" in model.seen[2][-1].results[0].content
    read = result.messages[-2].results[0].content
    assert read == "[characters 20000 to 25000 of 25000; this is the end]\n" + "x" * 5_000


def test_pictures_of_old_results_are_left_out_by_name_and_never_come_as_text() -> None:
    picture = Image(path="s/1.png", media_type="image/png", name="chart.png")
    shown = ToolResult(tool_use_id="old1", content="the chart", parts=(picture,))
    log = [user("q"), assistant(call("old1", "look")), tool_results([shown]), said("a"), user("b", picture)]
    marker = trim_marker(log, keep_last=0)
    assert marker is not None
    (result,) = view([*log, marker])[2].results
    assert (result.content, result.parts) == (
        "the chart\n[picture chart.png, left out to save room]",
        (),
    )
    assert view([*log, marker])[4] is log[4]
    (request,) = summary_request(log, 5)
    assert "(picture chart.png)" in request.text
