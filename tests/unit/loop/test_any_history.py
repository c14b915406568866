"""Compaction, pages and prefixes of any history."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ModelRejected
from gateway.history import Transcript, repaired
from gateway.loop import run_agent
from gateway.markers import (
    estimate,
    summary_request,
    view,
)
from gateway.messages import (
    Message,
    encode_message,
    user,
)
from gateway.providers import (
    anthropic_rules,
    anthropic_wire,
    gemini_rules,
    gemini_wire,
    openai_rules,
    openai_wire,
)
from gateway.providers.openai_quirks import QUIRKS
from gateway.squeeze import squeeze
from gateway.tools.base import CallContext
from gateway.tools.system import READ_RESULT, RESULT_CAP
from tests.platforms.anthropic import rules as anthropic_server
from tests.platforms.gemini import rules as gemini_server
from tests.platforms.openai import rules as openai_server
from tests.unit.loop.histories import KINDS, built, nobody, said, somebody
from tests.unit.loop.scene import Ran, Replies, agent, call, says


@given(st.text(max_size=400), st.integers(1, 60))
async def test_pages_of_a_stored_result_join_to_the_whole(text: str, times: int) -> None:
    whole = (text + "|") * (times * (1 + 3_000 // (len(text) + 1)))

    async def stored(ref: str) -> str | None:
        return whole if ref == "c1" else None

    context = CallContext(call_id="r", session_id="s", turn_id="t", idempotency_key="k", full_result=stored)
    pages, offset = [], 0
    while offset < len(whole):
        page = str(await READ_RESULT.handler({"ref": "c1", "offset": offset}, context))
        head, _, piece = page.partition("\n")
        assert len(page) <= RESULT_CAP
        assert head.startswith(f"[characters {offset} to {offset + len(piece)} of {len(whole)}")
        assert piece
        pages.append(piece)
        offset += len(piece)
    assert "".join(pages) == whole
    end = str(await READ_RESULT.handler({"ref": "c1", "offset": len(whole) + 5}, context))
    assert end == f"[the result ends after {len(whole)} characters]"


@given(st.lists(st.text(max_size=3_000), max_size=30), st.integers(1_000, 20_000))
def test_the_request_for_a_summary_has_room_in_the_window(texts: list[str], room: int) -> None:
    log = [user(f"{n} {text}") for n, text in enumerate(texts)]
    (request,) = summary_request(log, len(log), room)
    assert len(request.text) <= room * 1.3 + 1_000
    if log:
        assert request.text.startswith("user: 0 ")


# ---- whatever the history


def wired(family: str, seen: Sequence[Message]) -> str | None:
    """What the adapter's own check and the strict server of a family say about a history."""
    try:
        match family:
            case "anthropic":
                body = anthropic_wire.build(seen, system="", tools=(), model_id="m", max_tokens=100)
                anthropic_rules.validate(body)
                return anthropic_server.refusal(body)
            case "gemini":
                body = gemini_wire.build(seen, system="", tools=(), model_id="m", model="gemini-3-pro")
                gemini_rules.validate(body)
                return gemini_server.refusal(body, "gemini-3-pro")
            case _:
                quirks = QUIRKS[family]  # type: ignore[index]
                body = openai_wire.build(seen, quirks=quirks, model_id="m", model="m")
                openai_rules.validate(body, quirks)
                return openai_server.refusal({**body, "stream": True}, family)
    except ModelRejected as error:
        return str(error)


FAMILIES = ("anthropic", "gemini", *QUIRKS)


def refused(seen: Sequence[Message]) -> str | None:
    """What the strictest endpoints would say about a request with this history."""
    for family in FAMILIES:
        if (problem := wired(family, seen)) is not None:
            return f"{family}: {problem}"
    return None


@given(st.lists(st.lists(KINDS, max_size=12), min_size=1, max_size=3), st.booleans(), st.integers(1, 400))
async def test_c057_after_any_compaction_the_view_is_valid_and_the_log_untouched(
    shapes: list[list[str]], answers: bool, target: int
) -> None:
    transcript = Transcript()
    for number, shape in enumerate(shapes):
        for message in [*built(shape, 100 * number), user(f"now {number}")]:
            transcript.append(message)
        log, before = list(transcript.log), estimate(transcript.visible())
        squeezed = await squeeze(transcript.log, target, somebody if answers else nobody)
        for marker in squeezed.markers if squeezed is not None else ():
            transcript.append(marker)
            seen = list(transcript.visible())
            assert estimate(seen) < before
            before = estimate(seen)
            assert refused(seen) is None
            assert repaired(seen[1:] if seen[0].kind == "summary" else seen) == (
                seen[1:] if seen[0].kind == "summary" else seen
            )
            assert seen[-1].text == f"now {number}"
        assert transcript.log[: len(log)] == log
        assert list(Transcript(transcript.log).visible()) == list(transcript.visible())
        assert list(Transcript(repaired(transcript.log)).visible()) == list(transcript.visible())


@given(st.lists(KINDS, max_size=20), st.booleans(), st.integers(1, 400))
async def test_a_second_compaction_right_after_the_first_shrinks_again_or_does_nothing(
    shape: list[str], answers: bool, target: int
) -> None:
    log = [*built(shape), user("now")]
    first = await squeeze(log, target, somebody if answers else nobody)
    if first is None:
        return
    log += first.markers
    second = await squeeze(log, target, somebody if answers else nobody)
    assert second is None or estimate(view([*log, *second.markers])) < estimate(view(log))


@given(st.lists(st.sampled_from(["look", "bulk", "two", "picture"]), min_size=1, max_size=10))
async def test_c069_one_turn_of_any_size_can_be_cut_to_its_request(shape: list[str]) -> None:
    log = [user("do it"), *built(shape)]
    squeezed = await squeeze(log, 60, somebody)
    seen = view([*log, *(squeezed.markers if squeezed is not None else ())])
    assert estimate(seen) <= 60
    assert user("do it") in seen
    assert refused(seen) is None


@given(st.lists(KINDS, max_size=10), st.integers(1, 6), st.integers(0, 10_000))
async def test_the_view_of_a_step_begins_with_the_view_of_the_step_before(
    shape: list[str], count: int, tokens: int
) -> None:
    """Byte for byte, as long as nothing is cut: what a provider has cached stays good."""
    ran = Ran()
    model = Replies(
        *(says(f"step {n}", call(f"c{n}", "look", n=n)) for n in range(count)), says("done"), says("again")
    )
    transcript = Transcript([*built(shape), user("x"), said("y")])
    squeezed = await squeeze(transcript.log, tokens, somebody)
    for marker in squeezed.markers if squeezed is not None else ():
        transcript.append(marker)
    desk = agent(ran.tool("look"), max_steps=50)
    await run_agent(desk, model, "hi", transcript)
    await run_agent(desk, model, "and?", transcript)
    wire = [[encode_message(m) for m in seen] for seen in model.seen]
    for before, after in pairwise(wire):
        assert after[: len(before)] == before
        assert len(after) > len(before)
