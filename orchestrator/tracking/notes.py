"""Descriptions in MLflow, in Markdown with relative links: of a sweep's experiment, its conditions and replicates.

MLflow shows the first line of an experiment's description, and the rest when it is unfolded.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from orchestrator.results.study import Replicate
from orchestrator.tracking.mlflow_internals import PARENT
from orchestrator.tracking.pages import VIEWS, RunFilter, filter_page, run_page
from search_spaces.size import arguments

MAX_LENGTH: Final = 5000
"""The longest note that is stored; servers differ in how much they take."""

MAX_DESCRIPTION: Final = 1000
MAX_ERROR: Final = 200
"""The most characters of a description, and of an error, in a note."""

COMMANDS: Final = ("status", "pareto", "compare", "report", "run")
REWRITTEN: Final = "_Ponderay writes this description; your changes are lost when the sweep runs again._"
_MARKS: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!~|])")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escaped(text: str) -> str:
    """Markdown that shows `text` itself, in one line."""
    return _MARKS.sub(r"\\\1", " ".join(text.split()).translate(_ENTITIES))


def opening(description: str) -> str:
    """The first line of all of them: what the sweep is."""
    return escaped(description[:MAX_DESCRIPTION])


def of_experiment(name: str, description: str, experiment_id: str, filters: Sequence[RunFilter]) -> str:
    """What the sweep is, its views, the commands that answer, and the searches."""
    pages = [f"- {_link(view.name, view.page(experiment_id))}: {escaped(view.meaning)}" for view in VIEWS]
    argument = shlex.join(" ".join(word.split()) for word in arguments(name))  # the sweep as a command takes it
    commands = [f"    ponderay {command} {argument}" for command in COMMANDS]
    searches = [
        f"- {escaped(one.name)}: {escaped(one.meaning)}\n\n        {' '.join(one.text.split())}\n" for one in filters
    ]
    return _whole(
        [opening(description or name), "", "**Pages**", "", *pages, "", "**Commands**", ""],
        commands,
        ["", "**Searches** for the box above the table; fill in what stands in braces.", "", *searches],
    )


def of_condition(description: str, experiment_id: str, run_id: str, replicates: Sequence[Replicate]) -> str:
    """What it belongs to, and its replicates.

    Args:
        run_id: of the condition.
    """
    table = filter_page(experiment_id, f"tags.\"{PARENT}\" = '{run_id}'")
    listed = []
    for one in sorted(replicates, key=lambda one: one.seed):
        name = f"seed {one.seed}"
        shown = _link(name, run_page(experiment_id, one.run_id)) if one.run_id else name
        error = f": {escaped(one.error[:MAX_ERROR])}" if one.error else ""
        listed.append(f"- {shown}, {one.state}{error}")
    return _whole([opening(description), "", _link("Its replicates as a table", table), ""], listed)


def of_replicate(seed: int, condition: str, sweep: str, experiment_id: str, condition_run: str) -> str:
    """Which condition it is of."""
    parent = _link(condition, run_page(experiment_id, condition_run))
    return f"Seed {seed} of condition {parent} of {escaped(sweep)}"


def _link(text: str, page: str) -> str:
    return f"[{escaped(text)}]({page})"


def _whole(*parts: Iterable[str]) -> str:
    """Lines up to MAX_LENGTH, and the remark that closes them."""
    lines: list[str] = []
    room = MAX_LENGTH - len(REWRITTEN) - 20
    for line in (line for part in parts for line in part):
        if room < len(line) + 1:
            lines.append("- and more")
            break
        lines.append(line)
        room -= len(line) + 1
    return "\n".join([*lines, "", REWRITTEN])
