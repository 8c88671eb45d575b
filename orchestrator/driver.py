"""A sweep from declaration to study: opens the tracking store, plans, and lets Ray Tune carry it out."""

import contextlib
import logging
import math
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from rich.console import Console

from orchestrator.draft import Drafter
from orchestrator.lease import Lease
from orchestrator.plan import Capacity, ConditionSource, ListedConditions, Plan
from orchestrator.progress import ProgressView
from orchestrator.recorder import Recorder
from orchestrator.refusal import RefusedError
from orchestrator.settings import Settings
from orchestrator.study import Replicate
from orchestrator.tracking import Tracking
from search_spaces.sweep import Sweep
from trainables.errors import InputError

RAY_SETTINGS: Final = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "120",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
NUM_RETRIES: Final = 3


@dataclass(frozen=True)
class Outcome:
    """What a driver leaves: every replicate of the sweep, and the user's mistakes that only the work itself found."""

    replicates: tuple[Replicate, ...]
    input_errors: tuple[str, ...]

    @property
    def num_failed(self) -> int:
        """Replicates that failed."""
        return sum(replicate.state == "failed" for replicate in self.replicates)


def run_on_ray(sweep: Sweep, settings: Settings, console: Console, num_cpus: int | None, accept_code: bool) -> Outcome:
    """Runs what is left of `sweep` on the cluster at RAY_ADDRESS, or on one made on this machine for the purpose.

    Args:
        num_cpus: of the cluster made here; default: this machine's.

    Raises:
        RefusedError: if another driver runs this sweep, or it must not start as it is.
    """
    with _sweep_lease(sweep, settings), _ray(num_cpus) as capacity, _stop_on_sigterm():
        with _planned(sweep, settings, console, capacity, accept_code) as plan:
            if not plan.is_finished():
                _tune(plan, settings)
        return Outcome(tuple(plan.replicates()), tuple(plan.input_errors))


def run_without_ray(sweep: Sweep, settings: Settings, console: Console, accept_code: bool) -> Outcome:
    """Runs what is left of `sweep` in this process.

    Raises:
        RefusedError: as `run_on_ray`.
    """
    from orchestrator.local import run_here

    with _sweep_lease(sweep, settings), _stop_on_sigterm():
        with _planned(sweep, settings, console, Capacity(), accept_code) as plan:
            run_here(plan)
        return Outcome(tuple(plan.replicates()), tuple(plan.input_errors))


@contextlib.contextmanager
def _planned(
    sweep: Sweep, settings: Settings, console: Console, capacity: Capacity, accept_code: bool
) -> Iterator[Plan]:
    drafter = Drafter(sweep, settings, 0 if math.isinf(capacity.num_gpus) else capacity.num_gpus)
    recorder = Recorder(Tracking(settings), drafter)
    try:
        with ProgressView(console, sweep.name) as view:
            plan = Plan(drafter, recorder, _source(drafter, settings, capacity), view, capacity, accept_code)
            plan.extend()
            yield plan
    finally:
        recorder.close()


def _source(drafter: Drafter, settings: Settings, capacity: Capacity) -> ConditionSource:
    sweep = drafter.sweep
    if sweep.search is None:
        return ListedConditions(sweep.conditions)
    from orchestrator.search import SearchedConditions

    max_open = 1 if math.isinf(capacity.num_cpus) else max(1, int(capacity.num_cpus) // len(sweep.seeds))
    fingerprint = drafter.fingerprint(sweep.trainable, sweep.base)
    return SearchedConditions(sweep, fingerprint, f"sqlite:///{settings.runs / 'optuna.db'}", max_open)


def _tune(plan: Plan, settings: Settings) -> None:
    """Tune's own records are thrown away afterwards: the journals say more, and survive more."""
    from ray import tune

    from orchestrator.search import PlanSearcher
    from orchestrator.worker import run_trial, trial_resources

    with tempfile.TemporaryDirectory(prefix="tune-", dir=settings.runs) as folder:
        tune.Tuner(
            tune.with_resources(run_trial, trial_resources),
            tune_config=tune.TuneConfig(search_alg=PlanSearcher(plan), num_samples=-1, reuse_actors=True),
            run_config=tune.RunConfig(
                name="sweep",
                storage_path=folder,
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=NUM_RETRIES),
            ),
        ).fit()


@contextlib.contextmanager
def _ray(num_cpus: int | None) -> Iterator[Capacity]:
    os.environ.update({name: value for name, value in RAY_SETTINGS.items() if name not in os.environ})
    import ray

    for name in ("ray.tune", "ray._private.authentication"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from orchestrator.worker_process import runtime_environment

    if ray.is_initialized():
        yield _capacity()
        return
    address = os.environ.get("RAY_ADDRESS", "local")
    made_here: dict[str, Any] = {"num_cpus": num_cpus, "include_dashboard": False} if address == "local" else {}
    try:
        ray.init(
            address=address,
            runtime_env=runtime_environment(),
            logging_level=logging.WARNING,
            log_to_driver=False,
            **made_here,
        )
    except ConnectionError as error:
        raise InputError(f"No Ray cluster answers at RAY_ADDRESS={address}: {error}.") from None
    try:
        yield _capacity()
    finally:
        ray.shutdown()


def _capacity() -> Capacity:
    import ray

    resources = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return Capacity(resources.get("CPU", 0), resources.get("GPU", 0))


@contextlib.contextmanager
def _sweep_lease(sweep: Sweep, settings: Settings) -> Iterator[None]:
    lease = Lease(settings.runs / "replicates" / f"{sweep.name}.lock")
    if not lease.acquire():
        raise RefusedError(f"{sweep.name} is being run by {lease.holder()}; wait for it or stop it.")
    try:
        yield
    finally:
        lease.release()


@contextlib.contextmanager
def _stop_on_sigterm() -> Iterator[None]:
    """SIGTERM ends the driver as Ctrl-C does, so that it leaves everything in order.

    Entered after Ray has started, which sets a handler of its own.
    """

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
