"""How long a batch takes, and how long the causal part takes when frames come one at a time."""

import statistics
import time
from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from trainables import distributed
from trainables.asr import controller as controllers
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.controller import Control, uses_surprisal
from trainables.asr.data.batches import bucketed, collate
from trainables.asr.data.examples import Example
from trainables.asr.recogniser import Recogniser, keyed_draws

BATCH_SIZE: Final = 32
NUM_REPEATS: Final = 3
NUM_FRAMES: Final = 200
NUM_WARM_UP: Final = 5


@torch.no_grad()
def batch_latency_ms(
    recogniser: Recogniser, control: Control, examples: Sequence[Example], key: tuple[int, str]
) -> float:
    """Median time of the longest batch of up to 32 from frames to log-probabilities, after one that is not counted."""
    recogniser.eval()
    batch = collate(bucketed(examples, BATCH_SIZE)[0], distributed.device())
    uniform, durations = keyed_draws(batch, *key), []
    for _ in range(NUM_REPEATS + 1):
        _wait(batch.frames)
        started = time.perf_counter()
        recogniser(batch.frames, batch.num_frames, control, uniform)
        _wait(batch.frames)
        durations.append(1000 * (time.perf_counter() - started))
    return statistics.median(durations[1:])


@torch.no_grad()
def streaming_latency_ms(ar: AutoregressiveModel, control: Control, frames: Float[Tensor, "T F"]) -> float:
    """Median time from one frame to its feature and, under a surprisal controller, its p_big; one stream."""
    ar.eval()
    durations, stream = [], ar.begin(1)
    for frame in frames[:NUM_FRAMES].to(stream.feature.device):
        _wait(frame)
        started = time.perf_counter()
        if uses_surprisal(control.controller):
            controllers.p_big(control, surprisal(frame[None], ar.predict(stream))[None])
        stream = ar.step(frame[None], stream)
        _wait(frame)
        durations.append(1000 * (time.perf_counter() - started))
    return statistics.median(durations[NUM_WARM_UP:] or durations)


def _wait(tensor: Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
