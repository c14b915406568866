"""Text that cannot disguise itself: for card arguments and labels, and for a model's prose.

`visible` is strict: a card's reader must see every character that will run. `tame` is for
prose, where joiners inside emoji and marks inside Arabic or Hebrew are ordinary writing.
"""

from __future__ import annotations

import re

import regex

from channels.render.links import mixed_script_hosts

_HIDDEN = regex.compile(
    r"[\p{Cf}\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Co}\p{Default_Ignorable_Code_Point}\u2800--[\n\t]]", regex.V1
)
_BLANKS = regex.compile(r"\p{Zs}{10,}|\t{10,}|(?:[^\S\n]*\n){10,}")
_INDENT = 32  # columns at the start of a line that are still plainly an indent

# \p{Cc}\p{Cs}\p{Zl}\p{Zp}, changes of direction, annotations and tags, without newline and tab. Spelled
# out, because `re` searches a plain set many times faster than `regex` does.
_SUSPECT = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u206f\\ud800-\\udfff\\ufff9-\\ufffb\\U000e0000-\\U000e0fff]"
)
_CONTROLS = regex.compile(r"[\p{Cc}--[\n\t]]", regex.V1)
_BLANK_CONTROLS = "\x0b\x0c\x85\u2028\u2029"
_EMBEDDING = "\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_RIGHT_TO_LEFT = regex.compile(r"[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}]")
_FLAG = regex.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")


def escaped(char: str) -> str:
    """One character spelled out: `\\u{200B}`."""
    return f"\\u{{{ord(char):X}}}"


def visible(text: str) -> str:
    """The text with nothing left to hide in; newline and tab are kept.

    Format, control and default-ignorable characters appear as `\\u{200B}`, blank runs of 10 and
    more as `[400 spaces]` (an indent only beyond 32), and a host name that mixes scripts is
    followed by its real, encoded form.
    """
    text = _flagged(text)
    text = _BLANKS.sub(_counted, text)
    return _HIDDEN.sub(lambda match: escaped(match[0]), text)


def flat(text: str) -> str:
    """Inert text on one line: an option or a name cannot imitate the line below it."""
    return visible(text).replace("\n", " ↵ ").strip()


def tame(text: str) -> str:
    """Prose with control characters and changes of direction spelled out, the rest untouched."""
    if (text.isascii() and text.isprintable()) or _SUSPECT.search(text) is None:
        return text
    keep = {index for flag in _FLAG.finditer(text) for index in range(*flag.span())}
    if _RIGHT_TO_LEFT.search(text):
        keep.update(index for index, char in enumerate(text) if char in _EMBEDDING)
    return "".join(
        char
        if index in keep or not _SUSPECT.match(char)
        else " "
        if char in _BLANK_CONTROLS
        else escaped(char)
        for index, char in enumerate(text)
    )


def without_controls(text: str) -> str:
    """Any text with control characters spelled out: what a terminal may print. Keeps newline, tab."""
    return _CONTROLS.sub(lambda match: escaped(match[0]), text)


def _counted(match: regex.Match[str]) -> str:
    blanks = match[0]
    if "\n" in blanks:
        return f"\n[{blanks.count(chr(10))} line breaks]\n"
    at_line_start = match.start() == 0 or match.string[match.start() - 1] == "\n"
    if at_line_start and len(blanks) <= _INDENT and blanks.strip(" ") == "":
        return blanks
    return f"[{len(blanks)} {'tabs' if blanks[0] == chr(9) else 'spaces'}]"


def _flagged(text: str) -> str:
    out: list[str] = []
    done = 0
    for end, encoded in mixed_script_hosts(text):
        out += (text[done:end], f" [mixed scripts: {encoded}]")
        done = end
    return "".join((*out, text[done:]))
