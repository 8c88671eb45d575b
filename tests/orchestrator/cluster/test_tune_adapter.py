"""Which line of Ray's long story about a lost worker is shown, and that its own end is told in a sentence."""

import contextlib
import errno
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray.tune import RunConfig, TuneError

from orchestrator.cluster.tune_adapter import SchedulerSearcher, cause_of, run_by_tune, telling_what_stops_it
from orchestrator.scheduler.stop_request import StoppedError

DIED = """The actor died unexpectedly before finishing this task.
\tclass_name: ImplicitFunc
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker
unexpectedly exits with a connection error code 2."""


def test_the_exit_of_a_worker_that_died_and_the_last_line_of_an_exception():
    assert cause_of(DIED).startswith("The actor is dead because its worker process has died.")
    assert cause_of("Traceback\n  File x\nOSError: [Errno 28] No space left on device\n") == (
        "OSError: [Errno 28] No space left on device"
    )
    assert cause_of("Task was killed due to the node running low on memory.\nmore") == (
        "Task was killed due to the node running low on memory."
    )
    assert cause_of("") == ""
    assert cause_of("OSError: no answer of postgresql://me:hunter2secret@db/x") == (
        "OSError: no answer of postgresql://me:***@db/x"
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOENT, "No such file or directory", "/tmp/ray/x"), "No such file or directory: '/tmp/ray/x'."),
        (TuneError("Traceback\n  File x\nOSError: [Errno 28] No space left on device\n"), "No space left on device."),
    ],
)
def test_what_ends_ray_itself_stops_the_sweep_with_a_sentence(error, told):
    with pytest.raises(StoppedError) as stopped, telling_what_stops_it():
        raise error
    assert str(stopped.value).startswith("The sweep cannot go on here: ") and str(stopped.value).endswith(told)


def test_the_folder_for_runs_is_made_where_it_is_not_there(tmp_path, monkeypatch):
    """Beside a tracking server nothing is written there before Ray starts."""
    runs, seen = tmp_path / "new" / "runs", []

    def tuner(*_: object, run_config: RunConfig, **__: object) -> SimpleNamespace:
        return SimpleNamespace(fit=lambda: seen.append(Path(run_config.storage_path)))

    monkeypatch.setattr("orchestrator.cluster.tune_adapter.removing_leftovers", contextlib.nullcontext)
    monkeypatch.setattr("orchestrator.cluster.tune_adapter.tune.Tuner", tuner)
    watch = SimpleNamespace(is_gone=lambda: False, is_answering=lambda: True, cause=str)
    run_by_tune(SimpleNamespace(tasks=()), runs, watch)
    assert [path.parent for path in seen] == [runs] and not list(runs.iterdir())


def test_folders_of_killed_drivers_of_this_machine_are_removed_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr("orchestrator.cluster.tune_adapter.removing_leftovers", contextlib.nullcontext)
    monkeypatch.setattr(
        "orchestrator.cluster.tune_adapter.tune.Tuner", lambda *_, **__: SimpleNamespace(fit=lambda: None)
    )
    watch = SimpleNamespace(is_gone=lambda: False, is_answering=lambda: True, cause=str)

    def left() -> list[str]:
        run_by_tune(SimpleNamespace(tasks=()), tmp_path, watch)
        return sorted(path.name for path in tmp_path.iterdir())

    for name in ("tune-alive", "tune-elsewhere", "tune-of-an-earlier-version"):
        (tmp_path / name / "sweep").mkdir(parents=True)
    (tmp_path / "tune-elsewhere/in_use").write_text("process 7 on elsewhere\n1\nspace")
    hold = (
        "import sys, time, pathlib; from orchestrator.machine.process_lock import Lease; "
        "lease = Lease(pathlib.Path(sys.argv[1])); print(lease.acquire(), flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", hold, str(tmp_path / "tune-alive/in_use")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:  # noqa: S603
        assert driver.stdout.readline() == "True\n"
        assert left() == ["tune-alive", "tune-elsewhere", "tune-of-an-earlier-version"]
        driver.kill()
    assert left() == ["tune-elsewhere", "tune-of-an-earlier-version"]


def test_what_is_a_fault_of_the_program_is_not_hidden():
    with pytest.raises(ZeroDivisionError), telling_what_stops_it():
        raise ZeroDivisionError


def test_a_trials_last_records_which_tune_passes_on_twice_count_once_and_how_it_was_lost():
    reported, ended = [], []
    work = SimpleNamespace(key="k", model_dump_json=lambda: "{}")
    scheduler = SimpleNamespace(
        next=lambda: work,
        reported=lambda key, record: reported.append((key, record["step"])),
        ended=lambda key, lost: ended.append((key, lost)),
    )
    searcher = SchedulerSearcher(scheduler, bool)
    for trial in ("a", "b"):
        searcher.suggest(trial)
    searcher.on_trial_result("a", {"records": '[{"step": 1}]', "training_iteration": 1})
    searcher.on_trial_result("a", {"records": '[{"step": 2}]', "training_iteration": 2})
    searcher.on_trial_complete("a", {"records": '[{"step": 2}]', "training_iteration": 2})
    searcher.on_trial_complete("b", {"records": '[{"step": 9}]', "training_iteration": 1, "lost": "SIGKILL"})
    assert reported == [("k", 1), ("k", 2), ("k", 9)]
    assert ended == [("k", ""), ("k", "its worker was lost: SIGKILL")]
