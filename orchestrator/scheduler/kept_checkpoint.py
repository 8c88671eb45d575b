"""Where the checkpoint of a complete replicate is, for whoever wants to use the trained model."""

from pathlib import Path

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.journal.packed_folder import kept_open
from orchestrator.journal.steps import last_complete
from orchestrator.results.named import condition_named
from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler.task import folder_of_replicate
from search_spaces.known_names import known_names
from trainables.errors import InputError


def kept_checkpoint(study: Study, condition: str, seed: int, evaluation: str | None, settings: Settings) -> Path:
    """The best checkpoint of a replicate, whole, in its local folder; fetched where it is in a bucket, and unpacked.

    Args:
        evaluation: default: the first of those that choose a checkpoint; where none does, the last checkpoint.

    Raises:
        InputError: if there is no such replicate or evaluation, it is not complete, or the checkpoint is gone.
    """
    condition = condition_named(study, condition)
    replicate = _complete(study, condition, seed)
    folder = folder_of_replicate(settings, study.sweep, replicate.key)
    place = folder.shared or folder.path
    if not folder.records():
        raise InputError(f"{place} has no journal; name the PONDERAY_RUNS or PONDERAY_STORAGE that the sweep ran with.")
    found = _best(folder, condition, evaluation)
    if found is None:
        raise InputError(f"The checkpoint of {condition!r} with seed {seed} in {place} is gone or damaged.")
    return kept_open(found)


def _complete(study: Study, condition: str, seed: int) -> Replicate:
    by_seed = {replicate.seed: replicate for replicate in study.of(condition)}
    if seed not in by_seed:
        raise InputError(f"{condition!r} has no seed {seed}; there are {', '.join(map(str, by_seed))}.")
    if by_seed[seed].state != "complete":
        complete = ", ".join(str(one.seed) for one in by_seed.values() if one.state == "complete") or "none"
        raise InputError(
            f"The replicate must be complete, but {condition!r} with seed {seed} is {by_seed[seed].state}; complete "
            f"are the seeds {complete}."
        )
    return by_seed[seed]


def _best(folder: ReplicateFolder, condition: str, evaluation: str | None) -> Path | None:
    """What the replicate's record of its end names as the best; its newest checkpoint where it names none."""
    final = last_complete(folder.records())
    if not final:
        raise InputError(
            f"The journal of {condition!r} in {folder.shared or folder.path} lacks its end, which names the best "
            "checkpoint; run the sweep again, which adds it where no other lines are missing."
        )
    products: dict[str, str] = final.get("products", {})
    if evaluation is not None and evaluation not in products:
        known = known_names(products, evaluation)
        raise InputError(f"{condition!r} has no evaluation {evaluation!r}; there are {known}.")
    if not products:
        return folder.newest()
    return folder.product(products[evaluation] if evaluation is not None else next(iter(products.values())))
