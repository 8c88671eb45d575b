"""The speech recogniser as it ships, on synthetic speech, with one planted fault each.

Each sweep has data of its own (`data.seed`), because the family keeps what it has read by its config.
"""

from contextlib import contextmanager
from unittest import mock

from planting import leaky, replaced

import ponderay
from search_spaces.asr_conditions import AUTOREGRESSIVE
from search_spaces.asr_sizes import laptop
from trainables.asr import train as family
from trainables.asr.config import AsrConfig, Random
from trainables.asr.data.config import Synthetic

fingerprint, metrics, num_steps, reads, selection = (
    family.fingerprint, family.metrics, family.num_steps, family.reads, family.selection,
)  # fmt: skip


class Leaky(AsrConfig):
    leak: str = ""


@contextmanager
def _around_forward(change):
    """A recogniser whose `forward` gets what `change` makes of frames and their numbers in testing."""
    from trainables.asr.recogniser import Recogniser

    original = Recogniser.forward

    def forward(self, frames, num_frames, *arguments):
        if not self.training:
            frames, num_frames = change(frames, num_frames)
        return original(self, frames, num_frames, *arguments)

    with mock.patch.object(Recogniser, "forward", forward):
        yield


def batch_mean():
    # WRONG: in testing a twentieth of the mean over the whole batch, its padding included, goes off the frames
    return _around_forward(lambda frames, num_frames: (frames - 0.05 * frames.mean((0, 1)), num_frames))


def padding_in_large_batches():
    # WRONG: batches of more than four forget the lengths, so the backward GRUs read padding before speech
    def change(frames, num_frames):
        return frames, num_frames if len(frames) <= 4 else num_frames * 0 + frames.shape[1]

    return _around_forward(change)


@contextmanager
def label_draws():
    # WRONG: the draws that route are keyed by the utterance's phones too, "to tell equal names apart"
    import torch

    from trainables import rng
    from trainables.asr import recogniser

    original = recogniser.keyed_draws

    def keyed_draws(batch, seed, name):
        uniform = original(batch, seed, name)
        for row, (labels, length) in enumerate(zip(batch.labels, batch.num_frames.tolist(), strict=True)):
            draws = rng.keyed_uniform(length, seed, name, batch.identities[row], labels)
            uniform[row, :length] = torch.from_numpy(draws)
        return uniform

    with replaced(original, keyed_draws):
        yield


@contextmanager
def same_speakers():
    # WRONG: utterances are split and speakers are not: each speaker is trained on and tested
    from trainables.asr.data import synthetic
    from trainables.asr.data.corpus import Splits

    def make_splits(config):
        speakers = [f"speaker{i:02d}" for i in range(config.num_speakers)]
        return Splits(
            train=synthetic._utterances(config, speakers, config.num_train_utterances, "train"),
            validation=synthetic._utterances(config, speakers, config.num_validation_utterances, "validation"),
            test=synthetic._utterances(config, speakers, config.num_test_utterances, "test"),
            labels=synthetic.LABELS,
        )

    with replaced(synthetic.make_splits, make_splits):
        yield


@contextmanager
def dense_route():
    # WRONG: both networks run on every frame and one of the two is kept; the one that was chosen is all that is counted
    import torch

    from trainables.asr import network

    original = network.route

    def route(rows, choose_big, small, big):
        if small is None or big is None:
            return original(rows, choose_big, small, big)
        return torch.where(choose_big[:, None], big(rows), small(rows))

    with replaced(original, route):
        yield


def train(config, trial):
    with globals()[config.leak]():
        family.train(config, trial)


def evaluate(config, checkpoint, evaluation, trial):
    with globals()[config.leak]():
        family.evaluate(config, checkpoint, evaluation, trial)


def examples(config, part):
    with globals()[config.leak]():
        return family.examples(config, part)


def predict(config, checkpoint, evaluation, trial, examples):
    family.predict  # noqa: B018  loads what is replaced
    with globals()[config.leak]():
        return family.predict(config, checkpoint, evaluation, trial, examples)


def promises(config, evaluation):
    return family.promises(config, evaluation)


def _sweep(leak, seed, **values):
    data = Synthetic(
        num_speakers=6, num_train_utterances=12, num_validation_utterances=3, num_test_utterances=6,
        num_words_per_utterance=2, seed=seed,
    )  # fmt: skip
    base = laptop(data, num_epochs=3, num_pretraining_epochs=1, keep_every=4)
    return ponderay.Sweep(
        name=f"planted_asr_{leak}",
        description=f"{leak} in the speech recogniser, planted.",
        trainable=__name__,
        base=leaky(Leaky, base, leak=leak, **values),
        conditions=ponderay.grid({"network.big_hidden_size": [64]}),
        objectives=(ponderay.Objective("per"), ponderay.Objective("macs_per_frame")),
        prerequisites=(AUTOREGRESSIVE,),
    )


asr_batch_mean = _sweep("batch_mean", 11)
asr_padding_in_large_batches = _sweep("padding_in_large_batches", 12)
asr_label_draws = _sweep("label_draws", 13, controller=Random())
asr_same_speakers = _sweep("same_speakers", 14)
asr_dense_route = _sweep("dense_route", 15)
