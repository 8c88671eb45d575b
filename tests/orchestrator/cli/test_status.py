"""`status` on recorded studies, small and large."""

import csv
import io
import json
import os
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli.status import _disk, status
from orchestrator.console.printing import Format
from orchestrator.machine.processes import process_space, start_time
from orchestrator.results.study import Origin, Study
from orchestrator.tracking import load
from orchestrator.tracking.registry import open_registry
from ponderay import notebook
from tests.orchestrator.recorded import replicate
from tests.orchestrator.tracking.processes import ended_process
from trainables.errors import InputError


@pytest.fixture
def large(monkeypatch):
    """A study that `load` finds: 100 conditions of 2 seeds, 80 replicates failed, two versions of the code."""
    replicates = [
        replicate(
            f"c{i:03}",
            seed,
            state="failed" if i < 80 and seed == 2 else "complete",
            error=f"cause {i}" if i < 80 and seed == 2 else "",
            code_version="old" if i < 7 else "new",
            metrics={"per@e": 0.5 + i / 1000, "macs_per_frame@e": 1e6},
            duration_s=1800.0,
            peak_host_bytes=1_000_000 * (i + 1),
        )
        for i in range(100)
        for seed in (1, 2)
    ]
    study = Study("asr.demo", tuple(replicates), {f"c{i:03}": 1_700_000_000_000 + i for i in range(100)})
    monkeypatch.setattr(load, "load_study", lambda *_: study)
    return study


