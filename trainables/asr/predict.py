"""What `ponderay audit` asks of a recogniser: utterances, the label probabilities of each frame, and its route."""

from collections.abc import Sequence
from pathlib import Path

import torch

from trainables import checkpoint, distributed
from trainables.asr import cost
from trainables.asr.config import AsrConfig, Evaluation
from trainables.asr.controller_fit import control, missing_fits, restored_fits
from trainables.asr.data.batches import collate
from trainables.asr.data.config import Onsets, Synthetic
from trainables.asr.data.examples import Example as Utterance
from trainables.asr.data.examples import load_examples
from trainables.asr.data.splits import read_splits
from trainables.asr.macs import part_macs
from trainables.asr.recogniser import Recogniser, keyed_draws, load_ar
from trainables.prediction import Example, Prediction, Promises
from trainables.trial import Trial


def examples(config: AsrConfig, part: str) -> list[Example]:
    """Utterances as frames with their phones and speakers.

    None of made-up sounds is for training: all parts are drawn alike, and short ones are the same by chance.
    """
    if part == "train" and isinstance(config.data, Synthetic | Onsets):
        return []
    loaded, splits = load_examples(config.data, config.ar.features), read_splits(config.data)
    chosen, utterances = (loaded.train, splits.train) if part == "train" else (loaded.test, splits.test)
    speakers = {utterance.identity: utterance.speaker for utterance in utterances}
    return [Example(e.identity, e.frames, torch.tensor(e.labels), speakers[e.identity]) for e in chosen]


def promises(config: AsrConfig, evaluation: Evaluation) -> Promises:
    """Every recogniser reads frames to come: its layers are bidirectional, or convolve over both sides."""
    uncounted = "masked attention runs its full square, and the context alone is counted"
    return Promises(causal=False, uncounted=uncounted if config.ar.encoder.kind == "attention" else "")


def predict(
    config: AsrConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial, examples: Sequence[Example]
) -> list[Prediction]:
    """One batch of all examples, with the draws of the test, which depend on an utterance's name."""
    loaded = load_examples(config.data, config.ar.features)
    state = checkpoint.load(checkpoint_path)
    recogniser = Recogniser(config, len(loaded.labels), load_ar(config, trial)).to(distributed.device()).eval()
    recogniser.put_back(state)
    fits = restored_fits(state)
    fits |= missing_fits(config, [evaluation.controller or config.controller], recogniser.ar, loaded, fits)
    working, parts = control(config, fits, evaluation), part_macs(config, len(loaded.labels))
    utterances = [Utterance(e.name, torch.as_tensor(e.inputs)) for e in examples]
    batch = collate(utterances, distributed.device())
    draws = keyed_draws(batch, config.seed, evaluation.name)
    with torch.no_grad():
        output = recogniser(batch.frames, batch.num_frames, working, draws, None)
    made = []
    for row, length in enumerate(batch.num_frames.tolist()):
        used_big = (output.used_big[row, :length] > 0).cpu()
        macs = cost.utterance_macs(config, working.controller, parts, length, int(used_big.sum()))
        made.append(Prediction(output.log_probs[row, :length].exp(), used_big, macs))
    return made
