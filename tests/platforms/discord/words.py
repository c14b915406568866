"""What people can read and press in a message. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.platforms.discord.limits import Json


def walk(components: list[Json]) -> Iterator[Json]:
    """All components, outer ones first."""
    for component in components:
        yield component
        yield from walk(component.get("components") or [])
        for inner in ("accessory", "component"):
            if component.get(inner):
                yield from walk([component[inner]])


def shown(message: Json) -> str:
    """All words: content, embeds and text displays. No labels of controls; a select's options neither."""
    pieces = [message.get("content") or ""]
    for embed in message.get("embeds") or []:
        pieces += [embed.get("title"), embed.get("description")]
        pieces += [f"{entry['name']}\n{entry['value']}" for entry in embed.get("fields") or []]
        pieces.append((embed.get("footer") or {}).get("text"))
    pieces += [c["content"] for c in walk(message.get("components") or []) if c["type"] == 10]
    return "\n".join(piece for piece in pieces if piece)


def controls(message: Json) -> list[Json]:
    """Buttons that can be pressed and selects that can be opened."""
    found = walk(message.get("components") or [])
    return [c for c in found if c["type"] in (2, 3, 5, 6, 7, 8) and not c.get("disabled")]


def labels(message: Json) -> list[str]:
    """The labels of live buttons, and of the options of live selects."""
    found: list[str] = []
    for control in controls(message):
        if control["type"] == 2:
            found.append(control.get("label") or (control.get("emoji") or {}).get("name") or "")
        else:
            found += [option["label"] for option in control.get("options") or []]
    return found


def button(message: Json, label: str) -> Json:
    """The live button with this label or custom id. AssertionError when there is none."""
    for control in controls(message):
        if control["type"] == 2 and label in (control.get("label"), control.get("custom_id")):
            return control
    raise AssertionError(f"no button {label!r} on this message, only {labels(message)}")


def select(message: Json, picks: list[str], custom_id: str = "") -> tuple[Json, list[str]]:
    """The live select that has these options (by label or value), and their values. AssertionError."""
    for control in controls(message):
        if control["type"] == 2 or (custom_id and control["custom_id"] != custom_id):
            continue
        options = control.get("options") or []
        values = [o["value"] for pick in picks for o in options if pick in (o["label"], o["value"])]
        if control["type"] != 3:
            values = list(picks)
        if len(values) == len(picks) and (picks or custom_id):
            lowest, highest = control.get("min_values", 1), control.get("max_values", 1)
            assert lowest <= len(values) <= highest, f"{lowest} to {highest} can be chosen, not {len(values)}"
            return control, values
    raise AssertionError(f"no select with {picks!r} on this message, only {labels(message)}")


def visible_files(message: Json) -> list[str]:
    """The ids of the attachments that people see; beside components only those that a component shows."""
    attachments: list[Json] = message.get("attachments") or []
    if not message.get("flags", 0) & (1 << 15):
        return [entry["id"] for entry in attachments]
    urls = set()
    for component in walk(message.get("components") or []):
        media: list[Any] = [component.get("file"), component.get("media")]
        media += [item.get("media") for item in component.get("items") or []]
        urls |= {entry["url"] for entry in media if entry}
    names = {entry["url"]: entry["id"] for entry in attachments}
    names |= {f"attachment://{entry['filename']}": entry["id"] for entry in attachments}
    return list(dict.fromkeys(names[url] for url in urls if url in names))


def modal_inputs(modal: Json) -> list[tuple[str, Json]]:
    """The inputs of a modal with their labels."""
    found = []
    for row in modal["components"]:
        if row["type"] == 18:
            found.append((row["label"], row["component"]))
        elif row["type"] == 1:
            found += [(child["label"], child) for child in row["components"]]
    return found
