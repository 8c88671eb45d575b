"""Views of a sweep's runs, saved in MLflow: chosen columns, order and charts under a name in its menu "Views".

MLflow keeps a saved view in a tag of the experiment: a JSON object with name, times and state, and the state as JSON in
a string. What a state may hold is what its interface writes (version 3.17).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.tracking.run_filters import CONDITIONS, FAILED, REPLICATES
from orchestrator.tracking.run_links import BY_CONDITION, view_page
from search_spaces.sweep import Sweep
from trainables.config import flatten

TAG_PREFIX: Final = "mlflow.sharedViewState."
MAX_LENGTH: Final = 5000
"""Of an experiment's tag; servers differ in how much they take."""

NUM_SHOWN: Final = 6
"""At most so many objectives, and so many settings, in a table or chart."""

NUM_LOOKED_AT: Final = 100

PIXELS_PER_LETTER: Final = 8
PIXELS_BESIDE: Final = 36
"""Of a column's header: MLflow's own width cuts off `.low` and `.high`."""

PIXELS_OF_ERROR: Final = 480

Json = dict[str, Any]


@dataclass(frozen=True)
class Ranked:
    """A metric, as stored in MLflow, with its direction."""

    metric: str
    is_smaller_better: bool


@dataclass(frozen=True)
class RunView:
    """One saved view.

    Attributes:
        key: names it in links.
        is_charts: whether it is meant as charts; else as a table.
    """

    key: str
    name: str
    meaning: str
    is_charts: bool = False

    @property
    def tag(self) -> str:
        """Of the experiment; it holds the view."""
        return TAG_PREFIX + self.key

    def page(self, experiment_id: str) -> str:
        """Its address."""
        return view_page(experiment_id, self.key, self.is_charts)


VIEWS: Final = (
    RunView(
        "ponderay-conditions",
        "Conditions: means and intervals",
        "mean, 95 % interval and n of the objectives, best first",
    ),
    RunView(
        "ponderay-front",
        "Conditions: error against cost",
        "the objectives' means against each other, and with the settings in parallel coordinates",
        is_charts=True,
    ),
    RunView("ponderay-curves", "Conditions: learning curves", "means over replicates by step", is_charts=True),
    RunView("ponderay-replicates", "Replicates", "every seed of every condition"),
    RunView("ponderay-failures", "Failures", "replicates that failed, with the error"),
)


def changed_settings(sweep: Sweep) -> list[str]:
    """Config paths that conditions set, named as the parameters of runs; of many conditions the first are looked at."""
    changed = dict(sweep.search.space) if sweep.search else {}
    for condition in sweep.conditions[:NUM_LOOKED_AT]:
        changed |= dict(condition.values)
    return [
        leaf for leaf in flatten(sweep.base) if any(leaf == path or leaf.startswith(f"{path}.") for path in changed)
    ]


def view_tags(objectives: Sequence[Ranked], settings: Sequence[str]) -> dict[str, str]:
    """VIEWS as tags of a sweep's experiment; one that is too large for a tag is left out.

    Args:
        objectives: the first one ranks.
        settings: config paths in which the conditions differ.
    """
    first, metrics = objectives[0], [one.metric for one in objectives]
    of_replicates = [*_tags("condition", "seed"), *_metrics(*metrics[:NUM_SHOWN]), *_tags("host")]
    by_condition: Json = {"orderByKey": BY_CONDITION, "orderByAsc": True}
    states = (
        _table(CONDITIONS, [*_summaries(metrics), *_params(settings)]) | _best_first(first),
        _charts(first) | _front(metrics, settings),
        _charts(first) | {"chartsSearchFilter": "^mean of "},
        _table(REPLICATES, of_replicates) | _best_first(first),
        _table(FAILED, _tags("condition", "seed", "error", "lost", "tries", "host", "code_version")) | by_condition,
    )
    tags = {view.tag: _stored(view.name, state) for view, state in zip(VIEWS, states, strict=True)}
    return {name: value for name, value in tags.items() if len(value) <= MAX_LENGTH}


def _stored(name: str, state: Json) -> str:
    return json.dumps({"name": name, "createdAt": 1, "updatedAt": 1, "state": json.dumps(state)})


def _table(text: str, columns: Sequence[str]) -> Json:
    widths = {column: PIXELS_BESIDE + PIXELS_PER_LETTER * len(column.partition(".")[2]) for column in columns}
    widths |= dict.fromkeys(_tags("error"), PIXELS_OF_ERROR)
    return {"searchFilter": text, "selectedColumns": columns, "columnOrder": columns, "columnWidths": widths}


def _charts(first: Ranked) -> Json:
    return {"searchFilter": CONDITIONS, "runsHiddenMode": "SHOW_ALL"} | _best_first(first)


def _best_first(first: Ranked) -> Json:
    return {"orderByKey": f"metrics.`{first.metric}`", "orderByAsc": first.is_smaller_better}


def _front(metrics: Sequence[str], settings: Sequence[str]) -> Json:
    """A section of its own before MLflow's charts of single metrics; with a scatter where there are two objectives."""
    charts = []
    if len(metrics) > 1:
        axes = {"yaxis": {"key": metrics[0], "type": "METRIC"}, "xaxis": {"key": metrics[1], "type": "METRIC"}}
        charts.append(_chart("ponderay-scatter", {"type": "SCATTER"} | axes))
    chosen = {"selectedParams": settings[:NUM_SHOWN], "selectedMetrics": metrics[:NUM_SHOWN], "showAllRuns": True}
    charts.append(_chart("ponderay-parallel", {"type": "PARALLEL"} | chosen))
    section = {"uuid": "ponderay-front", "name": "Objectives", "display": True, "isReordered": True}
    return {"compareRunCharts": charts, "compareRunSections": [section], "isAccordionReordered": True}


def _chart(uuid: str, settings: Json) -> Json:
    placed = {"uuid": uuid, "metricSectionId": "ponderay-front", "deleted": False, "isGenerated": False}
    return placed | {"runsCountToCompare": 100} | settings


def _summaries(metrics: Sequence[str]) -> list[str]:
    bounds = [name + end for name in metrics[:NUM_SHOWN] for end in ("", ".low", ".high")]
    return _metrics(*bounds, f"{metrics[0]}.n")


def _metrics(*names: str) -> list[str]:
    return [f"metrics.`{name}`" for name in names]


def _params(paths: Sequence[str]) -> list[str]:
    return [f"params.`{path}`" for path in paths[:NUM_SHOWN]]


def _tags(*names: str) -> list[str]:
    return [f"tags.`ponderay.{name}`" for name in names]
