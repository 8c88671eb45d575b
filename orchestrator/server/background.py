"""A tracking server that goes on when the command that started it has ended."""

import os
import sys
import time
import traceback
from typing import Final

from orchestrator.console.exit_codes import FAILED, WRONG_INPUT
from orchestrator.console.printing import err, out
from orchestrator.machine.process_lock import Lease
from orchestrator.machine.waiting import wait_until
from orchestrator.server.folder import ServerFolder, Serving
from orchestrator.server.serve import TrackingServer, answers
from trainables.errors import InputError

ANSWER_S: Final = 90.0
PREFIX: Final = "ponderay: "


def start(server: TrackingServer) -> tuple[Serving, bool]:
    """Starts a server unless its folder has one, and waits until it answers; returns it, and whether it is new.

    Of several processes that do this at once one starts it, and all wait.

    Raises:
        InputError: if it ends at once, naming why, or does not answer in time; it is left alone then, for it may be
            upgrading its tables.
    """
    server.folder.make()
    starting, deadline_s = Lease(server.folder.path / "start.lock", is_private=True), time.monotonic() + ANSWER_S
    try:
        starting.wait(ANSWER_S)
    except TimeoutError:
        raise InputError(f"Another process is still starting the server of {server.folder.path}.") from None
    try:
        child = 0 if server.folder.serving() else _detach(server, starting)
        serving = wait_until(lambda: _answering(server.folder, child), deadline_s - time.monotonic())
    finally:
        starting.release()
    if serving is None:
        raise InputError(
            f"The server does not answer within {ANSWER_S:.0f} s, but still runs; see {server.folder.log}."
        )
    return serving, child != 0


def _answering(folder: ServerFolder, child: int) -> Serving | None:
    """The server once it answers; an error once the process that was to be it has ended."""
    serving = folder.serving()
    if serving and serving.is_ready and answers(serving.host, serving.port):
        return serving
    if child and os.waitpid(child, os.WNOHANG)[0]:
        reasons = [line for line in folder.log.read_text(encoding="utf-8").split("\n") if line.startswith(PREFIX)]
        raise InputError(
            reasons[-1].removeprefix(PREFIX) if reasons else f"The server ended at once; see {folder.log}."
        )
    return None


def _detach(server: TrackingServer, starting: Lease) -> int:
    """The number of a process of its own session, whose output goes into the log; the log before is kept beside it."""
    log = server.folder.log
    if log.exists():
        log.replace(log.with_suffix(".log.before"))
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = FAILED
    try:
        starting.leave()
        os.setsid()
        written, nothing = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), os.open(os.devnull, os.O_RDONLY)
        for number, opened in enumerate((nothing, written, written)):
            os.dup2(opened, number)
        code = server.run(out)
    except InputError as error:
        err.print(f"{PREFIX}{error}", markup=False, soft_wrap=True)
        code = WRONG_INPUT
    except BaseException:  # nobody above would show it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
