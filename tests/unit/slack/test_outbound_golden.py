"""Cards, modals and the home as committed in tests/golden/slack/outbound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.slack.examples import HERE, examples
from tests.unit.slack.blockkit import checked_home, checked_message, checked_modal

EXAMPLES = examples()


def test_every_example_has_its_file_and_no_other_file_is_there() -> None:
    assert sorted(path.stem for path in Path(HERE).glob("*.json")) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_is_drawn_as_committed(name: str) -> None:
    committed = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(EXAMPLES[name])) == committed


@pytest.mark.parametrize("name", [name for name in sorted(EXAMPLES) if not name.startswith("manifest")])
def test_an_example_is_one_that_slack_takes(name: str) -> None:
    payload = EXAMPLES[name]
    check = {"modal": checked_modal, "home": checked_home}.get(payload.get("type"), checked_message)
    check(payload)
