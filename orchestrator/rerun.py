"""Replicates of a bundle are drawn and trained again: whether its values are what its sweep gives.

The draw comes from this machine, so whoever wrote the bundle cannot know it. It is kept beside what was trained: the
same command goes on after an interruption, and a larger number adds to it.
"""

import contextlib
import hashlib
import json
import math
import os
import random
import secrets
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np
from rich.console import Console

from orchestrator.checks.resumption import TIMED
from orchestrator.environment.settings import SETTINGS_FILE, Settings
from orchestrator.machine.durable_files import write_durably
from orchestrator.report.bundle.read import read_bundle
from orchestrator.report.bundle.records import read_provenance, read_question, read_search, read_study
from orchestrator.report.bundle.verify import check_names
from orchestrator.report.bundle.write import SEARCH
from orchestrator.results.question import config_value
from orchestrator.results.study import Replicate, Study
from orchestrator.run import run_here
from orchestrator.statistics import student
from orchestrator.statistics.discovery_sampling import most_wrong
from orchestrator.statistics.significance import holm
from orchestrator.tracking.checkout import has_commit, package_versions, source_of, unpack_commit
from orchestrator.tracking.load import load_if_run
from orchestrator.worker.code_version import code_version
from orchestrator.worker.template import Template
from orchestrator.worker.work import config_type
from search_spaces.size import arguments
from search_spaces.sweep import Condition, Sweep
from trainables.errors import InputError

LEVEL: Final = 0.05
MOST_NAMED: Final = 8
NUMERICAL: Final = ("torch", "torchaudio", "numpy", "scipy")
"""Packages of which another version may give other digits."""

Result = Literal["same", "within", "differs", "not compared"]


@dataclass(frozen=True)
class Rerun:
    """What is trained again of a bundle, and where.

    Attributes:
        sweep: with the conditions that a search drew.
        given: by condition, what `--set` changed, as text by config path.
        packages: that it was trained with, `name==version` each, a text for each set of them.
        order: the complete replicates in the order of the draw.
        num_drawn: how many of them are trained again.
        lacking: condition and seed of what the sweep declares and the bundle does not name.
        commit: whose sources train; empty: those that are installed.
        folder: where what was trained is kept.
    """

    sweep: Sweep
    given: Mapping[str, Mapping[str, str]]
    packages: Sequence[str]
    order: Sequence[Replicate]
    num_drawn: int
    lacking: Sequence[tuple[str, int]]
    commit: str
    folder: Path

    @property
    def drawn(self) -> Sequence[Replicate]:
        """The replicates that are trained again."""
        return self.order[: self.num_drawn]


@dataclass(frozen=True)
class Retrained:
    """What came of training one replicate again.

    Attributes:
        result: "same": every digit of all metrics but times; on another processor, or by other packages or code, every
            digit of the objectives. "within": there, each objective is inside what the seeds of its condition predict.
            "differs": neither.
        metric: the first with other digits, or the objective that is farthest from what was predicted.
        low, high: the 95 % prediction interval, where one is needed.
        why: why digits need not be equal, or why nothing was compared.
        p: of the objectives under that prediction, times their number; NaN where digits were compared.
    """

    condition: str
    seed: int
    result: Result
    metric: str = ""
    written: float | None = None
    found: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    p: float = math.nan


def plan_rerun(bundle: Path, sweep: Sweep, num: int, settings: Settings) -> Rerun:
    """Draws `num` complete replicates of a bundle of `sweep`, or all if there are fewer.

    Raises:
        InputError: if it is no bundle of it, or none of its replicates is complete.
    """
    manifest, members = read_bundle(bundle)
    study, question = read_study(members["study.json"]), read_question(members["question.json"])
    check_names(bundle, manifest, study, question)
    if question.sweep != sweep.name:
        raise InputError(f"{bundle} must be a bundle of {sweep.name}, but is one of {question.sweep}.")
    folder = settings.runs / "reruns" / hashlib.sha256(bundle.read_bytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "draw").exists():
        write_durably(folder / "draw", f"{secrets.randbits(63)}\n".encode())
    lacking = _lacking(sweep, study)
    if sweep.search:
        from orchestrator.scheduler.search_store import drawn_values  # loads Optuna

        space, own = sweep.search.space, sweep.search.settings
        trials = read_search(members[SEARCH]).trials if SEARCH in members else ()
        listed = (Condition(one.condition, drawn_values(one.drawn, space), settings=own) for one in trials)
        sweep = replace(sweep, conditions=tuple(listed), search=None, reference=None)
    order = [one for one in study.replicates if one.state == "complete"]
    if not order:
        raise InputError(f"{bundle} must have a complete replicate to train again, but has none.")
    random.Random(int((folder / "draw").read_text())).shuffle(order)
    provenance = read_provenance(members["provenance.json"], {})
    given = {} if sweep.search else question.settings
    rerun = Rerun(sweep, given, provenance.packages, order, min(num, len(order)), lacking, "", folder)
    by_condition = {one.condition: _sweep_of(rerun, one) for one in rerun.drawn}
    here = {
        name: code_version(own.trainable, config_type(own.config(own.conditions[0], own.seeds[0])))
        for name, own in by_condition.items()
    }
    if all(one.code_version == here[one.condition] for one in rerun.drawn):
        return rerun
    place = source_of(sweep.trainable)
    commits = [one for one in reversed(provenance.commits) if has_commit(one, place)]
    return replace(rerun, commit=commits[0] if commits and not sweep.search else "")


