"""Sweeps of networks with Adaptive Computation Time: the studies of Graves 2016 (arXiv:1603.08983), and some more.

`NAME` and `NAME_short` are at the paper's sizes, `NAME_laptop` at sizes that take minutes a run.
"""

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Final

from search_spaces.act_sizes import TASKS, Scale, Task
from search_spaces.distributions import Choice, Distribution, Real
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Objective, Search, Sweep, SweepFunction
from trainables.act.config import Fixed, LearntTau

CLAIMS: Final = "search_spaces.act_published:claims"
SCALES: Final[Mapping[Scale, str]] = {"graves": "Graves' sizes", "laptop": "laptop sizes"}
NO_ACT: Final = Condition("no_act", {"halting": Fixed()})


def _tau(name: str, task: Task, size: Size, scale: Scale, grid_of: Callable[[Task], tuple[float, ...]]) -> Sweep:
    """A grid of time penalties, and no ACT."""
    grid = grid_of(task)
    taus = grid[:: len(grid) // 2] if size == "smoke" else grid
    conditions = (NO_ACT, *(Condition(f"tau={tau:g}", {"halting.tau": tau}) for tau in taus))
    about = f"{task.title.capitalize()}: {len(taus)} time penalties, and no ACT; {_sizes(scale, size)}."
    return _sweep(name, about, task, size, scale, conditions)


def _fixed_updates(name: str, task: Task, size: Size, scale: Scale) -> Sweep:
    """1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    fixed, budgets = ((1, 2), (2,)) if size == "smoke" else (range(1, 11), (2, 4, 8))
    conditions = (
        *(Condition(f"updates={n}", {"halting": Fixed(num_updates=n)}) for n in fixed),
        *(Condition(f"budget={n}", {"halting.tau": LearntTau(mean_updates=n)}) for n in budgets),
    )
    held = " and ".join(", ".join(map(str, budgets)).rsplit(", ", 1))
    steps = f"1 to {fixed[-1]} updates at every step"
    about = f"{task.title.capitalize()}: {steps}, ACT held to {held}; {_sizes(scale, size)}."
    return _sweep(name, about, task, size, scale, conditions)


def _sizes(scale: Scale, size: Size) -> str:
    return "smoke sizes" if size == "smoke" else SCALES[scale]


def _sweep(
    name: str, description: str, task: Task, size: Size, scale: Scale, conditions: tuple[Condition, ...]
) -> Sweep:
    return Sweep(
        name=sized_name(f"act.{name}", size),
        description=description,
        trainable="trainables.act.train",
        claims=CLAIMS,
        base=task.base(scale, size),
        conditions=conditions,
        objectives=task.objectives(),
        seeds=(1,) if size == "smoke" else (1, 2, 3, 4, 5),
        reference=conditions[0].name,
    )


def _search(name: str, task: Task, size: Size) -> Sweep:
    """Optuna over time penalty, learning rate and hidden size; error, updates and cost."""
    is_smoke = size == "smoke"
    seeds = (1, 2) if is_smoke else (1, 2, 3, 4, 5)
    space: dict[str, Distribution] = {
        "halting.tau": Real(1e-4, 1.0, log=True),
        "training.learning_rate": Real(1e-3, 1e-2, log=True) if is_smoke else Real(3e-5, 3e-3, log=True),
        "hidden_size": Choice((32, 64)) if is_smoke else Choice((128, 256, 512, 1024)),
    }
    return Sweep(
        name=sized_name(f"act.{name}", size),
        description=f"Optuna on {task.title}: tau, learning rate, hidden size; {len(seeds)} seeds a setting.",
        trainable="trainables.act.train",
        base=task.base("graves", size),
        search=Search(space, num_trials=3 if is_smoke else 60),
        objectives=(*task.objectives(), Objective("macs_per_sequence")),
        seeds=seeds,
    )


STUDIES: Final[Mapping[str, Callable[[str, Task, Size], Sweep]]] = {
    "tau_{}": partial(_tau, scale="graves", grid_of=attrgetter("grid")),
    "tau_{}_short": partial(_tau, scale="graves", grid_of=attrgetter("short_grid")),
    "tau_{}_laptop": partial(_tau, scale="laptop", grid_of=attrgetter("short_grid")),
    "fixed_updates_{}": partial(_fixed_updates, scale="graves"),
    "fixed_updates_{}_laptop": partial(_fixed_updates, scale="laptop"),
    "search_{}": _search,
}
"""By name, in which a task's stands for the braces."""

FIRST: Final = "tau_parity_laptop"
"""What to begin with."""

SWEEPS: Final[Mapping[str, SweepFunction]] = {
    name: partial(study, name, task)
    for task in TASKS
    for pattern, study in STUDIES.items()
    for name in [pattern.format(task.title)]
}
