"""Tokens, vocabularies and numbers by hand; real WikiText-2; what is said of texts that cannot be used."""

import os
import re
import sys
import unicodedata
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainables.errors import DataWarning, InputError
from trainables.lm import corpus, numbered_text
from trainables.lm.text_config import Data, Files, OneFile, Vocabulary
from trainables.texts import documentation

TRAIN = "b a b\na c\nb <unk>\n"
VALIDATION = "a a b c b a c b a b d\n"
TEST = "c e\n\nb a b c a c b\n"
REMEDY = "give `--set data.text.root=PATH` or set PONDERAY_DATA."


def write(folder: Path, **parts: str) -> Files:
    """Three files in `folder`, of this text where no other is given."""
    for name, content in ({"train": TRAIN, "validation": VALIDATION, "test": TEST} | parts).items():
        (folder / f"{name}.txt").write_bytes(content.encode())
    return Files(root=folder, train="train.txt", validation="validation.txt", test="test.txt")


def one_file(path: Path, content: str, **changes) -> OneFile:
    path.write_bytes(content.encode())
    return OneFile(path=path, **changes)


def words_of(part: torch.Tensor, found: corpus.Corpus) -> str:
    return " ".join(found.words[number] for number in part.tolist())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n", ["<eos>"]),
        ("a b", ["a", "b", "<eos>"]),
        (" a  b \n", ["a", "b", "<eos>"]),
        ("a\n\nb\n\n", ["a", "<eos>", "<eos>", "b", "<eos>", "<eos>"]),
        ("a <eos>\nb <eos> \n<eos>\n", ["a", "<eos>", "b", "<eos>", "<eos>"]),
        ("<eos> a\n", ["<eos>", "a", "<eos>"]),
        ("a\r\nb\rc", ["a", "<eos>", "b", "<eos>", "c", "<eos>"]),
        ("a\fb\u2028c\n", ["a", "b", "c", "<eos>"]),
        ("It's (well-known).", ["It's", "(well-known).", "<eos>"]),
    ],
)
def test_tokens_between_blanks(text, expected):
    assert numbered_text.tokens_of(text, "spaces") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's (well-known).", ["It's", "(", "well-known", ")", ".", "<eos>"]),
        ("isn\u2019t it...\n", ["isn\u2019t", "it", ".", ".", ".", "<eos>"]),
        ("'tis dogs' x--y -z_1", ["'", "tis", "dogs", "'", "x", "-", "-", "y", "-", "z_1", "<eos>"]),
        ("Ça coûte 3.5 €\n\n", ["Ça", "coûte", "3", ".", "5", "€", "<eos>", "<eos>"]),
        ("an <unk> word<eos>\n<b>", ["an", "<unk>", "word", "<eos>", "<", "b", ">", "<eos>"]),
    ],
)
def test_tokens_of_raw_text(text, expected):
    assert numbered_text.tokens_of(text, "words") == expected


@pytest.mark.parametrize(
    "words",
    [
        "मैं हिन्दी बोलता हूँ",
        unicodedata.normalize("NFD", "café naïve Việt-Nam"),
        "كِتَابٌ",
        "தமிழ்",
        "co\u00adoperate",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: a sign keeps two letters of a word apart
        "क्\u200dष",
        "שלום\u200f צה״ל",
        "well\u2011known col·lecció",
        "สวัสดี",
        "x\u20d7",  # an arrow over the letter
        "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd \U0001f1eb\U0001f1f7",  # pictures
        "\u2764\ufe0f 3\ufe0f\u20e3",
    ],
)
def test_marks_and_joiners_do_not_cut_a_word(words):
    """What stands between blanks is one word each."""
    assert numbered_text.tokens_of(words, "words") == [*words.split(" "), "<eos>"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\u200fשל, \u2066x\u2069!", ["של", ",", "x\u2069", "!", "<eos>"]),
        ("ภาษา\u200bไทย \u200b.", ["ภาษา", "ไทย", ".", "<eos>"]),
        ("\u0301a «b»\u00ad", ["\u0301", "a", "«", "b", "»\u00ad", "<eos>"]),
    ],
)
def test_signs_that_cannot_be_seen_are_no_tokens(text, expected):
    assert numbered_text.tokens_of(text, "words") == expected


