"""Who people are and in which groups: looked up when it is needed, bounded, and remembered for a while."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from channels.base import Actor, ChannelBusy, ChannelDown, ChannelError
from channels.slack.limits import LOOKUP_SECONDS

log = logging.getLogger("channels.slack")

KEPT: Final = 2000  # people remembered
PERSON_SECONDS: Final = 600.0  # for which one person is remembered
STALE_SECONDS: Final = 3600.0  # for which that counts when Slack does not tell anew
GROUPS_SECONDS: Final = 60.0  # for which all groups are


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """`guest`: no full member of our workspace. `external`: of another organisation. `words`: what else
    counts as a role: admin, owner, guest, external. `known`: False while Slack has not told yet."""

    name: str = ""
    guest: bool = True
    external: bool = False
    known: bool = True
    words: frozenset[str] = frozenset()


STRANGER: Final = Person()  # of whom nothing is known: no member, for safety's sake
UNKNOWN: Final = Person(known=False)  # the same, for now


class People:
    """Look-ups over `user(id)` (users.info) and `groups()` (group id -> user ids). They raise
    ChannelError."""

    def __init__(
        self,
        *,
        user: Callable[[str], Awaitable[Mapping[str, Any]]],
        groups: Callable[[], Awaitable[Mapping[str, Sequence[str]]]],
        monotonic: Callable[[], float],
    ) -> None:
        self._ask_user, self._ask_groups, self._monotonic = user, groups, monotonic
        self._known: OrderedDict[Actor, tuple[float, Person]] = OrderedDict()
        self._asking: dict[Actor, asyncio.Task[Person]] = {}
        self._groups: tuple[float, Mapping[str, frozenset[str]]] | None = None  # user -> groups
        self._asking_groups: asyncio.Task[Mapping[str, frozenset[str]]] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._changes = 0  # what was asked before the last one may be out of date

    async def quickly(self, actor: Actor, team: str, within: float = LOOKUP_SECONDS) -> Person:
        """The person as far as can be told in `within` seconds, or could not long ago. UNKNOWN when Slack is
        too slow or in trouble, STRANGER when it does not tell at all. Never raises."""
        try:
            async with asyncio.timeout(within):
                return await self.person(actor, team)
        except (ChannelError, TimeoutError) as error:
            log.info("slack: who %s is could not be told: %s", actor.user, error or "it took too long")
            known = self._known.get(actor)
            if known is not None and self._monotonic() - known[0] < STALE_SECONDS:
                return known[1]
            return UNKNOWN if isinstance(error, ChannelBusy | ChannelDown | TimeoutError) else STRANGER

    async def person(self, actor: Actor, team: str) -> Person:
        """The person. `team`: the workspace whose member they should be. Raises ChannelError."""
        known = self._known.get(actor)
        if known is not None and self._monotonic() - known[0] < PERSON_SECONDS:
            return known[1]
        task = self._asking.get(actor)
        if task is None:
            task = self._asking[actor] = asyncio.create_task(self._look_up(actor, team), name="slack person")
            self._watch(task)
        return await asyncio.shield(task)  # others may wait for it too

    async def roles(self, actor: Actor, team: str) -> frozenset[str]:
        """The ids of the person's user groups, and words for their standing. Raises ChannelError."""
        person = await self.person(actor, team)
        groups = await self._all_groups()
        return groups.get(actor.user, frozenset()) | person.words

    def forget(self) -> None:
        """Somebody's standing or a group has changed: ask again."""
        self._changes += 1
        self._asking_groups = None
        self._asking.clear()
        self._known.clear()
        self._groups = None

    async def close(self) -> None:
        """End what is still being asked."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _watch(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._asked)

    def _asked(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        for actor in [actor for actor, asking in self._asking.items() if asking is task]:
            del self._asking[actor]
        if self._asking_groups is task:
            self._asking_groups = None
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have

    async def _look_up(self, actor: Actor, team: str) -> Person:
        changes = self._changes
        person = person_of(await self._ask_user(actor.user), actor, team)
        if changes != self._changes:
            return person
        self._known[actor] = (self._monotonic(), person)
        self._known.move_to_end(actor)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return person

    async def _all_groups(self) -> Mapping[str, frozenset[str]]:
        if self._groups is not None and self._monotonic() - self._groups[0] < GROUPS_SECONDS:
            return self._groups[1]
        if self._asking_groups is None:
            self._asking_groups = asyncio.create_task(self._look_up_groups(), name="slack groups")
            self._watch(self._asking_groups)
        return await asyncio.shield(self._asking_groups)

    async def _look_up_groups(self) -> Mapping[str, frozenset[str]]:
        changes, of = self._changes, dict[str, set[str]]()
        for group, users in (await self._ask_groups()).items():
            for user in users:
                of.setdefault(user, set()).add(group)
        found = {user: frozenset(groups) for user, groups in of.items()}
        if changes == self._changes:
            self._groups = (self._monotonic(), found)
        return found


def person_of(user: Mapping[str, Any], actor: Actor, team: str) -> Person:
    """What users.info says of somebody."""
    if not user or user.get("deleted"):
        return STRANGER
    profile = user.get("profile")
    profile = profile if isinstance(profile, Mapping) else {}
    names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    restricted = bool(user.get("is_restricted") or user.get("is_ultra_restricted"))
    external = bool(user.get("is_stranger")) or team not in _teams(user, actor)
    words = {
        "admin": user.get("is_admin") is True,
        "owner": user.get("is_owner") is True,
        "guest": restricted,
        "external": external,
    }
    # Being an administrator somewhere else counts for nothing here.
    counted = {
        word for word, holds in words.items() if holds and (not external or word in ("external", "guest"))
    }
    return Person(
        name=next((name for name in names if isinstance(name, str) and name), ""),
        guest=restricted or external,
        external=external,
        words=frozenset(counted),
    )


def _teams(user: Mapping[str, Any], actor: Actor) -> frozenset[str]:
    """The workspaces whose member this is. In an organisation one person may be in several."""
    enterprise = user.get("enterprise_user")
    teams = enterprise.get("teams") if isinstance(enterprise, Mapping) else None
    several = [str(team) for team in teams] if isinstance(teams, list) else []
    own = user.get("team_id")
    return frozenset([own if isinstance(own, str) and own else actor.workspace, *several])
