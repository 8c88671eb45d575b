"""Reader of LibriSpeech's layout: `SUBSET/SPEAKER/CHAPTER/*.flac` with `*.trans.txt`."""

import warnings
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from trainables import rng
from trainables.asr.data import audio, released_csv, textgrids
from trainables.asr.data.config import LibriSpeech
from trainables.asr.data.corpus import Splits, Utterance, choose
from trainables.asr.data.phones import PHONES, PHONES_SIL_SPN, SPOKEN_NOISE, pronounce
from trainables.data_root import data_root, find_folder
from trainables.errors import DataWarning, InputError


@dataclass(frozen=True)
class Transcript:
    """One line of a `*.trans.txt`."""

    identity: str
    words: tuple[str, ...]
    file: Path

    @property
    def audio(self) -> Path:
        """The recording beside it."""
        return self.file.parent / f"{self.identity}.flac"

    @property
    def speaker(self) -> str:
        """The speaker, by the folder's name."""
        return self.file.parent.parent.name

    def check_audio(self) -> None:
        """Raises InputError where the recording is missing."""
        if not self.audio.is_file():
            raise InputError(f"{self.file} has a line for {self.audio.name}, but that file is missing.")


@dataclass(frozen=True)
class _Spoken:
    """Phones by name, with their times where they are known."""

    phones: tuple[str, ...]
    times_s: tuple[tuple[float, float], ...] | None = None


def locate(root: Path | None, subset: str) -> Path:
    """The folder of `subset` at, or at most two folders below, `root` (default: the setting PONDERAY_DATA).

    Raises:
        InputError: if no root is known, or the subset is not there.
    """
    base = data_root(root, "data.root")
    parent = find_folder(base, lambda folder: (folder / subset).is_dir())
    if parent is None:
        raise InputError(
            f"There is no folder {subset!r} at or two folders below {base}; `ponderay data get` fetches LibriSpeech's, "
            "`--set data.train=NAME` names another, `--set ar.data=null` pretrains on the task's own audio."
        )
    return parent / subset


def read_splits(config: LibriSpeech) -> Splits:
    """Training and validation utterances of held-out speakers from `train`, and those of `test`, with their phones.

    Utterances without known phones are left out and counted; so are words that become spoken noise.
    """
    train, test = ([locate(config.root, name) for name in names] for names in (config.train, config.test))
    shared = set(_speakers(train)) & set(_speakers(test))
    if shared:
        raise InputError(
            f"{', '.join(config.train)} and {', '.join(config.test)} must have no speaker in common, "
            f"but share speaker {min(shared)}."
        )
    transcripts = [[line for folder in folders for line in read_transcripts(folder)] for folders in (train, test)]
    match config.phones:
        case "dictionary" | "dictionary_spn":
            spoken = _dictionary_phones(config, transcripts)
        case "released_csv":
            spoken = _from_csv(config, train + test, transcripts)
        case _:
            spoken = _aligned(config, transcripts)
    labels = _label_set(config, spoken, transcripts[0])
    number = {phone: label for label, phone in enumerate(labels)}
    found = [[_utterance(line, spoken[line], number) for line in lines if line in spoken] for lines in transcripts]
    for folders, lines, kept in zip((train, test), transcripts, found, strict=True):
        name = ", ".join(folder.name for folder in folders)
        if config.phones == "dictionary_spn":
            _say_unknown(name, lines)
        else:
            _say_skipped(name, len(lines) - len(kept), len(lines), config)
        if not kept:
            raise InputError(
                f"No usable utterance in {', '.join(map(str, folders))} ({len(lines)} left out); "
                "expected SPEAKER/CHAPTER/*.trans.txt beside *.flac."
            )
    training, validation = _hold_out(config, train, found[0])
    return Splits(
        train=training,
        validation=validation,
        test=choose(found[1], config.num_test_utterances, config.split_seed, "test"),
        labels=labels,
        num_skipped=sum(len(lines) for lines in transcripts) - len(spoken),
    )


