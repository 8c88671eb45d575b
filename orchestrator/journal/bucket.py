"""A folder that all machines reach by a URL, such as one in a bucket: its files by name, each whole or not there.

fsspec carries the requests, for s3:// through s3fs. Credentials, region and AWS_ENDPOINT_URL come from the environment
or the machine, never from the URL.
"""

import errno
import itertools
import time
import uuid
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from orchestrator.journal.file_names import is_plain
from search_spaces.redaction import redacted_text
from trainables.errors import InputError

AWAY_S: Final = 120.0
"""How long a request is tried again where no answer comes."""

WAITS_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
WHOLE_AT_ONCE: Final = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}
"""Where what is written appears whole; elsewhere it is moved into its place."""

OPTIONS: Final = {"s3": {"config_kwargs": {"retries": {"total_max_attempts": 1}}}}
"""The waits above are to be the only ones."""

LOCAL_FAULTS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
REFUSALS: Final = {"NoCredentialsError", "PartialCredentialsError", "ParamValidationError", "ProfileNotFound"}
"""What botocore raises where asking again would bring nothing."""

_given_up: Final[set[str]] = set()
"""Buckets that gave no answer for AWAY_S, and none since."""

Result = TypeVar("Result")


class UnavailableError(OSError):
    """The shared folder could not be reached for as long as was waited."""


