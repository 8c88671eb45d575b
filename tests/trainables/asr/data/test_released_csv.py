"""Labels from the released code's CSV files."""

from pathlib import Path

import pytest

from tests.trainables.asr.data.test_examples import everyone, write_utterance
from trainables.asr.data.config import LibriSpeech
from trainables.asr.data.phones import PHONES_SIL_SPN
from trainables.asr.data.released_csv import index
from trainables.asr.data.splits import read_splits
from trainables.errors import DataWarning, InputError

HEADER = "path,wrd,phonemes_39,phonemes_61,phn,phn_starts,phn_ends,words,wrd_starts,wrd_ends"
PHONES = "sil AH M AE N sil"
INTERVALS = (
    "\"['sil', 'AH', 'M', 'AE', 'N', 'sp', '']\",0 800 1600 2400 3200 4000 4800,800 1600 2400 3200 4000 4800 5600"
)
ROW = f"dev-clean-2/56/7/56-7-0008.flac,a man,{PHONES},{PHONES},{INTERVALS},\"['', 'a', 'man', '']\",0 800,800 1600"


def write(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


def test_a_row_has_its_phones_and_their_times(tmp_path):
    """Two silences in a row are one phone."""
    row = index([write(tmp_path / "valid_data.csv", ROW)])["56-7-0008"]
    assert row.phones == ("sil", "ah", "m", "ae", "n", "sil")
    assert row.times_s == ((0, 0.05), (0.05, 0.1), (0.1, 0.15), (0.15, 0.2), (0.2, 0.25), (0.25, 0.35))
    other = write(tmp_path / "other.csv", ROW.replace("'M'", "'N'"))
    assert index([other])["56-7-0008"].times_s is None  # of other phones


@pytest.fixture
def corpus(tmp_path: Path) -> LibriSpeech:
    lines = []
    for subset, speakers in (("train", (1, 2, 3)), ("test", (9,))):
        for speaker in speakers:
            audio = write_utterance(tmp_path / "audio", subset, speaker, 0, "THE BLICKET")
            lines.append(f"{audio.relative_to(tmp_path / 'audio')},sil DH AH spn sil")
    write(tmp_path / "audio/train_data.csv", *lines[:3], header="path,phonemes_39")
    write(tmp_path / "audio/test_data.csv", *lines[3:], header="path,phonemes_39")
    write(tmp_path / "audio/index-to-phoneme-39.csv", "AA", header="phoneme")
    return LibriSpeech(
        root=tmp_path / "audio", train="train", test="test", num_validation_speakers=1, phones="released_csv"
    )


def test_files_beside_the_subsets_give_41_labels(corpus):
    found = read_splits(corpus)
    assert found.labels == PHONES_SIL_SPN and found.num_skipped == 0
    spoken = {tuple(found.labels[label] for label in utterance.labels) for utterance in everyone(found)}
    assert spoken == {("sil", "dh", "ah", "spn", "sil")}
    assert everyone(found)[0].times_s is None


def test_a_folder_of_their_own_may_be_named(corpus, tmp_path):
    (tmp_path / "csv").mkdir()
    for path in corpus.root.glob("*.csv"):
        path.rename(tmp_path / "csv" / path.name)
    assert read_splits(corpus.model_copy(update={"csvs": tmp_path / "csv"})).num_skipped == 0


def test_a_recording_without_a_row_is_a_counted_skip(corpus):
    write_utterance(corpus.root, "train", 1, 1, "THE")
    with pytest.warns(
        DataWarning, match=r"1 of 4 utterances \(25 %\) of train are left out: each stands in no CSV file"
    ):
        assert read_splits(corpus).num_skipped == 1


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (ROW.replace("AH M", "AX M"), "line 2: phonemes_39 must have the 39 ARPAbet phones, sil and spn, but has 'ax'"),
        (ROW.replace(f"{PHONES},", ",", 1), "line 2: phonemes_39 must have .*, but has none"),
        (ROW.replace("0 800 1600", "0 800", 1), "line 2: phn_starts and phn_ends must be as many whole"),
        (ROW.replace("0 800 1600", "0 8x0 1600", 1), "line 2: phn_starts and phn_ends must be as many whole"),
        (ROW.replace(",800 1600", ",800 1", 1), "line 2: phones must begin in their order and end"),
        (f"{ROW}\n{ROW.replace('AH M', 'IY M')}", "line 3: 56-7-0008 has other phones elsewhere"),
        ("a.flac,b", "line 2 must have as many cells as the first line"),
        ('"a.flac', "must be a CSV file in UTF-8"),
    ],
)
def test_a_broken_row_is_named(tmp_path, row, said):
    path = write(tmp_path / "valid_data.csv", row)
    with pytest.raises(InputError, match=rf"valid_data.csv.*{said}") as raised:
        index([path])
    assert "\n" not in str(raised.value)


def test_a_row_that_stands_twice_is_one_recording(tmp_path):
    paths = [write(tmp_path / name, ROW, ROW) for name in ("valid_data.csv", "test_data.csv")]
    assert len(index(paths)) == 1
