"""A tracking store that goes away, and files that are damaged: nothing is lost, nothing is done twice."""

import errno
import signal
import threading
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import read_settings
from orchestrator.journal.bucket import UnavailableError
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.scheduler import scheduler
from orchestrator.scheduler.stop_request import StoppedError
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.write_queue import WriteQueue
from search_spaces.sweep import Objective
from tests.integration.sweeps import run_quietly, searched, tiny
from tests.integration.test_without_ray import starts, statuses
from tests.waiting import LIMIT_S, until
from trainables.errors import InputError
from trainables.metric import Best

SWEEP = {"a": {}, "b": {"x": 0.25}}


@pytest.mark.parametrize(
    "call", ["open_experiment", "remove_orphans", "read_study", "unfinished_conditions", "deleted_replicates"]
)
def test_a_store_that_goes_away_before_anything_has_begun_is_told_in_one_line(workplace, monkeypatch, call):
    def fails(*_):
        raise ConnectionError("[Errno 111] Connection refused")

    monkeypatch.setattr(Tracking, call, fails)
    with pytest.raises(InputError, match=r"^The tracking store .* cannot be used: Connection refused$"):
        run_quietly(tiny(SWEEP))
    assert not list(Path("runs").rglob("journal.jsonl"))
    monkeypatch.undo()


def machine_is_at_fault(work, send):
    send({"kind": "state", "state": "failed", "attempt": work.attempt, "time_ms": 1, "error": "no mount."}
         | {"is_input_error": True, "is_machine_fault": True})  # fmt: skip


