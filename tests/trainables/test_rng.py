import random

import numpy as np
import torch

from trainables import checkpoint, rng


def draws(stream: torch.Generator) -> list[float]:
    return [
        random.random(),
        float(np.random.rand()),
        float(np.random.randn()),
        float(torch.rand(1)),
        float(torch.rand(1, generator=stream)),
    ]


def test_captured_streams_go_on_with_the_same_digits_after_a_file(tmp_path):
    rng.seed_everything(3)
    stream = rng.generator(3, "own")
    draws(stream)
    path = checkpoint.save(tmp_path / "state.pt", rng.capture(own=stream))
    expected = draws(stream) + draws(stream)
    rng.seed_everything(99)
    other = rng.generator(99, "own")
    rng.put_back(checkpoint.load(path), own=other)
    assert draws(other) + draws(other) == expected


def test_streams_of_different_names_and_seeds_differ():
    firsts = {float(torch.rand(1, generator=rng.generator(seed, name))) for seed in (1, 2) for name in "ab"}
    assert len(firsts) == 4


def test_keyed_draws_depend_on_their_key_and_place_alone():
    long = rng.keyed_uniform(50, 1, "stochastic", "utterance")
    assert (rng.keyed_uniform(20, 1, "stochastic", "utterance") == long[:20]).all()
    assert (rng.keyed_uniform(50, 1, "other", "utterance") != long).all()
    assert ((long >= 0) & (long < 1)).all()


def test_keyed_draws_are_uniform():
    values = np.concatenate([rng.keyed_uniform(100, 1, "e", i) for i in range(200)])
    counts = np.histogram(values, bins=10, range=(0, 1))[0]
    assert abs(values.mean() - 0.5) < 4 * np.sqrt(1 / 12 / len(values))
    assert (abs(counts - 2000) < 5 * np.sqrt(2000 * 0.9)).all()
