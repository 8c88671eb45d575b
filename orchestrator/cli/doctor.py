"""The command `doctor`: finds what would go wrong before it does."""

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import Resources, Seeds, Smoke, Values, find
from orchestrator.console.exit_codes import REFUSED
from orchestrator.console.printing import Format, OutputFormat, print_rows
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.checks.check import Check
    from orchestrator.environment.settings import Settings
    from search_spaces.sweep import Sweep


def doctor(
    name: Annotated[
        str | None, typer.Argument(metavar="[SWEEP]", help="Also looks at this sweep's data, seeds and resources.")
    ] = None,
    smoke: Smoke = False,
    values: Values = None,
    seeds: Seeds = None,
    resources: Resources = None,
    format: OutputFormat = Format.table,
) -> None:
    """Check Ray, tracking, storage, data, disk, seeds, GPUs, versions and exposed ports; start nothing.

    The exit code is 3 if a check failed: `run` would be refused or would break, or others can get in.
    """
    from orchestrator.environment.settings import settings_as_given

    settings = settings_as_given()
    sweep = find(name, smoke, values, seeds, resources) if name else None
    checks = diagnose(sweep, settings)
    print_rows([asdict(check) for check in checks], format, title="Doctor", whole=("name", "state"))
    if any(check.state == "failed" for check in checks):
        raise SystemExit(REFUSED)


def diagnose(sweep: "Sweep | None", settings: "Settings") -> "list[Check]":
    """Every check; those of a sweep only where one is given."""
    from orchestrator.checks import exposure
    from orchestrator.checks import nodes as node_checks
    from orchestrator.checks import sweep as sweep_checks
    from orchestrator.scheduler.task_factory import TaskFactory

    ray = node_checks.check_ray()
    if sweep is None:
        here = [
            sweep_checks.check_tracking(settings),
            sweep_checks.check_storage(settings),
            sweep_checks.check_disk(settings),
            sweep_checks.check_gpu(),
        ]
    else:
        try:
            factory = TaskFactory(sweep, settings, num_gpus=0)
            here = sweep_checks.look(sweep, settings, sweep_checks.read_fingerprints(factory))
            here += sweep_checks.check_floors(factory)
        except InputError as error:
            here = sweep_checks.look(sweep, settings, error)
    is_writable = all(check.state != "failed" for check in here if check.name == "storage")
    nodes, dashboard = _of_nodes(ray, sweep, settings) if is_writable else ([], "")
    return [ray, *here, *nodes, *exposure.check_exposure(settings, dashboard)]


def _of_nodes(ray: "Check", sweep: "Sweep | None", settings: "Settings") -> "tuple[list[Check], str]":
    """The checks of the cluster's nodes, and its dashboard, where RAY_ADDRESS names a cluster that answers."""
    from orchestrator.checks import nodes as node_checks
    from orchestrator.checks.check import Check
    from orchestrator.cluster.address import joined, names_cluster

    if not names_cluster():
        return [Check("versions", "ok", "one machine")], ""
    if ray.state != "ok":
        return [], ""
    try:
        with joined(os.environ["RAY_ADDRESS"]) as dashboard:
            return node_checks.on_nodes(settings, sweep.trainable if sweep else None), dashboard
    except InputError as error:
        return [Check("ray nodes", "failed", str(error), node_checks.PIN)], ""
    except (ConnectionError, RuntimeError, ValueError) as error:
        found = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        remedy = "Install on this machine the versions of Python and Ray that the cluster has."
        return [Check("ray nodes", "failed", found, remedy)], ""
