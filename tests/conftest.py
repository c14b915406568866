"""What all tests share: hypothesis profiles, without time limits that a busy machine would break.

`THREADGATE_HYPOTHESIS=nightly make test ARGS=tests/unit/render` looks at 5,000 examples per property
instead of 100, each time at others. No test may pin a lower number.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

NIGHTLY_TEST = 4 * 3600  # seconds that one test may take when it has so many examples

settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", settings.get_profile("house"), max_examples=5000, print_blob=True)
PROFILE = os.environ.get("THREADGATE_HYPOTHESIS", "house")
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The time limit of pyproject.toml is for the quick profile."""
    if PROFILE == "nightly":
        for item in items:
            item.add_marker(pytest.mark.timeout(NIGHTLY_TEST))
