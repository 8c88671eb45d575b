"""`ponderay audit` from outside: it finds a look ahead, and no fault with the models that are shipped."""

import json

import pytest
from typer.testing import CliRunner

from orchestrator.audit.audit import audit
from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from search_spaces.sweep import Condition
from tests.door import write
from tests.integration.sweeps import run_quietly, searched, tiny

PEEKS = """
import tempfile
from pathlib import Path

import torch

import ponderay


class Setting(ponderay.Config):
    ahead: int = 0
    seed: int = 1


def train(config, trial):
    for step in (1, 2):
        draw = torch.Generator().manual_seed(config.seed)
        with tempfile.TemporaryDirectory() as folder:
            torch.save(torch.randn(4, 8, generator=draw), file := Path(folder) / "w.pt")
            trial.report({"loss": torch.rand((), generator=draw).item()}, step=step, checkpoint=file)


def examples(config, part):
    draw = torch.Generator().manual_seed(len(part))
    return [ponderay.Example(f"{part} {i}", torch.randn(40, 4, generator=draw)) for i in range(9)]


def predict(config, checkpoint, evaluation, trial, examples):
    weights = torch.load(checkpoint, weights_only=True)
    return [ponderay.Prediction((e.inputs.roll(-config.ahead, 0) @ weights).softmax(-1)) for e in examples]


toy = ponderay.Sweep(
    name="toy", description="A look ahead.", trainable=__name__, base=Setting(),
    conditions=ponderay.grid({"ahead": [0, 1]}), objectives=(ponderay.Objective("loss"),),
)
"""


@pytest.mark.slow
def test_a_look_ahead_is_a_finding_and_nothing_is_recorded(workplace):
    write(workplace, PEEKS)
    found = CliRunner().invoke(app, ["audit", "toy.py:toy", "--format", "json"])
    rows = {(one["condition"], one["check"]): one for one in json.loads(found.stdout)}
    findings = [key for key, one in rows.items() if one["result"] == "finding"]
    assert (found.exit_code, findings) == (1, [("ahead=1", "prefix causality")]), found.output
    assert rows["ahead=1", "blind to targets"]["why"] == "no example has targets"
    assert [path.name for path in (workplace / "runs").iterdir()] == ["audits"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        ("asr.demo", "surprisal"),
        ("act.halting_logic_laptop", "ponder_net,lambda_p=0.2"),
        pytest.param(("act.fixed_updates_text_laptop", "budget=2"), marks=pytest.mark.long),  # of act as the one above
        ("lm.signals", "surprisal,nll,gold"),
    ],
    ids=" ".join,
)
def test_models_that_are_shipped_keep_their_promises(workplace, asked):
    found = CliRunner().invoke(app, ["audit", *asked, "--smoke", "--format", "json"])
    rows = json.loads(found.stdout)
    assert found.exit_code == 0, [one for one in rows if one["result"] == "finding"]
    checked = {one["check"] for one in rows if one["result"] == "ok"}
    assert checked >= {"repeats", "sums to 1", "blind to targets", "batch and padding", "counted is executed"}


@pytest.mark.parametrize("sweep", [tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1,)), searched(1, seeds=(1,))])
def test_of_a_condition_that_has_not_run_a_replicate_is_trained(workplace, sweep):
    run_quietly(sweep.only("a", 1) if sweep.conditions else sweep)
    (workplace / "audited").mkdir()
    conditions, told = sweep.conditions[1:] or (Condition("base"),), list[str]()
    found = list(audit(sweep, conditions, None, read_settings(), workplace / "audited", told.append))
    name = conditions[0].name
    assert {one.condition for one in found} == {name} and f"Training {name} seed 1 to report 3" in told
