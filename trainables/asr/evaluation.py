"""Testing a trained recogniser: one outcome for each utterance, from which all metrics follow."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torchaudio.functional import forced_align

from trainables import distributed
from trainables.asr import cost, decode, frozen, macs, phone_errors
from trainables.asr.config import AsrConfig, Decoding
from trainables.asr.controller import Control, uses_surprisal
from trainables.asr.controller_fit import Fits, control
from trainables.asr.ctc_loss import ctc_losses
from trainables.asr.data.batches import bucketed, collate
from trainables.asr.data.examples import Example, Examples, labels_by_times, num_frames_needed
from trainables.asr.data.phones import PHONE_CLASSES, class_of
from trainables.asr.frozen import Kept
from trainables.asr.phone_errors import Edits
from trainables.asr.recogniser import Output, Recogniser, keyed_draws

QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one utterance.

    Attributes:
        class_frames: of each class of phones, how many frames it has and how many took the big network.
    """

    identity: str
    edits: Edits
    loss_nats: float
    num_frames: int
    num_big: int
    num_macs: int
    surprisals: NDArray[np.floating]
    class_frames: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Results:
    """Outcomes in any order, and the seconds from frames to labels of the process that took longest."""

    outcomes: tuple[Outcome, ...]
    duration_s: float

    @property
    def per(self) -> float:
        """Corpus-level phone error rate."""
        return sum(o.edits.total for o in self.outcomes) / sum(o.edits.num_labels for o in self.outcomes)

    @property
    def macs_per_frame(self) -> float:
        """Multiply-accumulates that must run, per valid frame."""
        return sum(o.num_macs for o in self.outcomes) / sum(o.num_frames for o in self.outcomes)

    @property
    def loss_nats(self) -> float:
        """Mean over the utterances that are long enough for CTC; NaN where none is."""
        finite = [o.loss_nats for o in self.outcomes if math.isfinite(o.loss_nats)]
        return sum(finite) / len(finite) if finite else math.nan


@torch.no_grad()
def score(
    recogniser: Recogniser,
    control: Control,
    examples: Sequence[Example],
    labels: Sequence[str],
    key: tuple[int, str],
    decoding: Decoding,
    kept: Kept | None = None,
) -> Results:
    """What `recogniser` gets right on `examples`, and at what cost; the processes share the work.

    Args:
        labels: names of the phones.
        key: of the random draws: seed and evaluation.
        kept: what the frozen autoregressive model says of them; None: it runs, and its time counts.
    """
    recogniser.eval()
    config, duration_s = recogniser.config, 0.0
    parts = macs.part_macs(config, len(labels))
    outcomes = []
    for group in bucketed(examples[distributed.share()], batch_size=32):
        batch = collate(group, distributed.device())
        started = time.perf_counter()
        output = recogniser(batch.frames, batch.num_frames, control, keyed_draws(batch, *key), frozen.pad(kept, batch))
        log_probs = output.log_probs.cpu()
        hypotheses = decode_batch(log_probs, batch.num_frames, decoding)
        duration_s += time.perf_counter() - started
        losses = ctc_losses(output.log_probs, batch.num_frames, batch.labels).tolist()
        for row, example in enumerate(group):
            outcomes.append(
                _outcome(config, control, parts, example, labels, output, row, hypotheses[row], losses[row])
            )
    everyones = distributed.gather((outcomes, duration_s))
    return Results(tuple(chain(*(some for some, _ in everyones))), max(seconds for _, seconds in everyones))


def validate(recogniser: Recogniser, fits: Fits, examples: Examples, kept: Kept | None) -> dict[str, float]:
    """The metrics of the validation set under every evaluation that has a checkpoint of its own."""
    config = recogniser.config
    metrics: dict[str, float] = {}
    for evaluation in config.evaluations:
        if evaluation.checkpoint_of is None:
            working, key = control(config, fits, evaluation), (config.seed, evaluation.name)
            decoding = config.validation_decoding
            results = score(recogniser, working, examples.validation, examples.labels, key, decoding, kept)
            values = valid_metrics(results) | {"valid_loss_nats": results.loss_nats}
            metrics |= {f"{name}@{evaluation.name}": value for name, value in values.items()}
    return metrics


def valid_metrics(results: Results) -> dict[str, float]:
    """The metrics of the validation set that a test repeats for the checkpoint that it is of."""
    return {"valid_per": results.per, "valid_macs_per_frame": results.macs_per_frame}


