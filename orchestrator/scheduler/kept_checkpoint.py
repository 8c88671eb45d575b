"""What complete replicates have kept, for whoever wants to use it: the best checkpoint, and errors by test item."""

from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from orchestrator.environment.settings import Settings
from orchestrator.journal.file_names import step_of
from orchestrator.journal.packed_folder import kept_open
from orchestrator.journal.summary import last_complete
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.lookup import find_condition
from orchestrator.results.over_items import check_sums
from orchestrator.results.study import Study
from orchestrator.scheduler.task import folder_of_replicate
from search_spaces.known_names import known_names
from trainables.errors import InputError
from trainables.item_errors import Item, file_name, read


class KeptCheckpoint(NamedTuple):
    """A checkpoint of a replicate.

    Attributes:
        path: whole, in the replicate's local folder.
        metric: by which it is the best; empty where it is the last, or was kept by an earlier version of Ponderay.
    """

    path: Path
    step: int
    metric: str


def kept_checkpoint(
    study: Study, condition: str, seed: int, evaluation: str | None, settings: Settings
) -> KeptCheckpoint:
    """The best checkpoint of a replicate, whole, in its local folder; fetched where it is in a bucket, and unpacked.

    Args:
        evaluation: default: the first of those that choose a checkpoint; where none does, the last checkpoint.

    Raises:
        InputError: if there is no such replicate or evaluation, it is not complete, or the checkpoint is gone.
    """
    condition = find_condition(study, condition)
    by_seed = {replicate.seed: replicate for replicate in study.of(condition)}
    if seed not in by_seed:
        raise InputError(f"{condition!r} has no seed {seed}; there are {', '.join(map(str, by_seed))}.")
    replicate = by_seed[seed]
    if replicate.state != "complete":
        complete = ", ".join(str(other.seed) for other in by_seed.values() if other.state == "complete") or "none"
        raise InputError(
            f"The replicate must be complete, but {condition!r} with seed {seed} is {by_seed[seed].state}; complete "
            f"are the seeds {complete}."
        )
    folder = folder_of_replicate(settings, study.sweep, replicate.key)
    place = folder.shared or folder.path
    records = folder.records()
    if not records:
        raise InputError(f"{place} has no journal; name the PONDERAY_RUNS or PONDERAY_STORAGE that the sweep ran with.")
    final = last_complete(records)
    if not final:
        raise InputError(
            f"The journal of {condition!r} in {place} lacks its end, which names the best "
            "checkpoint; run the sweep again, which adds it where no other lines are missing."
        )
    if not any(record.get("kept", True) for record in records if record["kind"] == "metrics"):
        raise InputError(
            f"{condition!r} with seed {seed} has no checkpoint, because none was reported; give one to "
            "`trial.report(..., checkpoint=PATH)`, and run it anew."
        )
    products: dict[str, str] = final.get("products", {})
    if evaluation not in products and len(products) < 2 and evaluation in study.evaluations():
        evaluation = next(iter(products), None)  # the one that was chosen, or the last, is what all evaluations tested
    if evaluation is not None and evaluation not in products:
        known = known_names(products, evaluation)
        raise InputError(f"{condition!r} has no evaluation {evaluation!r}; there are {known}.")
    name = evaluation if evaluation is not None else next(iter(products), "")
    best = folder.product(products[name]) if products else folder.newest()
    if best is None:
        raise InputError(
            f"The checkpoint of {condition!r} with seed {seed} in {place} is gone or damaged; an archive made by "
            "`ponderay archive --without-checkpoints` has none."
        )
    return KeptCheckpoint(kept_open(best), step_of(best.name), final.get("selected_by", {}).get(name, ""))


MOST_REPLICATES: Final = 1000
"""The largest study of which items are read: each replicate has files of its own."""


def with_items(study: Study, settings: Settings) -> Study:
    """The study with the errors by item of its complete replicates, as far as they lie here, beside those it has.

    Raises:
        InputError: if a file is none of items, or does not add up to its metric.
    """
    complete = [replicate for replicate in study.own("complete") if replicate.key]
    items: dict[tuple[str, int, str], tuple[Item, ...]] = {}
    for replicate in complete if len(complete) <= MOST_REPLICATES else ():
        with folder_of_replicate(settings, study.sweep, replicate.key).fetched_artifacts() as folder:
            for metric in replicate.metrics:
                path = folder / file_name(metric)
                if path.is_file():
                    key = replicate.condition, replicate.seed, metric
                    items[key] = read(path.read_text(encoding="utf-8"), str(path))
    whole = replace(study, items=ItemErrors.of(items).joined(study.items))
    check_sums(whole)
    return whole
