"""Who may talk, who answers where, and which thread a `notify` entry means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from gateway.config.people import PERSON, as_role, check_person
from gateway.config.problems import Bad
from gateway.intake import Route
from gateway.letters import WEBHOOK
from gateway.messages import Actor, ThreadKey

EVERYONE = "*"
ROLE, ADMINS = "role:", "admins"
# Slack's <@U1|name> and <!subteam^S1>, Discord's <@1>, <@!1> and <@&1>; or an id after a sign.
_MENTION = re.compile(r"<(?:(?:@!?|!subteam\^)(?P<id>\w+)|@&(?P<role>\w+))(?:\|[^>]*)?>")


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
    read when the agent is called into it, by channel. `threaded`: the channels in which a message begins a
    thread of its own. `shared`: those whose threads are seen by everybody who comes in there.
    `hooks`: which events each webhook is told of."""

    default_agent: str
    users: Mapping[str, frozenset[str]] = field(default_factory=dict)
    approvers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    routes: Sequence[RouteRule] = ()
    workspaces: Mapping[str, str] = field(default_factory=dict)
    operators: tuple[str, ...] = ()
    pairing: frozenset[str] = frozenset()
    context: Mapping[str, int] = field(default_factory=dict)
    threaded: frozenset[str] = frozenset()
    hooks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()

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

    def person(self, entry: str, channel: str) -> str:
        """Whom a person means, as rules write it: an id of this channel, one with its channel in front,
        or a mention that carries the id. Raises ValueError with the mend, for a name too."""
        words = entry.strip()
        if found := _MENTION.fullmatch(words):
            words = found["id"] or f"role:{found['role']}"
        words = words.removeprefix("@")
        if words == "requester":
            return words
        known = words.partition(":")[0] in {*self.workspaces, *PERSON}
        written = words if known and ":" in words else f"{channel}:{words}"
        if written.partition(":")[0] not in PERSON:
            return written
        try:
            return as_role(check_person(written))
        except Bad as error:
            raise ValueError(f"{error.problem}: {error.mend}") from error

    def route(self, key: ThreadKey) -> Route:
        """The first rule that matches, else the default agent."""
        for rule in self.routes:
            if _matches(rule.match, key):
                return Route(agent=rule.agent, tenant=rule.tenant)
        return Route(agent=self.default_agent)

    def posts(self, key: ThreadKey) -> bool:
        """Whether the outbox writes there: web pages and terminals read the rows themselves."""
        return key.channel in self.workspaces and key.channel not in ("web", "cli")

    def tells(self, key: ThreadKey) -> bool:
        """Whether a notice reaches a thread: the pages show those of their sessions."""
        return self.posts(key) or key.channel == "web"

    def begins(self, key: ThreadKey) -> bool:
        """Whether a message that is posted there begins a thread of its own."""
        return not key.thread and key.channel in self.threaded

    def private(self, key: ThreadKey) -> bool:
        """Whether a thread has one person in it, and nobody else reads along."""
        match key.channel:
            case "telegram":
                return key.conversation.isdecimal()  # groups have negative ids
            case "slack":
                return key.conversation.startswith("D")
            case "discord":
                return key.workspace == "@me"
            case "web" | "cli":
                return key.channel not in self.shared
            case _:
                return False

    def hooks_for(self, event: str) -> list[ThreadKey]:
        """The webhooks that are told of an event."""
        return [
            ThreadKey(WEBHOOK, "local", name, "") for name, events in self.hooks.items() if event in events
        ]

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
