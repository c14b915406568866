"""The built-in tools `send_file` and `post_message`: out through the outbox, each call once.

The outbox knows a row by the call that made it. A call that is run again after a crash finds its row
there and adds none, so both tools may be repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Final

import msgspec

from gateway.errors import ToolError
from gateway.messages import Json, ThreadKey
from gateway.tools.base import CallContext, Tool, tool
from gateway.tools.files import FilePath, Room
from gateway.tools.ports import Origins, OutFile, Posts
from gateway.tools.rooted import read_bytes, write_bytes

SENT: Final = "sent"  # below the data folder
MOST_SENT: Final = 50_000_000  # bytes of one file
MOST_WORDS: Final = 20_000  # characters of one message

Caption = Annotated[str, msgspec.Meta(max_length=1_000)]


def send_file_tool(room: Room, posts: Posts, origins: Origins) -> Tool:
    """`send_file` over a room of files."""

    @tool(idempotent=True, timeout=120)
    async def send_file(path: FilePath, context: CallContext, caption: Caption = "") -> str:
        """Send a file of this conversation to the person you are talking to, in this thread.

        Args:
            path: the file, as list_files shows it
            caption: a sentence that goes before it
        """
        origin = await origins.of(context)
        found = await room.find(context.session_id, path)
        kept = await asyncio.to_thread(_keep, room.data_dir, found.root, found.path)
        out = OutFile(path=kept, name=found.name, media_type=found.media_type)
        if not await posts.file(out, caption, context.idempotency_key, origin):
            return f"There is no chat here to send it to. The file is {found.root / found.path}."
        return f"{found.name} is on its way."

    return send_file


def _keep(data_dir: Path, root: Path, path: str) -> str:
    """A copy that later writes to the file do not change; its path below the data folder."""
    data = read_bytes(root, path, MOST_SENT)
    suffix = PurePosixPath(path).suffix.lower()
    safe = suffix if suffix.isascii() and suffix[1:].isalnum() and len(suffix) <= 8 else ""
    name = f"{hashlib.sha256(data).hexdigest()}{safe}"
    write_bytes(data_dir / SENT, name, data)
    return f"{SENT}/{name}"


def post_message_tool(targets: Mapping[str, ThreadKey], posts: Posts, origins: Origins) -> Tool:
    """`post_message` to these threads: as the configuration writes them, and what they are."""
    schema: Json = {
        "type": "object",
        "properties": {
            "thread": {"enum": sorted(targets), "description": "where to"},
            "text": {
                "type": "string",
                "minLength": 1,
                "maxLength": MOST_WORDS,
                "description": "what to say there, in Markdown",
            },
        },
        "required": ["thread", "text"],
        "additionalProperties": False,
    }

    async def post_message(args: Json, context: CallContext) -> str:
        if not args["text"].strip():
            raise ToolError("text: is empty; say what to post")
        origin = await origins.of(context)
        await posts.words(targets[args["thread"]], args["text"], context.idempotency_key, origin)
        return f"Posted to {args['thread']}."

    return Tool(
        name="post_message",
        description="Post a message to another thread than this one. It is not seen here; say here what you "
        "have posted.",
        input_schema=schema,
        handler=post_message,
        idempotent=True,
    )
