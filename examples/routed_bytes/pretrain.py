"""The frozen byte model as a trainable of its own: a prerequisite, trained once for all replicates."""

import math
import tempfile
from pathlib import Path

import torch

from ponderay import Metric, Trial
from routed_bytes import sequences, text
from routed_bytes.byte_model import FrozenByteModel
from routed_bytes.config import Pretraining
from trainables import rng

metrics = [Metric("bits_per_byte", "bit", "minimize", "of the validation text, under the frozen byte model")]


def reads(config: Pretraining) -> object:
    """What of `config` decides the fingerprint."""
    return config.text, config.byte_model.length


def fingerprint(config: Pretraining) -> str:
    """The fingerprint of the text."""
    return text.fingerprint(config.text, config.byte_model.length)


def train(config: Pretraining, trial: Trial) -> None:
    """Learns sequences from their first byte, as it is asked later, when nothing is known of what stands before.

    Reports once, at the end; it takes seconds, so there is nothing to go on from.
    """
    torch.manual_seed(rng.derive(config.seed, "weights"))
    asked, parts = config.byte_model, text.parts(config.text)
    model, train_text = FrozenByteModel(asked), sequences.numbers(parts["train"])
    order = rng.generator(config.seed, "order")
    optimiser = torch.optim.AdamW(model.parameters())
    for step in range(1, asked.num_steps + 1):
        loss = model.surprisal(sequences.drawn(train_text, asked.batch_size, asked.length, order)).mean()
        sequences.descend(model, optimiser, loss, sequences.rate_at(step, asked.num_steps, asked.learning_rate))
    with torch.no_grad():
        nats = model.surprisal(sequences.numbers(parts["valid"])[None].long()).mean().item()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), file := Path(folder) / "byte_model.pt")
        trial.report({"bits_per_byte": nats / math.log(2)}, step=asked.num_steps, checkpoint=file)


def load(config: Pretraining, file: Path) -> FrozenByteModel:
    """The trained model, which is trained no more; nothing is drawn."""
    with torch.device("meta"):
        model = FrozenByteModel(config.byte_model)
    model.load_state_dict(torch.load(file, weights_only=True), assign=True)
    return model.requires_grad_(False)
