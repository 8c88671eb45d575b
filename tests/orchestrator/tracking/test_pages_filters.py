"""Every search is asked of a real store, and finds what it says."""

import re

import pytest

from orchestrator.tracking.pages import FILTERS
from tests.orchestrator.driven import driven

FOUND = {
    "conditions": {"good", "better", "bad"},
    "finished conditions": {"good", "better"},
    "conditions with seeds": {"good", "better"},
    "good and cheap": {"good"},
    "surely good": {"better"},
    "replicates": {f"{name} seed {seed}" for name in ("good", "better", "bad") for seed in (1, 2, 3)},
    "replicates of a condition": {"better seed 1", "better seed 2", "better seed 3"},
    "replicates of a seed": {"good seed 2", "better seed 2", "bad seed 2"},
    "failures": {"bad seed 1", "bad seed 2", "bad seed 3"},
    "lost": set(),
    "running": set(),
    "code version": {f"{name} seed {seed}" for name in ("good", "better", "bad") for seed in (1, 2, 3)},
    "data fingerprint": {f"{name} seed {seed}" for name in ("good", "better", "bad") for seed in (1, 2, 3)},
    "the sweep itself": {"tiny.driven"},
}


def words() -> dict[str, str]:
    """What a user would fill in; limits are put between the conditions."""
    study = driven()
    good, better = (study.run(name).data.metrics for name in ("good", "better"))
    assert better["error/plain.high"] < good["error/plain.high"]
    assert better["cost/plain"] > good["cost/plain"]
    return {
        "error": "error/plain",
        "cost": "cost/plain",
        "number": "3",
        "most error": str(good["error/plain"] + 1e-9),
        "most cost": "0.6",
        "condition": "better",
        "seed": "2",
        "version": study.outcome.replicates[0].code_version,
        "fingerprint": "tiny",
    }


@pytest.mark.parametrize("one", FILTERS, ids=lambda one: one.name)
def test_a_search_finds_what_it_says(one):
    study, filled = driven(), one.filled(words())
    assert "{" not in filled.text
    runs = study.client.search_runs([study.experiment_id], filled.text)
    assert {run.info.run_name for run in runs} == FOUND[one.name]


def test_each_has_a_name_of_its_own_and_says_what_it_finds():
    assert len({one.name for one in FILTERS}) == len(FILTERS) == len(FOUND)
    assert all(one.meaning.endswith(".") for one in FILTERS)
    assert {word for one in FILTERS for word in re.findall("{(.*?)}", one.text)} == set(words())


def test_what_is_not_known_stays_to_be_filled_in():
    filled = FILTERS[2].filled({"error": "per/e"})
    assert filled.text.endswith('metrics."per/e.n" >= {number}')
