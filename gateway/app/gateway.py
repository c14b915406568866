"""The running gateway: store, turns, outbox, timers and channels, wired once, started and stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from channels.base import Channel, ChannelError
from channels.web.adapter import WebChannel
from gateway.agent import Agent
from gateway.app.files import Files
from gateway.app.hub import Hub
from gateway.app.inbound import CardPresses, ChannelRoles, Earlier, GatewayInbound, PrivatePlaces
from gateway.app.metrics import Metrics
from gateway.app.outlet import ChannelOutlet
from gateway.app.people import ConfiguredRules
from gateway.app.places import Places
from gateway.app.progress import SHOWN, ProgressSigns
from gateway.app.web import GatewayBackend
from gateway.clock import Clock, SystemClock
from gateway.deliveries import Deliveries
from gateway.desk import Desk
from gateway.errors import StoreError
from gateway.events import Event
from gateway.intake import Intake
from gateway.letters import Letters
from gateway.log import redact
from gateway.messages import ThreadKey
from gateway.pairing import Pairing
from gateway.providers.base import Model
from gateway.reminders import Reminders
from gateway.requests import Requests
from gateway.resolutions import Resolutions
from gateway.store.base import Store
from gateway.store.rows import Claim
from gateway.timers import Timers
from gateway.turns import TurnPorts, Turns

TICK = 0.5  # seconds between two looks of a duty
SETTLE = 0.03  # seconds between a wake-up and the look
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Web:
    """How the web channel is served; None as a whole: not at all. Port 0: any free one.
    `examples`: messages that an empty page offers."""

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Mapping[str, str] = field(default_factory=dict)
    examples: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything concrete that a gateway is made of. `channels`: all but the web channel."""

    store: Store
    agents: Mapping[str, Agent]
    model_of: Callable[[Agent], Model]
    rules: ConfiguredRules
    channels: Sequence[Channel] = ()
    web: Web | None = None
    operators: Sequence[str] = ("cli:local", "web:local")
    environment: str = "production"
    drain: float = 10.0
    data_dir: Path = Path("var")
    metrics: Metrics | None = None
    clock: Clock = field(default_factory=SystemClock)

    @property
    def letters(self) -> Letters:
        """Where the words of turns go, in every process that runs turns of this configuration."""
        rules = self.rules
        return Letters(posts=rules.posts, places=rules.place, approvers=rules.approvers_of)

    @property
    def reminders(self) -> Reminders:
        """Where the words of the clock go, in every process that decides requests."""
        rules = self.rules
        return Reminders(posts=rules.posts, tells=rules.tells, places=rules.place)


