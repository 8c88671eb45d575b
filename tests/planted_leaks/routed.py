"""The package in examples/routed_bytes, with one planted fault each."""

import sys
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

EXAMPLES = str(Path(__file__).parents[2] / "examples")
if EXAMPLES not in sys.path:
    sys.path.append(EXAMPLES)

from planting import leaky  # noqa: E402
from routed_bytes import cost  # noqa: E402
from routed_bytes import train as example  # noqa: E402
from routed_bytes.config import ByRate, RoutedBytes, TopK  # noqa: E402
from routed_bytes.model import RoutedTransformer  # noqa: E402
from routed_bytes.sweeps import SMOKE  # noqa: E402

import ponderay  # noqa: E402
from trainables.conditional import top_k  # noqa: E402

examples, fingerprint, metrics, num_steps, promises, reads, selection = (
    example.examples, example.fingerprint, example.metrics, example.num_steps, example.promises, example.reads,
    example.selection,
)  # fmt: skip


class Leaky(RoutedBytes):
    leak: str = ""


@contextmanager
def top_k_of_all():
    # WRONG: in testing too the k highest scores of the whole sequence are chosen, whose later bytes are not there yet
    original = top_k.TopKRouter.forward

    def forward(self, x, k):
        found = original(self, x, k)
        return found if self.training else top_k.TopKChoice(
            top_k.highest(found.scores, k), found.scores, found.predictor_loss
        )  # fmt: skip

    with mock.patch.object(top_k.TopKRouter, "forward", forward):
        yield


@contextmanager
def threshold_of_batch():
    # WRONG: the threshold of surprisal is not the training text's but a quantile of the very batch that is tested
    original = RoutedTransformer.told

    def told(self, read, routing):
        if self.training:
            return original(self, read, routing)
        measured = self.measured(read)
        return measured > measured.quantile(1 - self.controller.rate)

    with mock.patch.object(RoutedTransformer, "told", told):
        yield


@contextmanager
def free_byte_model():
    # WRONG: the frozen model that the controller asks of every byte is not counted, because it is not trained
    with mock.patch.object(cost, "byte_model_macs", lambda config: 0):
        yield


def train(config, trial):
    with globals()[config.leak]():
        example.train(config, trial)


def evaluate(config, checkpoint, evaluation, trial):
    with globals()[config.leak]():
        example.evaluate(config, checkpoint, evaluation, trial)


def predict(config, checkpoint, evaluation, trial, examples):
    with globals()[config.leak]():
        return example.predict(config, checkpoint, evaluation, trial, examples)


def _sweep(leak, controller):
    return ponderay.Sweep(
        name=f"planted_routed_{leak}",
        description=f"{leak} in routed bytes, planted.",
        trainable=__name__,
        base=leaky(Leaky, SMOKE, leak=leak, controller=controller),
        conditions=ponderay.grid({"model.big_width": [32]}),
        objectives=(ponderay.Objective("bits_per_byte"), ponderay.Objective("macs_per_token")),
        prerequisites=(ponderay.Prerequisite("byte_model", "routed_bytes.pretrain", "pretraining"),),
    )


routed_top_k_of_all = _sweep("top_k_of_all", TopK(rate=0.25))
routed_threshold_of_batch = _sweep("threshold_of_batch", ByRate(kind="surprisal", rate=0.25))
routed_free_byte_model = _sweep("free_byte_model", ByRate(kind="entropy", rate=0.25))
