"""How long an endpoint asks to wait. Pure but for the wall clock, which dates are measured against."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait as the headers say it: in ms, in seconds, or as a date. None where they do not."""
    if (ms := number(headers.get("retry-after-ms"))) is not None:
        return ms / 1000
    value = headers.get("retry-after")
    if (seconds := number(value)) is not None:
        return seconds
    date = email.utils.parsedate_tz(value) if value else None
    return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None


def number(value: str | None) -> float | None:
    """A plain number, or None: no sign, no exponent, nothing that only Python reads as a number."""
    return float(value) if value and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", value.strip()) else None
