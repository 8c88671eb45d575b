"""`status` and `pareto` on recorded studies, small and large."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator import query_commands
from orchestrator.printing import Format
from orchestrator.query_commands import pareto, status
from orchestrator.study import Study
from orchestrator.tracking import Tracking
from tests.orchestrator.recorded import Store, replicate


@pytest.fixture
def store(workplace):
    return Store(workplace / "runs" / "mlflow.db")


@pytest.fixture
def printed(capsys, monkeypatch):
    """What a command prints for people, on lines long enough for all of it."""
    monkeypatch.setenv("COLUMNS", "250")

    def call(command, **options):
        capsys.readouterr()
        command("asr.demo", **options)
        return capsys.readouterr().out

    return call


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
    monkeypatch.setattr(Study, "load", lambda *_: study)
    return study


def test_few_replicates_are_shown_one_by_one(store, printed):
    store.write([replicate("a", 1), replicate("a", 2, state="failed", error="[why] it failed")], revision=1)
    folder = Path("runs/replicates/asr.demo/x")
    folder.mkdir(parents=True)
    (folder / "step.pt").write_bytes(b"0" * 2_500_000)
    shown = printed(status)
    (row,) = [line for line in shown.splitlines() if "[why] it failed" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == ["a", "2", "failed", "[why] it failed"]
    assert "1 complete, 1 failed; 2.5 MB of checkpoints and journals\n" in shown
    assert "versions" not in shown and "Peak memory" not in shown


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


def test_an_experiment_without_a_replicate_says_so(store, printed):
    assert printed(status) == "asr.demo: no replicate is recorded yet\n"
    assert json.loads(printed(status, format=Format.json)) == []


@pytest.fixture
def stored(monkeypatch):
    """Which figures were stored in MLflow; they are not, for that takes seconds."""
    calls = []
    monkeypatch.setattr(Tracking, "store_figures", lambda _, sweep, files: calls.append((sweep, *files)))
    return calls


def test_figures_are_drawn_and_stored_once_until_something_changes(store, printed, stored, monkeypatch):
    monkeypatch.setenv("PONDERAY_CACHE", str(Path("cache").absolute()))
    first = replicate("a", 1)
    store.write([first], revision=1)
    shown = printed(pareto)
    files = tuple(Path("runs/figures").absolute() / f"asr.demo.front.{end}" for end in ("html", "png"))
    assert stored == [("asr.demo", *files)]
    assert all(f"Figure: runs/figures/{file.name}\n" in shown for file in files)
    assert printed(pareto) == shown
    printed(pareto, format=Format.json)
    assert len(stored) == 1
    store.write([replace(first, metrics={"per@e": 0.5, "macs_per_frame@e": 1e6})], revision=2)
    printed(pareto)
    assert len(stored) == 2
    files[0].unlink()
    printed(pareto)
    assert len(stored) == 3 and files[0].exists()


def test_figures_that_could_not_be_stored_are_stored_the_next_time(store, printed, stored, monkeypatch):
    monkeypatch.setenv("PONDERAY_CACHE", str(Path("cache").absolute()))
    store.write([replicate("a", 1)], revision=1)
    with monkeypatch.context() as patch:
        patch.setattr(Tracking, "store_figures", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            printed(pareto)
    printed(pareto)
    assert len(stored) == 1


def test_the_answer_is_printed_before_the_store_is_waited_for(store, monkeypatch, capsys):
    store.write([replicate("a", 1)], revision=1)
    seen = []
    monkeypatch.setattr(Tracking, "store_figures", lambda *_: seen.append(capsys.readouterr().out))
    pareto("asr.demo", format=Format.csv)
    assert seen == ["condition,evaluation,on_front,n,per,per_std,macs_per_frame,macs_per_frame_std\na,e,True,1,0.25,,"
                    "1000000.0,\n"]  # fmt: skip


def test_of_many_points_the_front_and_the_nearest_are_shown(monkeypatch, printed, stored, workplace):
    """A front of three; dominated points at growing distance from it."""
    places = [(0.1, 3.0), (0.2, 2.0), (0.3, 1.0)] + [(0.3 + 0.01 * i, 3.0 + 0.1 * i) for i in range(1, 100)]
    replicates = [
        replicate(f"c{i:03}", 1, metrics={"per@e": per, "macs_per_frame@e": macs})
        for i, (per, macs) in enumerate(places)
    ]
    monkeypatch.setattr(Study, "load", lambda *_: Study("asr.demo", tuple(replicates)))
    shown = printed(pareto)
    names = [line.split("│")[2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert names == [f"c{i:03}" for i in range(23)]
    assert "all of the front, and of 99 dominated points the 20 nearest to it" in shown
    assert len(json.loads(printed(pareto, format=Format.json))["points"]) == 102


def test_a_very_long_front_is_shown_in_part(monkeypatch, printed, stored, workplace):
    replicates = [
        replicate(f"c{i:03}", 1, metrics={"per@e": i / 1000, "macs_per_frame@e": 1000.0 - i}) for i in range(500)
    ]
    monkeypatch.setattr(Study, "load", lambda *_: Study("asr.demo", tuple(replicates)))
    shown = printed(pareto)
    names = [line.split("│")[2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert (len(names), names[0], names[-1]) == (200, "c000", "c499")
    assert "Shown: 200 of 500 points of the front" in shown


def test_the_commands_take_what_they_took(large, stored, workplace):
    app = typer.Typer()
    app.command()(query_commands.status)
    app.command()(query_commands.pareto)
    found = CliRunner().invoke(app, ["status", "asr.demo", "--smoke", "--format", "json"])
    assert found.exit_code == 0 and len(json.loads(found.stdout)) == 200
    arguments = ["pareto", "asr.demo", "--x", "macs_per_frame", "--y", "per", "--format", "json"]
    found = CliRunner().invoke(app, arguments)
    assert [one["metric"] for one in json.loads(found.stdout)["objectives"]] == ["per", "macs_per_frame"]
