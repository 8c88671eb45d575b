"""The classic sentences, and sentences of a user's own."""

from pathlib import Path

import pytest

from trainables.errors import InputError
from trainables.lm.analysis import garden_paths
from trainables.lm.analysis.garden_paths import SENTENCES, GardenPath


def write(folder: Path, text: str) -> Path:
    path = folder / "own.txt"
    path.write_bytes(text.encode())
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        garden_paths.read(path)
    return str(caught.value)


def test_classic_sentences():
    assert SENTENCES[0] == GardenPath(("The", "horse", "raced", "past", "the", "barn", "fell", "."), 6)
    assert len({" ".join(sentence.words).lower() for sentence in SENTENCES}) == len(SENTENCES) >= 20
    for sentence in SENTENCES:
        assert sentence.words[-1] == "."
        assert all(word.isalpha() for word in sentence.words[:-1])
        assert sentence.critical is not None
        assert 2 <= sentence.critical < len(sentence.words) - 1


def test_own_sentences(tmp_path):
    path = write(tmp_path, "\ufeffFat people eat *accumulates .\r\n\n  \nno  mark here\n*first of all, a*b\u2028c")
    assert garden_paths.read(path) == (
        GardenPath(("Fat", "people", "eat", "accumulates", "."), 3),
        GardenPath(("no", "mark", "here"), None),
        GardenPath(("first", "of", "all,", "a*b", "c"), 0),
    )


def test_files_without_sentences(tmp_path):
    path = tmp_path / "own.txt"
    assert refusal(path) == f"The text {path} cannot be read: No such file or directory; give another path."
    write(tmp_path, "\n \n")
    assert refusal(path) == f"{path} must have a sentence on each line, but is empty; write at least one."


def test_marks_that_tell_no_single_word(tmp_path):
    path = write(tmp_path, "a *b c\n\n*a b *c\n")
    assert refusal(path) == f"Line 3 of {path} must mark at most one word with *, but marks 2; leave one mark."
    write(tmp_path, "a * b\n")
    assert refusal(path) == f"Line 1 of {path} must have * directly before a word, but has it alone; remove the blank."
