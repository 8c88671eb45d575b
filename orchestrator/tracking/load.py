"""Loads a study: from the study file or its copy on the server, whichever is the newest, else from MLflow's runs."""

import contextlib
import sqlite3
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from orchestrator.environment.settings import Settings, read_settings
from orchestrator.journal.study_file import STUDY_FILE, StudyContent, read_study_file
from orchestrator.results.study import Study
from orchestrator.tracking.damage import opened
from orchestrator.tracking.lease_holder import MIRRORED, Holder, holder_file
from orchestrator.tracking.mlflow_internals import SWEEP_RUNS
from orchestrator.tracking.moved_folder import local_place
from orchestrator.tracking.store import (
    NotRunError,
    check_address,
    check_file,
    fault,
    has_store,
    may_have,
    not_run,
    sqlite_file,
    store_kind,
    store_mark,
)
from orchestrator.tracking.stored_files import StoredFile
from search_spaces.redaction import redacted_uri
from search_spaces.sweep import Constraint, Sweep
from trainables.errors import DataWarning, InputError

if TYPE_CHECKING:
    from orchestrator.tracking.client import Tracking

PATIENCE_S: Final = 5.0
"""How long a server is asked where this machine has an answer, too."""

SILENT_S: Final = 30.0
"""So long a silent server is taken for silent."""

_silent: dict[str, tuple[float, str]] = {}
"""When a server was last found to be silent, and why."""


@lru_cache(maxsize=1)
def _parsed(folder: Path, mark: tuple[int, ...]) -> StudyContent | None:
    return read_study_file(folder)


def _content(folder: Path) -> StudyContent | None:
    """What `read_study_file` gives, once: a command asks several times, and parses ten thousand replicates once."""
    try:
        found = (folder / STUDY_FILE).stat()
    except OSError:
        return None
    return _parsed(folder, (found.st_ino, found.st_size, found.st_mtime_ns))


def load_study(sweep: str, settings: Settings | None = None) -> Study:
    """What the sweep called `sweep` has produced so far, in the tracking store that `settings` name.

    What a driver that is gone has left running is stopped.

    Args:
        settings: default: those in force.

    Raises:
        InputError: if the sweep has not run.
    """
    settings = settings or read_settings()
    check_address(settings.tracking_uri)
    if store_kind(settings.tracking_uri) != "sqlite":
        return _of_server(sweep, settings)
    found = in_runs_folder(sweep, settings) or _asked(settings, sweep).read_study(sweep)
    if not found.replicates and _content(settings.replicates(sweep)) is None:  # all of it was put away
        raise not_run(sweep, settings.tracking_uri, _recorded_here(settings))
    return _stopped(found, load_holder(sweep, settings))


def _of_server(sweep: str, settings: Settings) -> Study:
    """The study as the last driver left it, here or on the server; of a silent server as this machine has it.

    Raises:
        InputError: if the sweep has not run, or the server is silent and there is no study file here.
    """
    here, own = _content(settings.replicates(sweep)), holder_file(settings, f"sweep {sweep}").holder()
    try:
        tracking = _asked(settings, sweep)
    except InputError as error:
        known = [content for content in (here, _in_bucket(sweep, settings)) if content]
        if not known:
            raise
        here = max(known, key=lambda content: (content.generation, content.time_ms))
        as_of = datetime.fromtimestamp(here.time_ms / 1000).strftime("%Y-%m-%d %H:%M")
        why = str(error).rstrip(".")
        warnings.warn(f"{why}; the answer is as of {as_of} on this machine.", DataWarning, stacklevel=3)
        return _stopped(here.study(sweep), own)
    from orchestrator.tracking.study_copy import read_copy

    holder = tracking.read_holder(sweep)
    if here and own and own.generation > (holder.generation if holder else 0) and _is_of(here, own):
        warnings.warn(
            f"The tracking store {redacted_uri(settings.tracking_uri)} is older than the study file of {sweep} on this "
            "machine, which answers; `ponderay run` writes into the store what it lacks.",
            DataWarning,
            stacklevel=3,
        )
        return _stopped(here.study(sweep), own)
    runs = tracking.runs(sweep)
    newest = here if here and _is_of(here, holder) else None
    if newest is None or not (holder and holder.is_here):  # a folder that was brought here may have stopped midway
        copied = read_copy(runs, holder)
        newest = max((newest, copied), key=lambda content: content.time_ms) if newest and copied else copied
    found = newest.study(sweep) if newest else tracking.read_study(sweep)
    if not (found.replicates or here or newest) and (holder is None or holder.is_gone):  # all of it was put away
        raise not_run(sweep, settings.tracking_uri, _recorded_here(settings))
    return _stopped(found, holder)


