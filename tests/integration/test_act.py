"""Shipped sweeps of Adaptive Computation Time at their smoke sizes, without Ray."""

import json
from dataclasses import replace

import pytest
from mlflow import MlflowClient
from rich.console import Console
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.run import run_here
from orchestrator.tracking.client import Tracking
from search_spaces.find import find_sweep
from tests.integration.test_without_ray import starts
from trainables.act.config import Evaluation

pytestmark = pytest.mark.usefixtures("workplace")


def run(sweep):
    return run_here(sweep, read_settings(), Console(quiet=True), accept_code=False).replicates


@pytest.mark.parametrize("task", ["sort", pytest.param("text", marks=pytest.mark.slow)])
def test_a_replicate_of_a_task_leaves_metrics_tables_and_figures(task):
    sweep = find_sweep(f"act.fixed_updates_{task}", smoke=True).only("budget=2", 1)
    (replicate,) = run(sweep)
    assert replicate.state == "complete", replicate.error
    for objective in sweep.objectives:
        assert replicate.metrics[f"{objective.metric}@test"] > 0
    (recorded,) = Tracking(read_settings()).read_study(sweep.name).replicates
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    kept = {file.path for file in client.list_artifacts(recorded.run_id)}
    name = "passage" if task == "text" else "difficulty"
    assert {f"{name}_test.csv", f"{name}_test.png"} <= kept


def test_a_whole_sweep_has_a_front_of_error_against_updates(monkeypatch):
    sweep = find_sweep("act.tau_parity", smoke=True)
    replicates = run(sweep)
    assert [replicate.state for replicate in replicates] == ["complete"] * len(sweep.conditions)
    assert replicates[0].condition == "no_act" and replicates[0].metrics["mean_updates@test"] == 1
    shown = CliRunner().invoke(app, ["pareto", "act.tau_parity", "--smoke", "--format", "json"])
    points = json.loads(shown.stdout)["points"]
    assert {point["condition"] for point in points} == {condition.name for condition in sweep.conditions}
    assert all(0 < point["sequence_error"] < 1 and point["mean_updates"] >= 1 for point in points)
    by_cost = CliRunner().invoke(
        app, ["pareto", "act.tau_parity", "--smoke", "--x", "macs_per_sequence", "--format", "csv"]
    )
    assert "macs_per_sequence" in by_cost.stdout.splitlines()[0]


@pytest.mark.slow
def test_rivals_of_act_are_tested_under_every_rule_and_on_harder_tasks_from_one_training():
    whole = find_sweep("act.halting_parity_laptop", smoke=True)
    rivals = tuple(one for one in whole.conditions if one.name in ("early_exit", "ponder_net,lambda_p=0.2"))
    sweep = replace(whole, conditions=rivals, reference=None)
    replicates = {one.condition: one for one in run(sweep)}
    assert {one.state for one in replicates.values()} == {"complete"}, [one.error for one in replicates.values()]
    exits, drawn = replicates["early_exit"].metrics, replicates["ponder_net,lambda_p=0.2"].metrics
    for task in ("test", "harder"):
        assert exits[f"macs_per_sequence@{task}_sure_0_5"] > 0 and drawn[f"mean_updates@{task}_median"] >= 1
        assert exits[f"mean_updates@{task}_sure_0_5"] <= exits[f"mean_updates@{task}_sure_0_9"] <= 10
    assert exits["mean_updates@test"] == exits["mean_updates@harder"] == 10
    assert all({"sequence_error@test", "sequence_error@harder"} < set(one.metrics) for one in replicates.values())
    assert set(starts().values()) == {1}


@pytest.mark.slow
def test_optuna_searches_tau_learning_rate_and_hidden_size():
    sweep = find_sweep("act.search_addition", smoke=True)
    replicates = run(sweep)
    assert len(replicates) == sweep.search.num_trials * len(sweep.seeds)
    assert {replicate.state for replicate in replicates} == {"complete"}


def test_another_test_set_for_a_finished_replicate_trains_nothing():
    sweep = find_sweep("act.tau_sort_laptop", smoke=True).only("no_act", 1)
    (first,) = run(sweep)
    more = (*sweep.base.evaluations, Evaluation(name="fresh", num_sequences=50, seed=7))
    (later,) = run(sweep.with_values({"evaluations": more}))
    assert later.key == first.key and 0 < later.metrics["sequence_error@fresh"] <= 1
    assert later.metrics["sequence_error@test"] == first.metrics["sequence_error@test"]
    assert set(starts().values()) == {2}


def test_a_text_of_ones_own_is_read_and_a_missing_one_refused(tmp_path):
    path = tmp_path / "story.txt"
    command = ["train", "act.tau_text_laptop", "--smoke", "--condition", "no_act", "--set", f"data.path={path}"]
    refused = CliRunner().invoke(app, command)
    assert str(refused.exception) == f"The text {path} cannot be read: No such file or directory; set `data.path`."
    path.write_text("The rain in Spain stays mainly in the plain. " * 200)
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "bits_per_character@test" in done.output


@pytest.mark.slow
@pytest.mark.data
def test_a_network_learns_from_real_text_and_tells_spaces_from_letters(real_data):
    sweep = find_sweep("act.tau_text_laptop", smoke=True).only("tau=0.001", 1)
    (replicate,) = run(sweep.with_values({"data.path": str(real_data / "wikitext2" / "test.txt")}))
    assert replicate.state == "complete", replicate.error
    assert 2 < replicate.metrics["bits_per_character@test"] < 5.5
    assert {"mean_updates_space@test", "mean_updates_letter@test"} < set(replicate.metrics)