def _lacking(sweep: Sweep, study: Study) -> list[tuple[str, int]]:
    named = {(one.condition, one.seed) for one in study.replicates}
    declared = {condition.name for condition in sweep.conditions}
    names = declared if declared.issuperset(study.conditions) else study.conditions  # of others, where settings changed
    seeds = sweep.seeds[: sweep.sequential.minimum] if sweep.sequential else sweep.seeds
    wanted = [] if sweep.search else [(name, seed) for name in sorted(names) for seed in seeds]
    return [one for one in wanted if one not in named]


def _sweep_of(rerun: Rerun, written: Replicate) -> Sweep:
    """The sweep of one replicate, with what was set of its condition."""
    values = {path: config_value(text) for path, text in rerun.given.get(written.condition, {}).items()}
    sweep = rerun.sweep.with_values(values) if values else rerun.sweep
    return sweep.only(written.condition, written.seed)


def train_drawn(rerun: Rerun, settings: Settings, console: Console) -> list[Replicate | None]:
    """The drawn replicates as they were trained again, now or by an earlier call; None where nothing came of one.

    Nothing goes to a server or a bucket.

    Raises:
        InputError, RefusedError, StoppedError, KeyboardInterrupt: as `run_here`.
    """
    runs = rerun.folder / (rerun.commit[:12] or "installed")
    runs.mkdir(exist_ok=True)
    own = replace(settings, runs=runs, storage="", tracking_uri=f"sqlite:///{runs / 'mlflow.db'}", search_uri="")
    earlier = _trained(rerun, own)
    with contextlib.closing(Template()) as template:
        for written in rerun.drawn:
            known = earlier.get((written.condition, written.seed))
            if known and known.state == "complete":
                continue
            if rerun.commit:
                _train_at_commit(rerun, written, own)
            else:
                run_here(_sweep_of(rerun, written), own, console, template=template)
    trained = _trained(rerun, own)
    return [trained.get((written.condition, written.seed)) for written in rerun.drawn]


def _trained(rerun: Rerun, settings: Settings) -> dict[tuple[str, int], Replicate]:
    study = load_if_run(rerun.sweep.name, settings)
    return {(one.condition, one.seed): one for one in study.replicates} if study else {}


