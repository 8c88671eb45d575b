"""Reads errors by test item out of the files that replicates have kept beside their metrics."""

from typing import Final

from orchestrator.environment.settings import Settings
from orchestrator.results.item_errors import ItemErrors, check_sums
from orchestrator.results.study import Study
from orchestrator.scheduler.task import folder_of_replicate
from trainables.item_errors import Item, file_name, read

MOST_REPLICATES: Final = 1000
"""Of a larger study no items are read: each replicate has files of its own."""


def with_items(study: Study, settings: Settings) -> Study:
    """The study with the errors by item of its complete replicates, as far as they lie here, beside those it has.

    Raises:
        InputError: if a file is none of items, or does not add up to its metric.
    """
    replicates = [one for one in study.replicates if one.state == "complete" and one.key]
    found: dict[tuple[str, int, str], tuple[Item, ...]] = {}
    for one in replicates if len(replicates) <= MOST_REPLICATES else ():
        with folder_of_replicate(settings, study.sweep, one.key).fetched_artifacts() as folder:
            for metric in one.metrics:
                path = folder / file_name(metric)
                if path.is_file():
                    found[one.condition, one.seed, metric] = read(path.read_text(encoding="utf-8"), str(path))
    whole = study.with_items(ItemErrors.of(found).joined(study.items))
    check_sums(whole)
    return whole
