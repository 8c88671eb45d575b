"""Ray for as long as a sweep runs: the cluster at RAY_ADDRESS, or one made on this machine."""

import atexit
import contextlib
import importlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final

import ray
from ray.util.placement_group import placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from orchestrator.cluster import ray_internals
from orchestrator.cluster import token as ray_token
from orchestrator.cluster.address import raylet_at
from orchestrator.cluster.worker_setup import made_here, runtime_environment
from orchestrator.console.exit_codes import FAILED
from orchestrator.journal.lines import Record
from orchestrator.machine.processes import children, is_gone, kill, start_time, with_variable
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.watchdog import end_process
from trainables.errors import InputError

RAY_SETTINGS: Final = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "1e9",
    "TUNE_MAX_PENDING_TRIALS_PG": "1000",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "120",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_idle_worker_killing_time_threshold_ms": "30000",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "86400",
    "RAY_gcs_server_request_timeout_seconds": "30",
    "TUNE_STATE_REFRESH_PERIOD": "1e9",
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "1e9",
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S_AUTOSCALER": "1e9",
}
"""Ray ends this process a minute after a head has gone, even if another has taken its place since; hence a day of
patience: Ponderay itself watches that. With the last four the driver waits for a head that is gone in no call, deaf to
signals, or half a minute at most.

Workers that Ray starts ahead would be ended after a second, before Tune has work for them. Tune's own checkpoints are
thrown away in any case. Of the trials that wait it else takes one at a time, so that each
process starts after the one before; the scheduler hands out no more than there is room for.
"""

KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN")
WATCHED: Final = ("raylet", "gcs_server")
LOOK_AGAIN_S: Final = 1.0
ASK_S: Final = 5.0
FIRST_ASK_S: Final = 60.0
CLOSE_S: Final = 20.0
END_TIMEOUT_S: Final = 20.0
COORDINATOR_TIMEOUT_S: Final = 15.0

MOST_BYTES: Final = 107
"""The longest path of a socket on Linux."""

SOCKET: Final = "/ray/session_2000-01-01_00-00-00_000000_4194304/sockets/plasma_store.10"
"""The longest path of a socket below a temporary folder."""

PLACES: Final = ("/tmp", "/var/tmp", "/dev/shm")
"""What has a short name on every machine."""


@contextlib.contextmanager
def ray_session(num_cpus: int | None, is_verbose: bool) -> Iterator["Connection"]:
    """Ray, started or reached; a Ray that this process had before stays.

    Args:
        num_cpus: of a cluster made here; default: this machine's.

    Raises:
        InputError: if Ray does not start, or the cluster does not answer or does not take this user's token.
    """
    os.environ.update({name: value for name, value in RAY_SETTINGS.items() if name not in os.environ})
    loading = threading.Thread(target=importlib.import_module, args=("ray.tune",), name="load Tune", daemon=True)
    loading.start()  # it takes a second, in which Ray's processes start
    connection = Connection(num_cpus, is_verbose)
    loading.join()
    try:
        with contextlib.ExitStack() as stack:
            if connection.is_local:
                with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
                    stack.enter_context(ray_internals.sending_no_variables())
            keep_keys_here()
            yield connection
    finally:
        connection.close()


def session_folder() -> str | None:
    """A folder for a cluster's files, where Ray could not use that of RAY_TMPDIR or TMPDIR; None where it can.

    The temporary folders of batch systems are easily too long for sockets. Where no place will do, Ray says why.
    """
    place = os.environ.get("RAY_TMPDIR", os.environ.get("TMPDIR", PLACES[0]))
    is_short = Path(place).is_absolute() and len(os.fsencode(place + SOCKET)) <= MOST_BYTES
    if is_short and (_is_writable(place) or ("RAY_TMPDIR" in os.environ and not Path(place).exists())):
        return None
    return next((f"{short}/ray" for short in PLACES if _is_writable(short)), None)


def _is_writable(place: str) -> bool:
    return Path(place).is_dir() and os.access(place, os.W_OK | os.X_OK)


