"""Ponder on text beside surprisal and entropy (Graves 2016, figures 23 and 24), by kind of byte, and by sentence."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from trainables.act.analysis.trained import ponder_of, predictions_of, results_of
from trainables.act.byte_kinds import kinds_of
from trainables.act.config import ActConfig, Evaluation, Text
from trainables.act.figure import visible
from trainables.act.tasks import data, text
from trainables.analysis import Cells
from trainables.errors import InputError
from trainables.texts import unreadable

SENTENCE_END = re.compile(rb"[.!?](?=\s)")
MOST_CHARACTERS = 24


def by_byte(
    config: ActConfig, checkpoint: Path, evaluation: Evaluation, file: Path | None, first: int | None, count: int
) -> Cells:
    """N, N + R, surprisal and entropy of what follows, for `count` bytes from the `first` on (by default the middle).

    Args:
        file: a passage; by default the first sequence of the test.

    Raises:
        InputError: if the passage cannot be read, or ends before the `first` byte.
    """
    sequences = data.test_set(config, evaluation).rows(slice(1)) if file is None else _passage(file)
    length = int(sequences.num_steps[0])
    start = length // 2 if first is None else first - 1
    if start >= length:
        raise InputError(f"`first` must be at most {length}, the bytes that are read, but got {first}.")
    results = results_of(config, checkpoint, sequences, evaluation)
    measures = {**ponder_of(results), **predictions_of(results)}
    read = sequences.inputs[0].tolist()
    return {
        (step + 1, visible(read[step]), bytes([read[step]]).isspace(), name): float(values[0, step])
        for step in range(start, min(start + count, length))
        for name, values in measures.items()
    }


def _passage(file: Path) -> data.Batch:
    try:
        content = np.frombuffer(file.read_bytes(), np.uint8)
    except OSError as error:
        raise unreadable(file, "give `--option file=PATH`", error) from None
    if len(content) < 2:
        raise InputError(f"{file} must have at least 2 bytes, but has {len(content)}.")
    return text.consecutive(Text(num_steps=len(content) - 1), content, 1)


def by_kind(config: ActConfig, checkpoint: Path, evaluation: Evaluation) -> Cells:
    """The share of each kind of byte in the test, with its mean N, N + R, surprisal and entropy."""
    sequences = data.test_set(config, evaluation)
    results = results_of(config, checkpoint, sequences, evaluation)
    is_step = results.is_step
    read, following = (part.numpy()[is_step] for part in (sequences.inputs, sequences.targets[:, :, 0]))
    kinds = {"all": np.ones(len(read), bool), **kinds_of(read, following)}
    measures = {name: part[is_step] for name, part in {**ponder_of(results), **predictions_of(results)}.items()}
    cells: dict[tuple[Any, ...], float] = {}
    for kind, is_it in kinds.items():
        if is_it.any():
            cells[kind, "share"] = float(is_it.mean())
            cells |= {(kind, name): float(values[is_it].mean()) for name, values in measures.items()}
    return cells


def by_sentence(config: ActConfig, checkpoint: Path, evaluation: Evaluation, count: int) -> Cells:
    """Bytes, sum of N, and N and surprisal for each byte, of the first `count` whole sentences of the test.

    Raises:
        InputError: if there is no whole sentence.
    """
    sequences = data.test_set(config, evaluation)
    results = results_of(config, checkpoint, sequences, evaluation)
    is_step = results.is_step
    read = sequences.inputs.numpy()[is_step].astype(np.uint8).tobytes()
    updates, bits = results.num_updates[is_step], predictions_of(results)["surprisal_bits"][is_step]
    ends = [match.end() for match in SENTENCE_END.finditer(read)][: count + 1]
    if len(ends) < 2:
        raise InputError("The test must have a whole sentence, with one before it; give the evaluation more sequences.")
    cells: dict[tuple[Any, ...], float] = {}
    for number, (start, end) in enumerate(pairwise(ends), start=1):
        words = " ".join(read[start:end].decode(errors="replace").split())
        name = (number, words if len(words) <= MOST_CHARACTERS else f"{words[: MOST_CHARACTERS - 1]}\u2026")
        cells[*name, "bytes"] = float(end - start)
        cells[*name, "updates"] = float(updates[start:end].sum())
        cells[*name, "updates_per_byte"] = float(updates[start:end].mean())
        cells[*name, "bits_per_byte"] = float(bits[start:end].mean())
    return cells
