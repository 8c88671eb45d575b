"""One utterance as a recogniser reads it: spectrogram, surprisal, p_big, routed frames and phones."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from trainables.asr.config import Decoding
from trainables.asr.controller import Control, uses_surprisal
from trainables.asr.data.batches import collate
from trainables.asr.data.examples import Example
from trainables.asr.evaluation import decode_batch, label_of_frames
from trainables.asr.recogniser import Recogniser, keyed_draws


@torch.no_grad()
def draw_utterance(
    recogniser: Recogniser,
    control: Control,
    example: Example,
    labels: Sequence[str],
    key: tuple[int, str],
    decoding: Decoding,
    path: Path,
) -> Path:
    """Writes a PNG to `path` and returns it; phones stand where the corpus, or CTC's alignment, has them."""
    from matplotlib.figure import Figure

    recogniser.eval()
    config = recogniser.config
    batch = collate([example], next(recogniser.parameters()).device)
    output = recogniser(batch.frames, batch.num_frames, control, keyed_draws(batch, *key))
    log_probs = output.log_probs.cpu()
    (hypothesis,) = decode_batch(log_probs, batch.num_frames, decoding)
    spoken = label_of_frames(config, example, log_probs[0])
    seconds = np.arange(len(example.frames)) * config.ar.features.frame_s
    figure = Figure(figsize=(12, 7), layout="constrained")
    spectrogram, surprisals, chances = figure.subplots(3, 1, sharex=True, height_ratios=(3, 2, 2))
    extent = (0, len(example.frames) * config.ar.features.frame_s, 0, example.frames.shape[1])
    spectrogram.imshow(example.frames.numpy().T, aspect="auto", origin="lower", extent=extent)
    spectrogram.set_ylabel("mel bin")
    if uses_surprisal(control.controller):
        surprisals.plot(seconds, output.surprisals[0].cpu(), drawstyle="steps-post")
    surprisals.set_ylabel("surprisal (nats)" if uses_surprisal(control.controller) else "surprisal not computed")
    used_big = output.used_big[0].cpu().numpy()
    chances.fill_between(seconds, used_big, step="post", alpha=0.3, label="big network")
    chances.plot(seconds, output.p_big[0].cpu(), drawstyle="steps-post", label="p_big")
    chances.set(ylabel="p_big", ylim=(0, 1.05), xlabel="seconds")
    chances.legend(loc="upper right")
    previous = -1
    for start, label in enumerate(spoken.tolist()):
        if label not in (-1, previous):
            spectrogram.axvline(seconds[start], color="white", linewidth=0.5)
            at = (seconds[start], example.frames.shape[1])
            spectrogram.text(*at, labels[label], fontsize=8, va="bottom", parse_math=False)
        previous = label
    recognised = " ".join(labels[label] for label in hypothesis)
    figure.suptitle(f"{example.identity} under {control.controller.kind}\nrecognised: {recognised}", parse_math=False)
    figure.savefig(path, format="png", dpi=100)
    return path
