"""The sources that go to a cluster with a job: which files, how much, and one package of them."""

import contextlib
import importlib.util
import os
import shlex
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePath
from typing import Final

from orchestrator.environment.excluded_files import FILES, FOLDERS
from orchestrator.environment.settings import Settings
from orchestrator.tracking.checkout import BROUGHT, to_bring
from orchestrator.worker.code_version import INSTALLED
from trainables.errors import InputError
from trainables.importing import root_of

LIMIT_BYTES: Final = 100_000_000
PROJECT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("orchestrator", "search_spaces", "trainables", "ponderay")
BUNDLES: Final = "evidence"
"""A folder of this repository that no job reads."""

LEFT_OUT_ON_TOP: Final = ("runs", "data")
SAME_TIME: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Upload:
    """Files of a project that a job needs.

    Attributes:
        files: relative to `root`, in order.
        others: files of the same job from other folders.
    """

    root: Path
    files: tuple[Path, ...]
    others: tuple["Upload", ...] = ()

    @cached_property
    def num_bytes(self) -> int:
        """The size of all files."""
        return sum(self._sizes_bytes().values()) + sum(other.num_bytes for other in self.others)

    @property
    def num_files(self) -> int:
        """From all folders."""
        return len(self.files) + sum(other.num_files for other in self.others)

    @property
    def roots(self) -> tuple[Path, ...]:
        """All folders."""
        return (self.root, *(root for other in self.others for root in other.roots))

    def check_size(self) -> None:
        """Raises InputError where it is too much."""
        for other in self.others:
            other.check_size()
        if self.num_bytes <= LIMIT_BYTES:
            return
        sizes_bytes: Counter[str] = Counter()
        for part in (self, *self.others):
            for file, num_bytes in part._sizes_bytes().items():
                sizes_bytes[file.parts[0] + "/" * (len(file.parts) > 1)] += num_bytes
        largest = ", ".join(f"{name} {num_bytes / 1e6:.1f} MB" for name, num_bytes in sizes_bytes.most_common(3))
        have = " and ".join(map(str, self.roots)) + (" have" if self.others else " has")
        raise InputError(
            f"At most {LIMIT_BYTES / 1e6:.0f} MB of sources go with a job, but {have} {self.num_bytes / 1e6:.1f} MB: "
            f"{largest}. Move large files out of there; put data on the cluster's machines (PONDERAY_DATA)."
        )

    def _sizes_bytes(self) -> dict[Path, int]:
        return {file: (self.root / file).stat().st_size for file in self.files}


def find_upload(settings: Settings, project: Path = PROJECT, modules: Iterable[str] = ()) -> Upload:
    """The project's own files: what git knows or would take of a checkout, but no bundles, else its packages alone.

    Args:
        modules: import paths of the sweep and its trainables; the folders of those that are not Ponderay's go with it,
            and then only the packages of Ponderay.

    Raises:
        InputError: if one cannot be looked at, its name is not UTF-8, or a module of the job is not among them.
    """
    root = project.resolve()
    # The folder of each module of the user's, with the package to be sent where it is installed there.
    folders: set[tuple[Path, str]] = set()
    for module in modules:
        top, folder = module.partition(".")[0], root_of(module)
        if top not in PACKAGES and folder and Path(folder) != root:
            folders.add((Path(folder), top if INSTALLED.intersection(Path(folder).parts) else ""))
    own = tuple(_of_user(settings, *place) for place in sorted(folders))
    if (root / "pyproject.toml").is_file() and not own:
        known = _of_repository(root)
        every = _walk(root, root) if known is None else known
        candidates: Iterable[Path] = (file for file in every if file.parts[0] != BUNDLES)
    else:
        candidates = (file for package in PACKAGES for file in _walk(root / package, root))
    places = Counter(file for part in own for file in part.files)
    if doubled := [file for file, number in places.items() if number > 1]:
        raise InputError(
            f"The folders of a job must not hold a file twice, but {doubled[0]} is in {own[0].root} and others."
        )
    upload = Upload(root, _sent(settings, root, candidates), own)
    sent = {part.root / file for part in (upload, *upload.others) for file in part.files}
    for module in modules:
        spec = importlib.util.find_spec(module)
        source = Path(spec.origin).resolve() if spec and spec.origin and Path(spec.origin).is_absolute() else None
        if source and any(source.is_relative_to(root) for root in upload.roots) and source not in sent:
            raise InputError(
                f"A job needs {source}, but it stays here, as what .gitignore names, data, and what may hold secrets; "
                "move or rename it."
            )
    return upload


def _of_user(settings: Settings, root: Path, package: str) -> Upload:
    """The files in a folder of the user's: a whole project, or a package that is installed.

    Raises:
        InputError: if it has a folder with the name of one of Ponderay's packages, or is the home folder, which holds
            more than a model.
    """
    candidates: Iterable[Path] | None
    if package:
        candidates = _walk(root / package, root) if (root / package).is_dir() else [Path(f"{package}.py")]
    elif (candidates := _of_repository(root)) is None:
        if Path.home().resolve().is_relative_to(root):
            raise InputError(
                f"All of the sweep's folder goes with a job, but that is {root}; put the file into one of its own."
            )
        candidates = [file for file in _walk(root, root) if not any(part.startswith(".") for part in file.parts)]
    files = _sent(settings, root, candidates)
    for file in files:
        if file.parts[0] in PACKAGES:
            raise InputError(f"{root / file.parts[0]} has the name of a package of Ponderay's; rename it for a job.")
    return Upload(root, files)


