"""The curves of replicates: from the curve file, its copy on the server, the journals, or else MLflow's runs.

Of those of validation answers say whether training was long enough.
"""

import contextlib
import gzip
import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from orchestrator.environment.settings import Settings
from orchestrator.journal.curve_file import CURVE_FILE, curves_in
from orchestrator.journal.folder import ReplicateFolder, looked_at
from orchestrator.journal.study_file import name_of
from orchestrator.journal.summary import summarise
from orchestrator.results.curves import Curve, ReplicateCurves, mean_curves, thinned
from orchestrator.results.study import Replicate, Study
from orchestrator.results.validations import SeedCurve, Validations, foreseeing
from orchestrator.tracking import names
from orchestrator.tracking.load import open_tracking
from orchestrator.tracking.store import store_kind
from orchestrator.tracking.study_copy import CURVE_COPY
from orchestrator.worker.trainable import load
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError
from trainables.metric import Best

Found = dict[str, ReplicateCurves]
MOST_PRUNED: Final = 100


def load_curves(
    sweep: str, replicates: Sequence[Replicate], settings: Settings, metrics: Collection[str] | None = None
) -> Found:
    """The curves of these replicates of a sweep, by `name_of`, as far as there are any.

    Args:
        metrics: all that is asked for; default: every one. Only MLflow is asked for each by itself.
    """
    file, found = settings.replicates(sweep) / CURVE_FILE, Found()
    with contextlib.suppress(OSError):
        found = curves_in(file.read_bytes(), replicates)
    # Of one that has not ended the file may have an earlier try.
    if unfinished := [one for one in replicates if one.state in ("running", "stopped")]:
        found |= _of_journals(sweep, unfinished, settings, metrics)
    for of_source in (_of_copy, _of_journals, _of_runs):
        if lacking := [one for one in replicates if name_of(one) not in found]:
            found |= of_source(sweep, lacking, settings, metrics)
    return found


def load_mean_curves(study: Study, conditions: Sequence[str], settings: Settings) -> tuple[Curve, ...]:
    """The curves of conditions over those complete replicates whose curves are found, by condition and metric.

    Behind them come those of replicates that a search has stopped early, of MOST_PRUNED at most.
    """
    complete = [one for one in study.own("complete") if one.condition in conditions]
    pruned = study.own("pruned")[:MOST_PRUNED]
    found = load_curves(study.sweep, [*complete, *pruned], settings)
    curves: list[Curve] = []
    for name in conditions:
        known = [found[name_of(one)].curves for one in complete if one.condition == name and name_of(one) in found]
        curves += mean_curves(name, known)
    for one in pruned:
        if name_of(one) in found:
            own = mean_curves(one.condition, [found[name_of(one)].curves])
            curves += [replace(curve, is_pruned=True) for curve in own]
    return tuple(curves)


def _of_copy(sweep: str, replicates: Sequence[Replicate], settings: Settings, _: Collection[str] | None) -> Found:
    if store_kind(settings.tracking_uri) == "sqlite" or not (tracking := open_tracking(sweep, settings)):
        return {}
    try:
        files = [file for file in tracking.runs(sweep).files_of(names.STUDY_FOLDER) if file.path.endswith(CURVE_COPY)]
        return curves_in(gzip.decompress(files[0].read()), replicates) if files else {}
    except (OSError, EOFError, zlib.error):  # it is being replaced, or the store of files is away
        return {}


def _of_journals(sweep: str, replicates: Sequence[Replicate], settings: Settings, _: Collection[str] | None) -> Found:
    """The curves in journals, as far as these are within reach."""
    paths = [settings.replicates(sweep) / one.key for one in replicates]
    folders = looked_at([ReplicateFolder(path, {}, settings.shared(path)) for path in paths])
    found = Found()
    for one, folder in zip(replicates, folders, strict=True):
        with contextlib.suppress(OSError, InputError):
            if records := folder.records():
                found[name_of(one)] = thinned(summarise(records).histories)
    return found


def _of_runs(sweep: str, replicates: Sequence[Replicate], settings: Settings, metrics: Collection[str] | None) -> Found:
    by_run = {one.run_id: one for one in replicates if one.run_id}
    tracking = open_tracking(sweep, settings) if by_run else None
    if tracking is None:
        return {}
    runs, histories = tracking.runs(sweep), defaultdict[str, dict[str, Mapping[int, float]]](dict)
    for metric in metrics or dict.fromkeys(metric for one in by_run.values() for metric in one.metrics):
        for run_id, history in runs.histories_of(list(by_run), names.stored_name(metric)).items():
            if len(history) > 1:  # else it is the number of an evaluation
                histories[run_id][metric] = history
    return {name_of(by_run[run_id]): thinned(by_metric) for run_id, by_metric in histories.items()}


MOST_REPLICATES: Final = 1000
"""The largest study of which curves are read: of old ones the store is asked for each one by itself."""


def read_validations(sweep: Sweep, study: Study, settings: Settings) -> Validations:
    """The validations of the complete replicates; none of a large study, or where the trainable's code is not here."""
    replicates = [one for one in study.own("complete") if one.key]
    if len(replicates) > MOST_REPLICATES:
        return Validations()
    try:
        selected = _selected(sweep, study)
    except InputError:
        return Validations()
    metrics = {one.metric for named in selected.values() for one in named.values()}
    for objective in sweep.objectives:
        for evaluation in (*study.evaluations(), ""):
            metrics.update(foreseeing(objective.metric, evaluation))
    found = load_curves(sweep.name, replicates, settings, metrics)
    curves = tuple(
        SeedCurve(one.condition, one.seed, metric, tuple(kept), tuple(kept.values()))
        for metric in sorted(metrics)
        for one in replicates
        if name_of(one) in found and (kept := found[name_of(one)].of(metric))
    )
    return Validations(selected, curves) if curves else Validations()


def with_validations(sweep: Sweep, study: Study, settings: Settings) -> Study:
    """The study with its validations, beside those that bundles have brought."""
    return replace(study, validations=read_validations(sweep, study, settings).joined(study.validations))


def _selected(sweep: Sweep, study: Study) -> dict[str, Mapping[str, Best]]:
    """By recorded condition and evaluation; one that is not listed, as those of a search, is taken to be as the base.

    Raises:
        InputError: if the trainable cannot be loaded, or does not say.
    """
    trainable = load(sweep.trainable)
    listed = {condition.name: condition for condition in sweep.conditions}
    configs = ((name, sweep.config(listed.get(name, Condition("base")), sweep.seeds[0])) for name in study.conditions)
    return {name: trainable.selection(config) for name, config in configs}
