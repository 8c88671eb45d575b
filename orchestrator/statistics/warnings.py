"""What the reader of a comparison must know about its seeds and its test, in sentences."""

from typing import Final

from orchestrator.statistics.pairwise import LEVEL, MOST_ORDERS, Groups, Test
from orchestrator.statistics.significance import seeds_for_level

NO_SPREAD: Final = "no spread over the seeds in either: the difference is taken for certain, without a test"
HIDDEN_SPREAD: Final = (
    "no spread over the seeds in either, but values repeat in this metric under other conditions too: "
    "it may be chance, and a t-test says nothing here"
)
ONE_DIFFERENCE: Final = "the difference is the same under every seed, so its interval has no width; do not trust that"
NO_ORDERS: Final = f"almost stochastic order is left out, as of any more than {MOST_ORDERS:,} comparisons"
BEYOND: Final = (
    "the difference, its interval or a standard deviation is beyond 1.8e308, the largest number: it counts as infinite"
)
UNEQUAL: Final = (
    "not as many seeds in both: values are missing, or seeds were given by need; then this p is not corrected for the "
    "looks, while the run's own decision is (tag `ponderay.decision` in MLflow)"
)
UNPAIRED: Final = "the seeds are not the same, so the promised paired permutation test is replaced by Welch's t-test"


def of_seeds(groups: Groups, test: Test, can_decide: bool, num_tests: int) -> tuple[str, ...]:
    """Sentences about unequal and unpaired seeds, one seed, and a test that cannot reach 0.05 with so many.

    Args:
        can_decide: whether it can in its family.
        num_tests: size of that family.
    """
    sentences = []
    n, m = groups.a.shape[1], groups.b.shape[1]
    seeds = f"{n} and {m} seeds" if n != m else f"{n} seed{'s' if n > 1 else ''}"
    if test == "paired_permutation" and not groups.is_paired:
        sentences.append(UNPAIRED)
    if n != m and groups.least_size() > 1:
        sentences.append(UNEQUAL)
    if groups.least_size() < 2:
        sentences.append(f"{seeds}: one seed has no spread, so there is neither interval nor test")
    elif not can_decide:
        enough = seeds_for_level(LEVEL, num_tests)
        remedy = f"from {enough} seeds on it can" if enough else "no number of seeds is enough for so many"
        family = f"among {num_tests:,} comparisons (Holm) " if num_tests > 1 else ""
        least = groups.least_permutation_p()
        sentences.append(
            f"{seeds}: an exact paired permutation test cannot give p below {least:.4g}, "
            f"so {family}it can decide nothing at {LEVEL:g}; {remedy}"
        )
    return tuple(sentences)
