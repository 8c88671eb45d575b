"""`ponderay audit` of models with a planted fault, by three people who had not seen it, and of models without."""

import json

import pytest

from tests import second_leaks, third_leaks
from tests.door import ROOT, ponderay
from tests.planted_leaks import CLEAN, LEAKS


def audited(tmp_path, place):
    """The exit code, and the names of the checks that found something."""
    done = ponderay(tmp_path, "audit", str(ROOT / place), "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, {row["check"] for row in json.loads(done.stdout) if row["result"] == "finding"}


@pytest.mark.slow
@pytest.mark.long  # each trains; what the checks see is held by tests/orchestrator/audit
@pytest.mark.data
@pytest.mark.parametrize("place", [*LEAKS, *second_leaks.LEAKS, *third_leaks.LEAKS])
def test_a_planted_fault_is_found(tmp_path, real_data, place):
    code, found = audited(tmp_path, place)
    assert code == 1 and found


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.data
@pytest.mark.parametrize("place", [*CLEAN, *second_leaks.CLEAN, *third_leaks.CLEAN])
def test_a_model_that_only_looks_faulty_is_not_blamed(tmp_path, real_data, place):
    assert audited(tmp_path, place) == (0, set())
