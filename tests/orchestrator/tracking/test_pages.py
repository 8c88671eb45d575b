"""Saved views: what MLflow's page is told, for every shipped sweep within the length of a tag."""

import json

import pytest

from orchestrator.tracking.names import stored_name
from orchestrator.tracking.notes import of_experiment
from orchestrator.tracking.pages import CONDITIONS, FILTERS, MAX_LENGTH, VIEWS, Ranked, changed_settings, view_tags
from search_spaces.find import find_sweep, sweep_functions
from tests.integration.sweeps import searched, tiny
from tests.orchestrator.driven import driven


def state(tags: dict[str, str], key: str) -> dict:
    """What the view `key` sets, decoded as MLflow's page does."""
    envelope = json.loads(tags[f"mlflow.sharedViewState.ponderay-{key}"])
    assert isinstance(envelope["name"], str) and isinstance(envelope["createdAt"], int)
    return json.loads(envelope["state"])


def test_the_table_of_conditions_has_means_and_bounds_best_first():
    table = state(driven().tags, "conditions")
    assert table["searchFilter"] == CONDITIONS
    assert (table["orderByKey"], table["orderByAsc"]) == ("metrics.`error/plain`", True)
    assert table["selectedColumns"] == [
        *(f"metrics.`error/plain{end}`" for end in ("", ".low", ".high")),
        *(f"metrics.`cost/plain{end}`" for end in ("", ".low", ".high")),
        "metrics.`error/plain.n`",
        "params.`x`",
        "params.`nan_at`",
    ]
    metrics, params = driven().run("good").data.metrics, driven().run("good").data.params
    there = {f"metrics.`{name}`" for name in metrics} | {f"params.`{name}`" for name in params}
    assert set(table["selectedColumns"]) <= there


def test_columns_of_replicates_and_failures_are_there():
    data = driven().run("bad seed 1").data
    there = {f"tags.`{name}`" for name in data.tags} | {f"metrics.`{name}`" for name in data.metrics}
    there |= {"metrics.`error/plain`", "metrics.`cost/plain`"}
    for key in ("replicates", "failures"):
        assert set(state(driven().tags, key)["selectedColumns"]) <= there


def test_the_front_is_drawn_as_scatter_and_parallel_coordinates():
    scatter, parallel = state(driven().tags, "front")["compareRunCharts"]
    assert (scatter["type"], scatter["xaxis"]["key"], scatter["yaxis"]["key"]) == (
        "SCATTER",
        "cost/plain",
        "error/plain",
    )
    assert (parallel["type"], parallel["selectedMetrics"]) == ("PARALLEL", ["error/plain", "cost/plain"])
    assert parallel["selectedParams"] == ["x", "nan_at"]


def test_one_objective_has_no_scatter_and_larger_may_be_better():
    tags = view_tags([Ranked("accuracy", False)], [])
    assert [chart["type"] for chart in state(tags, "front")["compareRunCharts"]] == ["PARALLEL"]
    assert state(tags, "conditions")["orderByAsc"] is False


def test_a_view_too_large_for_a_tag_is_left_out():
    tags = view_tags([Ranked("m" * 200, True)] * 6, [])
    assert len(tags) < len(VIEWS)
    assert all(len(value) <= MAX_LENGTH for value in tags.values())


def test_settings_are_those_that_conditions_or_a_search_change():
    assert changed_settings(tiny({"a": {"x": 0.25}, "b": {"first.level": 0.75}})) == ["x", "first.level"]
    assert changed_settings(searched(3)) == ["x"]
    whole = tiny({"a": {"first": {"level": 0.75}}, "b": {}})
    assert changed_settings(whole) == [f"first.{name}" for name in ("level", "sleep_s", "num_epochs", "nan_at", "seed")]


@pytest.mark.parametrize("name", sorted(sweep_functions()))
def test_every_shipped_sweep_has_all_views_and_a_whole_description(name):
    sweep = find_sweep(name)
    evaluation = next((f"@{one.name}" for one in getattr(sweep.base, "evaluations", ())), "")
    ranked = [Ranked(stored_name(one.metric + evaluation), one.direction == "minimize") for one in sweep.objectives]
    assert len(view_tags(ranked, changed_settings(sweep))) == len(VIEWS)
    filled = [one.filled({"error": ranked[0].metric, "cost": ranked[-1].metric}) for one in FILTERS]
    note = of_experiment(sweep.name, sweep.description, "123456789012345678", filled)
    assert FILTERS[-1].text in note
    assert len(note) <= 5000
