"""What is learnt of a process that hangs, before it is ended."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

from orchestrator import watch
from orchestrator.processes import start_time
from orchestrator.watch import Watch, end_process, where_it_hung

HANGS = """
import faulthandler, signal, sys, time
file = open(sys.argv[1], "w")
faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)
print("ready", flush=True) or time.sleep(60)  # one line: it may be struck right after it has said so
"""


def test_a_process_that_is_ended_says_where_it_hung(tmp_path):
    program, said = tmp_path / "hangs.py", tmp_path / "threads.txt"
    program.write_text(HANGS)
    process = subprocess.Popen([sys.executable, str(program), str(said)], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stdout.readline() == "ready\n"
    started = {"pid": process.pid, "process_started": start_time(process.pid), "hung_file": str(said)}
    assert f'(File "{program}", line 5 in <module>)' in where_it_hung(end_process(started))
    assert process.wait(10) == -9
    assert end_process(started) == ""


def test_of_a_process_that_said_nothing_nothing_is_made_up():
    assert where_it_hung("") == ""
    own = f'  File "{Path("orchestrator/execute.py").absolute()}", line 1 in execute'
    assert where_it_hung(f"Thread 1:\n{own}\n") == ""


def test_work_that_finds_no_place_is_told_once(monkeypatch):
    monkeypatch.setattr(watch, "LOOK_S", 0.01)
    resources = SimpleNamespace(report_timeout_s=1.0)
    work = SimpleNamespace(key="0123", attempt="driver.1", label="a seed 1", shared="", resources=resources)
    placed = SimpleNamespace(work=SimpleNamespace(**vars(work) | {"key": "4567"}), heard_s=0.0, running_s=0.0)
    waits = SimpleNamespace(work=work, heard_s=time.monotonic() - watch.PLACE_S - 1, running_s=0.0)
    placed.heard_s = time.monotonic()
    plan = SimpleNamespace(
        device_s=lambda: 0.0, hear=lambda task: None, tasks=SimpleNamespace(live={"0123": waits, "4567": placed})
    )
    told: list[str] = []
    looks = iter(range(1, 20))
    all_seen = threading.Event()
    plan.device_s = lambda: next(looks, None) or all_seen.set() or 0.0
    with Watch(plan, None, float("inf"), told.append):
        assert all_seen.wait(30)
    assert told == ["a seed 1 has had no place for 5 min; `ray status` says what is taken."]
