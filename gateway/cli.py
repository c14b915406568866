"""The command line: `threadgate demo | run | ask | chat | pending | schedules | resolve | pair |
sessions | audit verify | audit export | mcp list | render | slack manifest | discord invite`.

Errors are one line that names the key and the mend; a traceback is never shown to a person. Exit
codes: 0 done, 1 failed or cancelled, 2 usage or configuration, 3 partial, 4 no model reachable,
5 refused or denied, 6 required tool server down, 7 budget used up, 8 waits for a person,
124 deadline.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from gateway import faults
from gateway.errors import ConfigError, GatewayError
from gateway.outcome import EXIT_FAILED, EXIT_USAGE, abort_code

app = typer.Typer(
    help="One agent behind your chat threads; a person's yes on what matters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
slack = typer.Typer(help="What setting up Slack needs.", no_args_is_help=True)
app.add_typer(slack, name="slack")
discord = typer.Typer(help="What setting up Discord needs.", no_args_is_help=True)
app.add_typer(discord, name="discord")
audit = typer.Typer(help="The record of requests, decisions and runs.", no_args_is_help=True)
app.add_typer(audit, name="audit")
mcp = typer.Typer(help="The configured tool servers.", no_args_is_help=True)
app.add_typer(mcp, name="mcp")
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="the configuration file (default: config.toml here, or the demo)"),
]
CONFIG = Path("config.toml")
JsonOption = Annotated[bool, typer.Option("--json", help="JSON lines instead of words")]


def main() -> None:
    """Entry point: errors in one line, exit codes as promised."""
    try:
        faults.arm(os.environ)
        app(standalone_mode=True)
    except ConfigError as error:
        _fail(str(error), EXIT_USAGE)
    except GatewayError as error:
        _fail(str(error), abort_code(type(error).__name__))
    except BrokenPipeError:
        _fail("whoever read the output has gone away", EXIT_FAILED)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:
        if logging.getLogger().handlers:
            logging.getLogger("gateway").exception("stopped by an error")
        _fail(f"{type(error).__name__}: {error}", EXIT_FAILED)


def _fail(text: str, code: int) -> None:
    from gateway.log import redact

    typer.echo(f"threadgate: {redact(text)}", err=True)
    sys.exit(code)


def _run(work: Coroutine[Any, Any, int]) -> None:
    """Run to the end. Threads of tools that do not listen must not keep the process."""
    code = asyncio.run(work)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code) if _deaf_threads() else sys.exit(code)


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _deaf_threads() -> bool:
    import threading

    return any(t is not threading.main_thread() and not t.daemon for t in threading.enumerate())


def _say_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"threadgate {version('threadgate')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """One agent behind your chat threads; a person's yes on what matters."""


@app.command()
def demo(
    port: Annotated[
        int | None, typer.Option(help="port of the page (default: 8080, or any free one)")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="do not open a browser")] = False,
) -> None:
    """Talk to an offline agent in the browser. No account, no key."""
    from gateway.app.serve import serve_demo

    _run(serve_demo(port, open_browser=not no_open))


@app.command()
def run(
    config: Annotated[Path, typer.Option("--config", "-c", help="the configuration file")] = Path(
        "config.toml"
    ),
    json: Annotated[bool, typer.Option("--json-log", help="log as JSON lines")] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error")] = "info",
) -> None:
    """Run the gateway until Ctrl-C or SIGTERM."""
    from gateway.app.serve import serve

    _run(serve(config, json_log=json, log_level=log_level))


@app.command()
def ask(
    agent: Annotated[str, typer.Argument(help="the agent's name")],
    text: Annotated[
        str, typer.Argument(help="what to ask; - reads standard input; what is piped in follows the text")
    ] = "",
    config: ConfigOption = None,
    json: Annotated[bool, typer.Option("--json", help="the events, one JSON object a line")] = False,
    session: Annotated[str, typer.Option(help="go on with this session instead of a fresh one")] = "",
    model: Annotated[str, typer.Option(help="a configured model, instead of the agent's")] = "",
    max_steps: Annotated[int | None, typer.Option(min=1, help="model calls, at most")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="input and output tokens, at most")] = None,
    deadline: Annotated[str, typer.Option(help="how long it may work, such as 90s or 10m")] = "",
) -> None:
    """Ask one question, print the answer.

    The answer is on standard output, all else on standard error. The exit code tells how it ended; 8: it
    waits for a person, and the ids are printed."""
    from gateway.app.asking import Ask, ask_once, read_words, seconds_of

    signal.signal(signal.SIGTERM, _interrupted)  # while standard input is read
    try:
        stdin = getattr(sys.stdin, "buffer", None)
        words = read_words(text, stdin, is_terminal=stdin is not None and sys.stdin.isatty())
        wanted = Ask(
            agent=agent,
            text=words,
            session=session,
            model=model,
            max_steps=max_steps,
            max_tokens=max_tokens,
            deadline=seconds_of(deadline),
            as_json=json,
        )
        _run(ask_once(config, wanted))
    except KeyboardInterrupt:
        _fail("interrupted", EXIT_FAILED)


