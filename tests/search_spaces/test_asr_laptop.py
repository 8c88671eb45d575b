"""The speech sweeps of a laptop hold what their descriptions promise."""

import pytest

from search_spaces import find
from trainables.config import as_json


@pytest.mark.parametrize("kind", ["surprisal", "random"])
def test_the_autoregressive_model_learns_from_half_an_hour_or_from_all(kind: str) -> None:
    """Of 1,519 utterances in 5.31 hours; nothing else differs."""
    sweep = find.find_sweep("asr.laptop_table2")
    whole = as_json(sweep.config(sweep.condition(kind), 1))
    less = as_json(sweep.config(sweep.condition(f"{kind},ar=half_an_hour"), 1))
    minutes = less["ar"]["data"]["num_train_utterances"] * 5.31 * 60 / 1519
    assert abs(minutes - 30) < 0.2
    assert whole["ar"]["data"] is None
    assert less["controller"] == whole["controller"] and less["data"] == whole["data"]


def test_the_search_does_not_look_at_the_test_set() -> None:
    for name in ("asr.laptop_search_learned", "lm.search_pareto_laptop"):
        assert find.find_sweep(name).objectives[0].metric.startswith("valid_")
