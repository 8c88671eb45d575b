"""What others published, as data: numbers and statements, each with its source."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

from trainables.errors import InputError


def sentence(text: str) -> str:
    """`text` with a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


def _check(name: str, value: float, least: float = -math.inf) -> None:
    if not (math.isfinite(value) and value >= least):
        bound = "" if math.isinf(least) else f" from {least:g}"
        raise InputError(f"The {name} of a claim must be a finite number{bound}, but got {value!r}.")


@dataclass(frozen=True)
class Source:
    """The place of a claim: the paper with its arXiv id, and the table and row in it."""

    paper: str
    place: str

    @property
    def text(self) -> str:
        """Both, as one line."""
        return f"{self.paper}, {self.place}"


@dataclass(frozen=True)
class Published:
    """A printed number, or one that we computed from printed ones.

    Attributes:
        std: as printed, population standard deviation over n; None where none is printed.
        n: seeds behind it; None where that is not said.
        is_computed: it stands nowhere as it is; the claim's source or note says what it was computed from.
    """

    mean: float
    std: float | None = None
    n: int | None = None
    is_computed: bool = False

    def __post_init__(self) -> None:
        _check("mean", self.mean)
        _check("std", 0.0 if self.std is None else self.std, 0)
        _check("n", 1 if self.n is None else self.n, 1)

    @property
    def origin(self) -> Literal["published", "computed"]:
        """What it is called wherever it is shown."""
        return "computed" if self.is_computed else "published"

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
        over: another place that it is divided by, seed by seed.
    """

    condition: str
    metric: str
    evaluation: str = ""
    scale: float = 1.0
    over: Self | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"The scale of a claim must be above 0, but got {self.scale!r}.")

    @property
    def parts(self) -> "tuple[Place, ...]":
        """It, and what it is divided by, if that is so."""
        return (self, *(self.over.parts if self.over else ()))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of all its parts."""
        return tuple(part.condition for part in self.parts)

    @property
    def column(self) -> str:
        """The metric as a replicate records it."""
        return f"{self.metric}@{self.evaluation}" if self.evaluation else self.metric

    @property
    def text(self) -> str:
        """The text for a sentence: `per@stochastic of surprisal`."""
        own = f"{self.column} of {self.condition}"
        return f"{own} / {self.over.text}" if self.over else own


@dataclass(frozen=True)
class Fact:
    """A number that a study must have measured, give or take `tolerance`, to be of what was published.

    Attributes:
        text: what it shows, for a sentence: "a vocabulary of 37,732".
    """

    text: str
    place: Place
    value: float
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        _check("fact", self.value)
        _check("tolerance", self.tolerance, 0)


@dataclass(frozen=True)
class Setting:
    """What something was published of; elsewhere it is not comparable.

    Attributes:
        title: for a sentence: "on TIMIT at the paper's sizes".
        requires: config values that a condition must have, as text, by paths of `trainables.config.flatten`.
        free: paths that may be overridden with any value; an override of any other, not required one makes another
            setting of it.
        fact: what must have been measured besides.
        any_of: as `requires`, where one of several values will do.
    """

    title: str
    requires: Mapping[str, str] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    fact: Fact | None = None
    any_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class NumberClaim:
    """A published number that a study can meet.

    Attributes:
        id: unique, such as `asr.table2.timit.surprisal.per`.
        sweeps: shipped sweeps that have its place, without `.smoke`.
        margin: two numbers nearer than this count as one, in the published unit.
        margin_reason: why.
        direction: which way is better.
        objective: the metric beside which it may be drawn in a front: `per`, `macs_per_frame`; empty: in none.
        row: names the row of its table; the claims of one row share it, so that error and cost make a point of a
            figure.
        note: what is known to be wrong with the printed number, or different from ours.
        bar: why no study can be held against it, where that is so.
    """

    id: str
    sweeps: tuple[str, ...]
    place: Place
    published: Published
    margin: float
    margin_reason: str
    source: Source
    setting: Setting
    direction: Literal["minimize", "maximize", "none"] = "minimize"
    objective: str = ""
    row: str = ""
    note: str = ""
    bar: str = ""

    def __post_init__(self) -> None:
        _check("margin", self.margin, 0)

    @property
    def places(self) -> tuple[Place, ...]:
        """What of a study it is about."""
        return (self.place,)

    @property
    def in_our_unit(self) -> float:
        """The published mean as a study has it."""
        return self.published.mean / self.place.scale


