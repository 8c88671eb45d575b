"""How the error signal of a token goes with its loss, and with what recoding does to both (thesis section 8.1.1).

The thesis asks for a constant linear relation between both, so that a lower error signal would lower the loss.
"""

from typing import Any, Final

import numpy as np

from trainables.errors import InputError
from trainables.lm.analysis.running_text import Numbers, recoded
from trainables.lm.analysis.trained_model import Trained

NUM_BINS: Final = 10
"""Bins of equally many tokens each, from the lowest delta on."""


def relation(trained: Trained) -> dict[tuple[Any, ...], float]:
    """Cells by bin of delta and measure: mean delta, mean losses in nats, and Pearson's correlations over all tokens.

    The loss is that of the token that delta is of, from the state as it was; `next_loss` is that of the token behind it
    as the model gives it out. A change is after minus before recoding. Correlations are the same in every row.

    Raises:
        InputError: if there are not two tokens for each bin.
    """
    record, before, after = recoded(trained)
    if len(before) < 2 * NUM_BINS:
        raise InputError(
            f"The analysis `delta` needs {2 * NUM_BINS} tokens or more of test text, but got {len(before)}."
        )
    changes = after - before, record.nats_after - record.nats_before
    following = record.nats[1:]
    everywhere = {
        "correlation": correlation(before, record.nats_before),
        "correlation_of_changes": correlation(*changes),
        "correlation_with_next": correlation(before[:-1], following),
    }
    cells: dict[tuple[Any, ...], float] = {}
    parts = np.array_split(np.argsort(before, kind="stable"), NUM_BINS)
    for number, rows in enumerate(parts, start=1):
        behind = rows[rows < len(following)]
        measures = {
            "loss": record.nats_before[rows].mean(),
            "next_loss": following[behind].mean(),
            "delta": before[rows].mean(),
            "delta_change": changes[0][rows].mean(),
            "loss_change": changes[1][rows].mean(),
            **everywhere,
        }
        cells |= {(number, name): float(value) for name, value in measures.items()}
    return cells


def correlation(a: Numbers, b: Numbers) -> float:
    """Pearson's; 0 where one of them never changes."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
