"""What others published, as data: numbers and statements, each with its source."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Source:
    """Where it stands: the paper with its arXiv id, and the table and row in it."""

    paper: str
    place: str


@dataclass(frozen=True)
class Published:
    """A printed number.

    Attributes:
        std: as printed, population standard deviation over n; None where none is printed.
        n: seeds behind it; None where that is not said.
    """

    mean: float
    std: float | None = None
    n: int | None = None

    @property
    def sample_std(self) -> float:
        """The sample standard deviation: the population's, times sqrt(n / (n - 1)); 0 where none is printed."""
        if self.std is None or self.n is None or self.n < 2:
            return 0.0
        return self.std * math.sqrt(self.n / (self.n - 1))


@dataclass(frozen=True)
class Place:
    """A number of a study: a condition under an evaluation (empty: the only one), and a metric of it.

    Attributes:
        scale: what ours is multiplied by to be in the published unit.
    """

    condition: str
    metric: str
    evaluation: str = ""
    scale: float = 1.0


@dataclass(frozen=True)
class NumberClaim:
    """A published number that a study can meet.

    Attributes:
        id: unique, such as `asr.table2.timit.surprisal.per`.
        sweeps: shipped sweeps that have its place, without `.smoke`.
        margin: two numbers nearer than this count as one, in the published unit.
        margin_reason: why.
        requires: config values (paths of `trainables.config.flatten`, as text) without which it is not comparable.
        objective: the metric beside which it may be drawn in a front: `per`, `macs_per_frame`; empty: in none.
        row: claims of one row of a table share it, so that error and cost make a point of a figure.
        direction: which way is better.
    """

    id: str
    sweeps: tuple[str, ...]
    place: Place
    published: Published
    margin: float
    margin_reason: str
    source: Source
    direction: Literal["minimize", "maximize", "none"] = "minimize"
    requires: Mapping[str, str] = field(default_factory=dict)
    objective: str = ""
    row: str = ""


@dataclass(frozen=True)
class StatementClaim:
    """A published comparison.

    Attributes:
        text: what it says, in our words.
        left: what it is about.
        relation: `left` is below or above `right`, or within `margin` of it.
        right: what it is compared with: another place, or a number in the published unit.
        requires: as of `NumberClaim`.
    """

    id: str
    sweeps: tuple[str, ...]
    text: str
    left: Place
    relation: Literal["below", "above", "same"]
    right: Place | float
    source: Source
    margin: float = 0.0
    margin_reason: str = ""
    requires: Mapping[str, str] = field(default_factory=dict)


Claim = NumberClaim | StatementClaim
