"""The ids of the world that every server starts with. All are strings, as on the wire."""

from __future__ import annotations

APP, BOT = "900000000000000001", "900000000000000002"  # they differ, so that nobody mixes them up
OTHER_BOT, WEBHOOK = "900000000000000009", "900000000000000010"

ADA, BOB, CLEO, DAN, XENA = (f"30000000000000000{n}" for n in (1, 2, 3, 4, 5))

G1 = "100000000008388608"  # (id >> 22) is even: shard 0 of two
G2 = "100000000004194305"  # odd: shard 1 of two

GENERAL, APPROVALS, PRIVATE, FORUM, READONLY, ELSEWHERE = (f"20000000000000000{n}" for n in range(1, 7))
OPS, BOT_ROLE, ADMINS = (f"40000000000000000{n}" for n in (1, 2, 3))
G2_BOT_ROLE = "400000000000000012"
TAG = "500000000000000001"  # a tag of the forum
