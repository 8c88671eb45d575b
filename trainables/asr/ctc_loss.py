"""The loss of connectionist temporal classification (Graves et al. 2006)."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def ctc_losses(
    log_probs: Float[Tensor, "B T L"], num_frames: Int[Tensor, " B"], labels: Sequence[Sequence[int]]
) -> Float[Tensor, " B"]:
    """Negative log-probability of each utterance's labels, in nats; the blank is the last symbol."""
    targets = torch.tensor([label for row in labels for label in row], dtype=torch.long, device=log_probs.device)
    lengths = torch.tensor([len(row) for row in labels])
    blank = log_probs.shape[-1] - 1
    return F.ctc_loss(log_probs.transpose(0, 1), targets, num_frames, lengths, blank, reduction="none")
