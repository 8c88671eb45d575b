"""The same promises under Ray: in the trial, in one Train worker, in two; faults of processes; Optuna."""

import contextlib
import io
import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import ray
from rich.console import Console

from orchestrator import run as runs
from orchestrator.cluster import ray_internals
from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.run import run
from orchestrator.scheduler.stop_request import StoppedError
from orchestrator.tracking import load
from orchestrator.tracking.client import Tracking
from search_spaces.distributions import Real
from search_spaces.halving import Halving
from search_spaces.resources import Resources
from search_spaces.sweep import Condition, Objective, Search, Sweep
from tests.integration.sweeps import IN_TRIAL, run_quietly, tiny
from tests.integration.test_damaged_journals import stop_in_the_last_step
from tests.integration.test_without_ray import starts, statuses
from tests.integration.tiny import TinyConfig
from tests.orchestrator.worker.leaking import Leaking
from tests.orchestrator.worker.test_unreadable import replace as replace_content
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ray_instance", "workplace")]


def run_with_ray(sweep, accept_code=False):
    return run(sweep, read_settings(), Console(quiet=True), None, accept_code)


def by_condition(outcome):
    return {(r.condition, r.seed): (r.state, dict(r.metrics)) for r in outcome.replicates}


def test_a_replicate_has_the_digits_of_a_run_without_ray_and_as_many_threads_as_cpus(monkeypatch):
    monkeypatch.setattr(runs, "DRAW_AFTER_S", 0.0)  # as if it had taken longer, so the front is drawn at its end
    conditions = (
        Condition("on one CPU", {"first.level": 0.5}),
        Condition("on two", {"first.level": 0.625}, Resources(num_workers=0, cpus_per_worker=2)),
    )
    sweep = tiny(conditions, seeds=(1,))
    outcome = run_with_ray(sweep)
    with monkeypatch.context() as patched:  # the note that spares the next start MLflow is as new as the front
        patched.setattr(load, "_asked", lambda *_: pytest.fail("MLflow was asked"))
        assert load.num_mirrored("tiny.sweep", read_settings()) == 2
    alone = run_quietly(tiny(conditions, seeds=(1,), name="tiny.alone"))
    assert by_condition(outcome) == by_condition(alone)
    assert {r.state for r in outcome.replicates} == {"complete"}
    assert set(statuses("tiny.sweep").values()) == {"FINISHED"}
    stored = {file.path for file in Tracking(read_settings()).runs("tiny.sweep").files_of("figures")}
    assert stored == {f"figures/tiny.sweep.front.{ending}" for ending in ("html", "png", "json")}
    run_with_ray(sweep)
    assert set(starts().values()) == {1}
    assert sorted(record["threads"] for record in started_records("tiny.sweep")) == [1, 2]


def started_records(sweep):
    journals = Path("runs/replicates", sweep).rglob("journal.jsonl")
    records = [json.loads(line) for journal in journals for line in journal.open()]
    return [record for record in records if record["kind"] == "started"]


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.long)])
def test_what_a_search_stops_by_its_curve_is_ended_in_trial_and_workers_and_stays_so(num_workers):
    """One after the other, so that the decisions are those of a run without Ray, which ends nothing from outside."""
    search = Search({"x": Real(0.1, 1.0)}, 3, "random", halving=Halving("valid_error@plain", first=1, factor=2))
    resources = Resources(num_workers=num_workers, cpus_per_worker=1 if num_workers else 2)
    sweep = tiny((), search=search, seeds=(1,), base=TinyConfig(num_epochs=6, sleep_s=3.0), resources=resources)
    outcome = run_with_ray(sweep)
    alone = run_quietly(replace(sweep, name="tiny.alone", base=TinyConfig(num_epochs=6), resources=IN_TRIAL))
    decided = {r.condition: (r.state, r.error) for r in outcome.replicates}
    assert decided == {r.condition: (r.state, r.error) for r in alone.replicates}
    assert {state for state, _ in decided.values()} == {"complete", "pruned"} and outcome.num_failed == 0
    for one in outcome.replicates:
        journal = Path("runs/replicates/tiny.sweep", one.key, "journal.jsonl")
        kinds = [json.loads(line)["kind"] for line in journal.open()]
        assert one.state == "pruned" or kinds.count("metrics") == 6  # a busy machine ends it late
        assert kinds.count("started") == 1
    num_pruned = [state for state, _ in decided.values()].count("pruned")
    assert list(statuses("tiny.sweep").values()).count("KILLED") == 2 * num_pruned  # replicates and conditions
    before = starts()
    assert run_with_ray(sweep).num_failed == 0 and starts() == before


