"""SQLite stores that are damaged: how that shows, what is said of it, and how one is moved away."""

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

MARKS: Final = ("file is not a database", "disk image is malformed", "malformed database schema")
"""What SQLite says, through whatever library."""

HEADER: Final = b"SQLite format 3\0"
IS_FOLDER: Final = "it is a folder"
IS_LOOP: Final = "it is a link to itself"
MOVED: Final = "attempt to write a readonly database"
"""What SQLite says of a write into a file that was moved away since it was opened."""

COMPANIONS: Final = ("", "-wal", "-shm", "-journal")
"""SQLite's files beside a database, which would be taken for those of a new one of its name."""


def is_damage(error: BaseException) -> bool:
    """Whether an exception says that a database of SQLite is damaged."""
    return any(mark in str(error) for mark in MARKS)


def is_moved(error: BaseException) -> bool:
    """Whether an exception says that what is written no longer comes into the file of that name."""
    return MOVED in str(error)


@contextlib.contextmanager
def opened(file: Path, mode: Literal["ro", "rw"] = "ro", wait_s: float = 5.0) -> Iterator[sqlite3.Connection]:
    """A database that must be there; each statement is a transaction unless one is begun.

    Args:
        wait_s: how long a lock of another process is waited for.

    Raises:
        sqlite3.Error: if it cannot be opened, or is damaged.
    """
    place = f"file:{quote(str(file.absolute()))}?mode={mode}"
    with contextlib.closing(sqlite3.connect(place, timeout=wait_s, isolation_level=None, uri=True)) as database:
        yield database


def place_fault(file: Path) -> str:
    """Why what stands in a database's place can be none; empty where it can, or nothing stands there."""
    try:
        return IS_FOLDER if stat.S_ISDIR(file.stat().st_mode) else ""
    except OSError as error:
        return IS_LOOP if error.errno == errno.ELOOP else ""


def is_database(file: Path) -> bool:
    """Whether a file begins as SQLite's do, or is empty, as one that was never written to."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(HEADER)) in (HEADER, b"")


def refusal(file: Path, reason: str, what: str = "The tracking store") -> str:
    """What is said of a damaged database."""
    return (
        f"{what} {file} is damaged ({reason}). The journals keep every result: `ponderay repair` moves the file away "
        "and says how the results come back."
    )


def fault(file: Path) -> str:
    """What is wrong with a database, all of which is looked at; empty where nothing is, or there is none.

    Nothing is written: what a driver that was killed left half written is taken back by the next one.
    """
    if reason := place_fault(file):
        return reason
    if not file.exists():
        return ""
    if not is_database(file):
        return MARKS[0]
    try:
        with opened(file) as database:
            found = str(database.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error) if is_damage(error) else ""
    return "" if found == "ok" else " ".join(found.split())


def move_away(file: Path) -> Path:
    """Gives a database and what SQLite has beside it other names, that no earlier one has; returns the new one."""
    new = next(one for n in count(1) if not os.path.lexists(one := file.with_name(f"{file.name}.damaged-{n}")))
    for end in COMPANIONS:
        if os.path.lexists(old := file.with_name(file.name + end)):
            old.rename(new.with_name(new.name + end))
    return new
