"""Letting people in: an unknown person in a private chat gets a code, an admin confirms it.

What is stored is the person's id, never a name. A code holds for an hour and for one person; until
it is confirmed it gives nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.approvals import new_code
from gateway.clock import Clock
from gateway.messages import Actor, ThreadKey
from gateway.notices import person
from gateway.store.base import Store

CODE_SECONDS = 3600.0
MOST_OPEN = 50  # codes that may wait at a time, over all channels


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Who was let in, and the private chat in which to tell them."""

    actor: Actor
    name: str
    key: ThreadKey


LET_IN = "You may talk to me now."


class Pairing:
    """`is_admin`: who may confirm. `offered`: whether a channel gives codes at all."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        is_admin: Callable[[Actor], bool],
        offered: Callable[[str], bool],
    ) -> None:
        self._store, self._clock, self._is_admin, self._offered = store, clock, is_admin, offered

    async def may_talk(self, actor: Actor) -> bool:
        """Whether this person was let in."""
        return await self._store.is_admitted(actor)

    async def ask(self, actor: Actor, name: str, key: ThreadKey) -> str:
        """What to tell an unknown person; the code stays the same for an hour."""
        told = f"I do not know you. Your id here is {actor.user}."
        if not self._offered(actor.channel):
            return f"{told} Ask the person who runs me to add it."
        shown = person(actor, name)
        code = await self._store.pairing_code(
            actor, shown, key, new_code(), self._clock.now(), CODE_SECONDS, MOST_OPEN
        )
        if code is None:
            return f"{told} Too many people wait already; try again in an hour."
        return (
            f"{told} Give this code to a person who runs me: `{code}`. They confirm it with `/pair {code}`."
        )

    async def confirm(self, code: str, by: Actor) -> Admitted | str:
        """Let somebody in; or why not, in words."""
        if not self._is_admin(by):
            return "Only those who run me may let people in."
        admitted = await self._store.admit(code.casefold(), by, self._clock.now())
        if admitted is None:
            return f"There is no code {code!r} that still waits."
        actor, name, key = admitted
        return Admitted(actor=actor, name=name, key=key)
