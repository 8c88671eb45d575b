"""Whether conditions still got better when training ended, by what selects their checkpoints."""

from collections.abc import Sequence

from orchestrator.results.study import Study
from orchestrator.results.validations import SeedCurve, foreseeing
from orchestrator.statistics.improving import Ending, ending
from trainables.metric import Best


def ending_of(study: Study, condition: str, evaluation: str) -> Ending:
    """Whether the condition still got better when training ended, by what selects the evaluation's checkpoint.

    Not known where a complete replicate has no curve of it.
    """
    selecting = study.validations.selecting(condition, evaluation)
    if selecting is None:
        return ending([], "minimize")
    return _ending(study, condition, selecting)


def change_of(study: Study, condition: str, metric: str, evaluation: str) -> float:
    """By how much one more tenth of training would move a metric of a condition that still got better; else 0.

    It is 0 too where training does not validate the metric.
    """
    if ending_of(study, condition, evaluation).standing != "improving":
        return 0.0
    for name in foreseeing(metric, evaluation):
        found = _ending(study, condition, Best(name))
        if found.standing != "not known":
            return found.change
    return 0.0


def _ending(study: Study, condition: str, selecting: Best) -> Ending:
    curves: Sequence[SeedCurve] = study.validations.of(condition, selecting.metric)
    num_complete = sum(one.state == "complete" for one in study.of(condition))
    points = [list(zip(one.steps, one.values, strict=True)) for one in curves]
    return ending(points if len(points) == num_complete else [], selecting.direction)
