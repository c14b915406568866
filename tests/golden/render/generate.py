"""Writes expected/*.json anew from answers/*.md: `python tests/golden/render/generate.py`.

Read the difference before it is committed: it is what people will see.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))

from channels.render.html import safe_html  # noqa: E402 - the path comes first
from channels.render.payloads import payloads  # noqa: E402
from channels.render.telegram import telegram_html_messages  # noqa: E402


def rendered(markdown: str) -> str:
    """All that is made of one answer, as the text of its expected file."""
    shown = {
        "telegram": payloads("telegram", markdown),
        "telegram_html": telegram_html_messages(markdown),
        "slack": payloads("slack", markdown),
        "discord": payloads("discord", markdown),
        "plain": payloads("plain", markdown),
        "html": safe_html(markdown),
    }
    return json.dumps(shown, indent=1, ensure_ascii=True) + "\n"


def main() -> None:
    """One file per answer."""
    for answer in sorted(HERE.glob("answers/*.md")):
        text = rendered(answer.read_text(encoding="utf-8"))
        (HERE / "expected" / f"{answer.stem}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
