"""Suites and their effects by hand; all six real suites; what is said of files that are no suites."""

from pathlib import Path

import numpy as np
import pytest

from trainables.errors import InputError
from trainables.lm.analysis import suites
from trainables.lm.analysis.suites import Contrast, Sentence, Suite

HEADER = "item_number,condition_name,region_number,region_name,content"
OBJECT = ("no-obj_no-comma", "no-obj_comma", "obj_no-comma", "obj_comma")
REDUCED = ("reduced_ambig", "unreduced_ambig", "reduced_unambig", "unreduced_unambig")
AMBIGUOUS = ("ambig_nocomma", "ambig_comma", "unambig_nocomma", "unambig_comma")
DESIGNS = {
    "mvrr": (Contrast("Disambiguator", REDUCED[:2], REDUCED[2:]), 28),
    "npz_obj": (Contrast("Verb", OBJECT[:2], OBJECT[2:]), 24),
    "npz_ambig": (Contrast("Verb", AMBIGUOUS[:2], AMBIGUOUS[2:]), 24),
}


def rows(item: int, condition: str, region: str = "Verb", verb: str = " ran off") -> list[str]:
    comma = '","' if "_comma" in condition else ""
    parts = (("Start", "As he ate"), ("Comma", comma), ("NP/Z", " the dog"), (region, verb), ("Continuation", "home."))
    return [f"{item},{condition},{n},{name},{content}" for n, (name, content) in enumerate(parts, start=1)]


def write(folder: Path, lines: list[str]) -> Path:
    path = folder / "tiny.csv"
    path.write_text("\n".join([HEADER, *lines, ""]), encoding="utf-8")
    return path


def items(*numbers: int, conditions: tuple[str, ...] = OBJECT, region: str = "Verb") -> list[str]:
    return [row for number in numbers for condition in conditions for row in rows(number, condition, region)]


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        suites.read(path)
    return str(caught.value)


def test_sentences_are_the_words_of_their_regions_in_the_order_of_the_file(tmp_path):
    suite = suites.read(write(tmp_path, items(7, 2)))
    assert suite.name == "tiny"
    assert [(sentence.item, sentence.condition) for sentence in suite.sentences] == [
        (item, condition) for item in (7, 2) for condition in OBJECT
    ]
    assert suite.sentences[0].words == ("As", "he", "ate", "the", "dog", "ran", "off", "home", ".")
    assert suite.sentences[1].words == ("As", "he", "ate", ",", "the", "dog", "ran", "off", "home", ".")
    expected = (*["Start"] * 3, "Comma", *["NP/Z"] * 2, *["Verb"] * 2, *["Continuation"] * 2)
    assert suite.sentences[1].regions == expected


def test_regions_follow_their_numbers_wherever_their_rows_stand(tmp_path):
    lines = items(1, 2)
    assert suites.read(write(tmp_path, lines[::-1])).sentences == suites.read(write(tmp_path, lines)).sentences[::-1]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("fell, then", "fell , then"),
        (" fell .", "fell ."),
        ("fell.", "fell ."),
        (",fell", ", fell"),
        ("1,000 or 3.5,", "1,000 or 3.5 ,"),
        ("didn't  self-made", "didn't self-made"),
        ("oh..", "oh . ."),
    ],
)
def test_commas_and_full_stops_at_the_edge_of_a_word_are_words(tmp_path, content, expected):
    lines = [row for condition in OBJECT for row in rows(1, condition, verb=f'"{content}"')]
    sentence = suites.read(write(tmp_path, lines)).sentences[0]
    found = [word for word, region in zip(sentence.words, sentence.regions, strict=True) if region == "Verb"]
    assert found == expected.split()


@pytest.mark.parametrize(("name", "conditions"), [("mvrr", REDUCED), ("npz_obj", OBJECT), ("npz_ambig", AMBIGUOUS)])
def test_conditions_tell_the_contrast(tmp_path, name, conditions):
    contrast, _ = DESIGNS[name]
    assert suites.read(write(tmp_path, items(1, conditions=conditions, region=contrast.region))).contrast == contrast


def test_effects_by_hand():
    """Item 5, whose "a" has two words in region "V": ((3 + 4) - 2) - (1.5 - 0.5) = 4; item 3: (0 - 8) - 0 = -8."""
    contrast = Contrast("V", ("a", "b"), ("c", "d"))
    two, one = ("S", "V", "V", "E"), ("S", "V", "E")
    sentences = (
        Sentence(5, "d", ("x", "y", "z"), one),
        Sentence(5, "a", ("x", "y", "y", "z"), two),
        Sentence(5, "c", ("x", "y", "z"), one),
        Sentence(5, "b", ("x", "y", "z"), one),
        *(Sentence(3, condition, ("x", "y", "z"), one) for condition in "abcd"),
    )
    bits = [
        [9, 0.5, 9],
        np.array([7.0, 3.0, 4.0, 7.0]),
        [9, 1.5, 9],
        [5, 2, 6],
        [1, 0, 1],
        [1, 8, 1],
        [1, 2, 3],
        [3, 2, 1],
    ]
    assert suites.effects(Suite("tiny", sentences, contrast), bits).tolist() == [4.0, -8.0]