def test_faults_fail_their_replicate_only_and_a_killed_or_hanging_one_is_tried_again():
    """The one that raises does so in one of two Train workers, and the other ends with it."""
    files = {name: Path(name).absolute() for name in ("killed", "hung")}
    conditions = (
        Condition("nan", {"nan_at": 3}),
        Condition("raises", {"raise_at": 2}, Resources(num_workers=2)),
        Condition("killed", {"kill_at": 3, "fault_file": files["killed"]}),
        Condition("hangs", {"hang_at": 3, "fault_file": files["hung"]}, Resources(num_workers=0, report_timeout_s=2.0)),
        Condition("good", {}),
    )
    log = io.StringIO()
    sweep = tiny(conditions, seeds=(1,))
    outcome = run(sweep, read_settings(), Console(file=log, width=1000), None, accept_code=False)
    assert {r.condition: (r.state, r.error) for r in outcome.replicates} == {
        "nan": ("failed", "DivergedError: The loss is nan at epoch 3, batch 1."),
        "raises": ("failed", "ZeroDivisionError: ordered"),
        "killed": ("complete", ""),
        "hangs": ("complete", ""),
        "good": ("complete", ""),
    }
    assert all(file.exists() for file in files.values())
    _, said, where = log.getvalue().partition("it reported nothing for 2 s, so Ponderay ended its process")
    assert said and "tiny.py" in where
    metrics = {r.condition: dict(r.metrics) for r in outcome.replicates}
    recorded = Tracking(read_settings()).read_study("tiny.sweep").replicates
    assert {r.condition: dict(r.metrics) for r in recorded} == metrics
    undisturbed = {"killed": {"kill_at": 3}, "hangs": {"hang_at": 3}}
    alone = run_quietly(tiny(undisturbed, name="tiny.alone", seeds=(1,)))
    assert {name: metrics[name] for name in undisturbed} == {r.condition: dict(r.metrics) for r in alone.replicates}
    for journal in Path("runs").rglob("journal.jsonl"):
        steps = [record["step"] for record in map(json.loads, journal.open()) if record["kind"] == "metrics"]
        assert steps == sorted(set(steps))
    assert "RUNNING" not in statuses("tiny.sweep").values()


def test_a_sweep_stops_in_order_at_its_limit_and_goes_on_from_there():
    sweep = tiny(
        {"a": {"sleep_s": 4.0}, "b": {"x": 0.25, "sleep_s": 4.0}}
    )  # some have started at the limit, none has ended
    with pytest.raises(StoppedError, match=r"at the limit of 0\.009 device hours"):
        run(sweep, read_settings(), Console(quiet=True), None, accept_code=False, max_device_hours=0.009)
    assert {group["state"] for group in ray.util.placement_group_table().values()} <= {"REMOVED"}
    assert "RUNNING" not in statuses("tiny.sweep").values()
    found = {
        r.state for r in Tracking(read_settings()).read_study("tiny.sweep").replicates
    }  # of those that had started
    assert found <= {"stopped", "complete"}
    outcome = run_with_ray(tiny({"a": {}, "b": {"x": 0.25}}))  # how long a step takes makes no other replicate
    assert {r.state for r in outcome.replicates} == {"complete"}
    alone = run_quietly(tiny({"a": {}, "b": {"x": 0.25}}, name="tiny.alone"))
    recorded = Tracking(read_settings()).read_study("tiny.sweep").replicates
    of_each = [{(r.condition, r.seed): dict(r.metrics) for r in some} for some in (recorded, alone.replicates)]
    assert of_each[0] == of_each[1]


