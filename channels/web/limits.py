"""The web channel's limits. HTTP itself has none that matters; these are ours."""

from __future__ import annotations

from channels.base import Abilities, Limits

BODY_BYTES = 1_000_000  # one request
TEXT_CHARS = 200_000  # one message of a person; long enough for a pasted log
ID_CHARS = 200
DRESSED_CHARS = 20_000  # of a growing answer; conversation.js has the same number
AUDIT_ROWS = 500
PING_SECONDS = 15
SEND_SECONDS = 30  # a reader that takes nothing for this long is dropped and resumes by id
NUDGE_SECONDS = 0.1  # changes within this time are told to the pages together
LOGIN_SECONDS = 30 * 24 * 3600
DRAIN_SECONDS = 3  # how long requests in flight may take once the channel stops

ABILITIES = Abilities(
    edits=True, forms=True, private_notices=True, streaming=True, files_out=False, markdown_tables=True
)
LIMITS = Limits(text=1_000_000, unit="codepoint", button_label=200, notice=2_000)
