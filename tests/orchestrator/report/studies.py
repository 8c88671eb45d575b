"""A small study and the question it answers, for tests of what reports are made of."""

import math
import random

from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.question import Question
from orchestrator.results.study import Replicate, Study
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import replicate

PROVENANCE = StudyProvenance(
    commits=("c0ffee+",),
    code_versions=("v1",),
    packages=("python==3 torch==2",),
    commands=("ponderay run asr.demo",),
    hosts=("host1",),
    devices=("cpu",),
    fingerprints=("d1",),
    seeds=(1, 2, 3),
    configs={"random": {"lr": "0.1"}},
    diffs={"5e5510": "-old\n+new\n"},
)


def small_study() -> Study:
    """Three conditions of three seeds under two evaluations, one replicate failed, one metric not finite."""
    numbers = random.Random(0)
    replicates = [_one(name, seed, numbers) for name in ("random", "surprisal", "always_big") for seed in (1, 2, 3)]
    return Study("asr.demo", tuple(replicates))


def _one(condition: str, seed: int, numbers: random.Random) -> Replicate:
    if (condition, seed) == ("always_big", 3):
        return replicate(condition, seed, state="failed", error='cut off, "so"\nand so', metrics={})
    offset = {"random": 0.3, "surprisal": 0.25, "always_big": 0.2}[condition]
    cost = {"random": 1e6, "surprisal": 1.1e6, "always_big": 2e6}[condition]
    metrics = {"loss": math.inf if seed == 2 else 1 / 3, "ratio": math.nan if seed == 1 else -0.0}
    for evaluation in ("stochastic", "greedy"):
        metrics[f"per@{evaluation}"] = offset + numbers.gauss(0, 0.01)
        metrics[f"macs_per_frame@{evaluation}"] = cost + numbers.gauss(0, 1e3)
    return replicate(condition, seed, metrics=metrics)


def question(**changes: object) -> Question:
    """That of a sweep like asr.demo."""
    values: dict[str, object] = {
        "sweep": "asr.demo",
        "description": "For tests.",
        "objectives": (Objective("per"), Objective("macs_per_frame")),
        "reference": "random",
        "test": "welch",
        "seeds": (1, 2, 3),
        "configs": {name: {"controller.kind": name} for name in ("random", "surprisal", "always_big")},
    }
    return Question(**values | changes)  # type: ignore[arg-type]
