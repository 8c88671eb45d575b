"""Sweeps of networks with Adaptive Computation Time: the studies of Graves 2016 (arXiv:1603.08983), and some more.

`NAME` and `NAME_short` are at the paper's sizes, `NAME_laptop` at sizes that take minutes a run.
"""

from typing import Final

from search_spaces.act_sizes import ADDITION, LOGIC, PARITY, SORT, TEXT, Size, Task
from search_spaces.distributions import Choice, Distribution, Real
from search_spaces.sweep import Condition, Objective, Search, Sweep
from trainables.act.config import Fixed, LearntTau

GRID: Final = tuple(sorted({round(i * 10.0**-j, 4) for i in range(1, 11) for j in range(1, 5)}))
"""Graves' time penalties: i * 10^-j for i from 1 to 10 and j from 1 to 4, each once."""

SHORT_GRID: Final = (1e-4, 1e-3, 1e-2, 1e-1)
SIZES: Final[dict[Size, str]] = {"graves": "Graves' sizes", "laptop": "laptop sizes"}
NO_ACT: Final = Condition("no_act", {"halting": Fixed()})


def tau_parity(smoke: bool = False) -> Sweep:
    """Parity: Graves' grid of time penalties, and no ACT."""
    return _tau(PARITY, "graves", GRID, smoke)


def tau_parity_short(smoke: bool = False) -> Sweep:
    """Parity: four time penalties, and no ACT."""
    return _tau(PARITY, "graves", SHORT_GRID, smoke)


def tau_parity_laptop(smoke: bool = False) -> Sweep:
    """Parity at a laptop's size: four time penalties, and no ACT."""
    return _tau(PARITY, "laptop", SHORT_GRID, smoke)


def fixed_updates_parity(smoke: bool = False) -> Sweep:
    """Parity: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(PARITY, "graves", smoke)


def fixed_updates_parity_laptop(smoke: bool = False) -> Sweep:
    """Parity at a laptop's size: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(PARITY, "laptop", smoke)


def search_parity(smoke: bool = False) -> Sweep:
    """Parity: Optuna over time penalty, learning rate and hidden size; error, updates and cost."""
    return _search(PARITY, smoke)


def tau_logic(smoke: bool = False) -> Sweep:
    """Logic: Graves' grid of time penalties, and no ACT."""
    return _tau(LOGIC, "graves", GRID, smoke)


def tau_logic_short(smoke: bool = False) -> Sweep:
    """Logic: four time penalties, and no ACT."""
    return _tau(LOGIC, "graves", SHORT_GRID, smoke)


def tau_logic_laptop(smoke: bool = False) -> Sweep:
    """Logic at a laptop's size: four time penalties, and no ACT."""
    return _tau(LOGIC, "laptop", SHORT_GRID, smoke)


def fixed_updates_logic(smoke: bool = False) -> Sweep:
    """Logic: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(LOGIC, "graves", smoke)


def fixed_updates_logic_laptop(smoke: bool = False) -> Sweep:
    """Logic at a laptop's size: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(LOGIC, "laptop", smoke)


def search_logic(smoke: bool = False) -> Sweep:
    """Logic: Optuna over time penalty, learning rate and hidden size; error, updates and cost."""
    return _search(LOGIC, smoke)


def tau_addition(smoke: bool = False) -> Sweep:
    """Addition: Graves' grid of time penalties, and no ACT."""
    return _tau(ADDITION, "graves", GRID, smoke)


def tau_addition_short(smoke: bool = False) -> Sweep:
    """Addition: four time penalties, and no ACT."""
    return _tau(ADDITION, "graves", SHORT_GRID, smoke)


def tau_addition_laptop(smoke: bool = False) -> Sweep:
    """Addition at a laptop's size: four time penalties, and no ACT."""
    return _tau(ADDITION, "laptop", SHORT_GRID, smoke)


def fixed_updates_addition(smoke: bool = False) -> Sweep:
    """Addition: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(ADDITION, "graves", smoke)


def fixed_updates_addition_laptop(smoke: bool = False) -> Sweep:
    """Addition at a laptop's size: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(ADDITION, "laptop", smoke)


def search_addition(smoke: bool = False) -> Sweep:
    """Addition: Optuna over time penalty, learning rate and hidden size; error, updates and cost."""
    return _search(ADDITION, smoke)


def tau_sort(smoke: bool = False) -> Sweep:
    """Sort: Graves' grid of time penalties, and no ACT."""
    return _tau(SORT, "graves", GRID, smoke)


def tau_sort_short(smoke: bool = False) -> Sweep:
    """Sort: four time penalties, and no ACT."""
    return _tau(SORT, "graves", SHORT_GRID, smoke)


