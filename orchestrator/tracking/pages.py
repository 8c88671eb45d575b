"""What MLflow's pages show of a sweep: searches, links, and views saved in its menu "Views".

MLflow keeps a saved view in a tag of the experiment: a JSON object with name, times and state, and the state as JSON in
a string. What a state may hold is what its interface writes (version 3.17).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from orchestrator.tracking import names
from orchestrator.tracking.mlflow_internals import VIEW_PREFIX
from search_spaces.sweep import Sweep
from trainables.config import flatten

CONDITIONS: Final = f"tags.\"{names.KIND}\" = 'condition'"
REPLICATES: Final = f"tags.\"{names.KIND}\" = 'replicate'"
SWEEP_RUNS: Final = f"tags.\"{names.KIND}\" = 'sweep'"
FAILED: Final = f"{REPLICATES} AND tags.\"{names.STATE}\" = 'failed'"


@dataclass(frozen=True)
class RunFilter:
    """A search.

    Attributes:
        text: in MLflow's language; what stands in braces is for the user to fill in.
        meaning: the runs that it finds.
    """

    name: str
    text: str
    meaning: str

    def filled(self, words: Mapping[str, str]) -> "RunFilter":
        """The same with those of its braces that `words` has an entry for."""
        text = self.text
        for word, value in words.items():
            text = text.replace("{" + word + "}", value)
        return RunFilter(self.name, text, self.meaning)


FILTERS: Final = (
    RunFilter("conditions", CONDITIONS, "One run a condition: mean, std, n and 95 % interval of every metric."),
    RunFilter(
        "finished conditions",
        f"{CONDITIONS} AND attributes.status = 'FINISHED'",
        "Conditions of which every replicate is complete.",
    ),
    RunFilter(
        "conditions with seeds",
        f'{CONDITIONS} AND metrics."{{error}}.n" >= {{number}}',
        "Conditions with at least so many complete replicates.",
    ),
    RunFilter(
        "good and cheap",
        f'{CONDITIONS} AND metrics."{{error}}" < {{most error}} AND metrics."{{cost}}" < {{most cost}}',
        "Conditions that may be on the front: both means are below a limit.",
    ),
    RunFilter(
        "surely good",
        f'{CONDITIONS} AND metrics."{{error}}.high" < {{most error}}',
        "Conditions whose whole 95 % interval is below a limit.",
    ),
    RunFilter("replicates", REPLICATES, "One run a replicate, of all conditions."),
    RunFilter(
        "replicates of a condition",
        f"{REPLICATES} AND tags.\"{names.CONDITION}\" = '{{condition}}'",
        "One condition under each of its seeds.",
    ),
    RunFilter(
        "replicates of a seed",
        f"{REPLICATES} AND tags.\"{names.SEED}\" = '{{seed}}'",
        "Every condition under one seed.",
    ),
    RunFilter("failures", FAILED, "Replicates that failed; tag ponderay.error says why."),
    RunFilter(
        "lost",
        f"{FAILED} AND tags.\"{names.LOST}\" = 'true'",
        "They failed for a reason outside the trainable; the next run of the sweep tries them again.",
    ),
    RunFilter("running", f"{REPLICATES} AND attributes.status = 'RUNNING'", "Replicates at work now."),
    RunFilter(
        "code version",
        f"{REPLICATES} AND tags.\"{names.CODE_VERSION}\" = '{{version}}'",
        "Results of one version of the trainable's sources.",
    ),
    RunFilter(
        "data fingerprint",
        f"{REPLICATES} AND tags.\"{names.DATA_FINGERPRINT}\" = '{{fingerprint}}'",
        "Results on one state of the data.",
    ),
    RunFilter(
        "the sweep itself",
        SWEEP_RUNS,
        "The run with the front's figures and numbers, the report, and what was not committed.",
    ),
)


MODEL_TRAINING: Final = {"workflowType": "machine_learning"}
"""Without it MLflow may open an experiment in its other half, which is about traces of language models."""

BY_CONDITION: Final = f"tags.`{names.CONDITION}`"
"""An order other than MLflow's own, by time, in which it folds replicates away under their condition."""


def filter_page(experiment_id: str, text: str) -> str:
    """The runs of an experiment that a search finds, by condition."""
    return _runs(experiment_id, {"searchFilter": text, "orderByKey": BY_CONDITION, "orderByAsc": "true"})


def run_page(experiment_id: str, run_id: str) -> str:
    """One run."""
    return f"#/experiments/{experiment_id}/runs/{run_id}?{urlencode(MODEL_TRAINING)}"


def _runs(experiment_id: str, parameters: dict[str, str]) -> str:
    return f"#/experiments/{experiment_id}/runs?{urlencode(MODEL_TRAINING | parameters, quote_via=quote)}"


MAX_LENGTH: Final = 5000
"""The longest tag of an experiment; servers differ in how much they take."""

NUM_SHOWN: Final = 6
"""At most so many objectives, and so many settings, in a table or chart."""

NUM_LOOKED_AT: Final = 100

PIXELS_PER_LETTER: Final = 8
PIXELS_BESIDE: Final = 36
"""The widths of a column's header: MLflow's own width cuts off `.low` and `.high`."""

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
        """The tag of the experiment that holds the view."""
        return VIEW_PREFIX + self.key

    def page(self, experiment_id: str) -> str:
        """Its address: the experiment's runs as a table or as charts."""
        charts = {"compareRunsMode": "CHART"} if self.is_charts else {}
        return _runs(experiment_id, {"viewStateShareKey": self.key, **charts})


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
    changed = {**sweep.search.space, **sweep.search.settings} if sweep.search else {}
    for condition in sweep.conditions[:NUM_LOOKED_AT]:
        changed |= {**condition.values, **condition.settings}
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
    means = [name + end for name in metrics[:NUM_SHOWN] for end in ("", ".low", ".high")]
    params = [f"params.`{path}`" for path in settings[:NUM_SHOWN]]
    of_replicates = [*_tags("condition", "seed"), *_metrics(*metrics[:NUM_SHOWN]), *_tags("host")]
    by_condition: Json = {"orderByKey": BY_CONDITION, "orderByAsc": True}
    states = (
        _table(CONDITIONS, [*_metrics(*means, f"{metrics[0]}.n"), *params]) | _best_first(first),
        _charts(first) | _front(metrics, settings),
        _charts(first) | {"chartsSearchFilter": "^mean of "},
        _table(REPLICATES, of_replicates) | _best_first(first),
        _table(FAILED, _tags("condition", "seed", "error", "lost", "tries", "host", "code_version")) | by_condition,
    )
    tags = {
        view.tag: json.dumps({"name": view.name, "createdAt": 1, "updatedAt": 1, "state": json.dumps(state)})
        for view, state in zip(VIEWS, states, strict=True)
    }
    return {name: value for name, value in tags.items() if len(value) <= MAX_LENGTH}


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


def _metrics(*names: str) -> list[str]:
    return [f"metrics.`{name}`" for name in names]


def _tags(*tags: str) -> list[str]:
    return [f"tags.`{names.PREFIX}{name}`" for name in tags]
