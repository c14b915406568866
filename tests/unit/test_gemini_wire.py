"""Gemini's form of a conversation: right for every history, and growing at its end only."""

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
from gateway.providers.base import ToolSpec
from gateway.providers.conversation import INTERRUPTED
from gateway.providers.gemini_rules import validate
from gateway.providers.gemini_wire import UNSIGNED, Builder, build, gemini_name, is_older
from tests.platforms.gemini.rules import BYPASS, NAME, refusal, signature

A, B, OLD = "gemini-3-a", "gemini-3-b", "gemini-2.5-old"


def own(model: str) -> str:
    return f"gemini:{model}"


def wire(*messages: Message, model: str = A, tools: tuple[ToolSpec, ...] = (), **more: Any) -> Json:
    body = build(messages, system="be kind", tools=tools, model_id=own(model), model=model, **more)
    validate(body, signed=not is_older(model))
    assert refusal(body, model) is None
    return body


def said(*messages: Message, **options: Any) -> list[Json]:
    contents: list[Json] = wire(*messages, **options)["contents"]
    return contents


def use(id: str, name: str = "t", *, model: str = "", no_id: bool = False, **args: Any) -> ToolUse:
    """A call; signed as the API signs it where a model is given."""
    opaque: Json = {}
    if model:
        part = {"functionCall": {"name": gemini_name(name), "args": args}}
        opaque["thoughtSignature"] = signature(model, part)
    if no_id:
        opaque["id"] = None
    return ToolUse(id=id, name=name, input=args, opaque=opaque or None)


def signed_text(words: str, model: str, *, apart: bool = False) -> Text:
    last = "" if apart else words[-2:]
    first = words[: len(words) - len(last)]
    parts = [[len(first), None], [len(last), signature(model, {"text": last})]]
    return Text(text=words, opaque={"parts": parts})


def result(id: str, content: str = "ok", *, is_error: bool = False) -> ToolResult:
    return ToolResult(tool_use_id=id, content=content, is_error=is_error)


def answer(name: str, id: str, content: str, *, error: bool = False) -> Json:
    response = {"error" if error else "output": content}
    return {"functionResponse": {"name": name, "response": response, "id": id}}


def test_c060_a_signed_step_goes_back_whole_and_its_signature_on_the_first_call_only() -> None:
    stored = decode_message(
        encode_message(assistant(use("a", "a", model=A, no_id=True), use("b", "b", no_id=True), model=own(A)))
    )
    log = [user("go"), stored, tool_results([result("b", "B"), result("a", "A")])]
    given_signature = signature(A, {"functionCall": {"name": "a", "args": {}}})
    assert said(*log)[1:] == [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "a", "args": {}}, "thoughtSignature": given_signature},
                {"functionCall": {"name": "b", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "a", "response": {"output": "A"}}},
                {"functionResponse": {"name": "b", "response": {"output": "B"}}},
            ],
        },
    ]


def test_c060_an_unsigned_step_of_another_model_gets_the_documented_value_in_the_current_turn_only() -> None:
    foreign = assistant(use("x", "a"), use("y", "b"), model="anthropic:claude")
    step = [foreign, tool_results([result("x"), result("y")])]
    mine = assistant(use("z", "a", model=A), model=own(A))
    contents = said(user("go"), *step, mine, tool_results([result("z")]))
    assert BYPASS[0] == UNSIGNED
    assert [p.get("thoughtSignature") for p in contents[1]["parts"]] == [UNSIGNED, None]
    real = signature(A, {"functionCall": {"name": "a", "args": {}}})
    assert contents[3]["parts"][0]["thoughtSignature"] == real
    later = said(user("go"), *step, assistant(Text(text="done")), user("and now?"))
    assert [p.get("thoughtSignature") for p in later[1]["parts"]] == [None, None]


@pytest.mark.parametrize("model", [OLD, "gemma-3"])
def test_c060_models_that_check_no_signatures_get_no_stand_in(model: str) -> None:
    contents = said(user("go"), assistant(use("x")), tool_results([result("x")]), model=model)
    assert "thoughtSignature" not in contents[1]["parts"][0]


def test_c060_a_signature_of_another_model_is_left_out() -> None:
    theirs = assistant(signed_text("so then", B), use("x", model=B), model=own(B))
    contents = said(user("go"), theirs, tool_results([result("x")]))
    assert [p.get("thoughtSignature") for p in contents[1]["parts"]] == [None, UNSIGNED]


