"""Buttons, selects, the second generation of components, and modals: what Discord takes. Pure."""

from __future__ import annotations

from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.limits import Json
from tests.platforms.discord.shapes import (
    Check,
    Path,
    Report,
    address,
    anything,
    flag,
    flake,
    integer,
    many,
    nullable,
    one_of,
    shape,
    string,
)

BUTTON, SELECTS, SECTION, DISPLAY, LABEL = 2, (3, 5, 6, 7, 8), 9, 10, 18
TOP_V2 = (1, 9, 10, 12, 13, 14, 17)
IN_CONTAINER = (1, 9, 10, 12, 13, 14)
IN_LABEL = (3, 4, 5, 6, 7, 8, 19, 21, 22, 23)

EMOJI = shape({}, {"id": nullable(flake), "name": nullable(string(100)), "animated": flag})
BASE: dict[str, Check] = {"type": integer(1, 23), "id": integer(0, 2**31 - 1)}


def custom_id(value: Any, at: Path, report: Report) -> None:
    string(limits.CUSTOM_ID)(value, at, report)
    if value in report.custom_ids:
        words = "Component custom id cannot be duplicated"
        report.error("COMPONENT_CUSTOM_ID_DUPLICATED", words, at)
    report.custom_ids.add(str(value))


def _button(value: Json, at: Path, report: Report) -> None:
    shape(
        {"style": integer(1, 6)},
        BASE
        | {
            "label": nullable(string(limits.BUTTON_LABEL)),
            "emoji": EMOJI,
            "custom_id": custom_id,
            "url": string(limits.URL),
            "disabled": flag,
        },
    )(value, at, report)
    link = value.get("style") == 5
    if link == ("custom_id" in value):
        words = "A custom id and url cannot both be specified" if link else "A custom id is required"
        report.error("BASE_TYPE_REQUIRED", words, (*at, "custom_id"))
    if link != ("url" in value):
        report.error("BASE_TYPE_REQUIRED", "A url is for link buttons, which need one", (*at, "url"))
    if "url" in value:
        address(value["url"], (*at, "url"), report)
    if not value.get("label") and not value.get("emoji"):
        report.error("BUTTON_COMPONENT_MISSING_LABEL", "A label or emoji is required", at)


OPTION = shape(
    {"label": string(limits.OPTION_TEXT), "value": string(limits.OPTION_TEXT)},
    {"description": nullable(string(limits.OPTION_TEXT)), "emoji": EMOJI, "default": flag},
)


def _choices(value: Json, at: Path, report: Report, most: int) -> None:
    """Options whose values differ, and minimum and maximum that go together."""
    options = [o for o in value.get("options") or [] if isinstance(o, dict)]
    seen: set[str] = set()
    for place, option in enumerate(options):
        if str(option.get("value")) in seen:
            words = "The specified option value is already used"
            where = (*at, "options", place, "value")
            report.error("SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", words, where)
        seen.add(str(option.get("value")))
    lowest, highest = value.get("min_values", 1), value.get("max_values", 1)
    if not isinstance(lowest, int) or not isinstance(highest, int):
        return
    if lowest > highest or (value.get("type") in (3, 22) and highest > max(len(options), 1)):
        report.error("BASE_TYPE_BAD_LENGTH", f"{lowest} to {highest} of {len(options)}", (*at, "max_values"))
    if sum(1 for option in options if option.get("default")) > min(highest, most):
        words = "More options are chosen than may be"
        report.error("SELECT_COMPONENT_TOO_MANY_DEFAULT_VALUES", words, (*at, "options"))


def _select(value: Json, at: Path, report: Report, *, modal: bool = False) -> None:
    fields: dict[str, Check] = BASE | {
        "placeholder": nullable(string(limits.PLACEHOLDER, 0)),
        "min_values": integer(0, limits.OPTIONS),
        "max_values": integer(1, limits.OPTIONS),
        "default_values": many(anything, limits.OPTIONS),
    }
    if value.get("type") == 8:
        fields["channel_types"] = many(integer(0, 16), 20)
    fields["required" if modal else "disabled"] = flag
    if modal:
        fields["disabled"] = one_of(False)
    needed: dict[str, Check] = {"custom_id": custom_id}
    if value.get("type") == 3:
        needed["options"] = many(OPTION, limits.OPTIONS, 1)
    shape(needed, fields)(value, at, report)
    _choices(value, at, report, limits.OPTIONS)