class Connection:
    """Ray as this process has started or joined it; it can be made anew when the cluster was lost.

    Attributes:
        is_ours: whether it was made here; one that this process had before is not closed, and cannot be made anew.
        is_local: whether the cluster was started here too, and ends with this process.
        address: HOST:PORT of the cluster's head.
        node: id of the node that this process has joined.
        processes: process number and start of what must live on this machine, by name.
        identity: what the cluster is known by; nothing where it could not be asked.
        capacity: what the cluster has at present.
    """

    def __init__(self, num_cpus: int | None, is_verbose: bool) -> None:
        self._num_cpus, self._is_verbose = num_cpus, is_verbose
        self._wanted = os.environ.get("RAY_ADDRESS") or "local"
        self._started: dict[int, str] = {}
        self.is_ours = not ray.is_initialized()
        self.is_local = self.is_ours and self._wanted == "local"
        if self.is_ours:
            self._join(self._wanted)
        self._look()

    def _look(self) -> None:
        context = ray.get_runtime_context()
        self.address, self.node = context.gcs_address, context.get_node_id()
        self.processes: dict[str, tuple[int, str]] = {}
        with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
            if self.is_ours:
                pids = ray_internals.started_processes() or {"raylet": raylet_at(ray_internals.raylet_socket())}
                starts = {name: (pid, start_time(pid)) for name, pid in pids.items() if name in WATCHED}
                self.processes = {name: process for name, process in starts.items() if process[1]}
        self.identity = ray_token.identity(self.address, ray_token.presented_token(), FIRST_ASK_S) or b""
        self.capacity = ClusterCapacity()

    def renew(self) -> None:
        """Starts Ray on this machine again, or joins the same address again.

        Raises:
            InputError: as `ray_session`.
        """
        if ray.is_initialized():  # where the last try failed half-way
            self.close()
        self._join(self._wanted if self.is_local else self.address)
        self._look()

    def close(self, limit_s: float = CLOSE_S) -> bool:
        """Leaves the cluster, and ends one that was started here; whether that was possible within the limit.

        A head that is there but does not answer holds Ray up for ever, so another thread waits for it. Where it still
        does, Ray is left as it is, and this process ends without it: as failed, for its sweep was cut off.
        """
        if not self.is_ours:
            return True
        closing = threading.Thread(target=ray.shutdown, name="leave Ray", daemon=True)
        closing.start()
        closing.join(limit_s)
        if closing.is_alive():
            atexit.register(_end_without_ray)
        return not closing.is_alive()

    def end_processes(self) -> None:
        """Ends what is left of a cluster that was started here, with all that its workers have started."""
        raylet = self.processes.get("raylet", (0, ""))[0]
        workers = with_variable(ray_internals.RAYLET_VARIABLE, str(raylet)) | children(raylet) if raylet else {}
        for pid, started in [*workers.items(), *self._started.items()]:
            kill(pid, started)

    def is_answering(self) -> bool:
        """Whether the cluster is there now, and still the same one."""
        if self.dead_process():
            return False
        return not self.identity or self.identity == ray_token.identity(self.address, ray_token.presented_token())

    def dead_process(self) -> str:
        """The name of a process of Ray on this machine that has ended; empty where all live."""
        return next((name for name, known in self.processes.items() if is_gone(*known)), "")

    def _join(self, address: str) -> None:
        for name in ("ray.tune", "ray.train", "ray._private.authentication"):
            logging.getLogger(name).setLevel(logging.INFO if self._is_verbose else logging.CRITICAL)
        ray_token.prepare(address)  # also has Ray read its variables again
        before = signal.getsignal(signal.SIGTERM)
        with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
            ray_internals.start_nothing_unasked()
        of_it: dict[str, Any] = {"runtime_env": runtime_environment()}
        if self.is_local:
            of_it = {"num_cpus": self._num_cpus, "include_dashboard": False, "_temp_dir": session_folder()}
        held = children(os.getpid())
        try:
            with contextlib.ExitStack() as stack:
                if self.is_local:
                    stack.enter_context(made_here())
                    with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
                        stack.enter_context(ray_internals.starting_little(self._is_verbose))
                ray.init(
                    address=address,
                    logging_level=logging.INFO if self._is_verbose else logging.WARNING,
                    log_to_driver=self._is_verbose,
                    **of_it,
                )
        except ray.exceptions.AuthenticationError:
            raise InputError(
                f"RAY_AUTH_MODE is token, but this machine has no token for {address}. {ray_token.REMEDY}"
            ) from None
        except ConnectionError as error:
            raise InputError(f"No Ray cluster answers at RAY_ADDRESS={address}: {error}.") from None
        except Exception as error:  # Ray raises bare ones where a node does not come up in time
            for pid, started in _children_since(held).items():
                kill(pid, started)
            why = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
            where = "on this machine" if self.is_local else f"at {address}"
            raise InputError(f"Ray did not start {where}: {why}. Run the same command again.") from error
        finally:
            # undoes what Ray does to a driver's SIGTERM, which only the main thread can
            if before is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, before)
        self._started = _children_since(held)
        if not self._is_verbose:
            with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
                ray_internals.quieten_raylet()


