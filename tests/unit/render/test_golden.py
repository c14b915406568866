"""Realistic answers, on every platform, against the committed files of tests/golden/render."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from channels.render.html import safe_html
from channels.render.payloads import payloads
from channels.render.telegram import telegram_html_messages

GOLDEN = Path(__file__).parents[2] / "golden" / "render"
NAMES = sorted(path.stem for path in GOLDEN.glob("answers/*.md"))


def test_there_are_answers_and_every_one_has_its_file() -> None:
    assert len(NAMES) >= 40
    assert sorted(path.stem for path in GOLDEN.glob("expected/*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_renders_as_committed(name: str) -> None:
    markdown = (GOLDEN / "answers" / f"{name}.md").read_text(encoding="utf-8")
    expected = json.loads((GOLDEN / "expected" / f"{name}.json").read_text(encoding="utf-8"))
    assert payloads("telegram", markdown) == expected["telegram"]
    assert telegram_html_messages(markdown) == expected["telegram_html"]
    assert payloads("slack", markdown) == expected["slack"]
    assert payloads("discord", markdown) == expected["discord"]
    assert payloads("plain", markdown) == expected["plain"]
    assert safe_html(markdown) == expected["html"]
