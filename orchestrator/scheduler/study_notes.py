"""What a driver notes in the study file: what earlier drivers left, then how each replicate goes on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any, Final

from orchestrator.journal.curve_file import CurveFile
from orchestrator.journal.study_file import DeposedError, StudyFile, name_of, standing, to_record
from orchestrator.journal.summary import JournalSummary
from orchestrator.results.study import Origin, Replicate, Study
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.names import param_texts
from orchestrator.tracking.study_copy import StudyCopy
from search_spaces.settings import setting_texts
from search_spaces.sweep import Condition
from trainables.config import Config, content_hash, flatten

NOTHING: Final = (False, False, -1)
"""The progress of a replicate of which there is no record."""


class StudyNotes:
    """The study file of a sweep, in the words of its driver.

    Args:
        file: which this driver has taken over.
        lease: the token of the sweep's lease.
        tell: told once, where the file cannot be written any more.
        lose: told why, where another driver has taken the file over.
        copies: for readers without this folder.

    Attributes:
        recorded: the study as earlier drivers left it in the file.
    """

    def __init__(
        self,
        file: StudyFile,
        factory: TaskFactory,
        lease: str,
        tell: Callable[[str], None],
        lose: Callable[[str], None],
        copies: Sequence[StudyCopy] = (),
    ) -> None:
        self._file, self._factory, self._lease, self._tell, self._lose = file, factory, lease, tell, lose
        self._copies = copies
        self.recorded = file.content.study(factory.sweep.name)
        self._conditions: set[str] = set()
        self._is_announced = False
        self._curves = CurveFile(factory.settings.replicates(factory.sweep.name))

    def note_known(self, known: Study, mirrored: Sequence[Replicate]) -> None:
        """Gives the file what it lacks of earlier drivers: it is new, or lost its last lines with the power.

        Before anything is taken in, which notes what the journals say by now; also for a sweep that is then refused,
        for with the lease of this driver the file counts again.

        Args:
            mirrored: replicates as MLflow has them.
        """
        recorded = {name_of(replicate): replicate for replicate in self.recorded.replicates}
        for replicate in known.replicates:
            if recorded.get(name_of(replicate)) is not replicate:
                condition = replicate.condition
                time_ms = known.updated_ms.get(condition, 0)
                settings, config = (by.get(condition, {}) for by in (known.settings, known.configs))
                self.note("condition", condition, {"settings": settings, "config": config}, time_ms)
                self._note_replicate(replicate, known.origins.get(replicate.key), time_ms)
        there = {name_of(replicate): standing(replicate) for replicate in mirrored}
        for condition in known.conditions:
            of = {str(replicate.seed): there.get(name_of(replicate), "") for replicate in known.of(condition)}
            self.note("mirror", condition, of)
        self.note("mirror", "", {})  # so that a file without other such lines is none of an earlier version
        self.note("sweep", self._factory.sweep.name, {"lease": self._lease})

    def note_state(self, condition: Condition, replicate: Replicate, origin: Origin, known: Study) -> None:
        """Notes how a replicate stands; its condition's config stays as it was known first, as in MLflow."""
        if condition.name not in self._conditions:
            self._conditions.add(condition.name)
            config: Config = self._factory.sweep.config(condition, self._factory.first_seed)
            texts = {**param_texts(flatten(config)), **known.configs.get(condition.name, {})}
            self.note("condition", condition.name, {"settings": setting_texts(condition.settings), "config": texts})
        self._note_replicate(replicate, origin)

    def note_curves(self, replicate: Replicate, journal: JournalSummary) -> None:
        """Keeps the curves of a replicate that has ended; the journal, which has them too, has no more use here."""
        self._curves.put(replicate, journal)
        journal.histories.clear()

    def note_mirrored(self, condition: str, replicates: Sequence[Replicate]) -> None:
        """Notes how replicates of a condition stand in MLflow from now on."""
        self.note("mirror", condition, {str(replicate.seed): standing(replicate) for replicate in replicates})

    def note(self, kind: str, name: str, values: Mapping[str, Any], time_ms: int = 0) -> None:
        """Puts values into the file; a driver goes on where it cannot be written, and stops where it is another's."""
        try:
            self._file.put(kind, name, values, time_ms)
        except DeposedError as error:
            self._lose(f"{error}.")
        for copy in self._copies:
            copy.changed()
        if self._file.fault and not self._is_announced:
            self._is_announced = True
            self._tell(f"{self._file.fault}. Commands read MLflow until the next `run` writes the study file again.")

    def put_copy(self) -> None:
        """Puts the last copies, behind all that waits to be written."""
        for copy in self._copies:
            copy.put_now()

    def close(self) -> None:
        """Closes the file, all of it on disk."""
        self._file.close()

    def _note_replicate(self, replicate: Replicate, origin: Origin | None, time_ms: int = 0) -> None:
        record = to_record(replicate) | {"condition": replicate.condition, "seed": replicate.seed}
        if origin:
            record["origin"] = content_hash(*astuple(origin))[:12]
            self.note("origin", record["origin"], asdict(origin), time_ms)
        if not replicate.run_id:  # MLflow's, which is known once its run is opened, and then stays
            del record["run_id"]
        self.note("replicate", name_of(replicate), record, time_ms)


def joined(first: Study, second: Study) -> Study:
    """The conditions of the first study and then the others, each replicate as it has come further."""
    furthest = {name_of(replicate): replicate for replicate in first.replicates}
    for replicate in second.replicates:
        if (known := furthest.get(name_of(replicate))) is None or progress(known) < progress(replicate):
            furthest[name_of(replicate)] = replicate
    order = {name: number for number, name in enumerate(dict.fromkeys((*first.conditions, *second.conditions)))}
    return Study(
        first.sweep,
        tuple(sorted(furthest.values(), key=lambda replicate: (order[replicate.condition], replicate.seed))),
        {**second.updated_ms, **first.updated_ms},
        {**second.settings, **first.settings},
        {**second.configs, **first.configs},
        {**second.origins, **first.origins},
    )


def progress(replicate: Replicate) -> tuple[bool, bool, int]:
    """How far a record of a replicate has come; of two records of the same replicate the further is newer."""
    is_complete = replicate.state == "complete"
    return is_complete, is_complete or replicate.state in ("failed", "pruned"), len(replicate.evaluations)
