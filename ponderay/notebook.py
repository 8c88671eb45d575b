"""Ponderay from a notebook: run a sweep, ask for its front, compare its conditions; `load` reads a study.

`from_mlflow` and `Study.from_dataframe` make studies of results from elsewhere.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from orchestrator.results.study import Study
from orchestrator.tracking.load import load_study
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.report.answers import Answers
    from orchestrator.report.views import Comparisons, Front
    from orchestrator.results.question import Question
    from orchestrator.results.trials import Importance
    from orchestrator.results.validations import SeedCurve
    from orchestrator.statistics.pairwise import Test
    from search_spaces.sweep import Objective, Sweep


def load(sweep: str) -> Study:
    """What the sweep called `sweep` has produced so far.

    Args:
        sweep: a study's name, or the place of its sweep, such as `digits.py:sweep`.

    Raises:
        InputError: if the sweep has not run, or there is none at the place.

    Example:
        >>> load("asr.demo").summary("surprisal", "per@stochastic")  # doctest: +SKIP
    """
    return load_study(_sweep(sweep, smoke=False).name if ":" in sweep else sweep)


def from_mlflow(
    experiment: str,
    seed: str,
    condition: str | Sequence[str],
    objectives: "Sequence[Objective]" = (),
    reference: str | None = None,
    test: Literal["welch", "paired_permutation"] = "welch",
    tracking_uri: str | None = None,
) -> Study:
    """The study of runs that were logged with plain MLflow; a run's last value of each metric counts.

    A finished run with a finite value of each objective is complete, one without has failed. Of several runs of a
    condition under one seed the finished one counts. Runs in which others are nested need no seed.

    Args:
        experiment: its name.
        seed: the parameter or tag that tells the runs of a condition apart: a whole number.
        condition: the parameter or tag that names the condition, or several that make it together.
        objectives: what fronts, comparisons and reports are of, unless they are given others.
        reference: the condition that others are compared with.
        test: the comparison with the reference that counts.
        tracking_uri: of the store; default: as set for Ponderay.

    Raises:
        InputError: if there is no such experiment, a run lacks the parameter or tag, or two finished runs are the same.

    Example:
        >>> study = from_mlflow("resnets", "seed", ["width", "lr"], [Objective("error")])  # doctest: +SKIP
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.tracking.foreign_runs import read_foreign_study

    settings = read_settings()
    settings = replace(settings, tracking_uri=tracking_uri or settings.tracking_uri)
    return read_foreign_study(settings, experiment, seed, condition, objectives, reference, test)


def curves(study: Study | str, metric: str | None = None, condition: str | None = None) -> "tuple[SeedCurve, ...]":
    """What replicates have reported in training, by step: a curve for each metric, condition and seed.

    Of a metric that was reported more than 200 times it has 200 even steps, and every value near the end. `is_pruned`
    marks what a search has stopped early.

    Args:
        metric: default: every one.
        condition: default: every one.

    Raises:
        InputError: if there is no such condition, or no replicate has reported the metric in training.

    Example:
        >>> for curve in curves("asr.demo", "valid_per", "surprisal"):  # doctest: +SKIP
        ...     plt.plot(curve.steps, curve.values, label=f"seed {curve.seed}")
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.journal.study_file import name_of
    from orchestrator.results.lookup import find_condition
    from orchestrator.results.validations import SeedCurve
    from orchestrator.tracking.curves import load_curves
    from search_spaces.known_names import known_names

    loaded = _loaded(study)
    replicates = loaded.replicates if condition is None else loaded.of(find_condition(loaded, condition))
    found = load_curves(loaded.sweep, replicates, read_settings(), None if metric is None else [metric])
    made = [(one, found[name_of(one)]) for one in replicates if name_of(one) in found]
    every = tuple(
        SeedCurve(one.condition, one.seed, name, tuple(history), tuple(history.values()), one.state == "pruned")
        for one, kept in made
        for name in kept.curves
        if (history := kept.of(name))
    )
    if metric is not None and not any(curve.metric == metric for curve in every):
        known = known_names(dict.fromkeys(curve.metric for curve in every), metric)
        raise InputError(f"No replicate of {loaded.sweep} has reported {metric!r} in training; there are {known}.")
    return tuple(curve for curve in every if metric in (None, curve.metric))


def checkpoint(study: Study | str, condition: str, seed: int, evaluation: str | None = None) -> Path:
    """The best checkpoint of a complete replicate, as a local file; fetched where it is kept in a bucket.

    Args:
        evaluation: the one under which it is the best; default: the first.

    Raises:
        InputError: if there is no such replicate, it is not complete, or its checkpoint is gone or damaged.

    Example:
        >>> torch.load(checkpoint("asr.demo", "surprisal", 1))  # doctest: +SKIP
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.kept_checkpoint import kept_checkpoint

    settings = read_settings()
    loaded = _loaded(study)
    return kept_checkpoint(loaded, condition, seed, evaluation, settings).path


