"""Answers made by hand or drawn at random, for tests of what reports are written from them."""

import math
from dataclasses import replace

import numpy as np

from orchestrator.pareto.attainment import Surface
from orchestrator.pareto.front import front
from orchestrator.pareto.hypervolume import Volume
from orchestrator.pareto.membership import Membership, UncertainFront
from orchestrator.published.verdict import Finding, Verdict
from orchestrator.report.answers import Answers
from orchestrator.results.comparison import Comparison
from orchestrator.results.curves import Curve
from orchestrator.results.provenance import StudyProvenance
from orchestrator.results.question import Question
from orchestrator.results.study import Replicate, Study
from orchestrator.statistics.summary import NONE, Interval, Summary, mean_interval, summarise
from search_spaces.claim import NumberClaim, Place, Published, Setting, Source, StatementClaim
from search_spaces.sweep import Objective

EVIL = "<script>alert(1)</script>"
OBJECTIVES = (Objective("per"), Objective("macs_per_frame"), Objective("accuracy", "maximize"))
CONDITIONS = {
    "always_big": (0.171, 185_740, 0.829),
    "surprisal": (0.174, 166_200, 0.826),
    "random": (0.189, 165_900, 0.811),
    "learned_l1": (0.182, 159_300, 0.818),
    "learned_entropy": (0.192, 152_100, 0.808),
    "always_small": (0.203, 145_804, 0.797),
}


def study_of(places, seeds=5, sweep="asr.demo", noise=0.004) -> Study:
    """Each condition's replicates scattered around its place (per, macs_per_frame, accuracy)."""
    draws, replicates = np.random.default_rng(3), []
    for name, (per, macs, accuracy) in places.items():
        for seed in range(1, seeds + 1):
            scatter = draws.normal(size=3) * noise
            macs_noise = scatter[1] * 2e5 if "always" not in name else 0.0
            values = {"per": per + scatter[0], "macs_per_frame": macs + macs_noise, "accuracy": accuracy + scatter[2]}
            metrics = {metric: float(value) for metric, value in values.items()}
            metrics["valid_loss_nats"] = 30 * metrics["per"]
            replicates.append(Replicate(f"{name}/{seed}", name, seed, "complete", metrics))
    return Study(sweep, tuple(replicates))


def front_of(study, objectives, reference="always_big", notes=()) -> UncertainFront:
    """The front of the means, with chances that rise towards it; no bootstrap is drawn."""
    points = front(study, objectives)
    chances = np.linspace(0.99, 0.0, len(points))
    memberships = []
    for i, point in enumerate(points):
        on_front = float(max(chances[i], 0.62) if point.is_front else min(chances[i], 0.4))
        standing = ("front" if on_front >= 0.95 else "front within noise") if point.is_front else "dominated"
        standing = "near within noise" if standing == "dominated" and on_front > 0.05 else standing
        dominates = math.nan if point.name == reference else round(on_front / 7, 3)
        intervals = tuple(mean_interval(column) for column in point.values)
        memberships.append(Membership(on_front, dominates, standing, intervals))
    volume = Volume(1234.5, tuple(1.01 * s.mean for s in points[-1].summaries), Interval(1180.0, 1290.0))
    means = [tuple(s.mean for s in point.summaries) for point in points if point.is_front]
    factors = {0.05: 0.97, 0.5: 1.0, 0.95: 1.03}
    surfaces = tuple(Surface(x, tuple((p * factor, *rest) for p, *rest in means)) for x, factor in factors.items())
    return UncertainFront(points, tuple(memberships), volume, 1000, False, True, reference, notes, surfaces)


def comparisons_of(found: UncertainFront, objectives) -> tuple[Comparison, ...]:
    """Every point against the reference; the tests' numbers are made up, the differences are not."""
    other = next(point for point in found.points if point.name == found.reference)
    made = []
    for i, objective in enumerate(objectives):
        for number, point in enumerate(p for p in found.points if p is not other):
            a, b = point.summaries[i], other.summaries[i]
            differences = [x - y for x, y in zip(point.values[i], other.values[i], strict=False)]
            is_better = (a.mean < b.mean) == (objective.direction == "minimize")
            p = (0.0004, 0.012, 0.2, 0.7, math.nan)[number % 5]
            made.append(
                Comparison(
                    point.name, other.name, objective.metric, a, b, True, is_better, a.mean - b.mean,
                    mean_interval(differences), p, p, 0.0625, p, min(1.0, 3 * p), -1.234, 0.12, 0.91, 0.0078,
                    (None, 7, 23)[number % 3], number % 4 != 3, ("ties: 3 of 5 differences are 0",) * (number % 2),
                )
            )  # fmt: skip
    return tuple(made)


