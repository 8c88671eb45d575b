"""What is said of a study's replicates beside its numbers."""

from orchestrator.report.sentences import of_replicates
from orchestrator.results.study import Replicate, Study


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


def test_seeds_that_change_nothing_are_told():
    said = "No metric differs between the seeds of any condition: does `config.seed` reach the model?"
    assert of_replicates(study((1.0, 1.0), (2.0, 2.0))) == (said,)
    assert of_replicates(study((1.0, 1.0), (2.0, 3.0))) == () == of_replicates(study((1.0,), (2.0,)))


def test_those_without_a_result_are_counted():
    said = "Of 4 replicates, 2 failed: they count in nothing here."
    assert of_replicates(study((1.0, 1.0), (2.0, 2.0), states=("complete", "failed"))) == (said,)
