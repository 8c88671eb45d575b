"""`ponderay plan` of tiny sweeps: before, in the middle and after; what it must leave alone."""

import csv
import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli import plan
from orchestrator.cli.options import find
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.forecast.remaining_work import _state, look
from orchestrator.forecast.summary import describe
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.summary import JournalSummary
from orchestrator.results.study import Replicate
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.execute import execute
from search_spaces.resources import Resources
from search_spaces.sweep import Objective, Sequential, Sweep
from tests.integration.sweeps import run_quietly, searched, tiny
from tests.integration.tiny import TinyEvaluation
from trainables.errors import InputError

ROOT = Path(__file__).parents[3]
CONDITIONS = {"a": {"sleep_s": 0.02}, "b": {"x": 0.25, "sleep_s": 0.02}}
SHIPPED = {
    "tiny.sweep": lambda size: tiny(CONDITIONS),
    "tiny.reference": lambda size: tiny(CONDITIONS, reference="a"),
}
HERE = f"{__name__}:SHIPPED"


@pytest.fixture
def shipped(workplace, monkeypatch):
    """The sweeps above can be imported, here and in the processes started from here."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def planned(sweep: Sweep, num_cpus: int = 2, num_gpus: int = 0, accept_code: bool = False) -> dict:
    settings = read_settings()
    snapshot = look(sweep, settings, num_cpus, num_gpus, accept_code)
    return describe(snapshot, settings, num_cpus, num_gpus, None)


def call(*arguments: str) -> str:
    """What `ponderay plan ARGUMENTS` prints."""
    app = typer.Typer()
    app.command()(plan.plan)
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def work_on(sweep: Sweep, condition: str, seed: int, until: int | None = None) -> None:
    """Runs a replicate and its prerequisite without any record in MLflow; stops it after the step `until`."""
    factory = TaskFactory(sweep, read_settings(), 0)
    named = next(one for one in sweep.conditions if one.name == condition)
    prerequisites = factory.prerequisites(named, seed)

    def stop(record: dict) -> None:
        if until and record.get("step") == until:
            raise KeyboardInterrupt

    for task in prerequisites.values():
        if ReplicateFolder(task.work.folder, {}).state()["state"] != "complete":
            execute(task.work, lambda record: None)
    try:
        execute(factory.replicate(named, seed, prerequisites).work, stop)
    except KeyboardInterrupt:
        assert until


def contents(folder: Path = Path()) -> dict[Path, str]:
    """A hash of every file, but of SQLite's own bookkeeping."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(("-wal", "-shm"))]
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def counts(row: dict) -> tuple[int, ...]:
    return tuple(row[state] for state in ("complete", "failed", "partly_done", "to_do"))


def test_before_anything_ran_it_says_so_and_leaves_nothing_behind(shipped):
    report = json.loads(call(f"{HERE}.tiny.sweep", "--cpus", "3", "--format", "json"))
    assert [(row["condition"], counts(row)) for row in report["conditions"]] == [
        ("a", (0, 0, 0, 2)),
        ("b", (0, 0, 0, 2)),
    ]
    assert [(row["prerequisite"], counts(row)) for row in report["prerequisites"]] == [("first", (0, 0, 0, 1))]
    assert report["machine"] == {"cpus": 3, "gpus": 0}
    assert report["forecast"]["least"] == report["forecast"]["most"]
    assert report["forecast"]["most"]["runs"] == 5
    assert report["forecast"]["most"]["wall_s"] is None
    assert report["basis"]["text"] == "nothing was measured yet"
    assert "--calibrate" in report["notes"][0]
    assert contents() == {} and not Path("runs").exists()


