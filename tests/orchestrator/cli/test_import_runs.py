"""`ponderay import`: runs that others have made, under names of theirs."""

import json
from pathlib import Path

import pandas
from typer.testing import CliRunner

import ponderay
from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from trainables.errors import InputError


def command(*arguments):
    done = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_import_keeps_its_reference_where_names_have_signs_that_ours_may_not_have(workplace):
    rows = {
        "seed": [1, 2] * 4, "optim/lr": [0.1, 0.1, 0.01, 0.01, 1.0, 1.0, 10.0, 10.0],
        "loss": [0.5, 0.52, 0.4, 0.41, 0.6, 0.63, 0.7, 0.72],
        "model": ["base #1", "base #1", "base (1", "base (1", "ours", "ours", "big", "big"],
    }  # fmt: skip
    pandas.DataFrame(rows).to_csv("runs.csv", index=False)
    options = ("import", "runs.csv", "--seed", "seed", "--objective", "loss")
    said = command(*options, "--condition", "model", "--reference", "base (1", "--name", "models")
    assert "'base #1' is base -1, 'base (1' is base -1-" in said
    names = ponderay.load("models").conditions
    assert names[0] == "base -1" and names[1].startswith("base -1-") and names[2:] == ("ours", "big")
    compared = json.loads(command("compare", "models", "--format", "json"))
    assert {(row["a"], row["b"]) for row in compared} == {(name, names[1]) for name in names if name != names[1]}
    assert "Not begun" not in command("status", "models")
    command(*options, "--condition", "optim/lr", "--reference", "optim/lr=0.1", "--name", "rates")
    assert "optim-lr=0.01" in command("compare", "rates") and "is not shown" not in command("report", "rates")
    figure = Path(command("curve", "rates").splitlines()[-1].partition(": ")[2])
    assert figure.is_file() and figure.parent == read_settings().figures


def test_what_no_command_could_read_is_not_kept_and_a_word_that_means_nothing_elsewhere_is_a_name(workplace):
    rows = {"seed": [1, 2, 1, 2], "drop": ["None", "None", "0.1", "0.1"], "err %": [0.4, 0.5, 0.3, 0.2]}
    pandas.DataFrame(rows).to_csv("runs.csv", index=False)
    options = ("import", "runs.csv", "--seed", "seed", "--condition", "drop", "--objective")
    refused = CliRunner().invoke(app, (*options, "err %"))
    assert isinstance(refused.exception, InputError) and "but got 'err %'" in str(refused.exception)
    assert not read_settings().replicates("runs").exists()
    pandas.DataFrame(rows).rename(columns={"err %": "err"}).to_csv("runs.csv", index=False)
    command(*options, "err")
    assert ponderay.load("runs").conditions == ("None", "drop=0.1")
