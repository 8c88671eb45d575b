"""Results that a user puts away: into an archive, out of the study, back again, or under another name.

Whoever does it holds the sweep's lease. The order makes the same command the remedy where it was cut off: first the
archive is whole on disk, then folders and MLflow's runs go, and last the lines of the study file.
"""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.console.errors import RefusedError
from orchestrator.environment.places import file_at
from orchestrator.environment.settings import Settings
from orchestrator.journal.archive import SEARCHES, Archive, opened_archive, write_archive
from orchestrator.journal.bucket import SharedFolder
from orchestrator.journal.curve_file import CURVE_FILE, split_curves
from orchestrator.journal.file_names import ARTIFACTS, CHECKPOINT, JOURNAL, is_artifact, is_plain
from orchestrator.journal.first_name import FIRST_NAME, name_in_keys
from orchestrator.journal.study_file import (
    STUDY_FILE,
    StudyContent,
    StudyFile,
    lines_of,
    name_of,
    parse_study,
    part_of,
    read_study_file,
)
from orchestrator.machine.durable_files import check_is_no_link, make_folder, replace_durably, write_durably
from orchestrator.machine.process_lock import Lease as FileLock
from orchestrator.results.study import Replicate
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.lease import LeaseKeeper, Leases, ServerLeases
from orchestrator.tracking.lease_holder import FolderLeases
from orchestrator.tracking.load import load_if_run, load_study, open_tracking
from orchestrator.tracking.store import has_store, reason_of, store_kind
from orchestrator.tracking.study_copy import COPY, CURVE_COPY, bring_from_bucket
from search_spaces.names import check_sweep_name, path_part
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.tracking.client import Tracking

Chosen = Callable[[Replicate], bool]
ARCHIVES: Final = "archives"
IN_USE: Final = "in_use"
UNKEPT: Final = (".partial", ".lock", IN_USE)
"""How the names end of files that are of no use elsewhere."""


def archive(name: str, settings: Settings, to: Path | None = None, with_checkpoints: bool = True) -> Path:
    """Writes the whole study called `name` into an archive, and returns its file; the study stays as it is.

    Args:
        to: default: a new file in `archives` of the runs folder.
        with_checkpoints: else trained models are left out.

    Raises:
        InputError: if it has not run, or the file cannot be written.
        RefusedError: if a driver runs it.
    """
    with _held(name, settings) as study:
        return study.write(study.replicates, to, with_checkpoints)


def remove(name: str, settings: Settings, chosen: Chosen, to: Path | None = None) -> tuple[Path, int]:
    """Moves the chosen replicates of a study into an archive; its file, and how many there were.

    Raises:
        InputError, RefusedError: as `archive`.
    """
    with _held(name, settings) as study:
        gone = [one for one in study.replicates if chosen(one)]
        if not gone:
            raise InputError(f"{name} has no such replicate; `ponderay status {name}` lists them.")
        file = study.write(gone, to, with_checkpoints=True)
        study.remove(gone)
        return file, len(gone)


def restore(file: Path, settings: Settings) -> tuple[str, int, int]:
    """Brings an archive's replicates back into the study of their sweep; its name, how many came back, and of how many.

    What is there already, as it is in the archive, stays. Nothing is written over.

    Raises:
        InputError: if the file is no archive, or is damaged.
        RefusedError: if a driver runs the sweep, or one of the replicates is there.
    """
    with opened_archive(file) as opened:
        content = parse_study(opened.read(STUDY_FILE))
        if content is None:
            raise InputError(f"{file} must be an archive of `ponderay archive`, but its study cannot be read.")
        name = str(opened.about["sweep"])
        check_sweep_name(name)
        with _held(name, settings, is_there=False) as study:
            archived = content.study(name).replicates
            if lacking := {name_of(one) for one in archived if one not in study.replicates}:
                study.restore(opened, part_of(content, lacking, is_all=True))
        return name, len(lacking), len(archived)