@pytest.mark.parametrize("apart", [False, True])
def test_c060_a_signature_on_text_goes_back_on_the_part_that_brought_it(apart: bool) -> None:
    stored = decode_message(encode_message(assistant(signed_text("hello 👍", A, apart=apart), model=own(A))))
    parts = said(user("go"), stored, user("and?"))[1]["parts"]
    assert "".join(part["text"] for part in parts) == "hello 👍"
    last = "" if apart else " 👍"
    assert parts[-1] == {"text": last, "thoughtSignature": signature(A, {"text": last})}


def test_c060_thoughts_go_back_only_when_they_are_signed_and_to_their_own_model() -> None:
    words = {"text": "hm", "thought": True}
    opaque = {"parts": [[2, signature(A, words)]]}
    message = assistant(
        Thinking(text="hm", opaque=opaque), Thinking(text="unsigned"), Text(text="so"), model=own(A)
    )
    contents = said(user("go"), message, user("and?"))
    assert contents[1]["parts"] == [{**words, "thoughtSignature": signature(A, words)}, {"text": "so"}]
    assert said(user("go"), message, user("and?"), model=B)[1]["parts"] == [{"text": "so"}]
    alone = assistant(Thinking(text="hm", opaque=opaque), model=own(A))
    assert [c["role"] for c in said(user("go"), alone, user("and?"))] == ["user"]


def test_c060_text_that_no_longer_fits_its_signatures_goes_without_them() -> None:
    changed = Text(text="shorter", opaque=signed_text("as it was", A).opaque)
    assert said(user("go"), assistant(changed, model=own(A)), user("and?"))[1]["parts"] == [
        {"text": "shorter"}
    ]


def test_c056_a_call_without_a_result_is_answered_before_the_next_words() -> None:
    log = [user("go"), assistant(use("t1"), use("t2")), tool_results([result("t1", "real")]), user("hello?")]
    assert said(*log)[2:] == [
        {
            "role": "user",
            "parts": [answer("t", "t1", "real"), answer("t", "t2", INTERRUPTED, error=True)],
        },
        {"role": "user", "parts": [{"text": "hello?"}]},
    ]


def test_c056_calls_at_the_very_end_are_answered_and_foreign_text_stands_before_calls() -> None:
    *_, acted, answers = said(user("go"), assistant(use("t1"), Text(text="wait"), use("t2")))
    assert [next(iter(part)) for part in acted["parts"]] == ["text", "functionCall", "functionCall"]
    assert [p["functionResponse"]["response"] for p in answers["parts"]] == [{"error": INTERRUPTED}] * 2


def test_c057_results_without_a_call_are_dropped_and_text_beside_them_stays() -> None:
    summary = Message(role="user", content=(Text(text="so far: a"),), kind="summary")
    mixed = Message(role="user", content=(Text(text="and now?"), result("gone")))
    log = [user("x"), assistant(use("gone")), summary, mixed, assistant(Text(text="z")), user("q")]
    assert said(*log) == [
        {"role": "user", "parts": [{"text": t} for t in ("so far: a", "and now?")]},
        {"role": "model", "parts": [{"text": "z"}]},
        {"role": "user", "parts": [{"text": "q"}]},
    ]


def test_c057_a_result_that_comes_twice_is_sent_once() -> None:
    log = [user("go"), assistant(use("t1")), tool_results([result("t1", "first"), result("t1", "second")])]
    assert said(*log)[-1]["parts"] == [answer("t", "t1", "first")]


def test_c045_four_results_of_one_batch_sit_in_one_content_in_call_order() -> None:
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
    contents = said(*log, user("steered"))
    assert [list(p["functionResponse"]["response"]) for p in contents[2]["parts"]] == [
        ["output"],
        ["output"],
        ["error"],
        ["error"],
    ]
    assert [p["functionResponse"]["id"] for p in contents[2]["parts"]] == list("abcd")
    assert contents[3]["parts"] == [{"text": "steered"}]


def test_c067_an_empty_reply_or_an_empty_text_is_never_sent() -> None:
    log = [user("go"), assistant(model=own(A)), assistant(Text(text=" \n")), user("  "), user("so?")]
    assert said(*log) == [{"role": "user", "parts": [{"text": t} for t in ("go", "so?")]}]


C065 = (
    "enterprise-knowledge-base-production__search.documents.by_semantic_similarity",
    "enterprise-knowledge-base-production__search/documents.by_semantic_similarity",
    "2fa reset",
    "-dashed",
    "plain_name-2",
)


def test_c065_wire_names_are_legal_unique_and_begin_with_a_letter() -> None:
    tools = tuple(ToolSpec(name=name, description="", input_schema={"type": "object"}) for name in C065)
    declared = wire(user("go"), tools=tools)["tools"][0]["functionDeclarations"]
    names = [declaration["name"] for declaration in declared]
    assert names == [gemini_name(name) for name in C065]
    assert len(set(names)) == len(C065)
    assert all(NAME.match(name) for name in names)
    assert names[-1] == "plain_name-2"


