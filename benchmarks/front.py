"""Time and memory of a front with its uncertainty: 10,000 conditions of 5 seeds, 1,000 draws.

    python benchmarks/front.py [--conditions 10000] [--seeds 5] [--draws 1000]

Every row is a process of its own and a made-up study: dearer conditions err less. `quiet`: seeds move a mean by about
half a per cent, so that most conditions can be on the front in no draw. `noisy`: by ten times as much, so that nearly
all can. Seeds are one set for all conditions (every resample is taken, where there are no more than the draws), two
sets, or every condition's own. Columns: seconds of `orchestrator.pareto.front.front`, the plain front of the means;
seconds of `uncertain_front`, which makes that too; the one over the other; MB that it needs at its peak beside the
study. The last line is of a report's page on the first of these studies, the first condition being the reference:
seconds of the answers and of the page, the one over the other, and its MB.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from orchestrator.pareto.front import front
from orchestrator.pareto.membership import uncertain_front
from orchestrator.results.study import Replicate, Study
from search_spaces.sweep import Objective

LIMIT_MB = 300.0
PAGE_LIMIT_MB = 5.0
OBJECTIVES = (Objective("error"), Objective("cost"), Objective("latency"))
NOISE = {"quiet": 0.005, "noisy": 0.05}
NUM_SETS = {"one set": 1, "two sets": 2, "own seeds": 10**9}
CASES = [(noise, seeds, number) for number in (2, 3) for noise in NOISE for seeds in NUM_SETS]


def made_up_study(num_conditions: int, num_seeds: int, noise: float, num_sets: int) -> Study:
    """Conditions whose seeds are one of `num_sets` sets in turn."""
    drawn, replicates = np.random.default_rng(1), []
    for number in range(num_conditions):
        cost = 10 ** drawn.random()
        means = np.array([0.2 + 0.2 / cost + 0.1 * drawn.random(), cost, drawn.random()])
        first = 1 + number % num_sets
        for seed in range(first, first + num_seeds):
            values = means + noise * drawn.normal(size=3) * [1, cost, 1]
            metrics = {o.metric: float(value) for o, value in zip(OBJECTIVES, values, strict=True)}
            name = f"condition_{number:05d}"
            replicates.append(Replicate(f"{name}/{seed}", name, seed, "complete", metrics))
    return Study("made.up", tuple(replicates))


def peak_mb() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def measure(study: Study, num_objectives: int, num_draws: int) -> str:
    """The numbers of a row."""
    objectives, started = OBJECTIVES[:num_objectives], time.perf_counter()
    front(study, objectives)
    plain_s, before_mb, started = time.perf_counter() - started, peak_mb(), time.perf_counter()
    found = uncertain_front(study, objectives, None, num_draws)
    duration_s, more_mb = time.perf_counter() - started, peak_mb() - before_mb
    verdict = "kept" if more_mb < LIMIT_MB else "EXCEEDED"
    numbers = f"{plain_s:9.2f} {duration_s:12.2f} {duration_s / plain_s:9.1f} {more_mb:8.0f} {found.num_draws:6d}"
    return f"{numbers}   limit {LIMIT_MB:.0f} MB: {verdict}"


def page_line(study: Study) -> str:
    """Time and size of the report's page."""
    from orchestrator.report.answers import answer
    from orchestrator.report.page import render
    from orchestrator.results.provenance import StudyProvenance
    from orchestrator.results.question import Question

    seeds = tuple(replicate.seed for replicate in study.of(study.conditions[0]))
    question = Question(study.sweep, "", OBJECTIVES[:2], study.conditions[0], "welch", seeds, {})
    started = time.perf_counter()
    answers = answer(study, question)
    answer_s, started = time.perf_counter() - started, time.perf_counter()
    text = render(answers, (), StudyProvenance((), (), (), (), (), (), (), seeds, {}, {}))
    page_s, size_mb = time.perf_counter() - started, len(text.encode()) / 1e6
    verdict = f"limit {PAGE_LIMIT_MB:.0f} MB: {'kept' if size_mb < PAGE_LIMIT_MB else 'EXCEEDED'}"
    times = f"answers {answer_s:.2f} s, page {page_s:.2f} s, {page_s / answer_s:.2f} over it"
    return f"page of a report: {times}, {size_mb:.2f} MB   {verdict}"


def main() -> None:
    """Prints a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conditions", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--case", type=int, help="only the row of this number, without a heading")
    chosen = parser.parse_args()
    if chosen.case == len(CASES):
        print(page_line(made_up_study(chosen.conditions, chosen.seeds, NOISE["quiet"], 1)), flush=True)
        return
    if chosen.case is not None:
        noise, seeds, num_objectives = CASES[chosen.case]
        study = made_up_study(chosen.conditions, chosen.seeds, NOISE[noise], NUM_SETS[seeds])
        row = measure(study, num_objectives, chosen.draws)
        print(f"{num_objectives} objectives, {noise}, {seeds:10} {row}", flush=True)
        return
    print(f"{chosen.conditions:,} conditions, {chosen.seeds} seeds, at most {chosen.draws:,} draws")
    print(f"{'':34}{'plain s':>9} {'uncertain s':>12} {'over it':>9} {'MB':>8} {'draws':>6}")
    for case in range(len(CASES) + 1):
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--case", str(case)], check=True)  # noqa: S603


if __name__ == "__main__":
    main()
