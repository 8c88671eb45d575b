"""Every command finds an objective, whether the trainable evaluates, and whether its config lists evaluations."""

import csv
import json

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from search_spaces.find import find_sweep
from tests.orchestrator.driven import drive, new_settings

SOURCE = """
import dataclasses
import json
import tempfile
from pathlib import Path

import ponderay

{evaluation}

@dataclasses.dataclass(frozen=True)
class Setting:
    rate: float = 0.5
    seed: int = 1{field}


def train(config, trial):
    state = {{"accuracy": config.rate + config.seed / 100}}
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "state.json").write_text(json.dumps(state))
        trial.report({{"{own}": state["accuracy"], "macs": 4 * config.rate}}, step=1, checkpoint=Path(made))

{evaluate}

tested = ponderay.Sweep(
    name="{name}",
    description="Accuracy by rate.",
    trainable=__name__,
    base=Setting(),
    {conditions},
    objectives=(ponderay.Objective("accuracy", "maximize"), ponderay.Objective("macs")),
)
"""
EVALUATE = """
def evaluate(config, checkpoint, evaluation, trial):
    state = json.loads((checkpoint / "state.json").read_text())
    trial.report({"accuracy": state["accuracy"], "macs": 4 * config.rate}, step=1)
"""
EVALUATION = """
@dataclasses.dataclass(frozen=True)
class Way:
    name: str = "listed"
"""
PARTS = {
    "without": {"evaluation": "", "field": "", "own": "accuracy", "evaluate": ""},
    "default": {"evaluation": "", "field": "", "own": "valid_accuracy", "evaluate": EVALUATE},
    "listed": {
        "evaluation": EVALUATION,
        "field": "\n    evaluations: tuple[Way, ...] = (Way(),)",
        "own": "valid_accuracy",
        "evaluate": EVALUATE,
    },
}
pytestmark = pytest.mark.slow  # three sweeps of nine replicates, and one of twenty trials
GRID = 'seeds=(1, 2, 3), conditions=ponderay.grid({"rate": [0.25, 0.5, 1.0]}), reference="rate=1"'
SEARCH = 'seeds=(1,), search=ponderay.Search({"rate": ponderay.Real(0.1, 1.0)}, num_trials=20, sampler="random")'


@pytest.fixture(params=PARTS)
def place(request, workplace, monkeypatch):
    """The name of a sweep that has run here, and nothing said of it in a file."""
    (workplace / "runs").mkdir()
    made = new_settings(workplace / "runs")
    assert made.runs == read_settings().runs

    def ran(kind, conditions):
        name = f"{kind}_{request.param}"
        file = workplace / f"metric_names_of_{name}.py"
        file.write_text(SOURCE.format(**PARTS[request.param], name=name, conditions=conditions))
        drive(find_sweep(f"{file}:tested"), made)
        return f"{file}:tested"

    return ran


def call(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, (arguments, done.output, done.exception)
    return done.stdout


def accuracies(rate):
    return pytest.approx(rate + 0.02)  # of the seeds 1, 2 and 3


def test_every_command_finds_the_objectives(place, workplace):
    sweep = place("grid", GRID)
    points = json.loads(call("pareto", sweep, "--format", "json"))["points"]
    assert {point["condition"]: point["accuracy"] for point in points} == {
        f"rate={rate:g}": accuracies(rate) for rate in (0.25, 0.5, 1.0)
    }
    for arguments in ((), ("rate=0.25", "rate=1")):
        compared = json.loads(call("compare", sweep, *arguments, "--format", "json"))
        differences = {(one["a"], one["metric"]): one["difference"] for one in compared}
        assert differences["rate=0.25", "accuracy"] == pytest.approx(-0.75)
        assert differences["rate=0.25", "macs"] == pytest.approx(-3)
    for metric, factor in (("accuracy", 1), ("macs", 4)):
        rows = json.loads(call("curve", sweep, "--metric", metric, "--format", "json"))
        assert [row["value"] for row in rows] == [0.25, 0.5, 1]
        assert [row["mean"] for row in rows] == pytest.approx(
            [rate * factor + (0.02 if factor == 1 else 0) for rate in (0.25, 0.5, 1)]
        )
    call("status", sweep, "--format", "json")
    call("plan", sweep)
    call("report", sweep, "--output", "told", "--bundle", "whole.zip")
    page = next((workplace / "told").glob("*.html")).read_text()
    assert "accuracy against rate" in page and "macs against rate" in page
    call("verify", "whole.zip")


@pytest.mark.parametrize("place", ["listed"], indirect=True)
def test_a_search_is_told_of_the_objectives(place, workplace):
    """The one parameter is all that matters for each."""
    sweep = place("search", SEARCH)
    call("report", sweep, "--output", "told")
    (file,) = (workplace / "told").glob("*.importance.csv")
    (row,) = csv.DictReader(file.open())
    assert (row["parameter"], float(row["accuracy"]), float(row["macs"])) == ("rate", 1, 1)