def test_a_machine_that_cannot_do_the_work_stops_the_sweep_and_fails_nothing_for_good(workplace, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.worker.execute.execute", machine_is_at_fault)
        with pytest.raises(StoppedError, match=r"^no mount\.$"):
            run_quietly(tiny(SWEEP))
    assert "RUNNING" not in statuses("tiny.sweep").values()
    assert {r.state for r in run_quietly(tiny(SWEEP)).replicates} == {"complete"}


@pytest.fixture
def bucket_fails(monkeypatch):
    """A function of the scheduler that looks into a bucket fails as often as the list has entries, where `is_asked`."""
    failures: list[int] = []

    def fail(module, name, is_asked):
        real = getattr(module, name)

        def failing(asked):
            if failures and is_asked(asked):
                failures.pop()
                raise UnavailableError("s3://bucket cannot be reached")
            return real(asked)

        monkeypatch.setattr(module, name, failing)
        return failures

    return fail


def test_a_bucket_that_is_away_before_a_prerequisite_is_waited_for(workplace, bucket_fails):
    failures = bucket_fails(scheduler, "folder_of", lambda task: task.condition is None)
    failures.extend(range(3))
    assert {r.state for r in run_quietly(tiny(SWEEP)).replicates} == {"complete"}
    assert not failures


def test_a_bucket_that_is_away_between_two_drawn_conditions_loses_none(workplace, bucket_fails):
    begun: list[int] = []
    failures = bucket_fails(scheduler, "journals", lambda tasks: begun.append(1) or len(begun) > 4)
    failures.extend(range(2))
    outcome = run_quietly(searched(4, seeds=(1,)))
    assert not failures and [r.state for r in outcome.replicates] == ["complete"] * 4


def test_a_stop_does_not_wait_for_a_bucket_that_is_away(workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_STORAGE", "memory://stop/runs")
    asked: list[str] = []
    waited_s: list[float] = []

    def away(*arguments, **_):
        asked.append(str(arguments[1]))
        raise ConnectionResetError("gone")

    def stopped(work, send):
        for name in ("find", "cat_file", "cat", "get_file"):
            monkeypatch.setattr(MemoryFileSystem, name, away)
        clock = SimpleNamespace(monotonic=lambda: sum(waited_s), sleep=waited_s.append)
        monkeypatch.setattr("orchestrator.journal.bucket.time", clock)
        raise KeyboardInterrupt

    monkeypatch.setattr("orchestrator.worker.execute.execute", stopped)
    monkeypatch.setattr("orchestrator.run.WRITE_AT_STOP_S", 1.0)
    with pytest.raises(KeyboardInterrupt):
        run_quietly(tiny(SWEEP))
    assert asked and sum(waited_s) < 60  # two minutes are what a driver under way would wait


@pytest.mark.slow
def test_a_write_that_outlasts_its_driver_changes_nothing_of_the_next(workplace, monkeypatch):
    """As in a notebook, which lives on while a thread still waits for an answer of the bucket."""
    is_answered, waited = threading.Event(), []
    do, drain = WriteQueue._do_or_drop, WriteQueue.drain

    def late(queue, job):
        if "Recorder.close" in repr(job) and not waited:  # what stops the runs that are left
            waited.append(threading.current_thread())
            is_answered.wait(LIMIT_S)
        do(queue, job)

    def interrupt(config, epoch):
        if epoch == 3 and not waited:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(WriteQueue, "_do_or_drop", late)
    monkeypatch.setattr("tests.integration.tiny._strike", interrupt)
    monkeypatch.setattr(WriteQueue, "drain", lambda queue, limit_s: until(lambda: waited) or drain(queue, limit_s))
    monkeypatch.setattr("orchestrator.run.WRITE_AT_STOP_S", 0.5)
    with pytest.raises(KeyboardInterrupt):
        run_quietly(tiny(SWEEP))
    assert run_quietly(tiny(SWEEP)).num_failed == 0
    assert waited[0].is_alive()
    is_answered.set()
    waited[0].join()
    assert set(statuses("tiny.sweep").values()) == {"FINISHED"}


def test_a_product_that_was_damaged_is_made_again_before_it_is_used(workplace):
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    (product,) = Path("runs/prerequisites").rglob("step_*.pt")
    content = product.read_bytes()
    product.write_bytes(b"garbage")
    run_quietly(tiny(SWEEP, seeds=(1,)))
    assert product.read_bytes() == content
    assert sorted(starts().values()) == [1, 1, 2]


def test_an_evaluation_added_where_the_best_checkpoint_is_damaged_trains_again_to_the_same_digits(workplace):
    from tests.integration.tiny import TinyEvaluation

    added = {"evaluations": (TinyEvaluation(), TinyEvaluation(name="double", factor=2.0))}
    whole = run_quietly(tiny({"a": added}, name="tiny.whole", seeds=(1,)))
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    for checkpoint in Path("runs/replicates/tiny.sweep").rglob("step_*.pt"):
        checkpoint.write_bytes(b"garbage")
    outcome = run_quietly(tiny({"a": added}, seeds=(1,)))
    wanted = whole.replicates[0].metrics
    found = outcome.replicates[0].metrics
    assert {name: found[name] for name in ("error@plain", "error@double", "total")} == {
        name: wanted[name] for name in ("error@plain", "error@double", "total")
    }


@pytest.fixture
def best_is_first(monkeypatch) -> None:
    """Of the tiny trainable the checkpoint with the highest error is wanted, which is that of step 1."""

    def selection(config):
        return {one.name: Best(f"valid_error@{one.name}", "maximize") for one in config.evaluations}

    monkeypatch.setattr("tests.integration.tiny.selection", selection)
    monkeypatch.setattr("orchestrator.scheduler.scheduler.WAITS_S", (0.0,))


def kept() -> list[str]:
    return sorted(path.name for path in Path("runs/replicates/tiny.sweep").rglob("step_*.pt"))


def test_the_best_checkpoint_is_made_again_where_it_is_damaged_in_the_session_that_made_it(
    workplace, monkeypatch, best_is_first
):
    """No other is tested in its place."""
    whole = run_quietly(tiny({"a": {}}, name="tiny.whole", seeds=(1,))).replicates[0]
    assert whole.metrics["checkpoint_step@plain"] == 1
    struck = []

    def strike(config, epoch):
        if epoch == 4 and not struck:
            (first,) = Path("runs/replicates/tiny.sweep").rglob("step_000001.*")
            struck.append(first.write_bytes(b"garbage"))

    monkeypatch.setattr("tests.integration.tiny._strike", strike)
    found = run_quietly(tiny({"a": {}}, seeds=(1,))).replicates[0]
    assert struck and (found.state, dict(found.metrics)) == ("complete", dict(whole.metrics))
    assert [name.partition(".")[0] for name in kept()] == ["step_000001"]


def test_an_evaluation_of_another_name_tests_what_was_kept_and_loses_none_of_it(workplace, best_is_first):
    """Nothing says which checkpoint is the best by it; the one of the earlier name is there, and stays."""
    from tests.integration.tiny import TinyEvaluation

    first = run_quietly(tiny({"a": {}}, seeds=(1,))).replicates[0]
    files = kept()
    renamed = tiny({"a": {"evaluations": (TinyEvaluation(name="renamed"),)}}, seeds=(1,))
    found = run_quietly(renamed).replicates[0].metrics
    assert (found["error@renamed"], found["checkpoint_step@renamed"]) == (first.metrics["error@plain"], 1)
    assert kept() == files
    (journal,) = Path("runs/replicates/tiny.sweep").rglob("journal.jsonl")
    assert f'"products": {{"plain": "{files[0]}"}}' in journal.read_text().splitlines()[-1]


def test_a_disk_that_does_not_answer_as_a_replicate_ends_leaves_none_without_numbers(workplace, monkeypatch):
    opened, struck = Path.open, []

    def strike(path, mode="r", *others, **named):
        if path.name == "journal.jsonl" and not struck and threading.current_thread().name == "tracking":
            with opened(path) as journal:
                struck.extend([path] if '"complete"' in journal.read() else [])
            if struck:
                raise OSError(errno.EIO, "Input/output error")
        return opened(path, mode, *others, **named)

    monkeypatch.setattr(Path, "open", strike)
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.01,))
    outcome = run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert struck and outcome.num_unwritten == 0
    client = Tracking(read_settings())._client
    experiment = client.get_experiment_by_name("tiny.sweep")
    (run,) = client.search_runs([experiment.experiment_id], "tags.`ponderay.kind` = 'replicate'")
    assert (run.info.status, len(client.get_metric_history(run.info.run_id, "total"))) == ("FINISHED", 4)


