"""The tools of the tested agent. Copied beside each test's configuration; the ledger lies there too.

Every side effect is one line on disk before the tool returns, so that it can be counted whatever
becomes of the process. Names say what a tool promises: `_safe`, `_idempotent`, or nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path

from gateway.tools.base import CallContext, tool

LEDGER = Path(__file__).with_name("ledger.jsonl")
LET_GO = Path(__file__).with_name("let_go")


def write(name: str, order: str, key: str) -> str:
    """One line of the ledger, on disk."""
    line = json.dumps({"tool": name, "order": order, "key": key}) + "\n"
    handle = os.open(LEDGER, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return f"{name} {order}: done"


@tool(safe=True)
async def note_safe(order: str, context: CallContext) -> str:
    """Look something up."""
    return write("note_safe", order, context.idempotency_key)


@tool(idempotent=True)
async def note_idempotent(order: str, context: CallContext) -> str:
    """Set something, as often as you like."""
    return write("note_idempotent", order, context.idempotency_key)


@tool
async def note(order: str, context: CallContext) -> str:
    """Write something down; twice is wrong."""
    return write("note", order, context.idempotency_key)


@tool(safe=True)
async def pay_safe(order: str, context: CallContext) -> str:
    """Look something up, with a person's yes."""
    return write("pay_safe", order, context.idempotency_key)


@tool(idempotent=True)
async def pay_idempotent(order: str, context: CallContext) -> str:
    """Set something, with a person's yes."""
    return write("pay_idempotent", order, context.idempotency_key)


@tool
async def pay(order: str, context: CallContext) -> str:
    """Pay; twice is wrong."""
    return write("pay", order, context.idempotency_key)


@tool(secret=["card"])
async def pay_secretly(order: str, card: str, context: CallContext) -> str:
    """Pay with a card whose number nobody may see."""
    return write("pay_secretly", f"{order} {card}", context.idempotency_key)


@tool(timeout=60)
async def wait(order: str, context: CallContext) -> str:
    """Take half a minute, or until the file `let_go` is there."""
    write("wait began", order, context.idempotency_key)
    async with asyncio.timeout(30):
        while not LET_GO.exists():  # noqa: ASYNC110 - another process says when
            await asyncio.sleep(0.02)
    return write("wait", order, context.idempotency_key)


@tool(timeout=60)
def wait_deaf(order: str, context: CallContext) -> str:
    """Take half a minute and listen to nobody."""
    write("wait_deaf began", order, context.idempotency_key)
    threading.Event().wait(30)
    return write("wait_deaf", order, context.idempotency_key)


tools = [
    note_safe,
    note_idempotent,
    note,
    pay_safe,
    pay_idempotent,
    pay,
    pay_secretly,
    wait,
    wait_deaf,
]
