"""What a condition's run says of its replicates, against numbers from a table of Student's t."""

import math
from dataclasses import replace

import pytest

from tests.orchestrator.recorded import replicate


def summarised(tracking, replicates) -> dict[str, float]:
    """The metrics of the condition's run after a summary of `replicates`."""
    run_id = tracking.open_run(tracking.open_experiment("sweep"), "condition", "0123", "a", {})
    tracking.end_condition(run_id, replicates, [], {})
    return dict(tracking._client.get_run(run_id).data.metrics)


def seeds(*values: float, **changes) -> list:
    return [replicate("a", seed, metrics={"per@e": value}, **changes) for seed, value in enumerate(values, 1)]


def test_mean_spread_number_and_interval(tracking):
    metrics = summarised(tracking, seeds(1.0, 2.0, 6.0))
    std = math.sqrt(14 / 2)
    half = 4.302653 * std / math.sqrt(3)  # t of 2 degrees of freedom at 0.975
    expected = {"": 3.0, ".std": std, ".n": 3.0, ".low": 3.0 - half, ".high": 3.0 + half}
    assert metrics == pytest.approx({f"per/e{end}": value for end, value in expected.items()}, rel=1e-6)


def test_one_replicate_has_no_spread_and_no_interval(tracking):
    assert summarised(tracking, seeds(2.0)) == {"per/e": 2.0, "per/e.n": 1.0}


def test_more_replicates_take_the_place_of_fewer(tracking):
    summarised(tracking, seeds(1.0, 2.0, 6.0))
    metrics = summarised(tracking, seeds(1.0, 2.0, 6.0, 3.0))
    assert (metrics["per/e"], metrics["per/e.n"]) == (3.0, 4.0)
    assert metrics["per/e.high"] - 3.0 == pytest.approx(3.182446 * math.sqrt(14 / 3) / 2, rel=1e-6)


@pytest.mark.every_store
def test_what_is_no_longer_complete_counts_no_more(tracking):
    """As where an evaluation was added, and fails under some seeds, or under all."""
    whole = seeds(1.0, 2.0, 6.0)
    summarised(tracking, whole)
    metrics = summarised(tracking, [whole[0], *(replace(one, state="failed") for one in whole[1:])])
    assert (metrics["per/e"], metrics["per/e.n"]) == (1.0, 1.0)
    assert all(math.isnan(metrics[f"per/e{end}"]) for end in (".std", ".low", ".high"))
    assert all(map(math.isnan, summarised(tracking, [replace(one, state="failed") for one in whole]).values()))
    assert summarised(tracking, whole)["per/e.n"] == 3.0


def test_equal_values_have_an_interval_of_no_width(tracking):
    metrics = summarised(tracking, seeds(2.0, 2.0))
    assert [metrics[f"per/e{end}"] for end in ("", ".std", ".low", ".high")] == [2.0, 0.0, 2.0, 2.0]


@pytest.mark.every_store
def test_failed_replicates_and_values_that_are_not_finite_do_not_count(tracking):
    metrics = summarised(tracking, [*seeds(1.0, 3.0, math.nan), replicate("a", 4, state="failed")])
    assert (metrics["per/e"], metrics["per/e.n"]) == (2.0, 2.0)
    run = tracking._client.search_runs([tracking.open_experiment("sweep")])[0]
    assert run.info.status == "FAILED"


@pytest.mark.every_store
def test_many_metrics_take_few_requests(tracking, monkeypatch):
    named = {f"m{i}": float(i) for i in range(500)}
    replicates = [replicate("a", seed, metrics=named) for seed in (1, 2)]
    log_batch, sizes = tracking._client.log_batch, []

    def counting(run_id, metrics=(), params=(), tags=(), **options):
        sizes.append(len(metrics))
        log_batch(run_id, metrics, params, tags, **options)

    monkeypatch.setattr(tracking._client, "log_batch", counting)
    assert len(summarised(tracking, replicates)) == 2500 == sum(sizes)
    assert len(sizes) <= 4


def test_a_name_that_would_become_too_long_is_left_out(tracking):
    metrics = summarised(tracking, [replicate("a", seed, metrics={"m" * 247: 1.0}) for seed in (1, 2)])
    assert set(metrics) == {"m" * 247, "m" * 247 + ".n"}
