"""The transformer as a trainable."""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ponderay import Example, Metric, Prediction, Promises, Trial
from routed_bytes import cost, pretrain, sequences, text
from routed_bytes.byte_model import FrozenByteModel
from routed_bytes.config import RoutedBytes
from routed_bytes.model import RoutedTransformer
from trainables import rng
from trainables.cost import masked_attention_macs

metrics = [
    Metric("bits_per_byte", "bit", "minimize", "of the test text, in sequences that know nothing of one another"),
    Metric("macs_per_token", "MAC", "minimize", "multiply-accumulates to predict a byte in testing, all that run"),
    Metric("training_macs_per_token", "MAC", "minimize", "the same of the forward pass in the last training steps"),
    Metric("big_share", "", "none", "of the choices of all layers in testing, those of the big network"),
    Metric("train_bits_per_byte", "bit", "minimize", "mean of the training steps since the last report"),
    Metric("train_big_share", "", "none", "of the choices of those steps, those of the big network"),
    Metric("valid_bits_per_byte", "bit", "minimize", "as bits_per_byte, of the validation text"),
]


def reads(config: RoutedBytes) -> object:
    """What of `config` decides the fingerprint."""
    return config.text, config.model.context


def fingerprint(config: RoutedBytes) -> str:
    """The fingerprint of the text."""
    return text.fingerprint(config.text, config.model.context)


def selection(config: RoutedBytes) -> dict[str, str]:
    """The checkpoint that is tested: the best one in validation."""
    return {"test": "valid_bits_per_byte"}


def num_steps(config: RoutedBytes) -> int:
    """The last step that `train` reports."""
    return config.training.num_steps


def train(config: RoutedBytes, trial: Trial) -> None:
    """Draws weights, places of sequences and random choices each from a stream of the seed: seeds are paired."""
    asked, device = config.training, _device()
    read, valid = (sequences.numbers(text.parts(config.text)[part]) for part in ("train", "valid"))
    model, first, sums = _new(config, trial, read).to(device), 1, torch.zeros(2, device=device)
    order, routing = (rng.generator(config.seed, name) for name in ("order", "routing"))
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=asked.weight_decay)
    if path := trial.restore():
        state = torch.load(path, weights_only=True, map_location="cpu")
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        order.set_state(state["order"])
        routing.set_state(state["routing"])
        first = state["step"] + 1
    for step in range(first, asked.num_steps + 1):
        batch = sequences.drawn(read, asked.batch_size, config.model.context + 1, order).to(device)
        predicted = model(batch[:, :-1], routing)
        nats = F.cross_entropy(predicted.logits.flatten(0, 1), batch[:, 1:].flatten())
        rate = sequences.rate_at(step, asked.num_steps, asked.learning_rate)
        sequences.descend(model, optimiser, nats + predicted.penalty, rate)
        sums += torch.stack([nats.detach() / math.log(2), predicted.chosen.float().mean()])
        if step % asked.report_every == 0 or step == asked.num_steps:
            num_since = (step - 1) % asked.report_every + 1
            bits, big_share = (sums / num_since).tolist()
            found = {"train_bits_per_byte": bits, "train_big_share": big_share}
            found["training_macs_per_token"] = cost.training_macs_per_token(config, big_share)
            found["valid_bits_per_byte"] = test(model, valid, config).bits_per_byte
            state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "step": step, "found": found}
            state |= {"order": order.get_state(), "routing": routing.get_state()}
            with tempfile.TemporaryDirectory() as folder:
                torch.save(state, file := Path(folder) / "state.pt")
                trial.report(found, step=step, checkpoint=file)
            sums.zero_()


def evaluate(config: RoutedBytes, checkpoint: Path, evaluation: object, trial: Trial) -> None:
    """Tests the best checkpoint, which holds the frozen model, too."""
    state = torch.load(checkpoint, weights_only=True, map_location="cpu")
    tested = test(_tested(config, state), sequences.numbers(text.parts(config.text)["test"]), config)
    found = {"bits_per_byte": tested.bits_per_byte, "big_share": tested.big_share}
    found["macs_per_token"] = cost.macs_per_token(config, tested.big_share)
    found["training_macs_per_token"] = state["found"]["training_macs_per_token"]
    trial.report(found, step=state["step"])


def _tested(config: RoutedBytes, state: dict[str, Any]) -> RoutedTransformer:
    """The model in a checkpoint."""
    model = RoutedTransformer(config, FrozenByteModel(config.byte_model) if cost.asks_byte_model(config) else None)
    model.load_state_dict(state["model"])
    return model.to(_device())


@dataclass(frozen=True)
class Tested:
    """The test of a text."""

    bits_per_byte: float
    big_share: float


def test(model: RoutedTransformer, read: Tensor, config: RoutedBytes) -> Tested:
    """The model in evaluation; what a random controller draws here depends on the seed alone."""
    nats, num_big, num_bytes = 0.0, 0, 0
    routing = rng.generator(config.seed, "test")
    model.eval()
    with torch.no_grad():
        for batch in sequences.consecutive(read, config.model.context, num_sequences=32):
            batch = batch.to(_device())
            predicted = model(batch[:, :-1], routing)
            nats += F.cross_entropy(predicted.logits.flatten(0, 1), batch[:, 1:].flatten(), reduction="sum").item()
            num_big += int(predicted.chosen.sum())
            num_bytes += batch[:, 1:].numel()
    model.train()
    return Tested(nats / num_bytes / math.log(2), num_big / num_bytes / config.model.num_layers)


def _new(config: RoutedBytes, trial: Trial, read: Tensor) -> RoutedTransformer:
    """Untrained; its threshold is that of the training text."""
    if not cost.asks_byte_model(config):
        return RoutedTransformer(config, None)
    model = RoutedTransformer(config, pretrain.load(config.pretraining, trial.prerequisite("byte_model")))
    model.fit_threshold(sequences.spread(read, 500, config.model.context))
    return model


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def examples(config: RoutedBytes, part: str) -> list[Example]:
    """Sequences as the test reads them; `ponderay audit` asks for them."""
    rows = sequences.consecutive(sequences.numbers(text.parts(config.text)[part]), config.model.context, 1)
    return [Example(f"{part} {i}", row[0, :-1], row[0, 1:]) for i, row in enumerate(rows)]


def promises(config: RoutedBytes, evaluation: object) -> Promises:
    """A random controller draws by the place of a sequence in the test text."""
    return Promises(draws=config.controller.kind == "random")


def predict(
    config: RoutedBytes, checkpoint: Path, evaluation: object, trial: Trial, examples: Sequence[Example]
) -> list[Prediction]:
    """The model of the test on these sequences, in one batch."""
    model = _tested(config, torch.load(checkpoint, weights_only=True, map_location="cpu"))
    with torch.no_grad():
        read = torch.stack([torch.as_tensor(e.inputs) for e in examples]).to(_device())
        predicted = model.eval()(read, rng.generator(config.seed, "test"))
    chosen = predicted.chosen.permute(1, 2, 0)  # B T L
    shares, length = chosen.float().mean((1, 2)).tolist(), read.shape[1]
    masked = config.model.num_layers * masked_attention_macs(config.model.width, length, config.model.context)
    return [
        Prediction(logits.softmax(-1), big, length * cost.macs_per_token(config, share), masked)
        for logits, big, share in zip(predicted.logits, chosen, shares, strict=True)
    ]
