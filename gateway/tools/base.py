"""Tool, and the decorator that makes one of a typed function.

    @tool(idempotent=True)
    async def issue_refund(order_id: str, amount: float) -> str:
        '''Pay money back.

        Args:
            order_id: the order, like A-1001
            amount: in euros
        '''

The JSON schema comes from the signature and the docstring. Sync functions run in a thread of
their own, so that one that never returns keeps neither the others nor the end of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import inspect
import logging
import threading
import typing
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, overload

import jsonschema_rs
import msgspec

from gateway.errors import ConfigError, ToolError
from gateway.messages import File, Image, Json

DEFAULT_TIMEOUT = 60.0  # seconds; every call has a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool may return when plain text is not enough."""

    text: str
    parts: tuple[Image | File, ...] = ()
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What became of a question that the call itself had asked: a person's `values`, or, when nobody
    answered, why it was `closed` ("expired", "/stop", ...)."""

    values: tuple[str, ...] = ()
    closed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentCall:
    """One call of a subagent. `only`: globs of tool names that its caller narrows it to; empty: no
    narrowing. `conversation`: the session of an earlier call, to go on with; empty: a new one."""

    agent: str
    text: str
    only: tuple[str, ...] = ()
    session_id: str
    turn_id: str
    call_id: str
    conversation: str = ""


class Subagents(Protocol):
    """Whoever runs subagents for a loop."""

    async def call(self, order: SubagentCall) -> ToolOutput:
        """Begin, or go on with, the conversation that this call has with the subagent, and return its last
        words. Raises ChildWaits when it stopped for people, DeniedInside when a person said no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What a tool may know about the call. A parameter annotated with this type receives it and
    is not part of the schema. `said`: answers to what earlier runs of this call have asked, by key
    (see gateway.tools.waiting)."""

    call_id: str
    session_id: str
    turn_id: str
    idempotency_key: str  # the same for every run of one approved call
    full_result: Callable[[str], Awaitable[str | None]] | None = None  # of a call of this session
    said: Mapping[str, Said] = field(default_factory=dict)
    subagents: Subagents | None = None


Handler = Callable[[Json, CallContext], Awaitable[str | ToolOutput]]
_log = logging.getLogger(__name__)
System = Literal["", "ask_user", "read_result", "skill", "schedule", "subagent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a call would do, for the eyes of those who decide. `kind` diff: lines with + and -.
    `image`: the path of a picture below the data folder, sent before the card."""

    text: str = ""
    kind: Literal["text", "diff"] = "text"
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tool:
    """One thing that an agent can do.

    safe: reads only; may run beside other safe calls and again after a crash.
    idempotent: running twice is as good as once; may run again after a crash.
    timeout: seconds for one call.
    secret: parameters whose values are masked wherever people look.
    unasked: may run without a rule of its own where the default is to ask: it reads only, and whoever says
    so is trusted.
    preview: optional; what is shown on the card beside the arguments: text, or a Preview. preview_in:
    the same for a tool that has to know the session; it gets the arguments and the session's id.
    """

    name: str
    description: str
    input_schema: Json
    handler: Handler
    safe: bool = False
    idempotent: bool = False
    timeout: float = DEFAULT_TIMEOUT
    secret: frozenset[str] = frozenset()
    preview: Callable[[Json], str | Preview] | None = None
    preview_in: Callable[[Json, str], str | Preview] | None = None
    system: System = ""
    unasked: bool = False
    _validator: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Tool servers use all kinds of names; what a vendor's wire allows is the adapter's business.
        if not self.name.isprintable() or self.name != self.name.strip() or not 0 < len(self.name) <= 128:
            raise ConfigError(f"tool {self.name!r}", "not a tool name", "1 to 128 printable characters")
        if self.timeout <= 0:
            raise ConfigError(f"tool {self.name!r}", f"timeout is {self.timeout}", "seconds, above 0")
        unknown = self.secret - set(self.input_schema.get("properties", {}))
        if unknown:
            names = ", ".join(sorted(unknown))
            raise ConfigError(f"tool {self.name!r}", f"secret names no parameter: {names}")
        try:
            validator = _validator_of(self.input_schema)
        except ValueError as error:
            raise ConfigError(f"tool {self.name!r}", f"its schema is not a JSON schema: {error}") from error
        object.__setattr__(self, "_validator", validator)

    def problems(self, args: Json) -> list[str]:
        """What is wrong with these arguments, one line each, the place first. Empty: nothing.

        The lines name places and rules, never the values: they are shown to people."""
        if self._validator.is_valid(args):
            return []
        lines = []
        for error in self._validator.iter_errors(args):
            place = ".".join(str(step) for step in error.instance_path)
            lines.append(f"{place}: {error.message}" if place else error.message)
        return lines or ["the arguments do not fit the schema"]

    def previewed(self, args: Json, session_id: str = "") -> Preview:
        """What the author shows for these arguments; empty without a preview. One that fails costs the
        preview, not the call."""
        shown: str | Preview = ""
        try:
            if self.preview_in is not None:
                shown = self.preview_in(args, session_id)
            elif self.preview is not None:
                shown = self.preview(args)
        except Exception:
            _log.exception("the preview of %s failed", self.name)
            return Preview(text="The preview of this call failed; look at its arguments.")
        return shown if isinstance(shown, Preview) else Preview(text=shown)

    def canonical(self, args: Json) -> Json:
        """The arguments that gate, card, row and execution share: top-level defaults filled in,
        unless the schema itself refuses its defaults."""
        properties = self.input_schema.get("properties", {})
        missing = {
            name: copy.deepcopy(schema["default"])
            for name, schema in properties.items()
            if name not in args and isinstance(schema, dict) and "default" in schema
        }
        if not missing:
            return args
        filled = {**args, **missing}
        return filled if self._validator.is_valid(filled) else args

    def masked(self, args: Json, also: Iterable[str] = ()) -> Json:
        """The arguments as people may see them; `also`: what a rule wants masked besides."""
        return masked(args, [*self.secret, *also])


