"""Processes told apart for certain: by pid and start time, since pids are used again. Knows no job."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

from poc.jobs.files import text_of


def alive(pid: int | None, since: str | None) -> bool:
    """Whether the process that had this pid and start time still runs."""
    return pid is not None and since is not None and started(pid) == since


def signal_group(pid: int | None, since: str | None, number: signal.Signals) -> bool:
    """Signal the process group that this process leads; False when it is gone."""
    if pid is None or not alive(pid, since):
        return False
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
        return True
    return False


def started(pid: int) -> str | None:
    """When a process began, in a form that no other process with this pid shares; None when it is gone or a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The name in brackets may hold spaces and brackets: the fields start after the last one.
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] in "ZX" else f"{_boot()}:{fields[19]}"
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return None if len(shown) < 2 or shown[0].startswith("Z") else shown[1].strip()


@cache
def _boot() -> str:
    return text_of(Path("/proc/sys/kernel/random/boot_id")).strip()


def signal_name(number: int) -> str:
    """SIGKILL for 9, and so on."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