def test_a_run_that_is_deleted_by_hand_at_its_end_is_made_again_by_the_next_driver(workplace, monkeypatch):
    """Its condition does not say meanwhile that it is complete."""
    finish, open_run, deleted, struck = Tracking.finish, Tracking.open_run, set(), []

    def remember(self, experiment, kind, key, name, *others):
        run_id = open_run(self, experiment, kind, key, name, *others)
        deleted.update([run_id] if name == "b seed 1" else [])
        return run_id

    def refuse(self, run_id, state, *others):
        if run_id in deleted and state == "complete":
            struck.append(run_id)
            raise MlflowException("The run is deleted.", error_code=INVALID_PARAMETER_VALUE)
        return finish(self, run_id, state, *others)

    with monkeypatch.context() as patch:
        patch.setattr(Tracking, "open_run", remember)
        patch.setattr(Tracking, "finish", refuse)
        with pytest.raises(InputError, match="refuses a write: The run is deleted"):
            run_quietly(tiny(SWEEP, seeds=(1,)))
    assert len(struck) >= 2
    found = {one.condition: one.state for one in Tracking(read_settings()).read_study("tiny.sweep").replicates}
    assert found["a"] == "complete" and found.get("b") != "complete"
    outcome = run_quietly(tiny(SWEEP, seeds=(1,)))
    assert (outcome.num_failed, outcome.num_unwritten) == (0, 0)
    assert statuses("tiny.sweep") == dict.fromkeys(["a", "b", "a seed 1", "b seed 1"], "FINISHED")
    assert set(starts().values()) == {1}


def test_a_refused_sweep_leaves_what_is_recorded_of_the_one_before(workplace):
    tracking = Tracking(read_settings())
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    before = tracking._client.get_experiment_by_name("tiny.sweep").tags
    other = tiny({"a": {"x": 0.25}}, seeds=(1,), objectives=(Objective("cost", "maximize"),))
    with pytest.raises(RefusedError):
        run_quietly(other)
    assert tracking._client.get_experiment_by_name("tiny.sweep").tags == before


def test_a_run_of_the_users_own_in_the_experiment_stays(workplace):
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    client = Tracking(read_settings())._client
    own = client.create_run(client.get_experiment_by_name("tiny.sweep").experiment_id, run_name="my notes")
    run_quietly(tiny(SWEEP, seeds=(1,)))
    assert client.get_run(own.info.run_id).info.lifecycle_stage == "active"


def test_a_complete_replicate_whose_added_evaluation_is_interrupted_stays_complete(workplace, monkeypatch):
    from tests.integration.tiny import TinyEvaluation

    added = {"evaluations": (TinyEvaluation(), TinyEvaluation(name="double", factor=2.0))}
    before = run_quietly(tiny({"a": {}})).replicates

    def interrupt(*_):
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr("tests.integration.tiny.evaluate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_quietly(tiny({"a": added}))
    found = Tracking(read_settings()).read_study("tiny.sweep").replicates
    assert [(one.state, dict(one.metrics)) for one in found] == [(one.state, dict(one.metrics)) for one in before]
    assert len(run_quietly(tiny({"a": added})).replicates[0].evaluations) == 2


def test_a_disk_that_does_not_answer_at_a_restart_costs_no_checkpoint(workplace, monkeypatch, best_is_first):
    """The worker is lost and tried again: of a journal that it cannot read it does not hold that nothing is in it."""
    opened, struck = Path.open, []
    removed = ReplicateFolder.remove_behind

    def strike_once(config, epoch):
        if epoch == 4 and not struck:
            struck.append("full")
            raise OSError(errno.ENOSPC, "No space left on device")

    def strike(path, *others, **named):
        is_journal = path.name == "journal.jsonl"
        if is_journal and struck == ["full"] and any(frame.name == "whole" for frame in traceback.extract_stack()):
            struck.append("silent")
            raise OSError(errno.EIO, "Input/output error")
        return opened(path, *others, **named)

    behind = []
    monkeypatch.setattr(ReplicateFolder, "remove_behind", lambda f, kept: behind.append(kept) or removed(f, kept))
    monkeypatch.setattr("tests.integration.tiny._strike", strike_once)
    monkeypatch.setattr(Path, "open", strike)
    outcome = run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert struck == ["full", "silent"] and outcome.num_failed == 0
    assert [one and one.name.partition(".")[0] for one in behind] == [None, "step_000003"]


def test_only_the_best_checkpoint_is_kept_of_a_complete_replicate_unless_told_otherwise(workplace):
    run_quietly(tiny({"a": {}}, seeds=(1,)))
    assert len(list(Path("runs/replicates/tiny.sweep").rglob("step_*.pt"))) == 1
    run_quietly(tiny({"a": {}}, name="tiny.kept", seeds=(1,), keep_last=True))
    assert len(list(Path("runs/replicates/tiny.kept").rglob("step_*.pt"))) == 2
