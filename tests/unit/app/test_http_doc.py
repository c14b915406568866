"""docs/http-api.md says what there is: every route, every code, and only those."""

from __future__ import annotations

import re
from pathlib import Path

from channels.web.wire import CLICK_STATUS
from gateway.outcome import Outcome

ROOT = Path(__file__).parents[3]
DOC = (ROOT / "docs" / "http-api.md").read_text()
SOURCES = "\n".join(path.read_text() for path in sorted((ROOT / "channels" / "web").glob("*.py")))


def test_every_route_is_documented_and_every_documented_one_exists() -> None:
    routes = set(re.findall(r'Route\("(/[^"]*)"', SOURCES))
    documented = set(re.findall(r"^\| `(?:GET|POST|DELETE) (/[^`]*)`", DOC, re.MULTILINE))
    of_the_page = {path for path in routes if path.startswith(("/page/", "/static/"))}
    assert documented == routes - of_the_page - {"/", "/favicon.ico"}


def test_every_error_code_is_documented() -> None:
    made = set(re.findall(r'ApiError\(\s*\d+,\s*"(\w+)"', SOURCES))
    made |= set(re.findall(r'^    code(?:, status)? = "(\w+)"', SOURCES, re.MULTILINE))
    of_the_page = {"wrong_token"}
    base = {"refused"}
    table = DOC[DOC.index("| status | `code` |") :]
    assert set(re.findall(r"`(\w+)`", table)) - {"code"} == made - of_the_page - base


def test_every_outcome_is_documented_with_its_status() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d{3}) \|", DOC, re.MULTILINE))
    assert {outcome: int(status) for outcome, status in rows.items()} == dict(CLICK_STATUS)
    assert all(f"`{outcome}`" in DOC for outcome in Outcome)
