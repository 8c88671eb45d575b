"""What the language models promise an audit: they draw where a test draws."""

import pytest

from search_spaces.find import find_sweep
from trainables.lm.predict import promises

DRAWS = {"mc_dropout,units", "mc_dropout,weights", "mc_dropout,printed", "variational"}


@pytest.mark.parametrize("smoke", [True, False])
def test_it_draws_where_a_test_does(smoke):
    sweep = find_sweep("lm.signals", smoke)
    drawn = set()
    for condition in sweep.conditions:
        config = sweep.config(condition, 1)
        drawn |= {condition.name for evaluation in config.evaluations if promises(config, evaluation).draws}
    assert drawn == DRAWS
