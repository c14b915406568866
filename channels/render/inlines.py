"""The library's inline tokens as inline pieces of the tree."""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it.token import Token

from channels.render.blocks import Break, Code, Emphasis, Inline, Link, Strike, Strong, Text
from channels.render.inert import tame

_TEXTS = frozenset({"text", "text_special"})
_WRAPPERS: dict[str, type[Strong | Emphasis | Strike]] = {
    "strong_open": Strong,
    "em_open": Emphasis,
    "s_open": Strike,
}


def inlines(tokens: Sequence[Token]) -> tuple[Inline, ...]:
    """Pairs opening and closing tokens and joins neighbouring texts.

    `out` holds the pieces of the innermost open token, `stack` the open tokens with the pieces around them.
    """
    if len(tokens) == 1 and tokens[0].type == "text":
        return (Text(text=tame(tokens[0].content)),)
    out: list[Inline] = []
    stack: list[tuple[Token, list[Inline]]] = []
    words: list[str] = []
    for token in tokens:
        if token.type in _TEXTS:
            words.append(token.content)
            continue
        if text := "".join(words):
            out.append(Text(text=tame(text)))
        words.clear()
        if token.nesting == 1:
            stack.append((token, out))
            out = []
        elif token.nesting == -1:
            opening, around = stack.pop()
            around.append(_wrapped(opening, tuple(out)))
            out = around
        else:
            out.append(_leaf(token, stack))
    if text := "".join(words):
        out.append(Text(text=tame(text)))
    return tuple(out)


def _wrapped(opening: Token, children: tuple[Inline, ...]) -> Inline:
    if opening.tag == "a":
        href = str(opening.attrGet("href") or "")
        return Link(href=href, children=children or (Text(text=tame(href)),), bare=opening.info == "auto")
    match children:
        case (Strong(children=inner),) if opening.type == "em_open":  # `***both***`: bold goes outside
            return Strong(children=(Emphasis(children=inner),))
        case _:
            return _WRAPPERS[opening.type](children=children)


def _leaf(token: Token, stack: Sequence[tuple[Token, list[Inline]]]) -> Inline:
    match token.type:
        case "code_inline":
            return Code(text=token.content)
        case "softbreak" | "hardbreak":
            return Break()
        case "image":
            label = Text(text=tame(token.content.replace("\n", " ").strip()) or "image")
            src = str(token.attrGet("src") or "")
            in_link = any(opening.tag == "a" for opening, _ in stack)
            return label if in_link or not src else Link(href=src, children=(label,))
        case other:
            raise AssertionError(f"unknown inline token {other}")