PLAIN_WORD = re.compile(r"<eos>|<unk>|\w+(?:[-'\u2019]\w+)*|\S")
"""The rule for a text without marks and signs of format."""


@given(st.text(st.characters(max_codepoint=127), max_size=80))
def test_tokens_of_plain_text_are_those_of_the_plain_rule(text):
    for line in text.replace("\r", "\n").split("\n"):
        words = PLAIN_WORD.findall(line)
        expected = words if words and words[-1] == "<eos>" else [*words, "<eos>"]
        assert numbered_text.tokens_of(f"{line}\n", "words") == expected


def test_the_text_of_the_shipped_sweeps_has_the_tokens_of_the_plain_rule():
    text = documentation("data.text.path")
    expected = [token for line in text.removesuffix("\n").split("\n") for token in [*PLAIN_WORD.findall(line), "<eos>"]]
    assert numbered_text.tokens_of(text, "words") == expected


def test_words_are_numbered_by_falling_count_and_then_by_first_occurrence(tmp_path):
    found = corpus.load(Data(text=write(tmp_path)))
    assert found.words == ("b", "<eos>", "a", "c", "<unk>")
    assert found.size == 5
    assert found.index == {"b": 0, "<eos>": 1, "a": 2, "c": 3, "<unk>": 4}
    assert found.train.tolist() == [0, 2, 0, 1, 2, 3, 1, 0, 4, 1]
    assert found.validation.tolist() == [2, 2, 0, 3, 0, 2, 3, 0, 2, 0, 4, 1]
    assert found.test.tolist() == [3, 4, 1, 1, 0, 2, 0, 3, 2, 3, 0, 1]
    assert {part.dtype for part in (found.train, found.validation, found.test)} == {torch.int64}
    assert found.num_unknown == {"train": 0, "validation": 1, "test": 1}
    assert found.encode(["c", "d", "<unk>", "<eos>"]) == [3, 4, 4, 1]


@pytest.mark.parametrize(
    ("vocabulary", "words", "num_unknown"),
    [
        (Vocabulary(max_size=9), ("b", "<eos>", "a", "c", "<unk>"), (0, 1, 1)),
        (Vocabulary(max_size=4), ("b", "<eos>", "a", "<unk>"), (1, 3, 4)),
        (Vocabulary(max_size=2), ("<eos>", "<unk>"), (6, 11, 9)),
        (Vocabulary(min_count=2), ("b", "<eos>", "a", "<unk>"), (1, 3, 4)),
        (Vocabulary(min_count=3), ("b", "<eos>", "<unk>"), (3, 7, 6)),
        (Vocabulary(min_count=9), ("<eos>", "<unk>"), (6, 11, 9)),
        (Vocabulary(min_count=2, max_size=3), ("b", "<eos>", "<unk>"), (3, 7, 6)),
    ],
)
@pytest.mark.filterwarnings("ignore::trainables.errors.DataWarning")
def test_limits_of_the_vocabulary_never_leave_out_the_marks(tmp_path, vocabulary, words, num_unknown):
    found = corpus.load(Data(text=write(tmp_path), vocabulary=vocabulary))
    assert found.words == words
    assert tuple(found.num_unknown[part] for part in ("train", "validation", "test")) == num_unknown


@pytest.mark.filterwarnings("ignore::trainables.errors.DataWarning")
def test_many_words_of_one_count_stay_in_the_order_of_the_text(tmp_path):
    words = [f"w{number * 7 % 300}" for number in range(300)]
    found = corpus.load(Data(text=write(tmp_path, train=" ".join(words))))
    assert found.words == (*words, "<eos>", "<unk>")


def test_marks_that_the_text_does_not_have_come_last(tmp_path):
    assert corpus.load(Data(text=write(tmp_path, train="a b c a"))).words == ("a", "b", "c", "<eos>", "<unk>")


