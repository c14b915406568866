"""Block Kit as Slack checks it: every block and element type with its fields and limits. Pure."""

from __future__ import annotations

import json
from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.limits import Json, units
from tests.platforms.slack.shapes import (
    Check,
    Report,
    address,
    flag,
    integer,
    many,
    number,
    one_of,
    shape,
    string,
)

# ---- composition objects


def text(longest: int, *kinds: str, shortest: int = 1) -> Check:
    """A text object of these kinds."""

    def check(value: Any, at: str, report: Report) -> None:
        plain = {"emoji": flag, "text": string(longest, shortest), "type": one_of(*kinds)}
        marked = {"verbatim": flag, "text": string(longest, shortest), "type": one_of(*kinds)}
        is_plain = isinstance(value, dict) and value.get("type") == "plain_text"
        shape({}, plain if is_plain else marked)(value, at, report)
        if isinstance(value, dict):
            for name in {"type", "text"} - value.keys():
                report.error(f"missing required field: {name}", at)

    return check


def plain(longest: int) -> Check:
    return text(longest, "plain_text")


def any_text(longest: int) -> Check:
    return text(longest, "plain_text", "mrkdwn")


CONFIRM = shape(
    {
        "title": plain(limits.CONFIRM_TITLE),
        "text": any_text(limits.CONFIRM_TEXT),
        "confirm": plain(limits.CONFIRM_BUTTON),
        "deny": plain(limits.CONFIRM_BUTTON),
    },
    {"style": one_of("primary", "danger")},
)


def option(marked: bool, url: bool = False) -> Check:
    words = any_text if marked else plain
    more: dict[str, Check] = {"url": address} if url else {}
    more["description"] = words(limits.OPTION_TEXT)
    return shape({"text": words(limits.OPTION_TEXT), "value": string(limits.OPTION_VALUE)}, more)


def options(longest: int, marked: bool = False, url: bool = False) -> Check:
    def check(value: Any, at: str, report: Report) -> None:
        many(option(marked, url), longest)(value, at, report)
        if isinstance(value, list):
            values = [entry.get("value") for entry in value if isinstance(entry, dict)]
            if len(set(map(str, values))) < len(values):
                report.error("option values must be unique", at)

    return check


def option_groups(value: Any, at: str, report: Report) -> None:
    group = shape({"label": plain(limits.OPTION_TEXT), "options": options(limits.OPTIONS)})
    many(group, limits.OPTION_GROUPS)(value, at, report)


def action_id(value: Any, at: str, report: Report) -> None:
    string(limits.ID)(value, at, report)
    if value in report.action_ids:
        report.error("`action_id` already exists for another element in this block", at)
    report.action_ids.add(str(value))


# ---- elements

ACTS: dict[str, Check] = {"action_id": action_id}
FOCUS: dict[str, Check] = {"focus_on_load": flag, "placeholder": plain(limits.PLACEHOLDER)}
DISPATCH: dict[str, Check] = {
    "dispatch_action_config": shape(
        {"trigger_actions_on": many(one_of("on_enter_pressed", "on_character_entered"), 2)}
    )
}
SELECT: dict[str, Check] = {**ACTS, **FOCUS, "confirm": CONFIRM}
MULTI: dict[str, Check] = {**SELECT, "max_selected_items": integer(1, limits.OPTIONS)}
STATIC: dict[str, Check] = {"options": options(limits.OPTIONS), "option_groups": option_groups}
TYPED: dict[str, Check] = {**ACTS, **FOCUS, **DISPATCH}


def typed(longest: int) -> dict[str, Check]:
    return {**TYPED, "initial_value": string(longest)}


