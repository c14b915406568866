"""The things that the server keeps: the app, people, conversations, files, calls. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.platforms.slack.limits import Json

SCOPES = (
    "app_mentions:read assistant:write channels:history channels:join channels:read chat:write commands "
    "files:read files:write groups:history groups:read im:history im:read im:write mpim:history mpim:read "
    "mpim:write reactions:write team:read usergroups:read users:read"
)
EVENTS = (
    "app_home_opened app_mention app_uninstalled assistant_thread_context_changed assistant_thread_started "
    "channel_archive channel_rename member_joined_channel member_left_channel message.channels "
    "message.groups message.im message.mpim tokens_revoked user_change"
)


class Refused(Exception):
    """One `"ok": false`."""

    def __init__(self, error: str, **more: Any) -> None:
        self.error, self.more = error, more
        super().__init__(error)


@dataclass
class App:
    """The one app that is installed, in T1."""

    id: str = "A1"
    name: str = "threadgate"
    bot_user: str = "UBOT"
    bot_id: str = "B1"
    bot_token: str = "xoxb-1-bot-token-of-the-tests"
    app_token: str = "xapp-1-A1-app-token-of-the-tests"
    signing_secret: str = "8f742231b10e8888abcd99yyyzzz85a5"
    verification: str = "verification-token"
    scopes: set[str] = field(default_factory=lambda: set(SCOPES.split()))
    events: set[str] = field(default_factory=lambda: set(EVENTS.split()))
    commands: set[str] = field(default_factory=lambda: {"/threadgate"})
    shortcuts: set[str] = field(default_factory=lambda: {"ask_about"})


@dataclass
class User:
    """One person, or our bot."""

    id: str
    name: str
    real_name: str
    team: str = "T1"
    is_bot: bool = False
    guest: bool = False  # is_restricted
    single: bool = False  # is_ultra_restricted
    admin: bool = False
    owner: bool = False
    deleted: bool = False

    def public(self, asked_from: str = "T1") -> Json:
        """As users.info shows it."""
        profile = {
            "real_name": self.real_name,
            "real_name_normalized": self.real_name,
            "display_name": self.name,
            "display_name_normalized": self.name,
            "team": self.team,
            "image_72": "https://avatars.example/72.png",
        }
        shown: Json = {"id": self.id, "team_id": self.team, "name": self.name, "real_name": self.real_name}
        shown |= {
            "deleted": self.deleted,
            "tz": "Europe/Berlin",
            "profile": profile,
            "updated": 1_700_000_000,
        }
        if self.team != asked_from:
            return shown | {"is_stranger": True, "is_bot": self.is_bot, "is_app_user": False}
        return shown | {
            "is_admin": self.admin,
            "is_owner": self.owner,
            "is_primary_owner": False,
            "is_restricted": self.guest,
            "is_ultra_restricted": self.single,
            "is_bot": self.is_bot,
            "is_app_user": False,
            "is_email_confirmed": True,
        }


@dataclass
class Channel:
    """One conversation. `kind`: channel, group, im or mpim, as `channel_type` says."""

    id: str
    name: str
    kind: str
    members: set[str]
    archived: bool = False
    shared: bool = False  # with another workspace (Slack Connect)
    user: str = ""  # the other side of an im
    messages: dict[str, Json] = field(default_factory=dict)
    posted: list[float] = field(default_factory=list)  # when our bot posted

    def public(self) -> Json:
        """As conversations.info shows it."""
        shown: Json = {
            "id": self.id,
            "created": 1_600_000_000,
            "is_archived": self.archived,
            "is_im": self.kind == "im",
            "is_mpim": self.kind == "mpim",
            "is_group": self.kind == "group",
            "is_channel": self.kind == "channel",
            "is_private": self.kind != "channel",
            "is_ext_shared": self.shared,
            "is_shared": self.shared,
            "is_org_shared": False,
            "context_team_id": "T1",
        }
        if self.kind == "im":
            return shown | {"user": self.user, "is_user_deleted": False}
        return shown | {"name": self.name, "name_normalized": self.name, "is_member": "UBOT" in self.members}


@dataclass
class Stream:
    """A message that is being streamed."""

    started: float
    text: str = ""


@dataclass
class Assistant:
    """One assistant thread as its person sees it. `status` is gone 120 s after it was set."""

    user: str = ""
    title: str = ""
    prompts: list[Json] = field(default_factory=list)
    prompts_title: str = ""
    status: str = ""
    status_at: float = 0.0
    loading: list[str] = field(default_factory=list)


@dataclass
class File:
    """A file; `content` is None until it was uploaded."""

    id: str
    name: str
    user: str
    mimetype: str = "text/plain"
    content: bytes | None = None
    length: int = 0
    title: str = ""
    external: str = ""  # address of a file that Slack only links to
    moved: str = ""  # address to which a download is sent on
    remote_only: bool = False  # events say only `file_access: check_file_info`
    shares: list[tuple[str, str]] = field(default_factory=list)  # channel, ts
    gone: bool = False


@dataclass(frozen=True)
class Call:
    """One entry of the journal."""

    method: str
    arguments: Json
    status: int
    answer: Json
    at: float  # Unix seconds of the server's clock


@dataclass(frozen=True)
class Page:
    """Somebody was notified by a message of our bot."""

    channel: str
    ts: str
    who: str


@dataclass
class Trigger:
    """A trigger_id: good once, for three seconds."""

    user: str
    expires: float
    used: bool = False
    view: str = ""  # the modal from which it came


@dataclass
class ResponseUrl:
    """Where an interaction or a command may be answered, five times in half an hour."""

    user: str
    channel: str
    expires: float
    thread_ts: str = ""
    message_ts: str = ""
    ephemeral: bool = False
    uses: int = 0
