"""A whole recogniser at work on a batch: autoregressive model, controller, routed networks; and its test."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from torchaudio.functional import edit_distance

from trainables import checkpoint, distributed, rng
from trainables.asr import controller as controllers
from trainables.asr import cost, data, decode
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig, Evaluation, Surprisal
from trainables.asr.controller import SurprisalFit
from trainables.asr.data import Batch, Example
from trainables.trial import Trial


@dataclass(frozen=True, eq=False)
class FrozenParts:
    """What training does not change: the autoregressive model, in eval mode, and the controller's fit."""

    ar: AutoregressiveModel
    fit: SurprisalFit | None = None

    @torch.no_grad()
    def see(self, config: AsrConfig, batch: Batch) -> tuple[Float[Tensor, "B T A"], Float[Tensor, "B T"]]:
        """Features of each frame, and the probability that it takes the big network.

        The regressor runs only where surprisal is needed.
        """
        encoded = self.ar.encode(batch.frames)
        surprisals = batch.frames.new_zeros(batch.frames.shape[:2])
        if isinstance(config.controller, Surprisal):
            surprisals = surprisal(batch.frames, self.ar.regressor(encoded[:, :-1]))
        return encoded[:, 1:], controllers.p_big(config.controller, surprisals, self.fit)


def load_ar(config: AsrConfig, trial: Trial) -> AutoregressiveModel:
    """The pretrained autoregressive model, frozen."""
    ar = AutoregressiveModel(config.pretraining)
    ar.load_state_dict(checkpoint.load(trial.prerequisite("ar"))["model"])
    return ar.to(distributed.device()).eval().requires_grad_(False)


def ctc_loss(log_probs: Float[Tensor, "B T L"], batch: Batch) -> Float[Tensor, ""]:
    """Negative log-probability of the labels, in nats, summed over the batch; the blank is the last symbol."""
    targets = torch.tensor([label for labels in batch.labels for label in labels])
    lengths = torch.tensor([len(labels) for labels in batch.labels])
    blank = log_probs.shape[-1] - 1
    return F.ctc_loss(
        log_probs.transpose(0, 1),
        targets.to(log_probs.device),
        batch.num_frames,
        lengths,
        blank,
        reduction="sum",
    )


def choose_in_test(p: Float[Tensor, "B T"], batch: Batch, seed: int, evaluation: Evaluation) -> Bool[Tensor, "B T"]:
    """Routing under `evaluation`; draws depend on seed, evaluation, utterance and frame alone, not on the batch."""
    if evaluation.routing == "deterministic":
        return controllers.decide(p)
    uniform = torch.zeros(p.shape, dtype=torch.float64)
    for row, (identity, length) in enumerate(zip(batch.identities, batch.num_frames.tolist(), strict=True)):
        uniform[row, :length] = torch.from_numpy(rng.keyed_uniform(length, seed, evaluation.name, identity))
    return controllers.draw(p.double(), uniform.to(p.device))


@dataclass
class Tally:
    """Sums over utterances from which the metrics follow."""

    num_edits: float = 0.0
    num_labels: float = 0.0
    num_frames: float = 0.0
    num_big: float = 0.0
    num_macs: float = 0.0
    num_utterances: float = 0.0
    loss_nats: float = 0.0

    @property
    def per(self) -> float:
        """Corpus-level phone error rate."""
        return self.num_edits / self.num_labels


@torch.no_grad()
def test(
    config: AsrConfig,
    model: nn.Module,
    frozen: FrozenParts,
    examples: Sequence[Example],
    evaluation: Evaluation,
    decoder: str,
) -> tuple[Tally, float]:
    """What `model` gets right on `examples` at what cost, and valid frames per second; the processes share the work."""
    model.eval()
    started, tally = time.perf_counter(), Tally()
    parts = None
    for group in data.bucketed(examples[distributed.rank() :: distributed.world_size()], batch_size=32):
        batch = data.collate(group, distributed.device())
        features, p = frozen.see(config, batch)
        choose_big = choose_in_test(p, batch, config.seed, evaluation)
        log_probs = model(features, batch.num_frames, choose_big)
        parts = parts or cost.part_macs(config, log_probs.shape[-1] - 1)
        hypotheses = (
            decode.greedy(log_probs, batch.num_frames)
            if decoder == "greedy"
            else decode.beam_search(log_probs, batch.num_frames, config.decoding.beam_width)
        )
        tally.loss_nats += float(ctc_loss(log_probs, batch))
        for row, (labels, hypothesis) in enumerate(zip(batch.labels, hypotheses, strict=True)):
            length = int(batch.num_frames[row])
            num_big = int(choose_big[row, :length].sum())
            tally.num_edits += edit_distance(labels, hypothesis)
            tally.num_labels += len(labels)
            tally.num_frames += length
            tally.num_big += num_big
            tally.num_macs += cost.utterance_macs(config, parts, length, num_big)
            tally.num_utterances += 1
    tally = Tally(*distributed.sum_over_processes(*vars(tally).values()))
    return tally, tally.num_frames / (time.perf_counter() - started)