ELEMENTS: dict[str, Check] = {
    "button": shape(
        {"text": plain(limits.BUTTON_TEXT)},
        {
            **ACTS,
            "value": string(limits.BUTTON_VALUE),
            "url": address,
            "style": one_of("primary", "danger"),
            "confirm": CONFIRM,
            "accessibility_label": string(limits.ACCESSIBILITY),
        },
    ),
    "static_select": shape({}, {**SELECT, **STATIC, "initial_option": option(False)}),
    "multi_static_select": shape(
        {}, {**MULTI, **STATIC, "initial_options": many(option(False), limits.OPTIONS)}
    ),
    "overflow": shape({"options": options(limits.OVERFLOW, url=True)}, {**ACTS, "confirm": CONFIRM}),
    "checkboxes": shape(
        {"options": options(limits.CHECKED, marked=True)},
        {
            **ACTS,
            "initial_options": many(option(True), limits.CHECKED),
            "confirm": CONFIRM,
            "focus_on_load": flag,
        },
    ),
    "radio_buttons": shape(
        {"options": options(limits.CHECKED, marked=True)},
        {**ACTS, "initial_option": option(True), "confirm": CONFIRM, "focus_on_load": flag},
    ),
    "datepicker": shape({}, {**SELECT, "initial_date": string(10, 10)}),
    "timepicker": shape({}, {**SELECT, "initial_time": string(5, 5), "timezone": string(limits.ID)}),
    "datetimepicker": shape(
        {},
        {**ACTS, "initial_date_time": integer(0, 9_999_999_999), "focus_on_load": flag, "confirm": CONFIRM},
    ),
    "plain_text_input": shape(
        {},
        {
            **typed(limits.INPUT_TEXT),
            "multiline": flag,
            "min_length": integer(0, limits.INPUT_TEXT),
            "max_length": integer(1, limits.INPUT_TEXT),
        },
    ),
    "number_input": shape(
        {"is_decimal_allowed": flag},
        {**TYPED, "initial_value": number, "min_value": number, "max_value": number},
    ),
    "email_text_input": shape({}, typed(limits.INPUT_TEXT)),
    "url_text_input": shape({}, typed(limits.INPUT_TEXT)),
    "users_select": shape({}, {**SELECT, "initial_user": string(limits.ID)}),
    "multi_users_select": shape({}, {**MULTI, "initial_users": many(string(limits.ID), limits.OPTIONS)}),
    "image": shape({"image_url": address, "alt_text": string(limits.ALT_TEXT)}),
    "mrkdwn": text(limits.SECTION_TEXT, "mrkdwn"),
    "plain_text": plain(limits.SECTION_TEXT),
}

CHOOSERS = frozenset(
    ["static_select", "multi_static_select", "checkboxes", "radio_buttons", "users_select"]
) | {"multi_users_select", "datepicker", "timepicker"}
IN_ACTIONS = CHOOSERS | {"button", "overflow", "datetimepicker"}
IN_SECTION = CHOOSERS | {"button", "overflow", "image"}
IN_INPUT = CHOOSERS | {
    "datetimepicker",
    "plain_text_input",
    "number_input",
    "email_text_input",
    "url_text_input",
}
IN_CONTEXT = frozenset(["image", "mrkdwn", "plain_text"])


def element(allowed: frozenset[str]) -> Check:
    def check(value: Any, at: str, report: Report) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        if kind not in allowed:
            report.error(f"unsupported type: {kind}", f"{at}/type")
            return
        ELEMENTS[kind](value, at, report)
        _whole_element(value, at, report)

    return check


def _whole_element(value: Json, at: str, report: Report) -> None:
    """What concerns several fields of an element."""
    kind = value["type"]
    if kind in {"static_select", "multi_static_select"} and ("options" in value) == (
        "option_groups" in value
    ):
        report.error("either options or option_groups is required", at)
    initial = value.get("initial_options", [])
    if "initial_option" in value:
        initial = [value["initial_option"]]
    groups = value.get("option_groups") or [{"options": value.get("options", [])}]
    offered = [entry for group in groups for entry in group.get("options", [])]
    if any(entry not in offered for entry in initial):
        report.error("initial options must exactly match options", at)
    if value.get("min_length", 0) > value.get("max_length", limits.INPUT_TEXT):
        report.error("min_length is above max_length", at)
    if "max_length" in value and units(str(value.get("initial_value", ""))) > value["max_length"]:
        report.error("initial_value is longer than max_length", at)


