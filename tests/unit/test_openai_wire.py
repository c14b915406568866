"""The wire form of a conversation for the Chat Completions vendors: right for every history and every
vendor, and growing at its end only."""

from __future__ import annotations

import gc
import json

import pytest

from gateway.messages import (
    Block,
    File,
    Image,
    Json,
    Message,
    Text,
    Thinking,
    ToolUse,
    assistant,
    decode_message,
    encode_message,
    tool_results,
    user,
)
from gateway.providers.base import ToolSpec
from gateway.providers.conversation import BEGINNING, GO_ON, INTERRUPTED
from gateway.providers.openai_quirks import QUIRKS, Provider
from gateway.providers.openai_wire import PLACEHOLDER, UNSIGNED
from tests.platforms.openai.rules import FLAVOURS, SIGNED
from tests.unit.openai_wires import (
    LOADS,
    MODELS,
    PAPER,
    PICTURE,
    PROVIDERS,
    THINKERS,
    builder,
    id_of,
    result,
    said,
    signed,
    tool,
    use,
    wire,
)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_c056_a_call_without_a_result_is_answered_before_the_next_words(provider: Provider) -> None:
    log = [user("go"), assistant(use("t1"), use("t2")), tool_results([result("t1", "real")]), user("hello?")]
    _, acted, *rest = said(*log, provider=provider)
    assert [call["id"] for call in acted["tool_calls"]] == ["t1", "t2"]
    assert rest == [
        tool("t1", "real"),
        tool("t2", f"Error: {INTERRUPTED}"),
        {"role": "user", "content": "hello?"},
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_c056_calls_at_the_very_end_are_answered(provider: Provider) -> None:
    log = [user("go"), assistant(use("t1"), Text(text="wait"), use("t2"))]
    _, acted, *answers = said(*log, provider=provider)
    assert acted["content"] == "wait"
    assert [message["tool_call_id"] for message in answers] == ["t1", "t2"]


def test_c057_results_without_a_call_are_dropped_and_text_beside_them_stays() -> None:
    summary = Message(role="user", content=(Text(text="so far: a"),), kind="summary")
    mixed = Message(role="user", content=(Text(text="and now?"), result("gone")))
    log = [user("x"), assistant(use("gone")), summary, mixed, assistant(Text(text="z")), user("q")]
    assert [(m["role"], m["content"]) for m in said(*log)] == [
        ("user", "so far: a"),
        ("user", "and now?"),
        ("assistant", "z"),
        ("user", "q"),
    ]


def test_c057_a_result_that_comes_twice_is_sent_once() -> None:
    log = [user("go"), assistant(use("t1")), tool_results([result("t1", "first"), result("t1", "second")])]
    assert said(*log)[2:] == [tool("t1", "first")]


def test_c045_four_results_of_one_batch_stand_behind_their_calls_in_call_order() -> None:
    results = [result("d", "not run: expired", is_error=True), result("a", "A"), result("c", "error: no")]
    log = [user("go"), assistant(*(use(id) for id in "abcd")), tool_results([*results, result("b", "B")])]
    assert said(*log, user("steered"))[2:] == [
        tool("a", "A"),
        tool("b", "B"),
        tool("c", "error: no"),
        tool("d", "Error: not run: expired"),
        {"role": "user", "content": "steered"},
    ]


# ---- reasoning


def reasoned(provider: Provider, reasoning: str, *blocks: Block) -> Message:
    thought = Thinking(text=reasoning, opaque={"reasoning_content": reasoning})
    stored = encode_message(assistant(thought, *blocks, model=id_of(provider)))
    return decode_message(stored)


def c058(provider: Provider) -> list[Message]:
    return [
        user("before"),
        assistant(Text(text="of another"), model="other:model"),
        user("go"),
        reasoned(provider, "r1", use("c1")),
        tool_results([result("c1")]),
        reasoned(provider, " r2\n", Text(text="done")),
        user("on"),
    ]


@pytest.mark.parametrize("provider", THINKERS)
def test_c058_reasoning_goes_back_unchanged_on_the_message_that_it_came_with(provider: Provider) -> None:
    foreign, called, done = (m for m in said(*c058(provider), provider=provider) if m["role"] == "assistant")
    assert called["reasoning_content"] == "r1"
    assert [call["id"] for call in called["tool_calls"]] == ["c1"]
    assert (done["reasoning_content"], done["content"]) == (" r2\n", "done")
    assert foreign.get("reasoning_content") == (None if provider == "glm" else PLACEHOLDER)


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_c058_vendors_that_do_not_know_the_field_never_see_it(provider: Provider) -> None:
    assert "reasoning_content" not in json.dumps(wire(*c058(provider), provider=provider))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_c058_no_model_is_sent_the_reasoning_of_another(provider: Provider) -> None:
    others = [message for other in THINKERS if other != provider for message in c058(other)]
    sent = [m.get("reasoning_content") for m in said(*others, provider=provider) if m["role"] == "assistant"]
    assert set(sent) == {PLACEHOLDER if provider in ("deepseek", "kimi") else None}
    model = f"{MODELS[provider]}-2"
    body = builder(provider, model=model, model_id=f"{provider}:{model}").build(
        c058(provider), system="", tools=(), max_tokens=None
    )
    assert "r2" not in json.dumps(body)


@pytest.mark.parametrize("provider", ["deepseek", "kimi"])
def test_c058_an_own_message_that_came_without_reasoning_gets_the_placeholder_too(provider: Provider) -> None:
    bare = assistant(Thinking(text=""), use("c1"), model=id_of(provider))
    _, called, *_ = said(user("go"), bare, tool_results([result("c1")]), provider=provider)
    assert called["reasoning_content"] == PLACEHOLDER


@pytest.mark.parametrize("provider", ["deepseek", "kimi"])
def test_c058_where_thinking_is_switched_off_nothing_is_filled_in_and_what_is_real_still_goes_back(
    provider: Provider,
) -> None:
    messages = builder(provider, placeholders=False).build(
        c058(provider), system="", tools=(), max_tokens=None
    )["messages"]
    sent = [m.get("reasoning_content") for m in messages if m["role"] == "assistant"]
    assert sent == [None, "r1", " r2\n"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_c067_a_message_of_reasoning_alone_or_of_nothing_is_never_sent(provider: Provider) -> None:
    log = [
        user("go"),
        reasoned(provider, "hm"),
        assistant(),
        assistant(Text(text=" \n")),
        user(" "),
        user("so?"),
    ]
    assert [m["content"] for m in said(*log, provider=provider)] == ["go", "so?"]


# ---- signatures


def test_c060_real_signatures_go_back_on_their_call_and_imported_steps_of_this_turn_get_the_stand_in() -> (
    None
):
    gemini = id_of("gemini")
    log = [
        user("old turn"),
        assistant(use("o1"), model="other:model"),
        tool_results([result("o1")]),
        user("this turn"),
        assistant(signed("a"), use("b"), model=gemini),
        tool_results([result("a"), result("b")]),
        assistant(use("c"), use("d"), model="other:model"),
        tool_results([result("c"), result("d")]),
    ]
    steps = [m["tool_calls"] for m in said(*log, provider="gemini") if m["role"] == "assistant"]
    signatures = [[call.get("extra_content", {}).get("google", {}) for call in calls] for calls in steps]
    assert signatures == [
        [{}],
        [{"thought_signature": SIGNED + MODELS["gemini"]}, {}],
        [{"thought_signature": UNSIGNED}, {}],
    ]


def test_c060_signatures_go_to_no_other_model_and_to_no_model_that_has_none() -> None:
    log = [user("go"), assistant(signed("a", "gemini-3-other"), model="gemini:gemini-3-other")]
    assert SIGNED not in json.dumps(wire(*log, provider="gemini"))
    own = [user("go"), assistant(signed("a"), model=id_of("openai"))]
    assert "extra_content" not in json.dumps(wire(*own, provider="openai"))
    older = wire(*log, provider="gemini", model="gemini-2.5-pro", model_id="gemini:gemini-2.5-pro")
    assert "extra_content" not in json.dumps(older)


# ---- the rest of the shape


@pytest.mark.parametrize("provider", PROVIDERS)
def test_c063_the_call_of_a_cut_reply_goes_back_as_an_object_with_its_error(provider: Provider) -> None:
    log = [
        user("go"),
        assistant(use("t1", invalid="cut")),
        tool_results([result("t1", "cut", is_error=True)]),
    ]
    _, acted, answer = said(*log, provider=provider)
    assert acted["tool_calls"][0]["function"]["arguments"] == "{}"
    assert answer["content"] == "Error: cut"


def test_content_beside_calls_is_what_the_vendor_takes() -> None:
    found = {p: said(user("go"), assistant(use("t1")), provider=p)[1]["content"] for p in PROVIDERS}
    assert found == {"openai": None, "deepseek": "", "kimi": None, "glm": "", "gemini": None}


C065 = (
    "enterprise-knowledge-base-production__search.documents.by_semantic_similarity",
    "enterprise-knowledge-base-production__search/documents.by_semantic_similarity",
    "find people",
    "7z",
    "t",
    "plain_name-2",
)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_c065_wire_names_are_legal_for_the_vendor_and_lead_back_to_the_original(provider: Provider) -> None:
    tools = tuple(ToolSpec(name=name, description="", input_schema={"type": "object"}) for name in C065)
    log = [user("go"), assistant(use("t1", C065[0])), tool_results([result("t1")])]
    body = wire(*log, provider=provider, tools=tools)
    sent = [one["function"]["name"] for one in body["tools"]]
    assert len(set(sent)) == len(C065)
    assert sent == [QUIRKS[provider].name(name) for name in C065]
    assert sent[-1] == C065[-1]
    assert body["messages"][2]["tool_calls"][0]["function"]["name"] == sent[0]
    assert (sent[3] == "7z") == (provider in ("openai", "deepseek", "glm"))
    assert (sent[4] == "t") == (provider != "kimi")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_ids_of_other_vendors_become_legal_and_unique(provider: Provider) -> None:
    log = [user("go")]
    for content in "xy":
        for id in ("functions.t:0", "x" * 64, "ünï 👍"):
            log.append(assistant(use(id), use(id), model="other"))
            log.append(tool_results([result(id, content + "1"), result(id, content + "2")]))
    messages = said(*log, provider=provider)
    answers = [m["content"] for m in messages if m["role"] == "tool"]
    assert answers == ["x1", "x2"] * 3 + ["y1", "y2"] * 3
    first = messages[1]["tool_calls"][0]["id"]
    assert (first == "functions.t:0") == (provider == "kimi")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_ids_of_full_length_that_repeat_stay_within_the_vendor_s_length(provider: Provider) -> None:
    longest = "x" * QUIRKS[provider].longest_id
    log = [user("go"), assistant(use(longest)), user("on"), assistant(use(longest))]
    ids = [m["tool_calls"][0]["id"] for m in said(*log, provider=provider) if m["role"] == "assistant"]
    assert [len(id) for id in ids] == [len(longest)] * 2
    assert ids[0] == longest != ids[1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_history_that_begins_or_ends_with_the_model_is_framed_by_user_messages(provider: Provider) -> None:
    log = [assistant(Text(text="hi")), user(" "), assistant(Text(text="still there?"))]
    assert [m["content"] for m in said(*log, provider=provider)] == [
        BEGINNING,
        "hi",
        GO_ON,
        "still there?",
        GO_ON,
    ]


def test_instructions_come_from_the_developer_where_the_model_knows_one() -> None:
    roles = {
        model: wire(user("go"), provider="openai", model=model)["messages"][0]["role"]
        for model in ("gpt-5-mini", "o3", "gpt-4o", "gpt-oss-120b", "qwen3")
    }
    assert roles == {
        "gpt-5-mini": "developer",
        "o3": "developer",
        "gpt-4o": "system",
        "gpt-oss-120b": "system",
        "qwen3": "system",
    }
    assert builder("glm").build([user("go")], system=" ", tools=(), max_tokens=1)["messages"] == [
        {"role": "user", "content": "go"}
    ]


def test_the_limit_has_each_vendor_s_name_and_is_left_out_where_nobody_needs_it() -> None:
    named = {p: [k for k in wire(user("go"), provider=p) if k.startswith("max")] for p in PROVIDERS}
    assert named == {
        "openai": ["max_completion_tokens"],
        "deepseek": ["max_tokens"],
        "kimi": ["max_completion_tokens"],
        "glm": ["max_tokens"],
        "gemini": ["max_tokens"],
    }
    for provider in PROVIDERS:
        body = builder(provider).build([user("go")], system="", tools=(), max_tokens=None)
        assert any(key.startswith("max") for key in body) == (provider == "kimi")


def kinds(message: Json) -> list[str]:
    content = message["content"]
    return [part["type"] for part in content] if isinstance(content, list) else ["text"]


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", "gpt-5-test", ["text", "image_url", "file", "text"]),
        ("openai", "some-server", ["text", "image_url", "text", "text"]),
        ("deepseek", "deepseek-test", ["text"]),
        ("kimi", "kimi-k2.6", ["text", "image_url", "text", "text"]),
        ("kimi", "kimi-k2-thinking", ["text"]),
        ("glm", "glm-4.6", ["text"]),
        ("glm", "glm-4.6v", ["text", "image_url", "text", "text"]),
        ("gemini", "gemini-3-test", ["text", "image_url", "text", "text"]),
    ],
)
def test_pictures_and_files_are_shown_to_models_that_see_and_named_to_the_others(
    provider: Provider, model: str, expected: list[str]
) -> None:
    gone = Image(path="gone.png", media_type="image/png")
    (message,) = said(
        user("see", PICTURE, PAPER, gone),
        provider=provider,
        model=model,
        load=lambda part: LOADS.get(part.path),
    )
    assert kinds(message) == expected
    assert "gone.png" in json.dumps(message)
    assert ("cGljdHVyZQ==" in json.dumps(message)) == ("image_url" in expected)


def test_pictures_of_results_follow_behind_all_results_of_the_batch() -> None:
    log = [
        user("go"),
        assistant(use("t1", "camera"), use("t2")),
        tool_results([result("t1", "", parts=(PICTURE, PAPER)), result("t2")]),
        user("and?"),
    ]
    load = LOADS.get
    seeing = said(*log, provider="kimi", load=lambda part: load(part.path))[2:]
    assert [m["role"] for m in seeing] == ["tool", "tool", "user", "user"]
    assert "a.pdf" in seeing[0]["content"]
    assert kinds(seeing[2]) == ["text", "image_url"]
    assert "camera" in seeing[2]["content"][0]["text"]
    blind = said(*log, provider="deepseek", load=lambda part: load(part.path))[2:]
    assert [m["role"] for m in blind] == ["tool", "tool", "user"]
    assert "a.png" in blind[0]["content"]


def test_the_author_of_a_message_is_told_and_half_a_surrogate_pair_is_replaced() -> None:
    assert said(user("hi", author="Kim"))[0]["content"] == "Kim: hi"
    assert said(user("a\ud83db 👍"))[0]["content"] == "a\ufffdb 👍"
    call = ToolUse(id="t1", name="look", input={"a": "\ud83d", "b": "ü"})
    arguments = said(user("go"), assistant(call))[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"a": "\ufffd", "b": "ü"}


def test_the_wire_form_of_a_message_is_made_once_and_forgotten_with_it() -> None:
    loaded: list[str] = []

    def load(part: Image | File) -> str:
        loaded.append(part.path)
        return "cGljdHVyZQ=="

    kept = builder("openai", load=load)
    log = [user("see", PICTURE)]
    assert [part.path for part in kept.unread(log)] == ["a.png"]
    bodies = [kept.build(log, system="", tools=(), max_tokens=9) for _ in range(2)]
    assert bodies[0] == bodies[1]
    assert loaded == ["a.png"]
    assert kept.unread(log) == []
    log.clear()
    gc.collect()
    assert len(kept._convert) == 0


def test_every_flavour_of_the_test_server_is_a_vendor_of_the_table() -> None:
    assert set(FLAVOURS) == set(QUIRKS) == set(MODELS)