@pytest.mark.filterwarnings("ignore::trainables.errors.DataWarning")
def test_the_vocabulary_is_of_the_tokens_that_are_trained_on(tmp_path):
    config = Data(text=write(tmp_path), num_train_tokens=3, num_validation_tokens=5, num_test_tokens=2)
    found = corpus.load(config)
    assert found.words == ("b", "a", "<eos>", "<unk>")
    assert words_of(found.train, found) == "b a b"
    assert words_of(found.validation, found) == "a a b <unk> b"
    assert words_of(found.test, found) == "<unk> <unk>"
    assert found.num_unknown == {"train": 0, "validation": 1, "test": 2}


def test_more_tokens_than_there_are_is_all_of_them(tmp_path):
    found = corpus.load(Data(text=write(tmp_path), num_train_tokens=1000))
    assert len(found.train) == 10


def test_one_file_is_cut_by_lines(tmp_path):
    lines = [f"line {number}." for number in range(10)]
    text = one_file(tmp_path / "lines", "\n".join(lines), validation_share=0.2, test_share=0.15)
    with pytest.warns(DataWarning):  # numbers of lines are in one part alone
        found = corpus.load(Data(text=text))
    assert found.words == (*("line", ".", "<eos>"), *(str(number) for number in range(7)), "<unk>")
    assert words_of(found.train, found) == " ".join(f"line {number} . <eos>" for number in range(7))
    assert words_of(found.validation, found) == "line <unk> . <eos> line <unk> . <eos>"
    assert words_of(found.test, found) == "line <unk> . <eos>"


@pytest.mark.filterwarnings("ignore::trainables.errors.DataWarning")
def test_a_byte_order_mark_is_no_word(tmp_path):
    text = write(tmp_path, train="\ufeffa b\n")
    assert corpus.load(Data(text=text)).words == ("a", "b", "<eos>", "<unk>")


def test_many_unknown_words_are_said(tmp_path):
    text = write(tmp_path, validation="a b c d\n", test="a b c d e\n")
    with pytest.warns(DataWarning) as warned:
        corpus.load(Data(text=text))
    assert [str(one.message) for one in warned] == [
        "33.3 % of the tokens of the test part are unknown words, more than 20 %; train on more of the text, or let "
        "more words in with `data.vocabulary`."
    ]


@pytest.mark.filterwarnings("error::trainables.errors.DataWarning")
def test_an_unk_of_the_text_itself_is_no_unknown_word(tmp_path):
    found = corpus.load(Data(text=write(tmp_path, validation="<unk> <unk> a\n")))
    assert found.num_unknown["validation"] == 0


def test_a_corpus_is_kept_until_a_file_changes(tmp_path):
    config = Data(text=write(tmp_path))
    found = corpus.load(config)
    assert corpus.load(config) is found
    os.utime(tmp_path / "test.txt", ns=(0, 0))
    assert corpus.load(config) is not found
    write(tmp_path, test="a b\n")
    assert words_of(corpus.load(config).test, found) == "a b <eos>"


