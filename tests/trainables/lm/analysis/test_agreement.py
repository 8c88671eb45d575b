"""Agreement items by hand; the real ones of Gulordava et al.; what is said of files that have none."""

from pathlib import Path

import pytest

from trainables.errors import InputError
from trainables.lm.analysis import agreement
from trainables.lm.analysis.agreement import Item

KEYS = {
    "pattern": "P", "constr_id": "3", "sent_id": "0", "correct_number": "plur", "form": "are", "class": "correct",
    "type": "original", "prefix": "the <unk> we met", "n_attr": "1", "freq": "9", "len_prefix": "4",
    "sent": '"the irish we met are "" late "" . <eos>"',
}  # fmt: skip
WRONG = {"form": "is", "class": "wrong", "freq": "7"}


def write(folder: Path, *changes: dict[str, str]) -> Path:
    path = folder / "tiny.tab"
    lines = ["\t".join(KEYS), *("\t".join((KEYS | change).values()) for change in changes)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def both(**changes: str) -> list[dict[str, str]]:
    return [changes, WRONG | changes]


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        agreement.read(path)
    return str(caught.value)


def test_items_by_hand(tmp_path):
    nonce = {
        "sent_id": "4", "type": "generated", "correct_number": "sing", "form": "eats",
        "prefix": "a cat", "len_prefix": "2", "sent": "a cat blue . <eos>",
    }  # fmt: skip
    path = write(tmp_path, {}, WRONG, nonce | {"form": "eat", "class": "wrong"}, nonce)
    assert agreement.read(path) == (
        Item(("the", "irish", "we", "met"), "are", "is", is_plural=True, is_generated=False),
        Item(("a", "cat"), "eats", "eat", is_plural=False, is_generated=True),
    )


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{}], "must be two rows of class correct and wrong, but is correct; correct them."),
        ([{}, {}], "must be two rows of class correct and wrong, but is correct and correct; correct them."),
        ([{}, WRONG | {"sent_id": "1"}], "must have one sent_id in both rows, but has '0' and '1'; correct it."),
        (both(type="x"), "must have generated or original as type, but has 'x'; correct it."),
        (both(correct_number=""), "must have sing or plur as correct_number, but has ''; correct it."),
        (
            [{}, WRONG | {"form": "has been"}],
            "must have forms of one word, but has 'has been'; correct it, or remove the item.",
        ),
        (
            both(len_prefix="5"),
            "must have the number of words of prefix, at least 1, as len_prefix, but has '5' for 4; correct it.",
        ),
        (
            both(prefix="", len_prefix="0"),
            "must have the number of words of prefix, at least 1, as len_prefix, but has '0' for 0; correct it.",
        ),
        (
            both(prefix="the men", len_prefix="2"),
            "must have a prefix that begins sent, but has 'the men' for 'the irish'; correct it.",
        ),
        (
            both(sent="the irish we"),
            "must have a prefix that begins sent, but has 'the <unk> we met' for 'the irish we'; correct it.",
        ),
    ],
)
def test_items_that_are_broken(tmp_path, rows, expected):
    path = write(tmp_path, {}, WRONG, *rows)
    assert refusal(path) == f"Item 2 of {path} {expected}"


def test_files_without_items(tmp_path):
    path = write(tmp_path)
    assert refusal(path) == f"{path} must have rows below its header, but has none; give another file."
    path.write_text("sent\tform\n")
    assert refusal(path) == f"{path} must have a column constr_id, but has sent, form; add it."
    path.write_text('sent\t"for\nm"\n')
    assert refusal(path) == f"{path} must have a column constr_id, but has sent, for m; add it."


@pytest.mark.data
def test_real_items(real_data):
    items = agreement.read(real_data / "agreement" / "gulordava" / "generated.tab")
    assert len(items) == 410
    assert sum(item.is_generated for item in items) == 369
    assert sum(item.is_plural for item in items) == 170
    assert all(item.prefix and item.correct != item.wrong for item in items)
    assert not any("<unk>" in item.prefix for item in items)
    first = ("An", "agreeable", "insight", "executed", "in", "fifty")
    assert items[0] == Item(first, "represents", "represent", is_plural=False, is_generated=True)
