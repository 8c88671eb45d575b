"""What the replicates of a condition make of sentences, minimal pairs and agreement, over seeds and with tests."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.settings import Settings
from orchestrator.statistics import holm, summarise, welch_p
from orchestrator.storage import ReplicateFolder
from orchestrator.tracking import Tracking
from search_spaces.sweep import Sweep
from trainables.errors import InputError
from trainables.lm import agreement as agreements
from trainables.lm import analysis as of_one
from trainables.lm import garden_paths, suites, train
from trainables.lm.analysis import Cells, Trained
from trainables.lm.config import LmConfig

LANGUAGE_MODELS = "trainables.lm.train"

Values = Mapping[tuple[Any, ...], Sequence[float]]
"""Of each cell, one number for each replicate."""


@dataclass(frozen=True)
class Question:
    """What is asked of each model.

    Attributes:
        kind: sentences, suite, agreement or theorems.
        ask: gives the cells of one model.
        columns: names of the parts of a row's name.
        tested: two measures that are compared within a row; without them there is a test only against a condition.
        criticals: the position of each sentence's critical word.
    """

    kind: str
    ask: Callable[[Trained], Cells]
    columns: tuple[str, ...]
    tested: tuple[str, str] | None = None
    criticals: Mapping[int, int | None] = field(default_factory=dict)


def about_sentences(path: Path | None, step: int | None) -> Question:
    """Each word of the sentences in a file, by default classic garden paths; recoded everywhere, or at one position."""
    found = garden_paths.read(path) if path else garden_paths.SENTENCES
    recode_at = None if step is None else step - 1
    criticals = {i + 1: None if one.critical is None else one.critical + 1 for i, one in enumerate(found)}
    columns, tested = ("sentence", "position", "word"), ("bits_before", "bits_after")
    return Question("sentences", lambda model: of_one.of_sentences(model, found, recode_at), columns, tested, criticals)


def about_suites(paths: Sequence[Path]) -> Question:
    """The effect in each suite of minimal pairs."""
    chosen = [suites.read(path) for path in paths]
    return Question("suite", lambda model: of_one.of_suites(model, chosen), ("suite", "reading"))


def about_agreement(path: Path) -> Question:
    """The accuracy in agreement items."""
    items = agreements.read(path)
    return Question("agreement", lambda model: of_one.of_agreement(model, items), ("kind", "reading"))


def about_theorems() -> Question:
    """How often the theorems hold."""
    return Question("theorems", of_one.of_theorems, ("theorem", "setting"))


def answer(
    question: Question, sweep: Sweep, condition: str, against: str | None, evaluation: str | None, settings: Settings
) -> list[dict[str, Any]]:
    """One flat record a row: its name, then mean, std and n of each measure, then the tests.

    Raises:
        InputError: if the sweep is of another family, has no such condition, or nothing of it is complete.
    """
    values, other = (
        _over_replicates(question, sweep, name, evaluation, settings) if name else None for name in (condition, against)
    )
    assert values is not None
    names, measures = (list(dict.fromkeys(part)) for part in ((c[:-1] for c in values), (c[-1] for c in values)))
    rows, p_values = [], []
    for name in names:
        row: dict[str, Any] = dict(zip(question.columns, name, strict=True))
        if question.criticals:
            row["is_critical"] = question.criticals[name[0]] == name[1]
        for measure in measures:
            row |= _summary(measure, values[*name, measure])
        row["n"] = len(values[*name, measures[0]])
        first = question.tested[0] if question.tested else measures[0]
        if other is not None:
            row |= _summary(f"{first}_against", other.get((*name, first), ()))
            p_values.append(welch_p(values[*name, first], other.get((*name, first), ())))
        elif question.tested:
            p_values.append(welch_p(*(values[*name, measure] for measure in question.tested)))
        rows.append(row)
    for row, p, adjusted in zip(rows, p_values, holm(p_values), strict=False):
        row |= {"p": _or_none(p), "p_holm": _or_none(adjusted)}
    return rows


def _over_replicates(
    question: Question, sweep: Sweep, condition: str, evaluation: str | None, settings: Settings
) -> Values:
    """Every cell's numbers over the complete replicates, by seed."""
    values: dict[tuple[Any, ...], list[float]] = {}
    for model in _models(sweep, condition, evaluation, settings):
        for cell, value in question.ask(model).items():
            values.setdefault(cell, []).append(value)
    return values


def _models(sweep: Sweep, condition: str, evaluation: str | None, settings: Settings) -> Iterator[Trained]:
    """Each complete replicate's model with the lowest validation loss, one after another."""
    if sweep.trainable != LANGUAGE_MODELS:
        raise InputError(f"{sweep.name} trains no language models; `ponderay analyse` takes sweeps of the family lm.")
    named = {one.name: one for one in sweep.conditions}
    if condition not in named:
        raise InputError(f"{sweep.name} has no condition {condition!r}; it has {', '.join(named) or 'none listed'}.")
    complete = [one for one in Tracking(settings).read_study(sweep.name).of(condition) if one.state == "complete"]
    if not complete:
        raise InputError(f"No replicate of {condition!r} is complete; see `ponderay status {sweep.name}`.")
    for replicate in complete:
        config = sweep.config(named[condition], replicate.seed)
        assert isinstance(config, LmConfig)
        tests = {one.name: one for one in config.evaluations}
        name = evaluation or next(iter(tests))
        if name not in tests:
            raise InputError(f"{condition!r} has no evaluation {name!r}; it has {', '.join(tests)}.")
        folder = settings.runs / "replicates" / sweep.name / replicate.key
        path = ReplicateFolder(folder, train.selection(config)).best(name)
        if path is None:
            raise InputError(f"{folder} has no whole checkpoint; run `ponderay run {sweep.name}` where the runs are.")
        yield of_one.load(config, path, tests[name])


def _summary(name: str, values: Sequence[float]) -> dict[str, Any]:
    found = summarise(values) if values else None
    return {name: found.mean if found else None, f"{name}_std": _or_none(found.std) if found else None}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
