"""Both conventions on a constructed batch: what padding adds, and what it hides."""

import math

import pytest
import torch

from trainables.asr import cost, evaluation, released
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import GREEDY, AsrConfig, Pretraining, Recurrent, Surprisal
from trainables.asr.controller import Control
from trainables.asr.data.config import Features, Synthetic
from trainables.asr.data.corpus import Utterance
from trainables.asr.data.examples import Example
from trainables.asr.data.features import fbank
from trainables.asr.recogniser import Output, Recogniser
from trainables.conditional.surprisal_controller import SurprisalFit

CONFIG = AsrConfig(
    data=Synthetic(),
    ar=Pretraining(hidden_size=6, features=Features(num_mel_bins=8)),
    network=Recurrent(pre_hidden_size=4, big_hidden_size=16, post_hidden_size=4),
    controller=Surprisal(),
)
CONTROL = Control(CONFIG.controller, "deterministic", SurprisalFit(1.0, 0.0, 0.5, 0.04))
SIL, A, B = 0, 1, 2
LABELS = ("sil", "aa", "b")
LENGTHS_S = {"short": 0.225, "long": 0.425}
REFERENCES = {"short": (A, SIL, SIL, B), "long": (A, B)}


class ScriptedRecogniser(Recogniser):
    """Recognises `a sil b` in the first frames of everything, and `b` in each tenth frame; frames below zero go big."""

    def forward(self, frames, num_frames, control, uniform, kept=None):
        batch, length = frames.shape[:2]
        best = torch.full((batch, length), 3)
        best[:, :3] = torch.tensor([A, SIL, B])
        best[:, 9::10] = B
        big = (frames.mean(-1) < -12).float() * (torch.arange(length) < num_frames[:, None])
        scores = torch.nn.functional.one_hot(best, 4).float() * 20
        return Output(scores.log_softmax(-1), torch.zeros(batch, length), big, big)


@pytest.fixture
def recogniser(monkeypatch) -> ScriptedRecogniser:
    noise = {name: 0.1 * torch.randn(int(16_000 * length)) for name, length in LENGTHS_S.items()}
    monkeypatch.setattr(released, "waveform_of", lambda utterance, config: noise[utterance.identity])
    return ScriptedRecogniser(CONFIG, len(LABELS), AutoregressiveModel(CONFIG.ar))


def utterances() -> list[Utterance]:
    return [Utterance(name, "s", REFERENCES[name], int(16_000 * length)) for name, length in LENGTHS_S.items()]


def test_padding_costs_and_errs_only_as_released(recogniser):
    """The short one has 11 frames, the long one 21; padded as waveforms both have 21. Of the ten more, the
    first still touches the audio and nine are digital silence.

    Valid frames: the short one is decoded as `a sil b b`, one edit from `a sil sil b`; the long one as `a sil b b b`,
    three insertions into `a b`. Released: silences merged and hypotheses cut, `a sil b` against `a sil b`, and `a sil`
    against `a b`. Only silent frames, which are all padding, go big.
    """
    features = CONFIG.ar.features
    examples = [
        Example(u.identity, fbank(released.waveform_of(u, CONFIG.data), features), u.labels) for u in utterances()
    ]
    key = (1, "stochastic")
    results = evaluation.score(recogniser, CONTROL, examples, LABELS, key, GREEDY)
    valid = evaluation.test_metrics(results, CONFIG, CONTROL, len(LABELS))
    padded = released.metrics(recogniser, CONTROL, utterances(), LABELS, key, GREEDY)
    assert [o.num_frames for o in results.outcomes] == [21, 11]
    assert valid["per"] == pytest.approx((1 + 3) / (4 + 2))
    assert padded["released_per"] == pytest.approx((0 / 3 + 1 / 2) / 2)
    parts = cost.part_parameters(CONFIG, len(LABELS))
    difference = padded["released_flops_per_frame"] - valid["paper_flops_per_frame"]
    assert valid["routing_rate"] == 0
    assert difference == pytest.approx(9 / 42 * (parts["big"] - parts["small"]))
    assert (valid["substitution_rate"], valid["insertion_rate"]) == pytest.approx((1 / 6, 3 / 6))


def test_batches_are_random_and_cover_every_utterance_once():
    many = [Utterance(str(n), "s", (), 100 * n) for n in range(70)]
    groups = released.batches(many, seed=1)
    assert [len(group) for group in groups] == [32, 32, 6]
    assert sorted(int(u.identity) for group in groups for u in group) == list(range(70))
    assert [u.identity for u in groups[0]] != [u.identity for u in released.batches(many, seed=2)[0]]


def test_digital_silence_is_the_floor_of_the_front_end():
    padded = released.pad([torch.ones(400), torch.ones(2000)])
    assert padded.shape == (2, 2000) and not padded[0, 400:].any()
    frames = fbank(padded[0], CONFIG.ar.features)
    assert float(frames[-1].max()) == pytest.approx(math.log(torch.finfo(torch.float32).eps))
