"""Threadgate: one tool-calling agent loop behind chat threads, with durable stops for people.

    from gateway import Agent, Gateway, run_agent, tool

The names below are the public ones; everything else may change. They are loaded when they are
first used, so that `import gateway` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.agent import Agent
    from gateway.app import Gateway
    from gateway.errors import (
        ConfigError,
        GatewayError,
        IntelligenceUnavailable,
        LeaseLost,
        ModelAuthError,
        ModelError,
        ModelOverloaded,
        ModelRateLimited,
        ModelRejected,
        RequiredToolServerDown,
        StandingUnknown,
        StoreError,
        StoreUnavailable,
        StoreVersionError,
        ToolError,
    )
    from gateway.loop import LoopOptions, RunResult, resume_agent, run_agent
    from gateway.outcome import Outcome
    from gateway.tools.base import Tool, tool

__all__ = [
    "Agent",
    "ConfigError",
    "Gateway",
    "GatewayError",
    "IntelligenceUnavailable",
    "LeaseLost",
    "LoopOptions",
    "ModelAuthError",
    "ModelError",
    "ModelOverloaded",
    "ModelRateLimited",
    "ModelRejected",
    "Outcome",
    "RequiredToolServerDown",
    "RunResult",
    "StandingUnknown",
    "StoreError",
    "StoreUnavailable",
    "StoreVersionError",
    "Tool",
    "ToolError",
    "resume_agent",
    "run_agent",
    "tool",
]

_HOMES = {
    "Agent": "gateway.agent",
    "Gateway": "gateway.app",
    "LoopOptions": "gateway.loop",
    "Outcome": "gateway.outcome",
    "RunResult": "gateway.loop",
    "Tool": "gateway.tools.base",
    "resume_agent": "gateway.loop",
    "run_agent": "gateway.loop",
    "tool": "gateway.tools.base",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home. Raises AttributeError for any other."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES.get(name, "gateway.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
