"""The entropy of the mean softmax under MC dropout: from moments, and from K samples, against 1,000 samples.

    python -m benchmarks.moments [--num-epochs 4] [--num-reference 1000] [--vocabulary 10000] [--hidden-size 128]

A small model is trained on Python's documentation first. "bias" and "rmse" are of the entropy, in nats, over tokens of
its test part; those of K samples over five draws of masks. "kl" is that of the mean softmaxes. "ms" is the time of an
error signal with its gradient for a batch of 64, one torch thread.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.alike import alike
from trainables import checkpoint
from trainables.lm import corpus, train
from trainables.lm.config import LmConfig, McDropout
from trainables.lm.network import Network
from trainables.lm.noise import Noise
from trainables.lm.optimisation import Optimisation
from trainables.lm.signals.uncertainty import DropoutSignal, MomentsSignal
from trainables.lm.streams import Streams
from trainables.lm.text_config import Data, OneFile, Vocabulary

RATES, NUM_SAMPLES, NUM_DRAWS, BATCH = (0.15, 0.42, 0.6), (5, 10, 50), 5, 64


class KeptCheckpoint:
    """A trial that keeps the last checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "last.pt"

    def report(
        self,
        metrics: Mapping[str, float],
        *,
        step: int,
        checkpoint: Path | None = None,
        artifacts: Sequence[Path] = (),
    ) -> None:
        """Keeps it."""
        if checkpoint:
            self.path.write_bytes(checkpoint.read_bytes())

    def restore(self) -> Path | None:
        """Always anew."""
        return None

    def prerequisite(self, name: str) -> Path:
        """There is none."""
        raise KeyError(name)


def trained(config: LmConfig) -> tuple[Network, Tensor]:
    """The model, and the top hidden states at one batch of tokens of the test part."""
    with tempfile.TemporaryDirectory() as folder:
        train.train(config, trial := KeptCheckpoint(Path(folder)))
        state = checkpoint.load(trial.path)
    text = corpus.load(config.data)
    network = Network(config, text.size)
    network.load_state_dict(state["network"])
    window = Streams(text.test, BATCH, 20).window(0)
    values = network.embedding(window.inputs)
    for layer in network.layers:
        values, _ = layer(values)
    return network, values[-1]


def sampled(network: Network, rate: float, num_samples: int) -> DropoutSignal:
    """A signal of fresh masks."""
    size = network.config.hidden_size
    masks = torch.empty((1, num_samples, BATCH, size), dtype=torch.bool).bernoulli_(1 - rate)
    return DropoutSignal(McDropout(num_samples=num_samples, rate=rate), network.decoders, Noise(samples=masks))


def milliseconds(signal: DropoutSignal | MomentsSignal, top: Tensor, repeats: int = 5) -> float:
    """Median time of a reading."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        signal.read(0, [top])
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times[1:])


def divergence(reference: Tensor, probs: Tensor) -> float:
    """Mean KL divergence in nats."""
    return float((reference * (reference.clamp_min(1e-30) / probs.clamp_min(1e-30)).log()).sum(-1).mean())


def rows(network: Network, top: Tensor, rate: float, num_reference: int) -> list[str]:
    """Lines of the table."""
    parts = [sampled(network, rate, 100).read(0, [top]).probs for _ in range(num_reference // 100)]
    reference = torch.stack([part for part in parts if part is not None]).mean(0)
    entropy = -(reference * reference.clamp_min(1e-30).log()).sum(-1)
    ways: dict[str, list[DropoutSignal | MomentsSignal]] = {
        "moments": [MomentsSignal(McDropout(rate=rate, estimator="moments"), network.decoders)]
    }
    ways |= {f"K={k}": [sampled(network, rate, k) for _ in range(NUM_DRAWS)] for k in NUM_SAMPLES}
    lines = []
    for name, signals in ways.items():
        readings = [signal.read(0, [top]) for signal in signals]
        errors = torch.stack([reading.delta - entropy for reading in readings])
        apart = statistics.mean(divergence(reference, one.probs) for one in readings if one.probs is not None)
        figures = f"{float(errors.mean()):+9.4f} {float(errors.square().mean().sqrt()):8.4f} {apart:8.4f}"
        lines.append(f"{rate:5} {name:8} {float(entropy.mean()):8.3f} {figures} {milliseconds(signals[0], top):8.2f}")
    return lines


@torch.no_grad()
@alike()
def main() -> None:
    """Prints one row for each rate and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-epochs", type=int, default=4)
    parser.add_argument("--num-reference", type=int, default=1000)
    parser.add_argument("--vocabulary", type=int, default=10_000)
    parser.add_argument("--hidden-size", type=int, default=128)
    arguments = parser.parse_args()
    size = arguments.hidden_size
    config = LmConfig(
        data=Data(text=OneFile(), vocabulary=Vocabulary(max_size=arguments.vocabulary)),
        embedding_size=size,
        hidden_size=size,
        training=Optimisation(batch_size=16, num_epochs=arguments.num_epochs),
    )
    with torch.enable_grad():
        network, top = trained(config)
    top = top.detach()
    print(f"cpu, torch {torch.__version__}, 2 x {size}, V = {network.vocabulary_size}")
    print(f"{'rate':>5} {'way':8} {'entropy':>8} {'bias':>9} {'rmse':>8} {'kl':>8} {'ms':>8}")
    for rate in RATES:
        print("\n".join(rows(network, top, rate, arguments.num_reference)), flush=True)


if __name__ == "__main__":
    main()
