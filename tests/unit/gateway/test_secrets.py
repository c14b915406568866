"""What a tool declares secret is on no display path, whatever people do with the request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.gate import Gate, Rule
from gateway.messages import Json, canonical_json
from gateway.patience import Escalation
from gateway.tools.base import Preview, Tool
from tests.unit.gateway.scene import ELSEWHERE, House, Office, call, calls, running
from tests.unit.gateway.talk import button

KEY, PIN, IBAN = "sk-live-0123456789", "4711-0815", "DE02120300000000202051"
SECRETS = (KEY, PIN, IBAN)
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "order": {"type": "string"},
        "key": {"type": "string", "pattern": "^sk-"},
        "account": {
            "type": "object",
            "properties": {"pin": {"type": "string", "minLength": 4}, "name": {"type": "string"}},
            "additionalProperties": False,
        },
        "iban": {"type": "string"},
    },
    "required": ["order", "key"],
    "additionalProperties": False,
}
ARGS: Json = {"order": "A-1", "key": KEY, "account": {"pin": PIN, "name": "Ada"}, "iban": IBAN}


async def _transfer(args: Json, context: Any) -> str:
    return "transferred"


def _preview(args: Json) -> Preview:
    return Preview(text=f"curl -H 'Key: {args['key']}' {canonical_json(args)}", kind="text")


TRANSFER = Tool(
    name="transfer",
    description="Transfer.",
    input_schema=SCHEMA,
    handler=_transfer,
    secret=frozenset({"key"}),
    preview=_preview,
)
RULE = Rule(
    tool="transfer",
    decision="ask",
    redact=("iban", "account.pin"),
    approvers=("requester", "talk:bob"),
    notify=("talk:desk",),
    remind=(60.0,),
    escalate=Escalation(after=120.0, notify=("talk:third",), approvers=("talk:eve",)),
    expires=3_600.0,
)


def shown(office: Office) -> str:
    """Everything that anybody has seen of it: cards, messages, private answers, lists."""
    world = office.world
    return repr([world.cards, world.messages, world.answers])


async def clean(office: Office) -> None:
    """No secret is among what people see, nor in the record."""
    seen = shown(office) + repr(await office.store.audit_lines(10_000))
    for secret in SECRETS:
        assert secret not in seen, seen[max(0, seen.index(secret) - 200) :][:400]


async def test_no_secret_is_shown_whatever_is_done_with_a_request(house: House) -> None:
    agent = replace(house.agent(), tools=(TRANSFER,), gate=Gate(rules=(RULE,)))
    for text in ("one", "two", "three"):
        house.plan[text] = [calls(call("transfer", **ARGS), text=""), "done"]
    async with running(house, agent) as office:
        await office.say("one")
        code = (await office.pendings())[0].pending.code
        for command in ("/pending", f"/pending show {code}", f"/pending give {code} requester", "/grants"):
            await office.say(command)
        house.clock.advance(61)
        await office.settle()
        house.clock.advance(61)
        await office.settle()
        await clean(office)
        ref, card = next(
            (ref, card)
            for ref, card in house.world.cards.items()
            if card.state == "open" and house.world.places[ref] == ELSEWHERE
        )
        (edit,) = [form for form in card.forms if form.data.endswith(":e")]
        values = {field.name: field.value for field in edit.fields}
        assert values["key"] == "" and values["iban"] == ""
        wrong = {**values, "key": "no-key"}
        assert "key" in await office.press(ref, edit.data, values=wrong)
        await office.press(ref, edit.data, values={**values, "order": "A-2"})
        ran = next(r for m in await office.log() for r in m.results).content
        assert 'order: "A-1" -> "A-2"' in ran and not any(secret in ran for secret in SECRETS)
        await clean(office)
        await office.say("two")
        ref, card = next((r, c) for r, c in house.world.cards.items() if c.state == "open")
        await office.press(ref, button(card, "Always approve"))
        await office.say("/grants")
        await clean(office)


async def test_no_secret_is_shown_when_a_request_ends_without_a_decision(house: House) -> None:
    agent = replace(house.agent(), tools=(TRANSFER,), gate=Gate(rules=(RULE,)))
    house.plan["one"] = [calls(call("transfer", **ARGS)), "done"]
    async with running(house, agent) as office:
        await office.say("one")
        await office.say("/stop")
        await office.say("one")
        house.clock.advance(4_000)
        await office.settle()
        await office.say("one")
        ref, card = next((r, c) for r, c in house.world.cards.items() if c.state == "open")
        feedback = next(form for form in card.forms if form.data.endswith(":f"))
        await office.press(ref, feedback.data, values={"feedback": "not today"})
        await clean(office)
        read = repr([m.results for request in house.requests for m in request.messages if m.results])
        assert not any(secret in read for secret in SECRETS)
