"""The text as bytes, in three parts."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from ponderay import InputError
from routed_bytes.config import Text

PARTS = ("train", "valid", "test")


@lru_cache(maxsize=1)
def parts(text: Text) -> dict[str, bytes]:
    """Training, validation and test.

    Raises:
        InputError: if a file cannot be read.
    """
    found = _documentation() if text.source == "documentation" else _files(text)
    sizes = dict.fromkeys(PARTS, text.num_test_bytes) | {"train": text.num_train_bytes}
    return {name: found[name][: sizes[name]] for name in PARTS}


def fingerprint(text: Text, context: int) -> str:
    """Changes with the bytes that are read.

    Raises:
        InputError: if a part is shorter than a sequence with the byte after it.
    """
    for name, content in parts(text).items():
        if len(content) <= context:
            raise InputError(f"The part {name} needs more than {context} bytes, but has {len(content)}.")
    return hashlib.sha256(b"\0".join(parts(text)[name] for name in PARTS)).hexdigest()[:16]


def _files(text: Text) -> dict[str, bytes]:
    folder = text.folder
    if folder is None:
        if not os.environ.get("PONDERAY_DATA"):
            raise InputError("No text is set; give `--set text.folder=PATH` or set PONDERAY_DATA.")
        folder = Path(os.environ["PONDERAY_DATA"]) / "wikitext2"
    try:
        return {name: (folder / f"{name}.txt").read_bytes() for name in PARTS}
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}; give `--set text.folder=PATH`.") from None


def _documentation() -> dict[str, bytes]:
    """The topics of Python's help in alphabetical order; every tenth is validation, the one after it test."""
    from pydoc_data.topics import topics

    ranked = sorted(topics)
    chosen = {"valid": ranked[8::10], "test": ranked[9::10]}
    chosen["train"] = [name for i, name in enumerate(ranked) if i % 10 < 8]
    return {part: "\n".join(topics[name] for name in names).encode() for part, names in chosen.items()}
