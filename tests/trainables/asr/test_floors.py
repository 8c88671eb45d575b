"""The floors of an autoregressive model, by NumPy's least squares over whole design matrices."""

import numpy as np
import pytest
import torch

from tests.trainables.asr.test_train import CONFIG, DATA
from tests.trainables.folder_trial import FolderTrial
from trainables.asr import floors, pretrain
from trainables.asr.config import Pretraining
from trainables.asr.data.examples import AudioExamples, Example, load_audio
from trainables.asr.metrics import METRICS

NAMES = {"repeated_frame_nats", "linear_2_frames_nats", "linear_4_frames_nats"}


def design(examples, num_before, mean):
    """Each frame, and before it those that it follows, the mean where the utterance has not begun; and a 1."""
    rows, targets = [], []
    for example in examples:
        frames = example.frames.numpy().astype(np.float64)
        for time, frame in enumerate(frames):
            before = [frames[time - lag] if time >= lag else mean for lag in range(1, num_before + 1)]
            rows.append(np.concatenate([*before, [1.0]]))
            targets.append(frame)
    return np.array(rows), np.array(targets)


def by_numpy(examples, num_before):
    mean = np.concatenate([example.frames.numpy() for example in examples.train]).astype(np.float64).mean(0)
    rows, targets = design(examples.train, num_before, mean)
    weights, *_ = np.linalg.lstsq(rows, targets, rcond=None)
    rows, targets = design(examples.validation, num_before, mean)
    return 0.5 * np.square(targets - rows @ weights).sum(1).mean()


@pytest.fixture(scope="module")
def examples() -> AudioExamples:
    """Frames that follow from the two before them by known matrices, and noise; of 5 bins around -8."""
    draws = np.random.default_rng(0)
    last, before = 0.5 * np.eye(5), 0.1 * draws.normal(size=(5, 5))

    def made(part, number):
        frames = draws.normal(size=(draws.integers(1, 40), 5))
        for time in range(2, len(frames)):
            frames[time] += frames[time - 1] @ last + frames[time - 2] @ before
        return Example(f"{part}-{number}", torch.from_numpy(frames - 8).float())

    return AudioExamples(*(tuple(made(part, n) for n in range(30)) for part in ("train", "validation")))


def test_floors_are_those_of_least_squares_on_the_training_audio(examples):
    found = floors.floors(examples)
    assert set(found) == NAMES
    for number in (2, 4):
        assert found[f"linear_{number}_frames_nats"] == pytest.approx(by_numpy(examples, number), rel=1e-7)
    mean = np.concatenate([example.frames.numpy() for example in examples.train]).astype(np.float64).mean(0)
    rows, targets = design(examples.validation, 1, mean)
    repeated = 0.5 * np.square(targets - rows[:, :-1]).sum(1).mean()
    assert found["repeated_frame_nats"] == pytest.approx(repeated, rel=1e-7)
    assert found["repeated_frame_nats"] > found["linear_2_frames_nats"]


def test_an_utterance_of_one_frame_and_a_bin_that_never_varies_have_floors(examples):
    """Its only prediction is the mean, which a bin without variance has always."""
    flat = [
        Example(one.identity, one.frames.index_fill(1, one.frames.new_tensor([3]).long(), 2.0))
        for one in examples.train
    ]
    short = Example("short", flat[0].frames[:1])
    found = floors.floors(AudioExamples((*flat, short), (flat[1], short)))
    assert all(np.isfinite(value) and value > 0 for value in found.values())


def test_pretraining_reports_surprisal_beside_the_floors_before_it_trains_and_of_the_best_checkpoint(tmp_path):
    config = Pretraining(data=DATA, hidden_size=12, training=CONFIG.ar.training)
    audio = load_audio(DATA, config.features)
    pretrain.train(config, trial := FolderTrial(tmp_path))
    expected = floors.floors(audio)
    assert {name: trial.reports[0][name] for name in NAMES} == expected
    for step, report in trial.reports.items():
        assert report["valid_surprisal_nats"] == pytest.approx(40 * report["valid_mse"], rel=1e-12)
        assert (set(report) >= NAMES) == (step == 0)
    pretrain.evaluate(config, tmp_path / "2.pt", None, tested := FolderTrial(tmp_path / "test"))
    assert tested.reports == {2: expected | {n: trial.reports[2][n] for n in ("valid_mse", "valid_surprisal_nats")}}
    assert set(tested.reports[2]) <= {metric.name for metric in METRICS} == {metric.name for metric in pretrain.metrics}
