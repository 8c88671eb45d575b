"""Reader of TIMIT (LDC93S1): `TRAIN/DR1/SPEAKER/*.WAV` or flat `dr1-speaker/*.wav`, in any case, with `.PHN` files."""

import codecs
import io
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainables import rng
from trainables.asr.data import audio
from trainables.asr.data.config import SAMPLE_RATE_HZ, HeldOutSpeakers, Timit
from trainables.asr.data.corpus import Splits, Utterance, choose
from trainables.asr.data.phones import TIMIT_PHONES, fold_timit
from trainables.data_root import data_root, find_folder
from trainables.errors import DataWarning, InputError

_DEVELOPMENT = """faks0 fdac1 fjem0 mgwt0 mjar0 mmdb1 mmdm2 mpdf0 fcmh0 fkms0 mbdg0 mbwm0 mcsh0 fadg0 fdms0 fedw0 mgjf0
    mglb0 mrtk0 mtaa0 mtdt0 mthc0 mwjg0 fnmr0 frew0 fsem0 mbns0 mmjr0 mdls0 mdlf0 mdvc0 mers0 fmah0 fdrw0 mrcs0 mrjm4
    fcal1 mmwh0 fjsj0 majc0 mjsw0 mreb0 fgjd0 fjmg0 mroa0 mteb0 mjfc0 mrjr0 fmml0 mrws1"""
_CORE_TEST = """mdab0 mwbt0 felc0 mtas1 mwew0 fpas0 mjmp0 mlnt0 fpkt0 mlll0 mtls0 fjlm0 mbpm0 mklt0 fnlp0 mcmj0 mjdh0
    fmgd0 mgrt0 mnjm0 fdhc0 mjln0 mpam0 fmld0"""
DEVELOPMENT_SPEAKERS: Final = frozenset(_DEVELOPMENT.split())
"""The 50 of Halberstadt (1998), as commonly used."""

CORE_TEST_SPEAKERS: Final = frozenset(_CORE_TEST.split())
"""The 24 of TIMIT's documentation."""

STANDARD_SIZES: Final = (3696, 400, 192)
_REGION = re.compile(r"(?i)dr[1-8](-\w+)?$")


@dataclass(frozen=True)
class Recording:
    """A sentence's label file, with what its path says."""

    path: Path
    speaker: str
    portion: str

    @property
    def identity(self) -> str:
        """Speaker and sentence in small letters."""
        return f"{self.speaker}_{self.path.stem.lower()}"


def locate(root: Path | None) -> Path:
    """The folder of TIMIT at, or at most two folders below, `root` (default: the setting PONDERAY_DATA).

    Raises:
        InputError: if no root is known, or there is none.
    """
    base = data_root(root, "data.root")
    folder = find_folder(base, is_timit)
    if folder is None:
        raise InputError(
            f"There is no TIMIT at or two folders below {base}; expected TRAIN/DR1/SPEAKER or dr1-speaker folders."
        )
    return folder


def is_timit(folder: Path) -> bool:
    """Whether regions, or TRAIN and TEST with regions, lie in `folder`."""
    inside = [path for path in folder.iterdir() if path.is_dir()]
    portions = [path for path in inside if path.name.lower() in ("train", "test")]
    return any(_REGION.match(path.name) for path in inside) or any(
        _REGION.match(path.name) for portion in portions for path in portion.iterdir()
    )