def _row(value: Json, at: Path, report: Report) -> None:
    shape({"components": many(anything, limits.ROW_BUTTONS, 1)}, BASE)(value, at, report)
    children = _dicts(value, at, report)
    kinds = [child.get("type") for _, child in children]
    if len(kinds) > 1 and any(kind != BUTTON for kind in kinds):
        words = "The specified component exceeds the maximum width"
        report.error("COMPONENT_LAYOUT_WIDTH_EXCEEDED", words, (*at, "components"))
    for place, child in children:
        report.count += 1
        if child.get("type") == BUTTON:
            _button(child, place, report)
        elif child.get("type") in SELECTS:
            _select(child, place, report)
        else:
            report.error("UNION_TYPE_CHOICES", "Value of field is not a button or select", (*place, "type"))


def _dicts(value: Json, at: Path, report: Report) -> list[tuple[Path, Json]]:
    found = []
    entries = value.get("components")
    for place, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict):
            found.append(((*at, "components", place), entry))
        else:
            report.error("DICT_TYPE_CONVERT", "Only dictionaries may be used", (*at, "components", place))
    return found


def _media(value: Any, at: Path, report: Report) -> None:
    known: dict[str, Check] = dict.fromkeys(
        (
            "proxy_url",
            "height",
            "width",
            "content_type",
            "placeholder",
            "loading_state",
            "attachment_id",
            "flags",
        ),
        anything,
    )
    shape({"url": address}, known)(value, at, report)
    if isinstance(value, dict) and str(value.get("url", "")).startswith("attachment://"):
        report.attachments.add(value["url"].removeprefix("attachment://"))


def _display(value: Json, at: Path, report: Report) -> None:
    shape({"content": string(limits.DISPLAY_V2)}, BASE)(value, at, report)
    report.display += len(str(value.get("content", "")))


THUMBNAIL = shape({"media": _media}, BASE | {"description": nullable(string(1_024)), "spoiler": flag})
GALLERY_ITEM = shape({"media": _media}, {"description": nullable(string(1_024)), "spoiler": flag})
GALLERY = shape({"items": many(GALLERY_ITEM, limits.GALLERY_ITEMS, 1)}, BASE)
SEPARATOR = shape({}, BASE | {"divider": flag, "spacing": one_of(1, 2)})


def _file(value: Json, at: Path, report: Report) -> None:
    more: dict[str, Check] = {"spoiler": flag, "name": anything, "size": anything}
    shape({"file": _media}, BASE | more)(value, at, report)
    media = value.get("file")
    url = media.get("url", "") if isinstance(media, dict) else ""
    if not str(url).startswith("attachment://") and "/attachments/" not in str(url):
        report.error("UNFURLED_MEDIA_ITEM_NOT_ATTACHMENT", "Only attachments may be used", (*at, "file"))


def _section(value: Json, at: Path, report: Report) -> None:
    texts = many(anything, limits.SECTION_TEXTS, 1)
    shape({"components": texts, "accessory": anything}, BASE)(value, at, report)
    for place, child in _dicts(value, at, report):
        report.count += 1
        if child.get("type") != DISPLAY:
            report.error("UNION_TYPE_CHOICES", "Only text displays go here", (*place, "type"))
        else:
            _display(child, place, report)
    accessory = value.get("accessory")
    kind = accessory.get("type") if isinstance(accessory, dict) else None
    report.count += 1
    if kind == BUTTON:
        _button(value["accessory"], (*at, "accessory"), report)
    elif kind == 11:
        THUMBNAIL(accessory, (*at, "accessory"), report)
    else:
        report.error("UNION_TYPE_CHOICES", "Not a button or thumbnail", (*at, "accessory", "type"))


def _container(value: Json, at: Path, report: Report) -> None:
    colour = nullable(integer(0, 0xFFFFFF))
    fields = BASE | {"accent_color": colour, "spoiler": flag}
    shape({"components": many(anything, limits.COMPONENTS_V2, 1)}, fields)(value, at, report)
    _layout(value, at, report, IN_CONTAINER)


V2: dict[int, Check] = {
    1: _row,
    9: _section,
    10: _display,
    12: GALLERY,
    13: _file,
    14: SEPARATOR,
    17: _container,
}


def _layout(value: Json, at: Path, report: Report, allowed: tuple[int, ...]) -> None:
    for place, child in _dicts(value, at, report):
        report.count += 1
        if child.get("type") in allowed:
            V2[child["type"]](child, place, report)
        else:
            report.error(
                "UNION_TYPE_CHOICES", f'Value of field "type" must be one of {allowed}.', (*place, "type")
            )


