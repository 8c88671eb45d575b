"""The processes of a round, found by a variable in their environment, and the workers among them."""

import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Worker:
    """A process at work on a replicate."""

    folder: Path
    pid: int
    process_started: str
    node_id: str

    def is_at_work(self) -> bool:
        """Whether it lives, and its replicate has not ended."""
        behind = records(self.folder / "journal.jsonl")
        last = max(i for i, record in enumerate(behind) if record["kind"] == "started")
        if any(record["kind"] == "state" for record in behind[last:]) or behind[last]["pid"] != self.pid:
            return False
        return start_time(self.pid) == self.process_started

    def send(self, number: signal.Signals) -> bool:
        """Sends a signal; False where the replicate had ended before, or the process."""
        if start_time(self.pid) != self.process_started:
            return False
        os.kill(self.pid, number)
        ended = {record["kind"] for record in records(self.folder / "journal.jsonl")[-1:]} == {"state"}
        return not ended


def workers(runs: Path) -> list[Worker]:
    """Those at work, of replicates and prerequisites."""
    found = []
    for journal in [*runs.glob("replicates/*/*/journal.jsonl"), *runs.glob("prerequisites/*/journal.jsonl")]:
        started = [record for record in records(journal) if record["kind"] == "started"]
        if started:
            last = started[-1]
            worker = Worker(journal.parent, last["pid"], last["process_started"], last["node_id"])
            if worker.is_at_work():
                found.append(worker)
    return found


def num_reports(runs: Path) -> int:
    """Steps of replicates in the journals."""
    return sum(file.read_bytes().count(b'"kind": "metrics"') for file in runs.glob("replicates/*/*/journal.jsonl"))
