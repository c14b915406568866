"""Cards, questions, modals and the home as Slack is sent them; outbound/*.json holds what they become.

`python tests/golden/slack/examples.py` writes the files anew. Read the difference before it is
committed: it is what people will see. Block Kit Builder draws the files as they are.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "outbound"
sys.path.insert(0, str(HERE.parents[3]))

from channels.base import (  # noqa: E402 - the path comes first
    Actor,
    Button,
    Card,
    CardField,
    Choice,
    Form,
    FormField,
    OutboundMessage,
)
from channels.slack import cards, home, manifest, modals, render  # noqa: E402

EDIT = Form(
    data="v1:p_refund:e",
    title="Edit issue_refund",
    fields=(
        FormField(name="order_id", label="order_id", value="A-1001", required=True),
        FormField(name="amount", label="amount", kind="number", value="20.5", hint="in euros"),
        FormField(name="urgent", label="urgent", kind="boolean", value="true"),
        FormField(
            name="reason", label="reason", kind="select", value="damaged", options=("damaged", "late", "lost")
        ),
        FormField(name="letter", label="letter", kind="long_text", value="Dear customer,\nwe are sorry."),
        FormField(name="tags", label="tags", kind="json", value='["vip"]'),
        FormField(name="log", label="log", kind="long_text", value="x" * 4000),
    ),
)
WHY = Form(
    data="v1:p_refund:f",
    title="Deny issue_refund",
    fields=(
        FormField(name="feedback", label="What should be done instead?", kind="long_text", required=True),
    ),
)
APPROVAL = Card(
    card_id="p_refund",
    kind="approval",
    state="open",
    title="Approve issue_refund?",
    summary="Refunds above 20 need a person.",
    fields=(
        CardField(name="order_id", value="A-1001"),
        CardField(name="amount", value="20.5"),
        CardField(name="note", value="ls` <https://evil.example|ok> <!channel> \u202etxt.exe"),
    ),
    args_hash="0" * 64,
    deciders="slack:T1:U2",
    expires="2026-12-03 12:00 UTC",
    code="k7m2x",
    buttons=(
        Button(label="Approve", data="v1:p_refund:a", tone="primary"),
        Button(label="Approve for this session", data="v1:p_refund:s"),
        Button(label="Edit", data="v1:p_refund:e"),
        Button(label="Deny", data="v1:p_refund:d", tone="danger"),
        Button(label="Deny with feedback", data="v1:p_refund:f", tone="danger"),
    ),
    forms=(EDIT, WHY),
)
LONG = replace(APPROVAL, fields=(CardField(name="script", value="\n".join(["echo step"] * 2000)),))
SETTLED = replace(
    APPROVAL, state="decided", status="Approved by slack:T1:U2, 2026-11-30 21:40 UTC", buttons=(), forms=()
)
DIFF = replace(
    APPROVAL,
    preview="-  amount: 20\n+  amount: 20.5\n",
    preview_kind="diff",
    asks=(Actor("slack", "T1", "U2"),),
    ask_roles=("S1",),
)
SHARED = Card(
    card_id="p_refund",
    kind="approval",
    state="open",
    title="Approve 3 calls?",
    deciders="slack:T1:U2",
    status="1 of 3 decided",
    buttons=(
        Button(label="Approve all (2)", data="v1:p_refund:Y", tone="primary"),
        Button(label="Deny all (2)", data="v1:p_refund:N", tone="danger"),
    ),
    calls=(APPROVAL, replace(SETTLED, status="Denied by slack:T1:U2, 2026-11-30 21:40 UTC"), DIFF),
)
SHARED_LONG = replace(SHARED, calls=(LONG, SETTLED, *([APPROVAL] * 20)))
OTHER = Form(
    data="v1:p_env:t",
    title="Your answer",
    fields=(FormField(name="answer", label="Which environment?", kind="long_text", required=True),),
)


def a_question(*labels: str, **changes: Any) -> Card:
    card = Card(
        card_id="p_env",
        kind="question",
        state="open",
        title="Question",
        summary="Which environment?",
        choices=tuple(Choice(label=label, data=f"v1:p_env:{n}") for n, label in enumerate(labels)),
        deciders="slack:T1:U1 (who asked)",
        expires="2026-12-03 12:00 UTC",
        code="q8r4z",
        buttons=(Button(label="Other…", data="v1:p_env:t"),),
        forms=(OTHER,),
    )
    return replace(card, **changes)


SEVERAL = a_question(
    "staging",
    "production",
    multi=True,
    buttons=(
        Button(label="Confirm", data="v1:p_env:c", tone="primary"),
        Button(label="Other…", data="v1:p_env:t"),
    ),
)
CHECKED = replace(SEVERAL, choices=(replace(SEVERAL.choices[0], chosen=True), SEVERAL.choices[1]))


def drawn(card: Card, *, readable: bool = True) -> dict[str, Any]:
    return cards.card(card, file=cards.args_file(card), readable=readable)


def examples() -> dict[str, Any]:
    """Name -> payload."""
    author = Actor("slack", "T1", "U1")
    words = OutboundMessage(text="**Done.** See `x < y`.", mentions=(author,), repeat=True)
    return {
        "approval": drawn(APPROVAL),
        "approval_long": drawn(LONG),
        "approval_unreadable": drawn(LONG, readable=False),
        "approval_settled": drawn(SETTLED),
        "approval_diff": cards.card(DIFF, mention=True),
        "approvals": drawn(SHARED),
        "approvals_long": drawn(SHARED_LONG),
        "approvals_unreadable": drawn(SHARED_LONG, readable=False),
        "approvals_home": home.view([SHARED]),
        "question_buttons": drawn(a_question("staging", "production")),
        "question_menu": drawn(a_question(*(f"The environment of team number {n:02}" for n in range(8)))),
        "question_numbered": drawn(a_question(*(f"{'The same beginning ' * 5}then {n}" for n in range(3)))),
        "question_several": drawn(CHECKED),
        "modal_edit": modals.form(EDIT, "metadata"),
        "modal_feedback": modals.form(WHY, "metadata"),
        "modal_ask": modals.ask_about("metadata", "The build of *main* is broken. <!here>"),
        "home": home.view([APPROVAL, LONG, CHECKED], "Denied."),
        "home_empty": home.view([]),
        "answer": render.message(words),
        "notice": render.message(OutboundMessage(text="Noted. Yours is next in line.", kind="notice")),
        "error": render.message(OutboundMessage(text="No model could be reached.", kind="error")),
        "manifest_socket": manifest.manifest("socket"),
        "manifest_http": manifest.manifest("http", url="https://bot.example.com"),
    }


def main() -> None:
    """One file for each example."""
    HERE.mkdir(exist_ok=True)
    for name, payload in examples().items():
        text = json.dumps(payload, indent=1, ensure_ascii=False) + "\n"
        (HERE / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