def in_runs_folder(sweep: str, settings: Settings) -> Study | None:
    """The study as its file has it, here or in the bucket; None where the sweep's last driver wrote another, or none.

    That is known by the sweep's lease: a driver may have had another runs folder.
    """
    content = _content(settings.replicates(sweep))
    if not (settings.storage or (content and content.sweep)) or not (holder := load_holder(sweep, settings)):
        return None
    if settings.storage and (content is None or not _is_of(content, holder)):
        content = _in_bucket(sweep, settings)
        states = {one["state"] for one in content.replicates.values()} if content else set()
        if holder.is_gone and "running" in states:  # it was killed, and may have done more than its last copy says
            return None
    return content.study(sweep) if content and _is_of(content, holder) else None


def _is_of(content: StudyContent, holder: Holder | None) -> bool:
    return holder is not None and holder.token == content.sweep.get("lease")


def _in_bucket(sweep: str, settings: Settings) -> StudyContent | None:
    from orchestrator.tracking.study_copy import read_bucket

    return read_bucket(settings.shared(settings.replicates(sweep))) if settings.storage else None


def load_if_run(sweep: str, settings: Settings) -> Study | None:
    """The study that `load_study` gives; None where the sweep has not run."""
    try:
        return load_study(sweep, settings)
    except NotRunError:
        return None


def load_holder(sweep: str, settings: Settings) -> Holder | None:
    """Who last ran the sweep; None where nobody says it, or a server is silent of which this machine knows nothing."""
    own = holder_file(settings, f"sweep {sweep}").holder()
    if store_kind(settings.tracking_uri) == "sqlite" and (own or not may_have(settings.tracking_uri, sweep)):
        return own
    try:
        holder = _asked(settings, sweep).read_holder(sweep)  # that of an earlier version, where the store is a file
    except InputError:
        if _content(settings.replicates(sweep)) is None:
            raise
        return own
    return own if own and own.generation > (holder.generation if holder else 0) else holder


def _stopped(study: Study, holder: Holder | None) -> Study:
    """The study; where its driver is gone, what was running has stopped."""
    if holder is None or not holder.is_gone:
        return study
    replicates = [replace(one, state="stopped") if one.state == "running" else one for one in study.replicates]
    return replace(study, replicates=tuple(replicates))


def num_mirrored(sweep: str, settings: Settings) -> int | None:
    """How many replicates of the sweep MLflow has; None where a run has not ended well, or only a driver can tell.

    The last driver has noted it, which counts for as long as nobody writes into the store's file.
    """
    if store_kind(settings.tracking_uri) != "sqlite" or not may_have(settings.tracking_uri, sweep):
        return None
    _, notes = holder_file(settings, f"sweep {sweep}").read()
    mark, _, number = notes.get(MIRRORED, "").rpartition(" ")
    if mark == store_mark(settings.tracking_uri):
        return int(number)
    return _asked(settings, sweep).num_finished(sweep)


def load_declaration(sweep: str, settings: Settings) -> str | None:
    """What the sweep declares, as `declaration.text_of` gives it; None where it is not recorded.

    Raises:
        InputError: if a server is silent and there is no study file here.
    """
    check_address(settings.tracking_uri)
    here = _content(settings.replicates(sweep))
    text = here.sweep.get("declaration") if here else None
    if store_kind(settings.tracking_uri) == "sqlite" and (text or not may_have(settings.tracking_uri, sweep)):
        return text
    try:
        return _asked(settings, sweep).read_declaration(sweep)
    except InputError:
        if here is None:
            raise
        return text


def load_sweep(name: str, settings: Settings) -> Sweep | None:
    """The sweep as it was recorded with its study; None where there is none of that name, or nothing of it is left."""
    from orchestrator.tracking.declaration import sweep_of

    text = None if ":" in name else load_declaration(name, settings)
    conditions = load_study(name, settings).conditions if text else ()
    return sweep_of(text, conditions) if text and conditions else None


