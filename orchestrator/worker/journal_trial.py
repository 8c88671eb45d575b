"""What a trainable sees of the outside, at work on a replicate's folder."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.lines import Record
from orchestrator.journal.packed_folder import opened
from orchestrator.worker.interrupts import raise_noted
from orchestrator.worker.system_metrics import SystemMetrics
from orchestrator.worker.work import Work
from trainables.errors import shown
from trainables.metric import NAME_RULE, is_metric_name

MOST_STEP: Final = 2**63 - 1
"""What databases take, MLflow's too."""

NO_PATH: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""Why nothing can stand at a path, whenever it is asked for."""

Send = Callable[[Record], None]


class JournalTrial:
    """A `Trial` that writes to the replicate's folder and passes what is new on to `send`.

    Attributes:
        restored: the checkpoint that training goes on from.
        opened: the name of the checkpoint that it was given last.
    """

    def __init__(self, folder: ReplicateFolder, work: Work, send: Send, is_writer: bool) -> None:
        self._folder, self._work, self._send, self._is_writer = folder, work, send, is_writer
        self._last_step, self._session_step = folder.last_step(), -1
        self._is_restored = False
        self.restored: Path | None = None
        self.opened = ""
        self._load = SystemMetrics(folder.path)
        self._opened = contextlib.ExitStack()

    def report(
        self,
        metrics: Mapping[str, float],
        *,
        step: int,
        checkpoint: Path | None = None,
        artifacts: Sequence[Path] = (),
    ) -> None:
        """Records `metrics` unless an earlier attempt already had, and keeps `checkpoint` and `artifacts`."""
        raise_noted()  # training was cut off, and is not over
        values = _numbers(metrics)
        _check_step(step)
        if step <= self._session_step:
            rule = f"Steps must rise, but step {step} was reported after step {self._session_step}"
            raise ValueError(f"{rule}; put all metrics of a step into one report.")
        self._session_step = step
        record: Record = {"kind": "metrics", "step": step, "metrics": values, "kept": checkpoint is not None}
        if self._is_writer:
            if checkpoint and not (_is(checkpoint, stat.S_ISREG) or _is(checkpoint, stat.S_ISDIR)):
                raise ValueError(f"A checkpoint must be a file or a folder, but there is no {shown(str(checkpoint))}.")
            self._folder.keep_artifacts(files := _read(artifacts))
            record |= {"artifacts": sorted(files)} if files else {}
            if self._is_restored:  # now it has turned out to be a checkpoint to go on from
                self._is_restored = False
                self._folder.remove_behind(self.restored)
            if step > self._last_step:
                # In the journal only, where the driver reads it: processes that report in step must send alike.
                if values_of_machine := self._load.sample():
                    self._folder.append({"kind": "system", "step": step, "values": values_of_machine})
                record = self._folder.append(record)
            if checkpoint:
                self._folder.keep(Path(checkpoint), step)
        if step > self._last_step:
            self._last_step = step
            self._send(record)

    def restore(self) -> Path | None:
        """The newest checkpoint from which everything that is missing will be made again."""
        self.restored, self._is_restored = self._folder.newest(), True
        return self._open(self.restored) if self.restored else None

    @property
    def has_reported(self) -> bool:
        """Whether this session has."""
        return self._session_step >= 0

    def prerequisite(self, name: str) -> Path:
        """The best checkpoint of the prerequisite `name`."""
        products = self._work.products
        if name not in products:
            raise KeyError(f"There is no prerequisite {name!r}; there are {', '.join(products) or 'none'}.")
        return self._open(best_product(products[name], self._work.shared_products.get(name, "")))

    def close(self) -> None:
        """Removes the folders that were unpacked for it."""
        self._opened.close()

    def _open(self, checkpoint: Path) -> Path:
        self.opened = checkpoint.name
        return self._opened.enter_context(opened(checkpoint, self._folder.path))


class EvaluationTrial(JournalTrial):
    """A `Trial` for `evaluate`: its report is kept in memory until the best checkpoint is known."""

    reported: tuple[int, dict[str, float], dict[str, bytes]] | None = None

    def report(
        self,
        metrics: Mapping[str, float],
        *,
        step: int,
        checkpoint: Path | None = None,
        artifacts: Sequence[Path] = (),
    ) -> None:
        """Keeps `metrics` and `artifacts` in memory."""
        _check_step(step)
        if self.reported is not None:
            raise ValueError("`evaluate` must report once under each evaluation; put all its metrics into one report.")
        self.reported = (step, _numbers(metrics), _read(artifacts))


def _numbers(metrics: Mapping[str, float]) -> dict[str, float]:
    """What a report says, as plain names and numbers.

    Raises:
        ValueError: if it is no mapping, or a name or a value is none that a journal and a store can keep.
    """
    if not isinstance(metrics, Mapping):
        raise ValueError(f"`metrics` must be a mapping from names to numbers, but got {shown(metrics)}.")
    numbers: dict[str, float] = {}
    for name, value in metrics.items():
        if not is_metric_name(name):
            raise ValueError(f"A metric's name must {NAME_RULE}, but got {shown(name)}.")
        try:
            numbers[str(name)] = float(value)
        except Exception as error:  # whatever a class of the user's, or of torch's, raises there
            raise ValueError(f"The metric {name!r} must be one number, but got {shown(value)}.") from error
    return numbers


def _check_step(step: object) -> None:
    if not isinstance(step, int) or isinstance(step, bool):
        raise ValueError(f"`step` must be an int, but got {shown(step)}; write `step=int(step)`.")
    if not 0 <= step <= MOST_STEP:
        raise ValueError(f"`step` must be from 0 to {MOST_STEP}, but got {shown(step)}.")


def _read(files: Sequence[Path]) -> dict[str, bytes]:
    """The contents of artifacts by name.

    Raises:
        ValueError: if one is no file, as of a pipe or a device there would be no end; or two have one name.
    """
    if not isinstance(files, Sequence) or isinstance(files, str | bytes):
        raise ValueError(f"`artifacts` must be a list of files, but got {shown(files)}.")
    contents: dict[str, bytes] = {}
    for file in dict.fromkeys(files):
        if not _is(file, stat.S_ISREG):
            raise ValueError(f"An artifact must be a file, but there is no file {shown(str(file))}.")
        if (name := Path(file).name) in contents:
            raise ValueError(f"Artifacts of one report must have different names, but two are {name!r}; rename one.")
        contents[name] = Path(file).read_bytes()
    return contents


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    """Whether something of this kind stands at `path`, which may be no path at all.

    Raises:
        OSError: where that cannot be known now, as of a mount that is lost.
    """
    try:
        return kind(os.stat(path).st_mode)  # noqa: PTH116 - what is given may be no Path
    except OSError as error:
        if error.errno not in NO_PATH:
            raise
    except (TypeError, ValueError):
        pass
    return False


def best_product(folder: Path, shared: str = "") -> Path:
    """The best checkpoint of a finished prerequisite, or its last; fetched, where its folder is shared by a URL.

    Raises:
        OSError: if it can no longer be fetched whole, or its journal does not say now that it is complete.
    """
    place = ReplicateFolder(folder, {}, shared)
    products: Mapping[str, str] | None = place.state().get("products")
    if products is None:
        raise OSError(f"The journal of the prerequisite at {shared or folder} does not say that it is complete.")
    name = products.get("best") or next(iter(products.values()), "")
    if checkpoint := place.product(name) if name else place.newest():
        return checkpoint
    raise OSError(f"The checkpoint {name} at {shared or folder} is gone or damaged.")