FOREIGN = "mcp__"  # in front of a tool server's tool: mcp__SERVER__TOOL


def full_name(name: str, tools: Mapping[str, Tool]) -> str:
    """The tool that a model means. One that leaves a tool server's prefix out means the only tool of that
    name, if there is just one and nothing else is called so."""
    if name in tools:
        return name
    meant = [known for known in tools if known.startswith(FOREIGN) and known.split("__", 2)[2:] == [name]]
    return meant[0] if len(meant) == 1 else name


class ToolSource(Protocol):
    """Tools that come and go while agents run: those of a tool server."""

    def tools(self) -> tuple[Tool, ...]:
        """What there is now: the same object as long as nothing has changed."""


MASK = "••••••"


def masked(args: Json, names: Iterable[str]) -> Json:
    """A copy in which these arguments are masked. A name is a key or a dot-path to one; a path
    that leads through anything but objects masks the argument it starts from."""
    for name in names:
        args = _masked_at(args, name)
    return args


def _masked_at(args: Json, name: str) -> Json:
    if name in args:
        return {**args, name: MASK}
    first, _, rest = name.partition(".")
    if not rest or first not in args:
        return args
    inner = args[first]
    return {**args, first: _masked_at(inner, rest) if isinstance(inner, dict) else MASK}


def hidden_texts(args: Json, names: Iterable[str]) -> list[str]:
    """The texts behind the mask, longest first: what may not turn up elsewhere either. Very short
    ones are left out; they turn up everywhere."""
    found: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, dict):
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)
        elif value is not None and not isinstance(value, bool):
            found.append(str(value))

    for name in names:
        node: object = args
        for step in [name] if name in args else name.split("."):
            node = node.get(step) if isinstance(node, dict) else node
        collect(node)
    return sorted({text for text in found if len(text) >= 4}, key=len, reverse=True)


def _validator_of(schema: Json) -> Any:
    """A validator whose messages hold no values and that fetches nothing. Raises ValueError."""
    dialect = schema.get("$schema")
    try:
        return jsonschema_rs.validator_for(schema, mask="the value", retriever=_fetch_nothing)
    except jsonschema_rs.ValidationError as error:
        if dialect is None or "meta-schema" not in str(error):
            raise
    # Servers write all kinds of things into $schema; the rules below it are still meant.
    plain = {name: value for name, value in schema.items() if name != "$schema"}
    return jsonschema_rs.Draft202012Validator(plain, mask="the value", retriever=_fetch_nothing)


def schema_problems(schema: Json, args: Json) -> list[tuple[str, str]]:
    """(argument, what is wrong with it), for a form; values are never repeated."""
    problems = []
    for error in _validator_of(schema).iter_errors(args):
        place = ".".join(str(step) for step in error.instance_path)
        problems.append((place, str(error.message)))
    return problems


