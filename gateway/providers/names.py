"""Tool names as vendors take them: `[a-zA-Z0-9_-]`, at most 64, some with further wishes. Pure.

A tool server may call its tools `search/documents.by_meaning`, at any length. A name that vendors do
not take is rewritten and ends in a hash of the original. So the rewritten name depends on nothing
but the name itself: it survives restarts, other servers and another order, and the provider's
prompt cache with it. A legal name that happens to end like a rewritten one is rewritten too; no
rewritten name can then equal an untouched one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import lru_cache

WIRE_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
LETTER_FIRST = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")  # some vendors want it so
_REWRITTEN = re.compile(r".*_x[0-9a-f]{8}")
_SUFFIX = 10


@lru_cache(maxsize=4096)
def wire_name(name: str, *, letter_first: bool = False, at_least: int = 1) -> str:
    """The name on the wire; the name itself wherever that is possible. `letter_first`: it must begin
    with a letter or an underscore. `at_least`: characters, up to ten."""
    legal = LETTER_FIRST if letter_first else WIRE_NAME
    if legal.fullmatch(name) and len(name) >= at_least and not _REWRITTEN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    legible = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)
    if letter_first and not LETTER_FIRST.match(legible):
        legible = f"_{legible}"
    return f"{legible[: 64 - _SUFFIX]}_x{digest}"


def original_names(names: Iterable[str], *, letter_first: bool = False, at_least: int = 1) -> dict[str, str]:
    """Wire name -> original, for the calls that come back."""
    return {wire_name(name, letter_first=letter_first, at_least=at_least): name for name in names}