def load_directions(sweep: Sweep, settings: Settings) -> Mapping[str, Literal["minimize", "maximize"]]:
    """Whether each metric that has a direction is to minimize or to maximize."""
    from orchestrator.tracking.declaration import directions_of

    return directions_of(sweep, load_declaration(sweep.name, settings))


def load_constraints(sweep: Sweep, settings: Settings) -> Sequence[Constraint]:
    """What the search `sweep` asks of its conditions; nothing where it is none."""
    from orchestrator.tracking.declaration import Recorded, constraints_of

    # A sweep with its code says it itself: no store is asked.
    return constraints_of(sweep, load_declaration(sweep.name, settings) if isinstance(sweep.base, Recorded) else None)


def with_origins(study: Study, settings: Settings) -> Study:
    """The study with the origins of its replicates; read from MLflow where no study file has them."""
    if study.origins or not study.replicates:
        return study
    try:
        return replace(study, origins=_asked(settings, study.sweep).read_origins(study.sweep))
    except NotRunError:  # all of it ran elsewhere
        return study


def open_tracking(sweep: str, settings: Settings) -> "Tracking | None":
    """The store of a sweep; None where it has not run there, or the server is silent while its study file is here.

    Raises:
        InputError: if the store cannot be used.
    """
    try:
        tracking = _asked(settings, sweep)
        tracking.find_experiment(sweep)
    except NotRunError:
        return None
    except InputError:
        is_server = store_kind(settings.tracking_uri) != "sqlite"
        if is_server and _content(settings.replicates(sweep)):
            return None
        raise
    return tracking


def load_files(sweep: str, folder: str, settings: Settings) -> Sequence[StoredFile]:
    """The files in a folder of the sweep's own run, by path; none of a sweep that has not run here.

    Where the store is one file, and says that they are in the runs folder, they are found there without MLflow; of two
    of one name the later one counts. Else MLflow is asked.

    Raises:
        OSError: if the store of files is away.
        InputError: if the store cannot be used.
    """
    places: list[Path | None] | None = None
    if store_kind(settings.tracking_uri) == "sqlite":
        with contextlib.suppress(sqlite3.Error), opened(sqlite_file(settings.tracking_uri), wait_s=0.2) as database:
            places = [local_place(uri) for (uri,) in database.execute(SWEEP_RUNS, (sweep,))]
    if places is not None and all(place and settings.artifacts in place.parents for place in places):
        here = [file for place in places if place for file in place.glob(f"{folder}/*") if file.is_file()]
        newest = {file.name: file for file in sorted(here, key=lambda file: file.stat().st_mtime)}
        files = [newest[name] for name in sorted(newest)]
        return [StoredFile(f"{folder}/{file.name}", file.stat().st_size, file.read_bytes) for file in files]
    tracking = open_tracking(sweep, settings)
    return tracking.runs(sweep).files_of(folder) if tracking else ()


def _recorded_here(settings: Settings) -> list[str]:
    return sorted(file.parent.name for file in settings.runs.glob(f"replicates/*/{STUDY_FILE}"))


def _asked(settings: Settings, sweep: str) -> "Tracking":
    """The store, opened by MLflow, whose import takes seconds: after what is known without it.

    Raises:
        InputError: if there is no such store, or it is silent.
    """
    uri = settings.tracking_uri
    check_address(uri)
    check_file(uri)
    recorded = _recorded_here(settings)
    if not has_store(uri) or (recorded and not may_have(uri, sweep)):  # else MLflow says what is recorded elsewhere
        raise not_run(sweep, uri, recorded)
    if store_kind(uri) != "sqlite" and _content(settings.replicates(sweep)):  # which answers at once
        since_s, why = _silent.get(uri, (0.0, ""))
        if not why or time.monotonic() - since_s > SILENT_S:
            why = fault(uri, PATIENCE_S)
            _silent[uri] = time.monotonic(), why
        if why:
            raise InputError(f"The tracking store {redacted_uri(uri)} cannot be opened: {why}")
    from orchestrator.tracking.client import Tracking

    return Tracking(settings)