@dataclass(frozen=True)
class StatementClaim:
    """A published comparison.

    Attributes:
        text: what it says, a sentence in our words.
        of: what is compared of the two sides: their means over seeds, or their spread, the standard deviation; `every`:
            that the left side is the `same` as a number in every replicate, which one value decides, without a test.
        left: what it is about.
        relation: `left` is below or above `right`, or within `margin` of it.
        right: what it is compared with: another place, or a number in the published unit.
        margin: of `same`; with `below` and `above` how far on the wrong side still counts ("no worse than").
        setting, note: as of `NumberClaim`.
    """

    id: str
    sweeps: tuple[str, ...]
    text: str
    left: Place
    relation: Literal["below", "above", "same"]
    right: Place | float
    source: Source
    setting: Setting
    margin: float = 0.0
    margin_reason: str = ""
    note: str = ""
    of: Literal["mean", "spread", "every"] = "mean"

    def __post_init__(self) -> None:
        _check("margin", self.margin, 0)
        if not isinstance(self.right, Place):
            _check("right side", self.right)
        if self.of == "spread" and not (isinstance(self.right, Place) and self.relation != "same" and not self.margin):
            rule = "must be below or above another place, without a margin"
            raise InputError(f"A spread {rule}, but got {self.relation} {self.right!r} within {self.margin!r}.")
        if self.of == "every" and (self.relation != "same" or isinstance(self.right, Place)):
            rule = "must be the same as a number"
            raise InputError(f"What holds in every replicate {rule}, but got {self.relation} {self.right!r}.")

    @property
    def places(self) -> tuple[Place, ...]:
        """What of a study it is about."""
        return (self.left, self.right) if isinstance(self.right, Place) else (self.left,)


@dataclass(frozen=True)
class JointClaim:
    """A published comparison of several things at once: "as good, cheaper, and with less spread".

    Attributes:
        parts: all must hold. Their identity, sweeps, source and setting are those of the whole.
        setting, note: as of `NumberClaim`.
    """

    id: str
    sweeps: tuple[str, ...]
    text: str
    parts: tuple[StatementClaim, ...]
    source: Source
    setting: Setting
    note: str = ""

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise InputError(f"A joint claim must have at least 2 parts, but got {len(self.parts)}.")

    @property
    def places(self) -> tuple[Place, ...]:
        """What of a study it is about."""
        return tuple(place for part in self.parts for place in part.places)


@dataclass(frozen=True)
class FrontClaim:
    """A published membership: none of the others is at least as good in everything and better in something.

    Attributes:
        point: one place for each objective, such as an error and a cost.
        others: the same of each row that it is compared with.
        directions: of the objectives.
        is_on: whether it is said to be on the front; else some other is said to dominate it.
        setting, note: as of `NumberClaim`.
    """

    id: str
    sweeps: tuple[str, ...]
    text: str
    point: tuple[Place, ...]
    others: tuple[tuple[Place, ...], ...]
    directions: tuple[Literal["minimize", "maximize"], ...]
    source: Source
    setting: Setting
    is_on: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        if len(self.directions) < 2 or not self.others:
            raise InputError("A claim about a front must have at least 2 objectives and another point.")
        if any(len(row) != len(self.directions) for row in (self.point, *self.others)):
            raise InputError("A claim about a front must have a place for each objective in every point.")

    @property
    def places(self) -> tuple[Place, ...]:
        """What of a study it is about."""
        return tuple(place for row in (self.point, *self.others) for place in row)


@dataclass(frozen=True)
class TrendClaim:
    """A published order or trend: a metric rises or falls along a swept value.

    Attributes:
        places: in the order of the value, or in the claimed order; at least 3.
        setting, note: as of `NumberClaim`.
    """

    id: str
    sweeps: tuple[str, ...]
    text: str
    places: tuple[Place, ...]
    relation: Literal["rises", "falls"]
    source: Source
    setting: Setting
    note: str = ""

    def __post_init__(self) -> None:
        if len(set(self.places)) < max(3, len(self.places)):
            raise InputError(f"A trend must go over at least 3 places, each once, but got {len(self.places)}.")


Claim = NumberClaim | StatementClaim | JointClaim | FrontClaim | TrendClaim


def margin_of(claim: Claim) -> float:
    """Within which two numbers count as one; 0 where a claim has none."""
    return claim.margin if isinstance(claim, NumberClaim | StatementClaim) else 0.0
