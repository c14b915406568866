"""What a payload of Slack means to us, as values; and its JSON, read with no trust in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from channels.base import Actor, Attachment, InboundChange, InboundMessage, InboundPress, ThreadKey
from channels.slack import refs
from channels.tolerant import TolerantNode, needed

Kind = Literal["event", "interactive", "command"]
Mention = Literal["start", "always", "never"]

# ---- why a payload is ignored

MALFORMED: Final = "malformed"  # followed by what is missing; always unknown
UNKNOWN_PAYLOAD: Final = "a payload of an unknown kind"
UNKNOWN_EVENT: Final = "an event of an unknown type"
UNKNOWN_SUBTYPE: Final = "a message of an unknown subtype"
UNKNOWN_ELEMENT: Final = "a control of an unknown type"

ELSEWHERE: Final = "for another workspace's installation"
NOT_ADDRESSED: Final = "not addressed to the bot"
TO_OTHERS: Final = "said to somebody else"
OWN: Final = "our own message"
NO_AUTHOR: Final = "a message without an author"
NOTICE: Final = "a notice about the conversation, not talk"
HIDDEN: Final = "a hidden message"
NOTHING: Final = "nothing in it that we read"
NOT_EDITED: Final = "changed, but not edited by a person"
SAME_TEXT: Final = "edited to the same text"

UNUSED_EVENT: Final = "an event that we have no use for"
SOMEBODY_ELSE: Final = "somebody else came or went"
WE_LEFT: Final = "we are no longer in that conversation"
CLOSED: Final = "the conversation was closed"
UNINSTALLED: Final = "the app was removed from the workspace"
TOKENS_REVOKED: Final = "our tokens were revoked"
RATE_LIMITED: Final = "Slack holds events back: too many came"
URL_VERIFICATION: Final = "a check of our address"

LINK: Final = "a link was opened"
NO_DATA: Final = "a control that carries no data"
NOT_A_PRESS: Final = "an input: it counts with a button"
IN_A_MODAL: Final = "a control in a modal: it counts with the submission"
OTHER_VIEW: Final = "a modal that is none of ours"
VIEW_CLOSED: Final = "a modal was closed"
OTHER_SHORTCUT: Final = "a shortcut that is none of ours"
SUGGESTION: Final = "a select asks for options: we have none"
LEGACY: Final = "an interaction of the time before blocks"

# ---- what a payload means


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Our app in its workspace, as auth.test and bots.info tell. Empty: not known."""

    team: str
    user: str
    bot: str
    app: str = ""
    enterprise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """None of our business, and why. `kind`: the type of what came, for counting. `unknown`: a shape
    that we did not know; worth a look."""

    reason: str
    kind: str = ""
    unknown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FormWanted:
    """A button was pressed whose press counts only with the fields filled in."""

    press: InboundPress
    trigger_id: str
    label: str = ""  # the button's

    @property
    def place(self) -> refs.FormPlace:
        """What the modal's private_metadata holds."""
        return refs.FormPlace(data=self.press.data, ref=self.press.message_ref, thread=self.press.thread)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSent:
    """A form was submitted. `view` is the payload's own, untrusted; `press.values` is to be read from its
    state by whoever drew the form."""

    press: InboundPress
    view_id: str
    view_hash: str
    view: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskWanted:
    """The shortcut "Ask the agent about this" on a message."""

    place: refs.AskPlace
    trigger_id: str
    actor: Actor

    @property
    def quoted(self) -> str:
        return self.place.quoted

    @property
    def own_id(self) -> str:
        """By which an answer to it is found."""
        return refs.command_id(self.trigger_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSent:
    """The shortcut's modal was submitted."""

    message: InboundMessage
    view_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeOpened:
    """Somebody looks at the app. `tab`: "home", or "messages" (`channel`: that conversation)."""

    actor: Actor
    tab: str
    channel: str = ""
    view_hash: str = ""  # of the home that is there, for views.publish


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantOpened:
    """An assistant thread was begun, or (`changed`) the person looks at something else beside it.
    `context`: the channel that the person looks at, "" for none."""

    thread: ThreadKey
    actor: Actor
    context: str = ""
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleChanged:
    """What was looked up about a person may be wrong now, or ("") about groups and who is in them."""

    user: str = ""


Parsed = (
    InboundMessage
    | InboundPress
    | InboundChange
    | FormWanted
    | FormSent
    | AskWanted
    | AskSent
    | HomeOpened
    | AssistantOpened
    | PeopleChanged
    | Ignored
)

# ---- reading


class Node(TolerantNode):
    """A piece of JSON that knows timestamps and sizes."""

    __slots__ = ()

    def need_ts(self, *path: str) -> str:
        """The timestamp there. Raises Malformed when there is none."""
        return needed(self.ts(*path), path)

    def ts(self, *path: str) -> str:
        """The timestamp there, "" for none."""
        text = self.text(*path)
        return text if refs.is_ts(text) else ""

    def size(self, *path: str) -> int:
        """The whole number there, 0 for none or a negative one."""
        return max(self.number(*path) or 0, 0)


def actor_of(me: Me, user: str, *teams: str) -> Actor:
    """A person by the first of these workspaces that is told: their own. None told: ours."""
    team = next(filter(None, teams), me.team)
    ours = bool(me.enterprise) and team == me.enterprise
    return Actor(refs.CHANNEL, me.team if ours else team, user)


def attachments_of(files: Iterator[Node]) -> tuple[Attachment, ...]:
    """The files that can be fetched. Of one that was shared from elsewhere only the id may be known."""
    found: dict[str, Attachment] = {}
    for file in files:
        file_id, mode = file.text("id"), file.text("mode")
        gone = mode in _NOT_THERE or file.text("file_access") in _NO_ACCESS
        if file_id and not gone and not is_external(file):
            found.setdefault(
                file_id,
                Attachment(
                    file_id=file_id,
                    name=file.text("name") or file.text("title") or file_id,
                    media_type=file.text("mimetype") or "application/octet-stream",
                    size=file.size("size"),
                ),
            )
    return tuple(found.values())


def is_external(file: Node) -> bool:
    """Whether Slack only knows where this file is, and has none to give."""
    return file.flag("is_external") or file.text("mode") == "external"


_NOT_THERE: Final = frozenset({"tombstone", "hidden_by_limit"})
_NO_ACCESS: Final = frozenset({"access_denied", "file_not_found"})
