"""A replicate's folder: a journal of everything it reported, and its checkpoints. The one record that a crash leaves.

Layout: `journal.jsonl`, one record a line, only ever appended to; `step_000012.<sha256>.pt`, whole or not there, or
`.zip` where the checkpoint is a folder; `artifacts/`, files for people.
The journal's line is written before the checkpoint of the same step, and the artifacts before both, so nothing behind a
checkpoint is missing. Where the journal is damaged, its whole lines before the damage count; whoever writes next sets
it aside as `journal.damaged-1.jsonl` and begins with these lines. A checkpoint whose step they lack counts as none.

A step counts once, however often the replicate was cut off. The next attempt goes on from the `newest` whole
checkpoint and makes the steps behind it again. Of those, the ones that the journal has get no second line, though their
checkpoint is kept (`JournalTrial.report`); what a crash left of a line goes as the next is written (`JournalFile`).

Where the folder is shared by a URL, that is the truth: others read there and fetch what they need, and whoever writes
begins with what is there and sends every change at once, in the same order. Of metrics without a checkpoint the last
second may be missing there after a crash; they are made again.
"""

import contextlib
import shutil
import tempfile
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from orchestrator.journal.artifacts import write_artifacts
from orchestrator.journal.bucket_reader import SharedReader, fetch_checkpoint, look
from orchestrator.journal.bucket_writer import SharedWriter, leave_behind
from orchestrator.journal.file_names import (
    ARTIFACTS,
    CHECKPOINT,
    JOURNAL,
    checkpoints_in,
    digest_of,
    is_whole,
    step_of,
)
from orchestrator.journal.lines import ACCESS, DAMAGED, JournalFile, Lines, Record, parse
from orchestrator.journal.packed_folder import pack
from orchestrator.journal.summary import ANEW, best_steps, is_over, last_complete, last_step, since_anew, steps
from orchestrator.machine.clock import now_ms
from orchestrator.machine.durable_files import check_is_no_link, make_folder, new_file, replace_durably, sync
from trainables.errors import DataWarning
from trainables.metric import Best

NUM_LAST_KEPT: Final = 2
PARTIAL: Final = "checkpoint.partial"
COPIED_BYTES: Final = 1 << 20
"""At once."""
ASIDE: Final = "unreadable."
"""How the name begins of a checkpoint that no longer counts."""
HUNG_FILE: Final = "threads.txt"
"""Where a process that no longer reported says what its threads were doing."""
PRUNED_FILE: Final = "pruned.txt"
"""The attempt that a search has stopped by its curve, for workers that Ray Train starts again."""


