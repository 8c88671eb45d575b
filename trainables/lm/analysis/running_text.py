"""A model on the test text, token by token: the loss with its recoder and without, and delta before and after."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.errors import InputError
from trainables.lm.analysis.trained_model import Trained
from trainables.lm.evaluation import windows_with_noise
from trainables.lm.network import AttachedRecoder, Run
from trainables.lm.noise import Noise
from trainables.lm.shapes import num_copies
from trainables.lm.streams import NO_TARGET, Streams, Window

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TokenRecord:
    """What a model makes of every token of the test text but the first, N in the order of the text.

    Attributes:
        tokens: numbers of words.
        window: of which window each is a target, from 0.
        place: in that window, from 1; a window begins anew in each of the parallel streams.
        nats: -log p as the model gives it out, with its recoder.
        nats_without: as it gives it out without one.
        nats_before, nats_after: -log p from the state as it was, and from the state that was recoded.
        delta_before, delta_after: the error signal of both; None without a recoder.
        step_sizes: mean over h and c of all layers; 0 where nothing was recoded. None without a recoder.
    """

    tokens: NDArray[np.int64]
    window: NDArray[np.int64]
    place: NDArray[np.int64]
    nats: Numbers
    nats_without: Numbers
    nats_before: Numbers
    nats_after: Numbers
    delta_before: Numbers | None
    delta_after: Numbers | None
    step_sizes: Numbers | None


@torch.no_grad()
def read(trained: Trained) -> TokenRecord:
    """Reads the text twice, in the streams and windows, and with the masks, of the evaluation."""
    plain = [run.nats for _, run, _ in _runs(trained, None)]
    rows: dict[str, list[Tensor]] = {}
    for index, (window, run, drawn) in enumerate(_runs(trained, trained.attached)):
        length, count = window.targets.shape
        place = torch.arange(1, length + 1, device=window.targets.device)[:, None].expand(-1, count)
        columns = {"tokens": window.targets, "window": torch.full_like(place, index), "place": place}
        columns |= {"nats": run.nats, "nats_without": plain[index], "nats_before": run.nats, "nats_after": run.nats}
        if run.trace and trained.attached:
            columns |= _of_trace(trained, trained.attached, window, run, drawn)
        for name, values in columns.items():
            rows.setdefault(name, []).append(values)
    whole = {name: torch.cat(parts).t().flatten() for name, parts in rows.items()}  # stream by stream: the text's order
    is_target = whole["tokens"] != NO_TARGET
    told = {name: values[is_target] for name, values in whole.items()}
    numbers = {name: (part.double() if part.is_floating_point() else part).cpu().numpy() for name, part in told.items()}
    return TokenRecord(**{name: numbers.get(name) for name in TokenRecord.__dataclass_fields__})  # type: ignore[arg-type]


def recoded(trained: Trained) -> tuple[TokenRecord, Numbers, Numbers]:
    """The record of a model with a recoder, and delta before and after.

    Raises:
        InputError: without a recoder, or with a probe, which has no labels in a text.
    """
    record = read(trained)
    if record.delta_before is None or record.delta_after is None:
        raise InputError(
            "The error signal needs a recoder other than a probe; choose a condition or an `--evaluation` with one."
        )
    return record, record.delta_before, record.delta_after


def _runs(trained: Trained, attached: AttachedRecoder | None) -> Iterator[tuple[Window, Run, Noise]]:
    """The windows of the test text in their order, each with what the model made of it and its noise."""
    network, config = trained.network, trained.network.config
    network.eval()
    batch_size = trained.evaluation.batch_size
    streams = Streams(trained.text.test, batch_size, config.training.window)
    state = network.zeros(batch_size, attached.recoder if attached else None)
    for window, drawn in windows_with_noise(config, streams, attached, network.vocabulary_size, trained.seed):
        run = network(window, state, drawn, attached, measures_after=attached is not None)
        state = run.state
        yield window, run, drawn


def _of_trace(trained: Trained, attached: AttachedRecoder, window: Window, run: Run, drawn: Noise) -> dict[str, Tensor]:
    assert run.trace
    trace, copies = run.trace, num_copies(attached.recoder)
    tops = (torch.stack(tops) for tops in (trace.tops, trace.recoded_tops))
    before, after = (trained.network.outputs(top, window.targets, drawn, copies)[1] for top in tops)
    sizes = torch.stack([alphas.mean(0) * gates for alphas, gates in zip(trace.alphas, trace.gates, strict=True)])
    return {
        "nats_before": before,
        "nats_after": after,
        "delta_before": torch.stack(trace.before),
        "delta_after": torch.stack(trace.after),
        "step_sizes": sizes.unflatten(1, (copies, -1)).mean(1),
    }
