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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """What a person chose on a card: a button's data, and a form's values."""

    data: str
    values: Mapping[str, str]


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

    async def _fill(self, form: Form) -> dict[str, str]:
        """Every field of a form, one line each; empty keeps what is there."""
        values = {}
        for field in form.fields:
            told = "; ".join(filter(None, (visible(field.hint), ", ".join(map(visible, field.options)))))
            about = f" ({told})" if told else ""
            shown = f" [{visible(field.value)}]" if field.value else ""
            typed = await self.ask(f"{visible(field.label)}{about}{shown}: ")
            if typed:
                values[field.name] = typed
        return values

    def _drawn(self, card: Card) -> Panel:
        table = Table.grid(padding=(0, 2))
        for entry in card.fields:
            table.add_row(Text(visible(entry.name), style="bold"), Text(visible(entry.value)))
        body = Table.grid()
        if card.summary:
            body.add_row(Text(visible(card.summary)))
        body.add_row(table)
        about = [f"code {card.code}"] if card.code else []
        about += [f"expires {card.expires}"] if card.expires else []
        body.add_row(Text(", ".join(about), style="dim"))
        return Panel(body, title=Text(visible(card.title)), title_align="left")


def _controls(card: Card) -> list[tuple[str, str]]:
    buttons: list[Button] = list(card.buttons)
    choices = [(visible(choice.label), choice.data) for choice in card.choices]
    return choices + [(button.label, button.data) for button in buttons]


def interactive() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()
