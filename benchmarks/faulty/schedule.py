"""Which faults befall which rounds."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.faulty.injectors import ALWAYS, ENDS_DRIVER, GENERAL, Fault
from benchmarks.faulty.places import Place, Store
from benchmarks.faulty.sweeps import Kind

PATTERN: Final[tuple[tuple[Kind, Place], ...]] = (
    ("listed", "local"),
    ("searched", "local"),
    ("listed", "server"),
    ("listed", "cluster"),
    ("elastic", "cluster"),
    ("listed", "local"),
    ("searched", "server"),
    ("listed", "local"),
    ("listed", "cluster"),
    ("listed", "local"),
)
"""What every ten rounds run."""

OF_PLACE: Final[dict[Place, tuple[str, ...]]] = {"local": (), "cluster": ("node_lost",), "server": ("tracking_away",)}
OF_STORE: Final[dict[Store, tuple[str, ...]]] = {"sqlite": (), "postgresql": ("database_away",)}
AT_START: Final = 0.2
"""How many of the faults that end a driver meet it while it starts."""


@dataclass(frozen=True)
class Round:
    """One round and the faults that are due in it."""

    number: int
    sweep: Kind
    place: Place
    store: Store
    faults: tuple[Fault, ...]


class Deck:
    """Kinds in random order, each as often as the others; those that did not strike come first."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._cards: list[str] = []

    def draw(self, number: int) -> list[str]:
        """The next ones."""
        while len(self._cards) < number:
            self._cards += self._rng.sample(GENERAL, len(GENERAL))
        drawn, self._cards = self._cards[:number], self._cards[number:]
        return drawn

    def put_back(self, kind: str) -> None:
        """On top."""
        if kind in GENERAL:
            self._cards.insert(0, kind)


def rounds(number: int, only: Sequence[str], store: Store, rng: random.Random, deck: Deck) -> Iterator[Round]:
    """The rounds one after another: two to four faults each, or those named in `only`, one kind twice."""
    pattern = _fitting(only)
    for i in range(number):
        sweep, place = pattern[i % len(pattern)]
        given = OF_PLACE[place] + OF_STORE[store]
        kinds = [*given, *deck.draw(rng.randint(2, 4) - len(given))]
        if only:
            kinds = [kind for kind in (only if len(only) > 1 else [*only, *only]) if kind not in ALWAYS]
        yield Round(i + 1, sweep, place, store, tuple(_fault(kind, rng) for kind in kinds))


def _fitting(only: Sequence[str]) -> list[tuple[Kind, Place]]:
    """The part of the pattern in which these faults can happen."""
    if not only:
        return list(PATTERN)
    places = {place for place, kinds in OF_PLACE.items() if set(kinds) & set(only)} or {"local"}
    sweeps = {"listed"} if set(only) & set(ALWAYS) else {"listed", "searched", "elastic"}
    found = [(sweep, place) for sweep, place in PATTERN if place in places and sweep in sweeps]
    if len(places) > 1:
        raise SystemExit("A round takes place either on a cluster or beside a tracking server.")
    return found


def _fault(kind: str, rng: random.Random) -> Fault:
    is_at_start = kind in ENDS_DRIVER[:3] and rng.random() < AT_START
    if is_at_start:
        return Fault(kind, 0.0, rng.uniform(0, 10))
    return Fault(kind, rng.uniform(0.02, 0.85), rng.uniform(0, 0.5))
