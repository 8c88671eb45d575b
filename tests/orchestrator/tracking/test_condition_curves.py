"""Curves in MLflow: what is written is what is read, once, and for each number of seeds apart."""

import math

import pytest

from orchestrator.results.curves import Curve
from orchestrator.tracking.curves import read_curves
from orchestrator.tracking.load import open_runs
from tests.orchestrator.recorded import replicate
from trainables.errors import InputError

pytestmark = pytest.mark.every_store

OF_3 = Curve("a", "per@e", 3, (0, 10, 20), (3.0, 2.0, 1.0), (0.3, 0.2, 0.1))
OF_5 = Curve("a", "per@e", 5, (0, 10, 20), (3.5, 2.5, 1.5), (0.4, 0.3, 0.2))
LOSS = Curve("a", "a/loss", 5, (10, 20), (1.0, 0.5), (0.0, 0.0))


def curves(tracking, conditions: list[str]) -> tuple[Curve, ...]:
    """What MLflow gives, and the file of a store that is one gives too."""
    by_mlflow = read_curves(tracking.runs("sweep"), conditions)
    found = read_curves(open_runs("sweep", tracking._settings), conditions)
    assert repr(found) == repr(by_mlflow)
    return found


def condition_run(tracking, name: str, *metrics: str) -> str:
    """The run of a condition with a replicate that reported `metrics`."""
    experiment = tracking.open_experiment("sweep")
    run_id = tracking.open_run(experiment, "condition", name, name, {"ponderay.condition": name})
    from orchestrator.tracking.replicate_tags import encode

    named = dict.fromkeys(metrics, 0.5)
    tracking.write_replicates(experiment, run_id, encode(replicate(name, 1, metrics=named)))
    tracking.summarise_condition(run_id, [replicate(name, 1, metrics=named)])
    return run_id


def test_what_is_written_is_read_with_the_names_that_metrics_had(tracking):
    run_id = condition_run(tracking, "a", "per@e", "a/loss")
    tracking.write_curves(run_id, [OF_5, LOSS])
    assert curves(tracking, ["a"]) == (LOSS, OF_5)


def test_writing_twice_doubles_nothing(tracking):
    run_id = condition_run(tracking, "a", "per@e")
    for _ in range(2):
        tracking.write_curves(run_id, [OF_3])
    history = tracking._client.get_metric_history(run_id, "mean of 3/per/e")
    assert [(metric.step, metric.value) for metric in history] == [(0, 3.0), (10, 2.0), (20, 1.0)]
    spread = tracking._client.get_metric_history(run_id, "std of 3/per/e")
    assert [metric.value for metric in spread] == [0.3, 0.2, 0.1]


def test_curves_of_more_seeds_are_not_mixed_with_those_of_fewer_nor_with_the_mean(tracking):
    run_id = condition_run(tracking, "a", "per@e")
    tracking.write_curves(run_id, [OF_3])
    tracking.write_curves(run_id, [OF_5])
    assert curves(tracking, ["a"]) == (OF_5,)
    metrics = tracking._client.get_run(run_id).data.metrics
    assert (metrics["mean of 3/per/e"], metrics["mean of 5/per/e"], metrics["per/e"]) == (1.0, 1.5, 0.5)
    assert len(tracking._client.get_metric_history(run_id, "per/e")) == 1


def test_one_replicate_has_no_spread(tracking):
    alone = Curve("a", "per@e", 1, (0, 10), (1.0, 0.5), (math.nan, math.nan))
    run_id = condition_run(tracking, "a", "per@e")
    tracking.write_curves(run_id, [alone])
    (found,) = curves(tracking, ["a"])
    assert (found.steps, found.means) == (alone.steps, alone.means)
    assert all(math.isnan(std) for std in found.stds)


def test_conditions_are_read_in_the_order_asked_for_and_those_without_curves_left_out(tracking):
    for name in ("a", "b", "c"):
        run_id = condition_run(tracking, name, "per@e")
        if name != "b":
            tracking.write_curves(run_id, [Curve(name, "per@e", 2, (1, 2), (1.0, 2.0), (0.0, 0.0))])
    assert [curve.condition for curve in curves(tracking, ["c", "b", "nowhere", "a"])] == ["c", "a"]
    assert curves(tracking, []) == ()


def test_a_name_that_would_become_too_long_is_left_out(tracking):
    run_id = condition_run(tracking, "a", "per@e")
    tracking.write_curves(run_id, [Curve("a", "m" * 245, 2, (1, 2), (1.0, 2.0), (0.0, 0.0)), OF_3])
    assert curves(tracking, ["a"]) == (OF_3,)


def test_a_sweep_that_has_not_run_is_said(tracking):
    with pytest.raises(InputError, match="nothing has not run here yet"):
        open_runs("nothing", tracking._settings)