def test_in_the_middle_each_state_is_told_and_the_rest_forecast_from_what_was_timed(workplace, monkeypatch):
    sweep = tiny(CONDITIONS | {"bad": {"nan_at": 1}}, seeds=(1, 2, 3))
    work_on(sweep, "a", 1)
    work_on(sweep, "a", 2, until=3)
    work_on(sweep, "bad", 1)
    before = contents()
    monkeypatch.setenv("PONDERAY_PRICE_PER_DEVICE_HOUR", "3.6")
    monkeypatch.setenv("PONDERAY_WATTS_PER_DEVICE", "500")
    report = planned(sweep)
    assert contents() == before
    assert {row["condition"]: counts(row) for row in report["conditions"]} == {
        "a": (1, 0, 1, 1),
        "b": (0, 0, 0, 3),
        "bad": (0, 1, 0, 2),
    }
    assert report["conditions"][0]["unfinished"] == [{"seed": 2, "step": 3, "num_steps": 4}]
    assert counts(report["prerequisites"][0]) == (1, 0, 0, 0)
    assert report["basis"]["text"] == "1 finished replicate of 1 condition, the steps of 1 unfinished replicate"
    assert any("1 failed replicate" in note for note in report["notes"])
    numbers = report["forecast"]["most"]
    assert numbers["runs"] == 7
    for number in ("wall_s", "device_hours", "money", "kwh", "disk_bytes"):
        assert 0 < numbers[number]["low"] < numbers[number]["median"] < numbers[number]["high"]
    assert numbers["money"]["median"] == pytest.approx(3.6 * numbers["device_hours"]["median"])
    assert numbers["kwh"]["median"] == pytest.approx(0.5 * numbers["device_hours"]["median"])
    (_, end_ms), (start_ms, _) = runs_of_the_first_driver()
    handover_s = (start_ms - end_ms) / 1000
    alone = planned(sweep, num_cpus=1)["forecast"]["most"]
    busy_s = 3600 * alone["device_hours"]["median"]
    assert alone["wall_s"]["median"] == pytest.approx(busy_s + 7 * handover_s, rel=1e-6)
    assert 0.5 <= numbers["wall_s"]["median"] / alone["wall_s"]["median"] < 0.8


def runs_of_the_first_driver() -> list[tuple[int, int]]:
    """Start and end in ms of the prerequisite and of the replicate that followed it."""
    journals = [ReplicateFolder(path.parent, {}).records() for path in Path("runs").rglob("journal.jsonl")]
    spans = [(journal[0]["time_ms"], journal[-1]["time_ms"]) for journal in journals]
    return sorted(spans)[:2]


def test_afterwards_nothing_is_left(workplace):
    sweep = tiny(CONDITIONS)
    run_quietly(sweep)
    journals = {file: text for file, text in contents().items() if file.suffix in (".jsonl", ".pt")}
    report = planned(sweep)
    assert {file: contents()[file] for file in journals} == journals
    assert [counts(row) for row in report["conditions"]] == [(2, 0, 0, 0)] * 2
    numbers = report["forecast"]["most"]
    assert numbers["runs"] == 0 and numbers["wall_s"] == {"low": 0, "median": 0, "high": 0}
    more = planned(tiny(CONDITIONS, seeds=(1, 2, 3, 4)))
    assert more["basis"]["text"] == "4 finished replicates of 2 conditions"
    whole_s = [ReplicateFolder(path.parent, {}).records() for path in Path("runs/replicates").rglob("journal.jsonl")]
    mean_s = sum(journal[-1]["time_ms"] - journal[0]["time_ms"] for journal in whole_s) / 4000
    assert more["forecast"]["most"]["device_hours"]["median"] * 3600 == pytest.approx(4 * mean_s, rel=0.3)


def test_a_store_with_other_sweeps_gets_no_experiment(workplace):
    from mlflow import MlflowClient

    run_quietly(tiny({"a": {}}, name="tiny.other", seeds=(1,)))
    planned(tiny(CONDITIONS))
    client = MlflowClient(tracking_uri=read_settings().tracking_uri)
    assert client.get_experiment_by_name("tiny.other") is not None
    assert client.get_experiment_by_name("tiny.sweep") is None
    assert not Path("runs/replicates/tiny.sweep").exists()


def test_an_added_evaluation_is_all_that_is_left(workplace):
    work_on(tiny({"a": {}}), "a", 1)
    added = (TinyEvaluation(), TinyEvaluation(name="double", factor=2.0))
    report = planned(tiny({"a": {"evaluations": added}}, seeds=(1,)))
    assert report["conditions"][0]["unfinished"] == [{"seed": 1, "step": 4, "num_steps": 4}]
    whole_h = planned(tiny({"a": {}}, seeds=(1, 2)))["forecast"]["most"]["device_hours"]["median"]
    assert report["forecast"]["most"]["device_hours"]["median"] < 0.9 * whole_h


def test_seeds_by_need_are_forecast_from_the_least_to_the_most(workplace):
    sweep = tiny(CONDITIONS, seeds=(1, 2, 3, 4, 5), sequential=Sequential(minimum=3, question="front"))
    work_on(sweep, "a", 1)
    cases = planned(sweep, num_cpus=1)["forecast"]
    assert (cases["least"]["runs"], cases["most"]["runs"]) == (5, 9)
    ratio = cases["most"]["device_hours"]["median"] / cases["least"]["device_hours"]["median"]
    assert ratio == pytest.approx(9 / 5, rel=0.15)


