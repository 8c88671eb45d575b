"""A replicate's shared folder as those see it who do not write it: drivers, other machines, the ranks beside rank 0."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.file_names import ARTIFACTS, JOURNAL, digest_of, is_artifact, is_whole
from orchestrator.machine.process_lock import Lease

FETCH_TIMEOUT_S: Final = 1800.0
"""How long to wait for another process of this machine that fetches the same."""

AT_ONCE: Final = 100
"""Journals that are read together, and held in memory."""


@dataclass(frozen=True)
class Seen:
    """What was there at one moment: the journal, and the bytes of each file by name."""

    journal: bytes
    sizes: Mapping[str, int]


class SharedReader:
    """Reads the folder at `url`; `seen` answers in its stead, where it was looked at."""

    def __init__(self, url: str) -> None:
        self.folder = SharedFolder(url)
        self.seen: Seen | None = None

    def journal(self, offset: int) -> tuple[bytes, int]:
        """The journal behind `offset` bytes, and where that begins: at 0 if no line ends at `offset`.

        So it may be where the last request of a session came after another had begun. The byte before is asked for to
        see it, and because where nothing is new a request behind the end would be refused.
        """
        if offset and (found := self._journal(offset - 1)).startswith(b"\n"):
            return found[1:], offset
        return self._journal(0), 0

    def _journal(self, start: int) -> bytes:
        return self.seen.journal[start:] if self.seen else self.folder.read(JOURNAL, start)

    def sizes(self) -> Mapping[str, int]:
        """The bytes of each file by name."""
        return self.seen.sizes if self.seen else self.folder.sizes()

    def fetch_artifacts(self, into: Path) -> None:
        """Copies the files for people into a folder."""
        for name in self.sizes():
            if is_artifact(name):
                self.folder.fetch(name, into / name.removeprefix(f"{ARTIFACTS}/"))


def look(readers: Sequence[SharedReader]) -> Iterator[SharedReader]:
    """Each of `readers`, in order, once it has seen what is there now: with few requests where they are many."""
    sizes = _sizes([reader.folder.url for reader in readers])
    for first in range(0, len(readers), AT_ONCE):
        batch = readers[first : first + AT_ONCE]
        journals: dict[str, bytes] = {}
        there = [reader.folder.url for reader in batch if JOURNAL in sizes[reader.folder.url]]
        for parent, siblings in _by_parent(there).items():
            names = {f"{_name(url)}/{JOURNAL}": url for url in siblings}
            journals |= {names[name]: content for name, content in SharedFolder(parent).read_many(names).items()}
        for reader in batch:
            url = reader.folder.url
            reader.seen = Seen(journals.get(url, b""), sizes[url])
            yield reader


def _sizes(urls: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    """The files of each folder; those side by side are listed together."""
    found: dict[str, Mapping[str, int]] = {}
    for parent, siblings in _by_parent(urls).items():
        if len(siblings) == 1:
            found[siblings[0]] = SharedFolder(siblings[0]).sizes()
            continue
        of: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for name, size in SharedFolder(parent).sizes().items():
            child, _, rest = name.partition("/")
            of[child][rest] = size
        found |= {url: of[_name(url)] for url in siblings}
    return found


def _by_parent(urls: Sequence[str]) -> Mapping[str, list[str]]:
    siblings: defaultdict[str, list[str]] = defaultdict(list)
    for url in dict.fromkeys(urls):
        siblings[url.rpartition("/")[0]].append(url)
    return siblings


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def fetch_checkpoint(folder: SharedFolder, name: str, into: Path) -> bool:
    """Brings a checkpoint into `into`, unless it lies there whole; False where it is gone or damaged."""
    if is_whole(into / name):
        return True
    lease, partial = Lease(into / "fetching"), into / "fetched.partial"
    lease.wait(FETCH_TIMEOUT_S)
    try:
        if is_whole(into / name):
            return True
        partial.unlink(missing_ok=True)  # a link there would be written through
        folder.fetch(name, partial)
        if digest_of(partial) == name.split(".")[1]:
            partial.rename(into / name)
        return is_whole(into / name)
    except FileNotFoundError:
        return False
    finally:
        partial.unlink(missing_ok=True)
        lease.release()
