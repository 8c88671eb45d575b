"""Whether a sweep and its trainables fit each other: looked at before anything starts, told in one sentence."""

import re
from collections.abc import Collection, Sequence
from typing import Any

from orchestrator.worker.trainable import Trainable, load
from orchestrator.worker.work import config_type
from search_spaces.known_names import known_names
from search_spaces.sweep import Sweep
from trainables.config import NAME, content_hash, fields_of, is_config, with_value
from trainables.errors import InputError


def check_contract(sweep: Sweep) -> None:
    """Raises InputError at the first thing that cannot work: in the trainable, its prerequisites, or the objectives."""
    trainable = load(trainable_path(sweep))
    for config in [sweep.config(condition, sweep.seeds[0]) for condition in sweep.conditions] or [sweep.base]:
        _check_config(sweep, trainable, config)
    directions = {metric.name: metric.direction for metric in trainable.metrics}
    for metric in trainable.metrics:
        if metric.floor and (metric.floor not in directions or metric.direction != "minimize"):
            raise InputError(
                f"{trainable.path}: `floor` must name another of its metrics, and be of one to minimize, but "
                f"{metric.name!r}, to {metric.direction}, has {metric.floor!r}."
            )
    for constraint in sweep.search.constraints if sweep.search else ():
        if directions and constraint.metric not in directions:
            raise InputError(
                f"{sweep.name}: the constraint's metric {constraint.metric!r} is not among the metrics of "
                f"{trainable.path}: {', '.join(directions)}."
            )
    halving = sweep.search.halving if sweep.search else None
    known = directions.get(halving.metric.partition("@")[0], "none") if halving else "none"
    if halving and known not in ("none", halving.direction):
        raise InputError(
            f"{sweep.name}: `halving` stops what is not among the best by {halving.metric!r}, to {halving.direction}, "
            f"but {trainable.path} says {known}; give Halving `direction={known!r}`."
        )
    for objective in sweep.objectives:
        if directions and objective.metric not in directions:
            raise InputError(
                f"{sweep.name}: the objective {objective.metric!r} is not among the metrics of {trainable.path}: "
                f"{', '.join(directions)}."
            )
        if directions.get(objective.metric, "none") not in ("none", objective.direction):
            raise InputError(
                f"{sweep.name}: the objective {objective.metric!r} is to {objective.direction}, but {trainable.path} "
                f"says {directions[objective.metric]}."
            )
    for wanted in sweep.prerequisites:
        if wanted.config_path not in dir(sweep.base):
            path = wanted.config_path
            raise InputError(f"{sweep.name}: the prerequisite {wanted.name!r} names `{path}`, which no config has.")
        inner = getattr(sweep.base, wanted.config_path)
        if not is_config(inner):
            raise InputError(f"{sweep.name}: `{wanted.config_path}`, of a prerequisite, must be a config: {inner!r}.")
        if wanted.each_seed and "seed" not in fields_of(inner):
            raise InputError(
                f"{sweep.name}: `{wanted.config_path}`, of the prerequisite {wanted.name!r} with `each_seed`, must "
                f"have a `seed`, but has {', '.join(fields_of(inner))}."
            )
        by_seed = [getattr(with_value(sweep.base, "seed", seed), wanted.config_path) for seed in sweep.seeds[:2]]
        if not wanted.each_seed and len(set(map(content_hash, by_seed))) > 1:
            raise InputError(
                f"{sweep.name}: `{wanted.config_path}` differs between seeds, but all share one run of the "
                f"prerequisite {wanted.name!r}; give it `each_seed=True`, or a config that no seed changes."
            )
        _check_config(sweep, load(wanted.trainable), inner)


def trainable_path(sweep: Sweep) -> str:
    """The import path of the sweep's trainable.

    Raises:
        InputError: if the sweep was declared in a program that runs, so that no other process can import it.
    """
    if sweep.trainable == "__main__":
        raise InputError(
            f"{sweep.name}: workers import the trainable, so it must stand in a file that they import: put `train` "
            "into a module, or run `ponderay run FILE.py:NAME`."
        )
    return sweep.trainable


def _check_config(sweep: Sweep, trainable: Trainable, config: Any) -> None:
    config_type(config)
    trainable.num_steps(config)
    evaluations = fields_of(config).get("evaluations", ())
    if not isinstance(evaluations, Sequence) or isinstance(evaluations, str):
        raise InputError(f"{sweep.name}: `evaluations` must be a list of configs with a name, but got {evaluations!r}.")
    if evaluations and not hasattr(trainable.module, "evaluate"):
        raise InputError(f"{sweep.name}: the config lists evaluations, but {trainable.path} has no `evaluate`.")
    names = [getattr(evaluation, "name", None) for evaluation in evaluations]
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            raise InputError(f"{sweep.name}: the name of an evaluation must match {NAME}, but got {name!r}.")
    if len(set(names)) < len(names):
        raise InputError(f"{sweep.name}: the names of evaluations must differ, but got {', '.join(map(str, names))}.")
    known = {metric.name: metric.direction for metric in trainable.metrics}
    selection = trainable.selection(config)
    names = [evaluation.name for evaluation in trainable.evaluations(config)]
    for name, best in selection.items():
        if len(selection) > 1 and names and name not in names:  # a single one serves all evaluations
            raise InputError(
                f"`selection` of {trainable.path} names the evaluation {name!r}, which the config has not; it has "
                f"{', '.join(map(str, names))}."
            )
        if known and best.metric.partition("@")[0] not in known:
            raise InputError(
                f"`selection` of {trainable.path} keeps {name!r} by {best.metric!r}, which is not among its metrics."
            )
        direction = known.get(best.metric.partition("@")[0], "none")
        if direction not in ("none", best.direction):
            raise InputError(
                f"`selection` of {trainable.path} keeps {name!r} by {best.metric!r}, to {best.direction}, but its "
                f"metrics say {direction}; write ponderay.Objective({best.metric!r}, {direction!r})."
            )


def unreported(trainable: Trainable, config: Any, reported: Collection[str]) -> str:
    """The metric of `selection` that no report of a training had, in a sentence; empty where all were reported.

    An evaluation that was added after the training has none either: it is enough that others of its kind have it.
    """
    evaluations = {evaluation.name for evaluation in trainable.evaluations(config)}
    kinds = {metric.partition("@")[0] for metric in reported}
    for name, best in trainable.selection(config).items():
        kind, _, evaluation = best.metric.partition("@")
        if best.metric not in reported and (kind not in kinds or evaluation not in {"", *evaluations}):
            return (
                f"`selection` of {trainable.path} keeps {name!r} by {best.metric!r}, which no report of `train` had; "
                f"name one of {known_names(sorted(reported), best.metric)}."
            )
    return ""
