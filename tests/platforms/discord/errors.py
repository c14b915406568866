"""The error answers of the API, by code."""

from __future__ import annotations

from tests.platforms.discord.limits import Json

WORDS = {
    0: "401: Unauthorized",
    10003: "Unknown Channel",
    10004: "Unknown Guild",
    10007: "Unknown Member",
    10008: "Unknown Message",
    10011: "Unknown Role",
    10013: "Unknown User",
    10014: "Unknown Emoji",
    10015: "Unknown Webhook",
    10062: "Unknown interaction",
    10063: "Unknown application command",
    20012: "You are not authorized to perform this action on this application",
    30046: "Maximum number of edits to messages older than 1 hour reached. Try again later.",
    40005: "Request entity too large",
    40060: "Interaction has already been acknowledged.",
    50001: "Missing Access",
    50003: "Cannot execute action on a DM channel",
    50005: "Cannot edit a message authored by another user",
    50006: "Cannot send an empty message",
    50007: "Cannot send messages to this user",
    50008: "Cannot send messages in a non-text channel",
    50013: "Missing Permissions",
    50021: "Cannot execute action on a system message",
    50024: "Cannot execute action on this channel type",
    50027: "Invalid Webhook Token",
    50035: "Invalid Form Body",
    50083: "Thread is archived",
    50109: "The request body contains invalid JSON.",
    160002: "Cannot reply without permission to read message history",
    160004: "A thread has already been created for this message",
    160005: "This thread is locked",
}
STATUS = {0: 401, 30046: 429, 50027: 401, 40005: 413} | dict.fromkeys(
    (20012, 50001, 50003, 50005, 50007, 50013, 50021), 403
)


class Refused(Exception):
    """One error answer. `errors`: the tree of a 50035; `headers`: more of them."""

    def __init__(
        self,
        code: int,
        status: int | None = None,
        *,
        errors: Json | None = None,
        more: Json | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.code = code
        self.status = status or STATUS.get(code) or (404 if 10000 <= code < 11000 else 400)
        self.headers = headers or {}
        self.body: Json = {"message": WORDS.get(code, "General Error"), "code": code} | (more or {})
        if errors:
            self.body["errors"] = errors
        super().__init__(f"{self.status} {self.body}")


def too_many(retry_after: float, *, scope: str = "user", via: bool = True, code: int = 0) -> Refused:
    """A 429. `scope`: user, shared or global. Without `via` it looks like a ban by Cloudflare."""
    headers = {
        "Retry-After": str(max(1, round(retry_after))),
        "X-RateLimit-Scope": scope,
        "X-RateLimit-Reset-After": f"{retry_after:.3f}",
    }
    if via:
        headers["Via"] = "1.1 google"
    more: Json = {
        "message": WORDS[code] if code else "You are being rate limited.",
        "retry_after": retry_after,
        "global": scope == "global",
    }
    if scope == "global":
        headers["X-RateLimit-Global"] = "true"
    return Refused(code, 429, more=more, headers=headers)