def _children_since(held: dict[int, str]) -> dict[int, str]:
    """The processes that this one has started since it had the children `held`: Ray's helpers among them."""
    return {pid: started for pid, started in children(os.getpid()).items() if held.get(pid) != started}


def _end_without_ray() -> None:
    """Ends this process before Ray's own end, which would wait for ever."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(FAILED)


def keep_keys_here() -> None:
    """Has Tune send no keys of a bucket with its trials, for Ray logs and shows all variables that are sent.

    Processes of a cluster made here have them from this one; the nodes of another one must have keys of their own.
    """
    with contextlib.suppress(ImportError, AttributeError):  # a later Ray may have moved it
        ray_internals.propagated_variables().difference_update(KEYS)


@contextlib.contextmanager
def removing_leftovers(is_answering: Callable[[], bool]) -> Iterator[None]:
    """Gives back what was reserved within the block and is still held when it is cut off.

    Tune leaves its actors behind then, which matters where Ray goes on. A placement group's id ends with its job's.
    """
    before, job = set(placement_group_table()), ray.get_runtime_context().get_job_id()
    try:
        yield
    except BaseException:
        if is_answering():  # else Ray would wait for it
            give_back([name for name in placement_group_table() if name not in before and name.endswith(job)])
        raise


def give_back(names: Collection[str]) -> None:
    """Frees what the placement groups of these ids reserve, as far as they are still there."""
    known = placement_group_table()
    for name in names:
        if known.get(name, {}).get("state", "REMOVED") != "REMOVED":
            remove_placement_group(ray_internals.placement_group_of(name))


def keep_coordinator_here() -> None:
    """Has the actor by which elastic training learns what it may use live on the driver's node.

    Ray 2.60 pins it to the node that asks first; when that one is lost, it can never come back, and elastic training
    stands still on the whole cluster. One that has gone so already is removed.
    """
    coordinator = ray_internals.autoscaling_coordinator()
    try:
        ray.get(coordinator.get_reserved_resources.remote("ponderay"), timeout=COORDINATOR_TIMEOUT_S)
    except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError):
        ray.kill(coordinator)
        ray_internals.autoscaling_coordinator()
    except ray.exceptions.RayError:
        return  # it lives, and knows of no request of this name


class ClusterCapacity:
    """What the cluster has at present: nodes may come and go.

    Another thread asks, for Ray would wait for a head that is gone, deaf to signals.

    Attributes:
        nodes: ids of those that are alive.
    """

    def __init__(self) -> None:
        self._asked_s = -LOOK_AGAIN_S
        self._known: Capacity | None = None
        self._asking: threading.Thread | None = None
        self._lock = threading.Lock()  # the driver's threads ask too
        self.nodes: frozenset[str] = frozenset()

    def __call__(self) -> Capacity:
        """A second old, or as last known while the cluster does not answer.

        Raises:
            InputError: if it has never answered.
        """
        asking: threading.Thread | None = None  # whose answer is worth waiting for: it is new, or the first
        with self._lock:
            if self._asking is not None and self._asking.is_alive():
                asking = None if self._known else self._asking
            elif time.monotonic() - self._asked_s >= LOOK_AGAIN_S:
                asking = self._asking = threading.Thread(target=self._ask, name="capacity", daemon=True)
                asking.start()
        if asking:
            asking.join(ASK_S if self._known else FIRST_ASK_S)
        if self._known is None:
            raise InputError("The Ray cluster does not say what it has. Run the same command again.")
        return self._known

    def _ask(self) -> None:
        with contextlib.suppress(ray.exceptions.RayError):  # then what is known stays
            nodes = [node for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
            cpus, gpus = ([node["Resources"].get(kind, 0.0) for node in nodes] for kind in ("CPU", "GPU"))
            each = tuple(zip(cpus, gpus, strict=True))
            self._known = Capacity(sum(cpus), sum(gpus), max(cpus, default=0.0), max(gpus, default=0.0), each)
            self.nodes = frozenset(node["NodeID"] for node in nodes)
            self._asked_s = time.monotonic()


def end_on_node(started: Record) -> str:
    """Ends the process that wrote `started`, by a task on its node, and returns where that hung.

    A node that is gone needs nothing.
    """
    on_its_node = NodeAffinitySchedulingStrategy(started["node_id"], soft=False)
    task = ray.remote(num_cpus=0)(end_process).options(scheduling_strategy=on_its_node)
    with contextlib.suppress(ray.exceptions.RayError):
        return str(ray.get(task.remote(started), timeout=END_TIMEOUT_S))
    return ""
