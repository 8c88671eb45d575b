"""What `ponderay audit` asks of an adaptive network: test sequences, its outputs at every step, and its updates."""

from collections.abc import Sequence
from pathlib import Path

import torch

from trainables import checkpoint, distributed
from trainables.act.config import ActConfig, Evaluation, Mass, PonderNet, Text
from trainables.act.cost import testing_macs
from trainables.act.evaluation import draws_of
from trainables.act.network import Network, Run
from trainables.act.tasks import data, text, text_file
from trainables.act.tasks.batch import Batch
from trainables.prediction import Example, Prediction, Promises
from trainables.trial import Trial

MOST = 10_000
"""Sequences of a text that are looked at."""


def examples(config: ActConfig, part: str) -> list[Example]:
    """Sequences without their padding. None of a generated task is for training: each batch is drawn anew."""
    if part == "train":
        if not isinstance(config.data, Text):
            return []
        batch = text.consecutive(config.data, text_file.split(config.data).train, MOST)
    else:
        batch = data.test_set(config, config.evaluations[0].model_copy(update={"num_sequences": 64}))
    lengths = batch.num_steps.tolist()
    return [
        Example(f"{part} {i}", batch.inputs[i, :length], batch.targets[i, :length]) for i, length in enumerate(lengths)
    ]


def promises(config: ActConfig, evaluation: Evaluation) -> Promises:
    """PonderNet draws where a step halts, by the place of a sequence in the test set."""
    is_drawn = isinstance(config.halting, PonderNet) and not isinstance(evaluation.halts, Mass)
    return Promises(draws=is_drawn)


def predict(
    config: ActConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial, examples: Sequence[Example]
) -> list[Prediction]:
    """One batch of all examples, padded as a test pads them; at a step without a target there are no probabilities."""
    network = Network(config).to(distributed.device()).eval()
    network.load_state_dict(checkpoint.load(checkpoint_path)["network"])
    inputs, targets = (
        torch.nn.utils.rnn.pad_sequence(
            [torch.as_tensor(getattr(e, name)) for e in examples], batch_first=True, padding_value=filler
        )
        for name, filler in (("inputs", 0), ("targets", -1))
    )
    lengths = torch.tensor([len(e.inputs) for e in examples])
    whole = Batch(inputs, lengths, targets, torch.zeros(targets.shape[:2], dtype=torch.long))
    batch, draws = whole.to(distributed.device()), draws_of(config, whole, evaluation.halts)
    with torch.no_grad():
        run = network(
            batch.inputs, batch.num_steps, batch.has_target, None, draws.to(batch.inputs.device), evaluation.halts
        )
    assert isinstance(run, Run)
    log_probs = run.log_probs.cpu()
    probabilities = torch.full((*targets.shape[:2], *log_probs.shape[1:]), torch.nan)
    probabilities[whole.has_target] = log_probs.exp()
    updates, made = run.num_updates.cpu().numpy(), []
    for i, length in enumerate(lengths.tolist()):
        own, num_targets = updates[i, :length], int(whole.has_target[i].sum())
        macs = testing_macs(config, evaluation.halts, length, own, num_targets)
        made.append(Prediction(probabilities[i, :length], own, float(macs)))
    return made
