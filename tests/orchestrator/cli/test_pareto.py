"""`status` and `pareto` on recorded studies, small and large."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli import pareto as query_commands
from orchestrator.cli.pareto import pareto, status
from orchestrator.console.printing import Format
from orchestrator.report import front_files
from orchestrator.results.question import Question
from orchestrator.results.study import Study
from orchestrator.tracking import load
from orchestrator.tracking.client import Tracking
from search_spaces.find import find_sweep
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


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
    monkeypatch.setattr(load, "load_study", lambda *_: study)
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
    """What was stored in MLflow; it is neither drawn nor stored, for that takes seconds."""
    calls = []
    monkeypatch.setattr(Tracking, "__init__", lambda *_: None)
    monkeypatch.setattr(Tracking, "store_front", lambda _, *given: calls.append(given))
    monkeypatch.setattr(front_files, "draw_front", draw_nothing)
    return calls


def draw_nothing(answers, published, html, png):
    """Empty files."""
    html.parent.mkdir(parents=True, exist_ok=True)
    html.write_text("")
    png.write_bytes(b"")


def test_figures_are_drawn_and_stored_once_until_something_changes(store, printed, stored, monkeypatch):
    monkeypatch.setenv("PONDERAY_CACHE", str(Path("cache").absolute()))
    first = replicate("a", 1)
    store.write([first], revision=1)
    shown = printed(pareto)
    files = tuple(Path("runs/figures").absolute() / f"asr.demo.front.{end}" for end in ("html", "png", "json"))
    tags = {"ponderay.front_objectives": "per (minimize), macs_per_frame (minimize)"}
    assert stored == [("asr.demo", files, {}, tags)]
    assert all(f"Figure: runs/figures/{file.name}\n" in shown for file in files[:2])
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
        patch.setattr(Tracking, "store_front", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            printed(pareto)
    printed(pareto)
    assert len(stored) == 1


def test_the_answer_is_printed_before_the_store_is_waited_for(store, monkeypatch, capsys):
    store.write([replicate("a", 1)], revision=1)
    seen = []
    monkeypatch.setattr(front_files, "draw_front", draw_nothing)
    monkeypatch.setattr(Tracking, "store_front", lambda *_: seen.append(capsys.readouterr().out))
    pareto("asr.demo", format=Format.csv)
    (text,) = seen
    header, row = text.splitlines()
    assert header.startswith("condition,evaluation,on_front,n,per,per_std,macs_per_frame,macs_per_frame_std,per_low,")
    assert row == "a,e,True,1,0.25,,1000000.0,,,,,,1.0,,front"


def test_of_many_points_the_front_and_the_nearest_are_shown(monkeypatch, printed, stored, workplace):
    """A front of three; dominated points at growing distance from it."""
    places = [(0.1, 3.0), (0.2, 2.0), (0.3, 1.0)] + [(0.3 + 0.01 * i, 3.0 + 0.1 * i) for i in range(1, 100)]
    replicates = [
        replicate(f"c{i:03}", 1, metrics={"per@e": per, "macs_per_frame@e": macs})
        for i, (per, macs) in enumerate(places)
    ]
    monkeypatch.setattr(load, "load_study", lambda *_: Study("asr.demo", tuple(replicates)))
    shown = printed(pareto)
    names = [line.split("│")[2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert names == [f"c{i:03}" for i in range(23)]
    assert "Shown: all of the front, and of 99 other points 20, the likeliest to be on it, then the nearest" in shown
    assert len(json.loads(printed(pareto, format=Format.json))["points"]) == 102


def test_a_very_long_front_is_shown_in_part(monkeypatch, printed, stored, workplace):
    replicates = [
        replicate(f"c{i:03}", 1, metrics={"per@e": i / 1000, "macs_per_frame@e": 1000.0 - i}) for i in range(500)
    ]
    monkeypatch.setattr(load, "load_study", lambda *_: Study("asr.demo", tuple(replicates)))
    shown = printed(pareto)
    names = [line.split("│")[2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert (len(names), names[0], names[-1]) == (200, "c000", "c499")
    assert "Shown: 200 of 500 points of the front" in shown


def noisy_study(name, places, metrics, num_seeds=3):
    """Seed k of every condition is off by (k - 2) hundredths."""
    replicates = [
        replicate(condition, k, metrics={m: x * (1 + (k - 2) / 100) for m, x in zip(metrics, place, strict=True)})
        for condition, place in places.items()
        for k in range(1, num_seeds + 1)
    ]
    return Study(name, tuple(replicates))


def test_of_many_others_the_likeliest_are_shown_first(monkeypatch, printed, stored, workplace):
    """Five are far from the front but on it in a quarter of the draws; a hundred are near and never on it."""
    errors = {"best": (1.0, 1.0)} | {f"near{i:03}": (1.001, 1.001) for i in range(100)}
    errors |= {f"wide{i}": (0.9, 1.5) for i in range(5)}
    replicates = [
        replicate(condition, seed, metrics={"per@e": error, "macs_per_frame@e": 1.0})
        for condition, values in errors.items()
        for seed, error in enumerate(values)
    ]
    monkeypatch.setattr(load, "load_study", lambda *_: Study("asr.demo", tuple(replicates)))
    shown = printed(pareto)
    names = [line.split("│")[2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert sorted(names) == ["best", *(f"near{i:03}" for i in range(15)), *(f"wide{i}" for i in range(5))]


def test_three_objectives_are_the_sweeps_or_asked_for(monkeypatch, printed, stored, workplace):
    metrics = ("sequence_error@e", "mean_updates@e", "macs_per_sequence@e")
    study = noisy_study("act.search_parity", {"a": (0.1, 3.0, 5.0), "b": (0.2, 2.0, 9.0)}, metrics)
    monkeypatch.setattr(load, "load_study", lambda *_: study)

    for options, expected in (
        ({}, ["sequence_error", "mean_updates", "macs_per_sequence"]),
        ({"x": "macs_per_sequence"}, ["sequence_error", "macs_per_sequence"]),
        ({"y": "mean_updates", "x": "macs_per_sequence", "z": "sequence_error"},
         ["mean_updates", "macs_per_sequence", "sequence_error"]),
    ):  # fmt: skip
        found = printed(lambda _, **given: pareto("act.search_parity", **given), format=Format.json, **options)
        content = json.loads(found)
        assert [one["metric"] for one in content["objectives"]] == expected
        assert len(content["hypervolume_reference"]) == len(expected)
    assert Path("runs/figures/act.search_parity.front.png").exists()
    with pytest.raises(InputError, match="must differ, but got sequence_error, mean_updates, mean_updates"):
        pareto("act.search_parity", z="mean_updates", x="mean_updates")


def test_what_is_stored_says_volume_bounds_and_reference_point(monkeypatch, printed, stored, workplace):
    study = noisy_study("asr.demo", {"random": (0.3, 1e6), "b": (0.2, 2e6)}, ("per@e", "macs_per_frame@e"))
    monkeypatch.setattr(load, "load_study", lambda *_: study)
    shown = printed(pareto)
    ((_, files, metrics, tags),) = stored
    volume = (0.303 - 0.3) * (2.02e6 - 1e6) + 0.1 * 0.02e6
    assert metrics["hypervolume"] == pytest.approx(volume)
    assert metrics["hypervolume.low"] < metrics["hypervolume"] < metrics["hypervolume.high"]
    assert tags == {
        "ponderay.front_objectives": "per (minimize), macs_per_frame (minimize)",
        "ponderay.hypervolume_reference": "per 0.303, macs_per_frame 2020000",
    }
    assert json.loads(files.json.read_text()) == json.loads(printed(pareto, format=Format.json))
    assert (
        "P(dominates reference)" in shown
        and "The hypervolume of the front up to per = 0.3030, macs_per_frame = 2,020,000 is 5,060 (95 % interval "
        in shown
    )
    assert "Two or three seeds: all points." in shown


def test_figures_are_drawn_with_what_was_published(store, printed, monkeypatch):
    monkeypatch.setattr(Tracking, "store_front", lambda *_: None)
    store.write([replicate("a", 1)], revision=1)
    printed(pareto)
    html, png = (Path(f"runs/figures/asr.demo.front.{end}") for end in ("html", "png"))
    assert "published, other data (4 of 4 outside the figure)" in html.read_text()
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_published_points_are_comparable_on_the_same_data_only(monkeypatch):
    """The claims' own judgement of comparability stands in; a smoke sweep never is."""
    from orchestrator.report import published_marks

    question, study = Question.of(find_sweep("asr.table2_timit")), Study("asr.table2_timit", ())
    monkeypatch.setattr(published_marks, "obstacle", lambda *_: "")
    marks = published_marks.published_marks(question, study)
    (surprisal,) = [mark for mark in marks if "TIMIT, surprisal" in mark.text]
    assert surprisal.values == pytest.approx({"per": 0.2000, "macs_per_frame": 6.41e6}) and surprisal.is_comparable
    assert surprisal.legend == "published (Lugosch, Nowrouzezahrai, Meyer 2020)"
    numbers = ["released_per of surprisal: 20.00 ± 0.15 (n = 5)", "released_flops_per_frame of surprisal: 6.41"]
    assert surprisal.text.splitlines()[1:3] == numbers and "count padding frames" in surprisal.text
    small = Question.of(find_sweep("asr.table2_timit", smoke=True))
    smoke = published_marks.published_marks(small, replace(study, sweep="asr.table2_timit.smoke"))
    assert {(mark.legend, mark.is_comparable) for mark in smoke} == {("published, other data", False)}
    monkeypatch.setattr(published_marks, "obstacle", lambda *_: "Other data.")
    marks = published_marks.published_marks(question, study)
    assert {mark.is_comparable for mark in marks} == {False}


