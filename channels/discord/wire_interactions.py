"""Commands, presses and modals as Discord sends them -> the channel's values. Pure.

What controls carry and what is typed comes from a client: it is passed on as it is, and whoever acts
on it checks it against what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from channels.base import InboundPress, MessageRef, unpack_press
from channels.discord import refs, wire_text
from channels.discord import wire_values as v
from channels.discord.refs import Control
from channels.discord.wire_commands import autocomplete, command, value_of
from channels.discord.wire_json import Node
from channels.discord.wire_use import Use, read_use
from channels.discord.wire_values import Ignored, Parsed, Scene
from channels.tolerant import Malformed

_PING, _COMMAND, _COMPONENT, _AUTOCOMPLETE, _MODAL = 1, 2, 3, 4, 5  # types of interactions
_BUTTON, _SELECT = 2, 3  # types of components
_OTHER_SELECTS: Final = frozenset({5, 6, 7, 8})  # of users, roles, both, channels
_EPHEMERAL: Final = 1 << 6  # of a message's flags


def interaction(node: Node, scene: Scene) -> Parsed:
    """INTERACTION_CREATE. Raises Malformed."""
    kind = node.number("type")
    if kind == _PING:
        return Ignored(reason=v.PING)
    read = _READ.get(kind)
    if read is None:
        return Ignored(reason=v.UNKNOWN_INTERACTION, unknown=True)
    use = read_use(node, scene)
    return read(use) if isinstance(use, Use) else use


# ---- controls


def _component(use: Use) -> Parsed:
    custom_id, kind = use.data.need("custom_id"), use.data.number("component_type")
    if kind in _OTHER_SELECTS:
        return Ignored(reason=v.NOT_A_PRESS)
    if kind not in (_BUTTON, _SELECT):
        return Ignored(reason=v.UNKNOWN_COMPONENT, unknown=True)
    control = refs.read_control(custom_id)
    if kind == _BUTTON:
        return _button(use, control)
    if control.kind == "many":
        return _many(use, control, custom_id)
    chosen = next(_chosen(use, control, custom_id), None) if control.kind == "pick" else None
    return Ignored(reason=v.NOTHING_CHOSEN) if chosen is None else _button(use, refs.read_control(chosen))


def _button(use: Use, control: Control) -> Parsed:
    match control.kind:
        case "press":
            return _press(use, control)
        case "form":
            return v.FormWanted(press=_press(use, control), handle=use.handle, page=control.page)
        case "page":
            shown = Control(kind="press", data=refs.page_id(control.data, control.page))
            return v.CardWanted(press=_press(use, shown), handle=use.handle, page=control.page)
    return Ignored(reason=v.UNKNOWN_COMPONENT, unknown=True)


def _press(use: Use, control: Control, index: int = 0) -> InboundPress:
    """In a message for one person's eyes the press is of that list, unless it goes on with a card."""
    message = use.node.at("message")
    listed = message.has_flag(_EPHEMERAL) and not control.card
    return InboundPress(
        thread=use.place.key,
        action_id=refs.press_id(use.handle.id, index),
        actor=use.actor,
        data=control.data,
        message_ref=None if listed else _card(use, control),
        sent_at=use.handle.at,
        author=use.author,
        listed=listed,
    )


def _card(use: Use, control: Control) -> MessageRef | None:
    message = control.card or use.handle.message
    return refs.pack_ref(use.place.here, message) if message else None


def _chosen(use: Use, control: Control, custom_id: str) -> Iterator[str]:
    """The values of a select that belong to its card, or are offered in it: a card of several calls has
    choices of all of them in one. A value may open a form."""
    select = _drawn(use, custom_id)
    offered = {option.text("value") for option in select.nodes("options")} if select is not None else set()
    for one in use.data.nodes("values"):
        data = refs.read_control(one.text()).data
        unpacked = unpack_press(data)
        if unpacked is not None and (unpacked[0] == control.data or one.text() in offered):
            yield one.text()


def _drawn(use: Use, custom_id: str) -> Node | None:
    """A select as it stands in the message."""
    shown = wire_text.components(use.node.at("message"))
    return next((one for one in shown if one.text("custom_id") == custom_id), None)


def _many(use: Use, control: Control, custom_id: str) -> Parsed:
    """Every change of such a select reports all that is chosen in it: what differs from the options as
    they are drawn was just chosen, or just given up."""
    drawn = _drawn(use, custom_id)
    if drawn is None:
        raise Malformed("message.components")
    chosen = set(_chosen(use, control, custom_id))
    changed = [
        option.text("value")
        for option in drawn.nodes("options")
        if (option.text("value") in chosen) != option.flag("default")
    ]
    if not changed:
        return Ignored(reason=v.SAME_CHOICE)
    presses = tuple(
        _press(use, Control(kind="press", data=data), index)
        for index, data in enumerate(dict.fromkeys(changed))
    )
    return v.Toggled(presses=presses, handle=use.handle)


# ---- modals


def _modal(use: Use) -> Parsed:
    control = refs.read_modal(use.data.need("custom_id"))
    if control is None:
        return Ignored(reason=v.OTHER_MODAL)
    return v.FormSent(
        press=_press(use, control),
        handle=use.handle,
        page=control.page,
        fields=fields(use.data),
        data=use.data.value if isinstance(use.data.value, Mapping) else {},
    )


def fields(data: Node) -> dict[str, str | tuple[str, ...]]:
    """Custom id -> what is typed or chosen there, as text; several choices as a tuple."""
    return {one.text("custom_id"): _typed(one) for one in wire_text.components(data) if one.text("custom_id")}


def _typed(one: Node) -> str | tuple[str, ...]:
    if isinstance(one.at("values").value, list):
        return tuple(value.text() for value in one.nodes("values"))
    return value_of(one)


_READ: Final[Mapping[int | None, Callable[[Use], Parsed]]] = {
    _COMMAND: command,
    _COMPONENT: _component,
    _AUTOCOMPLETE: autocomplete,
    _MODAL: _modal,
}