def tau_sort_laptop(smoke: bool = False) -> Sweep:
    """Sort at a laptop's size: four time penalties, and no ACT."""
    return _tau(SORT, "laptop", SHORT_GRID, smoke)


def fixed_updates_sort(smoke: bool = False) -> Sweep:
    """Sort: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(SORT, "graves", smoke)


def fixed_updates_sort_laptop(smoke: bool = False) -> Sweep:
    """Sort at a laptop's size: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(SORT, "laptop", smoke)


def search_sort(smoke: bool = False) -> Sweep:
    """Sort: Optuna over time penalty, learning rate and hidden size; error, updates and cost."""
    return _search(SORT, smoke)


def tau_text(smoke: bool = False) -> Sweep:
    """Text: Graves' grid of time penalties, and no ACT."""
    return _tau(TEXT, "graves", GRID, smoke)


def tau_text_short(smoke: bool = False) -> Sweep:
    """Text: four time penalties, and no ACT."""
    return _tau(TEXT, "graves", SHORT_GRID, smoke)


def tau_text_laptop(smoke: bool = False) -> Sweep:
    """Text at a laptop's size: four time penalties, and no ACT."""
    return _tau(TEXT, "laptop", SHORT_GRID, smoke)


def fixed_updates_text(smoke: bool = False) -> Sweep:
    """Text: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(TEXT, "graves", smoke)


def fixed_updates_text_laptop(smoke: bool = False) -> Sweep:
    """Text at a laptop's size: 1 to 10 updates at every step, and ACT held to 2, 4 and 8 on average."""
    return _fixed_updates(TEXT, "laptop", smoke)


def search_text(smoke: bool = False) -> Sweep:
    """Text: Optuna over time penalty, learning rate and hidden size; error, updates and cost."""
    return _search(TEXT, smoke)


def _tau(task: Task, size: Size, grid: tuple[float, ...], smoke: bool) -> Sweep:
    name = f"tau_{task.title}"
    if size == "laptop":
        name += "_laptop"
    elif grid is SHORT_GRID:
        name += "_short"
    taus = grid[:: len(grid) // 2] if smoke else grid
    conditions = (NO_ACT, *(Condition(f"tau={tau:g}", {"halting.tau": tau}) for tau in taus))
    about = f"{task.title.capitalize()}: {len(grid)} time penalties, and no ACT; {SIZES[size]}."
    return _sweep(name, about, task, size, conditions, smoke)


def _fixed_updates(task: Task, size: Size, smoke: bool) -> Sweep:
    fixed = (1, 2) if smoke else range(1, 11)
    budgets = (2,) if smoke else (2, 4, 8)
    conditions = (
        *(Condition(f"updates={n}", {"halting": Fixed(num_updates=n)}) for n in fixed),
        *(Condition(f"budget={n}", {"halting.tau": LearntTau(mean_updates=n)}) for n in budgets),
    )
    about = f"{task.title.capitalize()}: 1 to 10 updates at every step, ACT held to 2, 4 and 8; {SIZES[size]}."
    name = f"fixed_updates_{task.title}" + "_laptop" * (size == "laptop")
    return _sweep(name, about, task, size, conditions, smoke)


def _sweep(
    name: str, description: str, task: Task, size: Size, conditions: tuple[Condition, ...], smoke: bool
) -> Sweep:
    return Sweep(
        name=f"act.{name}" + ".smoke" * smoke,
        description=description,
        trainable="trainables.act.train",
        base=task.base("smoke" if smoke else size),
        conditions=conditions,
        objectives=task.objectives(),
        seeds=(1,) if smoke else (1, 2, 3, 4, 5),
        reference=conditions[0].name,
    )


def _search(task: Task, smoke: bool) -> Sweep:
    space: dict[str, Distribution] = {
        "halting.tau": Real(1e-4, 1.0, log=True),
        "training.learning_rate": Real(1e-3, 1e-2, log=True) if smoke else Real(3e-5, 3e-3, log=True),
        "hidden_size": Choice((32, 64)) if smoke else Choice((128, 256, 512, 1024)),
    }
    return Sweep(
        name=f"act.search_{task.title}" + ".smoke" * smoke,
        description=f"Optuna on {task.title}: tau, learning rate, hidden size; 5 seeds a setting.",
        trainable="trainables.act.train",
        base=task.base("smoke" if smoke else "graves"),
        search=Search(space, num_trials=3 if smoke else 60),
        objectives=(*task.objectives(), Objective("macs_per_sequence")),
        seeds=(1, 2) if smoke else (1, 2, 3, 4, 5),
    )
