"""What sweeps and conditions may be called: names become folders, files, experiments and runs of MLflow.

A name is one line that begins with a letter or digit and has no slash, so no name leads out of the folder it is put in.
"""

import hashlib
import os
import re
from typing import Final

from trainables.errors import InputError, shown

SWEEP: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
CONDITION: Final = re.compile(r"[A-Za-z0-9][\w.,=+\- ]*")
RESERVED: Final = ("prerequisites", "ponderay.books", "Default")
"""Experiments in MLflow that are no study."""

SWEEP_LENGTH: Final = 100
CONDITION_LENGTH: Final = 250
"""What MLflow's tables have room for in the name of a run."""

GENERATED_LENGTH: Final = 200
"""The longest name of a condition in a grid, which leaves room for what `--set` adds."""

PART_BYTES: Final = 200
"""File systems allow 255, and files get an ending."""


def check_sweep_name(name: object) -> None:
    """Raises InputError where a sweep cannot be called so."""
    is_name = isinstance(name, str) and SWEEP.fullmatch(name) and len(name) <= SWEEP_LENGTH
    if not is_name or name in RESERVED:
        raise InputError(
            "A sweep's name must begin with a letter or digit, have only letters, digits and any of . _ -, be at most "
            f"{SWEEP_LENGTH} long and be none of {', '.join(RESERVED)}, but got {shown(name)}."
        )


def check_condition_name(name: object) -> None:
    """Raises InputError where a condition cannot be called so."""
    if not isinstance(name, str) or not CONDITION.fullmatch(name) or len(name) > CONDITION_LENGTH:
        raise InputError(
            "A condition's name must begin with a letter or digit, have only letters, digits, spaces and any of "
            f". _ , = + -, and be at most {CONDITION_LENGTH} long, but got {shown(name)}."
        )


def condition_name_of(text: str, most: int = CONDITION_LENGTH) -> str:
    """`text` as a condition may be called: of what is generated or was recorded, and not checked.

    A name that is too long ends in digits of its hash, so that different ones stay different.
    """
    plain = re.sub(r"[^\w.,=+\- ]+", "-", text.strip())
    plain = plain if CONDITION.match(plain) else f"c{plain}"
    if len(plain) <= most:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{plain[: most - 1 - len(digest)]}-{digest}"


def path_part(name: str) -> str:
    """`name`, as the folder or the beginning of the file that is called so.

    Names of studies that were made elsewhere follow no rule of ours, and a name may come from a file of somebody else.

    Raises:
        InputError: if it would lead elsewhere, or is longer than a file's name may be.
    """
    leads_away = name in ("", ".", "..") or not name.isprintable() or set(name) & set("/\\")
    if leads_away or len(os.fsencode(name)) > PART_BYTES:
        raise InputError(
            "A name that becomes a folder or file must be one line without / and \\, be no . or .., and have at most "
            f"{PART_BYTES} bytes, but got {shown(name)}."
        )
    return name
