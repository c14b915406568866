"""A second opinion on blocks by `slackblocks`, which was written by others.

Its `from_dict` reads no controls and no rich text; these are built here through its constructors,
so that its limits are asked for them too. What it does not know at all is left out.
"""

from __future__ import annotations

from typing import Any

import slackblocks as sb
from slackblocks import elements as el
from slackblocks.errors import InvalidUsageError
from slackblocks.rich_text import elements as inline
from slackblocks.rich_text import objects as rich
from slackblocks.views import HomeTabView, ModalView

from tests.platforms.slack.limits import Json

WORDS = ("title", "submit", "close")
NOT_KNOWN = frozenset(["task_card", "plan", "table"])


class _Unknown(Exception):
    """Nothing to ask about."""


def second_opinion(blocks: list[Json], surface: str, view: Json | None = None) -> str:
    """What slackblocks objects to, "" for nothing. `view`: the view that holds the blocks."""
    try:
        built = [block for block in map(_block, blocks) if block is not None]
        if not built:
            return ""
        match surface:
            case "message":
                sb.Message(channel="C1", text="text", blocks=built)
            case "modal":
                words = {name: _text((view or {})[name]) for name in WORDS if (view or {}).get(name)}
                ModalView(blocks=built, **{"title": "title", **words, **_plain(view or {})})
            case "home":
                HomeTabView(blocks=built, **_plain(view or {}))
    except InvalidUsageError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _plain(view: Json) -> dict[str, Any]:
    return {name: view[name] for name in ("private_metadata", "callback_id", "external_id") if view.get(name)}


def _block(block: Json) -> sb.Block | None:
    id = block.get("block_id")
    try:
        match block["type"]:
            case "actions":
                return sb.ActionsBlock([_element(entry) for entry in block["elements"]], block_id=id)
            case "section" if "accessory" in block:
                rest = {name: value for name, value in block.items() if name != "accessory"}
                sb.Block.from_dict(rest)
                fields: Any = [_text(entry) for entry in block.get("fields", [])]
                words = _text(block["text"]) if "text" in block else None
                return sb.SectionBlock(words, id, fields or None, _element(block["accessory"]))
            case "input":
                return sb.InputBlock(
                    label=_text(block["label"]),
                    element=_element(block["element"]),
                    hint=_text(block["hint"]) if "hint" in block else None,
                    block_id=id,
                    optional=block.get("optional", False),
                )
            case "rich_text":
                return sb.RichTextBlock([_rich(entry) for entry in block["elements"]], block_id=id)
            case kind if kind in NOT_KNOWN:
                return None
    except _Unknown:
        return None
    return sb.Block.from_dict(block)


def _text(text: Json) -> sb.Text:
    return sb.Text.from_dict(text)


def _element(element: Json) -> Any:
    """One control."""
    more: Json = {"action_id": element.get("action_id")}
    if "confirm" in element:
        more["confirm"] = sb.ConfirmationDialogue.from_dict(element["confirm"])
    if "placeholder" in element:
        more["placeholder"] = _text(element["placeholder"])
    match element["type"]:
        case "button":
            plain = {name: element.get(name) for name in ("url", "value", "style")}
            return el.Button(_text(element["text"]), **plain, **more)
        case "image":
            return el.Image(alt_text=element["alt_text"], image_url=element["image_url"])
        case "plain_text_input":
            names = ("initial_value", "multiline", "min_length", "max_length")
            return el.PlainTextInput(**more, **{name: element[name] for name in names if name in element})
        case "number_input":
            names = ("is_decimal_allowed", "initial_value", "min_value", "max_value")
            return el.NumberInput(**more, **{name: element[name] for name in names if name in element})
    return _chooser(element, more)


def _chooser(element: Json, more: Json) -> Any:
    classes = {
        "static_select": el.StaticSelectMenu,
        "multi_static_select": el.StaticMultiSelectMenu,
        "checkboxes": el.CheckboxGroup,
        "radio_buttons": el.RadioButtonGroup,
        "overflow": el.OverflowMenu,
    }
    if element["type"] == "datepicker":
        return el.DatePicker(initial_date=element.get("initial_date"), **more)
    if element["type"] not in classes or not element.keys() & {"options", "option_groups"}:
        raise _Unknown
    if "option_groups" in element:  # it takes no single options as the initial ones of groups, as Slack does
        more["options"] = None
        more["option_groups"] = [sb.OptionGroup.from_dict(group) for group in element["option_groups"]]
        return classes[element["type"]](**more)
    more["options"] = [sb.Option.from_dict(entry) for entry in element["options"]]
    if "initial_option" in element:
        more["initial_option"] = sb.Option.from_dict(element["initial_option"])
    if "initial_options" in element:
        more["initial_options"] = [sb.Option.from_dict(entry) for entry in element["initial_options"]]
    if "max_selected_items" in element:
        more["max_selected_items"] = element["max_selected_items"]
    return classes[element["type"]](**more)


def _rich(element: Json) -> Any:
    """One part of a rich text."""
    inner = element["elements"]
    match element["type"]:
        case "rich_text_section":
            return rich.RichTextSection([_inline(entry) for entry in inner])
        case "rich_text_preformatted":
            return rich.RichTextCodeBlock([_inline(entry) for entry in inner], element.get("border", 0))
        case "rich_text_quote":
            return rich.RichTextQuote([_inline(entry) for entry in inner], element.get("border", 0))
        case "rich_text_list":
            sections = [_rich(entry) for entry in inner]
            return rich.RichTextList(element["style"], sections, element.get("indent", 0))
    raise _Unknown


def _inline(element: Json) -> Any:
    style = element.get("style", {})
    marks = {name: style.get(name, False) for name in ("bold", "italic", "strike", "code")}
    match element["type"]:
        case "text":
            return inline.RichText(element["text"], **marks)
        case "link":
            return inline.RichTextLink(element["url"], element.get("text"))
        case "user":
            return inline.RichTextUser(element["user_id"])
        case "usergroup":
            return inline.RichTextUserGroup(element["usergroup_id"])
        case "emoji":
            return inline.RichTextEmoji(element["name"])
    raise _Unknown
