"""What a process does to files, one operation after another, and what is left of it after a loss of power.

A shim over Python's own functions for files. Only what reaches the disk through them is seen: not what SQLite writes.
"""

import builtins
import contextlib
import io
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

Tear = Callable[[], object]
"""Does the first half of a write."""


class Disk:
    """The operations of this thread on files below `root`; what was there before is on disk.

    Args:
        before: called before each operation, with what tears it where it is a write.

    Attributes:
        operations: what was done, in order: a verb, and a path below `root`.
    """

    def __init__(self, root: Path, before: Callable[["Disk", Tear | None], None] = lambda disk, tear: None) -> None:
        self.root, self._before = root.resolve(), before
        self.operations: list[str] = []
        self._thread = threading.current_thread()
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._held = contextlib.ExitStack()  # open files, so that no number of an inode is given again
        self._patches = contextlib.ExitStack()

    @contextlib.contextmanager
    def watched(self) -> Iterator["Disk"]:
        """A block whose operations are seen."""
        for path in [self.root, *self.root.rglob("*")]:
            self._sync(os.open(path, os.O_RDONLY))
        with self._held, self._patches:
            for module, name, function in self._shims():
                self._patches.enter_context(patch.object(module, name, function))
            yield self

    def end(self) -> None:
        """Sees no more."""
        self._patches.close()

    def surviving(self, into: Path, with_names: bool = False) -> None:
        """Makes in `into` what is left where power is lost now.

        Of contents what an fsync of the file has confirmed, of names what an fsync of the folder has; `with_names`: all
        names, for a disk may keep these and lose contents.
        """
        names = self._names_now() if with_names else self._names
        self._put(self.root.stat().st_ino, names, into)

    def _names_now(self) -> dict[int, dict[str, tuple[int, bool]]]:
        folders = [self.root, *(path for path in self.root.rglob("*") if path.is_dir())]
        return {folder.stat().st_ino: _names(folder) for folder in folders}

    def _put(self, folder: int, names: dict[int, dict[str, tuple[int, bool]]], into: Path) -> None:
        into.mkdir()
        for name, (number, is_folder) in names.get(folder, {}).items():
            if is_folder:
                self._put(number, names, into / name)
            else:
                (into / name).write_bytes(self._contents.get(number, b""))

    def _sync(self, handle: int) -> None:
        """Notes what is on disk by now of an open file or folder, which stays open."""
        self._held.callback(os.close, handle)
        number, path = os.fstat(handle).st_ino, Path(f"/proc/self/fd/{handle}")
        if path.is_dir():
            self._names[number] = _names(path)
        else:
            self._contents[number] = path.read_bytes()

    def _is_below(self, path: str) -> bool:
        return threading.current_thread() is self._thread and path.startswith(f"{self.root}/")

    def _moment(self, verb: str, path: str, tear: Tear | None = None) -> None:
        if self._is_below(path):
            self.operations.append(f"{verb} {path.removeprefix(f'{self.root}/')}")
            self._before(self, tear)

    def _opening(self, path: str, is_made: bool, is_emptied: bool) -> None:
        is_there = os.path.lexists(path)
        if is_made and not is_there:
            self._moment("create", path)
        elif is_emptied and is_there:
            self._moment("empty", path)

    def _shims(self) -> Iterator[tuple[Any, str, Any]]:
        real = {name: getattr(os, name) for name in dir(os)}
        real_open = io.open

        def open_file(file: Any, mode: str = "r", buffering: int = -1, *rest: Any, **named: Any) -> Any:
            if not set(mode) & set("wax+"):
                return real_open(file, mode, buffering, *rest, **named)
            if not isinstance(file, int) and named.get("opener") is None:  # which opens by a number, seen below
                self._opening(_path(file), bool(set(mode) & set("wax")), "w" in mode)
            plain = {name: named.pop(name) for name in ("closefd", "opener") if name in named}
            raw = self._file(file, mode.replace("b", "").replace("t", ""), plain)
            if buffering == 0:
                return raw
            buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffer if "b" in mode else io.TextIOWrapper(buffer, *rest, **named)

        def open_number(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            self._opening(_path(path, dir_fd), bool(flags & os.O_CREAT), bool(flags & os.O_TRUNC))
            return int(real["open"](path, flags, mode, dir_fd=dir_fd))

        def fsync(file: Any) -> None:
            path = _path(file if isinstance(file, int) else file.fileno())
            if self._is_below(f"{path}/"):
                self._moment("fsync", f"{path}/." if path == str(self.root) else path)
                self._sync(real["open"](path, os.O_RDONLY))

        def sendfile(into: int, source: int, offset: int | None, count: int, *rest: Any) -> int:
            length = min(count, os.fstat(source).st_size)
            if length > (offset or 0):
                tear = lambda: real["sendfile"](into, source, offset, length // 2, *rest)  # noqa: E731
                self._moment("write", _path(into), tear)
            return int(real["sendfile"](into, source, offset, count, *rest))

        def write(into: int, content: bytes) -> int:
            self._moment("write", _path(into), lambda: real["write"](into, content[: len(content) // 2]))
            return int(real["write"](into, content))

        def of_path(name: str) -> Callable[..., Any]:
            def shim(path: Any, *rest: Any, dir_fd: int | None = None, **named: Any) -> Any:
                if os.path.lexists(_path(path, dir_fd)) == (name != "mkdir"):
                    self._moment(name, _path(path, dir_fd))
                return real[name](path, *rest, **named, **({} if dir_fd is None else {"dir_fd": dir_fd}))

            return shim

        def of_two(name: str) -> Callable[..., Any]:
            def shim(source: Any, target: Any, **named: Any) -> Any:
                self._moment(name, _path(target))
                return real[name](source, target, **named)

            return shim

        yield from ((module, "open", open_file) for module in (io, builtins))
        yield from ((os, name, of_path(name)) for name in ("mkdir", "unlink", "remove", "rmdir", "truncate"))
        yield from ((os, name, of_two(name)) for name in ("rename", "replace", "link", "symlink"))
        yield from [(os, "open", open_number), (os, "write", write), (os, "sendfile", sendfile)]
        yield from ((os, name, fsync) for name in ("fsync", "fdatasync"))

    def _file(self, file: Any, mode: str, named: dict[str, Any]) -> io.FileIO:
        moment = self._moment

        class File(io.FileIO):
            """A file that is written, or may be."""

            def write(self, content: Any) -> int:
                half = bytes(content)[: len(content) // 2]
                moment("write", _path(self.fileno()), lambda: io.FileIO.write(self, half))
                return super().write(content)

            def truncate(self, size: int | None = None) -> int:
                moment("truncate", _path(self.fileno()))
                return super().truncate(size)

        return File(file, mode, **named)


def _names(folder: Path) -> dict[str, tuple[int, bool]]:
    with os.scandir(folder) as found:
        return {one.name: (one.inode(), one.is_dir(follow_symlinks=False)) for one in found}


def _path(path: Any, dir_fd: int | None = None) -> str:
    """Of a path or of an open file."""
    if isinstance(path, int):
        return str(Path(f"/proc/self/fd/{path}").readlink())
    within = Path(f"/proc/self/fd/{dir_fd}").readlink() if dir_fd is not None else Path()
    return str((within / os.fsdecode(path)).absolute())
