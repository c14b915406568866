"""The wire form of a conversation: right for every history, and growing at its end only."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.messages import (
    Block,
    File,
    Image,
    Json,
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
from gateway.providers.anthropic_rules import WireError, validate
from gateway.providers.anthropic_wire import Builder, build
from gateway.providers.base import ToolSpec
from gateway.providers.conversation import INTERRUPTED
from gateway.providers.names import original_names, wire_name
from tests.platforms.anthropic.replies import redact, think
from tests.platforms.anthropic.rules import NAME, refusal

A, B = "anthropic:claude-a", "anthropic:claude-b"


def wire(*messages: Message, model_id: str = A, tools: tuple[ToolSpec, ...] = (), **more: Any) -> Json:
    body = build(
        messages,
        system="be kind",
        tools=tools,
        model_id=model_id,
        model=model_id.removeprefix("anthropic:"),
        max_tokens=100,
        **more,
    )
    validate(body)
    assert refusal(body) is None
    return body


def unmarked(messages: list[Json]) -> list[Json]:
    """Without cache marks: the vendor compares prefixes without them."""
    return [
        {
            **message,
            "content": [
                {k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]
            ],
        }
        for message in messages
    ]


def said(*messages: Message, **options: Any) -> list[Json]:
    return unmarked(wire(*messages, **options)["messages"])


def use(id: str, name: str = "t") -> ToolUse:
    return ToolUse(id=id, name=name, input={})


def result(id: str, content: str = "ok", *, is_error: bool = False) -> ToolResult:
    return ToolResult(tool_use_id=id, content=content, is_error=is_error)


def test_c056_a_call_without_a_result_is_answered_before_the_next_words() -> None:
    log = [user("go"), assistant(use("t1"), use("t2")), tool_results([result("t1", "real")]), user("hello?")]
    assert said(*log)[1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t1", "name": "t", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "t", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "real"},
                {"type": "tool_result", "tool_use_id": "t2", "content": INTERRUPTED, "is_error": True},
                {"type": "text", "text": "hello?"},
            ],
        },
    ]


def test_c056_calls_at_the_very_end_are_answered_and_text_stands_before_calls() -> None:
    log = [user("go"), assistant(use("t1"), Text(text="wait"), use("t2"))]
    *_, acted, answers = said(*log)
    assert [block["type"] for block in acted["content"]] == ["text", "tool_use", "tool_use"]
    assert [block["content"] for block in answers["content"]] == [INTERRUPTED, INTERRUPTED]


def test_c057_results_without_a_call_are_dropped_and_text_beside_them_stays() -> None:
    summary = Message(role="user", content=(Text(text="so far: a"),), kind="summary")
    mixed = Message(role="user", content=(Text(text="and now?"), result("gone")))
    older = Message(role="user", content=(Text(text="older"),), kind="summary")
    log = [
        user("x"),
        older,
        user("y"),
        assistant(use("gone")),
        summary,
        mixed,
        assistant(Text(text="z")),
        user("q"),
    ]
    assert said(*log) == [
        {"role": "user", "content": [{"type": "text", "text": t} for t in ("so far: a", "and now?")]},
        {"role": "assistant", "content": [{"type": "text", "text": "z"}]},
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
    ]


def test_c057_a_summary_stands_for_as_many_messages_as_it_covers() -> None:
    summary = Message(role="user", content=(Text(text="so far: a"),), kind="summary", covers=2)
    trim = Message(role="user", content=(), kind="trim", covers=2)
    log = [
        user("a"),
        assistant(Text(text="b")),
        user("c"),
        trim,
        summary,
        assistant(Text(text="d")),
        user("e"),
    ]
    assert [[b["text"] for b in m["content"]] for m in said(*log)] == [["so far: a", "c"], ["d"], ["e"]]
    assert said(summary, *log[2:3], *log[5:]) == said(*log)


def test_c057_a_result_that_comes_twice_is_sent_once() -> None:
    log = [user("go"), assistant(use("t1")), tool_results([result("t1", "first"), result("t1", "second")])]
    assert [block["content"] for block in said(*log)[-1]["content"]] == ["first"]


def test_c045_four_results_of_one_batch_sit_in_one_message_in_call_order() -> None:
    log = [user("go"), assistant(*(use(id, id) for id in "abcd"))]
    log.append(
        tool_results(
            [
                result("d", "not run: approval expired", is_error=True),
                result("a", "A"),
                result("c", "denied by Kim: not on Friday", is_error=True),
                result("b", "B"),
            ]
        )
    )
    log.append(user("steered"))
    last = said(*log)[-1]["content"]
    assert [(b.get("tool_use_id"), b.get("is_error", False)) for b in last] == [
        ("a", False),
        ("b", False),
        ("c", True),
        ("d", True),
        (None, False),
    ]


def thoughtful(model_id: str) -> Message:
    model = model_id.removeprefix("anthropic:")
    return assistant(
        Thinking(text="hm", opaque=think("hm", model)),
        Thinking(opaque=redact("secret", model)),
        Thinking(opaque=think("", model)),
        Text(text="so"),
        use("t1"),
        model=model_id,
    )


def test_c059_thinking_goes_back_byte_for_byte_to_the_model_that_wrote_it() -> None:
    stored = decode_message(encode_message(thoughtful(A)))
    blocks = said(user("go"), stored, tool_results([result("t1")]))[1]["content"]
    assert json.dumps(blocks[:3]) == json.dumps(
        [think("hm", "claude-a"), redact("secret", "claude-a"), think("", "claude-a")]
    )
    assert [block["type"] for block in blocks[3:]] == ["text", "tool_use"]


def test_c059_another_model_gets_no_thinking() -> None:
    blocks = said(user("go"), thoughtful(A), tool_results([result("t1")]), model_id=B)[1]["content"]
    assert [block["type"] for block in blocks] == ["text", "tool_use"]


def test_c059_thinking_is_never_the_end_of_a_message_nor_all_of_it() -> None:
    alone = assistant(Thinking(text="hm", opaque=think("hm", "claude-a")), model=A)
    assert [message["role"] for message in said(user("go"), alone, user("and?"))] == ["user"]
    behind = assistant(Text(text="x"), *alone.content, model=A)
    assert said(user("go"), behind, user("and?"))[1]["content"] == [{"type": "text", "text": "x"}]


def test_c067_an_empty_reply_or_an_empty_text_is_never_sent() -> None:
    log = [user("go"), assistant(model=A), assistant(Text(text=" \n")), user("  "), user("so?")]
    assert said(*log) == [{"role": "user", "content": [{"type": "text", "text": t} for t in ("go", "so?")]}]


def test_c063_the_call_of_a_cut_reply_goes_back_as_an_object_with_its_error() -> None:
    cut = ToolUse(id="t1", name="t", input={}, invalid="cut")
    log = [user("go"), assistant(cut), tool_results([result("t1", "cut at the output limit", is_error=True)])]
    assert said(*log)[1]["content"][0]["input"] == {}


C065 = (
    "enterprise-knowledge-base-production__search.documents.by_semantic_similarity",
    "enterprise-knowledge-base-production__search/documents.by_semantic_similarity",
    "enterprise-knowledge-base-production__find people",
    "plain_name-2",
)


def test_c065_wire_names_are_legal_unique_and_lead_back_to_the_original() -> None:
    tools = tuple(ToolSpec(name=name, description="", input_schema={"type": "object"}) for name in C065)
    sent = [tool["name"] for tool in wire(user("go"), tools=tools)["tools"]]
    assert all(NAME.match(name) for name in sent)
    assert [original_names(C065)[name] for name in sent] == list(C065)
    assert wire_name("plain_name-2") == "plain_name-2"
    log = [user("go"), assistant(use("t1", C065[0])), tool_results([result("t1")])]
    assert said(*log)[1]["content"][0]["name"] == sent[0]


@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=20))
def test_c065_no_two_names_ever_share_a_wire_name(names: list[str]) -> None:
    everything = {*names, *map(wire_name, names)}  # a tool may be called like another's wire name
    assert len({wire_name(name) for name in everything}) == len(everything)
    assert all(NAME.match(wire_name(name)) for name in everything)


def test_ids_of_other_vendors_become_legal_and_unique() -> None:
    log = [user("go")]
    for content in "xy":
        log += [assistant(use("functions.t:0"), use("functions.t:0"), model="kimi")]
        log += [
            tool_results([result("functions.t:0", content + "1"), result("functions.t:0", content + "2")])
        ]
    contents = [block["content"] for message in said(*log)[2::2] for block in message["content"]]
    assert contents == ["x1", "x2", "y1", "y2"]


def test_a_history_that_begins_or_ends_with_the_model_is_framed_by_user_messages() -> None:
    roles = [message["role"] for message in said(assistant(Text(text="hi")))]
    assert roles == ["user", "assistant", "user"]


def test_pictures_and_files_are_loaded_or_named() -> None:
    loads = {"a.png": "cGljdHVyZQ==", "a.pdf": "cGRm"}
    log = [
        user(
            "see", Image(path="a.png", media_type="image/png"), Image(path="gone.png", media_type="image/png")
        ),
        assistant(use("t1")),
        tool_results(
            [
                ToolResult(
                    tool_use_id="t1",
                    content="",
                    parts=(
                        File(path="a.pdf", media_type="application/pdf"),
                        File(path="p/x.csv", media_type="text/csv", name="x.csv"),
                    ),
                )
            ]
        ),
    ]
    first, _, last = said(*log, load=lambda part: loads.get(part.path))
    assert [block["type"] for block in first["content"]] == ["text", "image", "text"]
    assert "gone.png" in first["content"][2]["text"]
    parts = last["content"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "document", "text"]
    assert "x.csv" in parts[2]["text"]


def test_the_author_of_a_message_is_told_to_the_model() -> None:
    assert said(user("hi", author="Kim"))[0]["content"][0]["text"] == "Kim: hi"


def test_half_a_surrogate_pair_is_replaced() -> None:
    body = wire(user("a\ud83db 👍"))
    assert json.dumps(body, ensure_ascii=False).encode()
    assert body["messages"][0]["content"][0]["text"] == "a\ufffdb 👍"


def test_schemas_describe_objects_without_alternatives_at_the_top() -> None:
    odd = ToolSpec(name="t", description=" ", input_schema={"anyOf": [{"type": "object"}], "properties": {}})
    assert wire(user("go"), tools=(odd,))["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


def test_cache_marks_stand_on_tools_system_and_the_last_two_user_messages() -> None:
    tools = tuple(ToolSpec(name=name, description="d", input_schema={"type": "object"}) for name in "ab")
    log = [user("1"), assistant(Text(text="2")), user("3"), assistant(Text(text="4")), user("5")]
    body = wire(*log, tools=tools)
    assert ["cache_control" in tool for tool in body["tools"]] == [False, True]
    assert "cache_control" in body["system"][0]
    marked = ["cache_control" in message["content"][-1] for message in body["messages"]]
    assert marked == [False, False, True, False, True]


def test_the_wire_form_of_a_message_is_made_once_and_forgotten_with_it() -> None:
    loaded: list[str] = []

    def load(part: Image | File) -> str:
        loaded.append(part.path)
        return "cGljdHVyZQ=="

    builder = Builder(model_id=A, model="claude-a", load=load)
    log = [user("see", Image(path="a.png", media_type="image/png"))]
    assert [part.path for part in builder.unread(log)] == ["a.png"]
    bodies = [builder.build(log, system="", tools=(), max_tokens=9) for _ in range(2)]
    assert bodies[0] == bodies[1]
    assert loaded == ["a.png"]
    assert builder.unread(log) == []
    assert len(builder._convert) == 1
    log.clear()
    gc.collect()
    assert len(builder._convert) == 0


# ---- any history at all

TEXTS = st.sampled_from(["", " ", "words", "more\nwords", "ünï 👍"])
IDS = st.sampled_from(["t1", "t2", "t3", "functions.a:0", "t1_2"])
NAMES = st.sampled_from(["search", "search.docs", "x" * 70])
MODELS = st.sampled_from([A, B, "openai:o", ""])


@st.composite
def thinkings(draw: st.DrawFn, model_id: str) -> Thinking:
    words, model = draw(TEXTS), model_id.removeprefix("anthropic:")
    opaque = draw(st.sampled_from([think(words, model), redact(words, model), None]))
    return Thinking(text=words, opaque=opaque)


@st.composite
def assistants(draw: st.DrawFn) -> Message:
    model_id = draw(MODELS)
    one: st.SearchStrategy[Block] = st.one_of(
        st.builds(Text, text=TEXTS),
        thinkings(model_id),
        st.builds(ToolUse, id=IDS, name=NAMES, input=st.just({"a": 1})),
    )
    return assistant(*draw(st.lists(one, max_size=5)), model=model_id)


PARTS = st.builds(
    Image, path=st.sampled_from(["a.png", "gone"]), media_type=st.sampled_from(["image/png", "image/tiff"])
)
RESULTS = st.builds(
    ToolResult,
    tool_use_id=IDS,
    content=TEXTS,
    is_error=st.booleans(),
    parts=st.lists(PARTS, max_size=1).map(tuple),
)
USERS = st.builds(
    Message,
    role=st.just("user"),
    content=st.lists(st.one_of(st.builds(Text, text=TEXTS), RESULTS, PARTS), max_size=5).map(tuple),
    kind=st.sampled_from(["", "", "", "note", "summary", "trim"]),
    covers=st.integers(0, 6),
    author=st.sampled_from(["", "Kim"]),
)


@given(st.lists(st.one_of(assistants(), USERS), max_size=14), st.sampled_from([A, B]))
def test_c056_c057_c059_every_history_becomes_a_request_that_is_accepted(
    log: list[Message], model_id: str
) -> None:
    log = [user("begin"), *log] if not any(m.kind == "summary" for m in log) else [*log, user("end")]
    tools = tuple(
        ToolSpec(name=name, description="", input_schema={"type": "object"})
        for name in ("search", "search.docs")
    )
    wire(*log, model_id=model_id, tools=tools, load=lambda part: "cGlj" if part.path == "a.png" else None)


@st.composite
def sessions(draw: st.DrawFn) -> list[list[Message]]:
    """The messages that each step appended, in a session where nothing goes wrong."""
    steps: list[list[Message]] = [[user(draw(st.sampled_from(["one", "two"])))]]
    for number in range(draw(st.integers(1, 8))):
        model_id = draw(MODELS)
        ids = [f"c{number}_{n}" for n in range(draw(st.integers(0, 3)))]
        thought = draw(st.lists(thinkings(model_id), max_size=1))
        reply = assistant(*thought, Text(text="so"), *(use(id) for id in ids), model=model_id)
        after = [tool_results([result(id) for id in ids])] if ids else [user("next")]
        if draw(st.booleans()) and ids:
            after.append(user("steered"))
        steps.append([reply, *after])
    return steps


@given(sessions())
def test_each_request_begins_with_the_bytes_of_the_one_before(steps: list[list[Message]]) -> None:
    builder = Builder(model_id=A, model="claude-a")
    tools = (ToolSpec(name="t", description="d", input_schema={"type": "object"}),)
    log: list[Message] = []
    before: Json | None = None
    for step in steps:
        log += step
        body = builder.build(log, system="be kind", tools=tools, max_tokens=9)
        validate(body)
        assert refusal(body) is None
        if before is not None:
            assert json.dumps([body["system"], body["tools"]]) == json.dumps(
                [before["system"], before["tools"]]
            )
            shorter = json.dumps(unmarked(before["messages"]))
            assert json.dumps(unmarked(body["messages"])).startswith(shorter.removesuffix("]"))
        before = body


# ---- the validator


def broken(**change: Any) -> Json:
    body = build([user("go")], system="", tools=(), model_id=A, max_tokens=9)
    return {**body, **change}


def turns(*contents: Any) -> list[Json]:
    return [
        {"role": "assistant" if index % 2 else "user", "content": content}
        for index, content in enumerate(contents)
    ]


SAY: list[Json] = [{"type": "text", "text": "x"}]
USE: list[Json] = [{"type": "tool_use", "id": "t1", "name": "t", "input": {}}]
ANSWER: list[Json] = [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]
MARK = {"cache_control": {"type": "ephemeral"}}
TOOL: Json = {"name": "t", "input_schema": {"type": "object"}}

BROKEN: list[tuple[str, Json]] = [
    ("max_tokens", broken(max_tokens=0)),
    ("messages", broken(messages=[])),
    ("tools.0.name", broken(tools=[{**TOOL, "name": "a.b"}])),
    ("tools.1.name", broken(tools=[TOOL, TOOL])),
    ("tools.0.input_schema", broken(tools=[{**TOOL, "input_schema": {}}])),
    ("messages.0.role", broken(messages=[{"role": "assistant", "content": SAY}])),
    ("messages.1.role", broken(messages=[{"role": "user", "content": SAY}] * 2)),
    ("messages.0.content", broken(messages=turns([]))),
    ("messages", broken(messages=turns(SAY, SAY))),
    ("messages.1.content.0.id", broken(messages=turns(SAY, [{**USE[0], "id": "a:b"}], SAY))),
    ("messages.3.content.0.id", broken(messages=turns(SAY, USE, ANSWER, USE, ANSWER))),
    ("messages.1.content.1", broken(messages=turns(SAY, USE + SAY, ANSWER))),
    ("messages.1.content", broken(messages=turns(SAY, [think("x", "m")], SAY))),
    ("messages.1", broken(messages=turns(SAY, USE, SAY))),
    ("messages.1", broken(messages=turns(SAY, USE, ANSWER + ANSWER))),
    ("messages.2", broken(messages=turns(SAY, USE, SAY + ANSWER))),
    ("messages.0", broken(messages=turns(ANSWER))),
    ("messages.0.content.0", broken(messages=turns([{"type": "text", "text": " "}]))),
    ("messages.1.content.0", broken(messages=turns(SAY, [{**USE[0], "input": "x"}], ANSWER))),
    ("messages.1.content.0", broken(messages=turns(SAY, [{**USE[0], "name": "a b"}], ANSWER))),
    (
        "messages.2.content.0",
        broken(messages=turns(SAY, USE, [{**ANSWER[0], "content": "", "is_error": True}])),
    ),
    (
        "messages.2.content.0.content.0",
        broken(messages=turns(SAY, USE, [{**ANSWER[0], "content": [{"type": "text", "text": ""}]}])),
    ),
    ("messages.1.content.0", broken(messages=turns(SAY, [{**think("x", "m"), **MARK}, *SAY], SAY))),
    ("cache_control", broken(messages=turns([{**SAY[0], **MARK}] * 5))),
]


@pytest.mark.parametrize(("place", "body"), BROKEN)
def test_the_validator_names_the_place_of_what_the_api_would_refuse(place: str, body: Json) -> None:
    with pytest.raises(WireError) as caught:
        validate(body)
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("place", "body"), [(p, b) for p, b in BROKEN if p != "messages.1.content.1"]
)  # text after a call is our own, stricter rule
def test_the_server_refuses_what_the_validator_refuses(place: str, body: Json) -> None:
    assert refusal(body) is not None


def test_arguments_called_cache_control_are_not_marks() -> None:
    args = {f"k{n}": {"cache_control": 1} for n in range(6)}
    wire(user("go"), assistant(ToolUse(id="t1", name="t", input=args)), tool_results([result("t1")]))