def rename(old: str, new: str, settings: Settings) -> None:
    """Gives a study another name; the keys of its replicates stay, so a sweep of the new name goes on with them.

    Raises:
        InputError: if the old one has not run, or the new one is no name.
        RefusedError: if a driver runs it, or there is a study of the new name.
    """
    check_sweep_name(new)
    with _held(old, settings) as study, contextlib.closing(LeaseKeeper(study.leases, _passed_over)) as keeper:
        target = settings.replicates(new)
        is_cut_off = (target / FIRST_NAME).exists() and name_in_keys(settings, new) == name_in_keys(settings, old)
        journal, runs = next(target.glob(f"*/{JOURNAL}"), None), study.tracking and open_tracking(new, settings)
        if read_study_file(target) or runs or (journal and not is_cut_off):
            raise RefusedError(f"{new} is a study already; choose another name.")
        lease = keeper.lease(f"sweep {new}")
        if not lease.acquire_or_wait():
            raise RefusedError(f"{new} is run by {lease.holder()}; choose another name.")
        study.move(new, lease.token)


@dataclass(frozen=True)
class _Held:
    """A study that no other process writes."""

    name: str
    settings: Settings
    leases: Leases
    token: str
    tracking: "Tracking | None"
    content: StudyContent

    @property
    def folder(self) -> Path:
        return self.settings.replicates(self.name)

    @property
    def shared(self) -> SharedFolder | None:
        url = self.settings.shared(self.folder)
        return SharedFolder(url) if url else None

    @property
    def replicates(self) -> tuple[Replicate, ...]:
        return self.content.study(self.name).replicates

    def write(self, replicates: Sequence[Replicate], to: Path | None, with_checkpoints: bool) -> Path:
        """Writes an archive of these replicates."""
        stamp = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
        made = self.settings.runs / ARCHIVES / f"{path_part(self.name)}.{stamp}.{self.token[:4]}.zip"
        file = (file_at(to, "--to") if to else made).absolute()
        if file.exists():
            raise InputError(f"{file} is there already; name another file, for nothing is written over.")
        names, is_whole = {name_of(one) for one in replicates}, len(replicates) == len(self.content.replicates)
        about = {
            "sweep": self.name,
            "first_name": name_in_keys(self.settings, self.name),
            "order": list(self.content.conditions),
        }
        lines = lines_of(self.content.study_id, self.content.generation, part_of(self.content, names))
        curves, _ = split_curves(self._curves(), names)
        searches = self._searches() if is_whole else []
        with tempfile.TemporaryDirectory() as scratch:
            entries: list[tuple[str, bytes | Path]] = [(STUDY_FILE, lines), (CURVE_FILE, curves)]
            if searches:
                entries.append((SEARCHES, json.dumps(searches).encode()))
            keys = dict.fromkeys(one.key for one in replicates)  # equal draws of a search share a folder
            every = list(self.shared.sizes()) if self.shared else []
            files = (pair for key in keys for pair in self._files(key, every, Path(scratch), with_checkpoints))
            write_archive(file, about, (pair for part in (entries, files) for pair in part))
        return file

    def remove(self, gone: Sequence[Replicate]) -> None:
        """Removes replicates, which are in an archive, everywhere."""
        names = {name_of(one) for one in gone}
        left = [one for one in self.replicates if name_of(one) not in names]
        keys = {one.key for one in gone} - {one.key for one in left}
        for key in keys:
            check_is_no_link(self.folder / key)
            try:  # at once or not at all: what stayed would count as a result still
                shutil.rmtree((self.folder / key).rename(self.folder / f"{key}.leaving"), ignore_errors=True)
            except FileNotFoundError:
                pass
            except OSError as error:
                raise RefusedError(f"{self.folder / key} must be writable: {error.strerror}.") from None
        if self.shared:
            for file in self.shared.sizes():
                if file.partition("/")[0] in keys or file in (COPY, CURVE_COPY):  # the next driver puts new copies
                    self.shared.remove(file)
        if self.tracking:
            from orchestrator.tracking.bin import put_away

            put_away(self.tracking, self.name, gone, left, self.token)
        if not left:
            self._delete_searches()
            if self.shared:
                self.shared.remove(FIRST_NAME)
            for path in (CURVE_FILE, FIRST_NAME, self.settings.audit(self.name), STUDY_FILE):
                (self.folder / path).unlink(missing_ok=True)  # the audit's is absolute
            return
        write_durably(self.folder / CURVE_FILE, split_curves(self._curves(), names)[1])
        kept = {name_of(one) for one in left}
        StudyFile(self.folder, self.token, self.token, lambda content: part_of(content, kept, is_all=True)).close()

    def restore(self, opened: Archive, archived: StudyContent) -> None:
        """Brings back of an archive what is `archived`, of which nothing may be here."""
        if double := sorted(set(archived.replicates) & set(self.content.replicates)):
            raise RefusedError(f"{self.name} has {double[0]} already; `ponderay rename {self.name} NEW` makes room.")
        first = str(opened.about["first_name"])
        if self.content.replicates and first != name_in_keys(self.settings, self.name):
            raise RefusedError(f"{self.name} has replicates of another sweep; `ponderay rename {self.name} NEW` first.")
        for key in {one.key for one in archived.study(self.name).replicates}.intersection(opened.files):
            self._restore_files(key, opened)
        if first != self.name:
            self._write_first_name(self.name, first)
        replicates = {**self.content.replicates, **archived.replicates}
        conditions = {**archived.conditions, **self.content.conditions}
        order = dict.fromkeys([*opened.about["order"], *conditions])
        merged = replace(
            self.content,
            sweep={**archived.sweep, **self.content.sweep, "lease": self.token},
            origins={**self.content.origins, **archived.origins},
            conditions={name: conditions[name] for name in order if name in conditions},
            replicates=replicates,
            code={**self.content.code, **archived.code},
        )
        if self.tracking:
            from orchestrator.tracking.bin import take_out

            back, every = archived.study(self.name).replicates, merged.study(self.name).replicates
            take_out(self.tracking, self.name, back, every)
        if searches := opened.read(SEARCHES):
            from orchestrator.scheduler.search_store import load_searches

            load_searches(json.loads(searches), self.settings)
        curves, _ = split_curves(opened.read(CURVE_FILE), archived.replicates.keys())
        write_durably(self.folder / CURVE_FILE, self._curves() + curves)
        StudyFile(self.folder, self.token, self.token, lambda _: merged).close()

    def move(self, new: str, token: str) -> None:
        """Moves everything of the study to the name `new`, whose lease has this token."""
        target, first = self.settings.replicates(new), name_in_keys(self.settings, self.name)
        if searches := self._searches():
            from orchestrator.scheduler.search_store import load_searches

            named = [{**one, "name": f"{new}-{one['name'].rpartition('-')[2]}"} for one in searches]
            if not load_searches(named, self.settings):
                raise RefusedError(f"Optuna's database has another search called {new}; choose another name.")
        self._write_first_name(new, first)
        self._delete_searches()
        for path in list(self.folder.iterdir()):
            if path.is_dir() or path.name == CURVE_FILE:
                path.rename(target / path.name)
        if self.shared:
            root = SharedFolder(self.settings.storage)
            before, after = (self.settings.replicates(one).relative_to(self.settings.runs) for one in (self.name, new))
            for file in self.shared.sizes():
                if file not in (COPY, CURVE_COPY, FIRST_NAME):
                    root.move(f"{before.as_posix()}/{file}", f"{after.as_posix()}/{file}")
                else:
                    self.shared.remove(file)
        if self.tracking:
            from orchestrator.tracking.bin import rename as rename_runs

            rename_runs(self.tracking, self.name, new)
        if (audit := self.settings.audit(self.name)).is_file():
            audit.replace(self.settings.audit(new))
        (self.folder / FIRST_NAME).unlink(missing_ok=True)
        (self.folder / STUDY_FILE).replace(target / STUDY_FILE)
        StudyFile(target, self.token, token, lambda content: _named(content, new)).close()

    def _files(
        self, key: str, in_bucket: Sequence[str], scratch: Path, with_checkpoints: bool
    ) -> Iterator[tuple[str, bytes | Path]]:
        """The files of a replicate's folder by their names in an archive; those of a bucket are fetched one by one."""
        if self.shared:
            names = [name.partition("/")[2] for name in in_bucket if name.startswith(f"{key}/")]
        else:
            places = [*(self.folder / key).glob("*"), *(self.folder / key / ARTIFACTS).glob("*")]
            files = (path for path in places if path.is_file() and not path.is_symlink())
            names = [path.relative_to(self.folder / key).as_posix() for path in files]
        for name in sorted(names):
            is_left_out = CHECKPOINT.fullmatch(name) and not with_checkpoints
            if is_left_out or name.endswith(UNKEPT) or not (is_plain(name) or is_artifact(name)):
                continue
            place = self.folder / key / name
            if self.shared:
                place = scratch / "fetched"
                self.shared.fetch(f"{key}/{name}", place)
            yield f"replicates/{key}/{name}", place

    def _restore_files(self, key: str, opened: Archive) -> None:
        """Puts the folder of a replicate in its place; one that is not in the study is of an earlier, cut-off try."""
        make_folder(self.folder)
        with tempfile.TemporaryDirectory(prefix="restored.", dir=self.folder) as scratch:
            made = Path(scratch) / key
            opened.write_to(made, key)
            check_is_no_link(self.folder / key)
            journal = self.folder / key / JOURNAL
            if journal.exists() and journal.read_bytes() != opened.read(f"replicates/{key}/{JOURNAL}"):
                remedy = "`ponderay run` or `ponderay clean` says what becomes of it"
                raise RefusedError(f"{journal.parent} holds another run of this replicate; {remedy}.")
            if self.shared:
                for name in opened.files[key]:
                    self.shared.send(f"{key}/{name}", made / name)
            shutil.rmtree(self.folder / key, ignore_errors=True)
            replace_durably(made, self.folder / key)

    def _write_first_name(self, name: str, first: str) -> None:
        folder = self.settings.replicates(name)
        make_folder(folder)
        write_durably(folder / FIRST_NAME, first.encode())
        if url := self.settings.shared(folder):
            SharedFolder(url).write(FIRST_NAME, first.encode())

    def _curves(self) -> bytes:
        try:
            return (self.folder / CURVE_FILE).read_bytes()
        except OSError:
            return b""

    def _searches(self) -> list[dict[str, Any]]:
        """Empty, too, where Optuna's database is away: a study is no search then, or can be drawn again."""
        if not has_store(self.settings.search_store):  # which takes seconds to open
            return []
        from orchestrator.scheduler.search_store import dump_searches

        return dump_searches(self.name, self.settings)

    def _delete_searches(self) -> None:
        if has_store(self.settings.search_store):
            from orchestrator.scheduler.search_store import delete_searches

            delete_searches(self.name, self.settings)


