"""`pareto` on recorded studies, small and large."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from orchestrator.cli.paper_options import LogAxes, PaperFormat
from orchestrator.cli.pareto import pareto
from orchestrator.report import front_files
from orchestrator.results.study import Study
from orchestrator.tracking import load
from orchestrator.tracking.client import Tracking
from search_spaces.find import find_sweep
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


@pytest.fixture
def stored(monkeypatch):
    """What was stored in MLflow; it is neither drawn nor stored, for that takes seconds."""
    calls = []
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
    printed(pareto, format=PaperFormat.json)
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
    pareto("asr.demo", format=PaperFormat.csv)
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
    assert len(json.loads(printed(pareto, format=PaperFormat.json))["points"]) == 102


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
    metrics = ("valid_sequence_error@e", "valid_mean_updates@e", "valid_macs_per_sequence@e")
    study = noisy_study("act.search_parity", {"a": (0.1, 3.0, 5.0), "b": (0.2, 2.0, 9.0)}, metrics)
    monkeypatch.setattr(load, "load_study", lambda *_: study)

    for options, expected in (
        ({}, ["valid_sequence_error", "valid_mean_updates", "valid_macs_per_sequence"]),
        ({"x": "valid_macs_per_sequence"}, ["valid_sequence_error", "valid_macs_per_sequence"]),
        ({"y": "valid_mean_updates", "x": "valid_macs_per_sequence", "z": "valid_sequence_error"},
         ["valid_mean_updates", "valid_macs_per_sequence", "valid_sequence_error"]),
    ):  # fmt: skip
        found = printed(lambda _, **given: pareto("act.search_parity", **given), format=PaperFormat.json, **options)
        content = json.loads(found)
        assert [one["metric"] for one in content["objectives"]] == expected
        assert len(content["hypervolume_reference"]) == len(expected)
    assert Path("runs/figures/act.search_parity.front.png").exists()
    with pytest.raises(InputError, match="must differ, but got valid_sequence_error, valid_mean_updates, valid_mean"):
        pareto("act.search_parity", z="valid_mean_updates", x="valid_mean_updates")


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
    assert json.loads(files.json.read_text()) == json.loads(printed(pareto, format=PaperFormat.json))
    assert (
        "P(dominates reference)" in shown
        and "The hypervolume of the front up to per = 0.3030, macs_per_frame = 2,020,000 is 5,060 (95 % interval "
        in shown
    )
    assert "Two or three seeds: all points." in shown


def test_figures_are_drawn_with_what_was_published(workplace, monkeypatch):
    monkeypatch.setattr(Tracking, "store_front", lambda *_: None)
    name = "asr.laptop_librispeech"
    Store(workplace / "runs" / "mlflow.db", name).write([replicate("a", 1)], revision=1)
    pareto(name)
    html, png = (Path(f"runs/figures/{name}.front.{end}") for end in ("html", "png"))
    assert "published, other data (4 of 4 outside the figure)" in html.read_text()
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_command_takes_what_it_took(monkeypatch, stored, workplace):
    study = noisy_study("asr.demo", {"random": (0.3, 1e6), "b": (0.2, 2e6)}, ("per@e", "macs_per_frame@e"))
    monkeypatch.setattr(load, "load_study", lambda *_: study)
    app = typer.Typer()
    app.command()(pareto)
    arguments = ["asr.demo", "--x", "macs_per_frame", "--y", "per", "--format", "json"]
    found = CliRunner().invoke(app, arguments)
    assert [one["metric"] for one in json.loads(found.stdout)["objectives"]] == ["per", "macs_per_frame"]
    drawn = CliRunner().invoke(app, ["asr.demo", "--format", "pdf", "--output", "a/b.pdf"])
    assert drawn.stdout == "Figure: a/b.pdf\n" and Path("a/b.pdf").stat().st_size
    with pytest.raises(InputError, match=r"--output must end with \.svg"):
        CliRunner().invoke(app, ["asr.demo", "--format", "svg", "--output", "a/b.pdf"], catch_exceptions=False)


@pytest.mark.parametrize("names", [{}, {"y": "per"}, {"y": "per", "z": "macs_per_frame"}])
def test_a_front_of_one_objective_needs_a_second_metric(store, printed, monkeypatch, names):
    monkeypatch.setattr("orchestrator.cli.pareto.find_recorded", lambda *_: only_per())
    store.write([replicate("a", 1)], revision=1)
    with pytest.raises(InputError, match=r"has one objective, per; name a second one by --x METRIC"):
        printed(pareto, **names)


def only_per():
    sweep = find_sweep("asr.demo")
    return replace(sweep, objectives=sweep.objectives[:1])


@pytest.mark.parametrize(
    "given", [{"log": LogAxes.x}, {"size": 100.0}, {"label": ["a=b"]}, {"only": ["a"]}, {"output": Path("a.pdf")}]
)
def test_what_is_of_a_figure_for_a_paper_is_refused_without_one(given):
    with pytest.raises(
        InputError, match=r"--(log|size|label|only|output) is of a figure for a paper: add --format pdf, svg or png\."
    ):
        pareto("asr.demo", **given)
