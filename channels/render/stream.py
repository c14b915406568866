"""An answer that is still being written, shown so that it never looks broken.

`presentable` cuts off what cannot be shown yet (half a link, the head of a table, a lone marker)
and closes what is open (a fence, bold, a code span). It returns Markdown, for any renderer.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^(?P<lead>(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*)(?P<mark>`{3,}(?=[^`]*$)|~{3,})")
_HALF_MARKER = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)]?)[ \t]*(?:\[[ xX]?\]?[ \t]*)?|#{1,6}[ \t]*|[=|`~_*+ -]*)$"
)
_HALF_LINK = re.compile(
    r"!?\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*(?:\](?:\([^()\s]*(?:\s[^()\n]*)?|\[[^\[\]\n]*)?)?$"
)
_HALF_TAIL = re.compile(r"(?:!|<[A-Za-z/][^\s<>]*|&[#\w]{0,10}|\\|\u200d)$")
_DELIMITER_ROW = re.compile(r"^[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_MARKS_AT_END = re.compile(r"(?<!\\)(?:\*+|_+|~+|`+)$")
_MARK = re.compile(r"(?P<code>`+)|(?P<pair>\*\*|~~|__)|(?P<one>[*_])|\\.")


def presentable(partial_markdown: str) -> str:
    """The part of an unfinished answer that can be shown now, as complete Markdown; may be empty."""
    lines = partial_markdown.replace("\r\n", "\n").split("\n")
    opened, settled = _fences(lines)
    if opened is not None:
        return _with_fence_closed(lines, *opened)
    done, rest = lines[:settled], _without_half_table(lines[settled:])
    rest = _without_half_markers(rest)
    start = max((number + 1 for number, line in enumerate(rest) if _ends_block(line)), default=0)
    block = _without_half_inline("\n".join(rest[start:])).split("\n")
    return "\n".join((*done, *rest[:start], *_without_half_markers(block))).rstrip()


def _without_half_markers(lines: list[str]) -> list[str]:
    while lines and _HALF_MARKER.match(lines[-1]):
        lines = lines[:-1]
    return lines


def _fences(lines: list[str]) -> tuple[tuple[int, str, str] | None, int]:
    """The fence that is open at the end (its line, what stands before it, its mark), and the
    number of lines up to the last closed one."""
    opened: tuple[int, str, str] | None = None
    settled = 0
    for number, line in enumerate(lines):
        if opened is None:
            found = _FENCE.match(line)
            if found is not None:
                opened = number, found["lead"], found["mark"]
        else:
            bare = line.strip(" \t>")
            if len(bare) >= len(opened[2]) and not bare.strip(opened[2][0]):
                opened, settled = None, number + 1
    return opened, settled


def _with_fence_closed(lines: list[str], number: int, lead: str, mark: str) -> str:
    if number == len(lines) - 1:  # the info string may still grow
        return "\n".join(lines[:-1]).rstrip()
    if not lines[-1].strip(" \t>").strip(mark[0]):  # nothing yet, or the start of the closing mark
        lines = lines[:-1]
    indent = re.sub(r"[^ \t>]", " ", lead)
    return "\n".join((*lines, indent + mark))


def _without_half_table(lines: list[str]) -> list[str]:
    """Without a table's head that may still become one, and without a row that is not complete."""
    if not lines:
        return lines
    ended = not lines[-1].strip(" \t>")  # the last row has its newline
    end = len(lines) - ended
    start = end
    while start > 0 and lines[start - 1].lstrip(" \t>").startswith("|"):
        start -= 1
    if start == end:
        return lines[:-1] if len(lines) > 1 and _is_table_row(lines) else lines
    rows = lines[start : end if ended else end - 1]
    if len(rows) >= 2 and not _DELIMITER_ROW.match(rows[1]):
        return lines
    return lines[: start + len(rows)] if len(rows) > 2 else lines[:start]


def _is_table_row(lines: list[str]) -> bool:
    """Is the last line a row of a table written without outer bars?"""
    if "|" not in lines[-1] and "|" not in lines[-2]:
        return False
    at = len(lines) - 1
    while at > 0 and lines[at].strip():
        if "|" in lines[at] and _DELIMITER_ROW.match(lines[at]):
            return True
        at -= 1
    return False


def _ends_block(line: str) -> bool:
    return not line.strip(" \t>") or line.lstrip(" \t>").startswith(("#", "|"))


def _without_half_inline(block: str) -> str:
    """One block's text with half links cut off and open marks closed."""
    code = _open_marks(block)
    if not (code and code[-1].startswith("`")):
        for half in (_HALF_LINK, _HALF_TAIL):
            line_start = block.rfind("\n") + 1
            found = half.search(block, line_start)
            if found is not None:
                block = block[: found.start()]
    block = block.rstrip(" \t")
    trimmed = _MARKS_AT_END.sub("", block) if _open_at_end(block) else block
    return trimmed.rstrip() + "".join(reversed(_open_marks(trimmed.rstrip())))


def _open_at_end(block: str) -> bool:
    """Does the text end in marks that open something, or might still grow to another mark?"""
    found = _MARKS_AT_END.search(block)
    if found is None:
        return False
    before = block[: found.start()]
    opened = _open_marks(before)
    return not opened or opened[-1] != found[0]


def _open_marks(block: str) -> list[str]:
    """The marks that are open at the end of the text, outermost first."""
    stack: list[str] = []
    for found in _MARK.finditer(block):
        mark = found[0]
        if stack and stack[-1].startswith("`"):
            if mark == stack[-1]:
                stack.pop()
            continue
        before = block[found.start() - 1 : found.start()] or " "
        after = block[found.end() : found.end() + 1] or " "
        if found["code"]:
            stack.append(mark)
        elif mark.startswith("\\"):
            continue
        elif mark in stack and not before.isspace():
            del stack[stack.index(mark) :]
        elif not after.isspace() and (found["pair"] or not before.isalnum()):
            stack.append(mark)
    return stack