@app.command()
def chat(
    agent: Annotated[str, typer.Argument(help="the agent's name (default: the default agent)")] = "",
    config: ConfigOption = None,
) -> None:
    """Talk in the terminal; requests are decided right here."""
    from gateway.app.oneshot import chat_here

    _run(chat_here(config, agent))


@app.command()
def pending(config: ConfigOption = None, json: JsonOption = False) -> None:
    """What waits for somebody's decision."""
    from gateway.app.oneshot import list_pending

    _run(list_pending(config, as_json=json))


@app.command()
def sessions(config: ConfigOption = None, json: JsonOption = False) -> None:
    """The sessions, the one that moved last first."""
    from gateway.app.oneshot import list_sessions

    _run(list_sessions(config, as_json=json))


@app.command()
def schedules(
    config: ConfigOption = None,
    cancel: Annotated[str, typer.Option(help="end the one with this code")] = "",
    json: JsonOption = False,
) -> None:
    """What agents are to do later, or again and again."""
    from gateway.app.scheduled import cancel_schedule, list_schedules

    _run(cancel_schedule(config, cancel) if cancel else list_schedules(config, as_json=json))


@app.command()
def resolve(
    pending_id: Annotated[str, typer.Argument(help="the id, or the short code")],
    decision: Annotated[str, typer.Argument(help="approve, deny or answer")],
    values: Annotated[list[str] | None, typer.Argument(help="the answer, or why it is denied")] = None,
    config: ConfigOption = None,
    scope: Annotated[str, typer.Option(help="once, session or always")] = "once",
    args: Annotated[str, typer.Option(help="approve with these arguments instead (a JSON object)")] = "",
    json: JsonOption = False,
) -> None:
    """Decide something that waits, as the operator of this machine."""
    from gateway.app.oneshot import read_decision, resolve_once

    resolution = read_decision(decision, values or [], scope, _json_object(args))
    _run(resolve_once(config, pending_id, resolution, as_json=json))


@app.command()
def pair(
    code: Annotated[str, typer.Argument(help="the code that the person was given")],
    config: ConfigOption = None,
) -> None:
    """Let somebody in who wrote to the bot and was given a code."""
    from gateway.app.oneshot import pair_once

    _run(pair_once(config, code))


def _json_object(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise ConfigError("--args", f"is not a JSON object: {error}", '{"amount": 20}') from error


@slack.command()
def manifest(
    transport: Annotated[str, typer.Option(help="socket, or http for requests to --url")] = "socket",
    url: Annotated[str, typer.Option(help="for http: the public address of this gateway, https://...")] = "",
    name: Annotated[str, typer.Option(help="what the bot is called")] = "Threadgate",
) -> None:
    """Print an app manifest, to be pasted at api.slack.com/apps.

    It has the scopes, events, commands and the App Home that the bot uses."""
    from gateway.app.setup import slack_manifest

    typer.echo(slack_manifest(transport, url, name))


@discord.command()
def invite(
    config: ConfigOption = None,
    application: Annotated[
        str, typer.Option(help="the application's id; default: the one of the token")
    ] = "",
) -> None:
    """Print the address that invites the bot to a server.

    It asks for exactly the permissions that the bot uses."""
    from gateway.app.setup import discord_invite

    typer.echo(discord_invite(config, application))


@audit.command("verify")
def audit_verify(config: ConfigOption = None) -> None:
    """Check that nothing was changed or taken out.

    Exit code 1 names the first line that does not fit."""
    from gateway.app.record import verify

    _run(verify(config))


@audit.command("export")
def audit_export(
    config: ConfigOption = None,
    since: Annotated[str, typer.Option(help="only from this moment on: 2026-11-30, or with a time")] = "",
    session: Annotated[str, typer.Option(help="only this session")] = "",
    format_: Annotated[str, typer.Option("--format", help="jsonl or csv")] = "jsonl",
) -> None:
    """Write the record to standard output, the oldest line first."""
    from gateway.app.record import export, read_format, read_since

    _run(export(config, read_since(since), session, read_format(format_)))


@mcp.command("list")
def mcp_list(config: ConfigOption = None, json: JsonOption = False) -> None:
    """List the tools of all servers. Exit code 1: one of them cannot be reached."""
    from gateway.app.oneshot import list_mcp

    _run(list_mcp(config, as_json=json))


@app.command()
def render(
    platform: Annotated[str, typer.Option(help="slack, discord, telegram or plain")],
) -> None:
    """Print Markdown as the messages that would be sent.

    Reads standard input, prints a JSON list of what a platform would get."""
    from gateway.app.oneshot import render_payloads

    typer.echo(render_payloads(platform, sys.stdin.read()))
