"""How often seeds by need answer wrongly, how many seeds they save, and how often they answer at all, by simulation.

    python benchmarks/sequential.py [--sweeps 1000] [--seeds 10] [--conditions 6]

Each row simulates sweeps of one question, one truth and one kind of noise, with minimum 3 and error rate .05. "wrong"
is the share of sweeps with any false verdict, "up to" its upper 97.5 % limit (Clopper and Pearson 1934); "seeds" what
a condition took on average, "saved" the share of all seeds that was not needed; "decided" the share of conditions that
got a verdict. "at once" is the same if all seeds are run and tested once, with the whole error rate: "wrong" and
"decided". A verdict is false, too, if the condition that it says dominates does not. That means of moving metrics are
equal is never a verdict, so under "equal" hardly any is given, and none is missing.

Truths, in standard deviations of one replicate. All conditions share an effect of each seed, of twice that.
    equal: all means are one.
    small, large: means are 1, or 3, apart; the second objective in opposite order.
    pairs: every other condition is worse than the one before by .01 in both objectives, and far from the rest.
    mixed: half the conditions equal the first, the others are 2 apart; the second objective is a cost without noise.
    rare: each replicate is 0, or 1 with a chance of .05, .1, .15 ...; the second objective in opposite order.
Noise:
    normal: the bound is proven.
    lognormal: sigma 1, scaled; between equal conditions, differences are symmetric, and the t-test cautious.
    skewed: the same, a tenth of it for every other condition; differences are skewed, which the t-test bears badly.
    diverging: normal, but one replicate in ten is 10 worse.
    rounded, coarse: normal, rounded to one, or to three.
    binary: that of "rare"; what never moved in any condition is taken for certain, and sometimes is not.
"""

import argparse
import itertools
import time
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from orchestrator.statistics.group_sequential import wanted
from search_spaces.sweep import Objective, Sequential