@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=20))
def test_c065_no_two_names_ever_share_a_wire_name(names: list[str]) -> None:
    everything = {*names, *map(gemini_name, names)}
    assert len({gemini_name(name) for name in everything}) == len(everything)
    assert all(NAME.match(gemini_name(name)) for name in everything)


def test_c064_a_schema_with_foreign_keywords_is_accepted_and_a_property_called_like_one_stays() -> None:
    schema = {
        "$schema": "x",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "m": {"anyOf": [{"const": "a"}, {"const": "b"}]},
            "t": {"type": ["string", "null"], "default": None},
            "n": {"type": "number", "exclusiveMinimum": 0},
            "const": {"type": "string"},
        },
    }
    tool = ToolSpec(name="t", description=" ", input_schema=schema)
    (declaration,) = wire(user("go"), tools=(tool,))["tools"][0]["functionDeclarations"]
    sent = declaration["parametersJsonSchema"]["properties"]
    assert sorted(sent) == ["const", "m", "n", "t"]
    assert sorted(sent["m"]["enum"]) == ["a", "b"]
    assert "description" not in declaration


def test_ids_of_other_vendors_become_legal_and_unique() -> None:
    log = [user("go")]
    for content in "xy":
        log += [assistant(use("functions.t:0"), use("functions.t:0"), model="kimi")]
        log += [
            tool_results([result("functions.t:0", content + "1"), result("functions.t:0", content + "2")])
        ]
    outputs = [p["functionResponse"]["response"]["output"] for c in said(*log)[2::2] for p in c["parts"]]
    assert outputs == ["x1", "x2", "y1", "y2"]


def test_a_history_that_begins_or_ends_with_the_model_is_framed_by_user_contents() -> None:
    assert [c["role"] for c in said(assistant(Text(text="hi")))] == ["user", "model", "user"]


LOADS = {"a.png": "cGljdHVyZQ==", "a.pdf": "cGRm", "a.wav": "d2F2", "a.gif": "Z2lm"}
PICTURE = Image(path="a.png", media_type="image/png")


def test_pictures_and_files_are_loaded_or_named() -> None:
    message = user(
        "see",
        PICTURE,
        Image(path="gone.png", media_type="image/png"),
        Image(path="a.gif", media_type="image/gif"),
        File(path="a.wav", media_type="audio/wav"),
    )
    parts = said(message, load=lambda part: LOADS.get(part.path))[0]["parts"]
    assert [next(iter(part)) for part in parts] == ["text", "inlineData", "text", "text", "inlineData"]
    assert "gone.png" in parts[2]["text"]
    assert parts[1]["inlineData"] == {"mimeType": "image/png", "data": "cGljdHVyZQ=="}


def test_pictures_of_results_go_into_the_response_or_with_older_models_beside_it() -> None:
    parts = (PICTURE, File(path="p/x.csv", media_type="text/csv", name="x.csv"))
    log = [
        user("go"),
        assistant(use("t1"), use("t2")),
        tool_results([ToolResult(tool_use_id="t1", content="", parts=parts), result("t2")]),
    ]
    load = {"load": lambda part: LOADS.get(part.path)}
    first, second = said(*log, **load)[2]["parts"]
    assert [next(iter(part)) for part in first["functionResponse"]["parts"]] == ["inlineData"]
    assert "x.csv" in first["functionResponse"]["response"]["output"]
    assert "parts" not in second["functionResponse"]
    older = said(*log, model=OLD, **load)[2]["parts"]
    assert [next(iter(part)) for part in older] == ["functionResponse", "functionResponse", "inlineData"]


def test_the_author_of_a_message_is_told_to_the_model() -> None:
    assert said(user("hi", author="Kim"))[0]["parts"] == [{"text": "Kim: hi"}]


def test_half_a_surrogate_pair_is_replaced() -> None:
    body = wire(user("a\ud83db 👍"))
    assert json.dumps(body, ensure_ascii=False).encode()
    assert body["contents"][0]["parts"][0]["text"] == "a\ufffdb 👍"


def test_the_output_limit_is_sent_where_there_is_one() -> None:
    assert "generationConfig" not in wire(user("go"))
    assert wire(user("go"), max_tokens=9)["generationConfig"] == {"maxOutputTokens": 9}


