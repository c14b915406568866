"""The web channel: an HTTP server beside the gateway, in the same event loop.

Words and cards are not pushed to anybody: the page and the API read them from the session, which
the backend keeps. So `send`, `edit`, `show` and `redraw` name a reference and nudge the pages that
are open; what they show next comes from the session's rows. Only notices travel with the nudge.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import uvicorn

from channels.base import (
    Actor,
    Attachment,
    Card,
    ChannelError,
    Inbound,
    InboundMessage,
    InboundPress,
    MessageGone,
    MessageRef,
    OutboundMessage,
    PayloadRefused,
    Progress,
    ThreadKey,
)
from channels.web.api import make_app
from channels.web.backend import WebBackend
from channels.web.guard import Credentials, Guard
from channels.web.hub import Change, Hub
from channels.web.limits import ABILITIES, DRAIN_SECONDS, LIMITS, NUDGE_SECONDS

WORKSPACE = "local"


def web_thread(conversation: str) -> ThreadKey:
    """The thread key of a web conversation: the one place that builds it."""
    return ThreadKey("web", WORKSPACE, conversation, "")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`. A name other than localhost counts as outside."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class WebRefused(ChannelError):
    """The web channel cannot serve as it is configured. `mend` says what to change."""

    def __init__(self, problem: str, mend: str) -> None:
        self.problem, self.mend = problem, mend
        super().__init__(f"{problem} ({mend})")


class _Server(uvicorn.Server):
    """Runs inside our loop: the process's signals are the gateway's business."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()


class WebChannel:
    """`tokens` maps a name to its secret; the actor of a caller is `web:<name>`. Without tokens only
    loopback is served, and everybody there is `web:local`. `examples`: messages that an empty page
    offers."""

    name = "web"
    abilities = ABILITIES
    limits = LIMITS

    def __init__(
        self,
        backend: WebBackend,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        tokens: Mapping[str, str] = MappingProxyType({}),
        examples: Sequence[str] = (),
        now: Callable[[], float] | None = None,
    ) -> None:
        if any(not name or not secret for name, secret in tokens.items()):
            raise WebRefused("channels.web.token is empty", "give a token, or leave the key out on loopback")
        self._host, self._port, self._backend = host, port, backend
        clock = {} if now is None else {"now": now}
        self._credentials = Credentials(tokens, cookie=f"threadgate_{port}", **clock)
        self._examples = tuple(examples)
        self._hub = Hub()
        self._changed: set[str] = set()
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens, once started: `http://127.0.0.1:8080`."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # noqa: S104
        return f"http://[{host}]:{self._port}" if ":" in host else f"http://{host}:{self._port}"

    @property
    def listeners(self) -> int:
        """How many open pages hear of changes now."""
        return self._hub.readers

    async def start(self, inbound: Inbound | None = None) -> None:
        """Listen. Returns once connections are accepted. `inbound` is not used: what people write
        and press here goes to the backend. Raises WebRefused when the address cannot be served."""
        if not self._credentials.required and not is_loopback(self._host):
            raise WebRefused(
                f"channels.web.host {self._host} can be reached from outside and no token is set",
                'set channels.web.token, or host = "127.0.0.1"',
            )
        self._hub = Hub()
        routes = make_app(self._backend, self._hub, self._credentials, self._examples)
        app = Guard(routes, self._credentials, hosts=[self._host])
        sockets = await _listen(self._host, self._port)
        self._port = sockets[0].getsockname()[1]
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        self._server = _Server(config)
        self._task = asyncio.create_task(self._server.serve(sockets), name="web server")
        listening = asyncio.create_task(self._server.listening.wait())
        await asyncio.wait((listening, self._task), return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Take no new connection, end the streams, let short requests finish."""
        self._hub.closing.set()
        if self._server is None or self._task is None:
            return
        self._server.should_exit = True
        await self._task
        self._server = self._task = None

    def nudge(self, session_id: str = "") -> None:
        """Tell open pages to look again, for changes that pass through no delivery. Several at once
        are told together, a moment later. "": the lists only."""
        if self._server is None or not self._hub.readers:
            return
        if not self._changed:
            asyncio.get_running_loop().call_later(NUDGE_SECONDS, self._tell)
        self._changed.add(session_id)

    def _tell(self) -> None:
        for session_id in self._changed:
            self._hub.publish(Change(conversation=session_id))
        self._changed.clear()

    def parts(self, message: OutboundMessage) -> Sequence[OutboundMessage]:
        return (message,)

    async def send(self, target: ThreadKey, message: OutboundMessage) -> MessageRef:
        told = message.text if message.kind != "answer" else ""
        self._hub.publish(Change(conversation=target.conversation, kind=message.kind, text=told))
        return _new_ref(target)

    def below(self, target: ThreadKey, ref: MessageRef) -> ThreadKey:
        """See Channel."""
        return target

    async def edit(self, ref: MessageRef, message: OutboundMessage) -> None:
        self._hub.publish(Change(conversation=_conversation(ref), kind=message.kind))

    async def show(self, target: ThreadKey, card: Card) -> MessageRef:
        self._hub.publish(Change(conversation=target.conversation, kind="card"))
        return _new_ref(target)

    async def redraw(self, ref: MessageRef, card: Card) -> None:
        self._hub.publish(Change(conversation=_conversation(ref), kind="card"))

    async def notify_actor(self, press: InboundPress, text: str) -> None:
        """Nothing to do: whoever presses here has the outcome as the answer to the request."""

    async def progress(self, target: ThreadKey, state: Progress) -> None:
        """Nothing to do: the page follows the session's events."""

    async def fetch_file(self, attachment: Attachment, into: Path, limit: int) -> None:
        raise PayloadRefused("no file comes in through the web page")

    async def roles(self, actor: Actor, thread: ThreadKey) -> frozenset[str]:
        return frozenset()

    async def private(self, actor: Actor) -> ThreadKey | None:
        return None

    async def earlier(self, thread: ThreadKey, before: str, limit: int) -> Sequence[InboundMessage]:
        return ()


def _new_ref(target: ThreadKey) -> MessageRef:
    return MessageRef(f"{target.conversation}#{secrets.token_hex(6)}")


def _conversation(ref: MessageRef) -> str:
    conversation, mark, _ = ref.rpartition("#")
    if not mark:
        raise MessageGone("not a message of the web channel")
    return conversation


async def _listen(host: str, port: int) -> list[socket.socket]:
    """Bound sockets for every address of `host`, all on one port. Raises WebRefused."""
    loop = asyncio.get_running_loop()
    mend = "set channels.web.host to an address of this machine"
    try:
        found = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise WebRefused(f"channels.web.host {host!r} is not known: {error.strerror}", mend) from error
    sockets: list[socket.socket] = []
    problem: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        wanted = sockets[0].getsockname()[1] if sockets else port
        try:
            sockets.append(_bound(family, kind, protocol, (address[0], wanted, *address[2:])))
        except OSError as error:
            problem = error
    if sockets and (problem is None or problem.errno != errno.EADDRINUSE):
        return sockets
    for bound in sockets:
        bound.close()
    if problem is not None and problem.errno == errno.EADDRINUSE:
        told = f"port {port} on {host} is taken"
        raise WebRefused(told, "stop the other program, or set channels.web.port") from problem
    raise WebRefused(f"cannot listen on {host}:{port}: {problem and problem.strerror}", mend) from problem


def _bound(
    family: socket.AddressFamily | int, kind: int, protocol: int, address: tuple[object, ...]
) -> socket.socket:
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.setblocking(False)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
