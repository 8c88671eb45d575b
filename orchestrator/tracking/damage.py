"""SQLite stores that are damaged: how that shows, what is said of it, and how one is moved away."""

import contextlib
import sqlite3
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import quote

MARKS: Final = ("file is not a database", "disk image is malformed", "malformed database schema")
"""What SQLite says, through whatever library."""

HEADER: Final = b"SQLite format 3\0"
IS_FOLDER: Final = "it is a folder"
COMPANIONS: Final = ("", "-wal", "-shm", "-journal")
"""SQLite's files beside a database, which would be taken for those of a new one of its name."""


def is_damage(error: BaseException) -> bool:
    """Whether an exception says that a database of SQLite is damaged."""
    return any(mark in str(error) for mark in MARKS)


def refusal(file: Path, reason: str, what: str = "The tracking store") -> str:
    """What is said of a damaged database."""
    return (
        f"{what} {file} is damaged ({reason}). The journals keep every result: `ponderay repair` moves the file away "
        "and says how the results come back."
    )


def fault(file: Path) -> str:
    """What is wrong with a database, all of which is looked at; empty where nothing is, or there is none.

    As any opening for writing it takes back what a driver that was killed left half written.
    """
    if file.is_dir():
        return IS_FOLDER
    if not file.exists():
        return ""
    with file.open("rb") as opened:
        if opened.read(len(HEADER)) not in (HEADER, b""):
            return MARKS[0]
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(file))}?mode=rw", uri=True)) as database:
            found = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error) if is_damage(error) else ""
    return "" if found == "ok" else " ".join(found.split())


def move_away(file: Path) -> Path:
    """Gives a database and what SQLite has beside it other names, that no earlier one has; returns the new one."""
    new = next(one for n in count(1) if not (one := file.with_name(f"{file.name}.damaged-{n}")).exists())
    for end in COMPANIONS:
        if (old := file.with_name(file.name + end)).exists():
            old.rename(new.with_name(new.name + end))
    return new
