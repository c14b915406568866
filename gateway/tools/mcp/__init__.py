"""Tool servers that speak MCP: their tools, resources and questions, as an agent's own.

One task per server owns its connection; everybody else hands it work (`server`). What comes back is
turned into our values by `content`, `asking` and `catalogue`, which do no I/O with the server. The SDK
is imported when the first server starts, and nowhere outside of this package.
"""

from __future__ import annotations

from gateway.tools.mcp.catalogue import AgentTools, Selection
from gateway.tools.mcp.servers import ToolServers
from gateway.tools.mcp.settings import ServerSettings

__all__ = ["AgentTools", "Selection", "ServerSettings", "ToolServers"]
