"""The corpus with a known answer: what its docstring derives, of the data and of the best decisions on them."""

import itertools

import numpy as np
import pytest
import torch

from trainables.asr.data import onsets
from trainables.asr.data.config import Onsets
from trainables.asr.data.examples import load_examples
from trainables.asr.data.features import fbank
from trainables.asr.phone_errors import edits
from trainables.config import content_hash

SURPRISING = ["onsets", "all"]


@pytest.mark.parametrize("surprising", SURPRISING)
def test_the_front_end_sees_the_frames_as_they_are_made(surprising):
    config = Onsets(surprising=surprising)
    for identity in ("train-00000", "test-00001"):
        waveform = onsets.waveform(config, identity)
        assert waveform.abs().max() < 1
        seen = fbank(waveform, onsets.FEATURES).numpy()
        np.testing.assert_allclose(seen, onsets.log_energies(config, identity), atol=0.02)


@pytest.mark.parametrize("surprising", SURPRISING)
def test_each_tone_has_energy_whatever_stands_beside_it(surprising):
    quiet, (waves, energies_of_tones) = onsets.QUIET[surprising], onsets._tones()
    marks = [(quiet,) * 5, (-1.0, -1.0, -1.0, 1.0, 1.0), (1.0, -1.0, -1.0, -1.0, 1.0)]
    loudest = {"onsets": (0.0,), "all": (-onsets.HUM, onsets.HUM)}[surprising]
    signs = [*itertools.product((-1.0, 1.0), repeat=2)] + ([(0.0, 0.0)] if surprising == "onsets" else [])
    frames = [(*a, *b, c) for a, b, c in itertools.product(marks, signs, loudest)]
    frames = [one for one in frames if surprising == "all" or (one[0] == quiet) == (one[5] == 0)]
    assert len(waves) == onsets.NUM_BANDS
    assert (np.exp(np.array(frames)) @ energies_of_tones > 0).all()


@pytest.mark.parametrize("surprising", SURPRISING)
def test_a_label_is_told_by_its_onset_alone(surprising):
    """Given the label, frames other than its onset have the means that they have without it."""
    config = Onsets(surprising=surprising, num_train_utterances=2000)
    train = onsets.make_splits(config).train
    frames = np.array([onsets.log_energies(config, one.identity) for one in train]).reshape(2000, 4, 4, -1)
    is_b = np.array([one.labels for one in train]) % 2 == 1
    assert abs(is_b.mean() - 0.5) < 0.02
    x, y = frames[:, :, 0, 5], frames[:, :, 0, 6]
    np.testing.assert_array_equal(is_b, x * y < 0)
    products = frames[:, :, 1:, 5] * frames[:, :, 1:, 6]
    for values in (products, *np.moveaxis(frames[:, :, 1:], -1, 0)):
        assert np.abs(values[is_b].mean(0) - values[~is_b].mean(0)).max() < 0.1


def test_no_linear_decision_reads_more_than_three_of_the_four_pairs():
    """Over many random directions and thresholds at most 3 of 4, and 3 are reached."""
    draw = np.random.default_rng(1)
    pairs = np.array(list(itertools.product((-1, 1), repeat=2)))
    weights, biases = draw.normal(size=(3, 2, 20_000)), draw.normal(size=(3, 1, 20_000))
    said = np.argmax(np.einsum("pd,kdn->kpn", pairs, weights) + biases, axis=0)
    read = (said == (pairs.prod(1) < 0)[:, None]).sum(0)
    assert read.max() == 3


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.55])
def test_best_decisions_have_the_derived_error_under_the_edit_distance(rate):
    """Three pairs of four are read without the big network, all with it: (1 - q) / 4."""
    config, draw = Onsets(num_test_utterances=3000), np.random.default_rng(2)
    wrong = 0
    for one in onsets.make_splits(config).test:
        x, y = onsets._signs(config, one.identity)[:, :, 0]
        is_b = np.where(draw.random(4) < rate, x * y < 0, (x < 0) & (y > 0))
        wrong += edits(one.labels, tuple((2 * np.arange(4) + is_b).tolist())).total
    assert wrong / 12_000 == pytest.approx((1 - rate) / 4, abs=4 * np.sqrt(0.25 * 0.75 / 12_000))


@pytest.mark.parametrize(("surprising", "expected"), [("onsets", (1, 0, 0, 0)), ("all", (1, 1, 1, 1))])
def test_what_cannot_be_foreseen_costs_the_derived_surprisal(surprising, expected):
    """1/2 the squared distance to the mean of the frames at one place: marks vary with nothing but the place."""
    config = Onsets(surprising=surprising, num_train_utterances=2000)
    train = onsets.make_splits(config).train
    frames = np.array([onsets.log_energies(config, one.identity) for one in train])[:, :, :-1]  # the hum aside
    costs = 0.5 * ((frames - frames.mean(0)) ** 2).sum(-1).mean(0).reshape(4, 4)
    np.testing.assert_allclose(costs, np.broadcast_to(expected, (4, 4)), atol=0.02)


def test_it_is_the_same_again_and_loads_as_any_other_corpus():
    config = Onsets(num_train_utterances=3, num_validation_utterances=2, num_test_utterances=2)
    examples = load_examples(config, onsets.FEATURES)
    assert [len(part) for part in (examples.train, examples.validation, examples.test)] == [3, 2, 2]
    assert examples.labels == ("a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4")
    assert {len(one.frames) for one in examples.train} == {16}
    assert torch.equal(examples.train[0].frames, fbank(onsets.waveform(config, "train-00000"), onsets.FEATURES))
    assert content_hash(config) != content_hash(config.model_copy(update={"surprising": "all"}))
