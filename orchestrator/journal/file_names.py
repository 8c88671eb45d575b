"""Names of the files in a replicate's folder, and what they promise."""

import hashlib
import re
from pathlib import Path
from typing import Final

JOURNAL: Final = "journal.jsonl"
ARTIFACTS: Final = "artifacts"
CHECKPOINT: Final = re.compile(r"step_(\d+)\.([0-9a-f]{16})\.(pt|zip)")
"""Its step, how the SHA-256 of its content begins, and whether it is a file as it was reported or a packed folder."""


def is_plain(name: str) -> bool:
    """Whether `name` is that of a file, and leads nowhere else."""
    return name not in ("", ".", "..") and not set(name) & set("/\\\0")


def partial_of(name: str) -> str:
    """What an artifact is called until it is whole."""
    return f".{name}.partial"


def is_partial(name: str) -> bool:
    """Whether an artifact of this name was left by a process that was killed."""
    return name.startswith(".") and name.endswith(".partial")


def is_artifact(name: str) -> bool:
    """Whether a name in a shared folder is that of a file for people, and leads nowhere else."""
    return name.startswith(f"{ARTIFACTS}/") and is_plain(name.removeprefix(f"{ARTIFACTS}/"))


def checkpoints_in(folder: Path) -> list[Path]:
    """The files of checkpoints that lie in a folder."""
    return [path for path in folder.glob("step_*") if CHECKPOINT.fullmatch(path.name)]


def step_of(name: str) -> int:
    """The step of a checkpoint."""
    return int(name.split(".")[0].removeprefix("step_"))


def is_whole(path: Path) -> bool:
    """Whether the content of a checkpoint is there and is what its name says."""
    return path.exists() and digest_of(path) == path.name.split(".")[1]


def digest_of(path: Path) -> str:
    """What a checkpoint's name says of its content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
