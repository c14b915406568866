"""`threadgate ask`: one turn, its events as lines, its outcome as the exit code."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.scenario.processes.conftest import Furnish
from tests.scenario.processes.gateway import PROGRAM, GatewayProcess, environment, until
from tests.scenario.processes.house import RULES, House, step
from tests.scenario.processes.shell import threadgate

pytestmark = pytest.mark.crash


def again(count: int, text: str = "") -> dict[str, Any]:
    """The model makes one and the same call again and again."""
    call = {"tool": "note_safe", "args": {"order": "A1"}}
    return {"calls": [call], **({"text": f"{text} {count}"} if text else {})}


OUTCOMES = [
    {"match": "^stall", "replies": [again(n) for n in range(9)]},
    {"match": "^circle", "replies": [again(n, "Try") for n in range(9)]},
    {"match": "^refuse", "replies": [{"text": "I will not.", "stop": "refusal"}]},
    {"match": "^unreachable", "replies": [{"error": "auth"}]},
    {"match": "^slow", "replies": [{"text": "Too late.", "delay": 20.0}]},
    {
        "match": "^steps",
        "replies": [{**step("note_safe", order=f"A{n}"), "text": f"Step {n}"} for n in range(9)],
    },
    {"match": "^hush", "replies": [{"text": "NO_REPLY\n"}]},
    {"match": "^ask", "replies": [{"calls": [{"tool": "ask_user", "args": {"question": "Which?"}}]}]},
]
MORE = """
[agents.hasty]
deadline = "1s"
[agents.brief]
tools = ["ledger_tools:tools"]
default_decision = "allow"
max_steps = 2
[agents.echo]
model = "parrot"
[models.parrot]
provider = "scripted"
script = "parrot.json"
[agents.poor]
tools = ["ledger_tools:tools"]
default_decision = "allow"
max_tokens = 3
[agents.quiet]
silence = "NO_REPLY"
"""


@pytest.fixture
async def house(furnish: Furnish) -> House:
    made = furnish(rules=[*RULES, *OUTCOMES], more=MORE, web=True)
    parrot = {"match": r"(?s)^(?P<said>.*\S)\s*$", "replies": [{"text": "You said: {said}"}]}
    (made.folder / "parrot.json").write_text(json.dumps({"rules": [parrot]}))
    return made


@pytest.mark.parametrize(
    ("agent", "text", "outcome", "code"),
    [
        ("clerk", "hello", "completed", 0),
        ("clerk", "stall", "stalled", 3),
        ("clerk", "circle", "loop_detected", 3),
        ("clerk", "unreachable", "crashed", 4),
        ("clerk", "refuse", "refused", 5),
        ("brief", "steps", "max_turns", 7),
        ("poor", "steps", "exhausted_tokens", 7),
        ("clerk", "pay A1", "pending_approval", 8),
        ("clerk", "ask me", "pending_question", 8),
        ("hasty", "slow", "deadline", 124),
    ],
)
async def test_the_outcome_is_the_last_event_and_the_exit_code(
    agent: str, text: str, outcome: str, code: int, house: House
) -> None:
    ran = await threadgate(house.folder, "ask", agent, text, "--json")
    events = ran.lines
    assert events[0]["type"] == "session"
    assert events[0]["agent"] == agent
    assert [event["type"] for event in events].count("done") == 1
    done = events[-1]
    assert done["type"] == "done"
    assert done["outcome"] == outcome
    assert done["status"] == ("exhausted_steps" if outcome == "max_turns" else outcome)
    assert done["exit_code"] == ran.code == code
    assert "Traceback" not in ran.err


async def test_in_words_the_answer_is_on_standard_output(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "hello")
    assert (ran.code, ran.out.strip(), ran.err) == (0, "Hello yourself.", "")


async def test_c067_an_agent_that_says_nothing_prints_nothing_and_exits_0(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "quiet", "hush")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    told = await threadgate(house.folder, "ask", "quiet", "hush", "--json")
    done = told.lines[-1]
    assert (told.code, done["outcome"], done["text"]) == (0, "completed", "")
    assert "NO_REPLY" not in told.out
    assert [m.text for m in house.log(done["session_id"])] == ["hush", "NO_REPLY\n"]


async def test_what_to_ask_can_come_from_standard_input(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "-", stdin="hello\n")
    assert (ran.code, ran.out.strip()) == (0, "Hello yourself.")


async def test_what_waits_is_named_with_its_id_and_the_exit_code_8(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "pay A1")
    assert ran.code == 8
    (pending_id,) = house.open_pendings()
    assert ran.out == f"{pending_id}\n"
    assert f"waits for a person: threadgate resolve {pending_id} approve|deny|answer" in ran.err


async def test_a_model_that_cannot_be_reached_is_said_in_one_line_with_the_way_on(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "unreachable")
    ran.failed(4, "crashed: no model answered", "--session s_")
    session = ran.err.split("--session ")[1].strip()
    again = await threadgate(house.folder, "ask", "clerk", "hello", "--session", session)
    assert (again.code, again.out, again.err) == (0, "Hello yourself.\n", "")
    assert [m.text for m in house.log(session)] == ["unreachable", "hello", "Hello yourself."]


@pytest.mark.parametrize("text", ["", "   \n"])
async def test_nothing_to_ask_is_a_usage_error(text: str, house: House) -> None:
    (await threadgate(house.folder, "ask", "clerk", "-", stdin=text)).failed(2, "TEXT", "empty")


async def test_an_unknown_agent_is_a_usage_error_that_names_the_known_ones(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "nobody", "hello")
    ran.failed(2, "'nobody'", "brief, clerk, echo, hasty, poor")


async def test_the_next_process_sees_the_same_session_and_takes_up_what_a_kill_left(house: House) -> None:
    killed = await threadgate(house.folder, "ask", "clerk", "note A1", THREADGATE_FAULT="started.before")
    assert killed.code == -9
    assert house.ledger() == []
    await house.start_and_rest()
    assert [line["tool"] for line in house.ledger()] == ["note"]
    house.assert_valid()


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_at_once_with_code_1_and_the_turn_is_left_for_the_next_process(
    name: signal.Signals, house: House
) -> None:
    asking = await GatewayProcess.start(house.folder, "ask", "clerk", "wait A1")
    await until(lambda: house.ledger("wait began"), "the tool begins")
    asking.signal(name)
    assert await asking.ended() == 1
    assert "Traceback" not in asking.text
    (line,) = asking.log
    assert line.startswith("threadgate: interrupted; go on with --session s_")
    await house.start_and_rest()
    (pending,) = (await threadgate(house.folder, "pending", "--json")).lines
    assert (pending["kind"], pending["tool"]) == ("question", "wait")


async def test_an_interrupted_turn_goes_on_in_the_next_command_before_what_it_says(house: House) -> None:
    asking = await GatewayProcess.start(house.folder, "ask", "clerk", "wait A1")
    await until(lambda: house.ledger("wait began"), "the tool begins")
    asking.signal(signal.SIGTERM)
    assert await asking.ended() == 1
    session = asking.text.split("--session ")[1].strip()
    ran = await threadgate(house.folder, "ask", "clerk", "hello", "--session", session)
    (pending_id,) = house.open_pendings()  # what has become of the call that was cut off
    assert (ran.code, ran.out) == (8, f"{pending_id}\n")
    ran = await threadgate(house.folder, "ask", "clerk", "hello", "--session", session)
    assert (ran.code, ran.out) == (8, f"{pending_id}\n")
    assert len(house.ledger()) == 1


async def test_a_signal_while_standard_input_is_read_ends_it_with_code_1(house: House) -> None:
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("ask", "clerk", "-"),
        cwd=house.folder,
        env=environment(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    await until(lambda: _heeds(process.pid, signal.SIGTERM), "standard input is read")
    process.terminate()
    _out, err = await process.communicate()
    assert (process.returncode, err.decode()) == (1, "threadgate: interrupted\n")


def _heeds(pid: int, number: signal.Signals) -> bool:
    """Whether the process has its own mind about a signal by now."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)


