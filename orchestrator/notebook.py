"""Ponderay from a notebook: run a sweep, ask for its front, compare its conditions; `load` reads a study.

Example:
    >>> from orchestrator import notebook  # doctest: +SKIP
    >>> study = notebook.run("asr.demo", smoke=True)  # doctest: +SKIP
    >>> study.to_dataframe().groupby("condition")["per@stochastic"].describe()  # doctest: +SKIP
    >>> [point.name for point in notebook.pareto(study).points if point.is_front]  # doctest: +SKIP
    >>> [found.answer for found in notebook.compare(study, "surprisal", "random")]  # doctest: +SKIP
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.results.study import Study
from orchestrator.tracking.load import load_configs, load_study
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.pareto.membership import UncertainFront
    from orchestrator.report.answers import Answers
    from orchestrator.results.comparison import Comparison
    from orchestrator.statistics.pairwise import Test
    from search_spaces.sweep import Objective, Sweep


def load(sweep: str) -> Study:
    """What the sweep called `sweep` has produced so far.

    Raises:
        InputError: if the sweep has not run.

    Example:
        >>> load("asr.demo").summary("surprisal", "per@stochastic")  # doctest: +SKIP
    """
    return load_study(sweep)


def run(sweep: "Sweep | str", cpus: int | None = None, accept_code: bool = False, smoke: bool = False) -> Study:
    """The study of `sweep`, a sweep or the name of a shipped one, once what was left of it has run on Ray.

    It is `ponderay run`: what is done stays done, what was cut off goes on.

    Args:
        cpus: of a cluster made on this machine; default: all.
        accept_code: go on beside results of another version of the trainable's code.
        smoke: the small size of a shipped sweep.

    Raises:
        InputError: if the sweep, its data or its settings are wrong.
        RefusedError: if it must not start as it is.

    Example:
        >>> from dataclasses import replace  # doctest: +SKIP
        >>> study = run(replace(find_sweep("asr.demo", smoke=True), seeds=(1, 2)), cpus=2)  # doctest: +SKIP
    """
    from orchestrator.console.printing import out
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.finished import finished_replicates
    from orchestrator.scheduler.task_factory import TaskFactory

    settings, found = read_settings(), _sweep(sweep, smoke)
    factory = TaskFactory(found, settings, num_gpus=0)
    if not finished_replicates(factory, accept_code):
        from orchestrator.driver import launch  # loads MLflow, and then Ray

        outcome = launch(factory, out, cpus, accept_code)
        if outcome.input_errors:
            raise InputError(outcome.input_errors[0])
    return load_study(found.name, settings)


def pareto(
    study: Study | str, objectives: "Sequence[Objective]" = (), reference: str | None = None
) -> "UncertainFront":
    """The front of a study, or of the sweep of that name, and how sure it is given so few seeds.

    Its `points` come by the first objective, those on the front of the means marked; `memberships`, in the same order,
    hold the share of resamples in which each is on the front and in which it dominates the reference, and the 95 %
    intervals of its means; `volume` is the hypervolume with its interval; `notes` is what to know of the seeds.

    Args:
        objectives: two or three; default: the first three of the shipped sweep of the study's name.
        reference: a condition; default: that of the shipped sweep, or the only one that is it with `--set`.

    Raises:
        InputError: if there is nothing to take a default from.

    Example:
        >>> front = pareto("asr.demo", [Objective("per"), Objective("real_time_factor")])  # doctest: +SKIP
        >>> for point, membership in zip(front.points, front.memberships):  # doctest: +SKIP
        ...     print(point.name, membership.on_front, membership.standing)
    """
    from orchestrator.pareto.membership import uncertain_front
    from orchestrator.results.reference import Reference, find_reference

    loaded = load_study(study) if isinstance(study, str) else study
    shipped = _shipped(loaded.sweep)
    chosen = _objectives(loaded, objectives)[:3]
    found = find_reference(shipped, loaded) if shipped and not reference else Reference(reference or "")
    front = uncertain_front(loaded, chosen, found.name or None)
    return replace(front, notes=(*filter(None, [found.note]), *front.notes))


def compare(
    study: Study | str, a: str, b: str, objectives: "Sequence[Objective]" = (), test: "Test | None" = None
) -> "tuple[Comparison, ...]":
    """Point `a` against point `b` of a study, or of the sweep of that name, in each objective.

    Each says the difference of the means with its interval, the tests with the smallest p they can reach, effect sizes,
    and how many seeds the difference needs; their p-values are adjusted as one family.

    Args:
        a: a condition, with `@evaluation` where the study has several evaluations.
        b: likewise.
        objectives: default: those of the shipped sweep of the study's name.
        test: default: that of the shipped sweep, else `welch`.

    Raises:
        InputError: if there is no such point, or nothing to take the objectives from.

    Example:
        >>> for found in compare("asr.demo", "surprisal", "random"):  # doctest: +SKIP
        ...     print(found.metric, found.difference, found.interval, found.p_holm, found.answer)
    """
    from orchestrator.pareto.front import front
    from orchestrator.results import comparison

    loaded = load_study(study) if isinstance(study, str) else study
    shipped, chosen = _shipped(loaded.sweep), _objectives(loaded, objectives)
    points = {point.name: point for point in front(loaded, chosen)}
    for name in (a, b):
        if name not in points:
            known = ", ".join(points) or "none"
            raise InputError(f"{loaded.sweep} has no point {name!r} with these metrics; there are {known}.")
    promised = test or (shipped.test if shipped else "welch")
    return comparison.compare(points[a], points[b], chosen, promised, tuple(points.values()))


def report(study: Study | str, sweep: "Sweep | None" = None) -> "Answers":
    """All that `ponderay report` says of a study: front, comparisons with the reference, verdicts on published numbers.

    Args:
        sweep: the study's; default: the shipped one of its name.

    Raises:
        InputError: if there is no such sweep, or nothing of it is complete.

    Example:
        >>> for verdict in report("asr.table2_timit").verdicts:  # doctest: +SKIP
        ...     print(verdict.claim.id, verdict.finding, verdict.reason)
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.report.answers import answer
    from orchestrator.results.question import Question

    loaded = load_study(study) if isinstance(study, str) else study
    asked = sweep or _shipped(loaded.sweep)
    if asked is None:
        raise InputError(f"{loaded.sweep} is no shipped sweep, so `sweep` must be given.")
    return answer(loaded, Question.of_study(asked, loaded, lambda: load_configs(loaded.sweep, read_settings())))


def _objectives(study: Study, given: "Sequence[Objective]") -> "tuple[Objective, ...]":
    shipped = _shipped(study.sweep)
    if given:
        return tuple(given)
    if shipped is None:
        raise InputError(f"{study.sweep} is no shipped sweep, so `objectives` must be given.")
    return shipped.objectives


def _shipped(name: str) -> "Sweep | None":
    """The shipped sweep of that name; None for one of the user's own."""
    from search_spaces.find import find_sweep

    try:
        return find_sweep(name)
    except InputError:
        return None


def _sweep(sweep: "Sweep | str", smoke: bool) -> "Sweep":
    from search_spaces.find import find_sweep

    if isinstance(sweep, str):
        return find_sweep(sweep, smoke)
    if smoke:
        raise InputError("`smoke` goes with the name of a shipped sweep; give the sweep in its small size instead.")
    return sweep
