"""The utterances of a corpus in their splits, and the fingerprints of what is read; loads no torch."""

from trainables.asr.data import audio, librispeech, onsets, synthetic, timit
from trainables.asr.data.config import Data, LibriSpeech, Onsets, Synthetic, Timit
from trainables.asr.data.corpus import Splits, Utterance
from trainables.config import content_hash
from trainables.errors import InputError


def read_splits(config: Data) -> Splits:
    """The utterances that `config` names; reads transcripts and audio headers only.

    Raises:
        InputError: if something is broken, or two utterances have one name, which would count twice.
    """
    match config:
        case LibriSpeech():
            splits = librispeech.read_splits(config)
        case Timit():
            splits = timit.read_splits(config)
        case Synthetic():
            splits = synthetic.make_splits(config)
        case Onsets():
            splits = onsets.make_splits(config)
    return _refuse_twins(splits)


def _refuse_twins(splits: Splits) -> Splits:
    """The splits; raises InputError where two utterances have one name."""
    by_name: dict[str, Utterance] = {}
    for utterance in (*splits.train, *splits.validation, *splits.test):
        first = by_name.setdefault(utterance.identity, utterance)
        if first is not utterance:
            raise InputError(
                f"Each utterance must have a name of its own, but {first.audio} and {utterance.audio} are both "
                f"{utterance.identity}; rename or remove one, and name each subset once."
            )
    return splits


def read_audio_splits(config: Data, spared: LibriSpeech | None = None) -> Splits:
    """The recordings to train and validate on, transcribed or not; without `spared`, of the speakers of `read_splits`.

    Args:
        spared: a task whose validation and test speakers are left out.

    Raises:
        InputError: as `read_splits`.
    """
    match config:
        case LibriSpeech():
            return _refuse_twins(librispeech.read_audio(config, spared))
        case Timit():
            return _refuse_twins(timit.read_audio(config))
        case Synthetic():
            return synthetic.make_splits(config)
        case Onsets():
            return onsets.make_splits(config)


def data_fingerprint(config: Data) -> str:
    """16 digits that change with any label or its times, any recording's name or sound, and the split."""
    splits = read_splits(config)
    rows = [
        [(u.identity, u.speaker, u.labels, u.times_s, _sound(u)) for u in part]
        for part in (splits.train, splits.validation, splits.test)
    ]
    return content_hash(config, splits.labels, rows)


def audio_fingerprint(config: Data, spared: LibriSpeech | None = None) -> str:
    """16 digits that change with any recording's name or sound, and the split."""
    splits = read_audio_splits(config, spared)
    rows = [[(u.identity, u.speaker, _sound(u)) for u in part] for part in (splits.train, splits.validation)]
    return content_hash(config, rows)


def _sound(utterance: Utterance) -> tuple[int, str]:
    """What changes with the waveform; what is synthesised follows from the config."""
    return utterance.num_samples, audio.checksum(utterance.audio) if utterance.audio else ""
