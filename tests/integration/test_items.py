"""Errors by test item of a model of one's own: kept, compared, reported, bundled and verified."""

import csv
import json
import zipfile

from typer.testing import CliRunner

from orchestrator.cli.main import app
from search_spaces.find import find_sweep
from tests.orchestrator.driven import drive, new_settings
from trainables.errors import InputError

SOURCE = """
import dataclasses
import tempfile
from pathlib import Path

import ponderay
from trainables import item_errors
from trainables.item_errors import Item


@dataclasses.dataclass(frozen=True)
class Setting:
    rate: float = 0.5
    seed: int = 1


def train(config, trial):
    places = range(12)
    items = [Item(f"u{i:02}", f"speaker {i % 4}", i % 4 + config.rate + i * config.seed % 5, 10.0 + i) for i in places]
    rate = sum(one.errors for one in items) / sum(one.length for one in items)
    with tempfile.TemporaryDirectory() as folder:
        file = item_errors.write(items, Path(folder), "wrong")
        trial.report({"wrong": rate * WRONG_BY, "macs": 4 * config.rate}, step=1, artifacts=[file])


WRONG_BY = 1.0
tested = ponderay.Sweep(
    name="of_items",
    description="Errors by rate.",
    trainable=__name__,
    base=Setting(),
    seeds=(1, 2, 3),
    conditions=ponderay.grid({"rate": [0.25, 0.5]}),
    reference="rate=0.5",
    objectives=(ponderay.Objective("wrong"), ponderay.Objective("macs")),
)
"""


def call(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    return done.exit_code, done.output


def ran(workplace, name, source=SOURCE):
    (workplace / "runs").mkdir(exist_ok=True)
    file = workplace / f"{name}.py"
    file.write_text(source)
    drive(find_sweep(f"{file}:tested"), new_settings(workplace / "runs"))
    return f"{file}:tested"


def test_a_comparison_has_an_interval_over_seeds_and_test_items(workplace):
    sweep = ran(workplace, "by_item")
    code, told = call("compare", sweep)
    assert code == 0 and "wrong by test item: \N{MINUS SIGN}0.016" in " ".join(told.split())
    assert "over seeds and 4 groups of test items" in " ".join(told.split())
    assert call("report", sweep, "--output", "told", "--bundle", "whole.zip")[0] == 0
    with (workplace / "told/of_items.over_items.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["a"], row["b"], row["metric"], row["num_groups"], row["num_items"]) == (
        "rate=0.25", "rate=0.5", "wrong", "4", "12"
    )  # fmt: skip
    assert "Over seeds and test items" in next((workplace / "told").glob("*.html")).read_text()
    assert call("verify", "whole.zip")[0] == 0
    with zipfile.ZipFile(workplace / "whole.zip") as archive:
        items = json.loads(archive.read("study.json"))["items"]
    assert len(items["test_sets"]) == 1 and len(items["errors"]) == 6


def test_items_of_an_only_evaluation_are_found_though_no_name_says_it(workplace):
    tested = SOURCE.replace("def train(config, trial):", "def evaluate(config, checkpoint, evaluation, trial):")
    tested = tested.replace('Path(folder), "wrong")', 'Path(folder), f"wrong@{evaluation.name}")')
    train = "\ndef train(config, trial):\n    trial.report({'valid': 1.0}, step=1, checkpoint=Path(__file__))\n"
    code, told = call("compare", ran(workplace, "tested_by_item", tested + train))
    assert code == 0 and "wrong by test item:" in " ".join(told.split()), told


def test_errors_of_something_else_are_refused_by_name(workplace):
    sweep = ran(workplace, "by_another_item", SOURCE.replace("WRONG_BY = 1.0", "WRONG_BY = 2.0"))
    refused = CliRunner().invoke(app, ["compare", sweep]).exception
    assert isinstance(refused, InputError) and "those of wrong of rate=0.25, seed 1, come to" in str(refused)