# ---- rich text

STYLE = shape({}, dict.fromkeys(["bold", "italic", "strike", "code", "underline"], flag))
INLINE: dict[str, Check] = {
    "text": shape({"text": string(100_000)}, {"style": STYLE}),
    "link": shape({"url": address}, {"text": string(100_000), "style": STYLE, "unsafe": flag}),
    "user": shape({"user_id": string(limits.ID)}, {"style": STYLE}),
    "usergroup": shape({"usergroup_id": string(limits.ID)}, {"style": STYLE}),
    "channel": shape({"channel_id": string(limits.ID)}, {"style": STYLE}),
    "broadcast": shape({"range": one_of("here", "channel", "everyone")}),
    "emoji": shape({"name": string(limits.ID)}, {"unicode": string(limits.ID), "style": STYLE}),
    "date": shape(
        {"timestamp": integer(0, 9_999_999_999), "format": string(limits.ID)},
        {"url": address, "fallback": string(limits.ID)},
    ),
}


def by_type(table: dict[str, Check]) -> Check:
    def check(value: Any, at: str, report: Report) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        if kind in table:
            table[kind](value, at, report)
        else:
            report.error(f"unsupported type: {kind}", f"{at}/type")

    return check


INLINES = many(by_type(INLINE), 100_000)
SECTION: dict[str, Check] = {"rich_text_section": shape({"elements": many(by_type(INLINE), 100_000, 0)})}
IN_CODE = {kind: INLINE[kind] for kind in ("text", "link")}
RICH: dict[str, Check] = {
    **SECTION,
    "rich_text_list": shape(
        {"elements": many(by_type(SECTION), 10_000), "style": one_of("bullet", "ordered")},
        {"indent": integer(0, 8), "offset": integer(0, 10_000), "border": integer(0, 1)},
    ),
    "rich_text_preformatted": shape(
        {"elements": many(by_type(IN_CODE), 10_000)}, {"border": integer(0, 1), "language": string(64)}
    ),
    "rich_text_quote": shape({"elements": INLINES}, {"border": integer(0, 1)}),
}


# ---- blocks


def _markdown(value: Any, at: str, report: Report) -> None:
    string(limits.MARKDOWN)(value, at, report)
    report.markdown += units(str(value))


def _block_id(value: Any, at: str, report: Report) -> None:
    string(limits.ID)(value, at, report)
    if value in report.block_ids:
        report.error("`block_id` already exists for another block", at)
    report.block_ids.add(str(value))


