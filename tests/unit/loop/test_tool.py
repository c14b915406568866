"""Tools: what `@tool` reads off a function, and what a Tool promises about its arguments."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import ConfigError, ToolError
from gateway.messages import Json
from gateway.tools.base import MASK, CallContext, Tool, ToolOutput, masked, tool
from tests.unit.loop.scene import SOON

CONTEXT = CallContext(call_id="c1", session_id="s1", turn_id="t1", idempotency_key="s1:c1")


class Speed(Enum):
    SLOW = "slow"
    FAST = "fast"


@dataclass
class Address:
    street: str
    country: str = "NL"


@tool(idempotent=True, secret=["token"], timeout=9.0)
async def ship(
    order_id: str,
    to: Address,
    parts: list[int],
    token: str,
    speed: Speed = Speed.SLOW,
    how: Literal["air", "sea"] = "sea",
    note: str | None = None,
    *,
    context: CallContext,
) -> dict[str, Any]:
    """Send an order.

    It cannot be called back.

    Args:
        order_id: the order, like A-1001
        parts: how many of each
            line of the order
        token: the carrier's key
    """
    return {
        "order": order_id,
        "country": to.country,
        "sum": sum(parts),
        "speed": speed.name,
        "how": how,
        "note": note,
        "call": context.call_id,
    }


ARGS: Json = {"order_id": "A-1", "to": {"street": "Dam"}, "parts": [1, 2], "token": "hush"}


async def run(one: Tool, args: Json) -> str | ToolOutput:
    return await asyncio.wait_for(one.handler(one.canonical(args), CONTEXT), SOON)


def test_the_schema_comes_from_signature_and_docstring() -> None:
    assert (ship.name, ship.idempotent, ship.safe, ship.timeout) == ("ship", True, False, 9.0)
    assert ship.description == "Send an order.\n\nIt cannot be called back."
    assert ship.input_schema["required"] == ["order_id", "to", "parts", "token"]
    assert ship.input_schema["additionalProperties"] is False
    properties = ship.input_schema["properties"]
    assert list(properties) == ["order_id", "to", "parts", "token", "speed", "how", "note"]
    assert properties["order_id"] == {"type": "string", "description": "the order, like A-1001"}
    assert properties["parts"]["items"] == {"type": "integer"}
    assert properties["parts"]["description"] == "how many of each\nline of the order"
    assert properties["how"] == {"enum": ["air", "sea"], "default": "sea"}
    assert properties["speed"]["default"] == "slow"
    assert properties["note"]["default"] is None
    assert set(ship.input_schema["$defs"]) == {"Address", "Speed"}


async def test_arguments_arrive_as_the_types_of_the_signature() -> None:
    assert ship.problems(ARGS) == []
    text = await run(ship, {**ARGS, "speed": "fast"})
    assert isinstance(text, str)
    assert msgspec.json.decode(text) == {
        "order": "A-1",
        "country": "NL",
        "sum": 3,
        "speed": "FAST",
        "how": "sea",
        "note": None,
        "call": "c1",
    }


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"parts": [1, "two"]}, "parts.1: "),
        ({"to": {}}, "to: "),
        ({"speed": "warp"}, "speed: "),
        ({"how": "land"}, "how: "),
        ({"extra": 1}, "Additional properties"),
        ({"order_id": None}, "order_id: "),
    ],
)
def test_problems_name_the_place(change: Json, place: str) -> None:
    (line,) = ship.problems({**ARGS, **change})
    assert line.startswith(place)


def test_a_missing_argument_is_named() -> None:
    assert ship.problems({}) == [
        f'"{name}" is a required property' for name in ("order_id", "to", "parts", "token")
    ]


@given(st.text(alphabet="qz", min_size=4))
def test_problems_never_hold_a_value(value: str) -> None:
    wrong: list[Json] = [
        {**ARGS, "parts": value},
        {**ARGS, "to": value},
        {**ARGS, "how": value},
        {**ARGS, "speed": [value]},
        {**ARGS, "token": {"a": value}},
    ]
    for args in wrong:
        problems = ship.problems(args)
        assert problems
        assert value not in " ".join(problems)


async def test_a_sync_function_runs_in_a_thread_with_the_callers_context() -> None:
    tenant = contextvars.ContextVar("tenant", default="none")
    tenant.set("acme")

    @tool
    def where() -> str:
        """Say where."""
        return f"{threading.current_thread() is threading.main_thread()} {tenant.get()}"

    assert await run(where, {}) == "False acme"


async def test_a_sync_function_that_never_returns_keeps_no_other_waiting() -> None:
    may_end = threading.Event()

    @tool
    def hang() -> None:
        """Hang."""
        may_end.wait(SOON)

    @tool
    def quick() -> str:
        """Do not."""
        return "done"

    hanging = [asyncio.create_task(run(hang, {})) for _ in range(40)]
    await asyncio.sleep(0)
    assert await run(quick, {}) == "done"
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "tool hang")
    may_end.set()
    assert await asyncio.gather(*hanging) == [""] * 40


@pytest.mark.parametrize("error", [ToolError("no"), ValueError("bad"), StopIteration()])
async def test_what_a_sync_function_raises_reaches_the_caller(error: Exception) -> None:
    @tool
    def fail() -> None:
        """Fail."""
        raise error

    expected = RuntimeError if isinstance(error, StopIteration) else type(error)
    with pytest.raises(expected):
        await run(fail, {})


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("plain", "plain"), ({"a": [1]}, '{"a":[1]}'), (True, "true"), (Address("x"), None)],
)
async def test_what_a_function_returns_becomes_text(value: Any, text: str | None) -> None:
    @tool
    async def give() -> Any:
        """Give."""
        return value

    assert await run(give, {}) == (text if text is not None else '{"street":"x","country":"NL"}')


async def test_an_output_value_passes_as_it_is() -> None:
    output = ToolOutput(text="no", is_error=True)

    @tool
    async def give() -> ToolOutput:
        """Give."""
        return output

    assert await run(give, {}) is output


async def test_a_value_that_json_holds_and_the_type_does_not_is_the_tools_error() -> None:
    @tool
    async def on(day: date) -> str:
        """On a day."""
        return day.isoformat()

    assert await run(on, {"day": "2026-02-28"}) == "2026-02-28"
    with pytest.raises(ToolError):
        await run(on, {"day": "2026-02-31"})


def positional(a: int, /) -> None: ...
def untyped(a) -> None: ...
def many(*a: int) -> None: ...
def any_keyword(**a: int) -> None: ...
def foreign(a: threading.Thread) -> None: ...
def unknown(a: NoSuchName) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def bad_default(a: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013
def odd_default(a: Any = object()) -> None: ...  # noqa: B008


@pytest.mark.parametrize(
    "function",
    [positional, untyped, many, any_keyword, foreign, unknown, bad_default, odd_default, lambda: None],
)
def test_a_signature_that_no_model_could_fill_is_a_config_error(function: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="tool "):
        tool(function)


@pytest.mark.parametrize(
    "traits",
    [
        {"name": " find"},
        {"name": "find\u200bpeople"},
        {"name": "f" * 129},
        {"name": ""},
        {"timeout": 0},
        {"secret": frozenset({"nothing"})},
        {"input_schema": {"type": "strin"}},
        {"input_schema": {"properties": {"a": {"pattern": "("}}}},
        {"input_schema": {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}}},
        {"input_schema": {"properties": {"a": {"$ref": "file:///etc/hostname"}}}},
    ],
    ids=lambda traits: str(traits)[:40],
)
def test_a_tool_that_cannot_work_is_a_config_error(traits: dict[str, Any]) -> None:
    async def nothing(args: Json, context: CallContext) -> str:
        return ""

    base: dict[str, Any] = {
        "name": "look",
        "description": "",
        "input_schema": {"type": "object"},
        "handler": nothing,
    }
    with pytest.raises(ConfigError):
        Tool(**{**base, **traits})


def look(schema: Json, **traits: Any) -> Tool:
    async def nothing(args: Json, context: CallContext) -> str:
        return ""

    return Tool(name="look", description="", input_schema=schema, handler=nothing, **traits)


@pytest.mark.parametrize("dialect", ["x", "https://json-schema.org/draft/2020-12/schema", None])
def test_c064_whatever_a_server_writes_into_the_dialect_its_rules_hold(dialect: str | None) -> None:
    schema: Json = {"type": "object", "properties": {"n": {"type": "number", "exclusiveMinimum": 0}}}
    one = look(schema if dialect is None else {"$schema": dialect, **schema})
    assert one.problems({"n": 1}) == []
    assert one.problems({"n": 0}) != []
    assert one.input_schema.get("$schema") == dialect


def test_defaults_are_filled_in_and_never_shared_or_broken() -> None:
    one = look({"properties": {"a": {"type": "array", "default": []}, "b": {"default": {"x": 1}}}})
    given_ = {"a": [1]}
    assert one.canonical(given_) == {"a": [1], "b": {"x": 1}}
    assert given_ == {"a": [1]}
    one.canonical({})["a"].append(1)
    assert one.canonical({})["a"] == []
    refused = look({"properties": {"a": {"type": "string", "default": None}}})
    assert refused.canonical({}) == {}


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers() | st.none()))
def test_canonical_arguments_stay_as_they_are_when_made_canonical_again(args: Json) -> None:
    one = look({"properties": {"a": {"default": 1}, "b": {"type": "integer", "default": "no"}}})
    once = one.canonical(args)
    assert one.canonical(once) == once
    assert once.items() >= args.items()


def test_masks_cover_names_and_paths_and_when_in_doubt_more_than_asked() -> None:
    args: Json = {"a": 1, "b": {"c": 2, "d": 3}, "e": [{"f": 4}], "g.h": 5}
    assert masked(args, ["a", "x"]) == {**args, "a": MASK}
    assert masked(args, ["b.c"])["b"] == {"c": MASK, "d": 3}
    assert masked(args, ["e.0.f"])["e"] == MASK
    assert masked(args, ["g.h"])["g.h"] == MASK
    assert masked(args, ["b.x"]) == args
    assert args["b"] == {"c": 2, "d": 3}
    assert look({"properties": {"a": {}}}, secret=frozenset({"a"})).masked(args, ["b.d"]) == {
        **args,
        "a": MASK,
        "b": {"c": 2, "d": MASK},
    }


def test_names_and_descriptions_can_be_given() -> None:
    @tool(name="orders.find", description="Find orders.", safe=True)
    async def find(text: Annotated[str, msgspec.Meta(min_length=2, description="what")]) -> str:
        """Other words."""
        return text

    assert (find.name, find.description, find.safe) == ("orders.find", "Find orders.", True)
    assert find.input_schema["properties"]["text"]["minLength"] == 2
    assert find.problems({"text": "x"}) != []
