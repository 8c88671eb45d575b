"""One node's part of a step, as Slurm has it: all that its command starts belongs to it, and ends with it.

    python -m tests.cluster.slurm_step PID_FILE COMMAND...

Ends with the command's code. SIGTERM goes to all of its processes; SIGKILL follows after KillWait.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

PR_SET_CHILD_SUBREAPER: Final = 36
KILL_WAIT_S: Final = 30.0


def descendants() -> list[psutil.Process]:
    """Orphans among them, too, for this process is their parent then."""
    return psutil.Process().children(recursive=True)


def to_all(act: Callable[[psutil.Process], None]) -> None:
    """What has ended meanwhile is passed over."""
    for process in descendants():
        with contextlib.suppress(psutil.NoSuchProcess):
            act(process)


def main() -> None:
    """As the module says."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: to_all(psutil.Process.terminate))
    Path(sys.argv[1]).write_text(str(os.getpid()))
    code = subprocess.run(sys.argv[2:], check=False).returncode  # noqa: S603
    to_all(psutil.Process.terminate)
    psutil.wait_procs(descendants(), KILL_WAIT_S)
    to_all(psutil.Process.kill)
    raise SystemExit(code)


if __name__ == "__main__":
    main()
