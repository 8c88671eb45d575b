"""Keys, step metrics and evaluations of one replicate of every condition of every sweep's small size."""

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from orchestrator.environment.settings import read_settings
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.execute import execute
from orchestrator.worker.work import Work
from search_spaces.find import find_sweep, sweep_functions
from search_spaces.sweep import Condition
from tests.golden import fixed_words
from tests.golden.command import write
from trainables.errors import InputError

KEYS_ONLY: Final = re.compile(
    r"act\.halting_text(_laptop)?|asr\.(equal_cost_laptop|model3_converged)"
    r"|asr\.(ablation|model1|model2|model3|table2)_mini_librispeech"
    r"|asr\.(ar_corpus|budget|controller_bias|deterministic|equal_cost|lambda_grid|search|search_learned)_timit"
)
"""Sweeps that are not trained unless they are named: the first two take too long, the others are like another one."""


def write_training(folder: Path, names: list[str]) -> None:
    """One file for each sweep, and `skipped.json`; equal work of several sweeps is done in the first of them alone."""
    done: dict[str, str] = {}
    skipped = {}
    for name in names or sweep_functions():
        began = time.process_time()
        try:
            found = dict(_conditions(name, done, is_trained=bool(names) or not KEYS_ONLY.fullmatch(name)))
        except InputError as error:  # the data are not here
            skipped[name] = fixed_words.of_text(str(error))
        else:
            write(folder / f"{name}.json", fixed_words.in_lines(fixed_words.of("", found)))
        print(f"{name}: {time.process_time() - began:.1f} s", file=sys.stderr, flush=True)
    write(folder / "skipped.json", fixed_words.in_lines(skipped))


def _conditions(name: str, done: dict[str, str], is_trained: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each condition, of a search for its base alone, what its replicate and its prerequisites reported."""
    sweep = find_sweep(name, smoke=True)
    factory, seed = TaskFactory(sweep, read_settings(), num_gpus=0), sweep.seeds[0]
    for condition in sweep.conditions or [Condition("base")]:
        needed = factory.prerequisites(condition, seed)
        found: dict[str, Any] = {}
        for work in (*(task.work for task in needed.values()), factory.replicate(condition, seed, needed).work):
            content = json.dumps([work.trainable, work.config, [*map(str, work.products.values())]], sort_keys=True)
            found[work.label] = {"key": work.key}
            if content in done:
                found[work.label]["equals"] = done[content]
            elif is_trained:
                done[content] = f"{work.label} of {name}, {condition.name}"
                found[work.label] |= _reports(work)
        yield condition.name, found


def _reports(work: Work) -> dict[str, Any]:
    """Metrics by step and by evaluation, all digits in one line; and how it ended."""
    records: list[dict[str, Any]] = []
    execute(work, records.append)
    metrics: dict[str, str] = {}
    for record in records:
        if record["kind"] in ("metrics", "evaluation"):
            kept = sorted(one for one in record["metrics"].items() if not fixed_words.LEFT_OUT.fullmatch(one[0]))
            text = ", ".join(f"{name}: {value!r}" for name, value in kept)
            metrics[f"{record.get('id', 'training')}, step {record['step']}"] = text
    return {"metrics": metrics, "state": records[-1]["state"], "error": records[-1].get("error", "")}