def test_two_train_workers_go_back_behind_a_broken_checkpoint_and_come_again_where_their_trial_is_killed(monkeypatch):
    """They hold all CPUs, so that they come again only if what the killed trial had reserved is given back."""
    whole = run_quietly(tiny({"a": {}}, name="tiny.whole", seeds=(1,)))
    stop_in_the_last_step(monkeypatch, {"a": {}})
    (newest,) = Path("runs/replicates/tiny.sweep").rglob("step_000003.*")
    replace_content(newest, b"garbage of no format")
    go = Path("go").absolute()
    log, sweep = io.StringIO(), tiny((Condition("a", {"go": go}, Resources(num_workers=2)),), seeds=(1,))
    killer = threading.Thread(target=kill_the_trial, args=(log, go), daemon=True)
    killer.start()
    outcome = run(sweep, read_settings(), Console(file=log, width=1000), None, accept_code=False)
    killer.join()
    assert "lost its worker in try 1" in log.getvalue() and records_of_a("started")[-1]["attempt"].endswith(".2")
    assert [(r.state, dict(r.metrics)) for r in outcome.replicates] == [("complete", dict(whole.replicates[0].metrics))]
    assert log.getvalue().count("and training goes on after step 2.") == 1
    assert list(Path("runs/replicates/tiny.sweep").rglob("unreadable.step_000003.*"))
    assert {record["threads"] for record in started_records("tiny.sweep")} == {1}


def records_of_a(kind):
    journals = [journal.read_text() for journal in Path("runs/replicates/tiny.sweep").rglob("journal.jsonl")]
    (of_a,) = (text for text in journals if '"condition": "a"' in text)
    return [record for record in map(json.loads, of_a.splitlines()) if record["kind"] == kind]


def kill_the_trial(log, go):
    """The process that drives the workers, once it has said what they go on from; Ray tells each its raylet.

    Their last step waits for `go`, which is made once they have come again.
    """
    until(lambda: "training goes on after step 2." in log.getvalue())
    mark = f"{ray_internals.RAYLET_VARIABLE}={ray_internals.started_processes()['raylet']}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            is_trial = (process / "cmdline").read_bytes().startswith(b"ray::ImplicitFunc")
            if is_trial and mark in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
    until(lambda: records_of_a("started")[-1]["attempt"].endswith(".2"))
    go.touch()


def test_what_can_never_fit_is_refused_before_it_starts():
    with pytest.raises(RefusedError, match="needs 16 CPUs"):
        run_with_ray(tiny((Condition("huge", {}, Resources(num_workers=16)),)))


@pytest.mark.long  # in a template without Ray in tests/orchestrator/worker/test_template.py
def test_a_replicate_has_the_digits_it_has_alone_behind_those_that_change_their_process():
    """All run one after another in one trial's process, which Tune keeps."""

    def metrics_of_last(name: str, *changes: str) -> dict[str, float]:
        sweep = Sweep(
            name=name,
            description="For tests.",
            trainable="tests.orchestrator.worker.leaking",
            base=Leaking(),
            objectives=(Objective("loss"), Objective("seen_bits")),
            conditions=tuple(Condition(change or "plain", {"changes": change}) for change in changes),
            seeds=(1,),
            resources=Resources(num_workers=0, cpus_per_worker=2),
        )
        replicates = run_with_ray(sweep).replicates
        assert [replicate.state for replicate in replicates] == ["complete"] * len(changes)
        return dict(replicates[-1].metrics)

    changed = metrics_of_last("leaks.after", "default dtype", "deterministic algorithms", "environment", "patches", "")
    assert changed == metrics_of_last("leaks.alone", "")
