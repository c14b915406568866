"""Who may talk, who answers where, and which thread a `notify` entry means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from gateway.intake import Route
from gateway.messages import Actor, ThreadKey

EVERYONE = "*"
ROLE, ADMINS = "role:", "admins"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteRule:
    """`match`: a thread as `channel:workspace:conversation:thread` or a beginning of it (the
    workspace may be left out), with globs."""

    match: str
    agent: str
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredRules:
    """See gateway.intake.Rules. `users`: ids by channel; a channel that is missing or empty lets
    nobody in. `workspaces`: each channel's own, for entries that do not name one. `pairing`: the
    channels that give unknown people a code. `context`: how many earlier messages of a thread are
    read when the agent is called into it, by channel."""

    default_agent: str
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    approvers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    routes: Sequence[RouteRule] = ()
    workspaces: Mapping[str, str] = field(default_factory=dict)
    operators: tuple[str, ...] = ()
    pairing: frozenset[str] = frozenset()
    context: Mapping[str, int] = field(default_factory=dict)

    def may_talk(self, actor: Actor, *, guest: bool = False, roles: frozenset[str] = frozenset()) -> bool:
        """Ids only; everyone only where the configuration says so, and a guest only by id or role."""
        allowed = self.users.get(actor.channel, frozenset())
        if EVERYONE in allowed and actor.user and not guest:
            return True
        spelled = {actor.user, f"{actor.workspace}:{actor.user}", *(f"{ROLE}{role}" for role in roles)}
        if "administrator" in roles:
            spelled.add(ADMINS)
        return not spelled.isdisjoint(allowed)

    def by_role(self, channel: str) -> bool:
        """Whether the channel's list names roles, which the platform has to be asked about."""
        return any(entry == ADMINS or entry.startswith(ROLE) for entry in self.users.get(channel, ()))

    def is_admin(self, actor: Actor) -> bool:
        """Those who may let others in: operators, and whoever decides in a channel."""
        spelled = {str(actor), f"{actor.channel}:{actor.user}"}
        return not spelled.isdisjoint({*self.operators, *self.approvers.get(actor.channel, ())})

    def route(self, key: ThreadKey) -> Route:
        """The first rule that matches, else the default agent."""
        for rule in self.routes:
            if _matches(rule.match, key):
                return Route(agent=rule.agent, tenant=rule.tenant)
        return Route(agent=self.default_agent)

    def posts(self, key: ThreadKey) -> bool:
        """Whether the outbox writes there: web pages and terminals read the rows themselves."""
        return key.channel in self.workspaces and key.channel not in ("web", "cli")

    def approvers_of(self, key: ThreadKey) -> tuple[str, ...]:
        """Who decides in this channel when the rule does not say."""
        return self.approvers.get(key.channel, ())

    def place(self, entry: str) -> ThreadKey | None:
        """`channel:workspace:conversation[:thread]`, or without the workspace where the channel
        has only one. None for a channel that is not here, or a place that needs its workspace."""
        channel, *rest = entry.split(":")
        workspace = self.workspaces.get(channel)
        if workspace is None or not rest:
            return None
        if rest[0] == "user" and len(rest) > 1:  # a person, wherever they can be written to
            return ThreadKey(channel, "@me", f"user:{rest[1]}", "")
        if len(rest) > 1 and (not workspace or rest[0] == workspace):
            workspace, *rest = rest
        if not workspace:
            return None
        return ThreadKey(channel, workspace, rest[0], rest[1] if len(rest) > 1 else "")


def _matches(pattern: str, key: ThreadKey) -> bool:
    full = ":".join(part for part in key if part)
    short = ":".join(part for part in (key.channel, key.conversation, key.thread) if part)
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}:*") for name in (full, short))
