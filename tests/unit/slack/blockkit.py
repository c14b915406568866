"""What our payloads are checked with: the platform server's own limits and, as a second opinion, the
`slackblocks` library, whose constructors refuse what Slack refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import slackblocks as sb
from slackblocks.blocks import Block

from channels.render.measure import utf16_len
from channels.slack.limits import LIMITS
from tests.platforms.slack.checks import check_blocks, check_view, too_long

Json = dict[str, Any]
_MARKS = {"bold", "italic", "strike", "code"}


# ---- checks


def checked_message(message: Json) -> None:
    """Fails for a message that Slack would refuse, or would take for something else."""
    assert 1 <= utf16_len(message["text"]) <= 4000
    assert utf16_len(message["text"]) <= LIMITS.text + 96
    assert check_blocks(message["blocks"], "message") == []
    assert not too_long(message["blocks"])
    checked_controls(message["blocks"])
    sb.Message(channel="C1", text=message["text"], blocks=[opinion(b) for b in message["blocks"]] or None)


def checked_modal(view: Json) -> None:
    """Fails for a modal that Slack would refuse."""
    assert check_view(view, ("modal",)) == []
    sb.ModalView(
        title=view["title"]["text"],
        blocks=[opinion(block) for block in view["blocks"]],
        close=view["close"]["text"],
        submit=view["submit"]["text"] if "submit" in view else None,
        private_metadata=view["private_metadata"],
        callback_id=view["callback_id"],
    )


def checked_home(view: Json) -> None:
    """Fails for a home that Slack would refuse."""
    assert check_view(view, ("home",)) == []
    checked_controls(view["blocks"])
    sb.HomeTabView(blocks=[opinion(block) for block in view["blocks"]])


def checked_controls(blocks: list[Json]) -> None:
    """No two controls of a surface share an id: Slack would report one for the other."""
    ids = [element["action_id"] for element in controls(blocks)]
    assert len(set(ids)) == len(ids)


# ---- slackblocks: from_dict knows few blocks, so the others are built


def opinion(block: Json) -> Block:
    """The block as slackblocks builds it."""
    match block["type"]:
        case "actions":
            return sb.ActionsBlock(elements=[element(e) for e in block["elements"]])
        case "input":
            return sb.InputBlock(
                label=sb.Text.from_dict(block["label"]),
                element=element(block["element"]),
                hint=sb.Text.from_dict(block["hint"]) if "hint" in block else None,
                optional=block["optional"],
                block_id=block["block_id"],
            )
        case "rich_text":
            return sb.RichTextBlock(elements=[_rich(e) for e in block["elements"]])
        case "section" if "accessory" in block:
            return sb.SectionBlock(
                text=sb.Text.from_dict(block["text"]), accessory=element(block["accessory"])
            )
        case _:
            return Block.from_dict(block)


def element(value: Json) -> Any:
    """One interactive element."""
    name = value["action_id"]
    options = [sb.Option.from_dict(option) for option in value.get("options", [])]
    first = value.get("initial_option")
    chosen = [sb.Option.from_dict(option) for option in value.get("initial_options", [])]
    groups = [sb.OptionGroup.from_dict(group) for group in value.get("option_groups", [])]
    match value["type"]:
        case "button":
            return sb.Button(
                text=value["text"]["text"], action_id=name, value=value["value"], style=value.get("style")
            )
        case "checkboxes":
            return sb.CheckboxGroup(action_id=name, options=options, initial_options=chosen or None)
        case "radio_buttons":
            one = None if first is None else sb.Option.from_dict(first)
            return sb.RadioButtonGroup(action_id=name, options=options, initial_option=one)
        case "static_select":
            # As below: slackblocks takes no single option as the initial one of groups.
            one = None if first is None or groups else sb.Option.from_dict(first)
            return sb.StaticSelectMenu(
                action_id=name, options=options or None, option_groups=groups or None, initial_option=one
            )
        case "multi_static_select":
            # slackblocks takes no single options as the initial ones of groups, Slack takes nothing else
            return sb.StaticMultiSelectMenu(
                action_id=name,
                options=options or None,  # type: ignore[arg-type]
                option_groups=groups or None,
                initial_options=(chosen or None) if options else None,
            )
        case "datepicker":
            return sb.DatePicker(action_id=name, initial_date=value.get("initial_date"))
        case "number_input":
            return sb.NumberInput(
                is_decimal_allowed=value["is_decimal_allowed"],
                action_id=name,
                initial_value=value.get("initial_value"),
            )
        case "plain_text_input":
            return sb.PlainTextInput(
                action_id=name, initial_value=value.get("initial_value"), multiline=value["multiline"]
            )
    raise AssertionError(f"an element that no card should have: {value['type']}")


def _rich(value: Json) -> Any:
    runs = [_run(run) for run in value["elements"]]
    match value["type"]:
        case "rich_text_section":
            return sb.RichTextSection(elements=runs)
        case "rich_text_preformatted":
            return sb.RichTextCodeBlock(elements=runs)
        case "rich_text_quote":
            return sb.RichTextQuote(elements=runs)
    raise AssertionError(f"rich text that no payload should have: {value['type']}")


def _run(run: Json) -> Any:
    if run["type"] == "user":
        return sb.RichTextUser(user_id=run["user_id"])
    if run["type"] == "usergroup":
        return sb.RichTextUserGroup(user_group_id=run["usergroup_id"])
    if run["type"] == "link":
        return sb.RichTextLink(url=run["url"], text=run.get("text"))
    assert run["type"] == "text"
    return sb.RichText(run["text"], **{mark: True for mark in _MARKS & run.get("style", {}).keys()})


# ---- reading a payload as people do


def walk(value: Any) -> Iterator[Json]:
    """Every object in a payload."""
    if isinstance(value, dict):
        yield value
        for entry in value.values():
            yield from walk(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from walk(entry)


def shown(blocks: list[Json]) -> str:
    """All words of the blocks that are no controls, a line for each piece."""
    words = [block for block in blocks if block["type"] != "actions"]
    return "\n".join(
        entry["text"]
        for block in words
        for entry in walk({name: part for name, part in block.items() if name != "accessory"})
        if isinstance(entry.get("text"), str)
    )


def codes(blocks: list[Json]) -> list[str]:
    """What stands in preformatted boxes."""
    return [
        "".join(run["text"] for run in entry["elements"])
        for entry in walk(blocks)
        if entry.get("type") == "rich_text_preformatted"
    ]


def controls(blocks: list[Json]) -> list[Json]:
    """Every element that people can use."""
    found = [block.get("elements", []) for block in blocks if block["type"] == "actions"]
    found += [[block["accessory"]] for block in blocks if "accessory" in block]
    return [element for elements in found for element in elements]


def labels(blocks: list[Json]) -> list[str]:
    """The buttons' words."""
    return [e["text"]["text"] for e in controls(blocks) if e["type"] == "button"]


def live(payload: Any) -> list[Json]:
    """Everything that pages somebody or leads elsewhere: mentions, links, and text in mrkdwn."""
    kinds = {"link", "user", "usergroup", "channel", "broadcast", "emoji", "date", "mrkdwn"}
    return [entry for entry in walk(payload) if entry.get("type") in kinds]
