"""CommonMark's block rules, asked by a line's first character.

The library asks every rule about every line, twice in a paragraph. Here only those rules are asked that
can begin with the line's first character, and a paragraph is looked at once, for its end and for the
underline that would make it a heading. The rules themselves are the library's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from markdown_it import rules_block
from markdown_it.common.utils import mdTrim
from markdown_it.parser_block import ParserBlock
from markdown_it.ruler import Ruler
from markdown_it.rules_block.state_block import StateBlock

BlockRule = Callable[[StateBlock, int, int, bool], bool]


class QuickBlocks(ParserBlock):
    """The block parser with one rule in each chain: the one that picks the rules to ask."""

    def __init__(self) -> None:
        super().__init__()
        self.ruler = _Chains()


class _Chains(Ruler[BlockRule]):
    def __init__(self) -> None:
        super().__init__()
        self.push("code", rules_block.code)  # by this name a state learns that indented code is on

    def getRules(self, chainName: str = "") -> list[BlockRule]:
        """The rules that may begin a block ("") or end one of the named kind."""
        return _CHAINS[chainName]


def _first(state: StateBlock, line: int) -> str:
    at = state.bMarks[line] + state.tShift[line]
    return state.src[at : at + 1]


def _begins(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    if _maybe_table(state, line, end) and rules_block.table(state, line, end, silent):
        return True
    if state.is_code_block(line):
        return rules_block.code(state, line, end, silent)
    for rule in _BEGINNINGS.get(_first(state, line), ()):
        if rule(state, line, end, silent):
            return True
    return _prose(state, line, end)


def _maybe_table(state: StateBlock, line: int, end: int) -> bool:
    """May the line below be the line between a table's head and its body?"""
    return line + 2 <= end and _first(state, line + 1) in _TABLE_MARKS


def _ends_paragraph(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    if _maybe_table(state, line, end) and rules_block.table(state, line, end, silent):
        return True
    return _ends_quote(state, line, end, silent)


def _ends_quote(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    return any(rule(state, line, end, silent) for rule in _INTERRUPTIONS.get(_first(state, line), ()))


def _ends_item(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    return any(rule(state, line, end, silent) for rule in _LIST_INTERRUPTIONS.get(_first(state, line), ()))


def _prose(state: StateBlock, start: int, end: int) -> bool:
    """A paragraph, or a heading that is underlined. Always succeeds."""
    if end != state.lineMax:  # the two rules look at different stretches
        lheading = rules_block.lheading(state, start, end, False)
        return lheading or rules_block.paragraph(state, start, end, False)
    around, state.parentType = state.parentType, "paragraph"
    level, line = 0, start + 1
    while line < end and not state.isEmpty(line):
        indent = state.sCount[line]
        if indent - state.blkIndent <= 3:
            if indent >= state.blkIndent and (level := _underline(state, line)):
                break
            if indent >= 0 and _ends_paragraph(state, line, end, True):
                break
        line += 1
    kind, tag = ("heading", f"h{level}") if level else ("paragraph", "p")
    content = mdTrim(state.getLines(start, line, state.blkIndent, False))
    state.line = line + 1 if level else line
    state.push(f"{kind}_open", tag, 1).map = [start, state.line]
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = content, [start, line], []
    state.push(f"{kind}_close", tag, -1)
    if level:  # after a paragraph the library leaves its own kind standing, and lists go by that
        state.parentType = around
    return True


def _underline(state: StateBlock, line: int) -> int:
    """The level of the heading that this line underlines; 0 for none."""
    mark = _first(state, line)
    if mark not in _UNDERLINES:
        return 0
    words = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]
    return _UNDERLINES[mark] if not words.rstrip(" \t").strip(mark) else 0


_UNDERLINES: Final = {"=": 1, "-": 2}
_TABLE_MARKS: Final = frozenset("|-:")
_DIGITS: Final[dict[str, tuple[BlockRule, ...]]] = dict.fromkeys("0123456789", (rules_block.list_block,))
_LIST_INTERRUPTIONS: Final[Mapping[str, tuple[BlockRule, ...]]] = {
    "`": (rules_block.fence,),
    "~": (rules_block.fence,),
    ">": (rules_block.blockquote,),
    "*": (rules_block.hr,),
    "-": (rules_block.hr,),
    "_": (rules_block.hr,),
}
_INTERRUPTIONS: Final[Mapping[str, tuple[BlockRule, ...]]] = {
    **_LIST_INTERRUPTIONS,
    **_DIGITS,
    "*": (rules_block.hr, rules_block.list_block),
    "-": (rules_block.hr, rules_block.list_block),
    "+": (rules_block.list_block,),
    "#": (rules_block.heading,),
}
_BEGINNINGS: Final[Mapping[str, tuple[BlockRule, ...]]] = {
    **_INTERRUPTIONS,
    "[": (rules_block.reference,),
}
_CHAINS: Final[Mapping[str, list[BlockRule]]] = {
    "": [_begins],
    "paragraph": [_ends_paragraph],
    "reference": [_ends_paragraph],
    "blockquote": [_ends_quote],
    "list": [_ends_item],
}
