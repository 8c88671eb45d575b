"""What must hold after a round: nothing lost, nothing doubled, nothing left behind."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import optuna
from mlflow import MlflowClient
from mlflow.entities import Run
from optuna.trial import FrozenTrial, TrialState

from benchmarks.faulty.alone import Expected, expected
from benchmarks.faulty.processes import left_after, records
from benchmarks.faulty.sweeps import NUM_REPLICATES, Kind, sweep
from orchestrator.environment.settings import Settings, read_settings
from orchestrator.results.study import Replicate
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.mlflow_internals import SYSTEM_PREFIX
from search_spaces.sweep import Condition

LEFT_S: Final = 20.0
"""How long Ray's agents may take to go."""

STATUS: Final = {"complete": "FINISHED", "failed": "FAILED"}
Id = tuple[str, int]


def check(kind: Kind, runs: Path) -> list[str]:
    """All that is wrong with the results of a sweep; the settings in force must be those of its drivers."""
    factory = TaskFactory(sweep(kind), read_settings(), 0)
    wanted: dict[Id, Expected] = {}
    keys: dict[Id, str] = {}
    for condition in _conditions(kind, factory.settings):
        for seed in factory.sweep.seeds:
            config: Any = factory.sweep.config(condition, seed)
            wanted[condition.name, seed] = expected(config)
            keys[condition.name, seed] = factory.replicate(
                condition, seed, factory.prerequisites(condition, seed)
            ).work.key
    study = Tracking(factory.settings).read_study(factory.sweep.name)
    folder = runs / "replicates" / factory.sweep.name
    found = [*_results(study.replicates, wanted, keys), *_journals(study.replicates, wanted, folder)]
    found += _recorded(factory.settings, factory.sweep.name, wanted, keys)
    if len(wanted) != NUM_REPLICATES[kind]:
        found.append(f"{len(wanted)} replicates instead of {NUM_REPLICATES[kind]}")
    return [*found, *(_search(factory.settings, study.replicates) if kind == "searched" else ())]


def leaks(folder: Path) -> list[str]:
    """Processes of the round that do not go."""
    return [f"process {number} is left: {command}" for number, command in left_after(folder, LEFT_S).items()]


def _conditions(kind: Kind, settings: Settings) -> tuple[Condition, ...]:
    if kind != "searched":
        return sweep(kind).conditions
    identity = _study(settings).study_name.rpartition("-")[2][:4]
    return tuple(
        Condition(f"{trial.number:04d} x={trial.params['x']:.3g} {identity}", dict(trial.params))
        for trial in _trials(settings)
    )


def _results(replicates: tuple[Replicate, ...], wanted: Mapping[Id, Expected], keys: Mapping[Id, str]) -> Iterator[str]:
    """The study against each replicate run alone."""
    times = Counter((replicate.condition, replicate.seed) for replicate in replicates)
    yield from (f"{one} is {number} times in the study" for one, number in times.items() if number > 1)
    yield from (f"{one} is missing in the study" for one in wanted if one not in times)
    yield from (f"{one} is in the study and should not be" for one in times if one not in wanted)
    for replicate in replicates:
        one = replicate.condition, replicate.seed
        if one not in wanted:
            continue
        if replicate.key != keys[one]:
            yield f"{one} has the key {replicate.key} instead of {keys[one]}"
        if replicate.state != wanted[one].state:
            yield f"{one} is {replicate.state} instead of {wanted[one].state}: {replicate.error}"
        elif dict(replicate.metrics) != wanted[one].metrics:
            yield f"{one} has other metrics: {dict(replicate.metrics)} instead of {wanted[one].metrics}"