class SharedFolder:
    """The files below a URL.

    Names have `/` between their parts and cannot lead out of the folder; those in it that would are not seen.

    Args:
        before_again: called before a request is tried again; what it raises ends the trying.
        is_patient: whether a request is tried again at all.

    Raises:
        UnavailableError: from every method, if no answer came for AWAY_S; until one comes, every folder of this
            process in the same bucket asks only once.
        InputError: if the URL, the credentials or the permissions are wrong.
    """

    def __init__(self, url: str, before_again: Callable[[], None] | None = None, is_patient: bool = True) -> None:
        self.url = url
        self._before_again = before_again
        self._is_patient = is_patient
        self._bucket = _bucket(url)

    def be_patient(self) -> None:
        """Has requests wait for an answer again, though none came lately: for work that begins anew."""
        _given_up.discard(self._bucket)

    def sizes(self) -> dict[str, int]:
        """The bytes of each file, by name."""
        try:
            found = self._ask(self._files.find, self._root, detail=True)
        except FileNotFoundError:
            return {}
        names = {path.removeprefix(self._root + "/"): entry["size"] for path, entry in found.items()}
        return {name: size for name, size in names.items() if _is_inside(name)}

    def read(self, name: str, start: int = 0) -> bytes:
        """The content of a file from a byte on; nothing where it is not there."""
        try:
            return self._ask(self._read_from, self._path(name), start)
        except FileNotFoundError:
            return b""

    def read_many(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of those files that are there, asked for at once."""
        paths = {self._path(name): name for name in names}
        found = self._ask(self._read_all, list(paths)) if paths else {}
        return {paths[path]: content for path, content in found.items()}

    def write(self, name: str, content: bytes) -> None:
        """Puts a file in place of the one that may be there."""
        self._put(name, lambda path: self._files.pipe_file(path, content))

    def send(self, name: str, source: Path) -> None:
        """Puts a copy of the file `source` in place of the one that may be there."""
        self._put(name, lambda path: self._files.put_file(str(source), path))

    def fetch(self, name: str, target: Path) -> None:
        """Copies a file to `target`.

        Raises:
            FileNotFoundError: if it is not there.
        """
        self._ask(self._files.get_file, self._path(name), str(target))

    def move(self, name: str, to: str) -> None:
        """Gives a file another name, in place of the file that may have it; one that is not there was moved before."""
        try:
            self._ask(self._files.mv, self._path(name), self._path(to))
        except FileNotFoundError:
            return

    def remove(self, name: str) -> None:
        """Removes a file, where it is there."""
        try:
            self._ask(self._files.rm_file, self._path(name))
        except FileNotFoundError:
            return

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """fsspec's file system of the URL, and the path in it."""
        protocol = self.url.partition("://")[0]
        try:
            import fsspec  # type: ignore[import-untyped]

            files, root = fsspec.url_to_fs(self.url, use_listings_cache=False, **OPTIONS.get(protocol, {}))
        except ImportError as error:
            brought = "`pip install -e '.[cluster]'` in the checkout brings s3fs." if protocol in ("s3", "s3a") else ""
            raise InputError(f"{self.url} needs a library: {error}. {brought}".rstrip()) from None
        except ValueError as error:
            rule = f"PONDERAY_STORAGE must be a URL like s3://BUCKET/FOLDER, but got {self.url}"
            raise InputError(f"{rule}: {error}.") from None
        return files, root.rstrip("/")

    @property
    def _files(self) -> Any:
        return self._opened[0]

    @property
    def _root(self) -> str:
        return self._opened[1]

    def _path(self, name: str) -> str:
        if not _is_inside(name):
            raise ValueError(f"A file's name must not lead out of {self.url}, but got {name!r}.")
        return f"{self._root}/{name}"

    def _read_from(self, path: str, start: int) -> bytes:
        try:
            content: bytes = self._files.cat_file(path, start=start)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            content = self._read_whole(path)[start:]
        return content

    def _read_all(self, paths: list[str]) -> dict[str, bytes]:
        found = self._files.cat(paths, on_error="return", start=0)
        for path, outcome in found.items():
            if isinstance(outcome, OSError) and outcome.errno == errno.EINVAL:
                found[path] = self._read_whole(path)
            elif isinstance(outcome, Exception) and not isinstance(outcome, FileNotFoundError):
                raise outcome
        return {path: content for path, content in found.items() if isinstance(content, bytes)}

    def _read_whole(self, path: str) -> bytes:
        """Asked for without a range: S3 calls one invalid that begins at the file's end, even if that is empty."""
        content: bytes = self._files.cat_file(path)
        return content

    def _put(self, name: str, put: Callable[[str], None]) -> None:
        path = self._path(name)
        protocol = self._files.protocol
        is_atomic = bool(WHOLE_AT_ONCE & ({protocol} if isinstance(protocol, str) else set(protocol)))
        try:
            self._ask(*((put, path) if is_atomic else (self._put_and_move, put, path)))
        except FileNotFoundError as error:
            raise InputError(
                f"{self.url} cannot be written: {_line(error)}. Create the bucket, or name another one."
            ) from error

    def _put_and_move(self, put: Callable[[str], None], path: str) -> None:
        partial = f"{self._root}/.{uuid.uuid4().hex}"
        self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        put(partial)
        self._files.mv(partial, path)

    def _ask(self, call: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """What `call` returns, with growing waits for as long as no answer comes."""
        may_wait = self._is_patient and self._bucket not in _given_up
        deadline_s = time.monotonic() + (AWAY_S if may_wait else 0)
        waits = itertools.chain(WAITS_S, itertools.repeat(WAITS_S[-1]))
        while True:
            wait_s = next(waits)
            try:
                result = call(*arguments, **named)
            except FileNotFoundError:  # an answer too
                _given_up.discard(self._bucket)
                raise
            except Exception as error:
                is_ours = isinstance(error, OSError) and error.errno in LOCAL_FAULTS
                if is_ours or isinstance(error, TypeError | ValueError | AttributeError):
                    raise  # asking again would bring nothing
                is_invalid = isinstance(error, OSError) and error.errno == errno.EINVAL
                if is_invalid or isinstance(error, PermissionError) or type(error).__name__ in REFUSALS:
                    refusal = f"{self.url} refuses: {_line(error)}. Correct the URL or the credentials."
                    raise InputError(refusal) from error
                if time.monotonic() + wait_s > deadline_s:
                    if may_wait:
                        _given_up.add(self._bucket)
                    raise UnavailableError(f"{self.url} cannot be reached: {_line(error)}") from error
            else:
                _given_up.discard(self._bucket)
                return result
            time.sleep(wait_s)
            if self._before_again:
                self._before_again()


def ask_once(url: str) -> None:
    """Has this process not wait for the bucket of `url` until it has answered again: for what must end soon."""
    _given_up.add(_bucket(url))


def write_fault(url: str) -> str:
    """Why nothing can be written to the folder at `url`; empty where it can. Asks once, and leaves nothing there."""
    folder, mark = SharedFolder(url, is_patient=False), f"mark-{uuid.uuid4().hex}"
    try:
        folder.write(mark, b"mark")
        found = folder.read(mark)
        folder.remove(mark)
    except (OSError, InputError) as error:
        return str(error)
    return "" if found == b"mark" else f"{url} does not return what was written"


def _bucket(url: str) -> str:
    """The protocol and the first part of the path."""
    protocol, _, path = url.partition("://")
    return f"{protocol}://{path.lstrip('/').partition('/')[0]}"


def _line(error: Exception) -> str:
    return redacted_text(f"{type(error).__name__}: {error}".partition("\n")[0])


def _is_inside(name: str) -> bool:
    return all(is_plain(part) for part in name.split("/"))
