"""Fetches LibriSpeech and its small excerpt from OpenSLR, going on where an earlier attempt was cut off."""

import hashlib
import http.client
import shutil
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainables.errors import InputError, shortened, shown

SOURCE: Final = "https://www.openslr.org/resources"
NUM_ATTEMPTS: Final = 5
TIMEOUT_S: Final = 60
CHUNK_BYTES: Final = 1 << 20
MOST_DIGITS: Final = 18
"""Most digits of a number of bytes that a disk could have."""


@dataclass(frozen=True)
class Archive:
    """One subset as it is published.

    Attributes:
        number: of the resource on OpenSLR.
        algorithm: of the checksum.
    """

    subset: str
    number: int
    algorithm: str
    checksum: str

    @property
    def file_name(self) -> str:
        """The file's name, as published."""
        return f"{self.subset}.tar.gz"


def _librispeech(subset: str, checksum: str) -> Archive:
    return Archive(subset, 12, "sha256", checksum)


CORPORA: Final[dict[str, tuple[Archive, ...]]] = {
    "mini-librispeech": (
        Archive("train-clean-5", 31, "md5", "5df7d4e78065366204ca6845bb08f490"),
        Archive("dev-clean-2", 31, "md5", "6d7ab67ac6a1d2c993d050e16d61080d"),
    ),
    "librispeech": (
        _librispeech("dev-clean", "76f87d090650617fca0cac8f88b9416e0ebf80350acb97b343a85fa903728ab3"),
        _librispeech("dev-other", "12661c48e8c3fe1de2c1caa4c3e135193bfb1811584f11f569dd12645aa84365"),
        _librispeech("test-clean", "39fde525e59672dc6d1551919b1478f724438a95aa55f874b576be21967e6c23"),
        _librispeech("test-other", "d09c181bba5cf717b3dee7d4d592af11a3ee3a09e08ae025c5506f6ebe961c29"),
        _librispeech("train-clean-100", "d4ddd1d5a6ab303066f14971d768ee43278a5f2a0aa43dc716b0e64ecbbbf6e2"),
        _librispeech("train-clean-360", "146a56496217e96c14334a160df97fffedd6e0a04e66b9c5af0d40be3c792ecf"),
        _librispeech("train-other-500", "ddb22f27f96ec163645d53215559df6aa36515f26e01dd70798188350adcb6d2"),
    ),
}
"""Archives by corpus: OpenSLR's resource 12 with SHA-256 as torchaudio lists them, resource 31 with MD5."""


@dataclass(frozen=True)
class Progress:
    """How far a download is; `total_bytes` is 0 where the server does not say."""

    done_bytes: int
    total_bytes: int


def choose(corpus: str, subsets: list[str]) -> tuple[Archive, ...]:
    """The archives of `corpus`, or those of its `subsets`.

    Raises:
        InputError: naming what there is.
    """
    if corpus not in CORPORA:
        raise InputError(f"There is no corpus {corpus!r} to download; the corpora are {', '.join(CORPORA)}.")
    by_name = {archive.subset: archive for archive in CORPORA[corpus]}
    unknown = [name for name in subsets if name not in by_name]
    if unknown:
        raise InputError(f"{corpus} has no subset {unknown[0]!r}; it has {', '.join(by_name)}.")
    return tuple(by_name[name] for name in subsets or by_name)


def is_there(archive: Archive, folder: Path) -> bool:
    """Whether the subset was unpacked below `folder` before."""
    return (folder / "LibriSpeech" / archive.subset).is_dir()


