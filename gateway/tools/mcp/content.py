"""What a server answers, as what a model reads: text, with pictures and files stored by reference."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import mimetypes
import secrets
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from gateway.attachments import FOLDER, IMAGES
from gateway.messages import File, Image
from gateway.tools.base import ToolOutput

MOST_FILES = 20  # of one result
LONGEST_TEXT = 4_000_000  # characters of one result; the loop shortens what enters the conversation
NOTHING = "(the tool said nothing)"


class Storage:
    """Puts bytes below the data folder, where the paths of messages lead."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    async def put(self, data: bytes, media_type: str, name: str) -> Image | File:
        """A reference to these bytes. Raises OSError."""
        path = f"{FOLDER}/{secrets.token_hex(16)}{_suffix(media_type, name)}"
        await asyncio.to_thread(self._write, path, data)
        if media_type in IMAGES:
            return Image(path=path, media_type=media_type, name=name)
        return File(path=path, media_type=media_type, name=name, size=len(data))

    def _write(self, path: str, data: bytes) -> None:
        whole = self._data_dir / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        partial = whole.with_name(whole.name + ".part")
        try:
            partial.write_bytes(data)
            partial.rename(whole)
        finally:
            partial.unlink(missing_ok=True)


class _Pieces:
    """A result as it is put together: texts in order, and files."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._texts: list[str] = []
        self._room = LONGEST_TEXT
        self.parts: list[Image | File] = []

    def say(self, text: str) -> None:
        if self._room > 0 and text:
            self._texts.append(text if len(text) <= self._room else f"{text[: self._room]}\n[cut here]")
            self._room -= len(text)

    @property
    def text(self) -> str:
        return "\n".join(self._texts)

    async def file(self, encoded: str, media_type: str, name: str) -> None:
        """Bytes in base64; what cannot be kept is told instead."""
        kind = (media_type or "application/octet-stream").partition(";")[0].strip().lower()
        if len(self.parts) >= MOST_FILES:
            self.say(f"[{name}: left out, a result may have {MOST_FILES} files]")
            return
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            self.say(f"[{name}: left out, it is not valid base64]")
            return
        part = await self._storage.put(data, kind, name)
        self.parts.append(part)
        what = "image" if isinstance(part, Image) else "file"
        self.say(f"[{what}: {name} ({kind}, {len(data)} bytes)]")


async def tool_output(result: CallToolResult, storage: Storage) -> ToolOutput:
    """A tool's result. Structured content is read as JSON where the server gives no text beside it."""
    pieces = _Pieces(storage)
    for number, block in enumerate(result.content, start=1):
        match block:
            case TextContent(text=text):
                pieces.say(text)
            case ImageContent(data=data, mime_type=kind):
                await pieces.file(data, kind, _name(f"image-{number}", kind))
            case AudioContent(data=data, mime_type=kind):
                await pieces.file(data, kind, _name(f"audio-{number}", kind))
            case ResourceLink():
                pieces.say(_link(block))
            case EmbeddedResource(resource=resource):
                await _resource(resource, pieces)
    if result.structured_content is not None and not any(isinstance(b, TextContent) for b in result.content):
        pieces.say(json.dumps(result.structured_content, ensure_ascii=False))
    return ToolOutput(text=pieces.text or NOTHING, parts=tuple(pieces.parts), is_error=result.is_error)


async def resource_output(result: ReadResourceResult, storage: Storage) -> ToolOutput:
    """What a resource holds."""
    pieces = _Pieces(storage)
    several = len(result.contents) > 1
    for resource in result.contents:
        await _resource(resource, pieces, headed=several)
    return ToolOutput(text=pieces.text or "(the resource is empty)", parts=tuple(pieces.parts))


async def _resource(resource: Any, pieces: _Pieces, *, headed: bool = True) -> None:
    match resource:
        case TextResourceContents(uri=uri, text=text):
            pieces.say(f"[{uri}]\n{text}" if headed else text)
        case BlobResourceContents(uri=uri, blob=blob, mime_type=kind):
            await pieces.file(blob, kind or "", _last_step(uri))


def _link(link: ResourceLink) -> str:
    about = ", ".join(part for part in (link.mime_type, _size(link.size), link.description) if part)
    title = link.title or link.name
    return f"[resource: {title}, {link.uri}{f' ({about})' if about else ''}]"


def _size(size: int | None) -> str:
    return "" if size is None else f"{size} bytes"


def _name(stem: str, media_type: str) -> str:
    return f"{stem}{mimetypes.guess_extension(media_type.partition(';')[0].strip().lower()) or ''}"


def _last_step(uri: str) -> str:
    """A name for what an address leads to."""
    try:
        step = PurePosixPath(unquote(urlsplit(uri).path)).name
    except ValueError:
        step = ""
    return "".join(c for c in step if c.isprintable())[:200] or "resource"


def _suffix(media_type: str, name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower() or mimetypes.guess_extension(media_type) or ""
    return suffix if suffix.isascii() and suffix[1:].isalnum() and len(suffix) <= 6 else ""


# ---- lists


def resource_lines(resources: Iterable[Any], templates: Iterable[Any]) -> list[str]:
    """One line for each resource and template."""
    lines = [_line(r.uri, r.title or r.name, r.mime_type, r.size, r.description) for r in resources]
    lines += [
        _line(t.uri_template, t.title or t.name, t.mime_type, None, t.description, what="template: ")
        for t in templates
    ]
    return lines


def _line(
    uri: str, name: str, kind: str | None, size: int | None, description: str | None, *, what: str = ""
) -> str:
    about = ", ".join(part for part in (kind, _size(size)) if part)
    text = f"- {what}{uri}  {name if name != uri else ''}{f' ({about})' if about else ''}"
    described = " ".join((description or "").split())[:160]
    return f"{text}: {described}" if described else text