def marks_of(sweep, *metrics):
    from orchestrator.report.published_marks import published_marks

    objectives = tuple(Objective(metric) for metric in metrics)
    question = Question(sweep, "", objectives, "", "welch", (1,), {})
    return {mark.text.splitlines()[0]: mark for mark in published_marks(question, Study(sweep, ()))}


def test_a_row_with_every_objective_is_a_point_in_our_units():
    points = marks_of("asr.table2_timit", "per", "macs_per_frame")
    assert len(points) == 5
    (source,) = [source for source in points if source.endswith("TIMIT, surprisal")]
    assert source.startswith("published: Lugosch, ") and "2006.01659" in source
    assert list(points[source].values) == ["per", "macs_per_frame"]


def test_a_row_without_one_of_them_is_none():
    assert marks_of("asr.deterministic_timit", "per", "macs_per_frame") == {}
    assert marks_of("lm.step_size", "perplexity", "macs_per_token") == {}
    assert len(marks_of("lm.step_size", "perplexity")) == 1 + 5 + 6 + 6


def test_the_commands_take_what_they_took(large, stored, workplace):
    app = typer.Typer()
    app.command()(query_commands.status)
    app.command()(query_commands.pareto)
    found = CliRunner().invoke(app, ["status", "asr.demo", "--smoke", "--format", "json"])
    assert found.exit_code == 0 and len(json.loads(found.stdout)) == 200
    arguments = ["pareto", "asr.demo", "--x", "macs_per_frame", "--y", "per", "--format", "json"]
    found = CliRunner().invoke(app, arguments)
    assert [one["metric"] for one in json.loads(found.stdout)["objectives"]] == ["per", "macs_per_frame"]


def test_a_bucket_that_is_away_hides_no_study(workplace, monkeypatch, capsys):
    from orchestrator.cli import status as status_view
    from orchestrator.environment.settings import Settings
    from orchestrator.journal.bucket import SharedFolder

    def away(*_arguments, **_named):
        raise OSError("s3://bucket cannot be reached")

    monkeypatch.setattr(SharedFolder, "sizes", away)
    settings = Settings(workplace / "runs", "sqlite:///x.db", storage="memory://bucket")
    assert status_view._disk(Study("asr.demo", ()), settings) == "unknown: s3://bucket cannot be reached"
