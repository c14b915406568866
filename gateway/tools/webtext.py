"""From what a web server sends to text that a model reads. Pure."""

from __future__ import annotations

import codecs
from email.message import Message
from typing import Final

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Final = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/toml",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-www-form-urlencoded",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
_CHARSETS: Final = (
    *("ascii", "utf", "iso8859", "iso2022", "cp", "koi8", "mac", "tis", "kz1048", "ptcp154", "hp-roman8"),
    *("gb", "hz", "big5", "shift_jis", "euc", "johab"),
)


def readable(body: bytes, content_type: str) -> str | None:
    """The text of a body: HTML as Markdown, other text as it is; None for what is no text."""
    kind, charset = _read_type(content_type)
    if kind in _HTML:
        return _page(body, charset)
    textual = kind.startswith("text/") or kind.endswith(("+json", "+xml")) or kind in _TEXT
    if kind and not textual:
        return None
    if not kind and _looks_binary(body):
        return None
    return body.decode(charset or "utf-8-sig", "replace")


def is_page(content_type: str) -> bool:
    """Whether this is HTML."""
    return _read_type(content_type)[0] in _HTML


def _read_type(content_type: str) -> tuple[str, str]:
    """The media type in lower case, and a character set that exists, empty for none."""
    header = Message()
    header["content-type"] = content_type.replace("\r", " ").replace("\n", " ")
    charset = header.get_content_charset() or ""
    try:
        charset = codecs.lookup(charset).name if charset else ""
    except LookupError:
        charset = ""
    if not charset.startswith(_CHARSETS):  # Python's codecs do other things as well, some of them slowly
        charset = ""
    return (header.get_content_type() if "/" in content_type else ""), charset


def _looks_binary(body: bytes) -> bool:
    if b"\0" in body:
        return True
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _page(body: bytes, charset: str) -> str:
    from justhtml import JustHTML  # here, because only who reads pages pays for it

    page = JustHTML(body, encoding=charset or None)
    title = page.query_one("title")
    head = " ".join(title.to_text().split()) if title is not None else ""
    text = page.to_markdown().strip()
    return f"Title: {head}\n\n{text}" if head else text
