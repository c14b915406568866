"""SQL lives in files, one statement each. `load` reads those of one dialect."""

from __future__ import annotations

from pathlib import Path


def load(dialect: str) -> dict[str, str]:
    """Statement by name: the file's name without `.sql`."""
    folder = Path(__file__).parent / dialect
    return {path.stem: path.read_text(encoding="utf-8").strip() for path in folder.glob("*.sql")}
