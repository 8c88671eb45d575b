"""Where a result came from: commit, uncommitted changes, package versions, command."""

import platform
import shlex
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("ponderay", "torch", "torchaudio", "ray", "optuna", "mlflow", "numpy", "scipy")
SOURCE = Path(__file__).parent.parent


@cache
def git_commit() -> str:
    """The commit of the installed sources, with `+` where files differ from it; "unknown" outside a repository."""
    commit = _git("rev-parse", "HEAD")
    return (commit + "+" * bool(git_diff())) if commit else "unknown"


@cache
def git_diff() -> str:
    """What is changed and not committed."""
    return _git("diff", "HEAD")


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
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def _git(*arguments: str) -> str:
    try:
        command = ["git", "-C", str(SOURCE), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
