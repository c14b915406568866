"""Threadgate, whole: a message comes in through a channel and its answer goes out through it.

Counted are inbox, lease, gate, tool journal, events, checkpoint, card and outbox, with an fsync at
every step, as a gateway does it. The channel keeps what it is told instead of sending it anywhere.
"""

import asyncio
import itertools
import os
import sys
import time
from pathlib import Path

import bench as bc

from channels.base import (
    Abilities,
    Actor,
    InboundMessage,
    InboundPress,
    Limits,
    MessageRef,
    ThreadKey,
    pack_press,
)
from gateway.agent import Agent
from gateway.app.gateway import Gateway, Parts
from gateway.app.people import ConfiguredRules
from gateway.gate import Gate, Rule
from gateway.messages import Text, ToolUse
from gateway.providers.base import ModelResponse
from gateway.store.sqlite import SqliteStore
from gateway.tools.base import tool

PERSON = Actor("bench", "w", "1")


@tool(safe=True)
async def lookup(key: str, note: str) -> str:
    """Look something up."""
    return bc.run_tool("lookup")


@tool
async def delete_file(key: str, note: str) -> str:
    """Delete a file."""
    return bc.run_tool("delete_file")


class StubModel:
    id = "stub"

    def __init__(self, latency):
        self._latency = latency

    async def complete(self, request, on_delta=None):
        if self._latency:
            await asyncio.sleep(self._latency)
        bc.seen_context(len(request.messages))
        last = request.messages[-1]
        calls = bc.script_reply("tool" if last.results else "user", last.text)
        if calls:
            blocks = tuple(ToolUse(id=c["id"], name=c["name"], input=c["args"]) for c in calls)
            return ModelResponse(content=blocks, stop="tool_calls")
        return ModelResponse(content=(Text(text=bc.FINAL_TEXT),), stop="end")

    async def close(self):
        pass


class KeepingChannel:
    """What is sent and shown resolves the future of its conversation."""

    name = "bench"
    abilities = Abilities()
    limits = Limits(text=4096, unit="utf16")

    def __init__(self):
        self.waiting = {}
        self._ids = itertools.count(1)

    async def start(self, inbound):
        self.inbound = inbound

    async def stop(self):
        pass

    def parts(self, message):
        return (message,)

    def _tell(self, target, what):
        future = self.waiting.pop(target.conversation, None)
        if future is not None:
            future.set_result(what)
        return MessageRef(f"m{next(self._ids)}-{os.getpid()}")

    async def send(self, target, message):
        return self._tell(target, message.text)

    async def show(self, target, card):
        ref = MessageRef(f"c{next(self._ids)}-{os.getpid()}")
        self._tell(target, f"{card.card_id}|{target.conversation}|{ref}")
        return ref

    async def redraw(self, ref, card):
        pass

    async def notify_actor(self, press, text):
        pass

    async def progress(self, target, state):
        pass

    async def roles(self, actor, thread):
        return frozenset()


class Threadgate:
    name = "threadgate"

    def __init__(self):
        self._numbers = itertools.count(1)

    async def setup(self, db_path, *, model_latency_s=0.0):
        rules = (Rule(tool="lookup", decision="allow"), Rule(tool="delete_file", decision="ask"))
        agent = Agent(
            name="a", system_prompt=bc.SYSTEM_PROMPT, tools=(lookup, delete_file), gate=Gate(rules=rules)
        )
        model = StubModel(model_latency_s)
        self.channel = KeepingChannel()
        self.gateway = Gateway(
            Parts(
                store=SqliteStore(Path(db_path)),
                agents={"a": agent},
                model_of=lambda _: model,
                rules=ConfiguredRules(
                    default_agent="a", users={"bench": frozenset("1")}, workspaces={"bench": "w"}
                ),
                channels=(self.channel,),
            )
        )
        await self.gateway.start()
        self.inbound = self.channel.inbound

    def _expect(self, conversation):
        future = asyncio.get_running_loop().create_future()
        self.channel.waiting[conversation] = future
        return future

    async def plain_turn(self, session_id, text):
        outcome = self._expect(session_id)
        await self.inbound.message(
            InboundMessage(
                thread=ThreadKey("bench", "w", session_id, ""),
                message_id=f"{os.getpid()}-{id(self)}-{next(self._numbers)}",
                actor=PERSON,
                text=text,
                sent_at=time.time(),
            )
        )
        return await outcome

    tool_turn = pause = plain_turn

    async def resume(self, handle, approve=True):
        pending_id, conversation, ref = handle.split("|")
        outcome = self._expect(conversation)
        await self.inbound.press(
            InboundPress(
                thread=ThreadKey("bench", "w", conversation, ""),
                action_id=f"press-{pending_id}",
                actor=PERSON,
                data=pack_press(pending_id, "a" if approve else "d"),
                message_ref=MessageRef(ref),
                sent_at=time.time(),
            )
        )
        return await outcome

    async def close(self):
        await self.gateway.stop()

    def info(self):
        return {
            "python": sys.version.split()[0],
            "journal_mode": "wal",
            "synchronous": "FULL",
            "storage": "append-only rows, an fsync at every step (group commit), inbox and outbox included",
        }


if __name__ == "__main__":
    bc.main(Threadgate)
