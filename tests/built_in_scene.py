"""A gateway from a configuration file, with skills and every built-in tool.

skill, write, note, recall, fetch, draw: the model calls that tool, and says a word afterwards.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from gateway.agent import Agent
from gateway.app.build import build_parts
from gateway.app.builtins import BuiltIns
from gateway.app.gateway import Gateway
from gateway.app.people import ConfiguredRules
from gateway.clock import SystemClock
from gateway.config import load_config
from gateway.config.values import AgentSection, ToolsSection
from gateway.gate import Gate
from gateway.providers.base import ModelRequest
from gateway.providers.scripted import Call, Reply, ScriptedModel, spoken
from gateway.store.sqlite import SqliteStore

CONFIG = """
[models.main]
provider = "scripted"
script = "script.toml"

[agents.desk]
system_prompt = "Be kind."
skills = ["skills"]
tools = ["drawing:tools", "files", "send_file", "memory", "http_fetch", "post_message"]
post_to = ["telegram:4"]
default_decision = "allow"

[tools.http_fetch]
allow = ["127.0.0.1"]

[channels.web]
port = 0
%s
[channels.telegram]
token = "123456:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
api_base = "http://127.0.0.1:9"
"""
PNG = b"\x89PNG\r\n\x1a\n"
SCRIPT = """
[[rules]]
match = "skill"
replies = [{ calls = [{ tool = "Skill", args = { skill = "pay", args = "A-1" } }] }, { text = "read" }]

[[rules]]
match = "write"
replies = [
  { calls = [{ tool = "write_file", args = { path = "a b.html", content = "<script>alert(1)</script>" } }] },
  { calls = [{ tool = "send_file", args = { path = "a b.html", caption = "Here it is" } }] },
  { text = "sent" },
]

[[rules]]
match = "note"
replies = [
  { calls = [{ tool = "memory", args = { action = "remember", key = "k", text = "secret" } }] },
  { text = "noted" },
]

[[rules]]
match = "recall"
replies = [{ calls = [{ tool = "memory", args = { action = "recall" } }] }, { text = "told" }]

[[rules]]
match = "draw"
replies = [{ calls = [{ tool = "draw", args = {} }] }, { text = "drawn" }]

[[rules]]
match = "fetch"
replies = [{ calls = [{ tool = "http_fetch", args = { url = "http://[::1]:9/" } }] }, { text = "fetched" }]
"""


DRAWING = """
from gateway import tool
from gateway.messages import File, Image
from gateway.tools.base import ToolOutput


@tool(safe=True)
def draw() -> ToolOutput:
    \"\"\"Draw a picture, and its numbers.\"\"\"
    picture = Image(path="p/7f.png", media_type="image/png")
    numbers = File(path="p/n.csv", media_type="text/csv", name="a.csv")
    return ToolOutput(text="drawn", parts=(picture, numbers))


tools = [draw]
"""


@asynccontextmanager
async def from_file(folder: Path, web: str = "") -> AsyncIterator[tuple[Gateway, str]]:
    """The configured gateway with its web channel alone; its address."""
    (folder / "skills" / "pay").mkdir(parents=True, exist_ok=True)
    front = "---\nname: pay\ndescription: Pay back.\n---\n"
    (folder / "skills" / "pay" / "SKILL.md").write_text(f"{front}Pay $ARGUMENTS.\n")
    (folder / "script.toml").write_text(SCRIPT)
    (folder / "drawing.py").write_text(DRAWING)
    (folder / "var" / "p").mkdir(parents=True, exist_ok=True)
    (folder / "var" / "p" / "7f.png").write_bytes(PNG)
    (folder / "var" / "p" / "n.csv").write_text("1,2\n")
    (folder / "config.toml").write_text(CONFIG % web)
    parts = build_parts(load_config(folder / "config.toml", env={}))
    assert [channel.name for channel in parts.channels] == ["telegram"]
    async with Gateway(replace(parts, channels=())) as gateway:
        assert gateway.web is not None
        yield gateway, gateway.web.url


@asynccontextmanager
async def sender(folder: Path, data: Path, channel: str) -> AsyncIterator[tuple[Agent, ScriptedModel]]:
    """An agent that writes a file, sends it with a caption and says "sent", over the database of a gateway
    in `folder`, as from another process: what it posts is sent by that gateway."""
    store = SqliteStore(folder / "gateway.db")
    rules = ConfiguredRules(default_agent="assistant", workspaces={channel: ""})
    built_in = BuiltIns(store=store, rules=rules, settings=ToolsSection(), data_dir=data, clock=SystemClock())
    tools = [tool for name in ("files", "send_file") for tool in built_in(name, "assistant", AgentSection())]
    wanted = (
        Call(tool="write_file", args={"path": "reports/may.csv", "content": "a,b\n"}),
        Call(tool="send_file", args={"path": "reports/may.csv", "caption": "**May** @everyone"}),
    )

    def reply(request: ModelRequest) -> Reply:
        start, _text = spoken(request.messages)
        done = sum(m.role == "assistant" for m in request.messages[start + 1 :])
        return Reply(calls=(wanted[done],)) if done < len(wanted) else Reply(text="sent")

    await store.open()
    try:
        gate = Gate(default_decision="allow")
        yield Agent(name="assistant", tools=tuple(tools), gate=gate), ScriptedModel(reply)
    finally:
        await store.close()