def _journals(replicates: tuple[Replicate, ...], wanted: Mapping[Id, Expected], folder: Path) -> Iterator[str]:
    """Each journal against the study; it holds each step once, and one evaluation at most."""
    there = {journal.parent.name for journal in folder.glob("*/journal.jsonl")}
    for extra in there - {replicate.key for replicate in replicates}:
        yield f"the journal {extra} is in no study"
    for replicate in replicates:
        one, journal = (replicate.condition, replicate.seed), folder / replicate.key / "journal.jsonl"
        if replicate.key not in there:
            yield f"{one} has no journal"
            continue
        rows = records(journal)
        steps = [row["step"] for row in rows if row["kind"] == "metrics"]
        if one in wanted and steps != list(range(1, wanted[one].num_reports + 1)):
            yield f"the journal of {one} has the steps {steps}"
        metrics: dict[str, float] = {}
        for row in rows:
            metrics |= row.get("metrics", {})
        states = [row["state"] for row in rows if row["kind"] == "state"]
        if metrics != dict(replicate.metrics) or states[-1:] != [replicate.state]:
            yield f"the journal of {one} says {states[-1:]} {metrics}, the study {replicate.state} {replicate.metrics}"
        if (number := sum(row["kind"] == "evaluation" for row in rows)) > 1:
            yield f"{one} was evaluated {number} times"


def _recorded(settings: Settings, name: str, wanted: Mapping[Id, Expected], keys: Mapping[Id, str]) -> Iterator[str]:
    """MLflow's own runs."""
    client = MlflowClient(tracking_uri=settings.tracking_uri)
    runs = list(_runs(client))
    yield from (f"the run {run.info.run_name} is RUNNING" for run in runs if run.info.status == "RUNNING")
    kinds = [(run.data.tags.get("ponderay.kind"), run.data.tags.get("ponderay.key")) for run in runs]
    for (kind, key), number in Counter(pair for pair in kinds if pair[0] not in ("book", None)).items():
        if number > 1:
            yield f"{kind} {key} has {number} runs"
    yield from (
        f"the run {run.info.run_name} is no one's" for run, kind in zip(runs, kinds, strict=True) if not kind[0]
    )
    for kind, number in (("condition", len({condition for condition, _ in wanted})), ("prerequisite", 1)):
        if (there := sum(pair[0] == kind for pair in kinds)) != number:
            yield f"{there} runs of kind {kind} instead of {number}"
    by_key = {key: run for run, (kind, key) in zip(runs, kinds, strict=True) if kind == "replicate"}
    yield from (f"the run {key} is of no replicate of {name}" for key in by_key.keys() - set(keys.values()))
    for one, key in keys.items():
        if key not in by_key:
            yield f"{one} has no run"
        else:
            yield from _run(client, by_key[key], one, wanted[one])


def _run(client: MlflowClient, run: Run, one: Id, wanted: Expected) -> Iterator[str]:
    if run.info.status != STATUS[wanted.state]:
        yield f"the run of {one} is {run.info.status} instead of {STATUS[wanted.state]}"
    stored = {name.replace("@", "/"): value for name, value in wanted.recorded.items()}
    found = {name: value for name, value in run.data.metrics.items() if not name.startswith(SYSTEM_PREFIX)}
    if wanted.state == "complete" and found != stored:
        yield f"the run of {one} has {found} instead of {stored}"
    steps = [metric.step for metric in client.get_metric_history(run.info.run_id, "loss")]
    if sorted(steps) != list(range(1, wanted.num_reports + 1)):
        yield f"the run of {one} has the steps {steps}"


def _runs(client: MlflowClient) -> Iterator[Run]:
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    token = None
    while True:
        page = client.search_runs(experiments, max_results=1000, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _study(settings: Settings) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    (name,) = optuna.get_all_study_names(settings.search_store)
    return optuna.load_study(study_name=name, storage=settings.search_store)


def _trials(settings: Settings) -> list[FrozenTrial]:
    """Those of the sweep: one that was cut off while it was drawn is given up."""
    trials = _study(settings).get_trials()
    return [trial for trial in trials if trial.params or trial.state != TrialState.FAIL]


def _search(settings: Settings, replicates: tuple[Replicate, ...]) -> Iterator[str]:
    """Optuna's trials: all complete, each with the mean over its seeds."""
    for trial in _trials(settings):
        own = [replicate for replicate in replicates if replicate.condition.startswith(f"{trial.number:04d} ")]
        if trial.state != TrialState.COMPLETE:
            yield f"trial {trial.number} is {trial.state.name}"
            continue
        means = [sum(replicate.metrics[f"{name}@plain"] for replicate in own) / 2 for name in ("error", "cost")]
        if trial.values != means:
            yield f"trial {trial.number} has {trial.values} instead of {means}"
