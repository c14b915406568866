"""The composition root: the only place with concrete classes."""

from __future__ import annotations

from gateway.app.build import build_parts
from gateway.app.gateway import Gateway, Parts, Web

__all__ = ["Gateway", "Parts", "Web", "build_parts"]