def run(
    sweep: "Sweep | str",
    cpus: int | None = None,
    accept_code: bool = False,
    smoke: bool = False,
    retry: Sequence[str] = (),
    again: bool = False,
    seeds: int | Sequence[int] | None = None,
    conditions: Sequence[str] = (),
    grid: Mapping[str, Sequence[Any]] | None = None,
    set: Mapping[str, Any] | None = None,
) -> Study:
    """The study of `sweep`, a sweep or the name of a shipped one, once what was left of it has run on Ray.

    It is `ponderay run`: what is done stays done, what was cut off goes on.

    Args:
        cpus: of a cluster made on this machine; default: all.
        accept_code: go on beside results of another version of the trainable's code.
        smoke: the small size of a shipped sweep.
        retry: conditions whose failed replicates are tried again, whatever they failed by.
        again: move replicates of other code or settings to an archive, and train them anew.
        seeds: of each condition, or how many: 1 to N; default: the sweep's.
        conditions: only these; default: all.
        grid: every combination of these values by config path, instead of the sweep's conditions, or with each of
            `conditions`.
        set: values of config fields by path, in every condition.

    Raises:
        InputError: if the sweep, its data or its settings are wrong.
        RefusedError: if it must not start as it is.

    Example:
        >>> from dataclasses import replace  # doctest: +SKIP
        >>> study = run("asr.demo", smoke=True, seeds=2, cpus=2)  # doctest: +SKIP
        >>> study = run("digits.py:sweep", grid={"width": [8, 16], "lr": [0.1, 0.01]})  # doctest: +SKIP
    """
    from orchestrator.console.printing import out
    from orchestrator.environment.settings import read_settings
    from orchestrator.run import run as run_sweep
    from search_spaces.computed import refuse_computed
    from search_spaces.grids import with_grid

    settings, found = read_settings(), _sweep(sweep, smoke)
    if grid:
        found = with_grid(found, grid, conditions)
    found = found.with_values(set or {})
    if seeds is not None:
        found = replace(found, seeds=tuple(range(1, seeds + 1) if isinstance(seeds, int) else seeds), sequential=None)
    if conditions and not grid:
        found = found.of_conditions(conditions)
    refuse_computed(found, set or {})
    outcome = run_sweep(found, settings, out, cpus, accept_code, retry=retry, again=again)
    if outcome.input_errors:
        raise InputError(outcome.input_errors[0])
    return load_study(found.name, settings)


