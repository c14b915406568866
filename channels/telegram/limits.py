"""Telegram's limits, in UTF-16 code units where text is meant."""

from __future__ import annotations

from typing import Final

from channels.base import Limits

LIMITS: Final = Limits(
    text=4096,
    unit="utf16",
    button_bytes=64,
    buttons=100,  # in one message: of a card with several calls the first 19 have all their five
    button_label=64,  # longer ones are accepted but shown cut
    notice=200,
    file_in=20_000_000,
    file_out=50_000_000,
)

ENTITIES: Final = 100  # in one message
RESERVE: Final = 96  # units of every message kept free for the repeat mark and the mentions
MENTIONS: Final = 10  # people whom one message calls by name
PHOTO: Final = 10_000_000  # bytes of a picture that is sent as one
PHOTO_TYPES: Final = frozenset({"image/jpeg", "image/png", "image/webp"})
ROW: Final = 2  # buttons side by side that a telephone shows in full; Telegram allows 8
PLACEHOLDER: Final = 64  # the grey text in a reply field
ALERT_FROM: Final = 60  # a longer notice opens a box, a toast would vanish before it is read

PER_SECOND: Final = 30  # requests about any chat
PER_MINUTE_IN_GROUP: Final = 20
SECONDS_BETWEEN: Final = 1.0  # between two messages to one chat

ALBUM_SECONDS: Final = 0.5  # the pieces of an album follow one another faster than this
ALBUM_WAITS: Final = 6
CONNECTIONS: Final = 16  # by which updates are posted to us: the pieces of an album wait for each other
GAP_SECONDS: Final = 0.25  # an update that was posted out of order comes within
POLL_SECONDS: Final = 25  # one long poll; with the read timeout a dead connection is noticed within 35 s
WATCH_SECONDS: Final = 60.0  # between two looks at whether the webhook is still ours
ANSWER_SECONDS: Final = 14.0  # after some fifteen a press cannot be answered any more
NOTICE_SECONDS: Final = 2.0  # a press that nobody answered by then is acknowledged without words
TYPING_SECONDS: Final = 4.5  # Telegram shows the sign for five
DRAFT_SECONDS: Final = 1.0  # between two drafts of one answer
