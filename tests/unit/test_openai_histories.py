"""Any history at all becomes a request that every Chat Completions vendor takes, and a session's requests
grow at their end only."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.messages import (
    Block,
    Image,
    Json,
    Message,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    assistant,
    tool_results,
    user,
)
from gateway.providers.base import ToolSpec
from gateway.providers.openai_quirks import Provider
from tests.platforms.openai.rules import SIGNED
from tests.unit.openai_wires import (
    LOADS,
    PICTURE,
    PROVIDERS,
    builder,
    checked,
    id_of,
    result,
    signed,
    use,
    wire,
)

TEXTS = st.sampled_from(["", " ", "words", "more\nwords", "ünï 👍"])
IDS = st.sampled_from(["t1", "t2", "t3", "functions.a:0", "t1_2", "y" * 64])
NAMES = st.sampled_from(["search", "search.docs", "x" * 70, "7z", "t"])
WRITERS = st.sampled_from([*map(id_of, PROVIDERS), "gemini:gemini-3-other", "anthropic:a", ""])


@st.composite
def assistants(draw: st.DrawFn) -> Message:
    writer = draw(WRITERS)
    signature = {"google": {"thought_signature": SIGNED + writer.partition(":")[2]}}
    calls = st.builds(
        ToolUse,
        id=IDS,
        name=NAMES,
        input=st.just({"a": [1, "ü"]}),
        opaque=st.sampled_from([None, {"x": "y"}, {"extra_content": signature}]),
    )
    thoughts = st.builds(
        lambda words, own: Thinking(text=words, opaque={"reasoning_content": words} if own else None),
        TEXTS,
        st.booleans(),
    )
    one: st.SearchStrategy[Block] = st.one_of(st.builds(Text, text=TEXTS), thoughts, calls)
    return assistant(*draw(st.lists(one, max_size=5)), model=writer)


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
SOME_TOOLS = tuple(
    ToolSpec(name=name, description="", input_schema={"type": "object"}) for name in ("search", "search.docs")
)


@settings(deadline=None)
@given(st.lists(st.one_of(assistants(), USERS), max_size=14))
def test_c056_c057_c058_every_history_becomes_a_request_that_every_vendor_accepts(log: list[Message]) -> None:
    log = [user("begin"), *log] if not any(m.kind == "summary" for m in log) else [*log, user("end")]
    for provider in PROVIDERS:
        wire(
            *log,
            provider=provider,
            tools=SOME_TOOLS,
            load=lambda part: "cGlj" if part.path == "a.png" else None,
        )


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Provider, list[list[Message]]]:
    """The messages that each step appended, in a session where nothing goes wrong."""
    provider = draw(st.sampled_from(PROVIDERS))
    # A stand-in for a signature lasts as long as its turn: there, all is written by one model.
    writers = st.just(id_of(provider)) if provider == "gemini" else WRITERS
    steps: list[list[Message]] = [[user(draw(st.sampled_from(["one", "two"])))]]
    for number in range(draw(st.integers(1, 8))):
        ids = [f"c{number}_{n}" for n in range(draw(st.integers(0, 3)))]
        thought = Thinking(text="hm", opaque={"reasoning_content": "hm"})
        calls = [signed(id) if provider == "gemini" else use(id) for id in ids]
        words = draw(st.sampled_from([(), (Text(text="so"),)])) if ids else (Text(text="so"),)
        reply = assistant(thought, *words, *calls, model=draw(writers))
        parts = draw(st.sampled_from([(), (PICTURE,)]))
        after = [tool_results([result(id, parts=parts) for id in ids])] if ids else [user("next")]
        if draw(st.booleans()) and ids:
            after.append(user("steered"))
        steps.append([reply, *after])
    return provider, steps


@settings(deadline=None)
@given(sessions())
def test_each_request_begins_with_the_bytes_of_the_one_before(
    session: tuple[Provider, list[list[Message]]],
) -> None:
    provider, steps = session
    kept = builder(provider, load=lambda part: LOADS.get(part.path))
    log: list[Message] = []
    before: Json | None = None
    for step in steps:
        log += step
        body = kept.build(log, system="be kind", tools=SOME_TOOLS, max_tokens=9)
        checked(body, provider)
        if before is not None:
            assert json.dumps(body["tools"]) == json.dumps(before["tools"])
            shorter = json.dumps(before["messages"])
            assert json.dumps(body["messages"]).startswith(shorter.removesuffix("]"))
        before = body