def pareto(study: Study | str, objectives: "Sequence[Objective]" = (), reference: str | None = None) -> "Front":
    """The front of a study, or of the sweep of that name, and how sure it is given so few seeds.

    Its `points` come by the first objective, those on the front of the means marked; `memberships`, in the same order,
    hold the share of resamples in which each is on the front and in which it dominates the reference, and the 95 %
    intervals of its means; `volume` is the hypervolume with its interval; `notes` is what to know of the seeds.
    `to_dataframe()` is the front as a table, `plot()` as a figure of matplotlib; a notebook shows both.

    Args:
        objectives: two or three; default: the first three of the study's question, or of the shipped sweep of its name.
        reference: a condition; default: likewise, or the only one that is the sweep's with `--set`.

    Raises:
        InputError: if there is nothing to take a default from, an objective is no metric of the study, there is no such
            condition, or no complete replicate has all objectives.

    Example:
        >>> front = pareto("asr.demo", [Objective("per"), Objective("real_time_factor")])  # doctest: +SKIP
        >>> for point, membership in zip(front.points, front.memberships):  # doctest: +SKIP
        ...     print(point.name, membership.on_front, membership.standing)
    """
    from orchestrator.pareto.front import MOST_OBJECTIVES
    from orchestrator.pareto.membership import uncertain_front
    from orchestrator.report.answers import Answers
    from orchestrator.report.views import Front
    from orchestrator.results.lookup import find_condition, no_points
    from orchestrator.results.question import Question
    from orchestrator.results.reference import Reference, find_reference
    from search_spaces.sweep import Sweep

    loaded = _loaded(study)
    asked = _asked(loaded)
    chosen = _objectives(loaded, objectives)[:MOST_OBJECTIVES]
    if reference is not None:
        found = Reference(find_condition(loaded, reference))
    elif isinstance(asked, Sweep):
        found = find_reference(asked, loaded)
    else:
        found = Reference(asked.reference if asked else "")
    front = uncertain_front(loaded, chosen, found.name or None)
    if not front.points:
        raise no_points(loaded, chosen)
    front = replace(front, notes=(*filter(None, [found.note]), *front.notes))
    question = Question(loaded.sweep, "", chosen, found.name, "welch", (), {})
    return Front.of(Answers(question, loaded, front, (), ()))


def compare(
    study: Study | str, a: str, b: str, objectives: "Sequence[Objective]" = (), test: "Test | None" = None
) -> "Comparisons":
    """Point `a` against point `b` of a study, or of the sweep of that name, in each objective.

    Each says the difference of the means with its interval, the tests with the smallest p they can reach, effect sizes,
    and how many seeds the difference needs; their p-values are adjusted as one family. `to_dataframe()` is all of them
    as a table.

    Args:
        a: a condition, with `@evaluation` where it has several evaluations; of a condition that is recorded with one
            setting the name without it will do.
        b: likewise.
        objectives: default: those of the study's question, or of the shipped sweep of its name.
        test: default: likewise, else `welch`.

    Raises:
        InputError: if there is no such point, an objective is no metric of the study, or nothing to take them from.

    Example:
        >>> for found in compare("asr.demo", "surprisal", "random"):  # doctest: +SKIP
        ...     print(found.metric, found.difference, found.interval, found.p_holm, found.answer)
    """
    from orchestrator.pareto.front import front
    from orchestrator.pareto.membership import UncertainFront
    from orchestrator.report.answers import Answers
    from orchestrator.report.views import Comparisons
    from orchestrator.results import comparison
    from orchestrator.results.foreign_study import TESTS
    from orchestrator.results.lookup import find_points, no_points
    from orchestrator.results.question import Question

    loaded = _loaded(study)
    asked, chosen = _asked(loaded), _objectives(loaded, objectives)
    points = front(loaded, chosen)
    if not points:
        raise no_points(loaded, chosen)
    found = [find_points(loaded, points, name) for name in (a, b)]
    for name, own in zip((a, b), found, strict=True):
        if len(own) > 1:
            raise InputError(f"{name!r} has several evaluations; name one of {', '.join(p.name for p in own)}.")
    (left,), (right,) = found
    if left == right:
        raise InputError(f"`a` and `b` must differ, but both are {left.name}; name another `b`.")
    if test not in (None, *TESTS):
        raise InputError(f"`test` must be {' or '.join(TESTS)}, but got {test!r}.")
    promised = test or (asked.test if asked else "welch")
    made = comparison.compare(left, right, chosen, promised, points)
    question = Question(loaded.sweep, "", tuple(chosen), right.condition, promised, (), {})
    none = UncertainFront((), (), None, 0, is_exact=True, is_paired=True)
    return Comparisons.of(Answers(question, loaded, none, made, ()))


