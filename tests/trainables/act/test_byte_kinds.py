"""Kinds of bytes, counted by hand."""

import numpy as np

from trainables.act.byte_kinds import kinds_of


def test_each_byte_is_of_its_kinds():
    text = b"Ab, 1.\n(" * 1000 + b"z"
    read, following = (np.frombuffer(part, np.uint8) for part in (text, text[1:] + b"A"))
    kinds = kinds_of(read, following)
    shown = {name: bytes(sorted(set(read[kind].tolist()))) for name, kind in kinds.items()}
    assert shown == {
        "space": b"\n ",
        "punctuation": b"(,.",
        "letter": b"Abz",
        "boundary": b",.",
        "digit": b"1",
        "rare": b"z",
        "before_rare": b"(",
    }
    assert kinds["boundary"].sum() == 2000 and kinds["rare"].sum() == kinds["before_rare"].sum() == 1


def test_a_byte_of_one_in_a_thousand_is_not_rare():
    read = np.frombuffer(b"a" * 999 + b"z", np.uint8)
    assert not kinds_of(read, read)["rare"].any()
    assert kinds_of(np.append(read, read[:1]), np.append(read, read[:1]))["rare"].sum() == 1