def decode_batch(
    log_probs: Float[Tensor, "B T L"], num_frames: Int[Tensor, " B"], decoding: Decoding
) -> list[tuple[int, ...]]:
    """The labels of each utterance."""
    if decoding.kind == "greedy":
        return decode.greedy(log_probs, num_frames)
    return decode.beam_search(log_probs, num_frames, decoding.width)


def _outcome(
    config: AsrConfig,
    control: Control,
    parts: macs.PartCosts,
    example: Example,
    labels: Sequence[str],
    output: Output,
    row: int,
    hypothesis: tuple[int, ...],
    loss_nats: float,
) -> Outcome:
    length = len(example.frames)
    used_big = output.used_big[row, :length].cpu() > 0
    spoken = label_of_frames(config, example, output.log_probs[row, :length].cpu())
    return Outcome(
        identity=example.identity,
        edits=phone_errors.edits(example.labels, hypothesis),
        loss_nats=loss_nats,
        num_frames=length,
        num_big=int(used_big.sum()),
        num_macs=cost.utterance_macs(config, control.controller, parts, length, int(used_big.sum())),
        surprisals=output.surprisals[row, :length].cpu().numpy()
        if uses_surprisal(control.controller)
        else np.zeros(0, np.float32),
        class_frames=_count_classes(spoken, used_big, labels),
    )


def label_of_frames(config: AsrConfig, example: Example, log_probs: Float[Tensor, "T L"]) -> Int[Tensor, " T"]:
    """The label of each frame, -1 for none: by the corpus's times, or else by CTC's best alignment of the reference.

    Of that alignment, a blank belongs to the nearest label, the earlier of equals.
    """
    spoken = labels_by_times(example, config.ar.features)
    if spoken is not None:
        return spoken
    if not example.labels or len(log_probs) < num_frames_needed(example.labels):
        return torch.full((len(log_probs),), -1)
    blank = log_probs.shape[-1] - 1
    path, _ = forced_align(log_probs[None], torch.tensor([example.labels]), blank=blank)
    places = (path[0] != blank).nonzero()[:, 0]
    nearest = (torch.arange(len(log_probs))[:, None] - places[None]).abs().argmin(1)
    aligned: Tensor = path[0][places[nearest]].long()
    return aligned


def _count_classes(spoken: Int[Tensor, " T"], used_big: Tensor, labels: Sequence[str]) -> dict[str, tuple[int, int]]:
    names = [class_of(label) for label in labels]
    counted = {}
    for name in PHONE_CLASSES:
        members = torch.tensor([label for label, its in enumerate(names) if its == name])
        inside = torch.isin(spoken, members)
        if inside.any():
            counted[name] = (int(inside.sum()), int((inside & used_big).sum()))
    return counted


def test_metrics(results: Results, config: AsrConfig, control: Control, num_labels: int) -> dict[str, float]:
    """Every metric of a test but those of the released conventions."""
    outcomes = results.outcomes
    num_frames, num_phones = sum(o.num_frames for o in outcomes), sum(o.edits.num_labels for o in outcomes)
    rate = sum(o.num_big for o in outcomes) / num_frames
    metrics = {
        "per": results.per,
        "substitution_rate": sum(o.edits.substitutions for o in outcomes) / num_phones,
        "insertion_rate": sum(o.edits.insertions for o in outcomes) / num_phones,
        "deletion_rate": sum(o.edits.deletions for o in outcomes) / num_phones,
        "macs_per_frame": results.macs_per_frame,
        "paper_flops_per_frame": cost.paper_flops_per_frame(config, control.controller, num_labels, rate),
        "routing_rate": rate,
        "num_too_short": sum(math.isinf(o.loss_nats) for o in outcomes),
        "real_time_factor": results.duration_s / (num_frames * config.ar.features.frame_s),
        "eval_frames_per_s": num_frames / results.duration_s,
    }
    if math.isfinite(results.loss_nats):
        metrics["test_loss_nats"] = results.loss_nats
    for name in PHONE_CLASSES:
        counts = [o.class_frames[name] for o in outcomes if name in o.class_frames]
        if counts:
            metrics[f"routing_rate_{name}"] = sum(big for _, big in counts) / sum(number for number, _ in counts)
    surprisals = np.concatenate([o.surprisals for o in outcomes]).astype(np.float64)
    if len(surprisals):
        metrics |= {"surprisal_mean_nats": float(surprisals.mean()), "surprisal_std_nats": float(surprisals.std())}
        metrics |= {f"surprisal_p{100 * q:.0f}_nats": float(np.quantile(surprisals, q)) for q in QUANTILES}
    return metrics