def download(archive: Archive, folder: Path, source: str = SOURCE) -> Iterator[Progress]:
    """Fetches the archive into `folder`, yielding how far it is; at the end the file is whole and its checksum right.

    What an earlier attempt left is gone on with; a lost connection is tried again some times.

    Raises:
        InputError: if `source` is no address, or the server does not have it, cannot be reached or sends on to what is
            no address, or what it sent has another checksum.
    """
    _check_source(source)
    folder.mkdir(parents=True, exist_ok=True)
    target, partial = folder / archive.file_name, folder / f"{archive.file_name}.partial"
    if not target.exists():
        url = f"{source.rstrip('/')}/{archive.number}/{archive.file_name}"
        for attempt in range(1, NUM_ATTEMPTS + 1):
            try:
                yield from _go_on(url, partial)
                break
            except InputError:
                raise
            except (http.client.HTTPException, OSError, ValueError) as error:
                if attempt == NUM_ATTEMPTS or isinstance(error, urllib.error.HTTPError | ValueError):
                    raise InputError(
                        f"{url} cannot be fetched: {_reason(error)}. The downloaded part is kept; try again."
                    ) from None
                time.sleep(attempt)
        partial.rename(target)
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, archive.algorithm).hexdigest()
    if digest != archive.checksum:
        target.unlink()
        raise InputError(
            f"{archive.file_name} must have the {archive.algorithm} checksum {archive.checksum}, but has {digest}; "
            "it was removed: download it again, or from another `--source`."
        )


def _check_source(source: str) -> None:
    """A user and a password, which urllib cannot send, may hold any sign; so what has them is not repeated."""
    rule = f"`--source` must be the address of a mirror, such as {SOURCE}"
    if "@" in source:
        raise InputError(f"{rule}, without a user or a password.")
    try:
        is_address = bool(urllib.parse.urlsplit(source).scheme)
    except ValueError:
        is_address = False
    if not is_address:
        raise InputError(f"{rule}, but got {shown(source)}.")


def _reason(error: Exception) -> str:
    """The reason of a failure, in our words where the server's own could be anything."""
    if not isinstance(error, urllib.error.HTTPError):
        return shortened(str(error)) if str(error).isprintable() else shown(str(error))
    known = {status.value: status.phrase for status in http.HTTPStatus}
    return f"the server answers {error.code} ({known.get(error.code, 'which no standard knows')})"


def _go_on(url: str, partial: Path) -> Iterator[Progress]:
    """Appends to `partial` what it lacks."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is missing; the checksum will tell
        raise
    with response:
        is_rest = response.status == http.HTTPStatus.PARTIAL_CONTENT
        done = have if is_rest else 0
        announced = response.headers.get("Content-Length") or ""
        is_number = announced.isascii() and announced.isdigit() and len(announced) <= MOST_DIGITS
        length = int(announced) if is_number else 0
        free = shutil.disk_usage(partial.parent).free
        if length > free:
            raise InputError(f"{partial.parent} must have {length / 1e9:.1f} GB free, but has {free / 1e9:.1f}.")
        with partial.open("ab" if is_rest else "wb") as file:
            while chunk := response.read(CHUNK_BYTES):
                file.write(chunk)
                done += len(chunk)
                yield Progress(done, length + (have if is_rest else 0) if length else 0)
        if length and done < length + (have if is_rest else 0):
            raise http.client.IncompleteRead(b"", length)


def unpack(archive: Archive, folder: Path) -> Path:
    """Unpacks a downloaded archive as `LibriSpeech/SUBSET`, whole or not at all, removes it, and returns that folder.

    Raises:
        InputError: if it is broken, holds no such folder, or would write elsewhere.
    """
    target = folder / "LibriSpeech" / archive.subset
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as place:
        try:
            with tarfile.open(folder / archive.file_name) as tar:
                for member in tar:
                    _unpack_member(tar, member, Path(place).resolve())
        except tarfile.TarError as error:
            raise InputError(f"{folder / archive.file_name} cannot be unpacked: {error}.") from None
        unpacked = Path(place) / "LibriSpeech" / archive.subset
        if not unpacked.is_dir():
            raise InputError(f"{archive.file_name} must hold LibriSpeech/{archive.subset}, but does not.")
        target.parent.mkdir(exist_ok=True)
        unpacked.rename(target)
    (folder / archive.file_name).unlink()
    return target


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    """Writes a plain file or a folder below `place`; `extractall` has a filter for that only from Python 3.11.4 on.

    Raises:
        tarfile.TarError: if it is something else, such as a link, or would lie elsewhere.
    """
    path = place / member.name
    if not path.resolve().is_relative_to(place):
        raise tarfile.TarError(f"{member.name!r} would lie outside the destination")
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    content = tar.extractfile(member) if member.isreg() else None
    if content is None:
        raise tarfile.TarError(f"{member.name!r} is neither a file nor a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("wb") as file:
        shutil.copyfileobj(content, file)
