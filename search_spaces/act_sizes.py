"""Base configs of the sweeps on Adaptive Computation Time: Graves' sizes, and sizes for a laptop."""

from dataclasses import dataclass
from typing import Literal

from search_spaces.settings import with_all
from search_spaces.size import Size
from search_spaces.sweep import Objective
from trainables.act.config import (
    ActConfig,
    Adaptive,
    Addition,
    Evaluation,
    Logic,
    Optimisation,
    Parity,
    Sort,
    Text,
)

Scale = Literal["graves", "laptop"]


def penalties(largest_exponent: int) -> tuple[float, ...]:
    """Graves' time penalties i * 10^-j for i from 1 to 10 and j from 1 to the `largest_exponent`, each once."""
    exponents = range(1, largest_exponent + 1)
    return tuple(sorted({round(i * 10.0**-j, largest_exponent) for i in range(1, 11) for j in exponents}))


@dataclass(frozen=True)
class Task:
    """One of Graves' tasks.

    Attributes:
        title: the task in one word; names of sweeps hold it.
        graves: the paper's, with one process in place of its 16 asynchronous ones.
        laptop: smaller, so that a run takes minutes.
        error: the metric that says how bad a network is.
        grid: Graves' time penalties (section 3): of text, which took days, without the smallest.
    """

    title: str
    graves: ActConfig
    laptop: ActConfig
    error: str = "sequence_error"
    grid: tuple[float, ...] = penalties(4)

    @property
    def short_grid(self) -> tuple[float, ...]:
        """The four smallest powers of ten in the grid."""
        return tuple(tau for tau in self.grid if tau in (1e-4, 1e-3, 1e-2, 1e-1, 1.0))[:4]

    def base(self, scale: Scale, size: Size) -> ActConfig:
        """The config of a scale; in the small size the laptop's, with next to no training."""
        if size == "full":
            return self.graves if scale == "graves" else self.laptop
        few: dict[str, object] = {
            "training.num_iterations": 60,
            "training.report_every": 30,
            "training.batch_size": 8,
            "num_validation_sequences": 100,
            "evaluations": (Evaluation(num_sequences=200),),
        }
        return with_all(self.laptop, few)

    def objectives(self) -> tuple[Objective, ...]:
        """Error and updates."""
        return (Objective(self.error), Objective("mean_updates"))

    def validated(self) -> tuple[Objective, ...]:
        """The same on the validation set, for a search, which must not choose by the test."""
        error = "valid_sequence_error" if self.error == "sequence_error" else "valid_loss_nats"
        return (Objective(error), Objective("valid_mean_updates"))


def _laptop(learning_rate: float, batch_size: int, num_iterations: int) -> Optimisation:
    return Optimisation(
        learning_rate=learning_rate,
        batch_size=batch_size,
        num_iterations=num_iterations,
        report_every=num_iterations // 10,
    )


PARITY = Task(
    "parity",
    ActConfig(),
    ActConfig(data=Parity(num_bits=16), halting=Adaptive(max_updates=10), training=_laptop(4e-3, 128, 20_000)),
)
LOGIC = Task(
    "logic",
    ActConfig(data=Logic(), cell="lstm", training=Optimisation(batch_size=16)),
    ActConfig(
        data=Logic(num_gates=4, num_vectors=3),
        cell="lstm",
        hidden_size=64,
        halting=Adaptive(max_updates=10),
        training=_laptop(2e-3, 64, 8_000),
    ),
)
ADDITION = Task(
    "addition",
    ActConfig(
        data=Addition(),
        cell="lstm",
        hidden_size=512,
        halting=Adaptive(max_updates=20),
        training=Optimisation(batch_size=32),
    ),
    ActConfig(
        data=Addition(num_digits=2, num_numbers=3),
        cell="lstm",
        hidden_size=128,
        halting=Adaptive(max_updates=10),
        training=_laptop(1e-3, 64, 8_000),
    ),
)
SORT = Task(
    "sort",
    ActConfig(data=Sort(), cell="lstm", hidden_size=512, training=Optimisation(batch_size=16)),
    ActConfig(
        data=Sort(num_items=5),
        cell="lstm",
        hidden_size=64,
        halting=Adaptive(max_updates=10),
        training=_laptop(2e-3, 64, 6_000),
    ),
)
TEXT = Task(
    "text",
    ActConfig(
        data=Text(),
        cell="lstm",
        hidden_size=1500,
        training=Optimisation(batch_size=16, num_iterations=10_000, report_every=1000),
    ),
    ActConfig(
        data=Text(num_steps=50),
        cell="lstm",
        hidden_size=128,
        halting=Adaptive(max_updates=8),
        training=_laptop(2e-3, 32, 1_000),
    ),
    error="bits_per_character",
    grid=penalties(3),
)
TASKS = (PARITY, LOGIC, ADDITION, SORT, TEXT)
