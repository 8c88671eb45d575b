"""What `ponderay run` and notebooks do alike: look first, refuse what cannot work, then run on Ray."""

import math

from rich.console import Console

from orchestrator.environment.settings import Settings
from orchestrator.results.outcome import Outcome
from orchestrator.scheduler.finished import finished_replicates
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.sweep import Sweep


def launch(
    sweep: Sweep,
    settings: Settings,
    console: Console,
    num_cpus: int | None = None,
    accept_code: bool = False,
    max_device_hours: float = math.inf,
    is_verbose: bool = False,
) -> "Outcome":
    """Runs what is left of `sweep`, if anything; the arguments are those of `driver.run_on_ray`.

    Raises:
        InputError: if the sweep's data or settings are wrong.
        RefusedError: if it must not start as it is.
        StoppedError, KeyboardInterrupt: if it was stopped; what is done is kept.
    """
    factory = TaskFactory(sweep, settings, num_gpus=0)
    if done := finished_replicates(factory, accept_code):
        return Outcome(done)
    from orchestrator.checks.check import refuse_failed
    from orchestrator.checks.sweep import before_ray
    from orchestrator.driver import run_on_ray

    checks = before_ray(sweep, settings, factory)
    for check in checks:
        if check.state == "warning":
            console.print(f"Warning: {check.line()}", markup=False, soft_wrap=True)
    refuse_failed(checks)
    return run_on_ray(factory, console, num_cpus, accept_code, max_device_hours, is_verbose)
