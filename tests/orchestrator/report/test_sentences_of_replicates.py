"""What is said of a study's replicates beside its numbers."""

from orchestrator.report.sentences import of_replicates
from orchestrator.results.study import Replicate, Study
from search_spaces.sweep import Objective


def study(*losses: tuple[float, ...], states=("complete", "complete")) -> Study:
    names = zip("ab", losses, strict=False)
    return Study(
        "s",
        tuple(
            Replicate(f"{name}{seed}", name, seed, states[seed - 1], {"loss": value})
            for name, values in names
            for seed, value in enumerate(values, 1)
        ),
    )


def told(found: Study, *metrics: str) -> tuple[str, ...]:
    return of_replicates(found, [Objective(metric) for metric in metrics or ("loss",)])


def test_an_evaluation_without_an_objective_is_told():
    metrics = {"err@test": 0.1, "macs@test": 2.0, "err@noisy": 0.3}
    found = Study("s", (Replicate("k", "a", 1, "complete", metrics),))
    said = "In no front, for an objective was not reported there: evaluation noisy."
    assert told(found, "err", "macs") == (said,)
    assert told(found, "err") == () == told(found, "loss")


def test_seeds_that_change_nothing_are_told():
    said = "No metric differs between the seeds of any condition: does `config.seed` reach the model?"
    assert told(study((1.0, 1.0), (2.0, 2.0))) == (said,)
    assert told(study((1.0, 1.0), (2.0, 3.0))) == () == told(study((1.0,), (2.0,)))


def test_those_without_a_result_are_counted():
    said = "Of 4 replicates, 2 failed: they count in nothing here."
    assert told(study((1.0, 1.0), (2.0, 2.0), states=("complete", "failed"))) == (said,)
