import math

import numpy as np
import pytest
import torch

from trainables.asr import evaluation
from trainables.asr.autoregressive import AutoregressiveModel
from trainables.asr.config import AsrConfig, Pretraining, Random, Recurrent, Surprisal
from trainables.asr.controller import Control
from trainables.asr.data.config import Features
from trainables.asr.data.examples import Example
from trainables.asr.evaluation import Outcome, Results, label_of_frames
from trainables.asr.latency import streaming_latency_ms
from trainables.asr.phone_errors import Edits
from trainables.conditional.surprisal_controller import SurprisalFit

CONFIG = AsrConfig(
    ar=Pretraining(hidden_size=4, features=Features(num_mel_bins=8)),
    network=Recurrent(pre_hidden_size=2, big_hidden_size=4, post_hidden_size=2),
    controller=Random(),
)


def spikes(length: int, places: dict[int, int], num_symbols: int = 4) -> torch.Tensor:
    best = torch.full((length,), num_symbols - 1)
    for place, label in places.items():
        best[place] = label
    return (10.0 * torch.nn.functional.one_hot(best, num_symbols)).log_softmax(-1)


def test_without_times_a_blank_belongs_to_the_nearest_label_of_the_alignment():
    example = Example("a", torch.zeros(10, 8), labels=(2, 0, 0))
    spoken = label_of_frames(CONFIG, example, spikes(10, {2: 2, 6: 0, 8: 0}))
    assert spoken.tolist() == [2, 2, 2, 2, 2, 0, 0, 0, 0, 0]


def test_with_times_they_are_taken_whatever_the_alignment():
    """Frames every 20 ms with their middle at 12.5 ms; from 40 to 90 ms lie those at 52.5 and 72.5."""
    example = Example("a", torch.zeros(6, 8), labels=(1,), times_s=((0.04, 0.09),))
    assert label_of_frames(CONFIG, example, spikes(6, {5: 1})).tolist() == [-1, -1, 1, 1, -1, -1]


@pytest.mark.parametrize("labels", [(), (0, 0), (0, 1, 2)])
def test_what_cannot_be_aligned_has_no_labels(labels):
    example = Example("a", torch.zeros(2, 8), labels=labels)
    assert label_of_frames(CONFIG, example, spikes(2, {})).tolist() == [-1, -1]


def outcome(class_frames, surprisals, num_big, macs, edits, loss_nats) -> Outcome:
    return Outcome("a", edits, loss_nats, 10, num_big, macs, np.array(surprisals), class_frames)


def test_metrics_are_sums_over_utterances_by_hand():
    results = Results(
        (
            outcome({"vowel": (4, 3), "stop": (2, 0)}, [1.0, 2.0, 3.0], 3, 100, Edits(1, 0, 2, 10), 30.0),
            outcome({"vowel": (6, 2)}, [4.0, 5.0], 2, 200, Edits(0, 3, 0, 5), 50.0),
            outcome({}, [], 0, 0, Edits(0, 0, 5, 5), math.inf),
        ),
        duration_s=0.2,
    )
    found = evaluation.test_metrics(results, CONFIG, Control(CONFIG.controller), num_labels=3)
    assert found["per"] == 11 / 20
    assert (found["substitution_rate"], found["insertion_rate"], found["deletion_rate"]) == (1 / 20, 3 / 20, 7 / 20)
    assert (found["macs_per_frame"], found["routing_rate"]) == (10.0, 5 / 30)
    assert (found["routing_rate_vowel"], found["routing_rate_stop"]) == (5 / 10, 0.0)
    assert "routing_rate_nasal" not in found
    assert (found["surprisal_mean_nats"], found["surprisal_p50_nats"]) == (3.0, 3.0)
    assert found["surprisal_p10_nats"] == pytest.approx(1.4)
    assert found["surprisal_std_nats"] == pytest.approx(2**0.5)
    assert (found["test_loss_nats"], found["num_too_short"]) == (40.0, 1)
    assert found["real_time_factor"] == pytest.approx(0.2 / (30 * 0.02))
    assert found["eval_frames_per_s"] == pytest.approx(150.0)


def test_a_stream_is_timed_frame_by_frame(monkeypatch):
    """A clock that moves by one second at each look: one frame takes one."""
    clock = iter(range(10_000))
    monkeypatch.setattr("trainables.asr.latency.time.perf_counter", lambda: float(next(clock)))
    control = Control(Surprisal(), fit=SurprisalFit(1.0, 0.0, 0.5, 0.04))
    assert streaming_latency_ms(AutoregressiveModel(CONFIG.ar), control, torch.randn(30, 8)) == 1000.0
    assert next(clock) == 60
