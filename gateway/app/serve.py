"""Running until told to stop: the configured gateway, and the demo."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import webbrowser
from pathlib import Path

from channels.base import ChannelError
from gateway.app.build import build_parts
from gateway.app.gateway import Gateway, Parts, Web
from gateway.app.people import ConfiguredRules
from gateway.clock import SystemClock
from gateway.config import load_config, questionable_rules
from gateway.demo import EXAMPLES, demo_agent, demo_model
from gateway.errors import ConfigError
from gateway.log import setup_logging
from gateway.store.sqlite import SqliteStore

DEMO_DATABASE, DEMO_DATA, DEMO_PORT = "threadgate-demo.db", "threadgate-demo", 8080
_log = logging.getLogger("gateway")


async def serve(config_path: Path, *, json_log: bool, log_level: str) -> int:
    """`threadgate run`. Raises ConfigError, StoreError."""
    try:
        setup_logging(log_level.upper(), json_log)
    except ValueError as error:
        raise ConfigError("--log-level", str(error), "debug, info, warning or error") from error
    config = load_config(config_path, env=os.environ)
    gateway = Gateway(build_parts(config))
    for line in questionable_rules(gateway.parts.agents):
        _log.warning("%s", line)
    if not gateway.channels:
        raise ConfigError("channels", "no channel is configured", "add a table, for example [channels.web]")
    return await _until_told(gateway, config.gateway.drain)


async def serve_demo(port: int | None, *, open_browser: bool) -> int:
    """`threadgate demo`. Raises ConfigError for a port that is taken."""
    setup_logging("WARNING")
    web = Web(port=_port(port), examples=EXAMPLES)
    gateway = Gateway(demo_parts(Path.cwd(), web=web))
    return await _until_told(gateway, 5.0, greeting=True, open_browser=open_browser)


def demo_parts(folder: Path, web: Web | None = None) -> Parts:
    """The demo's parts: its database and ledger live in `folder`."""
    clock = SystemClock()
    agent, model = demo_agent(folder / DEMO_DATA), demo_model(clock=clock)
    everyone = frozenset("*")
    rules = ConfiguredRules(
        default_agent=agent.name,
        users={"web": everyone, "cli": everyone},
        workspaces={"web": "local", "cli": "local"},
    )
    return Parts(
        store=SqliteStore(folder / DEMO_DATABASE, clock=clock),
        agents={agent.name: agent},
        model_of=lambda _: model,
        rules=rules,
        web=web,
        environment="demo",
        drain=5.0,
        clock=clock,
    )


def _port(wanted: int | None) -> int:
    """The wanted port; without one the usual, or any free one when that is taken."""
    if wanted is not None:
        return wanted
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DEMO_PORT))
        except OSError:
            return 0
    return DEMO_PORT


async def _until_told(
    gateway: Gateway, drain: float, *, greeting: bool = False, open_browser: bool = False
) -> int:
    """Start, wait for SIGTERM or SIGINT, drain. A second signal ends at once."""
    told = asyncio.Event()

    def stop() -> None:
        if told.is_set():
            os._exit(1)
        told.set()
        gateway.hurry()

    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop)
    try:
        await gateway.start()
    except ChannelError as error:
        key, mend = ("--port", "threadgate demo --port 8123") if greeting else ("channels", "")
        raise ConfigError(key, str(error), mend) from error
    if greeting and gateway.web is not None:
        _greet(gateway.web.url, open_browser)
    elif gateway.web is not None and "web" in gateway.channels:
        _log.info("listening at %s", gateway.web.url)
    _log.info("running: %s", ", ".join(gateway.channels))
    await told.wait()
    _log.info("stopping; turns that run get %g s", drain)
    await gateway.stop()
    return 0


def _greet(url: str, open_browser: bool) -> None:
    sys.stdout.write(f"Threadgate demo: {url}\n")
    sys.stdout.write('Try "refund order A-1001". Stop with Ctrl-C; what waits is kept for the next start.\n')
    sys.stdout.flush()
    if open_browser and (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.name != "posix"
    ):
        webbrowser.open(url)
