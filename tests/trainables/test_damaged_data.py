"""Readers of what users bring give the content or one sentence about the file, however it is damaged."""

import io
import random

import numpy as np
import pytest
import soundfile
import torch

from tests.mutations import damaged
from tests.trainables.asr.data.test_released_csv import HEADER, ROW
from tests.trainables.asr.test_released_weights import BINS, HIDDEN, Released
from tests.trainables.lm.analysis import test_agreement, test_suites
from trainables import texts
from trainables.asr import released_weights
from trainables.asr.config import Pretraining
from trainables.asr.data import audio, released_csv, textgrids
from trainables.asr.data.librispeech import read_transcript
from trainables.asr.data.timit import Recording, read_utterance
from trainables.errors import InputError
from trainables.lm.analysis import agreement, suites

TEXTGRID = """File type = "ooTextFile"
Object class = "TextGrid"

0
1.5
<exists>
2
"IntervalTier"
"words"
0
1.5
1
0
1.5
"a"
"IntervalTier"
"phones"
0
1.5
2
0
0.7
"AH0"
0.7
1.5
""
"""


def waveform(kind: str) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.sin(np.arange(2000) / 9), 16_000, format=kind, subtype="PCM_16")
    return file.getvalue()


def read_audio(path):
    audio.num_samples(path)
    audio.read_waveform(path)


def read_timit(path):
    path.with_name("sx1.wav").write_bytes(waveform("WAV"))
    read_utterance(Recording(path, "abc0", "train"))


def weights() -> bytes:
    file = io.BytesIO()
    torch.save(Released().state_dict(), file)
    return file.getvalue()


def read_weights(path):
    config = Pretraining(hidden_size=HIDDEN).with_value("features.num_mel_bins", BINS)
    released_weights.read(path, config)


def agreement_table() -> bytes:
    rows = [test_agreement.KEYS, *(test_agreement.KEYS | one for one in test_agreement.both())]
    lines = [list(rows[0]), *(row.values() for row in rows[1:])]
    return "\n".join(["\t".join(line) for line in lines] + [""]).encode()


READERS = {
    "x.flac": (read_audio, waveform("FLAC")),
    "x.wav": (read_audio, waveform("WAV")),
    "sphere.wav": (read_audio, waveform("NIST")),
    "x.TextGrid": (textgrids.read, TEXTGRID.encode()),
    "1-2.trans.txt": (read_transcript, b"1-2-0000 A DOG\n1-2-0001 RUNS AWAY\n"),
    "sx1.phn": (read_timit, b"0 800 h#\n800 1600 ah\n1600 2000 h#\n"),
    "tiny.csv": (suites.read, "\n".join([test_suites.HEADER, *test_suites.items(1, 2), ""]).encode()),
    "tiny.tab": (agreement.read, agreement_table()),
    "valid_data.csv": (lambda path: released_csv.index([path]), f"{HEADER}\n{ROW}\n".encode()),
    "model_state.pth": (read_weights, weights()),
    "text.txt": (lambda path: texts.read_text(path, "give another"), "A dog\u2014runs.\n".encode()),
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_gives_the_content_or_one_sentence(workplace, name):
    read, whole = READERS[name]
    path, numbers = workplace / name, random.Random(1)
    path.write_bytes(whole)
    read(path)
    refused = 0
    for _ in range(100):
        path.write_bytes(damaged(whole, numbers))
        try:
            read(path)
        except InputError as error:
            refused += 1
            assert path.stem in str(error) and "\n" not in str(error)
    assert refused
