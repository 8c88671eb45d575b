"""A journal on a disk: appended to and read; whoever writes it sees when lines of it are gone."""

import os
from pathlib import Path

from orchestrator.journal.lines import Lines, Record, line_of, mend, parse, unreadable
from orchestrator.machine.durable_files import check_is_no_link, open_itself, sync


class LostLinesError(OSError):
    """A journal no longer has what its writer wrote, so nothing may be decided by what is left."""

    def __init__(self, path: Path, fault: str) -> None:
        super().__init__(f"The journal {path} was changed while it was written: {fault}. No checkpoint was removed")


class JournalFile:
    """The journal at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._end, self._last = 0, b""

    def mend(self) -> str:
        """Sets a damaged journal aside as `lines.mend` does, says so, and holds what is left of it."""
        said = mend(self.path)
        self.hold()
        return said

    def hold(self) -> None:
        """From now on this process writes the journal: what stands in it must stay there."""
        content = self.path.read_bytes() if self.path.exists() else b""
        self._end = content.rfind(b"\n") + 1
        self._last = content[content.rfind(b"\n", 0, max(0, self._end - 1)) + 1 : self._end]

    def append(self, record: Record) -> None:
        """Adds a line, in place of what a crash has left of a last one; on disk before this returns.

        Raises:
            LostLinesError: if what this process has written is not there any more, or a link leads to it.
            LinkError: if the folder, or the journal that this process has not written yet, is a link.
        """
        self._check()
        check_is_no_link(self.path.parent)
        line = line_of(record)
        with open(self.path, "a+b", opener=open_itself) as file:
            end = file.seek(0, os.SEEK_END)
            if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
                end = file.truncate(self.path.read_bytes().rfind(b"\n") + 1)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if not end:
            sync(self.path.parent)
        self._end, self._last = end + len(line), line

    def lines(self, offset: int) -> tuple[Lines, int]:
        """What stands behind an offset, and where that begins: at 0 if no line ends at `offset`.

        Raises:
            LostLinesError: if what this process has written is not there any more, or is damaged.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, offset - 1))
                content = file.read()
        except FileNotFoundError:
            content = b""
        except OSError as error:
            if self._end:
                raise
            return unreadable(error), 0
        if offset and not content.startswith(b"\n"):
            return self.lines(0)
        lines = parse(content[1:] if offset else content)
        self._check()
        if self._end and lines.fault:
            raise LostLinesError(self.path, f"its line {lines.number} {lines.fault}")
        return lines, offset

    def _check(self) -> None:
        """By its last line at its place: an inode may change with the mount, and a copy that is equal does no harm."""
        if not self._end:
            return
        for path, what in ((self.path.parent, "its folder"), (self.path, "it")):
            if path.is_symlink():
                raise LostLinesError(self.path, f"{what} is a link now")
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                last = os.pread(file.fileno(), len(self._last), self._end - len(self._last))
        except FileNotFoundError:
            raise LostLinesError(self.path, "it is gone") from None
        if last != self._last:
            fault = f"it has {size} bytes of {self._end}" if size < self._end else "its lines are others"
            raise LostLinesError(self.path, fault)