def read_audio(config: LibriSpeech, spared: LibriSpeech | None = None) -> Splits:
    """Every recording of `train`, transcribed or not, split by the same held-out speakers.

    Args:
        spared: a task whose validation and test speakers are left out.
    """
    folders = [locate(config.root, name) for name in config.train]
    left_out: Set[str] = set()
    if spared:
        train, test = ([locate(spared.root, name) for name in names] for names in (spared.train, spared.test))
        left_out = _validation_speakers(spared, train) | set(_speakers(test))
    paths = sorted(p for folder in folders for p in folder.glob("*/*/*.flac") if p.parent.parent.name not in left_out)
    if not paths:
        raise InputError(f"No SPEAKER/CHAPTER/*.flac in {', '.join(map(str, folders))}.")
    utterances = [Utterance(path.stem, path.parent.parent.name, (), audio.num_samples(path), path) for path in paths]
    training, validation = _hold_out(config, folders, utterances, left_out)
    return Splits(training, validation, test=(), labels=())


def read_transcripts(folder: Path) -> list[Transcript]:
    """Every recording's line in the transcripts below a subset's `folder`."""
    return once(line for path in sorted(folder.glob("*/*/*.trans.txt")) for line in read_transcript(path))


def once(lines: Iterable[Transcript]) -> list[Transcript]:
    """The first line of each recording.

    Raises:
        InputError: if another one has other words.
    """
    by_audio: dict[Path, Transcript] = {}
    for line in lines:
        first = by_audio.setdefault(line.audio, line)
        if line.words != first.words:
            where = first.file if first.file == line.file else f"{first.file} and {line.file}"
            texts = f"{' '.join(first.words)!r} and {' '.join(line.words)!r}"
            raise InputError(f"{where}: utterance {line.identity} must have one text, but has {texts}; remove one.")
    return list(by_audio.values())


def read_transcript(path: Path) -> list[Transcript]:
    """Every recording's line in a transcript; byte order marks, which files that were joined have within, are no text.

    Raises:
        InputError: if it is no UTF-8 text, a line has no words, or a recording has two texts.
    """
    try:
        lines = path.read_text(encoding="utf-8").replace("\ufeff", "").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} must be UTF-8 text, but {error.reason} at byte {error.start}.") from None
    transcripts = [Transcript(line.split()[0], tuple(line.split()[1:]), path) for line in lines if line.strip()]
    without = [line.identity for line in transcripts if not line.words]
    if without:
        raise InputError(f"{path}: utterance {without[0]} has no words.")
    return once(transcripts)


def _speakers(folders: Sequence[Path]) -> list[str]:
    """The names of folders with recordings: disks and editors put others beside them."""
    return sorted({path.name for folder in folders for path in folder.iterdir() if any(path.glob("*/*.flac"))})


def _validation_speakers(config: LibriSpeech, folders: Sequence[Path], left_out: Set[str] = frozenset()) -> set[str]:
    """A seeded choice of the folders' speakers that are not left out; it depends on nothing else."""
    speakers = [speaker for speaker in _speakers(folders) if speaker not in left_out]
    if len(speakers) <= config.num_validation_speakers:
        raise InputError(
            f"`data.num_validation_speakers` must be below the {len(speakers)} speakers of {', '.join(config.train)}, "
            f"but got {config.num_validation_speakers}."
        )
    order = rng.numpy_generator(config.split_seed, "validation speakers").permutation(len(speakers))
    return {speakers[i] for i in order[: config.num_validation_speakers]}


def _hold_out(
    config: LibriSpeech, folders: Sequence[Path], utterances: Sequence[Utterance], left_out: Set[str] = frozenset()
) -> tuple[tuple[Utterance, ...], tuple[Utterance, ...]]:
    """Training and validation utterances."""
    held_out = _validation_speakers(config, folders, left_out)
    validation = [utterance for utterance in utterances if utterance.speaker in held_out]
    rest = [utterance for utterance in utterances if utterance.speaker not in held_out]
    return (
        choose(rest, config.num_train_utterances, config.split_seed, "train"),
        choose(validation, config.num_validation_utterances, config.split_seed, "validation"),
    )