async def test_a_reader_who_goes_away_does_not_end_the_turn(house: House) -> None:
    line = f"{PROGRAM} ask clerk 'note A1' --json | head -n 1"
    process = await asyncio.create_subprocess_exec(
        *("bash", "-o", "pipefail", "-c", line),
        cwd=house.folder,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (process.returncode, err.decode(), out.count(b"\n")) == (0, "", 1)
    assert [entry["tool"] for entry in house.ledger()] == ["note"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "asked"),
    [
        (("-",), "from the pipe\n", "from the pipe\n"),
        ((), "from the pipe\n", "from the pipe\n"),
        (("Sum up:",), "from the pipe\n", "Sum up:\n\nfrom the pipe"),
        (("Sum up:",), "", "Sum up:"),
    ],
)
async def test_what_is_piped_in_follows_the_text(
    arguments: tuple[str, ...], stdin: str, asked: str, house: House
) -> None:
    ran = await threadgate(house.folder, "ask", "echo", *arguments, stdin=stdin)
    assert (ran.code, ran.out, ran.err) == (0, f"You said: {asked.strip()}\n", "")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--max-steps", "2"), 7, ("exhausted_steps: 2 steps are used up",)),
        (("--max-tokens", "3"), 7, ("exhausted_tokens", "tokens are used up")),
        (("--deadline", "5x"), 2, ("--deadline", "'5x' is not a duration")),
        (("--model", "clever"), 2, ("--model", "'clever'", "one of")),
        (("--session", "s_none"), 2, ("--session", "s_none")),
    ],
)
async def test_budgets_and_names_on_the_command_line(
    options: tuple[str, ...], code: int, words: tuple[str, ...], house: House
) -> None:
    (await threadgate(house.folder, "ask", "clerk", "steps", *options)).failed(code, *words)


async def test_a_deadline_on_the_command_line_holds(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "slow", "--deadline", "1s")
    ran.failed(124, "deadline: the time for this turn is used up")


async def test_another_model_can_be_named(house: House) -> None:
    ran = await threadgate(house.folder, "ask", "clerk", "hello", "--model", "parrot")
    assert (ran.code, ran.out) == (0, "You said: hello\n")
