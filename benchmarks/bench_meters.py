"""Measuring: wall clock, CPU of all threads, memory, bytes on disk, and fsyncs under the shim."""

from __future__ import annotations

import ctypes
import gc
import sqlite3
import statistics
import time
from contextlib import closing
from pathlib import Path
from typing import Any


def proc_status(field: str) -> int:
    """One number of /proc/self/status; -1 where there is none."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return -1


def rss_mb() -> float:
    """Memory of this process now."""
    return proc_status("VmRSS") / 1024


def peak_rss_mb() -> float:
    """The most it had. VmHWM, because ru_maxrss is inherited across fork."""
    return proc_status("VmHWM") / 1024


def open_files() -> int:
    """Open file descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def stats(values: list[float]) -> dict[str, float]:
    """Mean, median, tails."""
    ordered = sorted(values)
    count = len(ordered)
    return {
        "n": count,
        "mean": sum(ordered) / count,
        "p50": statistics.median(ordered),
        "p95": ordered[min(count - 1, int(count * 0.95))],
        "p99": ordered[min(count - 1, int(count * 0.99))],
        "min": ordered[0],
        "max": ordered[-1],
    }


def sqlite_logical_bytes(path: str) -> int:
    """page_count * page_size as another reader sees it: what is in the WAL counts, its slack does not."""
    if not Path(path).exists():
        return 0
    with closing(sqlite3.connect(path, timeout=30)) as db:
        (pages,) = db.execute("pragma page_count").fetchone()
        (size,) = db.execute("pragma page_size").fetchone()
        return int(pages * size)


def sqlite_modes(path: str) -> dict[str, str]:
    """The journal mode of a file."""
    with closing(sqlite3.connect(path)) as db:
        return {"journal_mode": db.execute("pragma journal_mode").fetchone()[0]}


def stored_bytes(adapter: Any, path: str) -> int:
    """Logical bytes of an adapter's state."""
    own = getattr(adapter, "db_bytes", None)
    return int(own()) if own else sqlite_logical_bytes(path)


def _find_shim() -> Any:
    """The counters of iocount.c, when it was preloaded."""
    shim = ctypes.CDLL(None)
    try:
        for name in ("bench_fsyncs", "bench_pwrites", "bench_pwrite_bytes"):
            getattr(shim, name).restype = ctypes.c_long
    except AttributeError:
        return None
    return shim


_SHIM = _find_shim()


def io_counters() -> dict[str, float] | None:
    """fsyncs, writes and kilobytes written so far; None without the shim."""
    if _SHIM is None:
        return None
    return {
        "fsyncs": _SHIM.bench_fsyncs(),
        "pwrites": _SHIM.bench_pwrites(),
        "pwrite_kb": _SHIM.bench_pwrite_bytes() / 1024,
    }


class Meter:
    """Wall, CPU (all threads), CPU of helper processes and I/O over a block of `operations`."""

    def __init__(self, adapter: Any, operations: int) -> None:
        self._external = getattr(adapter, "external_cpu_s", lambda: 0.0)
        self._operations = operations
        self.wall = 0.0
        self.out: dict[str, Any] = {}

    def __enter__(self) -> Meter:
        gc.collect()
        self._io, self._helper = io_counters(), self._external()
        self._cpu, self._start = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._start
        per_operation = 1e3 / self._operations
        self.out = {
            "ops": self._operations,
            "wall_ms_per_op": self.wall * per_operation,
            "cpu_ms_per_op": (time.process_time() - self._cpu) * per_operation,
        }
        helper = self._external() - self._helper
        if helper:
            self.out["server_cpu_ms_per_op"] = helper * per_operation
        after = io_counters()
        if after and self._io:
            self.out["io_per_op"] = {key: (after[key] - self._io[key]) / self._operations for key in after}


class Laps:
    """Milliseconds of single steps, collected by name."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {}
        self.cpu: dict[str, float] = {}

    def lap(self, name: str) -> _Lap:
        """A `with` block that is one step."""
        return _Lap(self, name)

    def stats(self, name: str) -> dict[str, float]:
        """Of the steps of one name."""
        return stats(self.times[name])

    def cpu_ms(self, name: str) -> float:
        """Mean CPU of one step, in milliseconds."""
        return self.cpu[name] * 1e3 / len(self.times[name])


class _Lap:
    def __init__(self, laps: Laps, name: str) -> None:
        self._laps, self._name = laps, name

    def __enter__(self) -> None:
        self._cpu, self._start = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        took = (time.perf_counter() - self._start) * 1e3
        self._laps.times.setdefault(self._name, []).append(took)
        used = time.process_time() - self._cpu
        self._laps.cpu[self._name] = self._laps.cpu.get(self._name, 0.0) + used
