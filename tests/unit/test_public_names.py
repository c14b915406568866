"""What `import gateway` offers, and that it costs little."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys

import pytest

import gateway
import gateway.errors

PROMISED = {
    "Agent",
    "Gateway",
    "LoopOptions",
    "Outcome",
    "RunResult",
    "Tool",
    "resume_agent",
    "run_agent",
    "tool",
}


def test_the_public_names_are_the_promised_ones_and_every_error() -> None:
    errors = {
        name
        for name, value in vars(gateway.errors).items()
        if inspect.isclass(value) and issubclass(value, gateway.errors.GatewayError)
    }
    assert set(gateway.__all__) == PROMISED | errors
    assert list(gateway.__all__) == sorted(gateway.__all__)


@pytest.mark.parametrize("name", gateway.__all__)
def test_a_public_name_leads_to_its_home(name: str) -> None:
    home = importlib.util.find_spec("gateway.app")
    if name == "Gateway" and (home is None or home.origin is None):
        pytest.skip("the composition root is not there")
    value = getattr(gateway, name)
    assert value.__name__ == name
    assert value.__module__.startswith("gateway.")
    assert name in dir(gateway)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    assert not hasattr(gateway, "run_loop")


def test_importing_the_package_loads_nothing_else() -> None:
    program = (
        "import sys, gateway; print([m for m in sys.modules if m.startswith('gateway.')],"
        " [m for m in ('asyncio', 'msgspec', 'jsonschema_rs', 'starlette', 'aiosqlite') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"


def test_the_loop_can_be_used_without_web_server_database_or_sdk() -> None:
    program = (
        "import sys\n"
        "from gateway import Agent, Tool, run_agent, tool\n"
        "heavy = ('starlette', 'uvicorn', 'aiosqlite', 'anthropic', 'telegram', 'typer', 'rich')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
