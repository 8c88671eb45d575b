"""Every statement of the three sources holds in a study where it is so, and is contradicted in one where it is not.

The studies are made from the statements: each place gets a mean and a spread by which the statement is true or false.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from zlib import crc32

import numpy as np
import pytest

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from search_spaces.claim import Claim, FrontClaim, JointClaim, NumberClaim, Place, StatementClaim, TrendClaim
from search_spaces.find import find_sweep
from search_spaces.sources import all_claims, can_answer
from tests.orchestrator.recorded import replicate

NUM_SEEDS = 12
MIDDLE, GAP, FINE = 20.0, 5.0, 50.0
"""A mean in the published unit, what is far from it, and how much finer the noise is."""

STATEMENTS = {claim.id: claim for claim in all_claims() if not isinstance(claim, NumberClaim)}


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over seeds, in the published unit."""

    mean: float
    std: float


def compared(claim: StatementClaim, holds: bool, middle: float = MIDDLE) -> dict[Place, Cell]:
    """Both sides of a statement about means, the right one at `middle`; or about every replicate, which then vary."""
    if claim.of == "every":
        assert not isinstance(claim.right, Place)
        return {claim.left: Cell(claim.right, 0.0 if holds else claim.margin + GAP)}
    unit = middle / MIDDLE if isinstance(claim.right, Place) else 1.0
    gap, noise = GAP * unit + 3 * claim.margin, (claim.margin or GAP * unit) / FINE
    right = middle if isinstance(claim.right, Place) else claim.right
    step = {"below": -gap, "above": gap, "same": 0.0}[claim.relation]
    left = right + (step if holds else gap if claim.relation == "same" else -step)
    cells = {claim.left: Cell(left, noise)}
    return cells | ({claim.right: Cell(right, noise)} if isinstance(claim.right, Place) else {})


def together(claim: JointClaim, holds: bool) -> dict[Place, Cell]:
    """All parts true, or all false; what is said of a spread changes that of the left side alone."""
    cells: dict[Place, Cell] = {}
    for part in claim.parts:
        cells |= compared(part, holds, middle_of(part.right, cells)) if part.of != "spread" else {}
    for part in (one for one in claim.parts if one.of == "spread"):
        assert isinstance(part.right, Place)
        is_small = (part.relation == "below") == holds
        factor = 1 / FINE if is_small else FINE
        cells[part.left] = replace(cells[part.left], std=cells[part.right].std * factor)
    return cells


def middle_of(place: Place | float, cells: Mapping[Place, Cell]) -> float:
    """The mean of a ratio of two places that have theirs; else any."""
    if isinstance(place, Place) and place.over and {replace(place, over=None), place.over} <= cells.keys():
        return cells[replace(place, over=None)].mean / cells[place.over].mean
    return MIDDLE


def on_front(claim: FrontClaim, holds: bool) -> dict[Place, Cell]:
    """Better than every other point in the first metric and as good in the rest; or one other is better in all."""
    signs = [1.0 if direction == "maximize" else -1.0 for direction in claim.directions]
    noise = GAP / FINE
    cells = {place: Cell(MIDDLE, noise) for row in (claim.point, *claim.others) for place in row}
    if claim.is_on is holds:
        cells[claim.point[0]] = Cell(MIDDLE + GAP * signs[0], noise)
    else:
        cells |= {place: Cell(MIDDLE + GAP * sign, noise) for place, sign in zip(claim.others[0], signs, strict=True)}
    return cells


def along(claim: TrendClaim, holds: bool) -> dict[Place, Cell]:
    step = GAP if (claim.relation == "rises") == holds else -GAP
    return {place: Cell(MIDDLE * GAP + i * step, GAP / FINE) for i, place in enumerate(claim.places)}


def cells_of(claim: Claim, holds: bool) -> dict[Place, Cell]:
    match claim:
        case JointClaim():
            return together(claim, holds)
        case FrontClaim():
            return on_front(claim, holds)
        case TrendClaim():
            return along(claim, holds)
        case StatementClaim():
            return compared(claim, holds)
    raise AssertionError(claim)


def columns_of(claim: Claim, cells: Mapping[Place, Cell]) -> dict[str, dict[str, list[float]]]:
    """By condition and column the values of all seeds, as a replicate records them.

    Of a ratio one side is 1, unless the claim speaks of it alone as well; where of both, the ratio follows from them.
    """
    found: dict[Place, np.ndarray] = {}
    for place, cell in sorted(cells.items(), key=lambda item: item[0].over is not None):
        noise = np.random.default_rng(crc32(place.text.encode())).standard_normal(NUM_SEEDS)
        values = cell.mean + cell.std * (noise - noise.mean()) / noise.std()
        above, below = replace(place, over=None), place.over
        if below is None:
            found[above] = values
        elif above in found:
            found.setdefault(below, found[above] / values)
        else:
            found[above] = values * found.setdefault(below, np.ones(NUM_SEEDS))
    columns: dict[str, dict[str, list[float]]] = {}
    for place, values in found.items():
        assert place.column not in columns.get(place.condition, {})
        columns.setdefault(place.condition, {})[place.column] = list(values / place.scale)
    if fact := claim.setting.fact:
        columns.setdefault(fact.place.condition, {})[fact.place.column] = [fact.value / fact.place.scale] * NUM_SEEDS
    return columns


def study_of(claim: Claim, sweep: str, holds: bool) -> Study:
    runs = [
        replicate(condition, seed + 1, metrics={name: float(values[seed]) for name, values in columns.items()})
        for condition, columns in columns_of(claim, cells_of(claim, holds)).items()
        for seed in range(NUM_SEEDS)
    ]
    return Study(sweep, tuple(runs))


@cache
def question_of(sweep: str) -> Question:
    return Question.of(find_sweep(sweep))


def answering(sweeps: Iterable[str], claim: Claim) -> str:
    return next(sweep for sweep in sweeps if can_answer(sweep, claim))


@pytest.mark.parametrize("identity", STATEMENTS)
def test_a_statement_holds_where_it_is_so_and_is_contradicted_where_it_is_not(identity: str) -> None:
    claim = STATEMENTS[identity]
    sweep = answering(claim.sweeps, claim)
    question = replace(question_of(sweep), claims=(claim,))
    for holds, expected in ((True, Finding.reproduced), (False, Finding.worse)):
        (verdict,) = judge(study_of(claim, sweep, holds), question)
        assert verdict.finding is expected, verdict.reason


def test_every_form_of_statement_is_among_them() -> None:
    assert {type(claim) for claim in STATEMENTS.values()} == {StatementClaim, JointClaim, FrontClaim, TrendClaim}
    assert {identity.split(".")[0] for identity in STATEMENTS} == {"asr", "act", "lm"}
