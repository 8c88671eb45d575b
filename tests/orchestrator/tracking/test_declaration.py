"""Answers of a recorded study where the code of its sweep is not installed."""

import json

import pytest

from orchestrator.tracking.declaration import LIMIT, directions_of, sweep_of, text_of
from search_spaces.find import find_sweep, sweep_functions
from search_spaces.sweep import Objective
from tests.door import PLAIN, ponderay, write


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


def test_queries_answer_where_the_code_is_gone_and_run_says_where_it_was(tmp_path):
    for condition in ("width=4", "width=8"):
        for seed in ("1", "2"):
            done = ponderay(write(tmp_path, PLAIN), "train", "toy.py:toy", "--condition", condition, "--seed", seed)
            assert done.returncode == 0, done
    (tmp_path / "toy.py").unlink()
    for command in (["status", "toy"], ["pareto", "toy"], ["compare", "toy"], ["report", "toy"]):
        found = ponderay(tmp_path, *command)
        assert found.returncode == 0, found
    assert "reference: width=8" in ponderay(tmp_path, "pareto", "toy").stdout
    assert (
        Objective("loss").direction
        == json.loads(ponderay(tmp_path, "pareto", "toy", "--format", "json").stdout)["objectives"][0]["direction"]
    )
    refused = ponderay(tmp_path, "run", "toy")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused
    assert "toy was run as toy.py:toy" in refused.stderr