class ReplicateFolder:
    """Journal and checkpoints of one replicate.

    The methods stand in this order: a session's begin and end, the journal, what changes checkpoints, what finds them,
    files for people.

    Args:
        path: the folder; made when first written to.
        selection: names of checkpoints to keep, each with what it is the best of, a metric alone being minimised;
            beside them the last two are kept.
        shared: URL of the folder that all machines see; empty where that is `path` itself. It is only read, until
            `begin`.
        must_answer: whether an OSError is raised where the journal cannot be read now; else that is warned of, and
            nothing is known of the replicate.
    """

    def __init__(
        self, path: Path, selection: Mapping[str, str | Best], shared: str = "", must_answer: bool = False
    ) -> None:
        self.path, self._must_answer = path, must_answer
        self.selection = {name: Best(one) if isinstance(one, str) else one for name, one in selection.items()}
        self.shared = shared
        self._journal = JournalFile(path / JOURNAL)
        self._reader = SharedReader(shared) if shared else None
        self._writer: SharedWriter | None = None

    def begin(self, attempt: str) -> str:
        """Makes the session of `attempt` the one that writes here, with a local folder equal to the shared one.

        Returns:
            What was damaged and is set aside, in words; empty where nothing is.
        """
        if self.shared:
            writer = SharedWriter(self.shared, self.path, attempt)
            said = writer.begin()
            self._writer, self._reader = writer, None
            self._journal.hold()
        else:
            said = self._journal.mend()
        (self.path / PARTIAL).unlink(missing_ok=True)
        # A line goes before its checkpoint, so a checkpoint without a line says that the journal has lost some.
        if not said and (without_line := sorted(set(self.checkpoints()) - steps(self.records()))):
            said = f"The journal {self._journal.path} lacks step {without_line[0]}, though its checkpoint is there"
        if not said:
            return ""
        newest = self.newest()
        return f"{said}; training goes on {f'after step {step_of(newest.name)}' if newest else 'from the start'}."

    def look(self) -> None:
        """What is read from a URL is what is there now, until the next look."""
        next(looked_at([self]))

    def close(self) -> None:
        """Sends what was not sent yet."""
        if self._writer:
            self._writer.flush()

    def append(self, record: Record) -> Record:
        """Adds `record` with the present time and returns it; on disk before this returns.

        Whoever is not the writer of a folder shared by a URL only leaves it there, for the next writer to add.

        Raises:
            LostLinesError: if what this session has written is not there any more.
        """
        stamped = record | {"time_ms": now_ms()}
        if self._reader:
            leave_behind(self._reader.folder, stamped)
            return stamped
        make_folder(self.path)
        self._journal.append(stamped)
        if self._writer:
            self._writer.wrote(record["kind"], is_followed=bool(record.get("kept")))
        return stamped

    def records(self) -> list[Record]:
        """Every whole line of the journal before any that is damaged, since it last began anew; none that is torn."""
        return since_anew(self.records_after(0)[0])

    def records_after(self, offset: int) -> tuple[list[Record], int]:
        """The whole lines behind `offset` bytes of the journal, and the offset behind them; warns of a damaged one.

        All lines where the journal is another one by now.

        Raises:
            LostLinesError: if this session writes the journal, and what it wrote is not there any more.
        """
        lines, start = self._lines(offset)
        if lines.error and lines.is_unanswered and self._must_answer:
            raise lines.error
        if lines.fault:
            warnings.warn(self.warning(), DataWarning, stacklevel=2)
        return lines.records, start + lines.num_bytes

    def _lines(self, offset: int) -> tuple[Lines, int]:
        """What stands behind an offset, and where that begins: at 0 if no line ends at `offset`."""
        if self._reader:
            content, start = self._reader.journal(offset)
            return parse(content), start
        return self._journal.lines(offset)

    def begin_anew(self, why: str) -> None:
        """Has nothing count that stands in the journal by now, and removes the checkpoints."""
        self.remove_behind(None)
        self.append({"kind": ANEW, "said": why})

    def last_step(self) -> int:
        """The last step reported in training; -1 where none was."""
        return last_step(self.records())

    def state(self) -> Record:
        """The newest record of kind `state`; `{"state": "new"}` where there is none."""
        states = [r for r in self.records() if r["kind"] == "state"]
        return states[-1] if states else {"state": "new"}

    def started(self, attempt: str) -> Record:
        """What the session of `attempt` wrote first; nothing where it has not."""
        return next((r for r in self.records() if r["kind"] == "started" and r["attempt"] == attempt), {})

    def evaluations(self) -> set[str]:
        """Ids of those done."""
        return {r.get("id", "") for r in self.records() if r["kind"] == "evaluation"}

    def damage(self) -> str:
        """What is wrong with the journal, as the beginning of a sentence; empty where nothing is."""
        lines = self._lines(0)[0]
        return lines.damage(f"{self.shared}/{JOURNAL}" if self._reader else self._journal.path) if lines.fault else ""

    def warning(self) -> str:
        """What is wrong with the journal, and what becomes of it; empty where nothing is."""
        lines = self._lines(0)[0]
        remedy = (
            f"The {len(lines.records)} lines before count; `ponderay run` sets it aside and makes the rest again, "
            "unless the tracking store has the replicate complete."
        )
        if lines.is_unanswered:
            remedy = "Nothing of it is lost by that: try again when the disk answers."
        return f"{self.damage()}. {ACCESS if lines.is_refused else remedy}" if lines.fault else ""

    def asides(self) -> list[str]:
        """Names of the damaged journals and unreadable checkpoints that were set aside in the local folder."""
        found = (file.name for pattern in (DAMAGED.format("*"), f"{ASIDE}*") for file in self.path.glob(pattern))
        return sorted(found)

    def keep(self, source: Path, step: int) -> None:
        """Copies the file or folder `source` as the checkpoint of `step`, whole, and removes those no longer needed."""
        make_folder(self.path)
        check_is_no_link(self.path)
        partial = self.path / PARTIAL
        is_folder = source.is_dir()
        try:
            if is_folder:
                pack(source, partial)
            else:
                with source.open("rb") as given, new_file(partial) as copied:
                    shutil.copyfileobj(given, copied, COPIED_BYTES)
            name = f"step_{step:06d}.{digest_of(partial)}.{'zip' if is_folder else 'pt'}"
            replace_durably(partial, self.path / name)
        finally:
            partial.unlink(missing_ok=True)
        self._send_checkpoints()
        # The last two, not one: the newest may turn out damaged, or be one that the trainable cannot read.
        found, records = self.checkpoints(), self.records()
        best = best_steps(records, self.selection, max(found, default=-1)).values()
        self._remove_all_but([*list(found)[-NUM_LAST_KEPT:], *best], records)

    def keep_best(self) -> None:
        """Removes all checkpoints but the best ones, and what was kept as such before; the last one where none is."""
        records = self.records()
        best = best_steps(records, self.selection, last_step(records)).values()
        if self._remove_all_but([*best, *([] if best else list(self.checkpoints())[-1:])], records):
            sync(self.path)

    def _remove_all_but(self, needed: Collection[int], records: Sequence[Record]) -> bool:
        """Removes other checkpoints than those of the needed steps and the products; says whether there were any."""
        kept = {*needed, *map(step_of, self._products(records).values())}
        others = [path for step, path in self.checkpoints().items() if step not in kept]
        for path in others:
            path.unlink()
        self._send_checkpoints()
        return bool(others)

    def _send_checkpoints(self) -> None:
        if self._writer:
            self._writer.keep_checkpoints(path.name for path in self.checkpoints().values())

    def remove_behind(self, checkpoint: Path | None) -> None:
        """Removes the checkpoints of later steps; all of them where it is None.

        Whole ones of steps that the journal lacks are set aside: it was damaged, and they are what is left.
        """
        last, known = step_of(checkpoint.name) if checkpoint else -1, steps(self.records())
        for step, path in self.checkpoints().items():
            if step > last and step not in known and is_whole(path):
                self.set_aside(path)
            elif step > last:
                path.unlink()
        self._send_checkpoints()

    def set_aside(self, checkpoint: Path) -> str:
        """Gives a checkpoint that cannot be used another name, which counts as none, and returns it."""
        aside = f"{ASIDE}{checkpoint.name}"
        checkpoint.replace(self.path / aside)
        if self._writer:
            self._writer.send(aside)
        self._send_checkpoints()
        return aside

    def is_aside(self, checkpoint: Path) -> bool:
        """Whether a checkpoint was set aside, here or by another process of this machine, and not made again since."""
        return (self.path / f"{ASIDE}{checkpoint.name}").exists() and not checkpoint.exists()

    def put_back(self, aside: str) -> None:
        """Undoes `set_aside`."""
        (self.path / aside).rename(self.path / aside.removeprefix(ASIDE))
        self._send_checkpoints()

    def checkpoints(self) -> dict[int, Path]:
        """The checkpoints by step, in order; of a folder that is read from a URL some may have to be fetched."""
        if self._reader:
            paths = [self.path / name for name in self._reader.sizes() if CHECKPOINT.fullmatch(name)]
        else:
            paths = checkpoints_in(self.path)
        return {step_of(path.name): path for path in sorted(paths, key=lambda path: step_of(path.name))}

    def whole(self) -> dict[int, Path]:
        """Checkpoints of steps that the journal has, fetched where that is needed, without those that are damaged."""
        known = steps(self.records())
        return {step: path for step, path in self.checkpoints().items() if step in known and self._fetched(path)}

    def newest(self) -> Path | None:
        """The last checkpoint to go on from: it is what was written, and so are the best ones up to it.

        A damaged one is passed over; where it was the best so far, so are all behind it, for it has to be made again.
        """
        found, records = self.whole(), self.records()
        for step in reversed(found):
            if all(best in found for best in best_steps(records, self.selection, step).values()):
                return found[step]
        return None

    def best_step(self, name: str) -> int | None:
        """The step of the checkpoint that `best` looks for; None where no step has a value."""
        records = self.records()
        return best_steps(records, self.selection, last_step(records)).get(name)

    def best(self, name: str) -> Path | None:
        """The checkpoint with the best value of the metric that selects `name`, the earliest of equals; NaN is last.

        None where no step has a value, or it is damaged.
        """
        step = self.best_step(name)
        path = None if step is None else self.checkpoints().get(step)
        return self._fetched(path) if path else None

    def product(self, name: str) -> Path | None:
        """The checkpoint called `name`, fetched where that is needed; None where it is gone or damaged."""
        return self._fetched(self.path / name) if CHECKPOINT.fullmatch(name) else None

    def products(self) -> dict[str, str]:
        """The best checkpoint of each selection in its last complete session, as far as it is there."""
        return self._products(self.records())

    def _products(self, records: Sequence[Record]) -> dict[str, str]:
        there = {path.name for path in self.checkpoints().values()}
        return {name: file for name, file in last_complete(records).get("products", {}).items() if file in there}

    def _fetched(self, path: Path) -> Path | None:
        """A checkpoint that lies in the local folder, whole; None where it cannot."""
        is_there = fetch_checkpoint(self._reader.folder, path.name, self.path) if self._reader else is_whole(path)
        return path if is_there else None

    def is_trained(self, num_steps: int | None) -> bool:
        """Whether the last step was reported, or `train` returned, and the best checkpoints are there."""
        records = self.records()
        if not is_over(records, num_steps):
            return False
        kept = [r["step"] for r in records if r["kind"] == "metrics" and r.get("kept", True)]
        if num_steps is None and not kept:
            return True
        needed = set(best_steps(records, self.selection, last_step(records)).values())
        needed = needed or set(map(step_of, self._products(records).values())) or {max(kept, default=-1)}
        return needed <= set(self.whole())

    def keep_artifacts(self, contents: Mapping[str, bytes]) -> None:
        """Writes files for people by name, each whole or not at all; one of the same name is replaced.

        Raises:
            ValueError: if all of them would take more than the limit, or a name leads elsewhere.
        """
        for name in write_artifacts(self.artifacts, contents):
            if self._writer:
                self._writer.send(f"{ARTIFACTS}/{name}")

    @property
    def artifacts(self) -> Path:
        """Files for people, in the local folder; it may not be there."""
        return self.path / ARTIFACTS

    @contextlib.contextmanager
    def fetched_artifacts(self) -> Iterator[Path]:
        """The folder with the files for people, for as long as the block lasts where they are fetched."""
        if self._reader is None:
            yield self.artifacts
            return
        with tempfile.TemporaryDirectory() as folder:
            self._reader.fetch_artifacts(Path(folder))
            yield Path(folder)

    def checkpoint_sizes(self) -> list[int]:
        """The bytes of each checkpoint."""
        if self._reader:
            return [size for name, size in self._reader.sizes().items() if CHECKPOINT.fullmatch(name)]
        return [path.stat().st_size for path in self.checkpoints().values()]

    def size_bytes(self) -> int:
        """What all its files take."""
        return sum(self._reader.sizes().values()) if self._reader else size_bytes(self.path)


def looked_at(folders: Sequence[ReplicateFolder]) -> Iterator[ReplicateFolder]:
    """Each of `folders`, in order, after it has looked; those behind a URL are asked for together."""
    shared = look([folder._reader for folder in folders if folder._reader])
    for folder in folders:
        if folder._reader:
            next(shared)
        yield folder


def size_bytes(folder: Path) -> int:
    """What all files below `folder` take."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
