"""Addition that is "perfectly solved" (Graves 2016, section 3.3), in recorded studies."""

import pytest

from orchestrator.published.judge import judge
from orchestrator.published.verdict import Finding
from orchestrator.results.question import Question
from orchestrator.tracking import mlflow_reader
from search_spaces.find import find_sweep
from tests.orchestrator.recorded import Store, replicate


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
    study = mlflow_reader.read_study(store.client, sweep, store.experiment_id)
    assert study is not None
    found = {verdict.claim.id: verdict for verdict in judge(study, Question.of(find_sweep(sweep)))}
    assert found["act.addition.solved.0.5"].finding is expected
    assert found["act.addition.solved.0.4"].finding is Finding.inconclusive