def test_few_replicates_are_shown_one_by_one(store, printed):
    store.write([replicate("a", 1), replicate("a", 2, state="failed", error="[why] it failed")], revision=1)
    for seed in (1, 2):
        folder = Path(f"runs/replicates/asr.demo/a/{seed}")
        folder.mkdir(parents=True)
        (folder / "step.pt").write_bytes(b"0" * 1_250_000)
    shown = printed(status)
    (row,) = [line for line in shown.splitlines() if "[why] it failed" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["a", "2", "failed", "[why] it failed"]
    assert "1 complete, 1 failed; 2.5 MB of checkpoints and journals\n" in shown
    assert "versions" not in shown and "Peak memory" not in shown


@pytest.mark.parametrize("last", ["complete", "running"])
def test_what_mlflow_lacks_is_said(monkeypatch, printed, last):
    names = [("a", seed) for seed in range(1, 8)]
    replicates = [replicate("a", seed, state=last if seed == 9 else "complete") for seed in range(1, 10)]
    study = Study("asr.demo", tuple(replicates), unmirrored=tuple(names))
    monkeypatch.setattr(load, "load_study", lambda *_: study)
    listed = "a seed 1; a seed 2; a seed 3; a seed 4; a seed 5 and 2 more"
    then = "its driver still writes them" if last == "running" else "`ponderay run asr.demo` writes them"
    num_ended = 8 if last == "running" else 9
    assert f"MLflow lacks 7 of {num_ended} replicates that have ended ({listed}); {then}." in printed(status)


def test_a_damaged_journal_is_named_with_its_replicate_and_so_is_what_was_set_aside(store, printed):
    store.write([replicate("a", 1), replicate("a", 2, state="stopped"), replicate("a", 3, state="stopped")], revision=1)
    whole = b'{"kind": "trained", "time_ms": 1}\n'
    for seed, content in ((1, b"\xff no journal, of which nobody asks\n"), (2, whole), (3, whole + b"\xff\xfe\n")):
        folder = Path(f"runs/replicates/asr.demo/a/{seed}")
        folder.mkdir(parents=True)
        (folder / "journal.jsonl").write_bytes(content)
    for name in ("journal.damaged-1.jsonl", "unreadable.step_000003.0123456789abcdef.pt"):
        Path("runs/replicates/asr.demo/a/2", name).touch()
    shown = printed(status)
    place = Path("runs/replicates/asr.demo/a").absolute()
    assert [line for line in shown.splitlines() if line.startswith("a seed ")] == [
        f"a seed 2: Damaged files were set aside in {place}/2 and may be deleted: "
        "journal.damaged-1.jsonl, unreadable.step_000003.0123456789abcdef.pt.",
        f"a seed 3: The journal {place}/3/journal.jsonl is damaged: its line 2 is no JSON. The 1 lines before count; "
        "`ponderay run` sets it aside and makes the rest again, unless the tracking store has the replicate complete.",
    ]


def hold(store, who: str, space: str, pid: int, started: str, beat: str = "") -> None:
    """Has a process run the sweep."""
    registry = open_registry(store.client, "lease sweep asr.demo")
    registry.enter("1", json.dumps({"who": who, "place": {"space": space, "pid": pid, "started": started}}))
    if beat:
        registry.note("beat.1", beat)


def test_what_a_killed_driver_left_running_is_stopped_and_goes_on(store, printed):
    store.write([replicate("a", 1), replicate("a", 2, state="running")], revision=1)
    assert "running" in printed(status)
    hold(store, "process 7 on here", process_space(), *ended_process(), beat="9 1700000000000")
    shown = printed(status)
    assert "running" not in shown and "1 complete, 1 stopped;" in shown
    assert (
        "What is stopped waits; process 7 on here, which ran the sweep last, is gone: `ponderay run asr.demo` "
        "continues it.\n"
    ) in shown
    assert {row["state"] for row in json.loads(printed(status, format=Format.json))} == {"complete", "stopped"}
    assert notebook.load("asr.demo").replicates[1].state == "stopped"


@pytest.mark.parametrize("noted", ["python -m orchestrator run", "__main__.py run"])
def test_what_was_submitted_is_submitted_again(monkeypatch, printed, noted):
    """`run` on this machine would take the sweep over, and train anew what a cluster's disks have."""
    stopped = replicate("a", 1, state="stopped")
    origins = {stopped.key: Origin("5e5510", "", f"{noted} asr.demo --seeds 3")}
    study = Study("asr.demo", (stopped,), origins=origins)
    monkeypatch.setattr(load, "load_study", lambda *_: study)
    monkeypatch.setattr(load, "load_holder", lambda *_: None)
    assert "What is stopped waits: `ponderay submit asr.demo --seeds 3` continues it." in printed(status)


def test_of_a_driver_elsewhere_that_is_silent_the_clock_is_told(store, printed):
    store.write([replicate("a", 1, state="running")], revision=1)
    hold(store, "process 7 on node3", "another boot", 7, "1", f"9 {time.time_ns() // 1_000_000 - 600_000}")
    shown = printed(status)
    assert "│ silent │" in shown and "1 silent;" in shown
    assert (
        "By its clock process 7 on node3, which runs the sweep, gave its last heartbeat 10 min ago; if it is gone, "
        "`ponderay run asr.demo` continues.\n"
    ) in shown


def test_of_a_driver_that_is_alive_nothing_is_said(store, printed):
    store.write([replicate("a", 1, state="running")], revision=1)
    hold(store, "this", process_space(), os.getppid(), start_time(os.getppid()), "9 1700000000000")
    shown = printed(status)
    assert "│ running │" in shown and "continues" not in shown


def test_many_are_shown_by_condition_those_that_changed_last(large, printed, workplace):
    shown = printed(status)
    lines = shown.splitlines()
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│ c")]
    conditions = [row for row in rows if len(row) == 6]
    assert [row[0] for row in conditions] == [f"c{i:03}" for i in range(40, 100)]
    assert conditions[0][1:5] == ["1", "1", "0.5400", "1:00:00"]
    assert conditions[-1][1:5] == ["2", "", "0.5990 ± 0.0000", "1:00:00"]
    assert conditions[0][5].startswith("2023-11-1")
    assert "the 60 of 100 conditions that changed last" in shown
    failures = [row for row in rows if len(row) == 3]
    assert failures == [[f"c{i:03}", "2", f"cause {i}"] for i in range(50)]
    assert "30 more; --format csv lists all." in shown


def test_versions_disk_and_memory_are_said(large, printed, workplace):
    shown = printed(status)
    assert "Results of 2 versions of the trainable's code" in shown
    assert "  old: c000; c001; c002; c003; c004 and 2 more\n" in shown
    assert "  new: c007; c008; c009; c010; c011 and 88 more\n" in shown
    assert "120 complete, 80 failed; 200.0 MB of checkpoints and journals, as recorded" in shown
    assert "Peak memory: 100 MB of a process (c099 seed 1)\n" in shown


def test_json_and_csv_list_every_replicate(large, printed, workplace):
    rows = json.loads(printed(status, format=Format.json))
    assert [(row["condition"], row["seed"]) for row in rows] == [(r.condition, r.seed) for r in large.replicates]
    assert rows[1]["error"] == "cause 0" and rows[1]["key"] == "c000/2" and rows[1]["peak_host_bytes"] == 1_000_000
    listed = list(csv.DictReader(io.StringIO(printed(status, format=Format.csv))))
    assert [list(row) for row in listed[:1]] == [list(rows[0])]
    assert [row["error"] for row in listed] == [row["error"] for row in rows]


def test_an_experiment_of_which_all_was_put_away_has_not_run(store):
    with pytest.raises(InputError, match=r"asr\.demo has not run here yet"):
        status("asr.demo")


def test_the_command_takes_what_it_took(large, workplace):
    app = typer.Typer()
    app.command()(status)
    found = CliRunner().invoke(app, ["asr.demo", "--smoke", "--format", "json"])
    assert found.exit_code == 0 and len(json.loads(found.stdout)) == 200


@pytest.mark.parametrize("option", [{"smoke": True}, {"where": ["lr=0.1"]}])
def test_an_option_of_one_sweep_without_a_sweep_is_refused(workplace, option):
    with pytest.raises(InputError, match=f"^--{next(iter(option))} is of one sweep, but none is named"):
        status(None, **option)


def test_what_lies_on_another_machine_is_not_called_nothing(store, printed):
    store.write([replicate("a", 1), replicate("a", 2)], revision=1)
    away = "the checkpoints and journals of {} of 2 replicates are elsewhere, not in "
    assert f"2 complete; {away.format(2)}" in printed(status) and "0.0 MB" not in printed(status)
    folder = Path("runs/replicates/asr.demo/a/1")
    folder.mkdir(parents=True)
    (folder / "step.pt").write_bytes(b"0" * 2_500_000)
    shown = printed(status)
    assert f"2.5 MB of checkpoints and journals here; {away.format(1)}" in shown
    assert f"not in {Path('runs/replicates/asr.demo').absolute()}\n" in shown


def test_what_was_stopped_before_its_first_report_lies_nowhere(store, printed):
    never, away = ("stopped", "", 1), ("running", "node3", 2)
    for state, host, revision in (never, away):
        started = replicate("a", 2, state=state, metrics={}, host=host)
        store.write([replicate("a", 1), started], revision=revision)
        Path("runs/replicates/asr.demo/a/1").mkdir(parents=True, exist_ok=True)
        assert ("of 1 of 2 replicates are elsewhere" in printed(status)) == bool(host)


@pytest.mark.parametrize("width", [80, 60])
def test_condition_state_and_error_are_readable_on_a_narrow_terminal(store, printed, monkeypatch, width):
    name = "surprisal,num_epochs=3,learning_rate=0.001"
    error = "RuntimeError: the loss is no longer finite at step 12"
    store.write([replicate(name, 1), replicate(name, 2, state="failed", error=error)], revision=1)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = [line for line in printed(status).splitlines() if line.startswith("│")]
    assert all(len(line) <= width for line in lines)
    columns = list(zip(*([cell.strip() for cell in line.strip("│").split("│")] for line in lines), strict=True))
    assert ["".join(column).replace(" ", "") for column in columns] == [
        name * 2,
        "12",
        "completefailed",
        error.replace(" ", ""),
    ]


def test_conditions_are_paragraphs_where_their_table_would_lose_columns(large, printed, workplace, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = printed(status)
    assert "c099\n  complete 2, per@e 0.5990 ± 0.0000, time 1:00:00, last" in shown
    assert "│ c000" in shown and "cause 0" in shown, "the failures' table is narrow enough"


def test_a_bucket_that_is_away_hides_no_study(workplace, monkeypatch, capsys):
    from orchestrator.environment.settings import Settings
    from orchestrator.journal.bucket import SharedFolder

    def away(*_arguments, **_named):
        raise OSError("s3://bucket cannot be reached")

    monkeypatch.setattr(SharedFolder, "sizes", away)
    settings = Settings(workplace / "runs", "sqlite:///x.db", storage="memory://bucket")
    assert _disk(Study("asr.demo", ()), settings) == "unknown: s3://bucket cannot be reached"
