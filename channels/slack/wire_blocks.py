"""What blocks say, in the form in which Slack sends `text`. For messages that have words nowhere else.

Rich text holds characters as they are; they are escaped here, so that what comes out is decoded once
like any other text of the wire.
"""

from __future__ import annotations

from typing import Final

from channels.slack.wire_values import Node

_DEPTH: Final = 8  # of lists and quotes in one another


def blocks_text(blocks: Node) -> str:
    """The words of a list of blocks, one block a paragraph; "" when there are none."""
    parts = [_block(block) for block in blocks.nodes()]
    return "\n".join(part for part in parts if part.strip())


def escaped(text: str) -> str:
    """The three characters that Slack escapes, each once."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _block(block: Node) -> str:
    match block.text("type"):
        case "rich_text":
            return "\n".join(_rich(element, 0) for element in block.nodes("elements"))
        case "section":
            texts = [block.text("text", "text"), *(field.text("text") for field in block.nodes("fields"))]
            return "\n".join(filter(None, texts))
        case "header":
            return block.text("text", "text")
        case "context":
            return " ".join(filter(None, (element.text("text") for element in block.nodes("elements"))))
        case "markdown":
            return escaped(block.text("text"))
        case "image" | "video":
            return block.text("title", "text") or escaped(block.text("alt_text"))
    return ""


def _rich(element: Node, depth: int) -> str:
    if depth > _DEPTH:
        return ""
    match element.text("type"):
        case "rich_text_list":
            return _list(element, depth)
        case "rich_text_preformatted":
            return f"```\n{_inline(element)}\n```"
        case "rich_text_quote":
            return "\n".join(f"&gt; {line}" for line in _inline(element).split("\n"))
    return _inline(element)


def _list(element: Node, depth: int) -> str:
    ordered = element.text("style") == "ordered"
    indent = "    " * min(element.size("indent"), _DEPTH)
    first = element.size("offset") + 1
    return "\n".join(
        f"{indent}{f'{number}.' if ordered else '•'} {_rich(item, depth + 1)}"
        for number, item in enumerate(element.nodes("elements"), first)
    )


def _inline(element: Node) -> str:
    return "".join(_piece(piece) for piece in element.nodes("elements"))


def _piece(piece: Node) -> str:
    match piece.text("type"):
        case "text":
            return _styled(escaped(piece.text("text")), piece)
        case "link":
            label = escaped(piece.text("text"))
            url = escaped(piece.text("url"))
            return f"<{url}|{label}>" if label else f"<{url}>"
        case "user":
            return f"<@{piece.text('user_id')}>"
        case "usergroup":
            return f"<!subteam^{piece.text('usergroup_id')}>"
        case "channel":
            return f"<#{piece.text('channel_id')}>"
        case "broadcast":
            return f"<!{piece.text('range')}>"
        case "emoji":
            return f":{piece.text('name')}:"
        case "date":
            return escaped(piece.text("fallback"))
        case "color":
            return escaped(piece.text("value"))
    return ""


def _styled(text: str, piece: Node) -> str:
    """Marks go inside the blanks, where they would not count."""
    bare = text.strip()
    if not bare:
        return text
    marks = "".join(mark for style, mark in _MARKS if piece.flag("style", style))
    if piece.flag("style", "code"):
        marks = "`"
    start = text.index(bare)
    return f"{text[:start]}{marks}{bare}{marks[::-1]}{text[start + len(bare) :]}"


_MARKS: Final = (("bold", "*"), ("italic", "_"), ("strike", "~"))
