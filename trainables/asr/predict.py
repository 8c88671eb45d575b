"""What `ponderay audit` asks of a recogniser: utterances, the label probabilities of each frame, and its route."""

from collections.abc import Sequence
from pathlib import Path

import torch

from trainables import checkpoint, distributed
from trainables.asr import cost
from trainables.asr.config import AsrConfig, Evaluation, MaskedSelfAttention
from trainables.asr.controller_fit import tested_control
from trainables.asr.data.batches import collate
from trainables.asr.data.config import Onsets, Synthetic
from trainables.asr.data.examples import Example as Utterance
from trainables.asr.data.examples import load_examples
from trainables.asr.data.splits import read_splits
from trainables.asr.macs import NUM_BLOCKS, part_macs
from trainables.asr.recogniser import Recogniser, keyed_draws, load_ar
from trainables.cost import masked_attention_macs
from trainables.prediction import Example, Prediction, Promises
from trainables.trial import Trial


def examples(config: AsrConfig, part: str) -> list[Example]:
    """Utterances as frames with their phones and speakers.

    A controller that looked at the phones would see them here too.
    """
    loaded, splits = load_examples(config.data, config.ar.features), read_splits(config.data)
    chosen, utterances = (loaded.train, splits.train) if part == "train" else (loaded.test, splits.test)
    speakers = {utterance.identity: utterance.speaker for utterance in utterances}
    return [Example(e.identity, e.frames, torch.tensor(e.labels), speakers[e.identity]) for e in chosen]


def promises(config: AsrConfig, evaluation: Evaluation) -> Promises:
    """Every recogniser reads frames to come: its layers are bidirectional, or convolve over both sides."""
    return Promises(causal=False, generated=isinstance(config.data, Synthetic | Onsets))


def predict(
    config: AsrConfig, checkpoint_path: Path, evaluation: Evaluation, trial: Trial, examples: Sequence[Example]
) -> list[Prediction]:
    """One batch of all examples, with the draws of the test, which depend on an utterance's name."""
    loaded = load_examples(config.data, config.ar.features)
    state = checkpoint.load(checkpoint_path)
    recogniser = Recogniser(config, len(loaded.labels), load_ar(config, trial)).to(distributed.device()).eval()
    recogniser.put_back(state)
    working = tested_control(config, evaluation, state, recogniser.ar, loaded)
    parts = part_macs(config, len(loaded.labels))
    targets = [() if e.targets is None else torch.as_tensor(e.targets).tolist() for e in examples]
    utterances = [
        Utterance(e.name, torch.as_tensor(e.inputs), tuple(labels)) for e, labels in zip(examples, targets, strict=True)
    ]
    batch = collate(utterances, distributed.device())
    draws = keyed_draws(batch, config.seed, evaluation.name)
    with torch.no_grad():
        output = recogniser(batch.frames, batch.num_frames, working, draws, None)
    made = []
    for row, length in enumerate(batch.num_frames.tolist()):
        used_big = (output.used_big[row, :length] > 0).cpu()
        macs = cost.utterance_macs(config, working.controller, parts, length, int(used_big.sum()))
        masked = masked_macs(config, length) if cost.runs_ar(config, working.controller) else 0
        made.append(Prediction(output.log_probs[row, :length].exp(), used_big, macs, masked))
    return made


def masked_macs(config: AsrConfig, num_frames: int) -> int:
    """Multiply-accumulates of the masked attention of the autoregressive model, which runs its full square."""
    encoder, reads_features = config.ar.encoder, config.inputs == "ar_features"
    if not isinstance(encoder, MaskedSelfAttention):
        return 0
    num_steps = num_frames + 1 if reads_features else num_frames
    return NUM_BLOCKS * masked_attention_macs(config.ar.hidden_size, num_steps, encoder.context_frames)
