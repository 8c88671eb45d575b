"""The command `check`: whether a sweep can work, and whether its replicates repeat and resume, digit by digit."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.options import Smoke, SweepName, Values, find
from orchestrator.console.exit_codes import DONE, FAILED
from orchestrator.console.printing import out, say
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.checks.resumption import Numbers, Trials
    from search_spaces.sweep import Condition, Sweep


def check(
    name: SweepName,
    smoke: Smoke = False,
    values: Values = None,
    condition: Annotated[str | None, typer.Option(help="Which condition is tried; default: the first one.")] = None,
    reports: Annotated[int, typer.Option(min=2, max=1_000, help="How many reports of the replicate are compared.")] = 4,
) -> None:
    """Say what cannot work in a sweep and its trainable, then try one replicate: again, behind another, and resumed.

    It runs the first reports four times in processes of their own and a temporary folder, and tests what they kept
    twice; nothing is recorded. All metrics but times must be equal in all digits. Exit code 1 says that they are not,
    or that `evaluate` fails. Of a prerequisite that it trains it says how far it is below its floor, as a linear
    prediction, where it has one.
    """
    from orchestrator.checks.resumption import try_out
    from orchestrator.checks.sweep import check_secrets, check_unwatched_data
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.floors import of_prerequisites
    from orchestrator.scheduler.task_factory import TaskFactory
    from orchestrator.worker.contract import check_contract, unreported
    from orchestrator.worker.trainable import load

    sweep = find(name, smoke, values, None)
    check_contract(sweep)
    out.print(f"contract ok: {sweep.name}, {sweep.num_conditions()} conditions, {sweep.trainable}", markup=False)
    for warning in (*check_secrets(sweep), *check_unwatched_data(sweep)):
        out.print(f"Warning: {warning.line()}", markup=False, soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="ponderay-check-") as folder:
        settings = replace(read_settings(), runs=Path(folder), storage="")

        tried = _chosen(sweep, condition)
        trials = try_out(sweep, tried, settings, reports, lambda text: out.print(f"{text} ...", markup=False))
        for floor in of_prerequisites(TaskFactory(sweep, settings, num_gpus=0)):
            out.print(f"{'' if floor.is_beaten else 'Warning: '}{floor.sentence}", markup=False, soft_wrap=True)
    reported = {metric for _, metric in trials.whole}
    if fault := unreported(load(sweep.trainable), sweep.config(tried, sweep.seeds[0]), reported):
        # The replicate did not come to its end, where this is an error: a later report may still have it.
        say(f"Warning: {fault.replace('no report', f'none of the first {reports} reports')}")
    is_good = _print_answers(trials)
    if is_good and len({step for step, _ in trials.whole}) == reports:
        say(f"Tried: the first {reports} reports; what changes later, as by a schedule, needs a larger --reports.")
    raise SystemExit(DONE if is_good else FAILED)


def _chosen(sweep: "Sweep", name: str | None) -> "Condition":
    from search_spaces.sweep import Condition

    if not sweep.conditions:
        if name is not None:
            raise InputError(f"{sweep.name} draws its conditions, and its base is tried; leave --condition out.")
        return Condition("base")
    return sweep.conditions[0] if name is None else sweep.condition(name)


def _print_answers(trials: "Trials") -> bool:
    """Prints all answers; whether all are good."""
    if not _print_comparison("repeated", "Seed every random stream from `config.seed`.", trials.whole, trials.again):
        out.print("resumed  not judged, because runs that nothing interrupts differ already", markup=False)
        return False
    label = f"independent of what ran before (behind {trials.before})"
    remedy = "Let no replicate read what another one keeps, as in a file, a cache or a running program."
    is_independent = _print_comparison(label, remedy, trials.whole, trials.behind)
    if not trials.has_checkpoint:
        out.print("There was no checkpoint to go on from: a replicate that is cut off begins again.")
    remedy = "A checkpoint must hold all that the next step needs: optimiser, random generators, order of the data."
    label = f"resumed (killed after step {trials.killed_at})"
    is_resumed = _print_comparison(label, remedy, trials.whole, trials.resumed)
    return _print_test(trials) and is_resumed and is_independent


def _print_test(trials: "Trials") -> bool:
    """Prints what came of testing a model that is not trained yet; whether that is good."""
    if trials.test_fault:
        say(f"evaluation {trials.test_fault} (after the first reports; if it needs a longer training, give --reports)")
        return False
    remedy = "`evaluate` must set what it needs by itself, such as the default dtype: its process may not have trained."
    label = "evaluated (where it was trained, and in another process)"
    return not trials.tested or _print_comparison(label, remedy, trials.tested, trials.tested_again)


def _print_comparison(label: str, remedy: str, expected: "Numbers", numbers: "Numbers") -> bool:
    from orchestrator.checks.resumption import differences, untimed

    different, compared = list(differences(expected, numbers)), untimed(expected)
    if not different:
        steps, metrics = ({key[i] for key in compared} for i in (0, 1))
        say(f"{label} ok: the values of {len(metrics)} metrics at {len(steps)} steps are equal in all digits")
        return True
    first = different[0]
    other = "missing" if first.found is None else repr(first.found)
    place = (
        f"{len(different)} of {len(compared)} numbers, first {first.metric} at step {first.step}: {first.expected!r}"
    )
    say(f"{label} differs in {place}, then {other}. {remedy}")
    return False
