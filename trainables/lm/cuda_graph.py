"""A window's work as one CUDA graph: with thousands of small operations, launching them would take most of the time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.lm.network import Run
from trainables.lm.noise import Noise
from trainables.lm.streams import Window

Work = Callable[[Window, Tensor, Noise], Run]
"""Reads a window from a state on; may leave gradients in parameters."""

NUM_WARM_UP = 3


@dataclass(frozen=True, eq=False)
class _Recording:
    """A graph, the tensors that it reads and those that it leaves."""

    graph: torch.cuda.CUDAGraph
    inputs: list[Tensor]
    gradients: list[Tensor | None]
    run: Run


class CudaGraph:
    """`work` as it is on a CPU; on a GPU recorded for each shape of its inputs and replayed.

    What a call returns, gradients included, is written over by the next call of the same shape. Without `is_fixed` the
    work's shapes depend on values, as where shut rows are left out: then nothing is recorded.
    """

    def __init__(self, work: Work, parameters: Sequence[nn.Parameter], is_fixed: bool = True) -> None:
        self._work, self._parameters, self._is_fixed = work, parameters, is_fixed
        self._recordings: dict[tuple[torch.Size, ...], _Recording] = {}

    def __call__(self, window: Window, state: Tensor, noise: Noise) -> Run:
        """Does the work; gradients are new, not added to old ones."""
        if not state.is_cuda or not noise.is_drawn or not self._is_fixed:
            self._clear()
            return self._work(window, state, noise)
        inputs = [window.inputs, window.targets, state, *noise.tensors()]
        key = tuple(tensor.shape for tensor in inputs)
        if key not in self._recordings:
            self._recordings[key] = self._record(window, state, noise)
        recording = self._recordings[key]
        for old, new in zip(recording.inputs, inputs, strict=True):
            old.copy_(new)
        recording.graph.replay()
        for parameter, gradient in zip(self._parameters, recording.gradients, strict=True):
            parameter.grad = gradient
        return recording.run

    def _clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def _record(self, window: Window, state: Tensor, noise: Noise) -> _Recording:
        """Runs the work some times on a stream of its own, as recording asks for, and records it."""
        copies = (Window(window.inputs.clone(), window.targets.clone()), state.clone(), noise.mapped(torch.clone))
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(NUM_WARM_UP):
                self._clear()
                self._work(*copies)
        torch.cuda.current_stream().wait_stream(stream)
        self._clear()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run = self._work(*copies)
        inputs = [copies[0].inputs, copies[0].targets, copies[1], *copies[2].tensors()]
        return _Recording(graph, inputs, [parameter.grad for parameter in self._parameters], run)
