"""The word with which an agent says nothing: what its model is told of it, which replies are meant by it,
and what of a growing reply may be shown while it could still become that word. Pure."""

from __future__ import annotations

TOLD = (
    "You need not answer every message. When there is nothing to say that the people here would want to "
    "read, reply with exactly {token} and nothing else: then no message is sent. Never write {token} in a "
    "reply that says something."
)


def with_silence(system_prompt: str, token: str | None) -> str:
    """The system prompt with the word in it, if there is one: the same bytes for every request."""
    return system_prompt if token is None else f"{system_prompt}\n\n{TOLD.format(token=token)}".lstrip()


def silent(text: str, token: str | None) -> bool:
    """Whether the whole text is the word."""
    return token is not None and text.strip() == token


class HeldBack:
    """A reply as it grows. Pieces wait for as long as all of them could become the word."""

    __slots__ = ("_held", "_through", "_token")

    def __init__(self, token: str | None) -> None:
        self._token, self._held, self._through = token, "", token is None

    def anew(self) -> None:
        """The reply begins, or begins once more."""
        self._held, self._through = "", self._token is None

    def shown(self, piece: str) -> str:
        """What may be shown now that this piece has come; empty while nothing may."""
        if self._through:
            return piece
        self._held += piece
        if self._may_become_silence():
            return ""
        self._through = True
        return self._held

    def _may_become_silence(self) -> bool:
        token = self._token or ""
        return token.startswith(self._held.lstrip()) or self._held.strip() == token
