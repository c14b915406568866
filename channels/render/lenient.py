"""CommonMark's inline rules, lenient where people and models do not write CommonMark.

Three differences, each towards what the author meant:

- Bold, strike and (between CJK letters) italics may be glued to letters behind punctuation:
  `**Result:**passed`, `重要：**注意。**之后`. CommonMark leaves raw asterisks there.
- `_` inside paths and dunder names (`src/__init__.py`) and `*` between digits (`2**10`) are
  no markup.
- A bare web address is one piece: nothing inside it is markup.

Speed: the text between two marks is passed over in one search, and only the rule that the mark
belongs to is asked. The library asks every rule at every mark.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt, rules_inline
from markdown_it.common.utils import isWhiteSpace
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline.state_inline import Scanned, StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

_URL = re.compile(r"[^\s<>\[\]`|\"*\\^{}\x00-\x1f\x7f、。，！？；：（）「」『』【】《》“”‘’…]+")
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_OPENS_AFTER = frozenset("\"'`$#@+-~<“‘")
_NEVER_CLOSES_AFTER = frozenset("=/<\\")
_MANY_BRACKETS = 10_000  # in one paragraph: no prose, and label search would be quadratic


class LenientState(StateInline):
    """The inline state with forgiving delimiter runs."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """What a run of `*`, `_` or `~` at `start` may do."""
        src, marker, end = self.src, self.src[start], start + 1
        while end < self.posMax and src[end] == marker:
            end += 1
        before = src[start - 1] if start else " "
        after = src[end] if end < self.posMax else " "
        scanned = _flanking(before, after, canSplitWord, end - start)
        if marker == "_":
            return self._underscores(scanned, before, after, end)
        if before.isspace() or after.isspace() or (scanned.can_open and scanned.can_close):
            if before.isdigit() and after.isdigit():
                return Scanned(False, False, scanned.length)
            return scanned
        if scanned.length < 2 and not (_CJK.match(before) or _CJK.match(after)):
            return scanned
        return Scanned(
            scanned.can_open or _opens_words(before, after),
            scanned.can_close or _closes_words(before, after),
            scanned.length,
        )

    def _underscores(self, scanned: Scanned, before: str, after: str, end: int) -> Scanned:
        beyond = self.src[end + 1] if end + 1 < self.posMax else " "
        in_path = (
            after in "/\\" or (after == "." and beyond.isalnum()) or (after == "(" and scanned.length == 2)
        )
        return Scanned(
            scanned.can_open and before not in "/\\.@", scanned.can_close and not in_path, scanned.length
        )


class LenientInline(ParserInline):
    """The inline parser over `LenientState`. Its rules are `_RULES`; the rulers only serve look-ahead."""

    def __init__(self) -> None:
        super().__init__()
        names = "text newline escape backticks strikethrough emphasis link image autolink entity"
        self.ruler.enableOnly(names.split())
        self.ruler2.enableOnly(["balance_pairs", "strikethrough", "emphasis"])

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        """Parse the content of one block into `tokens`. Neighbouring texts are not joined."""
        if _MARK.search(src) is None or src.count("[") > _MANY_BRACKETS:
            if src:
                token = Token("text", "", 0)
                token.content = src
                tokens.append(token)
            return tokens
        state = LenientState(src, md, env, tokens)
        self.tokenize(state)
        if "*" in src or "_" in src or "~~" in src:
            for rule in self.ruler2.getRules(""):
                rule(state)
        return state.tokens

    def tokenize(self, state: StateInline) -> None:
        """Generate the tokens of state.src from state.pos to state.posMax."""
        if state.level >= state.md.options["maxNesting"]:
            super().tokenize(state)
            return
        src, pos, end = state.src, state.pos, state.posMax
        while pos < end:
            found = _MARK.search(src, pos, end)
            if found is None:
                state.append_pending(src[pos:end])
                break
            at = found.start()
            if at > pos:
                state.append_pending(src[pos:at])
            state.pos = at
            if _RULES[src[at]](state, False):
                pos = state.pos
            else:
                state.append_pending(src[at])
                pos = at + 1
        state.pos = max(pos, end)
        if state.pending:
            state.pushPending()


@lru_cache(maxsize=4096)
def _kind(char: str) -> str:
    """ "blank", "mark" (punctuation or a symbol) or "" as CommonMark tells characters apart."""
    if isWhiteSpace(ord(char)):
        return "blank"
    return "mark" if unicodedata.category(char)[0] in "PS" else ""


@lru_cache(maxsize=4096)
def _flanking(before: str, after: str, can_split_word: bool, length: int) -> Scanned:
    """CommonMark's own rule for a run of `length` marks between two characters."""
    left, right = _kind(before), _kind(after)
    opens = right == "" or (right == "mark" and left != "")
    closes = left == "" or (left == "mark" and right != "")
    return Scanned(
        opens and (can_split_word or not closes or left == "mark"),
        closes and (can_split_word or not opens or right == "mark"),
        length,
    )


def _closes_words(before: str, after: str) -> bool:
    return (
        after.isalnum()
        and unicodedata.category(before) not in ("Ps", "Pi")
        and before not in _NEVER_CLOSES_AFTER
        and not before.isalnum()
    )


def _opens_words(before: str, after: str) -> bool:
    return before.isalnum() and (after in _OPENS_AFTER or unicodedata.category(after) in ("Ps", "Pi"))


def _bare_url(state: StateInline, silent: bool) -> bool:
    """`https://...` in running text becomes a link token, whole."""
    pos = state.pos
    if silent or state.linkLevel or state.src[pos] != ":" or state.src[pos : pos + 3] != "://":
        return False
    scheme = re.search(r"(?i)(?<![a-z0-9+.-])https?$", state.pending[-6:])
    if scheme is None:
        return False
    found = _URL.match(state.src, pos + 3, state.posMax)
    rest = _trimmed(found[0]) if found else ""
    if not rest or not rest[0].isalnum():
        return False
    url = f"{scheme[0]}://{rest}"
    state.pending = state.pending[: -len(scheme[0])]
    token = state.push("link_open", "a", 1)
    token.attrs = {"href": state.md.normalizeLink(url)}
    token.info = "auto"
    text = state.push("text", "", 0)
    text.content = url
    state.push("link_close", "a", -1)
    state.pos = pos + 3 + len(rest)
    return True


def _trimmed(address: str) -> str:
    """Without the punctuation of the sentence around it, and without unpaired brackets."""
    address = address.partition("~~")[0]
    opened, closed = address.count("("), address.count(")")
    while address:
        if address[-1] in ".,;:!?'_~&":
            address = address[:-1]
        elif address[-1] == ")" and closed > opened:
            address, closed = address[:-1], closed - 1
        else:
            break
    return address


# The marks at which a rule may apply, and that rule. Everything else is text.
_MARK: Final = re.compile(r"[\n\\`~*_\[<&]|!(?=\[)|:(?=//)")
_RULES: Final[dict[str, Callable[[StateInline, bool], bool]]] = {
    "\n": rules_inline.newline,
    "\\": rules_inline.escape,
    "`": rules_inline.backtick,
    "~": rules_inline.strikethrough.tokenize,
    "*": rules_inline.emphasis.tokenize,
    "_": rules_inline.emphasis.tokenize,
    "[": rules_inline.link,
    "!": rules_inline.image,
    "<": rules_inline.autolink,
    "&": rules_inline.entity,
    ":": _bare_url,
}
