"""The processes of a round, found by a variable in their environment, and what its journals have."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Final

from orchestrator.machine.processes import start_time

MARK: Final = "PONDERAY_FAULTS"
"""The variable that every process of a round inherits; its value is the round's folder."""


def marked(folder: Path) -> dict[int, str]:
    """Command line of each process whose environment carries the mark of `folder`, but this one; by number."""
    return {number: command[:120] for number, command in carrying(MARK, str(folder)).items()}


def carrying(variable: str, value: str) -> dict[int, str]:
    """Command line of each process whose environment has `variable` at `value`, but this one; by number."""
    wanted, found = f"{variable}={value}".encode(), {}
    for process in Path("/proc").glob("[0-9]*"):
        number = int(process.name)
        with contextlib.suppress(OSError):
            if number != os.getpid() and wanted in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if start_time(number):
                    found[number] = command
    return found


def left_after(folder: Path, timeout_s: float) -> dict[int, str]:
    """Those still there after `timeout_s`; returns as soon as there are none."""
    deadline = time.monotonic() + timeout_s
    while (found := marked(folder)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def kill_all(folder: Path) -> None:
    """Ends every process of a round."""
    for _ in range(10):
        for number in marked(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if not left_after(folder, 1.0):
            return


def records(journal: Path) -> list[dict[str, Any]]:
    """Its whole lines."""
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").split("\n")[:-1] if line]


def num_reports(runs: Path) -> int:
    """Steps of replicates in the journals."""
    return sum(file.read_bytes().count(b'"kind": "metrics"') for file in runs.glob("replicates/*/*/journal.jsonl"))
