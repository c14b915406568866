"""What a turn shows before its answer is there: words about the work, and the answer while it grows. Pure.

A stream takes Markdown, is sent without any word on previews of links, and is read by Slack as it
comes. So nothing in it is live: no control sequence, no mention, no address. The answer's final text, which
replaces it, has all that it may have.
"""

from __future__ import annotations

import re
from typing import Any

from channels.render.inert import tame, visible
from channels.render.slack import SlackText, escape_mrkdwn, slack_messages
from channels.render.stream import presentable
from channels.slack.limits import STREAM_TEXT

WORKING, WRITING = "Working…", "Writing…"
_PREVIEW = 1500  # characters; a growing answer that is edited in shows about its last 3,000 at most
_LONGEST_NAME = 80
_MORE = "…"
_ZERO_WIDTH_SPACE = "\u200b"
# Places before which an unseen space takes the life out of what begins there: each is known from what stands
# before it, so that it does not matter where one piece ends and the next begins.
_LIVE = re.compile(r"(?:(?<=<)|(?<=\W@)|(?<=\A@))(?=[\s\S])|(?<=:)(?=/)|(?<=www)(?=\.)")


def using(tool: str) -> str:
    """The words for a tool at work."""
    return f"Using {_named(tool)}…"


def status(note: str) -> str:
    """The same words as Slack wants them in the status of an assistant thread, behind the app's name."""
    return f"is {note[:1].lower()}{note[1:]}"


def sign(note: str, text: str = "") -> SlackText | None:
    """A progress message: the answer so far, and below it what is done now; None for nothing."""
    grown = slack_messages(presentable(text, last=_PREVIEW)) if text else []
    texts, blocks = [], list[dict[str, Any]]()
    if grown:
        texts.append(grown[-1].text)
        blocks.extend(grown[-1].blocks)
    if note:
        words = {"type": "text", "text": note, "style": {"italic": True}}
        texts.append(escape_mrkdwn(note))
        blocks.append({"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [words]}]})
    return SlackText("\n".join(texts), tuple(blocks)) if blocks else None


def streamed(text: str, start: int, end: int, already: int = 0) -> str:
    """The characters from `start` to `end` of a growing text, as a stream may have them.

    already: characters that the stream holds. Beyond STREAM_TEXT in all, it gets no more than a sign that
    there is more; "" when it has that already.
    """
    free = STREAM_TEXT - already
    if free <= 0:
        return ""
    pieces: list[str] = []
    done = start
    for found in _LIVE.finditer(text, start, end):
        pieces += (text[done : found.start()], _ZERO_WIDTH_SPACE)
        done = found.start()
    piece = tame("".join((*pieces, text[done:end])))
    return piece if len(piece) < free else piece[: free - len(_MORE)] + _MORE


def _named(tool: str) -> str:
    name = visible(" ".join(tool.split())) or "a tool"
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