def test_the_wire_form_of_a_message_is_made_once_and_forgotten_with_it() -> None:
    loaded: list[str] = []

    def load(part: Image | File) -> str:
        loaded.append(part.path)
        return "cGljdHVyZQ=="

    builder = Builder(model_id=own(A), model=A, load=load)
    log = [user("see", PICTURE)]
    assert [part.path for part in builder.unread(log)] == ["a.png"]
    bodies = [builder.build(log, system="", tools=(), max_tokens=9) for _ in range(2)]
    assert bodies[0] == bodies[1]
    assert loaded == ["a.png"]
    assert builder.unread(log) == []
    log.clear()
    gc.collect()
    assert len(builder._convert) == 0


# ---- any history at all

TEXTS = st.sampled_from(["", " ", "words", "more\nwords", "ünï 👍"])
IDS = st.sampled_from(["t1", "t2", "t3", "functions.a:0", "t1_2"])
NAMES = st.sampled_from(["search", "search.docs", "2x", "x" * 70])
MODELS = st.sampled_from([A, B, OLD, "openai:o", ""])


@st.composite
def texts(draw: st.DrawFn, model: str) -> Text | Thinking:
    words, thought = draw(TEXTS), draw(st.booleans())
    block: Text | Thinking = Thinking(text=words) if thought else Text(text=words)
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(words)))
        signed: Json = {"text": words[cut:]}
        parts = [[cut, None], [len(words) - cut, signature(model, signed)]]
        block = (Thinking if thought else Text)(text=words, opaque={"parts": parts})
    return block


@st.composite
def calls(draw: st.DrawFn, model: str) -> ToolUse:
    signed = draw(st.booleans())
    return use(
        draw(IDS), draw(NAMES), model=model if signed else "", no_id=draw(st.booleans()), a=draw(TEXTS)
    )


@st.composite
def assistants(draw: st.DrawFn) -> Message:
    model = draw(MODELS)
    one: st.SearchStrategy[Block] = st.one_of(texts(model), calls(model))
    model_id = own(model) if model.startswith("gemini") else model
    return assistant(*draw(st.lists(one, max_size=5)), model=model_id)


PARTS = st.builds(
    Image,
    path=st.sampled_from(["a.png", "a.gif", "gone"]),
    media_type=st.sampled_from(["image/png", "image/tiff"]),
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


@given(st.lists(st.one_of(assistants(), USERS), max_size=14), st.sampled_from([A, B, OLD]))
def test_c056_c057_c060_every_history_becomes_a_request_that_is_accepted(
    log: list[Message], model: str
) -> None:
    log = [user("begin"), *log] if not any(m.kind == "summary" for m in log) else [*log, user("end")]
    tools = tuple(
        ToolSpec(name=name, description="", input_schema={"type": "object"})
        for name in ("search", "search.docs")
    )
    wire(*log, model=model, tools=tools, load=lambda part: LOADS.get(part.path))


@st.composite
def sessions(draw: st.DrawFn) -> list[list[Message]]:
    """The messages that each step appended, in a session where nothing goes wrong."""
    steps: list[list[Message]] = [[user(draw(st.sampled_from(["one", "two"])))]]
    for number in range(draw(st.integers(1, 8))):
        model = draw(MODELS)
        ids = [f"c{number}_{n}" for n in range(draw(st.integers(0, 3)))]
        signs = draw(st.booleans())
        made = [use(id, model=model if signs and not n else "") for n, id in enumerate(ids)]
        model_id = own(model) if model.startswith("gemini") else model
        reply = assistant(draw(texts(model)), Text(text="so"), *made, model=model_id)
        after = [tool_results([result(id) for id in ids])] if ids else [user("next")]
        if draw(st.booleans()) and ids:
            after.append(user("steered"))
        steps.append([reply, *after])
    return steps


def without_stand_ins(contents: list[Json]) -> str:
    bare = [
        {**c, "parts": [{k: v for k, v in p.items() if v != UNSIGNED} for p in c["parts"]]} for c in contents
    ]
    return json.dumps(bare)


@given(sessions(), st.sampled_from([A, OLD]))
def test_each_request_begins_with_the_bytes_of_the_one_before(steps: list[list[Message]], model: str) -> None:
    builder = Builder(model_id=own(model), model=model)
    tools = (ToolSpec(name="t", description="d", input_schema={"type": "object"}),)
    log: list[Message] = []
    before: list[Json] | None = None
    for step in steps:
        log += step
        body = builder.build(log, system="be kind", tools=tools, max_tokens=9)
        validate(body, signed=not is_older(model))
        assert refusal(body, model) is None
        contents = body["contents"]
        assert list(body) == ["systemInstruction", "tools", "generationConfig", "contents"]
        if before is not None:
            assert without_stand_ins(contents).startswith(without_stand_ins(before).removesuffix("]"))
            if not any(message.text for message in step if message.role == "user"):  # the turn goes on
                assert json.dumps(contents).startswith(json.dumps(before).removesuffix("]"))
        before = contents
