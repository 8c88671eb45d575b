"""Keeps a replicate's shared folder equal to the local one in which a session works, while no other session took it.

Whoever begins writes its name into the file `writer`, and before it sends anything looks whether that is still there.
So nothing more comes from a node that was believed dead and lives on.
"""

import contextlib
import json
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.bucket_reader import fetch_checkpoint
from orchestrator.journal.file_names import ARTIFACTS, CHECKPOINT, JOURNAL, checkpoints_in, is_artifact
from orchestrator.journal.lines import LostLinesError, free_name, line_of, mend, parse, told
from orchestrator.machine.durable_files import new_file
from trainables.errors import InputError

WRITER: Final = "writer"
LAST_WORD: Final = "last_word.json"
"""How a process of the session that is not its writer ended."""

INTERVAL_S: Final = 1.0
"""How long metrics without a checkpoint may wait to be sent together."""


class SupersededError(OSError):
    """Another session writes the folder now."""


class SharedWriter:
    """The session of `attempt`, which works in the folder `path`, as writer of the one at `url`."""

    def __init__(self, url: str, path: Path, attempt: str) -> None:
        self._folder, self._path, self._attempt = SharedFolder(url, self._check_again), path, attempt
        self._witness = SharedFolder(url)
        self._has_begun = False
        who = f"process {os.getpid()} on {socket.gethostname()}"
        self._name = json.dumps({"attempt": attempt, "who": who, "token": uuid.uuid4().hex}).encode()
        self._whole: set[str] = set()
        self._damaged: set[str] = set()
        self._is_behind = False
        self._sent_s, self._sent_bytes = -INTERVAL_S, 0
        self._timer: threading.Timer | None = None
        self._lock = threading.RLock()

    def begin(self) -> str:
        """Takes the folder, and makes the local one equal to it; what an earlier session left here goes.

        What was done here before there was a shared folder is brought there first; a damaged journal is set aside.

        Returns:
            What was set aside, in words; empty where nothing was.

        Raises:
            SupersededError: if a later try of the same driver has begun already.
        """
        self._folder.be_patient()
        found = self._folder.read(WRITER)
        driver, _, number = self._attempt.rpartition(".")
        its_driver, _, its_number = str(_known(found).get("attempt")).rpartition(".")
        if driver == its_driver and number.isdigit() and its_number.isdigit() and int(its_number) > int(number):
            raise self._superseded(found)
        said = self._bring_local_work() if not found else ""
        self._folder.write(WRITER, self._name)
        self._has_begun = True
        there = self._folder.sizes()
        self._path.mkdir(parents=True, exist_ok=True)
        checkpoints = {name for name in there if CHECKPOINT.fullmatch(name)}
        for path in checkpoints_in(self._path):
            if path.name not in checkpoints:
                path.unlink()
        self._whole = {name for name in checkpoints if fetch_checkpoint(self._folder, name, self._path)}
        self._damaged = checkpoints - self._whole
        for name in self._damaged:
            (self._path / name).unlink(missing_ok=True)
        if (artifacts := self._path / ARTIFACTS).is_symlink():
            artifacts.unlink()
        shutil.rmtree(artifacts, ignore_errors=True)
        for name in (name for name in there if is_artifact(name)):
            (self._path / name).parent.mkdir(parents=True, exist_ok=True)
            self._folder.fetch(name, self._path / name)
        last_word = self._folder.read(LAST_WORD) if LAST_WORD in there else b""
        content = (self._folder.read(JOURNAL) if JOURNAL in there else b"") + last_word
        lines = parse(content)
        if lines.fault:  # the damaged journal stays under another name
            aside = free_name(lambda name: name in there)
            self._folder.write(aside, content)
            self._folder.write(JOURNAL, content[: lines.num_bytes])
            said = told(lines, f"{self._folder.url}/{JOURNAL}", aside)
        if not (self._path / JOURNAL).is_file():  # a folder there could not be replaced
            mend(self._path / JOURNAL)
        partial = self._path / "journal.partial"
        with new_file(partial) as file:
            file.write(content[: lines.num_bytes])
        partial.replace(self._path / JOURNAL)
        if last_word:
            self.wrote("state", is_followed=False)
            self._folder.remove(LAST_WORD)
        return said

    def _bring_local_work(self) -> str:
        """Nobody has written there yet; if this is cut off, it is done again. Says what of it was damaged."""
        journal = self._path / JOURNAL
        said = mend(journal)
        lines = _whole_lines(journal) if journal.exists() else b""
        if not lines:
            return said
        for file in self._path.glob(f"{ARTIFACTS}/*"):
            self._folder.send(f"{ARTIFACTS}/{file.name}", file)
        self._folder.write(JOURNAL, lines)
        for file in checkpoints_in(self._path):
            self._folder.send(file.name, file)
        return said

    def wrote(self, kind: str, is_followed: bool) -> None:
        """Sends the journal, which has a new record: at once, or with what comes next.

        Args:
            is_followed: whether its checkpoint comes next.
        """
        self._is_behind = True
        if kind not in ("metrics", "system"):
            self.flush()
        elif kind == "metrics" and not is_followed:
            wait_s = self._sent_s + INTERVAL_S - time.monotonic()
            if wait_s <= 0:
                self.flush()
            elif self._timer is None:
                self._timer = threading.Timer(wait_s, self._flush_late)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Sends the journal, where it has anything new."""
        if self._is_behind:
            self._check()
            self._send_journal()

    def _send_journal(self) -> None:
        with self._lock:
            if self._timer:
                self._timer.cancel()
                self._timer = None
            if not self._is_behind:
                return
            self._is_behind = False  # from here on: what another thread adds meanwhile may come too late
            try:
                content = _whole_lines(self._path / JOURNAL)
                if len(content) < self._sent_bytes:
                    raise LostLinesError(self._path / JOURNAL, f"it has {len(content)} bytes of {self._sent_bytes}")
                self._folder.write(JOURNAL, content)
            except BaseException:
                self._is_behind = True
                raise
            self._sent_s, self._sent_bytes = time.monotonic(), len(content)

    def send(self, name: str) -> None:
        """Sends a file by its name in the folder."""
        self._check()
        self._folder.send(name, self._path / name)

    def keep_checkpoints(self, names: Iterable[str]) -> None:
        """Leaves those of these names there: sends new ones, after the journal, and then removes the others."""
        wanted = set(names)
        if new := sorted(wanted - self._whole):
            self._check()
            self._send_journal()
        for name in new:
            self._folder.send(name, self._path / name)
            self._whole.add(name)
        if old := sorted((self._whole | self._damaged) - wanted):
            self._check()
        for name in old:
            self._folder.remove(name)
            self._whole.discard(name)
            self._damaged.discard(name)
        self._damaged -= wanted

    def _flush_late(self) -> None:
        self._timer = None
        with contextlib.suppress(OSError, InputError):  # the next one to be sent says it again
            self.flush()

    def _check_again(self) -> None:
        """Before a request is tried again: much may have happened while no answer came."""
        if self._has_begun:
            self._check()

    def _check(self) -> None:
        found = self._witness.read(WRITER)
        if found != self._name:
            raise self._superseded(found)

    def _superseded(self, found: bytes) -> SupersededError:
        by = _known(found)
        who = f"{by.get('who', 'nobody')}, attempt {by.get('attempt', 'unknown')}"
        return SupersededError(f"{self._folder.url} is now written by another session, {who}.")


def leave_behind(folder: SharedFolder, record: Mapping[str, Any]) -> None:
    """Leaves the last record of a process for the next writer to add to the journal, which others must not touch.

    Raises:
        SupersededError: if the session that it names no longer writes the folder.
    """
    writer = _known(folder.read(WRITER))
    if writer.get("attempt") != record["attempt"]:
        raise SupersededError(f"{folder.url} is not written by attempt {record['attempt']}.")
    folder.write(LAST_WORD, line_of(record))


def _known(name: bytes) -> dict[str, str]:
    try:
        known = json.loads(name)
    except ValueError:
        return {}
    return known if isinstance(known, dict) else {}


def _whole_lines(journal: Path) -> bytes:
    content = journal.read_bytes()
    return content[: content.rfind(b"\n") + 1]
