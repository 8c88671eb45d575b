"""A bucket in a folder, each of whose requests may go wrong: an S3 as far as fsspec and Ponderay can tell."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final, Literal
from urllib.parse import quote, unquote

import fsspec

Kind = Literal["fails", "late", "twice", "killed"]
KINDS: Final[tuple[Kind, ...]] = ("fails", "late", "twice", "killed")
"""No answer and no effect; an effect, but no answer; an effect twice, as of a request that was sent again; and none,
with the end of the process that asked."""

URL: Final = "s3://bucket/kept"


class Bucket(fsspec.AbstractFileSystem):
    """Its objects are files of `place`.

    Attributes:
        requests: those so far: a verb, and a key.
        fault: the number of the request that goes wrong, and how.
        end: ends the process.
        num_refused: how many of the next requests get no answer.
    """

    protocol = "s3"
    cachable = False
    place: ClassVar[Path]
    requests: ClassVar[list[str]]
    fault: ClassVar[tuple[int, Kind]]
    end: ClassVar[Callable[[], None]]
    num_refused: ClassVar[int] = 0

    @classmethod
    def open_at(
        cls, place: Path, fault: tuple[int, Kind] = (0, "fails"), end: Callable[[], None] = lambda: None
    ) -> None:
        """Has this process find it at s3://."""
        fsspec.register_implementation("s3", cls, clobber=True)
        place.mkdir(exist_ok=True)
        cls.place, cls.requests, cls.fault, cls.end, cls.num_refused = place, [], fault, staticmethod(end), 0

    @classmethod
    def contents(cls) -> dict[str, bytes]:
        """Every object by its key, without a request."""
        return {unquote(file.name): file.read_bytes() for file in sorted(cls.place.iterdir())}

    def find(self, path: str, **named: Any) -> dict[str, dict[str, int]]:
        return self._ask("list", path, lambda: self._listed(f"{path}/"))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **named: Any) -> bytes:
        return bytes(self._ask("get", path, lambda: self._content(path, start)))

    def get_file(self, path: str, target: str, **named: Any) -> None:
        Path(target).write_bytes(self._ask("get", path, lambda: self._content(path)))

    def pipe_file(self, path: str, content: bytes, **named: Any) -> None:
        self._ask("put", path, lambda: self._object(path).write_bytes(content))

    def put_file(self, source: str, path: str, **named: Any) -> None:
        self._ask("put", path, lambda: self._object(path).write_bytes(Path(source).read_bytes()))

    def rm_file(self, path: str) -> None:
        self._ask("delete", path, lambda: self._object(path).unlink(missing_ok=True))

    def _object(self, path: str) -> Path:
        return self.place / quote(path, safe="")

    def _listed(self, prefix: str) -> dict[str, dict[str, int]]:
        return {key: {"size": len(content)} for key, content in self.contents().items() if key.startswith(prefix)}

    def _content(self, path: str, start: int | None = None) -> bytes:
        content = self._object(path).read_bytes()
        if start is not None and start >= len(content):  # as S3 answers where a range begins at the end
            raise OSError(errno.EINVAL, "InvalidRange")
        return content[start or 0 :]

    def _ask(self, verb: str, path: str, answer: Callable[[], Any]) -> Any:
        self.requests.append(f"{verb} {path}")
        if self.num_refused:
            type(self).num_refused -= 1
            raise ConnectionError("no answer")
        number, kind = self.fault
        if len(self.requests) != number:
            return answer()
        if kind == "killed":
            type(self).end()
        if kind == "fails":
            raise ConnectionError("no answer")
        result = answer()
        if kind == "late":
            raise TimeoutError("no answer in time")
        return answer() or result
