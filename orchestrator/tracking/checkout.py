"""Where a result came from: commit, uncommitted changes, package versions, command; without passwords and tokens."""

import io
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from orchestrator.environment.excluded_files import git_excludes
from orchestrator.worker.code_version import INSTALLED
from search_spaces.redaction import redacted_diff, without_secrets
from trainables.errors import InputError
from trainables.importing import root_of

PACKAGES = ("ponderay", "torch", "torchaudio", "ray", "optuna", "mlflow", "numpy", "scipy")
SOURCE = Path(__file__).parents[2]
SHARED = "trainables"
"""Goes with Ponderay itself."""

AS_IT_IS = ("--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
"""Whatever the user's settings make of a diff for their eyes."""

BROUGHT = ".ponderay"
"""Folder of uploaded sources, which have no repository, that says what they were there."""


@cache
def git_commit(folder: Path | None = None) -> str:
    """The commit of the sources in `folder`, or of Ponderay's; with `+` where files differ; "unknown" without one."""
    commit = _git(folder or SOURCE, "rev-parse", "HEAD")
    return (commit + "+" * bool(git_diff(folder))) if commit else _brought("commit") or "unknown"


@cache
def git_diff(folder: Path | None = None) -> str:
    """What is changed and not committed, but for files in which people write their keys, and the like."""
    return redacted_diff(_git(folder or SOURCE, "diff", *AS_IT_IS, "HEAD", "--", ".", *git_excludes())) or _brought(
        "diff"
    )


def source_of(trainable: str) -> Path:
    """The folder whose commit is that of a trainable: the one it is imported from, if it is not installed."""
    root = Path(root_of(trainable) or SOURCE)
    return SOURCE if INSTALLED.intersection(root.parts) else root


def has_commit(commit: str, folder: Path) -> bool:
    """Whether what is checked out in `folder` goes back to the commit: nobody else's branch, fetched by the way."""
    return re.fullmatch(r"[0-9a-f]{40}", commit) is not None and _git(folder, "merge-base", commit, "HEAD") == commit


def unpack_commit(commit: str, folder: Path, target: Path) -> None:
    """Writes `folder` as it was at the commit into the new folder `target`, whole or not at all.

    Raises:
        InputError: if git does not have it.
    """
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = ["git", "-C", str(folder), "archive", "--format=tar", commit]
    packed = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    if packed.returncode:
        raise InputError(f"git must have the commit {commit}, but says: {packed.stderr.decode(errors='replace')[:200]}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(partial, filter="data")
    partial.rename(target)


def to_bring(folder: Path | None = None) -> dict[str, str]:
    """Files that tell the same where the sources are uploaded to, by their path beside them."""
    return {f"{BROUGHT}/commit": git_commit(folder), f"{BROUGHT}/diff": git_diff(folder)}


@cache
def package_versions(trainable: str = "") -> str:
    """`name==version` of what results depend on, the trainable's own package included, and Python's."""
    found, own = [f"python=={platform.python_version()}"], trainable.partition(".")[0]
    others = packages_distributions().get(own, []) if own and own != SHARED else []
    for name in dict.fromkeys([*PACKAGES, *others]):
        try:
            found.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            continue
    return " ".join(found)


def command() -> str:
    """The command line as a user would type it."""
    program = Path(sys.argv[0])
    words = ["python", "-m", program.parent.name] if program.name == "__main__.py" else [program.name]
    return _redacted(*words, *sys.argv[1:])


@cache
def _redacted(*arguments: str) -> str:
    """The arguments as one line; looking for secrets takes a millisecond, and every run has the line."""
    return without_secrets(shlex.join(arguments))


def _brought(name: str) -> str:
    file = SOURCE / BROUGHT / name
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _git(folder: Path, *arguments: str) -> str:
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
