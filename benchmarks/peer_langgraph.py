"""langgraph + AsyncSqliteSaver: StateGraph(MessagesState), agent node + ToolNode, one Send per tool call
(as the prebuilt ReAct agent does, so an allowed tool is not re-run on resume), interrupt() inside the
gated tool, Command(resume=...).

variants: default  durability default ("async": checkpoint written in the background of the next step)
          sync     durability="sync"
          exit     durability="exit" (one checkpoint, when the run ends or is interrupted)
          delta    DeltaChannel for `messages` (beta: append instead of full snapshot)
"""

import asyncio
import json
import sqlite3
from importlib.metadata import version
from typing import Annotated, TypedDict

import aiosqlite
import bench as bc
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt


class ScriptedChatModel(BaseChatModel):
    latency_s: float = 0.0

    @property
    def _llm_type(self):
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **kw):
        raise NotImplementedError

    async def _agenerate(self, messages, stop=None, run_manager=None, **kw):
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        bc.seen_context(len(messages))
        last = messages[-1]
        calls = bc.script_reply("user" if last.type == "human" else "tool", last.content)
        msg = (
            AIMessage("", tool_calls=[{**c, "type": "tool_call"} for c in calls])
            if calls
            else AIMessage(bc.FINAL_TEXT)
        )
        return ChatResult(generations=[ChatGeneration(message=msg)])

    def bind_tools(self, tools, **kw):
        return self  # tool schemas go nowhere: there is no wire


@tool
async def lookup(key: str, note: str) -> str:
    """Look a key up."""
    return bc.run_tool("lookup")


@tool
async def delete_file(key: str, note: str) -> str:
    """Delete a file."""
    decision = interrupt({"tool": "delete_file", "key": key})
    if decision != "approve":
        return "denied"
    return bc.run_tool("delete_file")


TOOLS = [lookup, delete_file]


def route(state) -> list[Send] | str:
    calls = state["messages"][-1].tool_calls
    return [Send("tools", [c]) for c in calls] if calls else END


def build_graph(checkpointer, latency_s, state=MessagesState):
    llm = ScriptedChatModel(latency_s=latency_s).bind_tools(TOOLS)

    async def agent(state):
        return {"messages": [await llm.ainvoke(state["messages"])]}

    g = StateGraph(state)
    g.add_node("agent", agent)
    g.add_node("tools", ToolNode(TOOLS))
    g.add_edge(START, "agent")
    g.add_conditional_edges("agent", route, ["tools", END])
    g.add_edge("tools", "agent")
    return g.compile(checkpointer=checkpointer)


class GraphAdapter:
    """Everything but the checkpointer."""

    durability = None
    state = MessagesState

    async def plain_turn(self, session_id, text):
        r = await self.graph.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": session_id}}, **self.kw
        )
        return r["messages"][-1].content

    tool_turn = plain_turn

    async def pause(self, session_id, text):
        r = await self.graph.ainvoke(
            {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": session_id}}, **self.kw
        )
        assert r["__interrupt__"][0].value["tool"] == "delete_file"
        return json.dumps({"thread_id": session_id})

    async def resume(self, handle, approve=True):
        r = await self.graph.ainvoke(
            Command(resume="approve" if approve else "reject"),
            {"configurable": json.loads(handle)},
            **self.kw,
        )
        return r["messages"][-1].content


class LangGraphSqlite(GraphAdapter):
    name = "langgraph"

    def __init__(self, durability=None, state=MessagesState):
        self.kw = {"durability": durability} if durability else {}
        self.state = state

    async def setup(self, db_path, *, model_latency_s=0.0):
        self.path = db_path
        self.conn = await aiosqlite.connect(db_path)
        self.saver = AsyncSqliteSaver(self.conn)
        await self.saver.setup()
        self.graph = build_graph(self.saver, model_latency_s, self.state)

    async def close(self):
        await self.conn.close()

    def info(self):
        return {
            "versions": {
                p: version(p)
                for p in (
                    "langgraph",
                    "langgraph-checkpoint",
                    "langgraph-checkpoint-sqlite",
                    "langchain-core",
                    "aiosqlite",
                )
            },
            "sqlite": sqlite3.sqlite_version,
            **bc.sqlite_modes(self.path),
            "synchronous": "FULL (sqlite default)",
            "durability": self.kw.get("durability", "async (default)"),
            "storage": "full snapshot of all channels per superstep + pending writes per task"
            if self.state is MessagesState
            else "DeltaChannel: writes per step, snapshot every 100 updates",
        }


def delta():
    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph.message import _messages_delta_reducer

    class DeltaState(TypedDict):
        messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]

    return LangGraphSqlite(state=DeltaState)


VARIANTS = {"sync": lambda: LangGraphSqlite("sync"), "exit": lambda: LangGraphSqlite("exit"), "delta": delta}
if __name__ == "__main__":
    bc.main(LangGraphSqlite, VARIANTS)