class Gateway:
    """`async with Gateway(parts):` runs until the block ends, then drains."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.store, self.hub = parts, parts.store, Hub(self._tell_pages)
        self.channels: dict[str, Channel] = {channel.name: channel for channel in parts.channels}
        self.failed: dict[str, str] = {}
        self._signs = ProgressSigns(self.channels)
        self.turns = self._turns()
        self._places = Places(
            self.store, parts.clock, parts.rules.place, lambda rows: self.deliveries.take(rows)
        )
        outlet = ChannelOutlet(self.store, self.channels, parts.data_dir)
        self.deliveries = Deliveries(self.store, outlet, parts.clock, self._places.moved)
        self.timers = Timers(self.store, parts.clock, self.turns.wake, self._nudge, parts.reminders)
        self.resolutions = self._resolutions()
        rules = parts.rules
        pairing = Pairing(self.store, parts.clock, rules.is_admin, lambda channel: channel in rules.pairing)
        self.requests = self._requests()
        self.desk = Desk(
            self.store,
            self.turns,
            self.resolutions,
            parts.agents,
            lambda key: parts.rules.route(key).agent,
            parts.clock,
            self.deliveries.take,
            pairing,
            self.requests,
            lambda key: parts.rules.route(key).tenant,
        )
        self._cards = CardPresses(
            self.store,
            self.resolutions,
            self.channels,
            parts.clock,
            self.deliveries.take,
            self.requests,
        )
        self.intake = Intake(
            self.store,
            self.turns,
            self.resolutions,
            self.desk,
            self._cards,
            rules,
            pairing,
            parts.clock,
            self._signs.noted,
            Earlier(self.channels, rules.context),
            {name: agent.while_pending for name, agent in parts.agents.items()},
        )
        self.backend = self._backend()
        self.web = self._web()
        self._duties: list[asyncio.Task[None]] = []
        self._outbox_changed = asyncio.Event()

    def _requests(self) -> Requests:
        return Requests(
            self.store,
            self.resolutions,
            self.parts.rules,
            self.parts.clock,
            self._nudge,
            lambda rows: self.deliveries.take(rows),
            PrivatePlaces(self.channels),
        )

    def _turns(self) -> Turns:
        parts = self.parts
        return Turns(
            self.store,
            parts.agents,
            parts.model_of,
            parts.clock,
            parts.letters,
            ports=TurnPorts(
                on_run=self.hub.begin,
                on_event=self._on_event,
                on_commit=self.hub.nudge,
                on_deliveries=lambda r: self.deliveries.take(r),
                prepare=Files(self.channels, parts.data_dir, parts.clock, self._say).fetch,
            ),
            environment=parts.environment,
        )

    def _resolutions(self) -> Resolutions:
        parts = self.parts
        return Resolutions(
            self.store,
            parts.agents,
            parts.clock,
            parts.operators,
            self.turns.wake,
            self._nudge,
            claims=self.turns,
            roles_of=ChannelRoles(self.channels),
            reminders=parts.reminders,
        )

    def _backend(self) -> GatewayBackend:
        return GatewayBackend(
            self.store,
            self.parts.agents,
            self.parts.rules.default_agent,
            self.intake,
            self.turns,
            self.resolutions,
            self.hub,
            self.parts.clock,
            self.requests,
            self.parts.metrics,
            self.parts.data_dir,
        )

    def _web(self) -> WebChannel | None:
        settings = self.parts.web
        if settings is None:
            return None
        channel = WebChannel(
            self.backend,
            host=settings.host,
            port=settings.port,
            tokens=settings.tokens,
            examples=settings.examples,
        )
        self.channels[channel.name] = channel
        return channel

    # ---- wiring

    async def _say(self, key: ThreadKey, text: str) -> None:
        if self.parts.rules.posts(key):
            await self.desk.say(key, text)

    def _on_event(self, claim: Claim, event: Event) -> None:
        self.hub.event(claim, event)
        if isinstance(event, SHOWN):
            self._signs.event(claim, event)
        if self.parts.metrics is not None:
            self.parts.metrics.event(event)

    def _nudge(self, session_id: str) -> None:
        self.hub.nudge(session_id)
        self._outbox_changed.set()

    def _tell_pages(self, session_id: str) -> None:
        if self.web is not None:
            self.web.nudge(session_id)

    # ---- life

    async def __aenter__(self) -> Gateway:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Open the store, take up what was left, start the channels. A channel that cannot start
        is reported and left out; the others run. Raises StoreError, and ChannelError when none runs."""
        await self.store.open()
        found = await self.store.start_up(self.parts.clock.now())
        inbound = GatewayInbound(self.intake, self._places, self._cards, self.store)
        await asyncio.gather(*(self._start_channel(c, inbound) for c in list(self.channels.values())))
        if self.failed and not self.channels:
            await self.store.close()
            raise ChannelError("; ".join(self.failed.values()))
        self.intake.replay(found.presses)
        for session_id in found.sessions:
            self.turns.wake(session_id)
        self._duties = [
            asyncio.create_task(self._duty("heartbeat", self.turns.heartbeat_once)),
            asyncio.create_task(self._duty("turns", self.turns.sweep_once)),
            asyncio.create_task(self._duty("timers", self.timers.sweep_once)),
            asyncio.create_task(self._duty("outbox", self.deliveries.sweep_once, self._outbox_changed)),
        ]

    async def _start_channel(self, channel: Channel, inbound: GatewayInbound) -> None:
        try:
            await channel.start(inbound)
        except ChannelError as error:
            self.failed[channel.name] = redact(str(error))
            del self.channels[channel.name]
            _log.error("channel %s does not run: %s", channel.name, self.failed[channel.name])

    async def stop(self) -> None:
        """Start nothing new, let what runs end within the drain time, give the rest back. What
        comes in meanwhile is stored, and what goes out is still sent: channels stop last."""
        await self.turns.drain(self.parts.drain)
        for duty in self._duties:
            duty.cancel()
        await asyncio.gather(*self._duties, return_exceptions=True)
        await self.deliveries.close(2.0)
        for channel in self.channels.values():
            await channel.stop()
        await self.intake.close(2.0)
        await self.store.close()

    async def _duty(
        self, name: str, step: Callable[[], Awaitable[object]], wake: asyncio.Event | None = None
    ) -> None:
        """Call a duty's step every TICK, and at once when it is woken; trouble is logged and the
        step tried again. `start` has looked at everything already."""
        wake = wake or asyncio.Event()
        while True:
            try:
                async with asyncio.timeout(TICK):
                    await wake.wait()
                # What woke the duty is in the middle of something: its own work comes first, and
                # several wake-ups in a row are one look.
                await asyncio.sleep(SETTLE)
            except TimeoutError:
                pass
            wake.clear()
            try:
                await step()
            except StoreError as error:
                _log.error("%s: %s", name, redact(str(error)))
            except Exception:  # a duty that had ended would be missed only when it is too late
                _log.exception("%s failed", name)
