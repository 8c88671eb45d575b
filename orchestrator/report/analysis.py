"""What the replicates of a condition make of sentences, minimal pairs and agreement, over seeds and with tests."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.scheduler.task import folder_of_replicate
from orchestrator.statistics.significance import holm, welch_p
from orchestrator.statistics.summary import summarise
from orchestrator.tracking.client import Tracking
from search_spaces.sweep import Sweep
from trainables.errors import InputError
from trainables.lm import train
from trainables.lm.analysis import agreement as agreements
from trainables.lm.analysis import garden_paths, suites
from trainables.lm.analysis import trained_model as of_one
from trainables.lm.analysis.trained_model import Cells, Trained
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
        tested: two measures that are compared within a row, where they differ; without them there is a test only
            against a condition.
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
    longest = max(len(one.words) for one in found)
    if step is not None and step > longest:
        raise InputError(f"`--step` must be at most {longest}, the words of the longest sentence, but got {step}.")
    columns = ("sentence", "position", "word")
    tested = ("bits_before", "bits_after") if step is None else ("bits_without", "bits_before")
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
        _over_replicates(question, sweep, name, chosen, settings) if name else None
        for name, chosen in ((condition, evaluation), (against, None))
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
            p_values.append(_p_of_a_change(*(values[*name, measure] for measure in question.tested)))
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
    """Each complete replicate's model with the lowest validation loss, one after another, with its own text.

    Raises:
        InputError: also if that text is no longer what it was.
    """
    if sweep.trainable != LANGUAGE_MODELS:
        raise InputError(f"{sweep.name} trains no language models; `ponderay analyse` takes sweeps of the family lm.")
    study = Tracking(settings).read_study(sweep.name)
    if condition not in study.conditions:
        raise InputError(f"{sweep.name} has run no condition {condition!r}, but {', '.join(study.conditions)}.")
    complete = [one for one in study.of(condition) if one.state == "complete"]
    if not complete:
        raise InputError(f"No replicate of {condition!r} is complete; see `ponderay status {sweep.name}`.")
    for replicate in complete:
        folder = folder_of_replicate(settings, sweep.name, replicate.key)
        config = _config(folder, replicate.data_fingerprint)
        tests = {one.name: one for one in config.evaluations}
        name = evaluation or next(iter(tests))
        if name not in tests:
            raise InputError(f"{condition!r} has no evaluation {name!r}; it has {', '.join(tests)}.")
        best = ReplicateFolder(folder.path, train.selection(config), folder.shared).best(name)
        if best is None:
            raise InputError(f"{folder.shared or folder.path} has no whole checkpoint; analyse where the runs are.")
        yield of_one.load(config, best, tests[name])


def _config(folder: ReplicateFolder, fingerprint: str) -> LmConfig:
    """What a replicate was last started with, once its text is known to be the same."""
    records, place = folder.records(), folder.shared or folder.path
    if not records:
        raise InputError(f"{place} has no journal; name the PONDERAY_RUNS or PONDERAY_STORAGE that the sweep ran with.")
    started = [record for record in records if record["kind"] == "started"]
    if not started or "config" not in started[-1]:
        raise InputError(f"{place} does not say how it was trained; run the sweep again with `--accept-code`.")
    config = LmConfig.model_validate(started[-1]["config"])
    if train.fingerprint(config) != fingerprint:
        raise InputError(f"The text of {place} is no longer what it was trained on; put it back.")
    return config


def _p_of_a_change(a: Sequence[float], b: Sequence[float]) -> float:
    """NaN where nothing has changed: that is no test."""
    is_same = all(math.isclose(one, other, rel_tol=1e-6) for one, other in zip(a, b, strict=True))
    return math.nan if is_same else welch_p(a, b)


def _summary(name: str, values: Sequence[float]) -> dict[str, Any]:
    found = summarise(values) if values else None
    return {name: found.mean if found else None, f"{name}_std": _or_none(found.std) if found else None}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