ERROR_RATE, MINIMUM, SHARED = 0.05, 3, 2.0
OBJECTIVES = (Objective("error"), Objective("cost"))
NOISES = ("normal", "lognormal", "skewed", "diverging", "rounded", "coarse")
GRIDS = {"rounded": 1.0, "coarse": 3.0}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One row; `means` are conditions x objectives."""

    question: Literal["reference", "front"]
    truth: str
    noise: str
    means: Floats


def cases(num_conditions: int) -> list[Case]:
    """All rows."""
    place = np.arange(num_conditions, dtype=float)
    crossed = np.stack([place, place[::-1]], axis=1)
    half = np.where(place < num_conditions / 2, 0.0, 2 * place)
    truths = {
        "equal": (0 * crossed, NOISES),
        "small": (crossed, NOISES[:1]),
        "large": (3 * crossed, NOISES[:1]),
        "pairs": (50 * (crossed // 2) + 0.01 * (place % 2)[:, None], NOISES[:1]),
        "mixed": (np.stack([half, np.roll(place, 1)], axis=1), NOISES),
        "rare": (0.05 * (1 + crossed), ("binary",)),
    }
    questions: tuple[Literal["reference", "front"], ...] = ("reference", "front")
    rows = itertools.product(questions, truths.items())
    return [Case(question, truth, noise, means) for question, (truth, (means, noises)) in rows for noise in noises]


def draw(noise: str, rng: np.random.Generator, shape: tuple[int, int, int]) -> Floats:
    """Noise of mean 0 and, but for the outliers of "diverging", standard deviation 1 at most."""
    if noise in ("lognormal", "skewed"):
        scaled: Floats = (rng.lognormal(size=shape) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
        small = 0.1 if noise == "skewed" else 1.0
        sizes: Floats = np.where(np.arange(shape[0]) % 2, 1.0, small)[:, None, None]
        return scaled * sizes
    if noise == "diverging":
        return rng.standard_normal(shape) + 10.0 * (rng.random((*shape[:2], 1)) < 0.1) - 1.0
    return rng.standard_normal(shape)


def simulate(case: Case, num_seeds: int, rng: np.random.Generator) -> Floats:
    """Values, conditions x seeds x objectives."""
    shape = (len(case.means), num_seeds, len(OBJECTIVES))
    if case.noise == "binary":
        return (rng.random(shape) < case.means[:, None]).astype(float)
    values = case.means[:, None] + SHARED * rng.standard_normal((1, *shape[1:])) + draw(case.noise, rng, shape)
    if case.noise in GRIDS:
        values = np.round(values / GRIDS[case.noise]) * GRIDS[case.noise]
    if case.truth == "mixed":
        values[:, :, 1] = case.means[:, None, 1]
    return values


def answer(case: Case, minimum: int, values: Floats) -> tuple[list[str], int]:
    """The verdicts without their evidence, and the number of seeds that all conditions took."""
    names, seeds = [str(i) for i in range(len(values))], range(1, values.shape[1] + 1)
    rows = {(name, s): tuple(values[i, s - 1].tolist()) for i, name in enumerate(names) for s in seeds}
    found = wanted(Sequential(minimum, case.question, ERROR_RATE), names, "0", OBJECTIVES, seeds, rows)
    return [verdict.split(" (")[0] for verdict in found.decisions.values()], sum(found.num_seeds.values())


def true_verdicts(case: Case) -> list[set[str]]:
    """All that may be said of each condition."""
    always = {"undecided", "reference"}
    if case.question == "reference":
        signs = np.sign(case.means[:, 0] - case.means[0, 0])
        return [always | {{-1: "lower than 0", 0: "equal to 0", 1: "higher than 0"}[int(sign)]} for sign in signs]
    above = [[i for i, a in enumerate(case.means) if np.all(a <= b) and np.any(a < b)] for b in case.means]
    return [always | ({f"dominated by {i}" for i in found} or {"on the front"}) for found in above]


def row(case: Case, num_sweeps: int, num_seeds: int, rng: np.random.Generator) -> str:
    """One line of the table."""
    true, num_taken = true_verdicts(case), 0
    num_wrong, num_decided = {MINIMUM: 0, num_seeds: 0}, {MINIMUM: 0, num_seeds: 0}
    for _ in range(num_sweeps):
        values = simulate(case, num_seeds, rng)
        for minimum in num_wrong:
            verdicts, taken = answer(case, minimum, values)
            num_decided[minimum] += sum(verdict not in ("undecided", "reference") for verdict in verdicts)
            num_wrong[minimum] += any(verdict not in may_be for verdict, may_be in zip(verdicts, true, strict=True))
            num_taken += taken if minimum == MINIMUM else 0
    limit = stats.beta.ppf(0.975, num_wrong[MINIMUM] + 1, max(num_sweeps - num_wrong[MINIMUM], 1))
    num_asked = num_sweeps * (len(true) - (case.question == "reference"))
    (wrong, wrong_once), (decided, decided_once) = num_wrong.values(), num_decided.values()
    seeds = num_taken / num_sweeps / len(true)
    start = f"{case.question:9} {case.truth:6} {case.noise:9} {wrong / num_sweeps:6.3f} {limit:6.3f} {seeds:6.1f}"
    once = f"{wrong_once / num_sweeps:8.3f} {decided_once / num_asked:8.2f}"
    return f"{start} {1 - seeds / num_seeds:6.0%} {decided / num_asked:8.2f} {once}"


def main() -> None:
    """Prints one row for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10, help="those that may be given")
    parser.add_argument("--conditions", type=int, default=6)
    arguments = parser.parse_args()
    if arguments.seeds <= MINIMUM:
        parser.error(f"--seeds must be more than {MINIMUM}, which every condition gets, but got {arguments.seeds}")
    started, rng = time.perf_counter(), np.random.default_rng(1)
    print(f"{arguments.sweeps} sweeps of {arguments.conditions} conditions, {MINIMUM} to {arguments.seeds} seeds")
    columns = f"{'wrong':>6} {'up to':>6} {'seeds':>6} {'saved':>6} {'decided':>8} {'at once:':>8} {'decided':>8}"
    print(f"{'question':9} {'truth':6} {'noise':9} {columns}")
    for case in cases(arguments.conditions):
        print(row(case, arguments.sweeps, arguments.seeds, rng), flush=True)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
