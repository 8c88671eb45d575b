"""Answers of a recorded study where the code of its sweep is not installed."""

import json
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.results.study import Study
from orchestrator.tracking.declaration import LIMIT, directions_of, sweep_of, text_of
from orchestrator.tracking.load import load_declaration, load_study, load_sweep
from orchestrator.worker import trainable
from search_spaces.find import find_sweep, sweep_functions
from search_spaces.grids import with_grid
from tests.door import PLAIN
from tests.integration.sweeps import run_quietly
from trainables.errors import InputError


@pytest.mark.parametrize("name", ["asr.table2_timit", "act.tau_parity", "lm.search_pareto"])
def test_what_is_recorded_says_objectives_reference_test_and_directions(name):
    sweep = find_sweep(name)
    recorded = sweep_of(text := text_of(sweep), [condition.name for condition in sweep.conditions] or ["trial 1"])
    for field in ("name", "description", "trainable", "objectives", "reference", "test", "seeds"):
        assert getattr(recorded, field) == getattr(sweep, field), field
    directions = directions_of(recorded, text)
    assert directions == directions_of(sweep, None) and "none" not in directions.values()


def test_every_shipped_sweep_fits_into_a_tag():
    assert max(len(text_of(function("full"))) for function in sweep_functions().values()) <= LIMIT


def test_the_reference_is_the_declared_one_where_settings_renamed_it():
    changed = find_sweep("lm.laptop").with_values({"hidden_size": 100})
    assert changed.reference == "baseline,hidden_size=100"
    assert json.loads(text_of(changed))["reference"] == "baseline"


@pytest.fixture
def left(workplace):
    """The study of a sweep whose file is gone."""
    (workplace / "gone_by_then.py").write_text(PLAIN.replace("seeds=(1, 2, 3)", "seeds=(1, 2)"))
    outcome = run_quietly(find_sweep("gone_by_then.py:toy"))
    assert [one.state for one in outcome.replicates] == ["complete"] * 4
    (workplace / "gone_by_then.py").unlink()
    del sys.modules["gone_by_then"]
    trainable._load.cache_clear()


def call(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_queries_answer_where_the_code_is_gone_and_run_says_where_it_was(left):
    assert call("status", "toy").count("complete") >= 4
    assert "reference: width=8" in call("pareto", "toy")
    front = json.loads(call("pareto", "toy", "--format", "json"))
    assert [one["direction"] for one in front["objectives"]] == ["minimize", "minimize"]
    assert "width=4" in call("compare", "toy") and "toy.report.html" in call("report", "toy")
    with pytest.raises(InputError, match=r"toy was run as gone_by_then\.py:toy\. There is no file gone_by_then\.py"):
        CliRunner().invoke(app, ["run", "toy"], catch_exceptions=False)


def test_a_part_records_what_the_whole_sweep_declares_and_the_rest_is_run_later(workplace):
    (workplace / "in_parts.py").write_text(PLAIN)
    whole = find_sweep("in_parts.py:toy")
    first = run_quietly(whole.of_conditions(["width=4"]))
    assert [(one.condition, one.state) for one in first.replicates] == [("width=4", "complete")] * 3
    recorded = json.loads(load_declaration("toy", read_settings()))
    assert recorded["reference"] == "width=8" and recorded["seeds"] == [1, 2, 3]
    done = {one.key: one.metrics for one in first.replicates}
    outcome = run_quietly(whole)
    assert len(outcome.replicates) == 6 and done.items() <= {one.key: one.metrics for one in outcome.replicates}.items()
    study = load_study("toy", read_settings())
    assert sorted((one.condition, one.seed) for one in study.replicates) == [
        (f"width={width}", seed) for width in (4, 8) for seed in (1, 2, 3)
    ]
    run_quietly(replace(with_grid(whole, {"width": [16]}), seeds=(1,)))  # beside results of the reference
    assert json.loads(load_declaration("toy", read_settings()))["reference"] == "width=8"


def test_a_study_of_which_nothing_is_left_is_no_sweep(workplace, monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.load.load_declaration", lambda *_: text_of(find_sweep("asr.demo")))
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda name, _: Study(name, ()))
    assert load_sweep("asr.demo", read_settings()) is None
