"""The running gateway: store, turns, outbox, timers and channels, wired once, started and stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from gateway.app.webhooks import Hook, Webhooks, WithWebhooks
from gateway.clock import Clock, SystemClock
from gateway.deliveries import Deliveries
from gateway.desk import Desk
from gateway.errors import GatewayError, StoreError
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
from gateway.roster import RunnerOf
from gateway.schedules import Planning, Schedules
from gateway.store.base import Store
from gateway.store.rows import Claim
from gateway.store.schedule_rows import Standing
from gateway.timers import Timers
from gateway.tools.mcp import ToolServers
from gateway.tools.schedule import schedule_tools, with_tools
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
    """Everything concrete that a gateway is made of. `channels`: all but the web channel. `runner_of`: runs
    the loops of subagents that want a process of their own. `closing`: what ends when nothing runs any
    more. `schedules`: those of the configuration. `models`: the names that `/model` may choose."""

    store: Store
    agents: Mapping[str, Agent]
    model_of: Callable[[Agent], Model]
    models: Sequence[str] = ()
    rules: ConfiguredRules
    channels: Sequence[Channel] = ()
    web: Web | None = None
    operators: Sequence[str] = ("cli:local", "web:local")
    environment: str = "production"
    drain: float = 10.0
    data_dir: Path = Path("var")
    schedules: Sequence[Standing] = ()
    webhooks: Mapping[str, Hook] = field(default_factory=dict)
    metrics: Metrics | None = None
    runner_of: RunnerOf | None = None
    closing: Sequence[Callable[[], Awaitable[None]]] = ()
    tool_servers: ToolServers | None = None
    clock: Clock = field(default_factory=SystemClock)

    @property
    def letters(self) -> Letters:
        """Where the words of turns go, in every process that runs turns of this configuration."""
        rules = self.rules
        return Letters(
            posts=rules.posts,
            tells=rules.tells,
            places=rules.place,
            approvers=rules.approvers_of,
            hooks=rules.hooks_for,
            silence={agent.name: agent.silence for agent in self.agents.values()},
        )

    @property
    def with_planning(self) -> Parts:
        """The same, and every agent may have itself woken."""
        planning = Planning(self.store, self.clock, self.rules.tells, self.rules.is_admin)
        tools = schedule_tools(planning)
        return replace(self, agents={name: with_tools(agent, tools) for name, agent in self.agents.items()})

    @property
    def reminders(self) -> Reminders:
        """Where the words of the clock go, in every process that decides requests."""
        rules = self.rules
        return Reminders(posts=rules.posts, tells=rules.tells, places=rules.place)


class Gateway:
    """`async with Gateway(parts):` runs until the block ends, then drains."""

    def __init__(self, parts: Parts) -> None:
        parts = parts.with_planning
        self.parts, self.store, self.hub = parts, parts.store, Hub(self._tell_pages)
        self.channels: dict[str, Channel] = {channel.name: channel for channel in parts.channels}
        self.failed: dict[str, str] = {}
        self._signs = ProgressSigns(self.channels)
        self.turns = self._turns()
        self._places = Places(
            self.store, parts.clock, parts.rules.place, lambda rows: self.deliveries.take(rows)
        )
        self._hooks = Webhooks(self.store, parts.webhooks, parts.clock)
        outlet = ChannelOutlet(self.store, self.channels, parts.data_dir)
        self.deliveries = Deliveries(
            self.store, WithWebhooks(outlet, self._hooks), parts.clock, self._places.moved
        )
        self.resolutions = self._resolutions()
        rules = parts.rules
        self.schedules = self._schedules()
        self.timers = Timers(
            self.store,
            parts.clock,
            self.turns.wake,
            self._nudge,
            parts.reminders,
            self.schedules.carry_out,
        )
        pairing = Pairing(self.store, parts.clock, rules.is_admin, lambda channel: channel in rules.pairing)
        self.requests = self._requests()
        self.desk = self._desk(pairing)
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

    def _desk(self, pairing: Pairing) -> Desk:
        parts = self.parts
        return Desk(
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
            self.schedules,
            parts.rules.private,
            parts.models,
        )

    def _schedules(self) -> Schedules:
        return Schedules(
            self.store,
            self.parts.clock,
            self.parts.rules,
            self.resolutions.is_operator,
            self.turns.wake,
            lambda: self._outbox_changed.set(),
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
            runner_of=parts.runner_of,
            models=parts.models,
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
            self.schedules,
            self.parts.metrics,
            self.parts.data_dir,
            self._tool_servers_down,
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
        is reported and left out; the others run. Raises StoreError, RequiredToolServerDown, and
        ChannelError when no channel runs."""
        await self.store.open()
        if self.parts.tool_servers is not None:
            try:
                await self.parts.tool_servers.start()
            except GatewayError:
                await self.store.close()
                raise
        found = await self.store.start_up(self.parts.clock.now())
        await self.schedules.keep(self.parts.schedules)
        inbound = GatewayInbound(self.intake, self._places, self._cards, self.store)
        await asyncio.gather(*(self._start_channel(c, inbound) for c in list(self.channels.values())))
        if self.failed and not self.channels:
            await self._stop_tool_servers()
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
        for close in self.parts.closing:
            await close()
        await self._stop_tool_servers()
        await self.deliveries.close(2.0)
        await self._hooks.close()
        for channel in self.channels.values():
            await channel.stop()
        await self.intake.close(2.0)
        await self.store.close()

    async def _stop_tool_servers(self) -> None:
        if self.parts.tool_servers is not None:
            await self.parts.tool_servers.stop()

    def _tool_servers_down(self) -> Mapping[str, str]:
        """The tool servers that nothing works without and that cannot be reached, and why."""
        servers = self.parts.tool_servers
        return {} if servers is None else servers.down(required=True)

    def hurry(self) -> None:
        """The program is to end: a start that is under way waits for nobody."""
        if self.parts.tool_servers is not None:
            self.parts.tool_servers.hurry()

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
