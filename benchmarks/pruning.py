"""What pruning by domination saves a search, and how far it moves the numbers, by simulation.

    python benchmarks/pruning.py [--searches 1000] [--settings 20]

Each row simulates searches of one noise (the standard deviation of a seed's error; true errors range over about 1) and
one number of seeds. Settings come one after the other; each has a cost without noise, evenly drawn, and a true error
that falls with the cost, plus half a normal deviate of one sign. "saved" is the share of all runs that was not needed,
"lost" the share of truly undominated settings that were pruned. The rest are mean errors less true errors, in standard
deviations of a seed; below zero, a setting looks better than it is: of the settings "kept", of those "pruned" with
their one seed, and of those on the front of the means with pruning ("front") and without ("unpruned front"). The last,
"confirmed", is of the front's settings under as many fresh seeds alone, as `ponderay run --confirm` runs them.
"""

import argparse
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from orchestrator.pareto.front import is_minimal, signs
from orchestrator.scheduler.pruning import decision_on, is_pruned
from search_spaces.sweep import Objective

OBJECTIVES = (Objective("error"), Objective("cost"))
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one search; biases are one number a setting, in standard deviations of a seed."""

    saved: Floats
    lost: Floats
    kept: Floats
    pruned: Floats
    front: Floats
    unpruned_front: Floats
    confirmed: Floats


def search(random: np.random.Generator, noise: float, num_seeds: int, num_settings: int) -> Outcome:
    """One search, its settings in the order in which they are drawn."""
    cost = random.uniform(size=num_settings)
    truth = 1.0 - cost + 0.5 * np.abs(random.standard_normal(num_settings))
    seeds = truth[:, None] + noise * random.standard_normal((num_settings, num_seeds))
    whole: dict[str, tuple[float, float]] = {}
    kept = np.zeros(num_settings, np.bool_)
    for i in range(num_settings):
        kept[i] = not is_pruned(decision_on((seeds[i, 0], cost[i]), whole))
        if kept[i]:
            whole[f"{i:04d}"] = (float(seeds[i].mean()), float(cost[i]))
    means = np.where(kept, seeds.mean(axis=1), seeds[:, 0])
    fresh = truth[:, None] + noise * random.spawn(1)[0].standard_normal((num_settings, num_seeds))
    bias, unpruned_bias, fresh_bias = ((found - truth) / noise for found in (means, seeds.mean(1), fresh.mean(1)))
    return Outcome(
        saved=np.array([(~kept).mean() * (num_seeds - 1) / num_seeds]),
        lost=(~kept[_front(truth, cost)]).astype(np.float64),
        kept=bias[kept],
        pruned=bias[~kept],
        front=bias[_front(means, cost)],
        unpruned_front=unpruned_bias[_front(seeds.mean(axis=1), cost)],
        confirmed=fresh_bias[_front(means, cost)],
    )


def _front(errors: Floats, cost: Floats) -> NDArray[np.bool_]:
    return is_minimal(np.stack([errors, cost], axis=1) * signs(OBJECTIVES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=1000)
    parser.add_argument("--settings", type=int, default=20)
    arguments = parser.parse_args()
    names = [field.name for field in fields(Outcome)]
    print(f"{'noise':>6}{'seeds':>6}" + "".join(f"{name.replace('_', ' '):>16}" for name in names))
    for noise in (0.02, 0.1, 0.5):
        for num_seeds in (2, 5):
            random = np.random.default_rng(1)
            found = [search(random, noise, num_seeds, arguments.settings) for _ in range(arguments.searches)]
            means = [float(np.concatenate([getattr(one, name) for one in found]).mean()) for name in names]
            print(f"{noise:6g}{num_seeds:6d}" + "".join(f"{mean:16.3f}" for mean in means))


if __name__ == "__main__":
    main()