def _dictionary_phones(config: LibriSpeech, transcripts: Sequence[Sequence[Transcript]]) -> dict[Transcript, _Spoken]:
    unknown = (SPOKEN_NOISE,) if config.phones == "dictionary_spn" else None
    spoken = {}
    for line in (line for lines in transcripts for line in lines):
        words = [pronounce(word) or unknown for word in line.words]
        if None not in words:
            spoken[line] = _Spoken(tuple(phone for word in words for phone in word or ()))
    return spoken


def _aligned(config: LibriSpeech, transcripts: Sequence[Sequence[Transcript]]) -> dict[Transcript, _Spoken]:
    """The phones and their times from the TextGrids on disk."""
    folders = {line.file.parent.parent.parent for lines in transcripts for line in lines}
    files: dict[str, Path] = {}
    for folder in sorted(folders) if config.textgrids is None else [config.textgrids]:
        files |= textgrids.index(folder)
    spoken = {}
    for line in (line for lines in transcripts for line in lines if line.identity in files):
        path = files[line.identity]
        intervals = textgrids.read(path)
        names = [
            i.phone if config.phones == "textgrid_found" else textgrids.to_arpabet(i.phone, path) for i in intervals
        ]
        spoken[line] = _Spoken(tuple(names), tuple((i.start_s, i.end_s) for i in intervals))
    return spoken


def _from_csv(
    config: LibriSpeech, folders: Sequence[Path], transcripts: Sequence[Sequence[Transcript]]
) -> dict[Transcript, _Spoken]:
    """The phones and their times from the rows of the released files."""
    places = {folder.parent for folder in folders} if config.csvs is None else {config.csvs}
    rows = released_csv.index(path for place in sorted(places) for path in sorted(place.glob("*.csv")))
    return {
        line: _Spoken(row.phones, row.times_s)
        for lines in transcripts
        for line in lines
        if (row := rows.get(line.identity))
    }


def _label_set(config: LibriSpeech, spoken: dict[Transcript, _Spoken], train: Sequence[Transcript]) -> tuple[str, ...]:
    if config.phones == "textgrid_found":
        in_training = {phone for line in train for phone in (spoken[line].phones if line in spoken else ())}
        unseen = next(
            ((line, phone) for line, speech in spoken.items() for phone in speech.phones if phone not in in_training),
            None,
        )
        if unseen:
            raise InputError(f"{unseen[0].identity} has the phone {unseen[1]!r}, which {config.train[0]} never has.")
        return tuple(sorted(in_training))
    return PHONES if config.phones == "dictionary" else PHONES_SIL_SPN


def _utterance(line: Transcript, spoken: _Spoken, number: dict[str, int]) -> Utterance:
    line.check_audio()
    labels = tuple(number[phone] for phone in spoken.phones)
    return Utterance(line.identity, line.speaker, labels, audio.num_samples(line.audio), line.audio, spoken.times_s)


def _say_skipped(name: str, number: int, out_of: int, config: LibriSpeech) -> None:
    if not number or number == out_of:
        return
    why = "stands in no CSV file." if config.phones == "released_csv" else "has no TextGrid."
    if config.phones == "dictionary":
        why = "has a word that is not in the pronouncing dictionary; `--set data.phones=dictionary_spn` keeps them."
    message = f"{number:,} of {out_of:,} utterances ({100 * number / out_of:.0f} %) of {name} are left out: each {why}"
    warnings.warn(message, DataWarning, stacklevel=4)


def _say_unknown(name: str, lines: Sequence[Transcript]) -> None:
    words = [word for line in lines for word in line.words]
    number = sum(pronounce(word) is None for word in words)
    if number:
        message = f"{number:,} of {len(words):,} words ({100 * number / len(words):.1f} %) of {name} are not in the"
        warnings.warn(
            f"{message} pronouncing dictionary: each is the one label {SPOKEN_NOISE}.", DataWarning, stacklevel=4
        )
