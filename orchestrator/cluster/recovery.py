"""A sweep outlives its cluster: what ran on one that was lost runs on the next."""

import gc
import time
from collections.abc import Callable
from typing import Final

from orchestrator.cluster.address import address_fault
from orchestrator.cluster.cluster_watch import ClusterWatch
from orchestrator.cluster.session import Connection
from orchestrator.scheduler.scheduler import Scheduler
from orchestrator.scheduler.stop_request import StoppedError
from trainables.errors import InputError

MAX_IDLE: Final = 3
"""After so many clusters in a row that were lost before anything was reported, the sweep stops."""

LOCAL_S: Final = (30.0, 60.0, 120.0, 240.0)
"""How long a Ray on this machine may be silent: the first, the next, and so on.

One that a busy machine starves is silent too, and starting another only adds to the load."""

CLOSE_S: Final = 60.0
PAUSE_S: Final = 2.0


def run_through_losses(
    connection: Connection,
    scheduler: Scheduler,
    wait_s: float,
    tell: Callable[[str], None],
    run: Callable[[ClusterWatch], None],
) -> None:
    """Has `run` do all of `scheduler`, again on the next cluster where one is lost.

    Args:
        wait_s: how long a cluster that others have made may be away.

    Raises:
        StoppedError: if there is no next cluster within the limit, or cluster after cluster is lost.
    """
    num_idle = num_losses = 0
    while not scheduler.is_finished():
        before = scheduler.num_reports
        watch = ClusterWatch(connection, wait_s, LOCAL_S[min(num_losses, len(LOCAL_S) - 1)], tell, scheduler.stopping)
        try:
            with watch:
                run(watch)
            return
        except (Exception, KeyboardInterrupt) as error:
            is_asked_to_stop = isinstance(error, KeyboardInterrupt) and not watch.lost
            if is_asked_to_stop or scheduler.stopping.reason or not (lost := watch.cause()):
                raise
            # The frames hold what would wait for the cluster as it is freed: they are kept until that is left.
            frames = error.__traceback__
            deadline_s = time.monotonic() + wait_s - watch.silent_s
            _leave(connection, scheduler, lost, deadline_s, tell)
            del frames
        gc.collect()
        num_losses += 1
        num_idle = 0 if scheduler.num_reports > before else num_idle + 1
        if num_idle >= MAX_IDLE:
            raise StoppedError(f"{lost}, {MAX_IDLE} times in a row before anything was reported.")
        _join_next(connection, lost, deadline_s)


def _leave(
    connection: Connection, scheduler: Scheduler, lost: str, deadline_s: float, tell: Callable[[str], None]
) -> None:
    """Ends or leaves a cluster that was lost, and gives its tasks back.

    Raises:
        StoppedError: if that is not possible, or the cluster was there before this process joined it.
    """
    left_s = deadline_s - time.monotonic()
    if not connection.is_ours:
        raise StoppedError(f"{lost}.") from None
    if connection.is_local:
        tell(f"{lost}; Ponderay starts Ray again, and the work goes on from its last checkpoints.")
        connection.end_processes()
    else:
        tell(f"{lost}; the sweep waits for the cluster for up to {max(0.0, left_s) / 60:.1f} min.")
    scheduler.lose_all("the cluster that ran it was lost")
    if not connection.close(CLOSE_S if connection.is_local else max(left_s, CLOSE_S)):
        raise StoppedError(f"{lost}.") from None


def _join_next(connection: Connection, lost: str, deadline_s: float) -> None:
    """Starts or joins the next cluster.

    Raises:
        StoppedError: if it does not start in several tries, or a cluster of others is not back within the limit.
    """
    num_tries = 0
    while True:
        fault = "" if connection.is_local else address_fault(connection.address)
        if not fault:
            try:
                connection.renew()
                return
            except InputError as error:
                fault = str(error)
        num_tries += 1
        if num_tries >= MAX_IDLE if connection.is_local else time.monotonic() > deadline_s:
            raise StoppedError(f"{lost}, and there is no other: {fault.rstrip('.')}.")
        time.sleep(PAUSE_S)