@contextlib.contextmanager
def _held(name: str, settings: Settings, is_there: bool = True) -> Iterator[_Held]:
    """The study in the hands of this process, for as long as the block lasts.

    Args:
        is_there: whether it must have run.

    Raises:
        InputError: if it has not, or the store cannot be used.
        RefusedError: if a driver runs it, or its study file is not here.
    """
    if is_there:
        load_study(name, settings)
    is_local = store_kind(settings.tracking_uri) == "sqlite"
    if is_local:
        tracking = open_tracking(name, settings)
    else:
        from orchestrator.tracking.client import Tracking

        tracking = Tracking(settings)
    leases: Leases = FolderLeases(settings) if is_local or tracking is None else ServerLeases(tracking, settings)
    try:
        with contextlib.closing(LeaseKeeper(leases, _passed_over)) as keeper:
            lease = keeper.lease(f"sweep {name}")
            if not lease.acquire_or_wait():
                raise RefusedError(f"{name} is run by {lease.holder()}; wait for it or stop it.")
            folder = settings.replicates(name)
            for path in folder.glob(f"*/{IN_USE}"):
                if (work := FileLock(path)).is_held():
                    raise RefusedError(f"{name} is at work ({work.holder()}); wait for it or stop it.")
            if url := settings.shared(folder):
                bring_from_bucket(url, folder)
            found, known = read_study_file(folder), load_if_run(name, settings)
            is_newest = found is not None and found.sweep.get("lease") == lease.previous
            if not is_newest and (found or (known and known.replicates) or next(folder.glob(f"*/{JOURNAL}"), None)):
                raise RefusedError(f"{name} has no whole study file here; `ponderay run {name}` writes it.")
            file = StudyFile(folder, lease.previous, lease.token)
            file.close()
            if tracking and not is_local:
                tracking = open_tracking(name, settings)
            yield _Held(name, settings, leases, lease.token, tracking, file.content)
            if not keeper.holds_all():
                raise RefusedError(f"Another process has taken {name}; `ponderay status {name}` shows it.")
    except Exception as error:
        if not is_unavailable(error):
            raise
        reason = reason_of(error, settings.tracking_uri)
        raise InputError(f"MLflow does not do it ({reason}); type the same again when it does.") from None


def _passed_over(_: str) -> None:
    """A lease that cannot be kept is looked at when the work is done."""


def _named(content: StudyContent, name: str) -> StudyContent:
    declaration = json.loads(content.sweep.get("declaration", "{}")) | {"name": name}
    return replace(content, sweep={**content.sweep, "name": name, "declaration": json.dumps(declaration)})
