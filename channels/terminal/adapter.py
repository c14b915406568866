"""The terminal: prints answers and cards, reads what a person types. One person, one thread."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from channels.base import Button, Card, Form
from channels.render.inert import visible
from channels.render.plain import plain_text

_ACCEPTED = {
    "date": "a date like 2027-01-31",
    "boolean": "true or false",
    "multi": "one or several, with commas between",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """What a person chose on a card: a button's data, and a form's values."""

    data: str
    values: Mapping[str, str | tuple[str, ...]]


class Terminal:
    """`ask(prompt)` reads one line and raises EOFError at the end; the default is the keyboard."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()

    def answer(self, markdown: str) -> None:
        """An answer, as readable text."""
        self._console.print(Text(plain_text(markdown)))

    def notice(self, text: str) -> None:
        """Something beside the conversation."""
        self._console.print(Text(visible(text), style="dim"))

    def piece(self, text: str) -> None:
        """A piece of a growing answer."""
        self._console.out(text, end="")

    async def ask(self, prompt: str) -> str:
        """One line from the person. Raises EOFError."""
        return await asyncio.to_thread(self._console.input, Text(prompt, style="bold"))

    async def decide(self, card: Card) -> Pressed | None:
        """Show a card and read a choice; None when the person leaves it open."""
        self._console.print(self._drawn(card))
        controls = _controls(card)
        while True:
            listed = "  ".join(f"[{number}] {label}" for number, (label, _) in enumerate(controls, start=1))
            self._console.print(Text(f"{listed}  [Enter] decide later"))
            try:
                typed = (await self.ask("> ")).strip()
            except EOFError:
                return None
            if not typed:
                return None
            if typed.isdecimal() and 1 <= int(typed) <= len(controls):
                data = controls[int(typed) - 1][1]
                form = next((form for form in card.forms if form.data == data), None)
                values = await self._fill(form) if form is not None else {}
                return Pressed(data=data, values=values)
            self.notice(f"{typed!r} is none of the choices.")

    async def _fill(self, form: Form) -> dict[str, str | tuple[str, ...]]:
        """Every field of a form, one line each; empty keeps what is there."""
        values: dict[str, str | tuple[str, ...]] = {}
        for field in form.fields:
            options = ", ".join(map(visible, field.options))
            hint = visible(field.hint) or _ACCEPTED.get(field.kind, "")
            told = "; ".join(filter(None, (hint, options)))
            about = f" ({told})" if told else ""
            shown = f" [{visible(field.value)}]" if field.value else ""
            typed = await self.ask(f"{visible(field.label)}{about}{shown}: ")
            if typed:
                values[field.name] = _chosen(typed, field.options) if field.kind == "multi" else typed
        return values

    def _drawn(self, card: Card, number: int = 0) -> Panel:
        """One request; several in one frame, each with its number."""
        table = Table.grid(padding=(0, 2))
        for entry in card.fields:
            table.add_row(Text(visible(entry.name), style="bold"), Text(visible(entry.value)))
        body = Table.grid()
        if card.summary:
            body.add_row(Text(visible(card.summary)))
        if card.preview:
            body.add_row(_preview(card))
        body.add_row(table)
        for place, call in enumerate(card.calls, 1):
            body.add_row(self._drawn(call, place))
        about = [f"code {card.code}"] if card.code else []
        about += [f"expires {card.expires}"] if card.expires else []
        body.add_row(Text(", ".join(about), style="dim"))
        title = f"{number}. {card.title}" if number else card.title
        return Panel(body, title=Text(visible(title)), title_align="left")


def _preview(card: Card) -> Text:
    """What the tool's author shows, the lines of a diff in their colours."""
    colours = {"+": "green", "-": "red", "@": "cyan"} if card.preview_kind == "diff" else {}
    text = Text()
    for line in visible(card.preview).split("\n"):
        text.append(f"{line}\n", style=colours.get(line[:1], ""))
    return text


def _chosen(typed: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Which options a line names, in their own spelling."""
    spelled = {option.casefold(): option for option in options}
    if typed.strip().casefold() in spelled:  # an option may hold a comma
        return (spelled[typed.strip().casefold()],)
    words = [word.strip() for word in typed.split(",")]
    return tuple(dict.fromkeys(spelled.get(word.casefold(), word) for word in words if word))


def _controls(card: Card) -> list[tuple[str, str]]:
    buttons: list[Button] = list(card.buttons)
    choices = [(visible(choice.label), choice.data) for choice in card.choices]
    return choices + [(button.label, button.data) for button in buttons]


def interactive() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()
