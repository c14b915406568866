"""Rate limits by route and channel, and the global one; headers for every answer."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from tests.platforms.discord import limits
from tests.platforms.discord.asking import Endpoint
from tests.platforms.discord.errors import Refused, too_many

PLENTY = 1_000  # what a bucket says when limits are not enforced


class Rates:
    """Sliding windows. `enforced`: off by default, so that only tests of rates have to wait."""

    def __init__(self) -> None:
        self.enforced = False
        self._buckets: dict[str, list[float]] = defaultdict(list)
        self._global: list[float] = []

    def headers(self, endpoint: Endpoint, params: dict[str, str], now: float) -> dict[str, str]:
        """The X-RateLimit headers after a call."""
        key = self._key(endpoint, params)
        bucket = hashlib.sha256(endpoint.name.encode()).hexdigest()[:24]
        if not self.enforced:
            return _headers(bucket, PLENTY, PLENTY - 1, 1.0, now)
        most, window = limits.RATES.get(endpoint.name, limits.DEFAULT_RATE)
        taken = [at for at in self._buckets[key] if at > now - window]
        reset = max(0.001, taken[0] + window - now) if taken else window
        return _headers(bucket, most, max(0, most - len(taken)), reset, now)

    def take(self, endpoint: Endpoint, params: dict[str, str], now: float) -> None:
        """Count a call. Raises the 429."""
        if not self.enforced:
            return
        if not endpoint.open:
            self._global = [at for at in self._global if at > now - 1.0]
            if len(self._global) >= limits.GLOBAL_RATE:
                raise too_many(max(0.001, self._global[0] + 1.0 - now), scope="global")
            self._global.append(now)
        most, window = limits.RATES.get(endpoint.name, limits.DEFAULT_RATE)
        key = self._key(endpoint, params)
        taken = self._buckets[key] = [at for at in self._buckets[key] if at > now - window]
        if len(taken) >= most:
            raise _with_headers(too_many(max(0.001, taken[0] + window - now)), most)
        taken.append(now)

    @staticmethod
    def _key(endpoint: Endpoint, params: dict[str, str]) -> str:
        major = "+".join(params.get(name, "") for name in ("channel", "guild", "token"))
        return f"{endpoint.name}:{major}"


def _with_headers(refused: Refused, most: int) -> Refused:
    refused.headers |= {"X-RateLimit-Limit": str(most), "X-RateLimit-Remaining": "0"}
    return refused


def _headers(bucket: str, most: int, left: int, reset: float, now: float) -> dict[str, str]:
    return {
        "X-RateLimit-Bucket": bucket,
        "X-RateLimit-Limit": str(most),
        "X-RateLimit-Remaining": str(left),
        "X-RateLimit-Reset": f"{now + reset:.3f}",
        "X-RateLimit-Reset-After": f"{reset:.3f}",
    }