def report(study: Study | str, sweep: "Sweep | str | None" = None) -> "Answers":
    """All that `ponderay report` says of a study: front, comparisons with the reference, verdicts on published numbers.

    Args:
        sweep: the study's, or its name; default: what the study itself asks, or the shipped sweep of its name.

    Raises:
        InputError: if there is no such sweep, or nothing of it is complete.

    Example:
        >>> for verdict in report("asr.table2_timit").verdicts:  # doctest: +SKIP
        ...     print(verdict.claim.id, verdict.finding, verdict.reason)
    """
    from orchestrator.audit.record import with_audit
    from orchestrator.report.answers import answer
    from orchestrator.results.question import Question
    from orchestrator.results.reference import recorded_question

    loaded = with_audit(_loaded(study))
    asked = _sweep(sweep, smoke=False) if sweep else _asked(loaded)
    if asked is None:
        raise InputError(f"{loaded.sweep} is no shipped sweep, so `sweep` must be given.")
    return answer(loaded, asked if isinstance(asked, Question) else recorded_question(asked, loaded))


def importance(sweep: "Study | Sweep | str") -> "Importance":
    """How much each parameter of a search matters for each objective, from what Optuna was told so far.

    `shares` holds a row for each of `parameters`; with too few complete conditions there is none, and `notes` say so.

    Raises:
        InputError: if there is no such sweep, or it is no search.

    Example:
        >>> found = importance("asr.search")  # doctest: +SKIP
        >>> dict(zip(found.parameters, found.shares))  # doctest: +SKIP
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.scheduler.importance import importance
    from orchestrator.scheduler.search_store import read_trials

    found = _sweep(sweep.sweep if isinstance(sweep, Study) else sweep, smoke=False)
    return importance(read_trials(found, read_settings()))


def save_report(answers: "Answers", folder: Path | str, bundle: Path | str | None = None) -> tuple[Path, ...]:
    """Writes what `report` found as a page and as tables into `folder`, without MLflow; returns them, the page first.

    The page has no learning curves, and of where the results came from only what the replicates say.

    Args:
        bundle: a zip with all raw values, which `ponderay verify` checks.

    Raises:
        InputError: if a place cannot be written to.

    Example:
        >>> save_report(report(study), "paper", bundle="paper/results.zip")  # doctest: +SKIP
    """
    from orchestrator.report.answers import Answers
    from orchestrator.report.save import save

    if not isinstance(answers, Answers):
        raise InputError(f"`answers` must be what `report(study)` gives, but got a {type(answers).__name__}.")
    return save(answers, Path(folder), Path(bundle) if bundle else None)


def _loaded(study: Study | str) -> Study:
    if isinstance(study, str):
        return load(study)
    if not isinstance(study, Study):
        raise InputError(f"`study` must be a Study or the name of a sweep that has run, but got {study!r}.")
    return study


def _objectives(study: Study, given: "Sequence[Objective]") -> "tuple[Objective, ...]":
    from orchestrator.results.lookup import check_objectives

    if given:
        check_objectives(study, given)
        return tuple(given)
    asked = _asked(study)
    if asked is None:
        raise InputError(f"{study.sweep} is no shipped sweep, so `objectives` must be given.")
    return asked.objectives


def _asked(study: Study) -> "Question | Sweep | None":
    """What says the question of a study: itself, or the shipped sweep of its name."""
    from orchestrator.tracking.named_sweep import find_answerable

    return study.question or find_answerable(study.sweep)


def _sweep(sweep: "Sweep | str", smoke: bool) -> "Sweep":
    from orchestrator.tracking.named_sweep import find_named
    from search_spaces.find import of_program

    if isinstance(sweep, str):
        return find_named(sweep, smoke)
    if smoke:
        raise InputError("`smoke` goes with the name of a sweep; give the sweep in its small size instead.")
    if getattr(getattr(sys.modules.get(sweep.trainable), "__spec__", None), "_initializing", False):
        raise InputError(f'Put what runs {sweep.name} below `if __name__ == "__main__":`; its file is being imported.')
    return of_program(sweep) if sweep.trainable == "__main__" else sweep
