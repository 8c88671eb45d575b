from pathlib import Path

import pytest

from tests.trainables.asr.data.test_examples import write_utterance
from tests.trainables.asr.data.test_textgrids import write_textgrid
from tests.trainables.asr.data.test_timit import write_speaker
from trainables.asr.data.corpus_check import SetReport, examine, find_sets, summarise
from trainables.errors import InputError


def check(root: Path) -> dict[str, SetReport]:
    return {found.name: summarise(found, examine(found)) for found in find_sets(root)}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    write_utterance(tmp_path, "LibriSpeech/train", 1, 1, "THE CAT")
    write_utterance(tmp_path, "LibriSpeech/train", 1, 2, "BLICKET BLICKET CAT", seconds=2.6)
    write_utterance(tmp_path, "LibriSpeech/train", 2, 1, "WUG CAT BLICKET")
    write_speaker(tmp_path / "timit" / "dr1-faaa0")
    return tmp_path


def test_everything_is_counted(corpus):
    found = check(corpus)
    libri, timit = found["train"], found["timit"]
    assert (libri.num_utterances, libri.num_speakers, libri.layout) == (3, 2, "librispeech")
    assert libri.hours == pytest.approx(4.6 / 3600)
    assert libri.unknown_words == (("BLICKET", 3), ("WUG", 1))
    assert libri.num_with_unknown_words == 2
    assert libri.num_phones == len({"dh", "ah", "k", "ae", "t"})
    assert (timit.num_utterances, timit.num_speakers, timit.num_phones) == (2, 1, 4)
    assert not libri.problems and not timit.problems


def test_every_broken_file_is_named_and_the_rest_is_read(corpus):
    folder = corpus / "LibriSpeech/train"
    (folder / "1/7/1-7-0001.flac").write_bytes(b"fLaC but no more")
    (folder / "2/7/2-7-0001.flac").unlink()
    write_textgrid(folder / "1/7/1-7-0002.TextGrid", ["a"], tier="words")
    write_utterance(corpus, "LibriSpeech/train", 3, 1, "CAT").rename(folder / "3/7/3-7-0009.flac")
    (folder / "3/7/3-7.trans.txt").write_bytes(b"3-7-0001 CAF\xc9\n")
    (corpus / "timit/dr1-faaa0/sx1.phn").write_text("nonsense")
    found = check(corpus)
    said = "\n".join(found["train"].problems)
    for problem in (
        "1-7-0001.flac cannot be read as audio",
        "2-7-0001.flac, but that file is missing",
        "1-7-0002.TextGrid must be a TextGrid",
        "3-7.trans.txt must be UTF-8",
        "3-7-0009.flac has no line in a transcript",
    ):
        assert problem in said
    assert len(found["train"].problems) == 5 and found["train"].num_utterances == 0
    assert "sx1.phn, line 1" in found["timit"].problems[0] and found["timit"].num_utterances == 1


def test_the_fingerprint_follows_content_not_place(corpus, tmp_path_factory):
    before = check(corpus)["train"].fingerprint
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "moved"
    (corpus / "LibriSpeech").rename(elsewhere)
    assert check(elsewhere)["train"].fingerprint == before
    grids = corpus / "grids"
    fingerprints = [before]
    for phone in ("AH0", "AA1"):
        write_textgrid(grids / "1-7-0001.TextGrid", [phone])
        (train,) = find_sets(elsewhere)
        report = summarise(train, examine(train, grids))
        assert report.num_textgrids == 1
        fingerprints.append(report.fingerprint)
    assert len(set(fingerprints)) == 3
    audio = elsewhere / "train/1/7/1-7-0001.flac"
    audio.write_bytes((elsewhere / "train/1/7/1-7-0002.flac").read_bytes())
    assert check(elsewhere)["train"].fingerprint != before


def test_a_folder_without_a_corpus_says_what_was_expected(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="holds no corpus: expected SUBSET/SPEAKER/CHAPTER"):
        find_sets(tmp_path)
    (tmp_path / "a.trans.txt").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="holds no corpus"):
        find_sets(Path())
    with pytest.raises(InputError, match="does not exist"):
        find_sets(tmp_path / "no")
