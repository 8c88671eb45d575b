"""Studies of runs that others have made, kept in the runs folder so that every command answers of them."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from orchestrator.console.errors import RefusedError
from orchestrator.environment.settings import Settings
from orchestrator.journal.study_file import StudyFile, name_of, read_study_file, to_record
from orchestrator.results.study import Study
from orchestrator.tracking.declaration import sweep_of
from orchestrator.tracking.lease import StoreLease
from orchestrator.tracking.lease_holder import FolderLeases
from orchestrator.tracking.store import store_kind
from search_spaces.names import CONDITION_LENGTH, check_sweep_name, condition_name_of
from trainables.config import content_hash
from trainables.errors import InputError

TRAINABLE = "imported"
"""In place of the trainable of a study that nothing here can go on with."""


def keep_imported(study: Study, settings: Settings) -> Mapping[str, str]:
    """Writes the study file of a study with a question; an earlier import of the same name is replaced.

    Conditions are called as our own may be: `optim/lr=0.1` is `optim-lr=0.1`, and of two that then were alike the later
    one ends in digits of a hash. What each is called is returned, by its name in the study.

    Raises:
        InputError: if the name is that of a sweep which ran here, an objective's name is none that a metric may have,
            or the tracking store is a server.
        RefusedError: if a driver has the name right now.
    """
    name, question = study.sweep, study.question
    assert question is not None
    check_sweep_name(name)
    if store_kind(settings.tracking_uri) != "sqlite":
        raise InputError("An import is kept in a runs folder, so PONDERAY_TRACKING_URI must not name a server.")
    folder = settings.replicates(name)
    known = read_study_file(folder)
    is_ours = known is not None and json.loads(known.sweep.get("declaration", "{}")).get("trainable") != TRAINABLE
    if is_ours or next(folder.glob("*/journal.jsonl"), None):
        raise InputError(f"{name} is a sweep that ran here; give the import another name by --name.")
    names: dict[str, str] = {}
    taken = set[str]()
    for condition in study.conditions:
        if (plain := condition_name_of(condition)) in taken:
            plain = f"{condition_name_of(condition, CONDITION_LENGTH - 9)}-{content_hash(condition)[:8]}"
        names[condition] = plain
        taken.add(plain)
    declaration: dict[str, Any] = {
        "name": name,
        "description": question.description,
        "trainable": TRAINABLE,
        "declared_at": "",
        "seeds": question.seeds,
        "pairing": "seeds" if question.test == "paired_permutation" else "none",
        "non_inferiority": None,
        "claims": "",
        "reference": names.get(question.reference),
        "objectives": [asdict(objective) for objective in question.objectives],
        "metrics": {},
    }
    sweep_of(json.dumps(declaration), list(names.values()))  # what no command could read is refused before it is kept
    lease = StoreLease(FolderLeases(settings), f"sweep {name}")
    if not lease.acquire_or_wait():
        raise RefusedError(f"{name} is run by {lease.holder()}; wait for it or stop it.")
    try:
        file = StudyFile(folder, "", lease.token)
        file.put("sweep", name, {"lease": lease.token, "declaration": json.dumps(declaration)})
        for condition, plain in names.items():
            file.put("condition", plain, {"settings": {}, "config": dict(study.configs.get(condition, {}))})
        for replicate in study.replicates:
            key = content_hash(name, replicate.condition, replicate.seed)[:16]
            kept = replace(replicate, key=key, condition=names[replicate.condition])
            file.put("replicate", name_of(kept), to_record(kept) | {"condition": kept.condition, "seed": kept.seed})
        file.close()
    finally:
        lease.release()
    if file.fault:
        raise InputError(f"{file.fault}.")
    return names
