"""What is learnt of a process that hangs, before it is ended."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.machine.processes import start_time
from orchestrator.scheduler import watchdog
from orchestrator.scheduler.task import Task, unwritten
from orchestrator.scheduler.watchdog import Watchdog, end_process, where_it_hung
from tests.waiting import LIMIT_S, until

ROOT = Path(__file__).parents[3]
HANGS = """
import faulthandler, signal, sys, time
file = open(sys.argv[1], "w")
faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)
print("ready", flush=True) or time.sleep(60)  # one line: it may be struck right after it has said so
"""
SLOW = """
import signal, sys, time
def say(*_):
    with open(sys.argv[1], "w", buffering=1) as file:
        print("Thread 2:\\n  File \\"/venv/site-packages/ray/client.py\\", line 3 in listen", file=file)
        time.sleep(1.5)
        print("Thread 1:\\n  File \\"/home/me/model.py\\", line 12 in train", file=file)
        print("  File \\"/venv/orchestrator/worker/execute.py\\", line 9 in execute", file=file)
signal.signal(signal.SIGUSR1, say)
print("ready", flush=True) or time.sleep(60)
time.sleep(60)
"""


def test_a_process_that_is_ended_says_where_it_hung(tmp_path):
    program, said = tmp_path / "hangs.py", tmp_path / "threads.txt"
    program.write_text(HANGS)
    process = subprocess.Popen([sys.executable, str(program), str(said)], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout.readline() == "ready\n"
    started = {"pid": process.pid, "process_started": start_time(process.pid), "hung_file": str(said)}
    assert f'(File "{program}", line 5 in <module>)' in where_it_hung(end_process(started))
    assert process.wait(LIMIT_S) == -9
    assert end_process(started) == ""


def test_a_process_that_is_slow_to_say_where_it_hangs_is_heard_to_the_line_of_its_own_work(tmp_path):
    program, said = tmp_path / "hangs.py", tmp_path / "threads.txt"
    program.write_text(SLOW)
    process = subprocess.Popen([sys.executable, str(program), str(said)], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout.readline() == "ready\n"
    started = {"pid": process.pid, "process_started": start_time(process.pid), "hung_file": str(said)}
    assert where_it_hung(end_process(started)) == ' (File "/home/me/model.py", line 12 in train)'
    assert process.wait(LIMIT_S) == -9


def test_of_a_process_that_said_nothing_nothing_is_made_up():
    assert where_it_hung("") == ""
    own = f'  File "{ROOT}/orchestrator/worker/execute.py", line 1 in execute'
    assert where_it_hung(f"Thread 1:\n{own}\n") == ""


def test_a_users_own_folder_called_orchestrator_is_shown_and_our_package_is_not_on_any_machine():
    users = '  File "/home/me/orchestrator/model.py", line 12 in train'
    for package in (f"{ROOT}/orchestrator", "/opt/node/orchestrator"):
        ours = [f'  File "{package}/{name}", line 3 in f' for name in ("worker/trainable.py", "worker/execute.py")]
        assert where_it_hung("\n".join(["Thread 1:", users, *ours])) == f" ({users.strip()})"
        assert where_it_hung("\n".join(["Thread 1:", *ours])) == ""


def test_an_end_that_is_heard_of_before_it_is_known_where_the_process_hung_waits_for_that(monkeypatch):
    monkeypatch.setattr(watchdog, "LOOK_S", 0.01)
    task = Task(SimpleNamespace(resources=SimpleNamespace(report_timeout_s=0.0), shared="", attempt="1"), None, 1, "")
    task.state, task.running_s = "live", 1.0
    scheduler = SimpleNamespace(device_s=lambda: 0.0, tasks=SimpleNamespace(live={"k": task}), too_large=lambda: None)
    errors, first = [], threading.Event()

    def end(_) -> str:
        """The process is dead at once; its driver's other thread hears of it before this one knows where it hung."""
        if not first.is_set():
            first.set()
            threading.Thread(target=lambda: errors.append(unwritten(task, "lost")["error"])).start()
            time.sleep(0.3)
        return 'Thread 1:\n  File "/home/me/model.py", line 12 in train\n'

    with Watchdog(scheduler, end, float("inf"), print, str):
        until(lambda: errors)
    assert errors == [
        'it reported nothing for 0 s, so Ponderay ended its process (File "/home/me/model.py", line 12 in train)'
    ]


def test_work_that_finds_no_place_is_told_once(monkeypatch):
    monkeypatch.setattr(watchdog, "LOOK_S", 0.01)
    resources = SimpleNamespace(report_timeout_s=1.0)
    work = SimpleNamespace(key="0123", attempt="driver.1", label="a seed 1", shared="", resources=resources)
    placed = SimpleNamespace(
        work=SimpleNamespace(**vars(work) | {"key": "4567"}), heard_s=0.0, running_s=0.0, pruned_because=""
    )
    waits = SimpleNamespace(
        work=work, heard_s=time.monotonic() - watchdog.PLACE_S - 1, running_s=0.0, pruned_because=""
    )
    placed.heard_s = time.monotonic()
    early = SimpleNamespace(
        work=SimpleNamespace(**vars(work) | {"key": "89ab", "label": "early"}), heard_s=0.0, pruned_because=""
    )
    early.running_s = 0.0
    scheduler = SimpleNamespace(
        hear=lambda task: None,
        is_early=lambda task: task is early,
        tasks=SimpleNamespace(live={"0123": waits, "4567": placed, "89ab": early}),
    )
    told: list[str] = []
    looks, rooms = iter(range(1, 20)), []
    all_seen = threading.Event()
    scheduler.device_s = lambda: next(looks, None) or all_seen.set() or 0.0

    def room() -> str:  # the cluster is away at first, and then that is the cause
        rooms.append("" if len(rooms) < 5 else "the cluster has 1 node with 2 CPUs in all")
        return rooms[-1]

    with Watchdog(scheduler, None, float("inf"), told.append, room):
        assert all_seen.wait(LIMIT_S)
    assert told == ["a seed 1 has waited for resources for 5 min; the cluster has 1 node with 2 CPUs in all."]
    assert early.heard_s > placed.heard_s, "its wait counts from when its turn has come"