def test_a_search_is_forecast_by_its_number_of_trials(workplace):
    sweep = searched(num_trials=4)
    assert planned(sweep)["forecast"]["most"]["runs"] == 1 + 4 * 2
    run_quietly(searched(num_trials=1))
    report = planned(sweep)
    assert report["forecast"]["most"]["runs"] == 3 * 2
    assert [counts(row) for row in report["conditions"]] == [(2, 0, 0, 0), (0, 0, 0, 6)]
    assert report["forecast"]["most"]["wall_s"]["low"] > 0
    assert "factor of 2" in " ".join(report["notes"])


def test_a_pruned_search_is_forecast_from_one_whole_condition_to_all(workplace):
    """Its x are .695, .163 and .715, and less is worse: the second gets no other seed, and nothing of it is left."""
    sweep = searched(4, objectives=(Objective("cost", "maximize"),), seeds=(1, 2, 3))
    sweep = replace(sweep, search=replace(sweep.search, sampler="random", pruned=True))

    def forecast() -> tuple[int, int]:
        cases = planned(sweep)["forecast"]
        return cases["least"]["runs"], cases["most"]["runs"]

    assert forecast() == (1 + 3 + 3 * 1, 1 + 4 * 3)
    assert "gives a condition its other seeds only if nothing dominates its first" in " ".join(planned(sweep)["notes"])
    run_quietly(replace(sweep, search=replace(sweep.search, num_trials=2)))
    assert [counts(row) for row in planned(sweep)["conditions"]] == [(3, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 6)]
    assert forecast() == (2 * 1, 2 * 3)
    with_more = replace(sweep, seeds=(1, 2, 3, 4), search=replace(sweep.search, num_trials=2))
    assert [counts(row) for row in planned(with_more)["conditions"]] == [(3, 0, 0, 1), (1, 0, 0, 0)]
    assert {case["runs"] for case in planned(with_more)["forecast"].values()} == {1}


def test_of_a_pruned_search_no_seed_is_left_behind_a_failed_first(workplace, monkeypatch):
    def strike(config, epoch):
        raise ZeroDivisionError("ordered")

    sweep = searched(1)
    sweep = replace(sweep, search=replace(sweep.search, pruned=True))
    monkeypatch.setattr("tests.integration.tiny._strike", strike)
    run_quietly(sweep)
    report = planned(sweep)
    assert [counts(row) for row in report["conditions"]] == [(0, 1, 0, 0)]
    assert report["forecast"]["most"]["runs"] == 0


def test_it_refuses_what_a_run_would_refuse(workplace, monkeypatch):
    large = tiny({"a": {}}, resources=Resources(num_workers=0, cpus_per_worker=4))
    with pytest.raises(RefusedError, match="needs 4 CPUs"):
        planned(large)
    assert planned(large, num_cpus=4)["conditions"][0]["cpus"] == 4
    work_on(tiny({"a": {}}), "a", 1)
    monkeypatch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "changed")
    with pytest.raises(RefusedError, match="--accept-code"):
        planned(tiny({"a": {}}))
    assert counts(planned(tiny({"a": {}}), accept_code=True)["conditions"][0]) == (1, 0, 0, 1)


def test_workers_and_gpus_follow_from_what_the_machine_has(workplace):
    sweep = tiny({"a": {}}, resources=Resources(gpus_per_worker="auto"))
    takes = [[planned(sweep, num_gpus=gpus)["conditions"][0][name] for name in ("workers", "gpus")] for gpus in (0, 2)]
    assert takes == [[0, 0.0], [1, 1.0]]


@pytest.mark.parametrize(
    ("num_workers", "each", "why"),
    [
        (0, "trial, 1 CPU", "in the Tune trial itself, because its num_workers is 0"),
        (1, "1 worker, 1 CPU", "in workers that Ray Train starts and joins, because its num_workers is not 0"),
        (2, "2 workers, 2 CPUs", "in workers that Ray Train starts and joins, because its num_workers is not 0"),
    ],
)
def test_a_condition_says_where_it_runs_and_why(workplace, monkeypatch, capsys, num_workers, each, why):
    monkeypatch.setenv("COLUMNS", "200")
    sweep = tiny({"a": {}}, resources=Resources(num_workers=num_workers))
    report = planned(sweep, num_cpus=4)
    assert {row["runs_in"] for row in report["conditions"]} == {
        "Ray Train's workers" if num_workers else "the Tune trial"
    }
    plan._print_table(report)
    text = capsys.readouterr().out
    (row,) = (line for line in text.splitlines() if line.startswith("│ a "))
    assert row.rstrip(" │").endswith(f"│ {each}") and why in text


