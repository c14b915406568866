"""Which addresses may be opened, and whether a link's label lies about where it goes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import urlsplit

import regex

SAFE_SCHEMES = frozenset({"http", "https", "mailto"})

_WORD = r"\p{L}\p{N}\p{M}_\u00ad\u200b-\u200d\u2060"
_LABEL = rf"[{_WORD}][{_WORD}-]*+"  # possessive, and only from a word's start: linear on any text
_HOST = regex.compile(rf"(?<![{_WORD}])(?P<scheme>(?<=://))?(?P<host>{_LABEL}(?:[.。．｡]{_LABEL})++)")
_IGNORABLE = regex.compile(r"[\p{Cf}\p{Default_Ignorable_Code_Point}]+")
_SPELLED_OUT = re.compile(r"\\u\{[0-9A-F]+\}")
# Names that end like a file are names of files, although some of these endings can be registered.
_FILE_ENDINGS = re.compile(
    "c|cc|cfg|conf|cpp|cs|css|csv|go|gz|h|hpp|html|ini|ipynb|java|js|json|jsx|kt|lock|log|lua|md|mjs|php|pl|py"
    "|rb|rs|rst|scala|sh|so|sql|svg|swift|tar|toml|ts|tsx|txt|vue|xml|yaml|yml|zip"
)
_SCRIPTS = {
    name: regex.compile(rf"\p{{Script={name}}}")
    for name in (
        *("Latin", "Cyrillic", "Greek", "Armenian", "Georgian", "Hebrew", "Arabic", "Devanagari", "Thai"),
        *("Cherokee", "Coptic", "Lisu", "Han", "Hiragana", "Katakana", "Hangul", "Bopomofo"),
    )
}
# Scripts that are written together in one name (Unicode TR 39, "highly restrictive").
_TOGETHER = (
    {"Latin", "Han", "Hiragana", "Katakana"},
    {"Latin", "Han", "Bopomofo"},
    {"Latin", "Han", "Hangul"},
)


def openable(href: str, schemes: frozenset[str] = SAFE_SCHEMES) -> bool:
    """May this address be a link? Absolute, of a safe scheme, and without blanks or controls."""
    scheme, colon, rest = href.partition(":")
    if not colon or scheme.lower() not in schemes or not rest.strip("/"):
        return False
    return href.isprintable() and " " not in href


def host_of(href: str) -> str:
    """The host in its encoded form, lower case, without `www.`; empty when there is none."""
    try:
        host = urlsplit(href).hostname or ""
    except ValueError:  # a malformed IPv6 host
        return ""
    return _encoded(host).removeprefix("www.")


def disguised(label: str, href: str) -> bool:
    """Does the label name an address other than the link's, or one in mixed scripts?

    A label that starts like an address ("https://bank.example", "www.bank.example/login",
    "bank.example") must agree with the host of `href`. File names are not addresses.
    """
    clean = _SPELLED_OUT.sub("", _IGNORABLE.sub("", label))
    mixed = {host for _, host in mixed_script_hosts(clean)}
    if mixed:
        return True
    target = host_of(href)
    for found in _HOST.finditer(clean):
        host = found["host"].lower()
        ending = _dotted(host).rsplit(".", 1)[-1]
        if found["scheme"] is None and (
            _FILE_ENDINGS.fullmatch(ending) or not ending.isalpha() or len(ending) < 2
        ):
            continue
        if href.startswith("mailto:") and "@" in clean:
            if clean.strip().lower() != href[7:].partition("?")[0].lower():
                return True
            continue
        in_path = found["scheme"] is None and clean[found.start() - 1 : found.start()] in (
            "/",
            "?",
            "&",
            "=",
            "#",
        )
        if not in_path and _encoded(host).removeprefix("www.") != target:
            return True
    return False


def mixed_script_hosts(text: str) -> Iterator[tuple[int, str]]:
    """(end position, encoded host) for every host name whose letters come from mixed scripts."""
    if text.isascii():
        return
    for found in _HOST.finditer(text):
        host = found["host"]
        names = [host] if found["scheme"] is not None else _dotted(host).split(".")
        if not host.isascii() and any(_mixed(name) for name in names):
            yield found.end(), _encoded(host)


def _mixed(host: str) -> bool:
    scripts = {name for name, pattern in _SCRIPTS.items() if pattern.search(host)}
    return len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER)


def _dotted(host: str) -> str:
    return re.sub("[。．｡]", ".", host)


def _encoded(host: str) -> str:
    labels = _dotted(unicodedata.normalize("NFKC", host).lower()).split(".")
    return ".".join(
        label if label.isascii() else "xn--" + label.encode("punycode", "replace").decode()
        for label in labels
    )
