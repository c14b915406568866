"""The options of a question: which control offers them, and how they are told apart. Pure.

Labels that are too long for a control, or equal to one another in it, are numbered; their full texts
are then listed in the message, or in a file, and the control is only about numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from channels.base import Card, Choice
from channels.render.inert import flat
from channels.render.measure import cut, utf16_len
from channels.slack.blocks import Json, choice_button, plain, section
from channels.slack.limits import CHECKBOXES, OPTION_GROUPS, OPTION_TEXT, OPTION_VALUE, OPTIONS
from channels.slack.refs import PRESS

Style = Literal["labels", "numbered", "numbers", "none"]
"""What a control says of each option: its label; its number and the label's beginning; its number
alone; or there is no control, and people write the number."""

PICK: Final = "pick:"  # how the action_id of a control begins that only a Confirm button reports

_BUTTONS: Final = 5  # more options than this are a menu
_SHORT: Final = 40  # units of a label that a button shows in full


def styles(card: Card) -> tuple[Style, ...]:
    """The ways to offer these options, the best first."""
    if not card.choices:
        return ("labels",)
    if len(card.choices) > OPTIONS * OPTION_GROUPS or any(
        len(choice.data) > OPTION_VALUE for choice in card.choices
    ):
        return ("none",)
    more: tuple[Style, ...] = ("numbered", "numbers", "none")
    return ("labels", *more) if _are_labels(card.choices) else more


def _are_labels(choices: Sequence[Choice]) -> bool:
    """Whether every label can stand in a control as it is, and no two look the same there."""
    shown = [flat(choice.label) for choice in choices]
    return len(set(shown)) == len(shown) and all(0 < utf16_len(label) <= OPTION_TEXT for label in shown)


def listing(card: Card, style: Style) -> str:
    """The options in words, a line each, where the control does not say it all; else ""."""
    if not card.choices or (style == "labels" and not _hides_descriptions(card)):
        return ""
    return full_list(card)


def full_list(card: Card) -> str:
    """All options in full, numbered."""
    return "\n".join(
        f"{number}. {flat(choice.label) or '(empty)'}"
        + (f" – {flat(choice.description)}" if flat(choice.description) else "")
        for number, choice in enumerate(card.choices, 1)
    )


def _hides_descriptions(card: Card) -> bool:
    described = [flat(choice.description) for choice in card.choices if flat(choice.description)]
    return bool(described) and (
        _as_buttons(card, "labels") or any(utf16_len(words) > OPTION_TEXT for words in described)
    )


def hint(card: Card, style: Style) -> str:
    """How to answer where there is no control."""
    if style != "none":
        return ""
    return "To choose, write the option's number in this thread" + (
        " (several: 1, 4)." if card.multi else "."
    )


def controls(card: Card, style: Style, start: int) -> tuple[list[Json], list[Json]]:
    """(blocks, elements of the actions block that follows them). start: the first control's number."""
    if not card.choices or style == "none":
        return [], []
    if _as_buttons(card, style):
        return [], [
            choice_button(number, choice, _label(number - start + 1, choice, style))
            for number, choice in enumerate(card.choices, start)
        ]
    if not card.multi:
        return [], [_menu(card, style, start)]
    if len(card.choices) <= CHECKBOXES:
        return [{"type": "actions", "elements": [_checkboxes(card, style, start)]}], []
    return [section("Choose all that apply, then confirm:", _menu(card, style, start))], []


def _as_buttons(card: Card, style: Style) -> bool:
    return (
        style == "labels"
        and not card.multi
        and len(card.choices) <= _BUTTONS
        and all(utf16_len(flat(choice.label)) <= _SHORT for choice in card.choices)
    )


def _checkboxes(card: Card, style: Style, start: int) -> Json:
    options = _options(card.choices, style)
    element: Json = {"type": "checkboxes", "action_id": f"{PICK}{start}", "options": options}
    return element | _initial(card, options)


def _menu(card: Card, style: Style, start: int) -> Json:
    """A select; with more options than one may have, in groups of a hundred."""
    options = _options(card.choices, style)
    name = f"{PICK}{start}" if card.multi else f"{PRESS}{start}:select"
    element: Json = {
        "type": "multi_static_select" if card.multi else "static_select",
        "action_id": name,
        "placeholder": plain("Choose…", OPTION_TEXT),
    }
    if len(options) <= OPTIONS:
        element["options"] = options
    else:
        element["option_groups"] = [
            {
                "label": plain(f"{at + 1} to {min(at + OPTIONS, len(options))}", OPTION_TEXT),
                "options": options[at : at + OPTIONS],
            }
            for at in range(0, len(options), OPTIONS)
        ]
    return element | (_initial(card, options) if card.multi else {})


def _initial(card: Card, options: Sequence[Json]) -> Json:
    chosen = [option for choice, option in zip(card.choices, options, strict=True) if choice.chosen]
    return {"initial_options": chosen} if chosen else {}


def _options(choices: Sequence[Choice], style: Style) -> list[Json]:
    return [_option(number, choice, style) for number, choice in enumerate(choices, 1)]


def _option(number: int, choice: Choice, style: Style) -> Json:
    if style == "numbers":  # there are many of these: no character more than is needed
        return {"text": {"type": "plain_text", "text": str(number)}, "value": choice.data}
    option: Json = {"text": plain(_label(number, choice, style), OPTION_TEXT), "value": choice.data}
    told = flat(choice.description)
    if style == "labels" and told and utf16_len(told) <= OPTION_TEXT:
        option["description"] = plain(told, OPTION_TEXT)
    return option


def _label(number: int, choice: Choice, style: Style) -> str:
    label = flat(choice.label)
    return label if style == "labels" else cut(f"{number}. {label}", OPTION_TEXT)