def test_files_are_below_the_root_or_what_the_environment_says(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = write(tmp_path / "one"), write(tmp_path / "two", test="a b\n")
    config = Data(text=one).with_value("text.root", None)
    for name, text in (("one", one), ("two", two)):
        monkeypatch.setenv("PONDERAY_DATA", str(tmp_path / name))
        assert numbered_text.fingerprint(config) == numbered_text.fingerprint(Data(text=text))
    assert corpus.load(config).test.tolist() == [2, 0, 1]


@pytest.mark.filterwarnings("ignore::trainables.errors.DataWarning")
def test_the_fingerprint_is_of_the_bytes_of_all_files(tmp_path):
    config = Data(text=write(tmp_path))
    before = numbered_text.fingerprint(config)
    assert len(before) == 16 and int(before, 16)
    assert numbered_text.fingerprint(config) == before
    for part in ("train", "validation", "test"):
        assert numbered_text.fingerprint(Data(text=write(tmp_path, **{part: "b a b\n"}))) != before
    write(tmp_path, train=TRAIN + VALIDATION[:2], validation=VALIDATION[2:])  # the same bytes, cut elsewhere
    assert numbered_text.fingerprint(config) != before
    write(tmp_path)
    assert numbered_text.fingerprint(config) == before


@pytest.mark.parametrize("use", [corpus.load, numbered_text.fingerprint])
def test_folders_that_are_not_there_are_one_line(tmp_path, monkeypatch, use):
    monkeypatch.delenv("PONDERAY_DATA", raising=False)
    with pytest.raises(InputError) as raised:
        use(Data(text=Files()))
    assert str(raised.value) == f"No data folder is set; {REMEDY}"
    with pytest.raises(InputError) as raised:
        use(Data(text=Files(root=tmp_path / "none")))
    assert str(raised.value) == f"The data folder {tmp_path}/none does not exist; {REMEDY}"


@pytest.mark.parametrize("use", [corpus.load, numbered_text.fingerprint])
def test_files_that_cannot_be_read_are_one_line(tmp_path, use):
    text = write(tmp_path)
    (tmp_path / "validation.txt").unlink()
    for config, said in [
        (text, "validation.txt cannot be read: No such file or directory; set `data.text.root` or "
               "`data.text.validation`."),
        (OneFile(path=tmp_path / "no.txt"), "no.txt cannot be read: No such file or directory; set `data.text.path`."),
        (OneFile(path=tmp_path / "."), "cannot be read: Is a directory; set `data.text.path`."),
    ]:  # fmt: skip
        with pytest.raises(InputError) as raised:
            use(Data(text=config))
        place = f"{tmp_path}/{said}" if ".txt" in said else f"{tmp_path} {said}"
        assert str(raised.value) == f"The text {place}"


def test_a_text_in_another_encoding_is_one_line(tmp_path):
    text = write(tmp_path)
    (tmp_path / "test.txt").write_bytes("caf\u00e9 \n".encode("latin-1"))
    with pytest.raises(InputError) as raised:
        numbered_text.fingerprint(Data(text=text))
    assert str(raised.value) == (
        f"The text {tmp_path}/test.txt must be in UTF-8, but its byte 3 is 0xe9; convert it, or set `data.text.root` "
        "or `data.text.test`."
    )


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_a_file_that_is_too_short_is_one_line(tmp_path, part):
    with pytest.raises(InputError) as raised:
        numbered_text.fingerprint(Data(text=write(tmp_path, **{part: "\n"})))
    assert str(raised.value) == (
        f"The {part} part of the text must have at least 2 tokens, but has 1; give a longer text with `data.text.root` "
        f"or `data.text.{part}`."
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "train part of the text must have at least 2 tokens, but has 0"),
        ("a b\n" * 19, "validation part of the text must have at least 2 tokens, but has 0"),
        ("a b\n" * 19 + "\n", "test part of the text must have at least 2 tokens, but has 1"),
    ],
)
def test_a_file_with_too_few_lines_is_one_line(tmp_path, content, said):
    with pytest.raises(InputError) as raised:
        numbered_text.fingerprint(Data(text=one_file(tmp_path / "short", content)))
    assert str(raised.value) == (
        f"The {said}; give a text of more lines with `data.text.path`, or set `data.text.validation_share` and "
        "`data.text.test_share`."
    )


def test_a_python_without_documentation_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(InputError) as raised:
        corpus.load(Data(text=OneFile(test_share=0.07)))  # of a share that nobody has kept
    assert str(raised.value) == "This Python has no pydoc_data.topics; give a text with `data.text.path`."


@pytest.mark.filterwarnings("error::trainables.errors.DataWarning")
def test_the_built_in_text_is_pythons_documentation(monkeypatch):
    monkeypatch.delenv("PONDERAY_DATA", raising=False)
    found = corpus.load(Data())
    assert words_of(found.train[:8], found) == 'The " assert " statement <eos> * *'
    assert len(found.train) > 80_000 and min(len(found.validation), len(found.test)) > 4_000
    assert 3_000 < found.size < 10_000
    assert {"Python", "doesn't", "built-in"} <= found.index.keys()
    assert len(numbered_text.fingerprint(Data())) == 16


@pytest.mark.data
def test_wikitext_2_has_its_published_sizes(real_data):
    found = corpus.load(Data(text=Files(root=real_data)))
    assert [len(part) for part in (found.train, found.validation, found.test)] == [2_088_628, 217_646, 245_569]
    assert found.size == 33_278
    assert found.num_unknown == {"train": 0, "validation": 0, "test": 0}
    assert words_of(found.validation[:7], found) == "<eos> = Homarus gammarus = <eos> <eos>"
