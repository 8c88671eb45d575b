"""The speech sweeps of a laptop hold what their descriptions promise."""

import pytest

from search_spaces import find
from search_spaces.asr_conditions import NUM_LABELS
from trainables.asr.data.phones import PHONES_SIL_SPN
from trainables.asr.macs import part_macs
from trainables.config import as_json, content_hash


@pytest.mark.parametrize("name", ["asr.laptop_table2", "asr.laptop_model3"])
@pytest.mark.parametrize("kind", ["surprisal", "random"])
def test_the_autoregressive_model_learns_from_half_an_hour_or_from_all(kind: str, name: str) -> None:
    """Of 1,519 utterances in 5.31 hours; nothing else differs."""
    sweep = find.find_sweep(name)
    whole = as_json(sweep.config(sweep.condition(kind), 1))
    less = as_json(sweep.config(sweep.condition(f"{kind},ar=half_an_hour"), 1))
    minutes = less["ar"]["data"]["num_train_utterances"] * 5.31 * 60 / 1519
    assert abs(minutes - 30) < 0.2
    assert whole["ar"]["data"] is None
    assert less["controller"] == whole["controller"] and less["data"] == whole["data"]


@pytest.mark.parametrize("size", ["", ".smoke"])
@pytest.mark.parametrize("kind", ["surprisal", "random"])
def test_a_plain_model_3_costs_what_routing_does(kind: str, size: str) -> None:
    """By hand, of 11 frames with 64 features and 42 outputs: small 29,568, big 381,952, regressor 5,120."""
    sweep = find.find_sweep(f"asr.laptop_model3{size}")
    config, rival = (sweep.config(sweep.condition(name), 1) for name in (kind, f"{kind},plain"))
    parts, wide = part_macs(config, NUM_LABELS), part_macs(rival, NUM_LABELS).big
    assert (parts.small, parts.big, parts.regressor) == (29_568, 381_952, 5_120)
    routed = (29_568 + 381_952) / 2 + (5_120 if kind == "surprisal" else 0)
    assert wide == pytest.approx(routed, rel=0.005)


def test_there_are_as_many_labels_as_the_plain_networks_are_made_for() -> None:
    sweep = find.find_sweep("asr.laptop_model3")
    assert sweep.base.data.phones == "dictionary_spn"
    assert len(PHONES_SIL_SPN) == NUM_LABELS


def test_the_seeds_that_confirm_are_new_and_the_models_the_same() -> None:
    first, new = find.find_sweep("asr.laptop_model3"), find.find_sweep("asr.confirm_model3")
    assert not set(first.seeds) & set(new.seeds) and len(new.seeds) == 15
    for condition in new.conditions:
        before, after = (sweep.config(sweep.condition(condition.name), 1) for sweep in (first, new))
        assert content_hash(before) == content_hash(after)
    assert [one.each_seed for one in new.prerequisites] == [True]


def test_the_search_does_not_look_at_the_test_set() -> None:
    for name in ("asr.laptop_search_learned", "lm.search_pareto_laptop"):
        assert find.find_sweep(name).objectives[0].metric.startswith("valid_")
