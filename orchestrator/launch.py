"""Looks for what cannot work before a sweep runs; only then MLflow and Ray are loaded, which takes seconds."""

import contextlib
import math
from collections.abc import Collection, Iterable

from rich.console import Console

from orchestrator.checks.check import Check, refuse_failed
from orchestrator.checks.sweep import before_ray, check_places, check_secrets
from orchestrator.results.outcome import Outcome
from orchestrator.scheduler.task_factory import TaskFactory


def launch(
    factory: TaskFactory,
    console: Console,
    num_cpus: int | None = None,
    accept_code: bool = False,
    max_device_hours: float = math.inf,
    is_verbose: bool = False,
    retry: Collection[str] = (),
) -> Outcome:
    """Looks for what cannot work, then does as `driver.run_on_ray`, whose arguments are the same.

    Raises:
        InputError: if the sweep's data or settings are wrong.
        RefusedError: if it must not start as it is.
        StoppedError, KeyboardInterrupt: if it was stopped; what is done is kept.
    """
    checks = before_ray(factory.sweep, factory.settings, factory)
    _warn(checks, console)
    refuse_failed(checks)
    from orchestrator.driver import run_on_ray

    return run_on_ray(factory, console, num_cpus, accept_code, max_device_hours, is_verbose, retry)


def _warn(checks: Iterable[Check], console: Console) -> None:
    for check in checks:
        if check.state == "warning":
            console.print(f"Warning: {check.line()}", markup=False, soft_wrap=True)


def launch_here(factory: TaskFactory, console: Console, accept_code: bool, retry: Collection[str] = ()) -> Outcome:
    """Looks whether anything can be kept, then does as `driver.run_without_ray`.

    Raises:
        RefusedError, StoppedError, KeyboardInterrupt: as `launch`.
    """
    checks = [*check_places(factory.settings), *check_secrets(factory.sweep)]
    _warn(checks, console)
    refuse_failed(checks)
    from orchestrator.driver import run_without_ray
    from orchestrator.worker.template import Template

    with contextlib.closing(Template()) as template:
        return run_without_ray(factory, console, accept_code, retry, template)
