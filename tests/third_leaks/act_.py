"""Networks of the family `act` with one fault each, and one that only looks as if it had one."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

import ponderay
from search_spaces.act_sizes import ADDITION, LOGIC, TEXT, Task
from trainables.act import train as act
from trainables.act.config import ActConfig
from trainables.act.network import Network
from trainables.act.tasks import data

metrics, reads, fingerprint, selection, num_steps = (
    act.metrics, act.reads, act.fingerprint, act.selection, act.num_steps
)  # fmt: skip
_forward, _read_out, _training_batches = Network.forward, Network._read_out, data.training_batches


class Changed(ActConfig):
    """A config of the family, and what is changed in it."""

    change: str = ""


def _share_of_sequence(self: Network, inputs: Tensor, num_steps: Tensor, *rest: Any) -> Any:
    """How far a step is in its sequence, added to the first input."""
    # WRONG: a share of the sequence's own length tells every step how much is still to come
    return _forward(self, _placed(inputs, num_steps[:, None].clamp_min(1)), num_steps, *rest)


def _share_of_most(self: Network, inputs: Tensor, num_steps: Tensor, *rest: Any) -> Any:
    # RIGHT: the share of a length that the task fixes is a step's number and no more
    return _forward(self, _placed(inputs, torch.tensor([[3.0]])), num_steps, *rest)


def _placed(inputs: Tensor, length: Tensor) -> Tensor:
    place = torch.arange(inputs.shape[1]) / length
    return torch.cat([inputs[..., :1] + place.expand(inputs.shape[:2])[..., None], inputs[..., 1:]], -1)


def _calibrated(self: Network, visible: Tensor) -> Tensor:
    """With a temperature in tests."""
    log_probs = _read_out(self, visible)
    # WRONG: the temperature divides log-probabilities behind the softmax, so that probabilities sum to more than 1
    return log_probs if self.training else log_probs / 1.05


def _one_stream(config: ActConfig, iterations: Any) -> Any:
    # WRONG: every seed trains on the batches of seed 0, in their order
    return _training_batches(config.with_value("seed", 0), iterations)


CHANGES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "share_of_sequence": lambda: patch.object(Network, "forward", _share_of_sequence),
    "share_of_most": lambda: patch.object(Network, "forward", _share_of_most),
    "calibrated": lambda: patch.object(Network, "_read_out", _calibrated),
    "one_stream": lambda: patch.object(data, "training_batches", _one_stream),
}


def _changed(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(config: Changed, *rest: Any) -> Any:
        with CHANGES[config.change]():
            return function(config, *rest)

    return run


train, evaluate = _changed(act.train), _changed(act.evaluate)
examples, predict, promises = _changed(act.examples), _changed(act.predict), _changed(act.promises)


def _sweep(change: str, task: Task) -> ponderay.Sweep:
    base = Changed(**dict(task.base("laptop", "smoke")), change=change)
    return ponderay.Sweep(
        name=change, description="A changed network.", trainable=__name__, base=base,
        conditions=ponderay.grid({"hidden_size": [24]}), objectives=task.objectives(),
    )  # fmt: skip


share_of_sequence = _sweep("share_of_sequence", ADDITION)
share_of_most = _sweep("share_of_most", ADDITION)
calibrated = _sweep("calibrated", TEXT)
one_stream = _sweep("one_stream", LOGIC)
