"""The scenarios S1 to S5. README.md says what each one is; every one checks what it measures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench_meters import Laps, Meter, open_files, peak_rss_mb, proc_status, rss_mb, stats, stored_bytes
from bench_script import ALLOWED_TOOL, CONTEXT, COUNTS, GATED_TOOL, check, user_text

Make = Callable[[], Any]
S4_LEVELS = (10, 100, 500, 1000)
S5_MODEL_SECONDS = 0.05


async def opened(make: Make, path: str, **options: float) -> Any:
    """A new adapter on a path: what a process has after a restart."""
    adapter = make()
    await adapter.setup(path, **options)
    return adapter


def info(adapter: Any) -> dict[str, Any]:
    """What an adapter says of itself."""
    return dict(adapter.info()) if hasattr(adapter, "info") else {}


def expect(holds: bool, problem: str) -> None:
    """Raises AssertionError: a figure for wrong work is worth nothing."""
    if not holds:
        raise AssertionError(problem)


async def _turns(make: Make, path: str, kind: str, turns: int, sessions: int) -> dict[str, Any]:
    adapter = await opened(make, path)
    call = adapter.plain_turn if kind == "PLAIN" else adapter.tool_turn
    for number in range(25):  # warm-up, in sessions of its own
        check(await call(f"warm-{number % 5}", user_text(kind, number)))
    before, laps = rss_mb(), Laps()
    COUNTS.clear()
    stored = stored_bytes(adapter, path)
    with Meter(adapter, turns) as meter:
        for number in range(turns):
            with laps.lap("turn"):
                text = await call(f"s-{number % sessions}", user_text(kind, number))
            check(text)
    expect(kind == "PLAIN" or COUNTS[ALLOWED_TOOL] == 3 * turns, f"tool runs {COUNTS}")
    # The model must have been given the whole history: 2 messages per plain turn, at least 4 per tool
    # turn (implementations group parallel calls and results differently: 4, 6 or 8 items).
    wanted = (2 if kind == "PLAIN" else 4) * (turns // sessions - 1) + 1
    expect(CONTEXT["last"] >= wanted, f"model saw {CONTEXT['last']} messages, expected {wanted} or more")
    result = {
        **meter.out,
        "latency_ms": laps.stats("turn"),
        "rss_before_mb": before,
        "peak_rss_mb": peak_rss_mb(),
        "db_bytes_per_op": (stored_bytes(adapter, path) - stored) / turns,
        "info": info(adapter),
    }
    await adapter.close()
    return result


async def plain_turns(make: Make, path: str, scale: float = 1.0) -> dict[str, Any]:
    """S1."""
    return await _turns(make, path, "PLAIN", int(500 * scale), 50)


async def tool_turns(make: Make, path: str, scale: float = 1.0) -> dict[str, Any]:
    """S2."""
    return await _turns(make, path, "TOOLS", int(300 * scale), 50)


async def pauses(make: Make, path: str, scale: float = 1.0) -> dict[str, Any]:
    """S3."""
    cycles = int(200 * scale)
    adapter = await opened(make, path)
    for number in range(5):
        check(await adapter.resume(await adapter.pause(f"warm-{number}", user_text("PAUSE", number))))
    COUNTS.clear()
    one_by_one = getattr(adapter, "s3_mode", "batch") == "cycle"
    laps = Laps()
    run = _pauses_one_by_one if one_by_one else _pauses_in_batches
    adapter, result = await run(make, adapter, path, cycles, laps)
    both = [
        sum(step) for step in zip(laps.times["pause"], laps.times["reopen"], laps.times["cold"], strict=True)
    ]
    result.update(
        pause_ms=laps.stats("pause"),
        reopen_ms=laps.stats("reopen"),
        resume_cold_ms=laps.stats("cold"),
        resume_cold_cpu_ms=laps.cpu_ms("cold"),
        resume_warm_ms=laps.stats("warm"),
        cycle_ms=stats(both),
        peak_rss_mb=peak_rss_mb(),
        info=info(adapter),
    )
    await adapter.close()
    return result


async def _pauses_in_batches(
    make: Make, adapter: Any, path: str, cycles: int, laps: Laps
) -> tuple[Any, dict[str, Any]]:
    handles = []
    stored = stored_bytes(adapter, path)
    with Meter(adapter, cycles) as meter:
        for number in range(cycles):
            with laps.lap("pause"):
                handles.append(await adapter.pause(f"p-{number}", user_text("PAUSE", number)))
    result: dict[str, Any] = {"pause": meter.out}
    result["db_bytes_per_pause"] = (stored_bytes(adapter, path) - stored) / cycles
    expect(COUNTS[GATED_TOOL] == 0, f"ran without approval: {COUNTS}")
    result["allowed_ran_before_pause"] = COUNTS[ALLOWED_TOOL] / cycles
    await adapter.close()
    for handle in handles:  # each on a brand new object graph and a re-opened database
        with laps.lap("reopen"):
            fresh = await opened(make, path)
        with laps.lap("cold"):
            text = await fresh.resume(handle)
        check(text)
        await fresh.close()
    expect(COUNTS[GATED_TOOL] == cycles, f"approved calls ran: {COUNTS}")
    # Warm: one new adapter, which did not create the pauses, resumes them all.
    adapter = await opened(make, path)
    more = max(1, cycles // 2)
    handles = [await adapter.pause(f"q-{number}", user_text("PAUSE", number)) for number in range(more)]
    await adapter.close()
    adapter = await opened(make, path)
    check(await adapter.plain_turn("warm-z", user_text("PLAIN", 1)))
    with Meter(adapter, more) as meter:
        for handle in handles:
            with laps.lap("warm"):
                text = await adapter.resume(handle)
            check(text)
    result["resume_warm_meter"] = meter.out
    result["allowed_runs_per_cycle"] = COUNTS[ALLOWED_TOOL] / (cycles + more)
    result["gated_runs_per_cycle"] = COUNTS[GATED_TOOL] / (cycles + more)
    return adapter, result


async def _pauses_one_by_one(
    make: Make, adapter: Any, path: str, cycles: int, laps: Laps
) -> tuple[Any, dict[str, Any]]:
    """For what cannot hold many paused turns at once."""
    stored = stored_bytes(adapter, path)
    for number in range(cycles):
        with laps.lap("pause"):
            handle = await adapter.pause(f"p-{number}", user_text("PAUSE", number))
        await adapter.close()
        with laps.lap("reopen"):
            adapter = await opened(make, path)
        with laps.lap("cold"):
            text = await adapter.resume(handle)
        check(text)
    mean = laps.stats("pause")["mean"]
    pause = {"ops": cycles, "wall_ms_per_op": mean, "cpu_ms_per_op": laps.cpu_ms("pause")}
    stored_per_pause = (stored_bytes(adapter, path) - stored) / cycles
    for number in range(max(1, cycles // 4)):
        handle = await adapter.pause(f"q-{number}", user_text("PAUSE", number))
        with laps.lap("warm"):
            text = await adapter.resume(handle)
        check(text)
    return adapter, {"pause": pause, "db_bytes_per_pause": stored_per_pause}


async def growing_history(make: Make, path: str, scale: float = 1.0) -> dict[str, Any]:
    """S4."""
    adapter = await opened(make, path)
    for number in range(10):
        check(await adapter.plain_turn("warm", user_text("PLAIN", number)))
    base, done, levels = stored_bytes(adapter, path), 0, {}
    start, cpu = time.perf_counter(), time.process_time()
    for level in [int(level * scale) if scale < 1 else level for level in S4_LEVELS]:
        while done < level:
            await adapter.plain_turn("grow", user_text("PLAIN", done))
            done += 1
        levels[str(level)] = await _at_level(adapter, path, done, base)
        done += 20
    result = {
        "levels": levels,
        "total_wall_s": time.perf_counter() - start,
        "total_cpu_s": time.process_time() - cpu,
        "peak_rss_mb": peak_rss_mb(),
    }
    await adapter.close()
    fresh = await opened(make, path)  # the first turn of a new process on the grown session
    check(await fresh.plain_turn("warm2", user_text("PLAIN", 0)))
    laps = Laps()
    with laps.lap("first"):
        text = await fresh.plain_turn("grow", user_text("PLAIN", done))
    check(text)
    result["first_turn_after_reopen_ms"] = laps.times["first"][0]
    await fresh.close()
    return result


async def _at_level(adapter: Any, path: str, done: int, base: int) -> dict[str, Any]:
    stored, laps = stored_bytes(adapter, path), Laps()
    with Meter(adapter, 20) as meter:
        for number in range(done, done + 20):
            with laps.lap("turn"):
                text = await adapter.plain_turn("grow", user_text("PLAIN", number))
            check(text)
    expect(
        CONTEXT["last"] >= 2 * (done + 19) + 1, f"model saw {CONTEXT['last']} messages at {done + 20} turns"
    )
    return {
        "turn_ms": laps.stats("turn"),
        **meter.out,
        "total_db_bytes": stored - base,
        "bytes_per_turn_avg": (stored - base) / done,
        "bytes_per_turn_here": (stored_bytes(adapter, path) - stored) / 20,
    }


async def many_at_once(make: Make, path: str, scale: float = 1.0) -> dict[str, Any]:
    """S5."""
    sessions = int(500 * scale)
    adapter = await opened(make, path, model_latency_s=0.0)
    for number in range(20):
        check(await adapter.tool_turn(f"warm-{number % 5}", user_text("TOOLS", number)))
    await adapter.close()
    adapter = await opened(make, path, model_latency_s=S5_MODEL_SECONDS)
    check(await adapter.tool_turn("warm-x", user_text("TOOLS", 0)))
    before = rss_mb()
    COUNTS.clear()
    laps = Laps()

    async def one(number: int) -> None:
        with laps.lap("turn"):
            text = await adapter.tool_turn(f"c-{number}", user_text("TOOLS", number))
        check(text)

    with Meter(adapter, sessions) as meter:
        await asyncio.gather(*(one(number) for number in range(sessions)))
    expect(COUNTS[ALLOWED_TOOL] == 3 * sessions, f"tool runs {COUNTS}")
    ideal = 2 * S5_MODEL_SECONDS
    result = {
        **meter.out,
        "total_wall_s": meter.wall,
        "overhead_x": meter.wall / ideal,
        "throughput_turns_s": sessions / meter.wall,
        "latency_ms": laps.stats("turn"),
        "rss_before_mb": before,
        "peak_rss_mb": peak_rss_mb(),
        "threads_at_end": proc_status("Threads"),
        "fds_at_end": open_files(),
    }
    await adapter.close()
    await _nothing_lost(make, path, sessions)
    return result


async def _nothing_lost(make: Make, path: str, sessions: int) -> None:
    adapter = await opened(make, path)
    for number in range(0, sessions, max(1, sessions // 25)):
        check(await adapter.plain_turn(f"c-{number}", user_text("PLAIN", number)))
        expect(CONTEXT["last"] >= 5, f"history of c-{number} lost: model saw {CONTEXT['last']} messages")
    await adapter.close()


SCENARIOS: dict[str, Callable[[Make, str, float], Awaitable[dict[str, Any]]]] = {
    "S1": plain_turns,
    "S2": tool_turns,
    "S3": pauses,
    "S4": growing_history,
    "S5": many_at_once,
}
