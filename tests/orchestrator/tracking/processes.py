"""A process that is no more."""

import subprocess
import sys

from orchestrator.machine.processes import start_time


def ended_process() -> tuple[int, str]:
    """Its number, and when it had started."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = start_time(process.pid)
    process.kill()
    process.communicate()
    return process.pid, started
