"""How long the causal part takes when frames come one at a time."""

import statistics
import time
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from trainables.asr import controller as controllers
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.controller import Control, uses_surprisal

NUM_FRAMES: Final = 200
NUM_WARM_UP: Final = 5


@torch.no_grad()
def streaming_latency_ms(ar: AutoregressiveModel, control: Control, frames: Float[Tensor, "T F"]) -> float:
    """Median time from one frame to its feature and, under a surprisal controller, its p_big; one stream."""
    ar.eval()
    durations, stream = [], ar.begin(1)
    for frame in frames[:NUM_FRAMES].to(stream.prediction.device):
        _wait(frame)
        started = time.perf_counter()
        surprisals = surprisal(frame[None], stream.prediction)
        if uses_surprisal(control.controller):
            controllers.p_big(control, surprisals[None])
        _, stream = ar.step(frame[None], stream)
        _wait(frame)
        durations.append(1000 * (time.perf_counter() - started))
    return statistics.median(durations[NUM_WARM_UP:] or durations)


def _wait(tensor: Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