def recordings(folder: Path) -> Iterator[Recording]:
    """Every sentence below `folder` but the dialect sentences SA1 and SA2, which all speakers share."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() == ".phn" and not path.stem.lower().startswith("sa"):
            parts = [part.lower() for part in (folder.name, *path.relative_to(folder).parts[:-1])]
            # the innermost: the folder of the whole corpus may have such a name too
            portion = next((part for part in reversed(parts) if part in ("train", "test")), "")
            yield Recording(path, parts[-1].rpartition("-")[2], portion)


def read_splits(config: Timit) -> Splits:
    """The three sets with the 39 folded phones and their times."""
    return _split(config, read_utterance)


def read_audio(config: Timit) -> Splits:
    """Training and validation recordings without their phones."""
    splits = _split(config, lambda r: Utterance(r.identity, r.speaker, (), *_audio(r)))
    return Splits(splits.train, splits.validation, test=(), labels=())


def read_utterance(recording: Recording) -> Utterance:
    """One sentence with its folded phones; `q` is dropped.

    Raises:
        InputError: if the label file or the audio is broken.
    """
    labels, times, last = [], [], 0
    text = recording.path.read_bytes().removeprefix(codecs.BOM_UTF8).decode("latin-1")
    for number, line in enumerate(io.StringIO(text, newline=None), start=1):
        if not line.strip():
            continue
        try:
            start, end, phone = line.split()
            folded = fold_timit(phone.lower())
            times_s = (int(start) / SAMPLE_RATE_HZ, int(end) / SAMPLE_RATE_HZ)
            is_in_order, last = last <= int(start) <= int(end), int(start)
        except KeyError:
            raise InputError(
                f"{recording.path}, line {number}: {line.split()[-1]!r} is not a phone of TIMIT."
            ) from None
        except ValueError:
            raise InputError(
                f"{recording.path}, line {number} must be START END PHONE, but is {line.rstrip()!r}."
            ) from None
        if not is_in_order:
            raise InputError(
                f"{recording.path}, line {number} must begin at or after the line before it and end no earlier than it "
                f"begins, but is {line.rstrip()!r}; correct it."
            )
        if folded is not None:
            labels.append(TIMIT_PHONES.index(folded))
            times.append(times_s)
    if not labels:
        raise InputError(f"{recording.path} has no phones.")
    return Utterance(recording.identity, recording.speaker, tuple(labels), *_audio(recording), tuple(times))


def _audio(recording: Recording) -> tuple[int, Path]:
    """Length and place of the recording beside a label file."""
    stem = recording.path.stem.lower()
    beside = sorted(recording.path.parent.iterdir())
    files = [path for path in beside if path.suffix.lower() == ".wav" and path.name.lower().startswith(f"{stem}.")]
    if not files:
        raise InputError(f"{recording.path} has no .wav beside it.")
    return audio.num_samples(files[0]), files[0]


def _split(config: Timit, read: Callable[[Recording], Utterance]) -> Splits:
    folder = locate(config.root)
    corpus = list(recordings(folder))
    if isinstance(config.split, HeldOutSpeakers):
        parts = _held_out(config.split, corpus, folder)
    else:
        parts = _standard(corpus, folder)
    train, validation, test = (tuple(read(recording) for recording in part) for part in parts)
    train = choose(train, config.num_train_utterances, config.split_seed, "train")
    return Splits(train, validation, test, labels=TIMIT_PHONES)


def _standard(corpus: list[Recording], folder: Path) -> tuple[list[Recording], ...]:
    parts = (
        [r for r in corpus if r.portion == "train" and r.speaker not in DEVELOPMENT_SPEAKERS | CORE_TEST_SPEAKERS],
        [r for r in corpus if r.speaker in DEVELOPMENT_SPEAKERS],
        [r for r in corpus if r.speaker in CORE_TEST_SPEAKERS],
    )
    sizes = tuple(map(len, parts))
    if not all(sizes):
        raise InputError(
            f"TIMIT's standard split needs its TRAIN and TEST folders, but {folder} gives {sizes} utterances to train, "
            'validate and test on; for an excerpt `--set data.split=\'{"kind": "held_out_speakers"}\'`.'
        )
    if sizes != STANDARD_SIZES:
        warnings.warn(f"{folder} has {sizes} utterances where TIMIT has {STANDARD_SIZES}.", DataWarning, stacklevel=5)
    return parts


def _held_out(split: HeldOutSpeakers, corpus: list[Recording], folder: Path) -> tuple[list[Recording], ...]:
    speakers = sorted({recording.speaker for recording in corpus})
    num_held_out = split.num_validation_speakers + split.num_test_speakers
    if len(speakers) <= num_held_out:
        raise InputError(
            f"`data.split` must hold out fewer than the {len(speakers)} speakers of {folder}, but got {num_held_out}."
        )
    order = [speakers[i] for i in rng.numpy_generator(split.seed, "held-out speakers").permutation(len(speakers))]
    test, validation = order[: split.num_test_speakers], order[split.num_test_speakers : num_held_out]
    return (
        [r for r in corpus if r.speaker in order[num_held_out:]],
        [r for r in corpus if r.speaker in validation],
        [r for r in corpus if r.speaker in test],
    )
