"""Addresses of MLflow's pages, relative to the root of its server."""

from typing import Final
from urllib.parse import quote, urlencode

MODEL_TRAINING: Final = {"workflowType": "machine_learning"}
"""Without it MLflow may open an experiment in its other half, which is about traces of language models."""

BY_CONDITION: Final = "tags.`ponderay.condition`"
"""An order other than MLflow's own, by time, in which it folds replicates away under their condition."""


def view_page(experiment_id: str, key: str, is_charts: bool) -> str:
    """A saved view of an experiment's runs, as a table or as charts."""
    return _runs(experiment_id, {"viewStateShareKey": key} | ({"compareRunsMode": "CHART"} if is_charts else {}))


def filter_page(experiment_id: str, text: str) -> str:
    """The runs of an experiment that a search finds, by condition."""
    return _runs(experiment_id, {"searchFilter": text, "orderByKey": BY_CONDITION, "orderByAsc": "true"})


def run_page(experiment_id: str, run_id: str) -> str:
    """One run."""
    return f"#/experiments/{experiment_id}/runs/{run_id}?{urlencode(MODEL_TRAINING)}"


def _runs(experiment_id: str, parameters: dict[str, str]) -> str:
    return f"#/experiments/{experiment_id}/runs?{urlencode(MODEL_TRAINING | parameters, quote_via=quote)}"