CELL = by_type(
    {
        "raw_text": shape({"text": string(limits.SECTION_TEXT)}),
        "rich_text": shape({"elements": many(by_type(RICH), 100)}),
    }
)
TASK = shape(
    {"task_id": string(limits.ID), "title": string(256)},
    {
        "status": one_of("pending", "in_progress", "complete", "error"),
        "details": shape({"elements": many(by_type(RICH), 100)}),
        "output": shape({"elements": many(by_type(RICH), 100)}),
        "sources": many(shape({"url": address, "text": string(limits.ID)}), 20),
    },
)
BLOCKS: dict[str, Check] = {
    "section": shape(
        {},
        {
            "text": any_text(limits.SECTION_TEXT),
            "fields": many(any_text(limits.SECTION_FIELD), limits.SECTION_FIELDS),
            "accessory": element(IN_SECTION),
            "expand": flag,
        },
    ),
    "divider": shape({}),
    "header": shape({"text": plain(limits.HEADER)}),
    "image": shape(
        {"image_url": address, "alt_text": string(limits.ALT_TEXT)}, {"title": plain(limits.IMAGE_TITLE)}
    ),
    "context": shape({"elements": many(element(IN_CONTEXT), limits.CONTEXT_ELEMENTS)}),
    "actions": shape({"elements": many(element(IN_ACTIONS), limits.ACTIONS_ELEMENTS)}),
    "input": shape(
        {"label": plain(limits.INPUT_LABEL), "element": element(IN_INPUT)},
        {"hint": plain(limits.INPUT_HINT), "optional": flag, "dispatch_action": flag},
    ),
    "rich_text": shape({"elements": many(by_type(RICH), 1_000)}),
    "markdown": shape({"text": _markdown}),
    "table": shape(
        {"rows": many(many(CELL, limits.TABLE_COLUMNS), limits.TABLE_ROWS)},
        {
            "column_settings": many(
                shape({}, {"align": one_of("left", "center", "right"), "is_wrapped": flag}),
                limits.TABLE_COLUMNS,
            )
        },
    ),
    "file": shape({"external_id": string(limits.ID), "source": one_of("remote")}),
    "task_card": TASK,
    "plan": shape({"title": string(256)}, {"tasks": many(TASK, 50)}),
}
MODAL = frozenset(["section", "divider", "header", "image", "context", "actions", "input", "rich_text"])
SURFACES = {"message": BLOCKS.keys() - {"input"}, "modal": MODAL, "home": MODAL | {"table"}}


def check_blocks(blocks: Any, surface: str) -> list[str]:
    """What is wrong with the blocks of a message, modal or home, in Slack's words; [] when nothing is."""
    report = Report(surface)
    many(_block, limits.BLOCKS[surface], 0 if surface != "modal" else 1)(blocks, "/blocks", report)
    if report.markdown > limits.MARKDOWN:
        report.error(f"markdown text must be less than {limits.MARKDOWN + 1} characters", "/blocks")
    return report.errors


def too_long(blocks: Any) -> bool:
    """Whether a message's blocks are more than Slack takes as a whole."""
    return units(json.dumps(blocks, ensure_ascii=False, separators=(",", ":"))) > limits.BLOCKS_JSON


def _block(value: Any, at: str, report: Report) -> None:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in SURFACES[report.surface] or kind is None:
        report.error(f"unsupported type: {kind}", f"{at}/type")
        return
    report.action_ids = set()
    rest = {name: entry for name, entry in value.items() if name != "block_id"}
    BLOCKS[kind](rest, at, report)
    if "block_id" in value:
        _block_id(value["block_id"], f"{at}/block_id", report)
    if kind == "section" and not {"text", "fields"} & value.keys():
        report.error("missing required field: text", at)


VIEW: dict[str, Check] = {
    "blocks": lambda *_: None,
    "private_metadata": string(limits.PRIVATE_METADATA, 0),
    "callback_id": string(limits.ID),
    "external_id": string(limits.ID, 0),
}
VIEWS = {
    "modal": shape(
        {"title": plain(limits.VIEW_TITLE), "blocks": VIEW["blocks"]},
        {
            **VIEW,
            "submit": plain(limits.VIEW_TITLE),
            "close": plain(limits.VIEW_TITLE),
            "clear_on_close": flag,
            "notify_on_close": flag,
        },
    ),
    "home": shape({"blocks": VIEW["blocks"]}, VIEW),
}


def check_view(view: Any, kinds: tuple[str, ...]) -> list[str]:
    """What is wrong with a view of one of these kinds."""
    kind = view.get("type") if isinstance(view, dict) else None
    if kind not in kinds:
        return [f"must be one of {list(kinds)} [json-pointer:/view/type]"]
    report = Report(str(kind))
    VIEWS[str(kind)](view, "/view", report)
    errors = report.errors + check_blocks(view.get("blocks"), str(kind))
    blocks = view.get("blocks") if isinstance(view.get("blocks"), list) else []
    if kind == "modal" and "submit" not in view and any(b.get("type") == "input" for b in blocks):
        errors.append("`submit` is required when an input block is within the view [json-pointer:/view]")
    return errors
