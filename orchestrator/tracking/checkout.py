"""Where a result came from: commit, uncommitted changes, package versions, command; without passwords and tokens."""

import platform
import shlex
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from orchestrator.environment.excluded_files import git_excludes
from orchestrator.environment.redaction import redacted_source, without_secrets

PACKAGES = ("ponderay", "torch", "torchaudio", "ray", "optuna", "mlflow", "numpy", "scipy")
SOURCE = Path(__file__).parents[2]
BROUGHT = ".ponderay"
"""Folder of uploaded sources, which have no repository, that says what they were there."""


@cache
def git_commit() -> str:
    """The commit of the installed sources, with `+` where files differ from it; "unknown" outside a repository."""
    commit = _git("rev-parse", "HEAD")
    return (commit + "+" * bool(git_diff())) if commit else _brought("commit") or "unknown"


@cache
def git_diff() -> str:
    """What is changed and not committed, but for files in which people write their keys, and the like."""
    return redacted_source(_git("diff", "HEAD", "--", ".", *git_excludes())) or _brought("diff")


def to_bring() -> dict[str, str]:
    """Files that tell the same where the sources are uploaded to, by their path beside them."""
    return {f"{BROUGHT}/commit": git_commit(), f"{BROUGHT}/diff": git_diff()}


@cache
def package_versions() -> str:
    """`name==version` of what results depend on, and Python's."""
    found = [f"python=={platform.python_version()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            continue
    return " ".join(found)


def command() -> str:
    """The command line as a user would type it."""
    return without_secrets(shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]))


def _brought(name: str) -> str:
    file = SOURCE / BROUGHT / name
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def _git(*arguments: str) -> str:
    try:
        command = ["git", "-C", str(SOURCE), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
