"""Forms for a platform that has none: a prompt that people reply to. Pure.

Everything that a reply needs in order to become a press is written into the prompt's last line and
sealed, so that a reply still counts after a restart, and so that no model text that imitates such a line can.
A button that opens a form says so in its data: `v1:<id>:<choice>?<field names>`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from channels.base import Form, FormField

ANY: Final = ("*",)  # the names did not fit into the button
_MARK: Final = "?"
_ROOM: Final = 300  # letters of names in the last line of a prompt
_LINE: Final = re.compile(r"[ \t]*([\w.\-\[\]]+)[ \t]*[:=][ \t]?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a reply answers: the press it becomes, the card it belongs to and the fields it fills."""

    data: str
    card: int  # message id of the card
    names: tuple[str, ...]


class Seal:
    """Writes and reads the last line of a prompt. The key comes from the token: only we can write it."""

    def __init__(self, token: str) -> None:
        self._key = hashlib.sha256(b"threadgate form prompt\0" + token.encode()).digest()

    def write(self, prompt: Prompt, chat: int) -> str:
        """The line: `ref <card>|<data>|<names>|<seal>`."""
        names = ",".join(quote(name, safe="*") for name in prompt.names)
        body = f"{prompt.card}|{quote(prompt.data, safe=':')}|{names}"
        return f"ref {body}|{self._sign(body, chat)}"

    def read(self, text: str, chat: int) -> Prompt | None:
        """The prompt of a message of ours; None when its last line is not a line of ours."""
        line = text.rstrip().rsplit("\n", 1)[-1]
        fields = line.removeprefix("ref ").split("|")
        if not line.startswith("ref ") or len(fields) != 4:
            return None
        card, data, names, seal = fields
        if not hmac.compare_digest(seal.encode(), self._sign(f"{card}|{data}|{names}", chat).encode()):
            return None
        return Prompt(
            data=unquote(data), card=int(card), names=tuple(unquote(name) for name in names.split(","))
        )

    def _sign(self, body: str, chat: int) -> str:
        digest = hmac.digest(self._key, f"{chat}|{body}".encode(), "sha256")
        return base64.urlsafe_b64encode(digest[:12]).decode()


def short(names: Sequence[str]) -> tuple[str, ...]:
    """The names as a prompt's last line carries them: a star for more than it has room for."""
    return tuple(names) if sum(len(quote(name)) + 1 for name in names) <= _ROOM else ANY


def opening(form: Form, limit: int) -> str:
    """The data of a button that opens this form, at most `limit` bytes: with the fields' names, with
    a star for them, or bare when not even that fits."""
    names = ",".join(quote(field.name, safe="") for field in form.fields)
    for data in (f"{form.data}{_MARK}{names}", f"{form.data}{_MARK}{ANY[0]}"):
        if len(data.encode()) <= limit:
            return data
    return form.data


def opened(data: str) -> tuple[str, tuple[str, ...]]:
    """(the press's data, the names of its form's fields; none for a plain button)."""
    base, mark, names = data.partition(_MARK)
    return base, tuple(unquote(name) for name in names.split(",")) if mark and names else ()


def typed(form: Form, values: Mapping[str, str | tuple[str, ...]]) -> dict[str, str | tuple[str, ...]]:
    """Typed words in the form that the fields' kinds have: of several options a tuple, of one option its
    own spelling, true or false. What fits nothing stays as it was typed."""
    kinds = {field.name: field for field in form.fields}
    return {
        name: _as_kind(kinds[name], value) if name in kinds and isinstance(value, str) else value
        for name, value in values.items()
    }


_TRUTH: Final = {"true": "true", "yes": "true", "1": "true", "false": "false", "no": "false", "0": "false"}


def _as_kind(field: FormField, value: str) -> str | tuple[str, ...]:
    spelled = {option.casefold(): option for option in field.options}
    match field.kind:
        case "multi" if value.strip().casefold() in spelled:  # an option may hold a comma
            return (spelled[value.strip().casefold()],)
        case "multi":
            words = [word.strip() for word in re.split(r"[,;\n]", value)]
            return tuple(dict.fromkeys(spelled.get(word.casefold(), word) for word in words if word))
        case "select":
            return spelled.get(value.strip().casefold(), value)
        case "boolean":
            return _TRUTH.get(value.strip().casefold(), value)
        case "date" | "integer" | "number":
            return value.strip()
        case _:
            return value


def filled(names: Sequence[str], reply: str) -> dict[str, str]:
    """What a reply says about each field: the whole text for one field, `name: value` lines for
    several. A value goes on until the next known name. A field that is not named is left out."""
    if len(names) == 1 and names[0] not in ANY:
        return {names[0]: reply}
    values: dict[str, str] = {}
    current = ""
    for line in reply.split("\n"):
        match = _LINE.fullmatch(line)
        if match and (match[1] in names or tuple(names) == ANY):
            current = match[1]
            values[current] = match[2]
        elif current:
            values[current] += f"\n{line}"
    return {name: value.strip() for name, value in values.items()}
