"""Seeds by need: which conditions must get further seeds, and what is decided, with a bounded chance of error.

All conditions get the first few seeds. At each look the undecided ones are tested, and only what could still decide
them gets the seeds up to the next look. What is tested is a comparison: two conditions in one objective, by a paired
t-test over the seeds that both completed; its answer is a sign. Each look may spend a part of the error rate (Lan and
DeMets 1983). By the union bound over looks and comparisons, the chance that any verdict is wrong is then at most the
error rate, whatever depends on whatever. It holds as far as a t-test does: for normal differences exactly, for others
roughly; `benchmarks/sequential.py` says how roughly.

Reference, of C conditions: each of C - 1 two-sided tests gets 1 / (C - 1) of a look's level.

Front: each condition gets 1 / C, for the one thing that can go wrong with it. Lower is better, tests are one-sided:
    One that is on the front may be called dominated, by any of C - 1 others. Each of these would have to be shown
    nowhere worse, and where it is not better that takes an error. So these tests get 1 / (C (C - 1)) each.
    One that is dominated may be called on the front. Some D of the front dominates it, and it would have to be shown
    better than D somewhere, in one of O objectives. So these tests get 1 / (C O) each, for any number of others; or D
    be called dominated, which is counted already.
The bound is on being on the front. The dominating condition that a verdict names is the one that showed it.

What keeps the bound: conditions and comparisons are counted before the start; a comparison is tested at a look only if
both conditions got that look's seeds, never again on older ones; what is decided or stopped stays so. So the answer is
a function of the first seeds alone: it is replayed from the first look each time, and a restart or results beyond what
was asked for change nothing. Other conditions, objectives or numbers of seeds are another question.

Without spread a t-test says nothing. There are two cases:
    1. Neither condition has any spread of its own, as with a cost that is counted, not measured. It is then taken as
       certain, equality too, unless the objective shows *tied noise*: a condition with both spread and a value twice,
       as a score that is rounded or saturates has it. Not even that is proof when every condition hides its noise.
    2. Both move, and all differences are one value. Under equal distributions their signs are fair coins, so n of a
       kind have p = 2^(1 - n); if the value is 0 nothing is decided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from orchestrator.statistics import scale
from search_spaces.sweep import Objective, Sequential

GROWTH = 1.5  # of the number of seeds, from look to look
SPENDING_POWER = 1.5
RESOLUTION = 1e-12  # relative; what is closer differs by rounding only
UNDECIDED = 2

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Progress:
    """Where a sweep with seeds by need stands.

    Attributes:
        num_seeds: of each condition, how many of the first seeds it should have by now, failed ones included.
        decisions: of each condition, in words; "undecided" where it is so, or where no replicate completed.
        is_final: nothing more will be asked for.
    """

    num_seeds: Mapping[str, int]
    decisions: Mapping[str, str]
    is_final: bool


@dataclass(frozen=True)
class Comparisons:
    """All tested pairs in all objectives, at one share of each look's level; P pairs, O objectives.

    Attributes:
        left: P indices of conditions.
        right: P indices of conditions.
        sign: P x O, of left minus right: -1, 0, 1 or `UNDECIDED`.
        p: P x O, the p-value that decided; NaN where it took none.
        num_common: P x O, the number of seeds that decided.
    """

    left: Integers
    right: Integers
    sign: Integers
    p: Floats
    num_common: Integers


def looks(minimum: int, maximum: int) -> tuple[int, ...]:
    """Numbers of seeds after which is looked, rising: `minimum`, each 1.5 times the one before, at last `maximum`."""
    numbers = [minimum]
    while numbers[-1] < maximum:
        numbers.append(min(maximum, math.ceil(GROWTH * numbers[-1])))
    return tuple(numbers)


def levels(rule_looks: Sequence[int], error_rate: float) -> tuple[float, ...]:
    """The error that each look may spend; their sum is `error_rate`.

    Increments of error_rate * t^1.5 in the share t of all seeds (Kim and DeMets 1987). Of t^0.5, t, t^1.5, t^2, t^3 and
    ln(1 + (e - 1) t), which is Pocock-like, 1.5 was chosen by simulation of single comparisons. Where the difference is
    1 to 2 of its standard deviations it takes as many seeds as the logarithm, within 6 %, and decides more often, by up
    to .12; at 8 it takes half a seed more. What is spent at 3 seeds buys little: there the tails of t are longest.
    """
    spent = [error_rate * (n / rule_looks[-1]) ** SPENDING_POWER for n in rule_looks]
    return tuple(after - before for before, after in zip([0.0, *spent], spent, strict=False))


def wanted(
    sequential: Sequential,
    conditions: Sequence[str],
    reference: str | None,
    objectives: Sequence[Objective],
    seeds: Sequence[int],
    values: Mapping[tuple[str, int], Sequence[float] | None],
) -> Progress:
    """What must have run by now, and what is decided, replayed from the first look.

    Args:
        reference: needed for the question "reference", which is about the first objective only.
        seeds: in the order in which they are given; all that may be.
        values: by condition and seed, the objectives of each replicate that ended, None where it failed; no key where
            it has not ended. One with a needed objective that is not finite counts as failed.
    """
    about = objectives[:1] if sequential.question == "reference" else objectives
    table, has_ended = _table(conditions, seeds, len(about), values)
    if sequential.question == "front":
        table = table * [-1.0 if objective.direction == "maximize" else 1.0 for objective in about]
    table = scale.times(table, -scale.headroom(np.nan_to_num(table.reshape(-1, len(about)).T)))
    num_others = max(1, len(conditions) - 1)
    if sequential.question == "reference":
        shares = [1 / num_others]  # of a look's level, that of each two-sided test
    else:  # twice that of a one-sided test, which shows `better` and `worse`
        shares = [2 / max(1, len(conditions) * len(about)), 2 / max(1, len(conditions) * num_others)]
    tests = [_pairs(sequential, conditions, reference, len(about))] * len(shares)
    rule = looks(sequential.minimum, len(seeds))
    is_needed, num_seeds = np.ones(len(conditions), dtype=bool), np.full(len(conditions), rule[0])
    verdicts = dict.fromkeys(conditions, "undecided")
    for n, level in zip(rule, levels(rule, sequential.error_rate), strict=True):
        num_seeds[is_needed] = n
        if not has_ended[is_needed, :n].all():
            return Progress(_by_name(conditions, num_seeds), verdicts, False)
        seen = np.where(np.arange(len(seeds))[:, None] < num_seeds[:, None, None], table, np.nan)
        tests = [_look(test, seen, is_needed, level * share) for test, share in zip(tests, shares, strict=True)]
        has_value = _any(np.isfinite(seen[:, :, 0]))
        if sequential.question == "reference":
            decided, could_decide = _against_reference(tests[0], conditions, has_value)
        else:
            decided, could_decide = _front(tests[0], tests[1], conditions, has_value)
        verdicts |= {name: verdict for name, verdict in decided.items() if verdicts[name] == "undecided"}
        is_needed &= could_decide
        if not is_needed.any():
            break
    return Progress(_by_name(conditions, num_seeds), verdicts, True)


def _by_name(conditions: Sequence[str], num_seeds: Integers) -> dict[str, int]:
    return {name: int(n) for name, n in zip(conditions, num_seeds, strict=True)}


def _table(
    conditions: Sequence[str],
    seeds: Sequence[int],
    num_objectives: int,
    values: Mapping[tuple[str, int], Sequence[float] | None],
) -> tuple[Floats, Flags]:
    """Conditions x seeds x objectives, a whole row NaN where it cannot be used; and which replicates have ended."""
    table = np.full((len(conditions), len(seeds), num_objectives), np.nan)
    has_ended = np.zeros(table.shape[:2], dtype=bool)
    for i, name in enumerate(conditions):
        for k, seed in enumerate(seeds):
            has_ended[i, k] = (name, seed) in values
            row = values.get((name, seed))
            if row is not None:
                table[i, k] = row[:num_objectives]
    table[~np.isfinite(table).all(2)] = np.nan
    return table, has_ended


def _pairs(
    sequential: Sequential, conditions: Sequence[str], reference: str | None, num_objectives: int
) -> Comparisons:
    """Every comparison of the question, undecided."""
    if sequential.question == "reference":
        if reference is None or reference not in conditions:
            raise ValueError(f"`reference` must be one of the conditions, but got {reference!r}.")
        right = np.array([list(conditions).index(reference)] * (len(conditions) - 1), dtype=np.int64)
        left = np.array([i for i, name in enumerate(conditions) if name != reference], dtype=np.int64)
    else:
        left, right = np.triu_indices(len(conditions), 1)
    shape = (len(left), num_objectives)
    return Comparisons(left, right, np.full(shape, UNDECIDED), np.full(shape, np.nan), np.zeros(shape, dtype=np.int64))


def _look(comparisons: Comparisons, seen: Floats, is_needed: Flags, level: float) -> Comparisons:
    """The comparisons after one look at `seen`: conditions x seeds x objectives, NaN where there is nothing."""
    left, right = comparisons.left, comparisons.right
    differences = seen[left] - seen[right]
    num_common = np.isfinite(differences).sum(1)
    resolution = RESOLUTION * _largest(seen)
    steps = np.diff(np.sort(seen, axis=1), axis=1)  # NaN comes last
    has_repeat, has_spread = _any(steps <= resolution[:, None]), _any(steps > resolution[:, None])
    shows_tied_noise = (has_repeat & has_spread).any(0)  # an objective under any condition: constants prove nothing
    constant = has_repeat & ~has_spread & ~shows_tied_noise
    is_certain = constant[left] & constant[right]
    mean, p = _paired_p(differences, num_common, np.maximum(resolution[left], resolution[right]))
    is_tested = (is_needed[left] & is_needed[right])[:, None] & (num_common >= 2) & (comparisons.sign == UNDECIDED)
    is_new = is_tested & (is_certain | (p <= level))
    return replace(
        comparisons,
        sign=np.where(is_new, np.sign(mean).astype(np.int64), comparisons.sign),
        p=np.where(is_new, np.where(is_certain, np.nan, p), comparisons.p),
        num_common=np.where(is_new, num_common, comparisons.num_common),
    )


def _largest(seen: Floats) -> Floats:
    """The largest absolute value of each condition and objective; 0 where there is none."""
    largest: Floats = np.where(np.isfinite(seen), np.abs(seen), 0.0).max(1)
    return largest


def _any(flags: Flags) -> Flags:
    """Whether any is set along axis 1."""
    is_any: Flags = np.logical_or.reduce(flags, axis=1)
    return is_any


def _paired_p(differences: Floats, num_common: Integers, resolution: Floats) -> tuple[Floats, Floats]:
    """Mean difference up to a power of two, 0 within its resolution, and p of the t-test, or of signs of one value."""
    powers = scale.exponents(_largest(differences))
    differences, resolution = scale.times(differences, -powers[:, None]), scale.times(resolution, -powers)
    n = np.maximum(num_common, 2)
    mean = np.nansum(differences, axis=1) / n
    std = np.sqrt(np.nansum((differences - mean[:, None]) ** 2, axis=1) / (n - 1))
    mean = np.where(np.abs(mean) <= resolution, 0.0, mean)
    has_spread = std > resolution
    t = np.abs(mean) / np.where(has_spread, std, 1.0) * np.sqrt(n)
    of_signs = np.where(mean == 0, 1.0, 2.0 ** (1 - n))
    return mean, np.where(has_spread, 2 * stdtr(n - 1, -t), of_signs)


def _against_reference(
    comparisons: Comparisons, conditions: Sequence[str], has_value: Flags
) -> tuple[dict[str, str], Flags]:
    """The verdicts there are, and which conditions need more seeds: undecided ones, and the reference if there are."""
    words = {-1: "lower than", 0: "equal to", 1: "higher than"}
    is_needed = np.zeros(len(conditions), dtype=bool)
    verdicts = {}
    for k, (i, r) in enumerate(zip(comparisons.left.tolist(), comparisons.right.tolist(), strict=True)):
        verdicts[conditions[r]] = "reference"
        sign, p, n = int(comparisons.sign[k, 0]), comparisons.p[k, 0], comparisons.num_common[k, 0]
        if sign == UNDECIDED:
            is_needed[[i, r]] |= has_value[i] and has_value[r]
        else:
            evidence = "no spread" if np.isnan(p) else f"p = {p:.2g}"
            verdicts[conditions[i]] = f"{words[sign]} {conditions[r]} ({evidence} at {n} seeds)"
    return verdicts, is_needed


def _front(
    better: Comparisons, worse: Comparisons, conditions: Sequence[str], has_value: Flags
) -> tuple[dict[str, str], Flags]:
    """The verdicts there are, and which conditions need more seeds; lower is better in all objectives.

    A condition is dominated if one other is decided, in `worse`, nowhere worse and somewhere better. It is on the front
    if of each other one that has values and is not dominated, it is decided, in `better`, better somewhere or equal
    everywhere. Dominated ones need no answer: what one of them dominates, its own dominator does too. So an undecided
    condition needs more seeds, and with it those that it has not got past.
    """
    sign, strict_sign = _square(better, len(conditions)), _square(worse, len(conditions))
    is_better = (sign < 0).any(2)
    is_past = is_better | (sign == 0).all(2) | np.eye(len(conditions), dtype=np.bool_)
    dominates = np.asarray((strict_sign <= 0).all(2) & (strict_sign < 0).any(2) & ~is_better.T)
    is_rival = has_value & ~_any(dominates.T)
    is_on_front = is_rival & ~_any(is_rival & ~is_past)
    is_undecided = is_rival & ~is_on_front
    verdicts = {name: "on the front" for name, is_on in zip(conditions, is_on_front, strict=True) if is_on}
    for j, name in enumerate(conditions):
        above = sorted(np.flatnonzero(dominates[:, j]).tolist(), key=lambda i: not is_rival[i])
        if above:
            verdicts[name] = f"dominated by {conditions[above[0]]}"
    is_blocking = is_rival & _any((is_undecided[:, None] & ~is_past).T)
    return verdicts, is_undecided | is_blocking


def _square(comparisons: Comparisons, num_conditions: int) -> Integers:
    """The signs of row minus column, by objective."""
    sign = np.full((num_conditions, num_conditions, comparisons.sign.shape[1]), UNDECIDED)
    sign[comparisons.left, comparisons.right] = comparisons.sign
    sign[comparisons.right, comparisons.left] = np.where(comparisons.sign == UNDECIDED, UNDECIDED, -comparisons.sign)
    return sign
