"""The frozen model: bytes read last, embedded, one hidden layer, the next byte (Bengio et al. 2003, JMLR 3, 1137)."""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from routed_bytes.config import ByteModel

NUM_BYTES = 256
START = NUM_BYTES
"""Stands for what is before the first byte."""


class FrozenByteModel(nn.Module):
    """p(next byte | the `num_read` bytes before it)."""

    def __init__(self, config: ByteModel) -> None:
        super().__init__()
        self.num_read = config.num_read
        self.embedding = nn.Embedding(NUM_BYTES + 1, config.embedding)
        self.layers = nn.Sequential(
            nn.Linear(config.num_read * config.embedding, config.hidden), nn.ReLU(), nn.Linear(config.hidden, NUM_BYTES)
        )

    def forward(self, read: Int[Tensor, "B T"]) -> Float[Tensor, "B T 256"]:
        """Logits of the byte after each of those `read`, from it and those before it."""
        windows = F.pad(read, (self.num_read - 1, 0), value=START).unfold(1, self.num_read, 1)
        logits: Tensor = self.layers(self.embedding(windows).flatten(2))
        return logits

    def surprisal(self, read: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """-log p of each byte given those before it, in nats: known once the byte is read."""
        before = F.pad(read[:, :-1], (1, 0), value=START)
        return F.cross_entropy(self(before).flatten(0, 1), read.flatten(), reduction="none").view_as(read)

    def entropy(self, read: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """The entropy of the byte after each of those read, in nats: known before that byte is."""
        log_p = self(read).log_softmax(-1)
        nats: Tensor = -(log_p.exp() * log_p).sum(-1)
        return nats
