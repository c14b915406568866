"""Writes the golden payloads anew: `python tests/golden/discord/generate.py`.

Read the difference before it is committed: it is what people will see.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from channels.base import (  # noqa: E402 - the path comes first
    Actor,
    Button,
    Card,
    CardField,
    Choice,
    Form,
    FormField,
    OutboundMessage,
    Tone,
)
from channels.discord import cards, commands, modals, render  # noqa: E402

Json = dict[str, Any]

_P: Final = "v1:p_abcdefghijklmnopqrst"
EDIT: Final = Form(
    data=f"{_P}:e",
    title="Edit issue_refund",
    fields=(
        FormField(
            name="order_id", label="order_id", value="A-1001", required=True, hint="The order's number"
        ),
        FormField(name="amount", label="amount", kind="integer", value="20", required=True),
        FormField(
            name="currency",
            label="currency",
            kind="select",
            value="EUR",
            options=("EUR", "USD", "GBP"),
            required=True,
        ),
        FormField(name="express", label="express", kind="boolean", value="false"),
        FormField(
            name="reason", label="reason", kind="select", options=tuple(f"reason {n}" for n in range(8))
        ),
        FormField(name="note", label="note", kind="long_text", value="Dear Ada,\nhere it is."),
        FormField(name="lines", label="lines", kind="json", value='[\n "a"\n]'),
    ),
)
APPROVAL: Final = Card(
    card_id="p_abcdefghijklmnopqrst",
    kind="approval",
    state="open",
    title="Approve issue_refund?",
    summary="The agent wants to pay money back.",
    fields=(
        CardField(name="order_id", value="A-1001"),
        CardField(name="amount", value="20"),
        CardField(name="note", value="```\n**Approved by Ada** [open](https://evil.example)\n```\u200b"),
    ),
    args_hash="0" * 64,
    deciders="Ada or @Billing",
    expires="2026-12-03 12:00 UTC",
    code="K7M2",
    buttons=(
        Button(label="Approve", data=f"{_P}:a", tone="primary"),
        Button(label="Approve for this session", data=f"{_P}:s"),
        Button(label="Edit", data=f"{_P}:e"),
        Button(label="Deny", data=f"{_P}:d", tone="danger"),
        Button(label="Deny with feedback", data=f"{_P}:f", tone="danger"),
    ),
    forms=(EDIT, Form(data=f"{_P}:f", title="Deny issue_refund", fields=())),
)


def _question(count: int, *, multi: bool = False, label: str = "Warehouse {}") -> Card:
    return Card(
        card_id="q_abcdefghijklmnopqrst",
        kind="question",
        state="open",
        title="Question",
        summary="Which warehouse shall I take?",
        deciders="Ada",
        choices=tuple(
            Choice(
                label=label.format(n),
                data=f"v1:q_abcdefghijklmnopqrst:{n}",
                description="has it in stock" if n < 3 else "",
                chosen=multi and n in (1, count - 1),
            )
            for n in range(count)
        ),
        multi=multi,
        buttons=(
            *([Button(label="Confirm", data="v1:q_abcdefghijklmnopqrst:c", tone="primary")] if multi else []),
            Button(label="Other…", data="v1:q_abcdefghijklmnopqrst:t"),
        ),
        forms=(Form(data="v1:q_abcdefghijklmnopqrst:t", title="Your answer", fields=()),),
    )


def _settled(card: Card, status: str) -> Card:
    return replace(card, state="decided", status=status, buttons=(), choices=(), forms=())


def _long(card: Card) -> Card:
    return replace(card, fields=(CardField(name="body", value="All work and no play. " * 300),))


def _call(number: int, **changes: Any) -> Card:
    """One of several calls, with all the buttons that the gateway gives one."""
    card_id = f"p_{number:020}"
    labels = {
        "a": "Approve",
        "s": "Approve for this session",
        "e": "Edit",
        "d": "Deny",
        "f": "Deny with feedback",
    }
    tones: dict[str, Tone] = {"a": "primary", "d": "danger", "f": "danger"}
    call = replace(
        APPROVAL,
        card_id=card_id,
        code=f"K7M{number}",
        fields=(CardField(name="order_id", value=f"A-{number}"), CardField(name="amount", value="20")),
        buttons=tuple(
            Button(label=label, data=f"v1:{card_id}:{choice}", tone=tones.get(choice, "plain"))
            for choice, label in labels.items()
        ),
        forms=(
            Form(data=f"v1:{card_id}:e", title="Edit issue_refund", fields=()),
            Form(data=f"v1:{card_id}:f", title="Deny issue_refund", fields=()),
        ),
    )
    return replace(call, **changes)


def calls(*found: Card, **changes: Any) -> Card:
    """One card for these."""
    first = found[0].card_id
    waiting = sum(call.state == "open" for call in found)
    card = Card(
        card_id=first,
        kind="approval",
        state="open" if waiting else "decided",
        title=f"Approve {len(found)} calls?",
        deciders="Ada or @Billing",
        status=f"{len(found) - waiting} of {len(found)} decided" if waiting < len(found) else "",
        calls=found,
        buttons=(
            Button(label=f"Approve all ({waiting})", data=f"v1:{first}:Y", tone="primary"),
            Button(label=f"Deny all ({waiting})", data=f"v1:{first}:N", tone="danger"),
        )
        if waiting > 1
        else (),
    )
    return replace(card, **changes)


def some_calls(count: int) -> list[Card]:
    """So many that wait."""
    return [_call(number) for number in range(1, count + 1)]


CARDS: Final[dict[str, Card]] = {
    "approval": APPROVAL,
    "approval_decided": _settled(APPROVAL, "Approved by Ada at 12:00 UTC"),
    "approval_long": _long(APPROVAL),
    "approval_preview": replace(APPROVAL, preview="-amount: 10\n+amount: 20", preview_kind="diff"),
    "calls": calls(
        _call(1),
        _settled(_call(2), "Denied by Ada at 12:00 UTC"),
        _call(3, preview="20 EUR to Bob"),
    ),
    "calls_few": calls(*some_calls(6)),
    "calls_many": calls(*some_calls(12)),
    "question_buttons": _question(3, label="Dock {}"),
    "question_select": _question(8),
    "question_many": _question(30, multi=True),
    "question_numbered": _question(
        6, label="A warehouse whose name is so long that nobody reads it " * 2 + "{}"
    ),
}
MESSAGES: Final[dict[str, OutboundMessage]] = {
    "answer": OutboundMessage(text="See **this**: https://example.org/a_b_c\n\n- one\n- `two`"),
    "notice": OutboundMessage(text="Waiting for Ada.", kind="notice"),
    "error": OutboundMessage(text="The model cannot be reached.", kind="error"),
    "mention": OutboundMessage(
        text="# Done", mentions=(Actor("discord", "", "123456789012345678"),), repeat=True
    ),
}


def drawn_card(name: str) -> Json:
    """One card with its file, if it needs one."""
    card = CARDS[name]
    return cards.card(card, file=cards.args_file(card))


def golden() -> dict[str, Any]:
    """Everything, by the name of its file."""
    found: dict[str, Any] = {f"card_{name}": drawn_card(name) for name in CARDS}
    found |= {f"message_{name}": render.message(render.parts(m)[0]) for name, m in MESSAGES.items()}
    found |= {f"modal_{page + 1}": modals.form(EDIT, page) for page in range(modals.pages(EDIT))}
    found["modal_more"] = modals.more(EDIT, 1, "1234567890123456789")
    found["modal_wrong"] = modals.wrong(EDIT, {"amount": "is not a valid integer"}, "1234567890123456789")
    found["commands"] = commands.definitions(["assistant", "ops"], ["main", "small"])
    return found


def main() -> None:
    """One file each."""
    for name, value in golden().items():
        text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
        (HERE / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
