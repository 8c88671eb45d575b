"""Reads errors by test item out of the files that replicates have kept beside their metrics."""

from typing import Final

from orchestrator.environment.settings import Settings
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.over_items import check_sums
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
    complete = [replicate for replicate in study.replicates if replicate.state == "complete" and replicate.key]
    items: dict[tuple[str, int, str], tuple[Item, ...]] = {}
    for replicate in complete if len(complete) <= MOST_REPLICATES else ():
        with folder_of_replicate(settings, study.sweep, replicate.key).fetched_artifacts() as folder:
            for metric in replicate.metrics:
                path = folder / file_name(metric)
                if path.is_file():
                    key = replicate.condition, replicate.seed, metric
                    items[key] = read(path.read_text(encoding="utf-8"), str(path))
    whole = study.with_items(ItemErrors.of(items).joined(study.items))
    check_sums(whole)
    return whole
