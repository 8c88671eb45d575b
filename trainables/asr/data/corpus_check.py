"""Reads a corpus once, whole, and says what is in it: for people, before they train on it."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainables.asr.data import audio, librispeech, textgrids, timit
from trainables.asr.data.config import SAMPLE_RATE_HZ
from trainables.asr.data.phones import TIMIT_PHONES, pronounce
from trainables.config import content_hash
from trainables.data_root import find_folder
from trainables.errors import InputError


@dataclass(frozen=True)
class CorpusPart:
    """A part of a corpus on disk: a LibriSpeech subset, or TIMIT's training or test speakers.

    Attributes:
        files: its transcripts or label files.
    """

    name: str
    layout: Literal["librispeech", "timit"]
    folder: Path
    files: tuple[Path, ...]


@dataclass(frozen=True)
class FileReport:
    """One recording, or why it is none.

    Attributes:
        phones: distinct names.
        problem: one line; empty where all is well.
        digest: of the audio file, the words and the aligned phones.
    """

    speaker: str = ""
    num_samples: int = 0
    phones: frozenset[str] = frozenset()
    unknown_words: tuple[str, ...] = ()
    has_textgrid: bool = False
    problem: str = ""
    digest: str = ""


@dataclass(frozen=True)
class SetReport:
    """What is in one set.

    Attributes:
        unknown_words: those that the pronouncing dictionary lacks, with their counts, the most frequent first.
        num_with_unknown_words: utterances that have some; `data.phones` says what becomes of them.
        problems: one line for each broken, missing or untranscribed file.
        fingerprint: 16 digits of the content of every whole recording, its words and its aligned phones.
    """

    name: str
    layout: str
    num_utterances: int
    num_speakers: int
    hours: float
    num_phones: int
    num_textgrids: int
    unknown_words: tuple[tuple[str, int], ...]
    num_with_unknown_words: int
    problems: tuple[str, ...]
    fingerprint: str


def find_sets(path: Path) -> tuple[CorpusPart, ...]:
    """Every LibriSpeech subset below `path`, and the TIMIT at or two folders below it.

    Raises:
        InputError: if there is none, or no such folder.
    """
    if not path.is_dir():
        raise InputError(f"The data folder {path} does not exist.")
    path = path.absolute()
    subsets = sorted(
        {transcript.parents[2] for transcript in path.rglob("*.trans.txt") if path in tuple(transcript.parents)[2:]}
    )
    sets = [
        CorpusPart(subset.name, "librispeech", subset, tuple(sorted(subset.glob("*/*/*.trans.txt"))))
        for subset in subsets
    ]
    folder = find_folder(path, timit.is_timit)
    recordings = list(timit.recordings(folder)) if folder else []
    for portion in sorted({recording.portion for recording in recordings}):
        files = tuple(recording.path for recording in recordings if recording.portion == portion)
        assert folder is not None
        sets.append(CorpusPart(f"{folder.name} {portion}".strip(), "timit", folder, files))
    if not sets:
        raise InputError(
            f"{path} holds no corpus: expected SUBSET/SPEAKER/CHAPTER/*.trans.txt (LibriSpeech), "
            "or TRAIN/DR1/SPEAKER or dr1-speaker folders (TIMIT)."
        )
    return tuple(sets)


def examine(part: CorpusPart, aligned: Path | None = None) -> Iterator[FileReport]:
    """Every recording of a set, read to its end.

    Args:
        aligned: folder of TextGrids; default: beside the audio.
    """
    if part.layout == "timit":
        wanted = set(part.files)
        yield from (
            _examine_sentence(recording) for recording in timit.recordings(part.folder) if recording.path in wanted
        )
        return
    listed: dict[Path, librispeech.Transcript] = {}
    grids = textgrids.index(aligned or part.folder)
    for file in part.files:
        try:
            lines = librispeech.read_transcript(file)
            librispeech.once(known for line in lines for known in (listed.get(line.audio, line), line))
        except InputError as error:
            yield FileReport(problem=str(error))
            continue
        for line in lines:
            if line.audio not in listed:
                listed[line.audio] = line
                yield _examine_line(line, grids.get(line.identity))
    for path in sorted(set(part.folder.glob("*/*/*.flac")) - listed.keys()):
        yield FileReport(problem=f"{path} has no line in a transcript; only an autoregressive model can use it.")


def _examine_line(line: librispeech.Transcript, grid: Path | None) -> FileReport:
    pronounced = {word: pronounce(word) for word in line.words}
    phones = frozenset(phone for spoken in pronounced.values() for phone in spoken or ())
    try:
        line.check_audio()
        num_samples = _read(line.audio)
        aligned = textgrids.read(grid) if grid else ()
    except InputError as error:
        return FileReport(line.speaker, problem=str(error))
    unknown = tuple(word for word in line.words if pronounced[word] is None)
    digest = _digest(line.audio, [line.identity, *line.words, *map(repr, aligned)])
    return FileReport(line.speaker, num_samples, phones, unknown, grid is not None, "", digest)


def _examine_sentence(recording: timit.Recording) -> FileReport:
    try:
        utterance = timit.read_utterance(recording)
        assert utterance.audio is not None
        num_samples = _read(utterance.audio)
    except InputError as error:
        return FileReport(recording.speaker, problem=str(error))
    phones = frozenset(TIMIT_PHONES[label] for label in utterance.labels)
    digest = _digest(utterance.audio, [utterance.identity, *map(str, utterance.labels)])
    return FileReport(recording.speaker, num_samples, phones, digest=digest)


def _read(path: Path) -> int:
    """The number of samples, all of which can be read."""
    audio.num_samples(path)
    return len(audio.read_waveform(path))


def _digest(path: Path, words: Sequence[str]) -> str:
    return hashlib.sha256(path.read_bytes() + "\0".join(words).encode()).hexdigest()


def summarise(part: CorpusPart, files: Iterable[FileReport]) -> SetReport:
    """What the files of a set come to."""
    every = list(files)
    whole = [file for file in every if not file.problem]
    unknown = Counter(word for file in whole for word in file.unknown_words)
    return SetReport(
        name=part.name,
        layout=part.layout,
        num_utterances=len(whole),
        num_speakers=len({file.speaker for file in whole}),
        hours=sum(file.num_samples for file in whole) / SAMPLE_RATE_HZ / 3600,
        num_phones=len(frozenset().union(*(file.phones for file in whole))),
        num_textgrids=sum(file.has_textgrid for file in whole),
        unknown_words=tuple(unknown.most_common()),
        num_with_unknown_words=sum(bool(file.unknown_words) for file in whole),
        problems=tuple(file.problem for file in every if file.problem),
        fingerprint=content_hash(sorted(file.digest for file in whole)),
    )
