"""What the searches of a sweep have left in Optuna's database, for those who only read it."""

import re
from collections.abc import Mapping
from typing import Final

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from sqlalchemy.exc import SQLAlchemyError

from orchestrator.environment.settings import Settings
from orchestrator.tracking.store import address, has_store, made_once, unusable
from trainables.errors import InputError

CONDITION: Final = "ponderay.condition"
"""Attribute of a trial: the name of the condition that a pruned search has decided on."""

DECISION: Final = "ponderay.decision"
"""Attribute of a trial: that decision, as `pruning.decision_on` gives it."""

UNREADABLE: Final = (StorageInternalError, SQLAlchemyError, ImportError, ValueError, RuntimeError)
"""What Optuna raises at a database that is away, or is none of its own."""


def studies(sweep: str, settings: Settings) -> list[optuna.Study]:
    """The studies of all searches called `sweep`; none where there is no database.

    Raises:
        UNREADABLE: if the database cannot be read.
    """
    if not has_store(settings.search_store):
        return []
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    uri = address(settings.search_store)
    with made_once(uri, settings.runs / "optuna.lock"):
        storage = RDBStorage(uri)
    pattern = re.compile(re.escape(sweep) + "-[0-9a-f]{16}")
    names = [name for name in optuna.get_all_study_names(storage) if pattern.fullmatch(name)]
    return [optuna.load_study(study_name=name, storage=storage) for name in names]


def decisions(sweep: str, settings: Settings) -> Mapping[str, str]:
    """What a pruned search has decided so far, by the condition's name.

    Raises:
        InputError: if the database cannot be read.
    """
    try:
        found = [trial.user_attrs for study in studies(sweep, settings) for trial in study.get_trials(deepcopy=False)]
    except UNREADABLE as error:
        cause = error.__cause__ or error
        raise InputError(unusable(settings.search_store, cause, "Optuna's database")) from None
    return {known[CONDITION]: known[DECISION] for known in found if DECISION in known}
