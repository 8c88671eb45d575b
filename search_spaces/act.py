"""Sweeps of networks with Adaptive Computation Time: the studies of Graves 2016 (arXiv:1603.08983), and some more.

`NAME` and `NAME_short` are at the paper's sizes, `NAME_laptop` at sizes that take minutes a run.
"""

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from search_spaces.act_sizes import TASKS, Scale, Task
from search_spaces.distributions import Choice, Distribution, Real
from search_spaces.settings import with_all
from search_spaces.size import Size, sized_name
from search_spaces.sweep import Condition, Objective, Search, Sweep, SweepFunction
from trainables.act.config import (
    ActConfig,
    Difference,
    EarlyExit,
    Evaluation,
    Fixed,
    Halts,
    LearntTau,
    Mass,
    Parity,
    PonderNet,
)

CLAIMS: Final = str(Path(__file__).with_name("published") / "act.toml")
SCALES: Final[Mapping[Scale, str]] = {"graves": "Graves' sizes", "laptop": "laptop sizes"}
MOST_UPDATES: Final[Mapping[Scale, int]] = {"graves": 20, "laptop": 10}
"""Most updates of PonderNet and early exit, all of which training runs."""

GRU: Final[Mapping[str, object]] = {
    "cell": "gru",
    "training.learning_rate": 2e-3,
    "training.max_gradient_norm": 1.0,
    "training.num_iterations": 8000,
    "training.report_every": 1000,
}
"""The cell of parity at a laptop's size, for all ways of halting: the tanh cell learns next to nothing with PonderNet
in 4,000 iterations, the GRU in 2,000 errs in 4 % of the sequences (one seed)."""

SURE: Final = (0.5, 0.9)
"""How far the first class is ahead of the second where an early exit is taken."""

NO_ACT: Final = Condition("no_act", {"halting": Fixed()})


def _tau(name: str, task: Task, size: Size, scale: Scale, grid_of: Callable[[Task], tuple[float, ...]]) -> Sweep:
    """A grid of time penalties, and no ACT."""
    grid = grid_of(task)
    taus = grid[:: len(grid) // 2] if size == "smoke" else grid
    conditions = (NO_ACT, *(Condition(f"tau={tau:g}", {"halting.tau": tau}) for tau in taus))
    about = f"{task.title.capitalize()}: {len(taus)} time penalties, and no ACT; {_sizes(scale, size)}."
    return _sweep(name, about, task, size, task.base(scale, size), conditions)


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
    return _sweep(name, about, task, size, task.base(scale, size), conditions)


def _halting(name: str, task: Task, size: Size, scale: Scale) -> Sweep:
    """ACT, PonderNet, fixed numbers of updates and exit by confidence, each with the same network."""
    base = _extrapolating(task.base(scale, size))
    if size == "full" and scale == "laptop":
        # Nine ways of halting, four of them with ten updates a step, take half of the time penalties' iterations.
        times = {f"training.{name}": getattr(base.training, name) // 2 for name in ("num_iterations", "report_every")}
        base = with_all(base, GRU if isinstance(base.data, Parity) else times)
    tests, most = base.evaluations, MOST_UPDATES[scale]
    taus, lambdas, counts = ((1e-3,), (0.2,), (1, 2)) if size == "smoke" else ((1e-3, 1e-2), (0.2, 0.4), (1, 2, 5, 10))
    median = _under(tests, {"median": Mass()})
    sure = _under(tests, {f"sure_{share:g}".replace(".", "_"): Difference(above=share) for share in SURE})
    drawn = {probability: PonderNet(lambda_p=probability, max_updates=most) for probability in lambdas}
    conditions = (
        *(Condition(f"act,tau={tau:g}", {"halting.tau": tau}) for tau in taus),
        *(
            Condition(f"ponder_net,lambda_p={probability:g}", {"halting": halting, "evaluations": median})
            for probability, halting in drawn.items()
        ),
        *(Condition(f"updates={n}", {"halting": Fixed(num_updates=n)}) for n in counts),
        Condition("early_exit", {"halting": EarlyExit(max_updates=most), "evaluations": sure}),
    )
    title, harder = task.title.capitalize(), ", and tests with more active bits" if len(tests) > 1 else ""
    about = f"{title}: ACT, PonderNet, fixed updates, exit by confidence{harder}; {_sizes(scale, size)}."
    error, updates = task.objectives()
    # an update costs more where each is read out, so the cost is not their number
    return _sweep(name, about, task, size, base, conditions, (error, Objective("macs_per_sequence"), updates))


def _extrapolating(base: ActConfig) -> ActConfig:
    """Parity is trained with at most half of its bits active and tested with more too; at full size those of the paper.

    Banino et al. 2021 (arXiv:2107.05407): of 96 entries 1 to 48, then 49 to 96.
    """
    if not isinstance(base.data, Parity):
        return base
    num_bits = 96 if base.data.num_bits == 64 else base.data.num_bits
    easy = Parity(num_bits=num_bits, max_active=num_bits // 2)
    hard = Parity(num_bits=num_bits, min_active=num_bits // 2 + 1)
    (test,) = base.evaluations
    harder = test.with_value("name", "harder").with_value("data", hard)
    return base.with_value("data", easy).with_value("evaluations", (test, harder))


def _under(tests: tuple[Evaluation, ...], rules: Mapping[str, Halts]) -> tuple[Evaluation, ...]:
    """The tests, and each of them under every rule of halting: `test` under `median` is `test_median`."""
    ruled = [
        test.with_value("name", f"{test.name}_{rule}").with_value("halts", halts)
        for rule, halts in rules.items()
        for test in tests
    ]
    return (*tests, *ruled)


def _sizes(scale: Scale, size: Size) -> str:
    return "smoke sizes" if size == "smoke" else SCALES[scale]


def _sweep(
    name: str,
    description: str,
    task: Task,
    size: Size,
    base: ActConfig,
    conditions: tuple[Condition, ...],
    objectives: tuple[Objective, ...] | None = None,
) -> Sweep:
    """With the task's error and updates as objectives, unless there are others."""
    return Sweep(
        name=sized_name(f"act.{name}", size),
        description=description,
        trainable="trainables.act.train",
        claims=CLAIMS,
        base=base,
        conditions=conditions,
        objectives=objectives or task.objectives(),
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
        objectives=(*task.validated(), Objective("valid_macs_per_sequence")),
        seeds=seeds,
    )


STUDIES: Final[Mapping[str, Callable[[str, Task, Size], Sweep]]] = {
    "tau_{}": partial(_tau, scale="graves", grid_of=attrgetter("grid")),
    "tau_{}_short": partial(_tau, scale="graves", grid_of=attrgetter("short_grid")),
    "tau_{}_laptop": partial(_tau, scale="laptop", grid_of=attrgetter("short_grid")),
    "fixed_updates_{}": partial(_fixed_updates, scale="graves"),
    "fixed_updates_{}_laptop": partial(_fixed_updates, scale="laptop"),
    "halting_{}": partial(_halting, scale="graves"),
    "halting_{}_laptop": partial(_halting, scale="laptop"),
    "search_{}": _search,
}
"""Studies by name, in which a task's stands for the braces."""

FIRST: Final = "tau_parity_laptop"
"""What to begin with."""

SWEEPS: Final[Mapping[str, SweepFunction]] = {
    name: partial(study, name, task)
    for task in TASKS
    for pattern, study in STUDIES.items()
    for name in [pattern.format(task.title)]
}
