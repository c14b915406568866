"""What Slack limits, in one table. Characters are counted in UTF-16 units, the stricter reading."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

# ---- messages

TEXT_CUT = 40_000  # of chat.postMessage: what is beyond is cut silently
TEXT_EDITED = 4_000  # of chat.update: `msg_too_long` above
MARKDOWN = 12_000  # of a markdown block, of all of them together, and of `markdown_text`
BLOCKS = {"message": 50, "modal": 100, "home": 100}
BLOCKS_JSON = 13_200  # characters of all blocks of a message as JSON: `msg_blocks_too_long`
VIEW_JSON = 250_000
ATTACHMENTS = 100

# ---- Block Kit

SECTION_TEXT, SECTION_FIELDS, SECTION_FIELD = 3_000, 10, 2_000
HEADER, CONTEXT_ELEMENTS, ACTIONS_ELEMENTS, CONTEXT_ACTIONS = 150, 10, 25, 5
ID = 255  # action_id, block_id, callback_id, external_id
BUTTON_TEXT, BUTTON_VALUE, URL, ACCESSIBILITY = 75, 2_000, 3_000, 75
CONFIRM_TITLE, CONFIRM_TEXT, CONFIRM_BUTTON = 100, 300, 30
OPTIONS, OPTION_GROUPS, OPTION_TEXT, OPTION_VALUE, OVERFLOW, CHECKED = 100, 100, 75, 150, 5, 10
PLACEHOLDER, INPUT_LABEL, INPUT_HINT, INPUT_TEXT = 150, 2_000, 2_000, 3_000
ALT_TEXT, IMAGE_TITLE = 2_000, 2_000
VIEW_TITLE, PRIVATE_METADATA, VIEW_STACK = 24, 3_000, 3
TABLE_ROWS, TABLE_COLUMNS = 100, 20

# ---- time, in seconds

ACKNOWLEDGE = 3.0
TRIGGER_LIFE = 3.0
RESPONSE_URL_LIFE, RESPONSE_URL_USES = 1_800.0, 5
STREAM_LIFE = 300.0
STATUS_LIFE = 120.0
TICKET_LIFE = 30.0
RETRIES = (0.0, 60.0, 300.0)  # after the delivery that failed: first, second and third repetition

# ---- connections and rates

CONNECTIONS = 10
SUGGESTED_PROMPTS, LOADING_MESSAGES = 4, 10
PER_CHANNEL, BURST = 1.0, 3  # messages a second, and how many at once
TIERS = {1: 1, 2: 20, 3: 50, 4: 100}  # calls a minute
METHOD_TIERS = {
    "apps.connections.open": 1,
    "bots.info": 3,
    "chat.appendStream": 4,
    "chat.delete": 3,
    "chat.postEphemeral": 4,
    "chat.startStream": 2,
    "chat.stopStream": 2,
    "chat.update": 3,
    "conversations.history": 3,
    "conversations.info": 3,
    "conversations.join": 3,
    "conversations.members": 4,
    "conversations.open": 3,
    "conversations.replies": 3,
    "files.completeUploadExternal": 4,
    "files.getUploadURLExternal": 4,
    "files.info": 4,
    "reactions.add": 3,
    "reactions.remove": 2,
    "team.info": 3,
    "usergroups.list": 2,
    "usergroups.users.list": 2,
    "users.info": 4,
    "views.open": 4,
    "views.publish": 4,
    "views.push": 4,
    "views.update": 4,
}
MINUTE_RATES = {"assistant.threads.setStatus": 60}  # a minute, per channel
# Slack lets dozens of connections be opened a minute in practice; one would make every reconnect wait.
TIERS_EXCEPT = {"apps.connections.open": 30}


def units(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
