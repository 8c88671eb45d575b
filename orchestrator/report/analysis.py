"""What an analysis gives for the replicates of a condition, over seeds and with tests."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.packed_folder import kept_open
from orchestrator.report.table import finite
from orchestrator.results.lookup import find_condition
from orchestrator.results.study import Replicate
from orchestrator.scheduler.task import folder_of_replicate
from orchestrator.statistics.equivalence import Difference
from orchestrator.statistics.significance import holm, welch_p
from orchestrator.statistics.summary import summarise
from orchestrator.tracking.load import load_study
from orchestrator.worker.trainable import Trainable, load
from search_spaces.known_names import known_names
from search_spaces.sweep import Sweep
from trainables.analysis import Analysis, Options
from trainables.config import offer_secrets, restored
from trainables.errors import InputError
from trainables.importing import in_one_sentence

Values = Mapping[tuple[Any, ...], Sequence[float]]
"""The numbers of each cell, one for each replicate."""


@dataclass(frozen=True)
class Question:
    """What is asked of each replicate.

    Attributes:
        name: of the analysis.
        options: as its `ask` takes them.
    """

    name: str
    analysis: Analysis
    options: Options

    @classmethod
    def of(cls, sweep: Sweep, name: str | None, given: Mapping[str, tuple[str, ...]]) -> "Question":
        """An analysis that the sweep's trainable has, by default its first one, with the texts given for each option.

        Raises:
            InputError: if there is no such analysis or option, or an option is given more often than it may be.
        """
        found = load(sweep.trainable).analyses
        if not found:
            raise InputError(
                f"{sweep.trainable}, the trainable of {sweep.name}, has no analyses; give it a mapping `analyses` from "
                "names to `trainables.analysis.Analysis`."
            )
        chosen = name or next(iter(found))
        if chosen not in found:
            listed = " ".join(f"{one}: {analysis.about}" for one, analysis in found.items())
            raise InputError(f"{sweep.trainable} has no analysis {chosen!r}; it has {listed}")
        analysis = found[chosen]
        for option, texts in given.items():
            if option not in analysis.options:
                known = "; ".join(f"{one}: {meaning}" for one, meaning in analysis.options.items())
                has = f"the options are {known}" if known else "it has none"
                raise InputError(f"The analysis {chosen!r} has no option {option!r}; {has}.")
            if len(texts) > 1 and option not in analysis.repeatable:
                rule = f"The option {option!r} of {chosen!r} must be given once"
                raise InputError(f"{rule}, but got {' and '.join(texts)}.")
        options = {option: texts if option in analysis.repeatable else texts[0] for option, texts in given.items()}
        return cls(chosen, analysis, options)


def answer(
    question: Question, sweep: Sweep, condition: str, against: str | None, evaluation: str | None, settings: Settings
) -> list[dict[str, Any]]:
    """One flat record a row: its name, then mean and std of each measure, n of the one that is tested, then the tests.

    What is not finite in a replicate is left out. Two measures are compared within each replicate, two conditions as
    two groups. The condition `against` is asked under the same evaluation; where it has none of this name, under its
    first one.

    Raises:
        InputError: if the sweep has no such condition, or nothing of it is complete.
    """
    _, values = _over_replicates(question, sweep, condition, evaluation, settings)
    other = _over_replicates(question, sweep, against, evaluation, settings, may_lack_it=True)[1] if against else None
    names, measures = _names_and_measures(values)
    tested = question.analysis.pair(question.options)
    rows, p_values = [], []
    for name in names:
        row: dict[str, Any] = dict(zip(question.analysis.columns, name, strict=True))
        for measure in measures:
            row |= _summary(measure, values[*name, measure])
        first = tested[0] if tested else measures[0]
        row["n"] = len(_finite(values[*name, first]))
        if other is not None:
            row |= _summary(f"{first}_against", other.get((*name, first), ()))
            p_values.append(welch_p(_finite(values[*name, first]), _finite(other.get((*name, first), ()))))
        elif tested:
            p_values.append(_p_of_a_change(*(values[*name, measure] for measure in tested)))
        rows.append(row)
    for row, p, adjusted in zip(rows, p_values, holm(p_values), strict=False):
        row |= {"p": finite(p), "p_holm": finite(adjusted)}
    return rows


def answer_of_each(
    question: Question, sweep: Sweep, condition: str, evaluation: str | None, settings: Settings
) -> list[dict[str, Any]]:
    """One flat record a row and replicate: the row's name, the seed, and each measure.

    Raises:
        InputError: if the sweep has no such condition, or nothing of it is complete.
    """
    seeds, values = _over_replicates(question, sweep, condition, evaluation, settings)
    names, measures = _names_and_measures(values)
    return [
        dict(zip(question.analysis.columns, name, strict=True))
        | {"seed": seed}
        | {measure: finite(values[*name, measure][i]) for measure in measures}
        for name in names
        for i, seed in enumerate(seeds)
    ]


def _names_and_measures(values: Values) -> tuple[list[tuple[Any, ...]], list[str]]:
    return list(dict.fromkeys(cell[:-1] for cell in values)), list(dict.fromkeys(cell[-1] for cell in values))


def _over_replicates(
    question: Question,
    sweep: Sweep,
    condition: str,
    evaluation: str | None,
    settings: Settings,
    may_lack_it: bool = False,
) -> tuple[list[int], Values]:
    """The seeds of the complete replicates, and every cell's numbers over them.

    Raises:
        InputError: if nothing of the condition is complete, or replicates do not have the same cells, each named as
            the analysis says.
    """
    values: dict[tuple[Any, ...], list[float]] = {}
    seeds = []
    for seed, config, checkpoint, test in _trained(sweep, condition, evaluation, settings, may_lack_it):
        with in_one_sentence(f"The analysis {question.name!r} of {condition} seed {seed} fails"):
            cells = question.analysis.ask(config, checkpoint, test, question.options)
        seeds.append(seed)
        for cell, value in cells.items():
            values.setdefault(cell, []).append(value)
        _check(question, condition, seeds, values)
    return seeds, values


def _check(question: Question, condition: str, seeds: Sequence[int], values: Values) -> None:
    """Raises InputError where the numbers of a replicate cannot be laid beside each other."""
    columns, where = question.analysis.columns, f"{question.name} of {condition} seed {seeds[-1]}"
    wrong = next((cell for cell in values if len(cell) != len(columns) + 1), None)
    if wrong:
        raise InputError(f"{where} must name each number by {', '.join(columns)} and a measure, but has {wrong!r}.")
    names, measures = _names_and_measures(values)
    if not values or len(values) < len(names) * len(measures):
        raise InputError(f"{where} must give each measure for each row, but some are missing.")
    if any(len(one) != len(seeds) for one in values.values()):
        raise InputError(f"{where} must have the rows and measures of seed {seeds[0]}, but has others.")
    if missing := [measure for measure in question.analysis.pair(question.options) or () if measure not in measures]:
        raise InputError(f"{where} must have the measure {missing[0]!r}, which is compared, but has none.")


def _trained(
    sweep: Sweep, condition: str, evaluation: str | None, settings: Settings, may_lack_it: bool
) -> Iterator[tuple[int, Any, Path, Any]]:
    """Seed, config, best checkpoint and evaluation of each complete replicate.

    Raises:
        InputError: if nothing of the condition is complete, or the data of a replicate is no longer what it was.
    """
    study = load_study(sweep.name, settings)
    condition = find_condition(study, condition)
    complete = [one for one in study.of(condition) if one.state == "complete"]
    if not complete:
        raise InputError(f"No replicate of {condition!r} is complete; see `ponderay status {sweep.name}`.")
    trainable = load(sweep.trainable)
    for replicate in complete:
        folder = folder_of_replicate(settings, sweep.name, replicate.key)
        config = _config(sweep, trainable, folder, replicate)
        tests = {one.name: one for one in trainable.evaluations(config)}
        selection = trainable.selection(config)
        is_own = not evaluation or (may_lack_it and evaluation not in tests)
        name = next(iter(tests or selection), "") if is_own else str(evaluation)
        if not is_own and name not in tests:
            raise InputError(f"{condition!r} has no evaluation {name!r}; it has {known_names(tests, name)}.")
        kept = ReplicateFolder(folder.path, selection, folder.shared)
        best = kept.best(name) if name in selection else kept.newest()
        if best is None:
            raise InputError(f"{folder.shared or folder.path} has no whole checkpoint; analyse where the runs are.")
        yield replicate.seed, config, kept_open(best), tests.get(name)


def _config(sweep: Sweep, trainable: Trainable, folder: ReplicateFolder, replicate: Replicate) -> Any:
    """What a replicate was last started with, once its data is known to be the same."""
    records, place = folder.records(), folder.shared or folder.path
    if not records:
        raise InputError(f"{place} has no journal; name the PONDERAY_RUNS or PONDERAY_STORAGE that the sweep ran with.")
    started = [record for record in records if record["kind"] == "started"]
    if not started or "config" not in started[-1]:
        raise InputError(f"{place} does not say how it was trained; run the sweep again with `--accept-code`.")
    offer_secrets([sweep.base])
    config = restored(type(sweep.base), started[-1]["config"])
    if trainable.fingerprint(config) != replicate.data_fingerprint:
        raise InputError(f"The data of {place} is no longer what it was trained on; put it back.")
    return config


def _p_of_a_change(a: Sequence[float], b: Sequence[float]) -> float:
    """The p-value of a paired t-test over replicates; NaN where nothing has changed, or all by the same amount."""
    pairs = [(one, other) for one, other in zip(a, b, strict=True) if math.isfinite(one) and math.isfinite(other)]
    if all(math.isclose(one, other, rel_tol=1e-6) for one, other in pairs):
        return math.nan
    difference = Difference.paired(*map(list, zip(*pairs, strict=True)))
    return difference.p() if difference.standard_error else math.nan


def _finite(values: Sequence[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def _summary(name: str, values: Sequence[float]) -> dict[str, Any]:
    found = summarise(kept) if (kept := _finite(values)) else None
    return {name: found.mean if found else None, f"{name}_std": finite(found.std) if found else None}