def check_components(components: Any, report: Report, *, v2: bool, at: Path = ()) -> None:
    """The components of a message. `at`: where the message is in the payload."""
    highest = limits.COMPONENTS_V2 if v2 else limits.ROWS
    many(anything, highest)(components, (*at, "components"), report)
    whole = {"components": components}
    _layout(whole, at, report, TOP_V2 if v2 else (1,))
    where = (*at, "components")
    if v2 and report.count > limits.COMPONENTS_V2:
        words = f"The maximum number of components is {limits.COMPONENTS_V2}, not {report.count}"
        report.error("COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", words, where)
    if report.display > limits.DISPLAY_V2:
        words = f"The text displays have {report.display} characters, {limits.DISPLAY_V2} are allowed"
        report.error("COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", words, where)


# ---- modals


def _input(value: Json, at: Path, report: Report, *, labelled: bool) -> None:
    if value.get("type") != 4:
        report.error("UNION_TYPE_CHOICES", "Only text inputs go into a row of a modal", (*at, "type"))
        return
    fields: dict[str, Check] = BASE | {
        "min_length": nullable(integer(0, limits.INPUT_TEXT)),
        "max_length": nullable(integer(1, limits.INPUT_TEXT)),
        "required": flag,
        "value": nullable(string(limits.INPUT_TEXT, 0)),
        "placeholder": nullable(string(limits.INPUT_PLACEHOLDER, 0)),
    }
    needed: dict[str, Check] = {"custom_id": custom_id, "style": integer(1, 2)}
    if labelled:
        fields["label"] = one_of(None)  # it has its label around it
    else:
        needed["label"] = string(limits.LABEL)
    shape(needed, fields)(value, at, report)
    longest = value.get("max_length")
    if isinstance(longest, int) and len(str(value.get("value") or "")) > longest:
        words = f"Must be {longest} or fewer in length."
        report.error("BASE_TYPE_MAX_LENGTH", words, (*at, "value"))


def _options(most: int, *, several: bool) -> Check:
    fields: dict[str, Check] = BASE | {"required": flag}
    if several:
        fields |= {"min_values": integer(0, most), "max_values": integer(1, most)}

    def check(value: Any, at: Path, report: Report) -> None:
        shape({"custom_id": custom_id, "options": many(OPTION, most, 1)}, fields)(value, at, report)
        _choices(value, at, report, most)

    return check


UPLOAD = shape(
    {"custom_id": custom_id},
    BASE | {"min_values": integer(0, 10), "max_values": integer(1, 10), "required": flag},
)


def _label(value: Json, at: Path, report: Report) -> None:
    description = nullable(string(limits.LABEL_DESCRIPTION))
    fields = BASE | {"description": description}
    shape({"label": string(limits.LABEL), "component": anything}, fields)(value, at, report)
    child = value.get("component")
    kind = child.get("type") if isinstance(child, dict) else None
    where = (*at, "component")
    if not isinstance(child, dict) or kind not in IN_LABEL:
        report.error("UNION_TYPE_CHOICES", f'Value of field "type" must be one of {IN_LABEL}.', where)
    elif kind == 4:
        _input(child, where, report, labelled=True)
    elif kind in SELECTS:
        _select(child, where, report, modal=True)
    elif kind == 19:
        UPLOAD(child, where, report)
    elif kind == 23:
        shape({"custom_id": custom_id}, BASE | {"default": flag})(child, where, report)
    else:
        most = limits.RADIO_OPTIONS if kind == 21 else limits.CHECKBOX_OPTIONS
        _options(most, several=kind == 22)(child, where, report)


def check_modal(data: Any, report: Report, at: Path = ("data",)) -> None:
    """A modal as the first response to an interaction."""
    rows = many(anything, limits.MODAL_COMPONENTS, 1)
    needed: dict[str, Check] = {
        "title": string(limits.MODAL_TITLE),
        "custom_id": string(limits.CUSTOM_ID),
        "components": rows,
    }
    shape(needed)(data, at, report)
    for place, child in _dicts(data if isinstance(data, dict) else {}, at, report):
        inputs = child.get("components")
        if child.get("type") == LABEL:
            _label(child, place, report)
        elif child.get("type") == DISPLAY:
            _display(child, place, report)
        elif child.get("type") == 1 and isinstance(inputs, list) and len(inputs) == 1:
            shape({"components": anything}, BASE)(child, place, report)
            _input(inputs[0], (*place, "components", 0), report, labelled=False)
        else:
            report.error("UNION_TYPE_CHOICES", "Not a label, text or row of one input", (*place, "type"))