def _sent(settings: Settings, root: Path, candidates: Iterable[Path]) -> tuple[Path, ...]:
    """The candidates that go with a job, in order."""
    places = [os.environ.get(name) for name in ("PONDERAY_DATA", "PONDERAY_CACHE")]
    beside = [settings.runs.resolve(), *(Path(folder).resolve() for folder in places if folder)]
    folders = [folder for folder in beside if not root.is_relative_to(folder)]
    try:
        files = tuple(sorted(file for file in candidates if _is_sent(file, root, folders)))
    except OSError as error:
        raise _unreadable(error) from None
    for file in files:
        try:
            str(file).encode()
        except UnicodeEncodeError:
            rule = f"Names of files that go with a job must be UTF-8, but {os.fsencode(file)!r} is not"
            raise InputError(f"{rule}. Rename it, remove it, or name it in .gitignore.") from None
    return files


@contextlib.contextmanager
def packed(upload: Upload) -> Iterator[Path]:
    """A zip file of it for the block; equal contents make equal bytes, so Ray knows a package that it has already.

    Raises:
        InputError: if a file cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="ponderay-") as folder:
        package = Path(folder) / "sources.zip"
        with zipfile.ZipFile(package, "w") as opened:
            for root, file in ((part.root, file) for part in (upload, *upload.others) for file in part.files):
                source = root / file
                try:
                    content = source.read_bytes()
                except OSError as error:
                    raise _unreadable(error) from None
                _add(opened, file.as_posix(), content, 0o755 if os.access(source, os.X_OK) else 0o644)
            for name, text in to_bring(upload.others[-1].root if upload.others else None).items():
                _add(opened, name, text.encode(), 0o644)
        yield package


def _unreadable(error: OSError) -> InputError:
    remedy = "Make it readable, remove it, or name it in .gitignore"
    return InputError(f"A job needs all sources, but {error.filename} cannot be read: {error.strerror}. {remedy}.")


def _add(package: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, SAME_TIME)
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    package.writestr(entry, content)


def _of_repository(root: Path) -> list[Path] | None:
    """The files that git knows or would take; None where neither the folder nor one above it is a repository.

    Raises:
        InputError: if one is, and git does not read it: then nobody knows what must stay here.
    """
    return _of_git(root) if any((folder / ".git").exists() for folder in (root, *root.parents)) else None


def _of_git(root: Path) -> list[Path]:
    """Tracked files and new ones that are not ignored, of checkouts within it too.

    Raises:
        InputError: if git is missing, or refuses.
    """
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603
    except FileNotFoundError:
        raise InputError(
            f"What .gitignore names stays here, but git is missing to read it in {root}; install git."
        ) from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        remedy = f"`git config --global --add safe.directory {shlex.quote(str(root))}` trusts a folder of another owner"
        raise InputError(f"What .gitignore names stays here, but git does not read {root}: {lines[0]}. {remedy}.")
    names = [Path(os.fsdecode(name)) for name in dict.fromkeys(done.stdout.split(b"\0")) if name]
    folders = [name for name in names if not (root / name).is_symlink()]  # a link may lead to a folder around it
    within = {name: _of_git(root / name) for name in folders if (root / name / ".git").exists()}
    return [file for name in names for file in ([name / file for file in within[name]] if name in within else [name])]


def _walk(folder: Path, root: Path) -> Iterator[Path]:
    for where, names, files in os.walk(folder):
        names[:] = [name for name in names if not _is_left_out_folder(Path(where, name))]
        yield from (Path(where, file).relative_to(root) for file in files)


def _is_sent(file: Path, root: Path, folders: Iterable[Path]) -> bool:
    """Whether the file, and what it links to, is the project's own and none of what is left out."""
    target = (root / file).resolve()
    if not target.is_file() or not target.is_relative_to(root):
        return False
    return not any(
        _is_left_out(path, root) or any((root / path).is_relative_to(folder) for folder in folders)
        for path in {file, target.relative_to(root)}
    )


def _is_left_out(file: Path, root: Path) -> bool:
    is_data = len(file.parts) > 1 and file.parts[0] in LEFT_OUT_ON_TOP
    if _matches(file, FILES) or (is_data and not (root / file.parts[0] / "__init__.py").exists()):
        return True
    return any(_is_left_out_folder(root / folder) for folder in list(file.parents)[:-1])


def _is_left_out_folder(folder: Path) -> bool:
    """Whether a folder stays here: also Python's environments, and a server's users, passwords and database."""
    marks = ("pyvenv.cfg", "authentication.ini")
    return _matches(folder, (*FOLDERS, BROUGHT)) or any((folder / mark).exists() for mark in marks)


def _matches(path: PurePath, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path.name.lower(), pattern) for pattern in patterns)
