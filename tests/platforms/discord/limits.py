"""What Discord limits, in one table. Lengths are in code points, as the API counts; times in seconds."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

# ---- messages

CONTENT, NONCE, BODY = 2_000, 25, 25 * 1024 * 1024
FILES, FILE, FILE_NAME, FILE_DESCRIPTION = 10, 10 * 1024 * 1024, 260, 1_024
EMBEDS, EMBEDS_SUM = 10, 6_000
EMBED = {"title": 256, "description": 4_096, "footer": 2_048, "author": 256}
EMBED_FIELDS, EMBED_FIELD_NAME, EMBED_FIELD_VALUE = 25, 256, 1_024
LISTED = 100  # messages in one answer
MENTIONS = 100  # ids in one list of allowed_mentions

# ---- components

ROWS, ROW_BUTTONS, COMPONENTS_V2, DISPLAY_V2 = 5, 5, 40, 4_000
CUSTOM_ID, BUTTON_LABEL, URL = 100, 80, 512
OPTIONS, OPTION_TEXT, PLACEHOLDER = 25, 100, 150
SECTION_TEXTS, GALLERY_ITEMS = 3, 10
MODAL_TITLE, MODAL_COMPONENTS = 45, 5
INPUT_TEXT, INPUT_PLACEHOLDER, LABEL, LABEL_DESCRIPTION = 4_000, 100, 45, 100
RADIO_OPTIONS, CHECKBOX_OPTIONS = 10, 10

# ---- threads and commands

THREAD_NAME, CHANNEL_NAME, TOPIC, TAGS = 100, 100, 1_024, 5
ARCHIVE_MINUTES = (60, 1_440, 4_320, 10_080)
COMMANDS, CONTEXT_COMMANDS = 100, 5  # of one scope: slash commands; message or user commands each
COMMAND_NAME, COMMAND_DESCRIPTION, COMMAND_OPTIONS, COMMAND_CHARACTERS = 32, 100, 25, 8_000
CHOICES, CHOICE = 25, 100

# ---- time, in seconds of the server's clock

FIRST_RESPONSE = 3.0
TOKEN_LIFE = 900.0
ATTACHMENT_LIFE = 86_400.0
TYPING_LIFE = 10.0
NONCE_LIFE = 300.0
SESSION_LIFE = 300.0  # of a session without a connection; not published, of the measured order
OLD_MESSAGE, OLD_EDITS = 3_600.0, 20  # edits an hour of messages older than that; the number is not published

# ---- the gateway

HEARTBEAT_MS = 41_250
SENDS, SENDS_WINDOW = 120, 60.0
PAYLOAD = 4_096  # bytes from the client
IDENTIFIES, IDENTIFY_WINDOW = 1_000, 5.0  # a day; and of one concurrency bucket one in the window

# ---- rates: calls and seconds of one bucket (route and channel or guild), as published or measured by others

GLOBAL_RATE = 50  # a second
DEFAULT_RATE = (50, 1.0)
RATES: dict[str, tuple[int, float]] = {
    "POST /channels/{channel}/messages": (5, 5.0),
    "PATCH /channels/{channel}/messages/{message}": (5, 5.0),
    "DELETE /channels/{channel}/messages/{message}": (5, 1.0),
    "POST /channels/{channel}/typing": (5, 5.0),
    "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me": (1, 0.25),
    "POST /channels/{channel}/threads": (10, 60.0),
    "POST /channels/{channel}/messages/{message}/threads": (10, 60.0),
    "POST /users/@me/channels": (10, 60.0),
    "PUT /applications/{app}/commands": (5, 20.0),
    "PUT /applications/{app}/guilds/{guild}/commands": (5, 20.0),
    "POST /webhooks/{app}/{token}": (5, 2.0),
}

# ---- flags of a message, and types

SUPPRESS_EMBEDS, EPHEMERAL, LOADING, SILENT, V2 = 1 << 2, 1 << 6, 1 << 7, 1 << 12, 1 << 15
HAS_THREAD, CROSSPOSTED = 1 << 5, 1 << 0
SENDABLE_FLAGS = SUPPRESS_EMBEDS | EPHEMERAL | SILENT | V2
TEXT, DM, CATEGORY, FORUM = 0, 1, 4, 15
NEWS_THREAD, PUBLIC_THREAD, PRIVATE_THREAD = 10, 11, 12
THREADS = (NEWS_THREAD, PUBLIC_THREAD, PRIVATE_THREAD)
EPOCH = 1_420_070_400_000  # milliseconds at which snowflakes begin
