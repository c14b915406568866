"""Counters for Prometheus. Only imported when `[metrics]` is configured."""

from __future__ import annotations

from gateway.events import Event, ToolFinished, TurnDone


class Metrics:
    """What a running gateway counts."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._registry = CollectorRegistry()
        self._turns = Counter(
            "threadgate_turns", "Turns that ended, by outcome", ["outcome"], registry=self._registry
        )
        self._calls = Counter(
            "threadgate_tool_calls",
            "Tool results, by tool and success",
            ["tool", "error"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "threadgate_tool_seconds", "How long tool calls ran", ["tool"], registry=self._registry
        )

    def event(self, event: Event) -> None:
        """Count one event of a turn."""
        match event:
            case TurnDone(outcome=outcome):
                self._turns.labels(outcome).inc()
            case ToolFinished(tool=tool, is_error=is_error, seconds=seconds):
                self._calls.labels(tool, str(is_error).lower()).inc()
                self._seconds.labels(tool).observe(seconds)

    def text(self) -> bytes:
        """The Prometheus text format."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)
