"""Where the vendors of the Chat Completions family differ, as one table. Pure.

Each fact comes from the vendor's own documentation or from its error texts. What no vendor needs is
not sent at all: neither `tool_choice` (GLM knows `auto` only, and that is everybody's default) nor
`parallel_tool_calls` (on everywhere by default) nor `strict` (the schemas of tool servers rarely
fit it).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from gateway.providers.names import wire_name
from gateway.providers.schemas import DialectName

Provider = Literal["openai", "deepseek", "kimi", "glm", "gemini"]
# What the wire's `finish_reason` means here. `broken`: the answer ended before its end.
Finish = Literal["end", "tool_calls", "length", "refusal", "malformed", "broken"]

NEVER = re.compile(r"(?!)")
EVERY = re.compile(r"")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """One vendor's ways.

    base_url: the official endpoint. dialect: of schemas. max_tokens: the field's name;
    default_max_tokens: sent where nobody says how much, because the vendor's own default is too
    small. reasoning: whether `reasoning_content` on an assistant message is refused, taken, or needed
    on every one. signatures: calls carry `extra_content`, and in the current turn need one.
    beside_calls: `content` of a message that only calls. developer: models whose instructions come
    from `developer`, not `system`. images, files: models that take pictures and PDF files.
    ids: what the id of a call may be, `longest_id` characters at most. cache_key: `prompt_cache_key`
    is known. letter_first, shortest_name: see `names.wire_name`. silence: seconds after which an answer
    that has gone quiet counts as broken off; long where models think without a sign of it.
    """

    base_url: str
    dialect: DialectName
    max_tokens: str = "max_tokens"
    default_max_tokens: int | None = None
    reasoning: Literal["refused", "taken", "needed"] = "refused"
    signatures: re.Pattern[str] = NEVER
    beside_calls: str | None = None
    developer: re.Pattern[str] = NEVER
    images: re.Pattern[str] = NEVER
    files: re.Pattern[str] = NEVER
    ids: re.Pattern[str] = _ID
    longest_id: int = 40
    most_tools: int = 128
    cache_key: bool = False
    letter_first: bool = False
    shortest_name: int = 1
    silence: float = 120.0

    def name(self, tool: str) -> str:
        """A tool's name on this vendor's wire."""
        return wire_name(tool, letter_first=self.letter_first, at_least=self.shortest_name)


QUIRKS: dict[Provider, Quirks] = {
    "openai": Quirks(
        base_url="https://api.openai.com/v1",
        dialect="openai",
        max_tokens="max_completion_tokens",
        developer=re.compile(r"(?:o[1-9]|gpt-[5-9])"),
        images=EVERY,
        files=re.compile(r"(?:o[1-9]|gpt-4o|gpt-4\.1|gpt-[5-9])"),
        cache_key=True,
        silence=600.0,
    ),
    "deepseek": Quirks(
        base_url="https://api.deepseek.com",
        dialect="deepseek",
        # "The reasoning_content in the thinking mode must be passed back to the API."
        reasoning="needed",
        beside_calls="",
    ),
    "kimi": Quirks(
        base_url="https://api.moonshot.ai/v1",
        dialect="kimi",
        max_tokens="max_completion_tokens",
        default_max_tokens=32_768,
        # "thinking is enabled but reasoning_content is missing in assistant tool call message"
        reasoning="needed",
        images=re.compile(r"kimi-(?:k2\.[5-9]|k[3-9]|latest)|.*vision"),
        # The model was trained on its own ids, `functions.search:0`: they go back as they came.
        ids=re.compile(r"[a-zA-Z0-9_.:-]{1,64}"),
        longest_id=64,
        cache_key=True,
        letter_first=True,
        shortest_name=3,
    ),
    "glm": Quirks(
        base_url="https://api.z.ai/api/paas/v4",
        dialect="glm",
        reasoning="taken",
        beside_calls="",
        images=re.compile(r"glm-[\d.]+v"),
    ),
    "gemini": Quirks(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
        dialect="gemini_openapi",
        signatures=re.compile(r"(?:models/)?gemini-(?![12]\b)"),
        images=EVERY,
        letter_first=True,
        silence=600.0,
    ),
}

FINISHES: dict[str, Finish] = {
    "stop": "end",
    "eos": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",  # GLM
    "repetition_truncation": "length",  # DeepSeek
    "content_filter": "refusal",
    "sensitive": "refusal",  # GLM
    "refusal": "refusal",
    "safety": "refusal",
    "recitation": "refusal",
    "insufficient_system_resource": "broken",  # DeepSeek
    "network_error": "broken",  # GLM
    "error": "broken",
    "malformed_function_call": "malformed",
}


def finish_of(word: str) -> Finish:
    """The meaning of a finish reason; Gemini's endpoint writes `content_filter: SAFETY` and the like."""
    for part in reversed(word.lower().split(":")):
        if part.strip() in FINISHES:
            return FINISHES[part.strip()]
    return "end"
