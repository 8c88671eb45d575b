"""Reader of LibriSpeech's layout: `SUBSET/SPEAKER/CHAPTER/*.flac` with `*.trans.txt`."""

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import soundfile
import torch
from jaxtyping import Float
from torch import Tensor

from trainables import rng
from trainables.asr.config import LibriSpeech
from trainables.asr.corpus import SAMPLE_RATE_HZ, Splits, Utterance
from trainables.asr.phones import LABELS, PHONES, pronounce
from trainables.errors import DataWarning, InputError


def locate(root: Path | None, subset: str) -> Path:
    """The folder of `subset` at, or at most two folders below, `root` (default: the setting PONDERAY_DATA).

    Raises:
        InputError: if no root is known, or the subset is not there.
    """
    base = root or (Path(os.environ["PONDERAY_DATA"]) if os.environ.get("PONDERAY_DATA") else None)
    if base is None:
        raise InputError("No data folder is set; give `--set data.root=PATH` or set PONDERAY_DATA.")
    if not base.is_dir():
        raise InputError(f"The data folder {base} does not exist; give `--set data.root=PATH` or set PONDERAY_DATA.")
    for pattern in (subset, f"*/{subset}", f"*/*/{subset}"):
        for folder in sorted(base.glob(pattern)):
            if folder.is_dir():
                return folder
    raise InputError(f"There is no folder {subset!r} at or two folders below {base}.")


def read_splits(config: LibriSpeech) -> Splits:
    """Training and validation utterances of held-out speakers from `train`, and those of `test`.

    Utterances with a word that the dictionary lacks are left out and counted.
    """
    train, num_skipped = _read_subset(locate(config.root, config.train))
    test, num_skipped_test = _read_subset(locate(config.root, config.test))
    speakers = sorted({utterance.speaker for utterance in train})
    shared = {utterance.speaker for utterance in test} & set(speakers)
    if shared:
        raise InputError(
            f"{config.train} and {config.test} must have no speaker in common, but share speaker {min(shared)}."
        )
    if len(speakers) <= config.num_validation_speakers:
        raise InputError(
            f"`data.num_validation_speakers` must be below the {len(speakers)} speakers of {config.train}, "
            f"but got {config.num_validation_speakers}."
        )
    order = rng.numpy_generator(config.split_seed, "validation speakers").permutation(len(speakers))
    held_out = {speakers[i] for i in order[: config.num_validation_speakers]}
    validation = [utterance for utterance in train if utterance.speaker in held_out]
    rest = [utterance for utterance in train if utterance.speaker not in held_out]
    return Splits(
        train=_choose(rest, config.num_train_utterances, config.split_seed, "train"),
        validation=_choose(validation, config.num_validation_utterances, config.split_seed, "validation"),
        test=_choose(test, config.num_test_utterances, config.split_seed, "test"),
        labels=PHONES,
        num_skipped=num_skipped + num_skipped_test,
    )


def _choose(utterances: Sequence[Utterance], number: int | None, seed: int, name: str) -> tuple[Utterance, ...]:
    if number is None or number >= len(utterances):
        return tuple(utterances)
    chosen = rng.numpy_generator(seed, "choose", name).permutation(len(utterances))[:number]
    return tuple(utterances[i] for i in np.sort(chosen))


def _read_subset(folder: Path) -> tuple[list[Utterance], int]:
    utterances, num_skipped = [], 0
    for transcript in sorted(folder.glob("*/*/*.trans.txt")):
        for identity, words in _transcripts(transcript):
            audio = transcript.parent / f"{identity}.flac"
            num_samples = _check_audio(audio, transcript)
            phones = [pronounce(word) for word in words]
            if None in phones:
                num_skipped += 1
                continue
            labels = tuple(LABELS[phone] for word in phones for phone in word or ())
            utterances.append(Utterance(identity, transcript.parent.parent.name, labels, num_samples, audio))
    if not utterances:
        raise InputError(
            f"No usable utterance in {folder} ({num_skipped} left out for words that the dictionary lacks); "
            "expected SPEAKER/CHAPTER/*.trans.txt beside *.flac."
        )
    if num_skipped:
        warnings.warn(
            f"{num_skipped} of {num_skipped + len(utterances)} utterances of {folder.name} are left out: "
            "each has a word that the pronouncing dictionary lacks.",
            DataWarning,
            stacklevel=2,
        )
    return utterances, num_skipped


def _transcripts(path: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8 text, but {error.reason} at byte {error.start}.") from None
    for line in filter(str.strip, lines):
        identity, *words = line.split()
        if not words:
            raise InputError(f"{path}: utterance {identity} has no words.")
        yield identity, words


def _check_audio(path: Path, transcript: Path) -> int:
    """The number of samples that the header promises."""
    if not path.is_file():
        raise InputError(f"{transcript} has a line for {path.name}, but that file is not there.")
    try:
        header = soundfile.info(str(path))
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path} cannot be read as audio: {error.error_string}") from None
    if header.samplerate != SAMPLE_RATE_HZ or header.channels != 1:
        raise InputError(
            f"{path} must be {SAMPLE_RATE_HZ} Hz with one channel, "
            f"but is {header.samplerate} Hz with {header.channels}; resample it first."
        )
    return int(header.frames)


def read_waveform(path: Path) -> Float[Tensor, " N"]:
    """The samples in [-1, 1].

    Raises:
        InputError: if the file breaks off or is damaged.
    """
    try:
        samples, _ = soundfile.read(str(path), dtype="float32")
        expected = soundfile.info(str(path)).frames
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path} cannot be read as audio: {error.error_string}") from None
    if len(samples) != expected:
        raise InputError(f"{path} is broken: its header promises {expected} samples, but it holds {len(samples)}.")
    return torch.from_numpy(samples)