def test_work_that_waits_for_machines_that_were_lost_is_told_once(monkeypatch):
    monkeypatch.setattr(watchdog, "LOOK_S", 0.01)
    monkeypatch.setattr(watchdog, "PLACE_S", 0.0)
    resources = SimpleNamespace(min_cpus=4, min_gpus=0.5)
    waits = SimpleNamespace(work=SimpleNamespace(key="0", attempt="", label="a seed 1", resources=resources))
    scheduler = SimpleNamespace(too_large=lambda: waits, tasks=SimpleNamespace(live={}))
    looks, all_seen, told = iter(range(1, 20)), threading.Event(), []
    scheduler.device_s = lambda: next(looks, None) or all_seen.set() or 0.0
    with Watchdog(scheduler, None, float("inf"), told.append, lambda: "the cluster has 1 node with 2 CPUs in all"):
        assert all_seen.wait(LIMIT_S)
    assert told == ["a seed 1 waits for 4 CPUs and 0.5 GPUs; the cluster has 1 node with 2 CPUs in all."]


def test_each_journal_behind_a_url_is_asked_for(monkeypatch):
    """Tries of several replicates have the same number."""
    monkeypatch.setattr(watchdog, "LOOK_S", 0.01)
    resources = SimpleNamespace(report_timeout_s=1.0)
    live = {
        key: SimpleNamespace(
            work=SimpleNamespace(key=key, attempt="driver.1", label=key, shared="s3://b", resources=resources),
            heard_s=time.monotonic(),
            running_s=0.0,
            pruned_because="",
        )
        for key in ("k0", "k1")
    }
    heard, both = [], threading.Event()

    def hear(task: SimpleNamespace) -> None:
        heard.append(task.work.key)
        if set(heard) == set(live):
            both.set()

    tasks = SimpleNamespace(live=live)
    scheduler = SimpleNamespace(device_s=lambda: 0.0, hear=hear, is_early=lambda task: False, tasks=tasks)
    with Watchdog(scheduler, None, float("inf"), print, str):
        assert both.wait(LIMIT_S)
    assert heard == ["k0", "k1"]


def test_a_look_that_a_bucket_holds_up_does_not_hold_up_the_end(monkeypatch):
    monkeypatch.setattr(watchdog, "LOOK_S", 0.01)
    monkeypatch.setattr(watchdog, "JOIN_S", 0.1)
    looks, is_back, ended = threading.Event(), threading.Event(), []
    work = SimpleNamespace(key="0123", attempt="driver.1", label="a seed 1", shared="", resources=None)
    work.resources = SimpleNamespace(report_timeout_s=0.0)
    task = SimpleNamespace(
        work=work, heard_s=0.0, running_s=0.0, lost_because="", pruned_because="", started={}, driving={}
    )
    task.state, task.ending = "live", threading.Lock()

    def hear(heard: SimpleNamespace) -> None:
        looks.set()
        assert is_back.wait(LIMIT_S)
        heard.running_s = 1.0

    scheduler = SimpleNamespace(device_s=lambda: 0.0, hear=hear, tasks=SimpleNamespace(live={"0123": task}))
    watching = Watchdog(scheduler, ended.append, float("inf"), print, str)
    with watching:
        assert looks.wait(LIMIT_S)
    is_back.set()
    watching._thread.join(30)
    assert not watching._thread.is_alive() and ended == [] and task.lost_because == ""


@pytest.mark.parametrize(
    ("lost", "pruned", "given"),
    [("silent", "", {}), ("", "its curve", {"pruned": "driver.1"})],
    ids=["silent", "pruned"],
)
def test_the_end_waits_for_a_process_that_is_being_ended_and_ends_no_other(monkeypatch, lost, pruned, given):
    """One that its search has stopped is ended at once, though it was heard just now."""
    monkeypatch.setattr(watchdog, "LOOK_S", 0.01)
    monkeypatch.setattr(watchdog, "JOIN_S", 0.1)
    begun, ended = threading.Event(), []
    work = SimpleNamespace(key="0123", attempt="driver.1", resources=SimpleNamespace(report_timeout_s=0.0))
    heard_s = time.monotonic() if pruned else 0.0
    task = SimpleNamespace(
        work=work,
        heard_s=heard_s,
        running_s=1.0,
        lost_because=lost,
        started={"pid": 7},
        driving={},
        pruned_because=pruned,
    )
    task.state, task.ending = "live", threading.Lock()

    def end(started: dict[str, object]) -> str:
        begun.set()
        time.sleep(1.0)
        ended.append(started)
        return "  File"

    scheduler = SimpleNamespace(device_s=lambda: 0.0, tasks=SimpleNamespace(live={"0123": task}))
    with Watchdog(scheduler, end, float("inf"), print, str):
        assert begun.wait(LIMIT_S)
    assert ended == [{"pid": 7} | given]
