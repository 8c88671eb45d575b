"""The places of files in the store of a runs folder that was moved or copied: MLflow records them as absolute paths."""

import contextlib
import sqlite3

from orchestrator.environment.settings import Settings
from orchestrator.tracking.mlflow_internals import EXPERIMENT_PLACES, MOVE_EXPERIMENT, MOVE_RUNS
from orchestrator.tracking.sqlite_reader import SCHEME, opened
from orchestrator.tracking.sqlite_runs import local_place
from orchestrator.tracking.store import sqlite_file
from search_spaces.names import path_part
from trainables.errors import InputError


def follow_folder(settings: Settings) -> None:
    """Has the files of every sweep lie in the runs folder as it is named now, where its own store has another place.

    Places that a user chose stay as they are. A store that cannot be written stays as it is, too.
    """
    uri, artifacts = settings.tracking_uri, settings.artifacts
    if not uri.startswith(SCHEME) or "?" in uri or sqlite_file(uri).parent != settings.runs:
        return
    with contextlib.suppress(sqlite3.Error, InputError), opened(sqlite_file(uri), "rw") as database:
        for experiment_id, name, before in database.execute(EXPERIMENT_PLACES).fetchall():
            place, now = local_place(before), artifacts / path_part(name)
            if place is None or place == now or place.parts[-2:] != now.parts[-2:]:
                continue
            if place.parent.exists() and artifacts.exists() and place.parent.samefile(artifacts):
                continue  # the same folder under another path
            database.execute("BEGIN IMMEDIATE")
            database.execute(MOVE_RUNS, (now.as_uri(), len(before) + 1, experiment_id, len(before) + 1, f"{before}/"))
            database.execute(MOVE_EXPERIMENT, (now.as_uri(), experiment_id))
            database.execute("COMMIT")
