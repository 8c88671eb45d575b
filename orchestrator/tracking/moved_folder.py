"""The places of files in the store of a runs folder that was moved or copied: MLflow records them as absolute paths.

MLflow's client gives a run or an experiment its place when it is made, and has no call that changes it. So this is the
one file that writes into tables of MLflow: the two columns of places.
"""

import contextlib
import sqlite3
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from orchestrator.environment.settings import Settings
from orchestrator.tracking.damage import opened
from orchestrator.tracking.mlflow_internals import EXPERIMENT_PLACES, MOVE_EXPERIMENT, MOVE_RUNS
from orchestrator.tracking.store import sqlite_file, store_kind
from search_spaces.names import path_part
from trainables.errors import InputError

WAIT_S: Final = 2.0
"""How long a lock of another process is waited for."""


def follow_folder(settings: Settings) -> None:
    """Has the files of every sweep lie in the runs folder as it is named now, where its own store has another place.

    Places that a user chose stay as they are. A store that cannot be written stays as it is, too.
    """
    uri, artifacts = settings.tracking_uri, settings.artifacts
    if store_kind(uri) != "sqlite" or "?" in uri or sqlite_file(uri).parent != settings.runs:
        return
    with contextlib.suppress(sqlite3.Error, InputError), opened(sqlite_file(uri), "rw", WAIT_S) as database:
        for experiment_id, name, before in database.execute(EXPERIMENT_PLACES).fetchall():
            if (place := local_place(before)) is None or place.parent.name != artifacts.name:
                continue
            now = artifacts / place.name
            if place == now or not (place.name == path_part(name) or now.is_dir()):  # renamed, it keeps its place
                continue
            if place.parent.exists() and artifacts.exists() and place.parent.samefile(artifacts):
                continue  # the same folder under another path
            database.execute("BEGIN IMMEDIATE")
            database.execute(MOVE_RUNS, (now.as_uri(), len(before) + 1, experiment_id, len(before) + 1, f"{before}/"))
            database.execute(MOVE_EXPERIMENT, (now.as_uri(), experiment_id))
            database.execute("COMMIT")


def local_place(uri: str) -> Path | None:
    """The folder of this machine that a place of files names; None where it names another one."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and not parts.netloc:
        return Path(url2pathname(parts.path))
    return Path(url2pathname(uri)) if uri.startswith("/") else None  # MLflow decodes the %20 of both