SETTING = Setting("on TIMIT at the paper's sizes")
SOURCE = Source("Lugosch et al. 2020, arXiv:2006.01659", "table 2, TIMIT, surprisal")


def verdicts() -> tuple[Verdict, ...]:
    """One of each, the first two of one row of a table."""
    sweeps = ("asr.demo",)
    per = NumberClaim(
        "asr.t2.per", sweeps, Place("surprisal", "per", "stochastic", 100.0), Published(18.1, 0.15, 5), 0.5,
        "half a point", SOURCE, SETTING, objective="per", row="t2.surprisal",
    )  # fmt: skip
    cost = replace(
        per, id="asr.t2.macs", place=Place("surprisal", "macs_per_frame", "stochastic"),
        published=Published(168_000.0), objective="macs_per_frame", margin=2000.0,
    )  # fmt: skip
    said = StatementClaim(
        "asr.t2.beats_random", sweeps, "Surprisal routing has a lower error than random routing.",
        Place("surprisal", "per"), "below", Place("random", "per"), SOURCE, SETTING,
    )  # fmt: skip
    ours = Summary(17.42, 0.31, 5)
    return (
        Verdict(per, Finding.better, ours, -0.68, Interval(-1.1, -0.26), 0.011, "Below the published number."),
        Verdict(cost, Finding.reproduced, Summary(166_200, 530, 5), -1800, Interval(-1990, -1610), 0.03, "Within."),
        Verdict(said, Finding.inconclusive, ours, -0.015, Interval(-0.04, 0.01), 0.21, "Too few seeds.", 7),
        Verdict(replace(said, id="w"), Finding.worse, ours, 0.02, Interval(0.01, 0.03), 0.004, "The test says more."),
        Verdict(replace(per, id="n", row=""), Finding.not_comparable, None, math.nan, NONE, math.nan, "Other data."),
    )


def answers_of(study, num_objectives=2, reference="always_big", notes=(), claims=True) -> Answers:
    """Answers to a question of the first two or three of `OBJECTIVES`."""
    objectives = OBJECTIVES[:num_objectives]
    question = Question(
        study.sweep, "surprisal routing against fixed routing", objectives, reference, "paired_permutation",
        (1, 2, 3, 4, 5), {name: {"controller.kind": name, "epochs": "20"} for name in study.conditions},
    )  # fmt: skip
    found = front_of(study, objectives, reference, notes)
    return Answers(question, study, found, comparisons_of(found, objectives), verdicts() if claims else ())


def curves_of(study, metrics=("valid_per", "valid_loss_nats"), n=5) -> tuple[Curve, ...]:
    """Losses that fall towards the condition's mean."""
    curves = []
    for metric in metrics:
        for condition in study.conditions:
            values = study.values(condition, "per")
            if not values:
                continue
            end = summarise(values).mean
            steps = tuple(range(0, 2001, 50))
            scale = 200 if "loss" in metric else 1
            means = tuple((end + (0.75 - end) * math.exp(-step / 400)) * scale for step in steps)
            stds = tuple(0.04 * mean if n > 1 else math.nan for mean in means)
            curves.append(Curve(condition, metric, n, steps, means, stds))
    return tuple(curves)


def provenance_of(study, text="lab-7") -> StudyProvenance:
    """Two sessions, one with changes; `text` is the host and stands in the diff."""
    configs = {name: {"controller.kind": name, "epochs": "20", "data.root": "corpus"} for name in study.conditions}
    return StudyProvenance(
        commits=("0123456789abcdef0123456789abcdef01234567+",),
        code_versions=("v1",),
        packages=("python==3.11.9 torch==2.11.0 ray==2.60.0 mlflow==3.17.2",),
        commands=(f"ponderay run {study.sweep}", f"ponderay run {study.sweep} --seeds 5"),
        hosts=(text,),
        devices=("NVIDIA H100",),
        fingerprints=("3f9a",),
        seeds=(1, 2, 3, 4, 5),
        configs=configs,
        diffs={"session-1": f"--- a/train.py\n+++ b/train.py\n-rate = 1\n+rate = '{text}'\n"},
    )