def _train_at_commit(rerun: Rerun, written: Replicate, settings: Settings) -> None:
    """By `ponderay train` of that commit; of a sweep of one's own by the installed one, on its sources of then."""
    place = source_of(rerun.sweep.trainable)
    sources = rerun.folder / f"sources.{rerun.commit[:12]}"
    if not sources.exists():
        unpack_commit(rerun.commit, place, sources)
        (sources / SETTINGS_FILE).unlink(missing_ok=True)  # what counts is said below
    where, _, name = rerun.sweep.declared_at.rpartition(":")
    (plain, *smoke), folder = arguments(rerun.sweep.name), sources
    if where.endswith(".py"):
        file = Path(where).resolve()
        plain, folder = f"{file.name}:{name}", sources / file.parent.relative_to(place.resolve())
    elif not where.startswith("search_spaces."):
        plain = rerun.sweep.declared_at
    texts = rerun.given.get(written.condition, {}).items()
    changed = [f"--set={path}={json.dumps(config_value(text))}" for path, text in texts]
    which = [f"--condition={written.condition}", f"--seed={written.seed}"]
    command = [sys.executable, "-m", "orchestrator", "train", plain, *smoke, *which, *changed]
    environment = {name: value for name, value in os.environ.items() if name != "PONDERAY_STORAGE"}
    environment |= {
        "PONDERAY_RUNS": str(settings.runs),
        "PONDERAY_TRACKING_URI": settings.tracking_uri,
        "PYTHONPATH": os.pathsep.join([str(sources), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    errors = 2  # the file, whatever stands in for it in this process
    subprocess.run(command, cwd=folder, env=environment, stdout=errors, check=False)  # noqa: S603


def compare(rerun: Rerun, found: Sequence[Replicate | None]) -> list[Retrained]:
    """What came of each drawn replicate, in the order of the draw, as far as they were trained again.

    Where many are held against their intervals, Holm's correction keeps the chance of any false alarm below 5 %.
    """
    rows = [_compared(rerun, written, again) for written, again in zip(rerun.drawn, found, strict=False)]
    adjusted = holm([row.p for row in rows])
    return [replace(row, result="differs") if p < LEVEL else row for row, p in zip(rows, adjusted, strict=True)]


def _compared(rerun: Rerun, written: Replicate, again: Replicate | None) -> Retrained:
    of_it = partial(Retrained, written.condition, written.seed)
    if again is None or again.state != "complete":
        ending = f"it {again.state}: {again.error}" if again else "it could not be trained"
        return of_it("not compared", why=f"trained again, {ending}")
    if again.data_fingerprint != written.data_fingerprint:
        return of_it("not compared", why=f"the data here are others ({again.data_fingerprint})")
    reasons = [
        f"{name} ({theirs}, here {ours})"
        for name, theirs, ours in (
            ("another processor", written.device, again.device),
            ("other code", written.code_version, again.code_version),
        )
        if theirs != ours
    ]
    ours = _numerical(package_versions(rerun.sweep.trainable))
    if any(_numerical(theirs) != ours for theirs in rerun.packages):  # which of them trained this one is not kept
        reasons.append(f"other packages (here {', '.join(ours)})")
    why = "; ".join(reasons)
    if again.key != written.key:
        return of_it("not compared" if why else "differs", why=why or "its settings are not those of the sweep")
    pairs = {name: (value, again.metrics[name]) for name, value in written.metrics.items() if name in again.metrics}
    others = [name for name, (a, b) in pairs.items() if not (TIMED.search(name) or a == b or (a != a and b != b))]
    objectives = {objective.metric for objective in rerun.sweep.objectives}
    names = [name for name in pairs if name.partition("@")[0] in objectives]
    if not names:
        return of_it("not compared", why="none of the objectives was reported again")
    if not others or (why and not set(others).intersection(names)):
        gone = [name for name in written.metrics if name not in pairs and not TIMED.search(name)]
        if gone := [name for name in gone if not why or name.partition("@")[0] in objectives]:
            return of_it("not compared", why=f"{', '.join(gone[:MOST_NAMED])}: not reported again")
        return of_it("same", why=why if others else "")
    if not why:
        first = next((name for name in names if name in others), others[0])
        return of_it("differs", first, *pairs[first])
    predicted, unknown = [], ""
    for name in filter(others.__contains__, names):
        by_condition = defaultdict[str, list[float]](list)
        for one in rerun.order:
            if math.isfinite(value := one.metrics.get(name, math.nan)):
                by_condition[one.condition].append(value)
        known = np.array(by_condition[written.condition])
        estimate = student.of_new_value(known, np.array(pairs[name][1]))
        centre, half = pairs[name][1] - float(estimate.value), float(student.half_width(estimate, 1 - LEVEL))
        p = float(student.two_sided_p(estimate))
        if estimate.standard_error == estimate.value == 0:  # but for rounding
            p = 1.0
        elif estimate.standard_error == 0 and all(len(set(values)) == 1 for values in by_condition.values()):
            p = 0.0  # no condition has a spread in it: it is no chance that these seeds have none
        if math.isnan(p):
            unknown = "seeds without a spread" if len(known) > 1 else "no second seed"
        else:
            predicted.append((p * len(names), name, centre - half, centre + half))
    if not predicted or (unknown and min(predicted)[0] >= LEVEL):
        return of_it("not compared", why=f"{why}, and the bundle has {unknown} of its condition")
    p, name, low, high = min(predicted)
    return of_it("within", name, *pairs[name], low, high, why, p)


def _numerical(packages: str) -> list[str]:
    return [one for one in packages.split() if one.partition("==")[0] in NUMERICAL]


def sentences(rerun: Rerun, rows: Sequence[Retrained]) -> list[str]:
    """What the rows say of the bundle, and what they cannot."""
    counts = Counter(row.result for row in rows)
    num_all, num_same = len(rerun.order), counts["same"]
    said = [f"Trained again: {len(rows):,} of {num_all:,} complete replicates, drawn by chance."]
    if num_same:
        said.append(f"{num_same:,} gave the same digits.")
    if num_same == len(rows) > 0:
        most = most_wrong(num_all, num_same)
        said.append(
            f"With a confidence of 90 % at most {most:,} of the {num_all:,} are wrong." if most else "None is wrong."
        )
    elif rows and not counts["differs"]:  # which do not is no chance: a wrong value of what diverges is never compared
        said.append(
            f"How many of the {num_all:,} are wrong at most is not known: {len(rows) - num_same:,} of those drawn did "
            "not give the same digits here."
        )
    if counts["within"]:
        said.append(
            f"{counts['within']:,} gave other digits, within what the seeds of their conditions predict; an error "
            "smaller than that is not excluded."
        )
    if counts["differs"]:
        said.append(f"{counts['differs']:,} cannot be what the bundle says.")
    if rerun.lacking:
        names = ", ".join(f"{name} seed {seed}" for name, seed in rerun.lacking[:MOST_NAMED])
        more = f" and {len(rerun.lacking) - MOST_NAMED:,} more" if len(rerun.lacking) > MOST_NAMED else ""
        said.append(f"The sweep declares, and the bundle does not name: {names}{more}.")
    said.append(
        "Not seen: results that the sweep's declaration leaves out too, and leaks of the evaluation (`ponderay audit`)."
    )
    return said
