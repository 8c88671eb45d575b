import json
import math
from dataclasses import replace

import pytest

from orchestrator.results.study import Replicate
from orchestrator.tracking.replicate_tags import decode, encode

WHOLE = Replicate(
    key="0123456789abcdef",
    condition="λ = 1e-4",
    seed=3,
    state="failed",
    metrics={"per@stochastic": 0.1 + 0.2, "loss": math.nan, "up": math.inf, "down": -math.inf, "tiny": 5e-324},
    error='ValueError: "x" must be\\ in [0, 1), but got ☃.',
    is_lost=True,
    code_version="abc",
    run_id="r",
    evaluations=frozenset({"stochastic.1", "deterministic.2"}),
    data_fingerprint="d",
    duration_s=1.5,
    num_devices=0.25,
    size_bytes=2**40,
    peak_host_bytes=7,
    peak_gpu_bytes=8,
    host="h",
    device="cpu",
)


def test_every_field_comes_back_as_it_was_not_a_number_too():
    (found,) = decode("λ = 1e-4", encode(WHOLE))
    assert replace(found, metrics={}) == replace(WHOLE, metrics={})
    assert repr(found.metrics) == repr(WHOLE.metrics)
    assert math.isnan(found.metrics["loss"])


def test_a_short_state_is_one_json_object():
    ((name, text),) = encode(WHOLE).items()
    assert name == "ponderay.replicate.3"
    content = json.loads(text)
    assert content["chunks"] == 1
    assert content["state"] == "failed"
    assert "condition" not in content and "seed" not in content


def test_seeds_come_in_order_and_other_tags_are_passed_over():
    tags = {"ponderay.condition": "c", "ponderay.replicate.x": "?", "mlflow.note.content": "{"}
    for seed in (10, 9, 1):
        tags |= encode(Replicate("k", "c", seed, "running"))
    assert [replicate.seed for replicate in decode("c", tags)] == [1, 9, 10]


def test_long_states_are_split_into_tags_that_mlflow_takes():
    """Around the ends of the first and second tag, character by character."""
    numbers = set()
    for length in (*range(7080, 7260), *range(14580, 14760), 100_000):
        whole = Replicate("k", "c", 1, "failed", error="e" * length)
        tags = encode(whole)
        assert max(map(len, tags.values())) <= 7500
        assert all(tags.values())
        assert list(tags) == ["ponderay.replicate.1", *(f"ponderay.replicate.1.{i}" for i in range(1, len(tags)))]
        assert decode("c", tags) == [whole]
        numbers.add(len(tags))
    assert numbers == {1, 2, 3, 14}


def test_what_is_left_of_a_longer_state_does_no_harm():
    tags: dict[str, str] = {}
    for length in (40_000, 9_000, 10, 9_000):
        state = Replicate("k", "c", 1, "failed", error='\u2603"\\' * (length // 3))
        tags |= encode(state)
        assert decode("c", tags) == [state]


def test_a_missing_or_torn_tag_is_named():
    tags = encode(Replicate("k", "c", 4, "failed", error="e" * 20_000))
    for damaged in (
        {name: text for name, text in tags.items() if not name.endswith(".2")},
        tags | {"ponderay.replicate.4.1": "e"},
        tags | {"ponderay.replicate.4": "no json"},
    ):
        if damaged.get("ponderay.replicate.4.1") == "e":
            damaged["ponderay.replicate.4.2"] = "e"
        with pytest.raises(ValueError, match=r"`ponderay.replicate.4` of condition 'c'"):
            decode("c", damaged)


def test_fields_of_other_versions_are_passed_over_and_missing_ones_have_their_defaults():
    text = '{"chunks": 1, "key": "k", "state": "complete", "colour": "red"}'
    assert decode("c", {"ponderay.replicate.2": text}) == [Replicate("k", "c", 2, "complete")]
