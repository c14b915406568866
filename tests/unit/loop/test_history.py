"""The log: what the model sees of it, and how a broken one is mended."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.history import (
    CRASH_RECOVERY_CONTINUATION,
    INTERRUPTED_RESULT,
    Transcript,
    crash_note,
    empty_reply,
    repaired,
    resumable,
    unique_ids,
    without_crash_note,
)
from gateway.loop import run_agent
from gateway.markers import DROPPED, STUB, estimate, summary_marker, trim_marker, turn_starts, turns_dropped
from gateway.messages import (
    Block,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    assistant,
    decode_message,
    encode_message,
    tool_results,
    user,
)
from tests.unit.loop.scene import Replies, agent, call, contents, says


def result(call_id: str, content: str = "real", *, is_error: bool = False) -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=content, is_error=is_error)


def faults(log: list[Message]) -> list[str]:
    """What a strict endpoint would say about this history."""
    found: list[str] = []
    seen: set[str] = set()
    open_ids: list[str] = []
    for index, message in enumerate(m for m in log if m.kind not in ("summary", "trim")):
        if not message.content:
            found.append(f"{index} is empty")
        if any(isinstance(b, Text) and not b.text.strip() for b in message.content):
            found.append(f"{index} has an empty text")
        given = [r.tool_use_id for r in message.results]
        if given != open_ids:
            found.append(f"{index} answers {given}, not {open_ids}")
        if any(isinstance(b, ToolResult) for b in message.content[len(given) :]):
            found.append(f"{index} has results behind other blocks")
        if (message.role == "assistant" and given) or (message.role == "user" and message.calls):
            found.append(f"{index} speaks for the other side")
        open_ids = [c.id for c in message.calls]
        if seen & set(open_ids) or len(set(open_ids)) < len(open_ids):
            found.append(f"{index} repeats an id")
        seen.update(open_ids)
    return found + [f"open at the end: {open_ids}"] * bool(open_ids)


async def test_c056_an_interrupted_call_is_answered_and_the_next_message_passes() -> None:
    history = [
        user("hi"),
        assistant(call("t1", "look"), call("t2", "look")),
        tool_results([result("t1")]),
        user("hello?"),
    ]
    model = Replies(says("here"))
    await run_agent(agent(), model, "again", history)
    seen = model.seen[0]
    assert seen[2] == tool_results([result("t1"), result("t2", INTERRUPTED_RESULT, is_error=True)])
    assert [m.text for m in seen[3:]] == ["hello?", "again"]
    assert faults(seen) == []


def test_c056_results_come_first_in_a_message_that_also_has_words() -> None:
    mixed = Message(role="user", content=(Text(text="hello?"), result("t1")), author="Ada")
    mended = repaired([user("hi"), assistant(call("t1", "look"), call("t2", "look")), mixed])
    assert mended[-1].author == "Ada"
    assert [type(block) for block in mended[-1].content] == [ToolResult, ToolResult, Text]


def test_results_without_a_call_and_second_results_are_dropped() -> None:
    log = [
        user("hi"),
        tool_results([result("ghost")]),
        assistant(call("t1", "look")),
        tool_results([result("t1", "first"), result("t1", "second"), result("ghost")]),
        Message(role="user", content=(result("t1", "late"), Text(text="words stay"))),
    ]
    mended = repaired(log)
    assert [m.role for m in mended] == ["user", "assistant", "user", "user"]
    assert contents(mended[2]) == ["first"]
    assert (mended[3].text, mended[3].results) == ("words stay", [])


def test_a_dangling_end_is_answered_as_interrupted_with_the_crash_note_behind_it() -> None:
    mended = repaired([user("hi"), assistant(call("t1", "look"))])
    assert contents(mended[2]) == [INTERRUPTED_RESULT]
    assert mended[2].results[0].is_error
    assert mended[3] == crash_note()
    assert (mended[3].kind, mended[3].text) == ("note", CRASH_RECOVERY_CONTINUATION)


def test_a_resume_gets_the_open_step_back_and_a_mended_past() -> None:
    step = assistant(call("t2", "look"))
    log = [user("hi"), assistant(call("t1", "look")), user("and?"), step]
    assert without_crash_note(repaired(log))[-1] == step
    opened = resumable(repaired(log))
    assert opened[-1] == step
    assert faults(opened[:-1]) == []
    assert [c.id for c in Transcript(opened).open_calls()] == ["t2"]


def test_a_note_that_is_not_about_the_end_is_left_alone() -> None:
    log = [user("hi"), crash_note(), assistant(Text(text="I see"))]
    assert without_crash_note(log) == log


def test_ids_that_two_replies_share_are_told_apart_with_their_results() -> None:
    log = [
        user("hi"),
        assistant(call("t1", "look", n=1)),
        tool_results([result("t1", "one")]),
        assistant(call("t1", "look", n=2)),
        tool_results([result("t1", "two")]),
    ]
    mended = repaired(log)
    assert [c.id for m in mended for c in m.calls] == ["t1", "t1-2"]
    assert [(r.tool_use_id, r.content) for m in mended for r in m.results] == [
        ("t1", "one"),
        ("t1-2", "two"),
    ]


def test_markers_cover_the_same_part_after_a_repair_before_them() -> None:
    marker = summary_marker("They looked.", 3)
    log = [user("hi"), assistant(call("t1", "look")), user("and?"), user("now"), marker]
    mended = repaired(log)
    assert [m.text for m in Transcript(mended).visible()] == ["They looked.", "now"]


BLOCKS = st.one_of(
    st.builds(Text, text=st.sampled_from(["", " ", "words"])),
    st.builds(Thinking, text=st.just("hm")),
    st.builds(ToolUse, id=st.sampled_from("abc"), name=st.just("look"), input=st.just({})),
    st.builds(ToolResult, tool_use_id=st.sampled_from("abc"), content=st.sampled_from(["1", "2"])),
    st.builds(Image, path=st.just("p"), media_type=st.just("image/png")),
)
ANY = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant"]),
    content=st.lists(BLOCKS, max_size=4).map(tuple),
    kind=st.sampled_from(["", "", "", "note"]),
)


@given(st.lists(ANY, max_size=8))
def test_c056_a_repaired_history_is_valid_and_repairing_it_again_changes_nothing(log: list[Message]) -> None:
    mended = repaired(log)
    assert faults(mended) == []
    assert repaired(mended) == mended


@st.composite
def valid(draw: st.DrawFn) -> list[Message]:
    log: list[Message] = []
    for number in range(draw(st.integers(0, 6))):
        log.append(user("question"))
        calls = [call(f"c{number}-{n}", "look") for n in range(draw(st.integers(0, 3)))]
        log.append(assistant(Thinking(text="hm"), Text(text="so"), *calls))
        if calls:
            words: list[Block] = [Text(text="by the way")] if draw(st.booleans()) else []
            log.append(Message(role="user", content=(*(result(c.id) for c in calls), *words)))
        if draw(st.booleans()):
            log.append(summary_marker("sum", len(log)))
    return log


@given(valid())
def test_a_valid_history_comes_back_equal(log: list[Message]) -> None:
    assert faults(log) == []
    assert repaired(log) == log


@given(valid(), st.data())
def test_c056_a_history_that_broke_off_anywhere_passes_after_repair(
    log: list[Message], data: st.DataObject
) -> None:
    cut = log[: data.draw(st.integers(0, len(log)))]
    assert faults(repaired(cut)) == []
    assert faults(repaired([*cut, user("hello?")])) == []


@given(valid())
def test_a_log_survives_its_stored_form(log: list[Message]) -> None:
    assert [decode_message(encode_message(message)) for message in log] == log


# ---- the view


def test_without_markers_the_view_is_the_log_itself() -> None:
    transcript = Transcript([user("hi")])
    assert transcript.visible() is transcript.log
    assert transcript.tokens() == estimate(transcript.log)


def test_a_summary_stands_for_what_it_covers_and_the_last_one_counts() -> None:
    transcript = Transcript([user("one"), user("two"), summary_marker("s1", 1), user("three")])
    assert [m.text for m in transcript.visible()] == ["s1", "two", "three"]
    transcript.append(summary_marker("s2", 3))
    assert [m.text for m in transcript.visible()] == ["s2", "three"]


def test_a_trim_leaves_stubs_that_still_answer_their_calls() -> None:
    log = [user("hi"), assistant(call("t1", "look")), tool_results([result("t1", "x" * 5_000)])]
    marker = trim_marker(log, keep_last=0)
    assert marker is not None
    transcript = Transcript([*log, marker])
    assert contents(transcript.visible()[2]) == [STUB.format(size=5_000, ref="t1")]
    assert faults(list(transcript.visible())) == []
    assert trim_marker(transcript.log, keep_last=0) is None
    assert contents(log[2]) == ["x" * 5_000]


def test_a_turn_begins_where_a_person_speaks_and_nothing_was_just_found_out_for_them() -> None:
    step = [assistant(call("t1", "look")), tool_results([result("t1")])]
    log = [user("a"), *step, user("and hurry"), assistant(Text(text="yes")), user("b"), user("c")]
    assert turn_starts(log) == [0, 5, 6]
    assert turns_dropped(log, 5).text == DROPPED


def test_a_step_is_remembered_as_what_the_provider_counted_and_the_rest_is_estimated() -> None:
    transcript = Transcript([user("x" * 392)])
    assert (transcript.tokens(), transcript.tokens(beside=400)) == (100, 200)
    transcript.measured(160)
    assert transcript.tokens(beside=400) == 160
    transcript.append(user("x" * 192))
    assert transcript.tokens() == 210
    transcript.append(summary_marker("x" * 142, 2))  # a quarter of what there was
    assert transcript.tokens() == 60
    transcript.measured(1)  # an endpoint that does not count what it has cached
    assert transcript.tokens() == 60


def test_pictures_and_documents_count_by_what_they_are_and_never_by_their_bytes() -> None:
    picture = Image(path="a.png", media_type="image/png")
    asked = ToolResult(tool_use_id="t1", content="", parts=(picture, picture))
    assert estimate([user("", picture)]) == estimate([user("x" * 6_400)])
    assert estimate([tool_results([asked])]) == 2 * 1_600 + 2
    small, large = (File(path="f", media_type="application/pdf", size=n) for n in (1_000, 3_200_000))
    assert estimate([user("", small)]) < 2_100 < 50_000 < estimate([user("", large)]) < 60_000
    assert estimate([user("", File(path="f", media_type="text/csv", size=10**9))]) < 100


def test_open_calls_are_those_of_an_unanswered_last_reply_whatever_markers_follow() -> None:
    asked = assistant(call("t1", "look"))
    transcript = Transcript([user("hi"), asked])
    transcript.append(summary_marker("s", 1))
    assert transcript.open_calls() == asked.calls
    transcript.append(tool_results([result("t1")]))
    assert transcript.open_calls() == []


def test_unique_ids_leaves_a_reply_without_clashes_as_it_is() -> None:
    reply = assistant(Text(text="x"), call("a", "look"), model="m")
    assert unique_ids(reply, {"b"}) is reply
    assert [c.id for c in unique_ids(reply, {"a", "a-2"}).calls] == ["a-3"]


def test_an_empty_reply_has_neither_words_nor_calls() -> None:
    assert empty_reply(assistant(Text(text=" ")))
    assert empty_reply(assistant(Thinking(text="hm")))
    assert not empty_reply(assistant(call("a", "look")))
