"""What a frozen autoregressive model says of each utterance, computed once and kept for all epochs and replicates.

An utterance has a row for each frame: its feature, where the recogniser reads features, and last its surprisal.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from trainables import distributed
from trainables.asr import autoregressive, encoders, recurrent
from trainables.asr.autoregressive import AutoregressiveModel, surprisal
from trainables.asr.config import AsrConfig, Controller
from trainables.asr.cost import runs_ar
from trainables.asr.data import cache
from trainables.asr.data.batches import Batch, bucketed, collate
from trainables.asr.data.examples import Example
from trainables.config import content_hash
from trainables.errors import InputError

Kept = Mapping[str, Float[Tensor, "N K"]]
"""Rows by the utterance's identity."""

BATCH_SIZE = 32


def keep_all(
    config: AsrConfig, ar: AutoregressiveModel, controllers: Sequence[Controller], *splits: Sequence[Example]
) -> Kept | None:
    """What `keep` gives of all splits; None where `ar` is trained on, or no controller and no network needs it."""
    if config.ar_loss_weight is not None or not any(runs_ar(config, controller) for controller in controllers):
        return None
    by_split = [keep(config, ar, split) for split in splits]
    if any(part is None for part in by_split):
        return None
    return {identity: rows for part in by_split if part for identity, rows in part.items()}


def keep(config: AsrConfig, ar: AutoregressiveModel, examples: Sequence[Example]) -> Kept | None:
    """What `ar` says of each utterance: from PONDERAY_CACHE where it is whole, else computed, and kept there.

    None where features have no room there: `ar` runs then for each batch, whose size may change the last digits.

    Raises:
        InputError: if two utterances have one identity.
    """
    numbers = {example.identity: number for number, example in enumerate(examples)}
    for number, example in enumerate(examples):
        if numbers[example.identity] != number:
            raise InputError(f"Utterance {example.identity} stands twice in one split; name each subset once.")
    with_features, lengths = config.inputs == "ar_features", [len(example.frames) for example in examples]
    width, key = config.ar.hidden_size * with_features + 1, _key(config, ar, examples)
    place = cache.folder("ar_features" if with_features else "surprisals")
    if with_features and place and not cache.has_room(place, key, lengths, width):
        return None
    rows = cache.rows(place, key, lengths, width, lambda: read(ar, examples, with_features))
    return {example.identity: own for example, own in zip(examples, rows, strict=True)}


def read(
    ar: AutoregressiveModel, examples: Sequence[Example], with_features: bool
) -> Iterator[tuple[int, Float[Tensor, "T K"]]]:
    """The rows of each utterance, with its number in `examples`; the longest utterances come first."""
    ar.eval()
    numbers = {example.identity: number for number, example in enumerate(examples)}
    for group in bucketed(examples, BATCH_SIZE):
        frames = collate(group, distributed.device()).frames
        with torch.no_grad():
            features, predictions = ar(frames)
        surprisals = surprisal(frames, predictions)[..., None]
        rows = (torch.cat([features, surprisals], dim=-1) if with_features else surprisals).cpu()
        for example, own in zip(group, rows, strict=True):
            yield numbers[example.identity], own[: len(example.frames)]


def pad(kept: Kept | None, batch: Batch) -> Float[Tensor, "B T K"] | None:
    """The rows of a batch's utterances, padded with zeros, where its frames are; None for None."""
    if kept is None:
        return None
    rows = [kept[identity] for identity in batch.identities]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(batch.frames.device)


def _key(config: AsrConfig, ar: AutoregressiveModel, examples: Sequence[Example]) -> str:
    """The hash of all that the rows depend on: model, frames, how both are computed and on what."""
    content = hashlib.sha256()
    for name, value in ar.state_dict().items():
        content.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    for example in examples:
        content.update(f"{example.identity} {len(example.frames)}".encode())
        content.update(example.frames.contiguous().numpy().data)
    device = distributed.device()
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else torch.backends.cpu.get_cpu_capability()
    files = (__file__, autoregressive.__file__, encoders.__file__, recurrent.__file__)
    sources = [cache.digest(Path(file)) for file in files if file]
    return content_hash(content.hexdigest(), config.ar.encoder, sources, torch.__version__, where)
