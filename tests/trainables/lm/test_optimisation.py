"""The learning rate by hand."""

import pytest

from trainables.lm.optimisation import CutOnPlateau, HalveEachEpoch, Optimisation, learning_rate


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([5.0], 20.0),
        ([5.0, 4.0], 20.0),
        ([5.0, 4.0, 4.0], 10.0),
        ([5.0, 4.0, 4.5, 3.0], 10.0),
        ([5.0, 4.0, 4.5, 4.2], 5.0),
        ([5.0, 6.0, 5.5, 5.2, 5.1], 1.25),
    ],
)
def test_the_learning_rate_is_halved_after_an_epoch_without_improvement(losses, expected):
    assert learning_rate(Optimisation(schedule=HalveEachEpoch()), losses) == expected


@pytest.mark.parametrize(
    ("losses", "expected"),
    [([5, 9, 4, 9], 20), ([5, 9, 4, 3, 4.5], 10), ([5, 6, 6, 6, 5, 6], 5), ([5, 1, 6], 10)],
)
def test_validations_within_an_epoch_do_not_halve_it(losses, expected):
    training = Optimisation(reports_per_epoch=2)
    assert learning_rate(training, [float(loss) for loss in losses]) == expected


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([5], 20),
        ([5, 6], 20),
        ([5, 6, 6], 5),
        ([5, 6, 4, 4], 5),
        ([5, 6, 6, 6], 5),
        ([5, 6, 6, 6, 6], 1.25),
        ([5, 4, 3, 2], 20),
    ],
)
def test_the_learning_rate_is_quartered_at_every_second_validation_without_improvement(losses, expected):
    training = Optimisation(schedule=CutOnPlateau(), reports_per_epoch=3)
    assert learning_rate(training, [float(loss) for loss in losses]) == expected
