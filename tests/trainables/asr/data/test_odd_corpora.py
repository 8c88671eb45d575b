"""Corpora with oddities that strangers' files have: each is read right, or file and fault are named."""

import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.trainables.asr.data.test_examples import everyone, write_utterance
from tests.trainables.asr.data.test_textgrids import write_textgrid
from tests.trainables.asr.data.test_timit import write_speaker
from trainables.asr.data import textgrids
from trainables.asr.data.config import Features, HeldOutSpeakers, LibriSpeech, Timit
from trainables.asr.data.corpus_check import examine, find_sets, summarise
from trainables.asr.data.examples import load_examples
from trainables.asr.data.phones import TIMIT_PHONES
from trainables.asr.data.splits import read_audio_splits, read_splits
from trainables.asr.data.timit import Recording, read_utterance
from trainables.errors import InputError


@pytest.fixture
def corpus(tmp_path: Path) -> LibriSpeech:
    for speaker in (1, 2, 3):
        for number in (0, 1):
            write_utterance(tmp_path, "train", speaker, number, "THE CAT")
    write_utterance(tmp_path, "test", 9, 0, "THE DOG")
    return LibriSpeech(root=tmp_path, train="train", test="test", num_validation_speakers=1)


def transcript(corpus: LibriSpeech) -> Path:
    return corpus.root / "train/2/7/2-7.trans.txt"


def problems(corpus: LibriSpeech) -> tuple[str, ...]:
    """What `ponderay data check` says of the training set."""
    (train,) = [found for found in find_sets(corpus.root) if found.name == "train"]
    return summarise(train, examine(train)).problems


def test_a_line_that_stands_twice_is_one_utterance(corpus):
    path, other = transcript(corpus), transcript(corpus).with_name("again.trans.txt")
    path.write_text(path.read_text() * 2)
    other.write_text(path.read_text().replace(" ", "  "))
    assert len(everyone(read_splits(corpus))) == 7
    assert not problems(corpus)


@pytest.mark.parametrize("where", ["same file", "another file"])
def test_two_texts_of_one_recording_are_named(corpus, where):
    path = transcript(corpus) if where == "same file" else transcript(corpus).with_name("more.trans.txt")
    with path.open("a") as file:
        file.write("2-7-0001 THE DOG\n")
    said = f"{path}: utterance 2-7-0001 must have one text, but has 'THE CAT' and 'THE DOG'; remove one."
    if where == "another file":
        said = f"{transcript(corpus).with_name('2-7.trans.txt')} and {said}"
    with pytest.raises(InputError, match=re.escape(said)):
        read_splits(corpus)
    assert said in problems(corpus)


def test_two_recordings_of_one_name_are_named(corpus):
    """They would count twice, and have each other's features."""
    folder = corpus.root / "train/3/8"
    folder.mkdir()
    (corpus.root / "train/3/7/3-7-0001.flac").rename(folder / "2-7-0001.flac")
    (corpus.root / "train/3/7/3-7.trans.txt").write_text("3-7-0000 THE CAT\n")
    (folder / "3-8.trans.txt").write_text("2-7-0001 THE CAT\n")
    with pytest.raises(InputError, match=r"must have a name of its own, but .*2-7-0001; rename or remove one"):
        read_splits(corpus)
    for read in (read_splits, read_audio_splits):
        with pytest.raises(InputError, match="name each subset once"):
            read(corpus.model_copy(update={"train": ("train", "train")}))


@pytest.mark.parametrize("text", ["\ufeff2-7-0000 THE CAT\n", "2-7-0001 THE CAT\n\ufeff2-7-0000 THE CAT\r\n"])
def test_a_byte_order_mark_is_no_part_of_a_name(corpus, text):
    transcript(corpus).write_bytes(text.encode())
    assert "2-7-0000" in {utterance.identity for utterance in everyone(read_splits(corpus))}


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c"])
def test_only_a_line_feed_ends_a_line(corpus, sign):
    """Other signs that Python's `splitlines` cuts at are blanks here."""
    transcript(corpus).write_text(f"2-7-0000 THE{sign}CAT\n2-7-0001 THE CAT\n", encoding="utf-8")
    found = {utterance.identity: utterance.labels for utterance in everyone(read_splits(corpus))}
    assert len(found) == 7 and found["2-7-0000"] == found["2-7-0001"]