def _fetch_nothing(uri: str) -> typing.NoReturn:
    raise ValueError(f"{uri} is outside the schema, and schemas are not fetched")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    safe: bool = False,
    idempotent: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    secret: Sequence[str] = (),
    preview: Callable[[Json], str | Preview] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a Tool of a typed function. Raises ConfigError for a signature with no JSON schema."""
    if function is not None:
        return _make(function)
    return lambda decorated: _make(decorated, **options)


def _make(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    secret: Sequence[str] = (),
    **traits: Any,
) -> Tool:
    label = name or str(getattr(function, "__name__", ""))
    if not name and not label.isidentifier():
        raise ConfigError(f"tool {label!r}", "the function has no name", "name it: @tool(name=...)")
    from docstring_parser import parse  # only who defines tools pays for it

    doc = parse(inspect.getdoc(function) or "")
    parameters, context_name = _parameters(label, function)
    schema = _schema(label, parameters, {p.arg_name: p.description or "" for p in doc.params})
    text = description or "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)
    return Tool(
        name=label,
        description=text,
        input_schema=schema,
        handler=_handler(function, parameters, context_name),
        secret=frozenset(secret),
        **traits,
    )


def _parameters(label: str, function: Callable[..., Any]) -> tuple[dict[str, tuple[Any, Any]], str | None]:
    """Name -> (type, default or inspect.Parameter.empty), and the name that takes the context."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise ConfigError(f"tool {label!r}", f"its annotations cannot be resolved: {error}") from error
    parameters: dict[str, tuple[Any, Any]] = {}
    context_name = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"tool {label!r}", f"parameter {parameter.name!r} cannot be named by a model")
        if parameter.name not in hints:
            raise ConfigError(f"tool {label!r}", f"parameter {parameter.name!r} has no type", "annotate it")
        if hints[parameter.name] is CallContext:
            context_name = parameter.name
        else:
            parameters[parameter.name] = (hints[parameter.name], parameter.default)
    return parameters, context_name


def _schema(label: str, parameters: dict[str, tuple[Any, Any]], described: dict[str, str]) -> Json:
    try:
        shapes, definitions = msgspec.json.schema_components(
            [kind for kind, _ in parameters.values()], ref_template="#/$defs/{name}"
        )
        properties = {}
        for (name, (_, default)), shape in zip(parameters.items(), shapes, strict=True):
            entry = dict(shape)
            if described.get(name):
                entry["description"] = described[name]
            if default is not inspect.Parameter.empty:
                entry["default"] = msgspec.to_builtins(default)
            properties[name] = entry
    except TypeError as error:
        raise ConfigError(f"tool {label!r}", f"a type has no JSON schema: {error}") from error
    schema: Json = {
        "type": "object",
        "properties": properties,
        "required": [n for n, (_, default) in parameters.items() if default is inspect.Parameter.empty],
        "additionalProperties": False,
    }
    if definitions:
        schema["$defs"] = definitions
    _check_defaults(label, schema)
    return schema


def _check_defaults(label: str, schema: Json) -> None:
    for name, shape in schema["properties"].items():
        alone = {**shape, "$defs": schema.get("$defs", {})}
        if "default" in shape and not _validator_of(alone).is_valid(shape["default"]):
            raise ConfigError(
                f"tool {label!r}", f"the default of {name!r} does not fit its type", "widen the type"
            )


def _handler(
    function: Callable[..., Any], parameters: dict[str, tuple[Any, Any]], context_name: str | None
) -> Handler:
    is_async = inspect.iscoroutinefunction(function)

    async def run(args: Json, context: CallContext) -> str | ToolOutput:
        try:
            values = {name: msgspec.convert(value, parameters[name][0]) for name, value in args.items()}
        except msgspec.ValidationError as error:
            raise ToolError(str(error)) from error
        if context_name:
            values[context_name] = context
        outcome = await (function(**values) if is_async else _in_thread(function, values))
        return outcome if isinstance(outcome, str | ToolOutput) else _as_text(outcome)

    return run


async def _in_thread(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Run it in a thread of its own that the program does not wait for when it ends."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def tell(outcome: Any, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is None:
            ended.set_result(outcome)
        else:
            ended.set_exception(error)

    def work() -> None:
        outcome: Any = None
        failure: BaseException | None = None
        try:
            outcome = context.run(function, **values)
        except StopIteration as error:  # a future cannot carry this one
            failure = RuntimeError(f"the tool raised {error!r}")
        except BaseException as error:  # handed over to whoever awaits the call
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, outcome, failure)

    threading.Thread(target=work, name=f"tool {function.__name__}", daemon=True).start()
    return await ended


def _as_text(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()
