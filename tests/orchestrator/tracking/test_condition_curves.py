"""Curves that people see in MLflow: each once, and for each number of seeds apart."""

import math

import pytest

from orchestrator.results.curves import Curve
from orchestrator.tracking.condition_metrics import of_curves
from tests.orchestrator.recorded import replicate

OF_3 = Curve("a", "per@e", 3, (0, 10, 20), (3.0, 2.0, 1.0), (0.3, 0.2, 0.1))
OF_5 = Curve("a", "per@e", 5, (0, 10, 20), (3.5, 2.5, 1.5), (0.4, 0.3, 0.2))


def curves(tracking, run_id: str) -> dict[str, list[tuple[int, float]]]:
    """What MLflow's client gives, by name."""
    names = [name for name in tracking._client.get_run(run_id).data.metrics if " of " in name]
    histories = {name: tracking._client.get_metric_history(run_id, name) for name in names}
    return {name: [(one.step, one.value) for one in history] for name, history in histories.items()}


def condition_run(tracking, name: str, *metrics: str) -> str:
    """The run of a condition with a replicate that reported `metrics`."""
    experiment = tracking.open_experiment("sweep")
    run_id = tracking.open_run(experiment, "condition", name, name, {"ponderay.condition": name})
    from orchestrator.tracking.replicate_tags import encode

    named = dict.fromkeys(metrics, 0.5)
    tracking.write_replicates(experiment, run_id, encode(replicate(name, 1, metrics=named)))
    tracking.end_condition(run_id, [replicate(name, 1, metrics=named)], [], {})
    return run_id


def write(tracking, run_id: str, curves: list[Curve]) -> None:
    tracking._write(run_id, of_curves(curves), {})


@pytest.mark.every_store
def test_writing_twice_doubles_nothing(tracking):
    run_id = condition_run(tracking, "a", "per@e")
    for _ in range(2):
        write(tracking, run_id, [OF_3])
    assert curves(tracking, run_id) == {
        "mean of 3/per/e": [(0, 3.0), (10, 2.0), (20, 1.0)],
        "std of 3/per/e": [(0, 0.3), (10, 0.2), (20, 0.1)],
    }


def test_curves_of_more_seeds_are_not_mixed_with_those_of_fewer_nor_with_the_mean(tracking):
    run_id = condition_run(tracking, "a", "per@e")
    write(tracking, run_id, [OF_3])
    write(tracking, run_id, [OF_5])
    metrics = tracking._client.get_run(run_id).data.metrics
    assert (metrics["mean of 3/per/e"], metrics["mean of 5/per/e"], metrics["per/e"]) == (1.0, 1.5, 0.5)
    assert len(tracking._client.get_metric_history(run_id, "per/e")) == 1


def test_one_replicate_has_no_spread(tracking):
    alone = Curve("a", "per@e", 1, (0, 10), (1.0, 0.5), (math.nan, math.nan))
    run_id = condition_run(tracking, "a", "per@e")
    write(tracking, run_id, [alone])
    assert curves(tracking, run_id) == {"mean of 1/per/e": [(0, 1.0), (10, 0.5)]}


def test_a_name_that_would_become_too_long_is_left_out(tracking):
    run_id = condition_run(tracking, "a", "per@e")
    write(tracking, run_id, [Curve("a", "m" * 245, 2, (1, 2), (1.0, 2.0), (0.0, 0.0)), OF_3])
    assert set(curves(tracking, run_id)) == {"mean of 3/per/e", "std of 3/per/e"}