def test_table_and_csv_tell_the_same(shipped):
    work_on(tiny(CONDITIONS), "a", 1)
    rows = list(csv.DictReader(io.StringIO(call(f"{HERE}.tiny.sweep", "--cpus", "2", "--format", "csv"))))
    assert [(row["kind"], row["name"], row["to_do"]) for row in rows] == [
        ("prerequisite", "first", "0"),
        ("condition", "a", "1"),
        ("condition", "b", "2"),
        ("forecast", "least", ""),
        ("forecast", "most", ""),
    ]
    assert float(rows[-1]["wall_s_low"]) < float(rows[-1]["wall_s_median"]) < float(rows[-1]["wall_s_high"])
    table = call(f"{HERE}.tiny.sweep", "--cpus", "2")
    for said in ("tiny.sweep: conditions", "wall time", "80 % intervals", "1 finished replicate of 1 condition"):
        assert said in table
    assert "money" not in table


@pytest.mark.parametrize(
    ("seeds", "expected", "least"), [("4", (1, 2, 3, 4), None), ("3:5", (1, 2, 3, 4, 5), 3), (None, (1, 2), None)]
)
def test_seeds_are_a_number_or_a_range_by_need(shipped, seeds, expected, least):
    sweep = find(f"{HERE}.tiny.sweep", False, None, seeds)
    assert sweep.seeds == expected
    assert (sweep.sequential.minimum if sweep.sequential else None) == least


def test_seeds_by_need_ask_about_the_reference_where_there_is_one(shipped):
    names = (f"{HERE}.tiny.sweep", f"{HERE}.tiny.reference")
    questions = [find(name, False, None, "3:5").sequential.question for name in names]
    assert questions == ["front", "reference"]


@pytest.mark.parametrize("seeds", ["0", "x", "3:", ":5", "5:3", "2:5", "-1", "3:5:7", "²"])
def test_other_seeds_are_refused(shipped, seeds):
    with pytest.raises(InputError):
        find(f"{HERE}.tiny.sweep", False, None, seeds)


def test_a_plan_of_one_condition_counts_its_replicates_alone(shipped):
    whole, part = (
        json.loads(call(f"{HERE}.tiny.sweep", *chosen, "--format", "json")) for chosen in ([], ["--condition", "b"])
    )
    to_do = [{one["condition"]: one["to_do"] for one in report["conditions"]} for report in (whole, part)]
    assert to_do == [{"a": 2, "b": 2}, {"b": 2}]


@pytest.mark.parametrize(
    ("error", "state"), [("prerequisite first failed: no room", "to do"), ("ZeroDivisionError", "failed")]
)
def test_what_failed_with_its_prerequisite_is_left_as_run_sees_it(workplace, error, state):
    sweep = tiny({"a": {}})
    task = TaskFactory(sweep, read_settings(), 0).replicate(sweep.conditions[0], 1, {})
    known = Replicate("k", "a", 1, "failed", error=error, code_version=task.work.code_version)
    assert _state(task, JournalSummary(), known, 0) == state


def test_what_lacks_an_objective_of_now_fails_as_run_sees_it(workplace):
    sweep = tiny({"a": {}})
    task = TaskFactory(sweep, read_settings(), 0).replicate(sweep.conditions[0], 1, {})
    metrics = dict.fromkeys(task.work.objectives, 1.0)
    known = Replicate("k", "a", 1, "complete", metrics, evaluations=task.evaluations, code_version="1")
    assert _state(task, JournalSummary(), known, 0) == "complete"
    lacks = replace(known, metrics={}, code_version=task.work.code_version)
    assert _state(task, JournalSummary(), lacks, 0) == "failed"


@pytest.mark.parametrize(
    ("number", "value", "text"),
    [
        ("disk_bytes", 999_999, "1 MB"),
        ("disk_bytes", 2_345, "2.35 kB"),
        ("disk_bytes", 12, "0.012 kB"),
        ("disk_bytes", 3e15, "3,000 TB"),
        ("device_hours", 1234.4, "1,234"),
        ("device_hours", 999.6, "1,000"),
        ("kwh", 12_345.0, "12,345 kWh"),
        ("money", 0.5, "0.5"),
    ],
)
def test_numbers_of_a_plan_are_written_out(number, value, text):
    assert plan._with_unit(number, value) == text