def test_effects_of_a_suite_with_an_incomplete_item():
    sentences = tuple(Sentence(3, condition, ("y",), ("V",)) for condition in "abd")
    with pytest.raises(InputError) as caught:
        suites.effects(Suite("tiny", sentences, Contrast("V", ("a", "b"), ("c", "d"))), [[1.0]] * 3)
    expected = "Each item of tiny must have every condition, but item 3 lacks c; add it, or remove the item."
    assert str(caught.value) == expected


def test_bits_of_other_sentences_are_refused(tmp_path):
    suite = suites.read(write(tmp_path, items(1)))
    with pytest.raises(ValueError):
        suites.effects(suite, [np.zeros(len(sentence.words)) for sentence in suite.sentences[:3]])
    with pytest.raises(IndexError):
        suites.effects(suite, [np.zeros(9)] * 4)


def test_files_that_are_no_suites(tmp_path):
    path = tmp_path / "tiny.csv"
    assert refusal(path) == f"The text {path} cannot be read: No such file or directory; give another path."
    path.write_bytes(b"item\xff")
    assert (
        refusal(path) == f"The text {path} must be in UTF-8, but its byte 4 is 0xff; convert it, or give another path."
    )
    path.write_text("")
    assert refusal(path) == f"{path} must have a column item_number, but has none; add it."
    path.write_text(HEADER.replace("content", "text") + "\n")
    columns = "item_number, condition_name, region_number, region_name, text"
    assert refusal(path) == f"{path} must have a column content, but has {columns}; add it."
    write(tmp_path, [])
    assert refusal(path) == f"{path} must have rows below its header, but has none; give another file."
    write(tmp_path, ["1,obj_comma,1,Verb,ran", "1,obj_comma,2,Comma"])
    assert refusal(path) == f"Line 3 of {path} must have 5 cells, but has 4; correct it."
    write(tmp_path, ['1,obj_comma,1,Verb,"ran'])
    expected = f"{path} must be a table, but breaks off at line 2: unexpected end of data; correct it."
    assert refusal(path) == expected


def test_suites_that_are_broken(tmp_path):
    path = write(tmp_path, ["one,obj_comma,1,Verb,ran"])
    assert refusal(path) == f"item_number in {path} must be a whole number, but is 'one'; correct it."
    write(tmp_path, [*items(1), "1,obj_comma,4,Verb,ran"])
    expected = f"{path} must have each region once, but has region 4 of item 1, obj_comma, twice; remove one."
    assert refusal(path) == expected
    write(tmp_path, [*items(1), *items(2)[:15]])
    expected = "Each item of tiny must have every condition, but item 2 lacks obj_comma; add it, or remove the item."
    assert refusal(path) == expected
    write(tmp_path, items(1, region="verb"))
    expected = (
        "Each sentence of tiny must have words in the region Verb, but item 1, no-obj_no-comma, has none; add them, "
        "or remove the item."
    )
    assert refusal(path) == expected


def test_unknown_conditions_are_told_the_known_ones(tmp_path):
    path = write(tmp_path, items(1, conditions=("match", "mismatch")))
    assert refusal(path) == (
        f"The conditions of {path} must be those of a known design, but are match, mismatch; rename them to those of "
        f"one of: main verb / reduced relative ({', '.join(REDUCED)}); NP/Z by object ({', '.join(OBJECT)}); "
        f"NP/Z by ambiguous verb ({', '.join(AMBIGUOUS)})."
    )


@pytest.mark.data
@pytest.mark.parametrize("ending", ["", "_mod"])
@pytest.mark.parametrize("name", DESIGNS)
def test_real_suites(real_data, name, ending):
    suite = suites.read(real_data / "syntaxgym" / f"{name}{ending}.csv")
    contrast, num_items = DESIGNS[name]
    conditions = {*contrast.plus, *contrast.minus}
    assert suite.contrast == contrast
    assert len(suite.sentences) == 4 * num_items
    pairs = {(sentence.item, sentence.condition) for sentence in suite.sentences}
    assert pairs == {(item, condition) for item in range(1, num_items + 1) for condition in conditions}
    for sentence in suite.sentences:
        assert len(sentence.words) == len(sentence.regions)
        assert contrast.region in sentence.regions
        assert ("," in sentence.words) == sentence.condition.endswith(("obj_comma", "ambig_comma"))
    sizes = [sentence.regions.count(contrast.region) for sentence in suite.sentences]
    ones = [np.ones(len(sentence.words)) for sentence in suite.sentences]
    assert set(sizes) <= {1, 2}
    assert suites.effects(suite, ones).tolist() == [0.0] * num_items
    only = [ones[i] * (sentence.condition == contrast.plus[0]) for i, sentence in enumerate(suite.sentences)]
    assert suites.effects(suite, only).tolist() == sizes[::4]