def test_a_sample_that_is_no_number_is_named_before_and_while_it_is_read(corpus):
    path = corpus.root / "train/2/7/2-7-0001.flac"
    samples = np.full(16_000, 0.1, np.float32)
    samples[5] = np.nan
    soundfile.write(path, samples, 16_000, format="WAV", subtype="FLOAT")
    assert [problem for problem in problems(corpus) if f"{path} must have samples" in problem]
    with pytest.raises(InputError, match=r"2-7-0001.flac must have samples between .*, but sample 5 is nan"):
        load_examples(corpus, Features())


def test_a_tier_of_points_or_of_nothing_is_named(tmp_path):
    path = tmp_path / "a.TextGrid"
    head = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n1.5\n<exists>\n1\n'
    path.write_text(f'{head}"TextTier"\n"phones"\n0\n1.5\n2\n0.5\n"AH"\n0.7\n"B"\n')
    with pytest.raises(InputError, match=r"a.TextGrid: its tier 'phones' must have intervals, but has points"):
        textgrids.read(path)
    write_textgrid(path, [])
    with pytest.raises(InputError, match=r"a.TextGrid: its tier 'phones' must have intervals, but has nothing"):
        textgrids.read(path)


@pytest.mark.parametrize("content", ["[1]", "{}", '{"start": 0, "end": 1, "tiers": 3}', "3", "null"])
def test_json_that_is_no_textgrid_is_named(tmp_path, content):
    path = tmp_path / "a.TextGrid"
    path.write_text(content)
    with pytest.raises(InputError, match=r"a.TextGrid must be a TextGrid"):
        textgrids.read(path)


def test_two_textgrids_of_one_utterance_are_named_where_they_differ(corpus):
    for phone, folder in (("AH0", "a"), ("AH0", "b"), ("AA1", "c")):
        write_textgrid(corpus.root / "grids" / folder / "2-7-0001.TextGrid", [phone])
    config = corpus.model_copy(update={"phones": "textgrid", "textgrids": corpus.root / "grids"})
    with pytest.raises(InputError, match=r"2-7-0001 must have one TextGrid, but .*/a/.* and .*/c/.* differ"):
        read_splits(config)


def test_a_textgrid_may_have_a_byte_order_mark_and_a_separator(tmp_path):
    path = tmp_path / "a.TextGrid"
    write_textgrid(path, ["A\u2028B", "sil"])
    text = path.read_text(encoding="utf-8")
    for encoding in ("utf-8-sig", "utf-16"):
        path.write_text(text, encoding=encoding)
        assert [one.phone for one in textgrids.read(path)] == ["A\u2028B", "sil"]


@pytest.fixture
def sentence(tmp_path: Path) -> Recording:
    write_speaker(tmp_path / "dr1-faaa0")
    return Recording(tmp_path / "dr1-faaa0/sx1.phn", "faaa0", "train")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0 1600 h#\n1600 1200 sh\n", 2),  # ends before it begins
        ("0 1600 h#\n4800 8000 ix\n1600 4800 sh\n", 3),  # another order than that of time
        ("-5 1600 h#\n", 1),
    ],
)
def test_phones_out_of_their_order_are_named(sentence, text, line):
    sentence.path.write_text(text)
    with pytest.raises(InputError, match=rf"sx1.phn, line {line} must begin at or after the line before it and end"):
        read_utterance(sentence)


def test_a_label_file_may_have_a_byte_order_mark(sentence):
    sentence.path.write_bytes(b"\xef\xbb\xbf0 1600 h#\r\n1600 4800 sh\r\n")
    assert [TIMIT_PHONES[label] for label in read_utterance(sentence).labels] == ["sil", "sh"]


def test_a_sentence_that_stands_twice_is_named(tmp_path):
    for number in range(3):
        write_speaker(tmp_path / f"dr1-faaa{number}")
    write_speaker(tmp_path / "dr2-faaa0")  # the same speaker
    config = Timit(root=tmp_path, split=HeldOutSpeakers(num_validation_speakers=1, num_test_speakers=1))
    with pytest.raises(InputError, match=r"must have a name of its own, but .*dr1-faaa0.* and .*dr2-faaa0.* are both"):
        read_splits(config)
