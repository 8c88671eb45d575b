"""Every statement of Graves' holds in a study where it is so, and is contradicted in one where it is not."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding
from orchestrator.results.question import Question
from orchestrator.results.study import Replicate, Study
from orchestrator.tracking import sqlite_reader
from search_spaces.act_published import statements
from search_spaces.claim import Place, StatementClaim
from search_spaces.find import find_sweep
from tests.orchestrator.recorded import Store, replicate

STATEMENTS = {claim.id: claim for claim in statements()}
SCATTER = (0.99, 1.0, 1.01, 1.005, 0.995)


def mean_of_left(claim: StatementClaim, right: float, holds: bool) -> float:
    """A number on the claimed side of the right one's margin, or on the other."""
    step = claim.margin + 0.3
    if claim.relation == "same":
        return right + (0.1 * claim.margin if holds else step)
    return right + (step if (claim.relation == "above") == holds else -step)


def values(place: Place, mean: float) -> dict[str, dict[str, list[float]]]:
    """By condition and column, over five seeds, such that `place` has the mean."""
    found = {place.condition: {place.column: [mean / place.scale * factor for factor in SCATTER]}}
    if place.over:
        assert place.over.condition == place.condition
        found[place.condition][place.over.column] = [1.0] * len(SCATTER)
    return found


def replicates(claim: StatementClaim, holds: bool) -> list[Replicate]:
    right = claim.right if isinstance(claim.right, float) else 2.0
    columns = values(claim.left, mean_of_left(claim, right, holds))
    if isinstance(claim.right, Place):
        for condition, found in values(claim.right, right).items():
            columns.setdefault(condition, {}).update(found)
    return [
        replicate(condition, seed, metrics=_of(found, seed))
        for condition, found in columns.items()
        for seed in range(1, 6)
    ]


def _of(columns: Mapping[str, list[float]], seed: int) -> dict[str, float]:
    return {name: numbers[seed - 1] for name, numbers in columns.items()}


@pytest.mark.parametrize("identity", STATEMENTS)
def test_a_statement_holds_where_it_is_so_and_fails_where_it_is_not(identity):
    claim = STATEMENTS[identity]
    question = replace(Question.of(find_sweep(claim.sweeps[0])), claims=(claim,))
    for holds, expected in ((True, Finding.reproduced), (False, Finding.worse)):
        study = Study(claim.sweeps[0], tuple(replicates(claim, holds)))
        (verdict,) = judge(study, question)
        assert verdict.finding is expected, verdict.reason


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((0.0, 0.001, 0.0005, 0.0, 0.0002), Finding.reproduced),
        ((0.0, 0.0, 0.0, 0.0, 0.0), Finding.reproduced),
        ((0.040, 0.042, 0.039, 0.041, 0.040), Finding.worse),  # 4 %: under 5 %, but not perfectly solved
        ((0.0, 0.03, 0.0, 0.0, 0.001), Finding.inconclusive),
    ],
)
def test_addition_that_is_perfectly_solved_in_a_recorded_study(tmp_path, errors, expected):
    sweep = "act.tau_addition"
    store = Store(tmp_path / "mlflow.db", sweep)
    rows = [replicate("tau=0.5", seed, metrics={"sequence_error@test": x}) for seed, x in enumerate(errors, start=1)]
    store.write(rows, 1, start_ms=1)
    study = sqlite_reader.read_study(store.uri, sweep, None)
    assert study is not None
    found = {verdict.claim.id: verdict for verdict in judge(study, Question.of(find_sweep(sweep)))}
    assert found["act.addition.solved.0.5"].finding is expected
    assert found["act.addition.solved.0.4"].finding is Finding.inconclusive
