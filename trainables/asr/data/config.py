"""What can be set of a corpus and of the frames made from it."""

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from trainables.config import Config, Count, Place, Positive

SAMPLE_RATE_HZ: Final = 16_000
"""The sample rate of all audio that the recognisers read."""

SubsetName = Annotated[str, Field(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$")]


def _several(names: object) -> object:
    """A single name stands for a list of one."""
    return (names,) if isinstance(names, str) else names


Subsets = Annotated[tuple[SubsetName, ...], BeforeValidator(_several), Field(min_length=1)]


class LibriSpeech(Config):
    """A folder in LibriSpeech's layout: `SUBSET/SPEAKER/CHAPTER/*.flac` and `*.trans.txt`."""

    kind: Literal["librispeech"] = "librispeech"
    root: Place = Field(None, description="default: the setting PONDERAY_DATA")
    train: Subsets = ("train-clean-5",)
    test: Subsets = ("test-clean",)
    phones: Literal["dictionary", "dictionary_spn", "textgrid", "textgrid_found", "released_csv"] = Field(
        "dictionary_spn",
        description="dictionary_spn: 41 labels with sil and spn, first pronunciation of the CMU dictionary without "
        "stress, a word it lacks is spn; dictionary: 39 labels, an utterance with such a word is left out; "
        "textgrid: the 41 from an aligner's tier `phones`; textgrid_found: whatever labels the TextGrids hold; "
        "released_csv: the 41 from the column phonemes_39 of the released code's CSV files",
    )
    textgrids: Place = Field(
        None, description="folder with UTTERANCE.TextGrid for each recording, at any depth; default: beside the audio"
    )
    csvs: Place = Field(None, description="folder with the CSV files of released_csv; default: that of the subsets")
    num_validation_speakers: Count = 3
    num_train_utterances: Count | None = Field(None, description="a seeded choice of so many; default: all")
    num_validation_utterances: Count | None = None
    num_test_utterances: Count | None = None
    split_seed: int = 1


class StandardSplit(Config):
    """TIMIT's training speakers, its 50 development speakers and its 24 core test speakers."""

    kind: Literal["standard"] = "standard"


class HeldOutSpeakers(Config):
    """Seeded choices of speakers for validation and test; all others train. For excerpts of TIMIT."""

    kind: Literal["held_out_speakers"] = "held_out_speakers"
    num_validation_speakers: Count = 2
    num_test_speakers: Count = 4
    seed: int = 1


class Timit(Config):
    """TIMIT (LDC93S1), 61 phones folded to 39; `TRAIN/DR1/SPEAKER/*.WAV` or flat `dr1-speaker/*.wav`, in any case."""

    kind: Literal["timit"] = "timit"
    root: Place = Field(None, description="default: the setting PONDERAY_DATA")
    split: Annotated[StandardSplit | HeldOutSpeakers, Field(discriminator="kind")] = StandardSplit()
    num_train_utterances: Count | None = Field(None, description="a seeded choice of so many; default: all")
    split_seed: int = 1


class Synthetic(Config):
    """Waveforms made from known phones by a formant synthesiser; the same on every machine."""

    kind: Literal["synthetic"] = "synthetic"
    num_speakers: Annotated[int, Field(ge=3)] = 12
    num_train_utterances: Count = 240
    num_validation_utterances: Count = 24
    num_test_utterances: Count = 48
    num_words: Count = Field(24, description="size of the lexicon")
    num_words_per_utterance: Count = 4
    noise: Annotated[float, Field(ge=0, le=1)] = 0.02
    seed: int = 1


class Onsets(Config):
    """A corpus with a known answer: a label is told by one frame that a linear network cannot read (`data.onsets`)."""

    kind: Literal["onsets"] = "onsets"
    surprising: Literal["onsets", "all"] = Field(
        "onsets", description="onsets: only the frames that tell a label surprise; all: every frame does, as much"
    )
    num_fillers: Count = Field(3, description="frames that follow an onset and tell nothing")
    num_train_utterances: Count = 256
    num_validation_utterances: Count = 32
    num_test_utterances: Count = 256
    seed: int = 1


Data = Annotated[LibriSpeech | Timit | Synthetic | Onsets, Field(discriminator="kind")]


class Features(Config):
    """Kaldi-compatible log-mel filterbank of 16 kHz audio; every second 10 ms frame is kept."""

    num_mel_bins: Annotated[int, Field(ge=8, le=128)] = 80
    window: Literal["hamming", "hanning"] = Field("hamming", description="hamming: paper; hanning: released")
    window_ms: Positive = 25.0
    hop_ms: Positive = 10.0
    keep_every: Count = 2

    @model_validator(mode="after")
    def _window_and_hop_have_samples(self) -> Self:
        if self.window_samples % 2 or self.window_samples < 2:
            raise ValueError(
                f"window_ms must give an even number of samples at 16 kHz, but gives {self.window_samples}"
            )
        if self.hop_samples < 1:
            raise ValueError(f"hop_ms must give a sample at 16 kHz, so be 0.0625 at least, but got {self.hop_ms}")
        return self

    @property
    def window_samples(self) -> int:
        """A window is cut to whole samples."""
        return int(SAMPLE_RATE_HZ * self.window_ms * 0.001)

    @property
    def hop_samples(self) -> int:
        """Samples from the start of one window to that of the next, cut to whole samples."""
        return int(SAMPLE_RATE_HZ * self.hop_ms * 0.001)

    @property
    def frame_s(self) -> float:
        """Seconds from the start of one kept frame to that of the next."""
        return self.keep_every * self.hop_samples / SAMPLE_RATE_HZ
