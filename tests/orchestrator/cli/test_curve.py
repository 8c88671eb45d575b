"""`ponderay curve`: a metric against a varied number, printed and drawn."""

import json

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from tests.orchestrator.recorded import Store, replicate

SWEEP = "act.tau_parity_laptop"
TAUS = (1e-4, 1e-3, 1e-2, 1e-1)


@pytest.fixture
def recorded(workplace):
    store = Store(workplace / "runs" / "mlflow.db", SWEEP)
    for revision, name in enumerate(("no_act", *(f"tau={tau:g}" for tau in TAUS)), 1):
        metrics = {"sequence_error@test": revision / 10, "mean_updates@test": 5.0 - revision, "loss": 1.0}
        runs = [replicate(name, seed, metrics={k: v + seed / 100 for k, v in metrics.items()}) for seed in (1, 2)]
        store.write(runs, revision, start_ms=revision)
    return workplace


def call(*arguments):
    return CliRunner().invoke(app, ["curve", *arguments])


def test_rows_are_by_value_and_the_reference_has_none(recorded):
    done = call(SWEEP, "--metric", "mean_updates", "--format", "json")
    assert done.exit_code == 0, (done.output, done.exception)
    rows = json.loads(done.stdout)
    assert [row["value"] for row in rows] == [*TAUS, None]
    assert {row["path"] for row in rows} == {"halting.tau"} and rows[-1]["group"] == "no_act"
    assert rows[0]["mean"] == pytest.approx(3.015) and rows[0]["n"] == 2
    assert rows[0]["low"] < rows[0]["mean"] < rows[0]["high"]


def test_a_name_in_the_legend_is_no_formula(recorded):
    done = call(SWEEP, "--format", "svg", "--label", "no_act=$\\foo$", "--output", "new/a.svg")
    assert done.exit_code == 0 and (recorded / "new" / "a.svg").is_file(), (done.output, done.exception)


def test_a_file_in_the_home_is_written_there(recorded, monkeypatch):
    monkeypatch.setenv("HOME", str(recorded / "home"))
    (recorded / "home").mkdir()
    done = call(SWEEP, "--format", "svg", "--output", "~/a.svg")
    assert done.exit_code == 0 and (recorded / "home" / "a.svg").is_file(), (done.output, done.exception)


def test_the_figure_is_drawn_and_named(recorded, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = call(SWEEP)
    assert done.exit_code == 0 and "sequence_error against halting.tau" in done.stdout
    (file,) = recorded.rglob("*.over.halting.tau.png")
    assert str(file.name) in done.stdout and file.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--metric", "nothing"), "has no metric 'nothing'"),
        (
            ("--over", "nothing"),
            "--over must be a number that act.tau_parity_laptop varies, but got 'nothing': halting.t",
        ),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(recorded, arguments, message):
    done = call(SWEEP, *arguments)
    assert done.exit_code != 0 and message in str(done.exception)
