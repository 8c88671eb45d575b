"""Every name that Ponderay writes into MLflow: tags, registries, and metrics of replicates, conditions and machines.

A condition's run has `METRIC`, the mean over its complete replicates, and beside it `METRIC.std`, `.n`, `.low` and
`.high`, all at step n. Its learning curves are other metrics, with n in their names: MLflow deletes nothing, so a curve
over three seeds would otherwise be mixed with the one over five.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from search_spaces.redaction import redacted_leaves

MAX_LENGTH: Final = 250
"""The longest name of a metric in MLflow."""

PREFIX: Final = "ponderay."
SWEEP: Final = "ponderay.sweep"
CONDITION: Final = "ponderay.condition"
SETTINGS: Final = "ponderay.settings"
"""Tag of a condition's run: what `--set` changed in it, a JSON object of texts by config path."""

SEED: Final = "ponderay.seed"
KEY: Final = "ponderay.key"
KIND: Final = "ponderay.kind"
STATE: Final = "ponderay.state"
CODE_VERSION: Final = "ponderay.code_version"
DATA_FINGERPRINT: Final = "ponderay.data_fingerprint"
GIT_COMMIT: Final = "ponderay.git_commit"
PACKAGES: Final = "ponderay.packages"
COMMAND: Final = "ponderay.command"
ORIGIN: Final = (GIT_COMMIT, PACKAGES, COMMAND)
"""What a replicate was begun with."""

ERROR: Final = "ponderay.error"
LOST: Final = "ponderay.lost"
TRIES: Final = "ponderay.tries"
EVALUATIONS: Final = "ponderay.evaluations"
HOST: Final = "ponderay.host"
DEVICE: Final = "ponderay.device"
DURATION_S: Final = "ponderay.duration_s"
PEAK_HOST_BYTES: Final = "ponderay.peak_host_bytes"
PEAK_GPU_BYTES: Final = "ponderay.peak_gpu_bytes"
SIZE_BYTES: Final = "ponderay.size_bytes"
DECLARATION: Final = "ponderay.declaration"
"""Tag of an experiment: what the sweep declares, as JSON."""

PUT_AWAY: Final = "ponderay.put_away"
"""Tag of a run in the bin: the id of the archive that has its replicate."""

DECISION: Final = "ponderay.decision"
STUDY: Final = "ponderay.study"
"""Tag of a sweep's own run: what the copy of the study file among its files is of, as `study_copy.CopyTag` in JSON."""

STUDY_FOLDER: Final = "study"
"""The folder of that copy, among the files of the run."""

FRONT_OBJECTIVES: Final = "ponderay.front_objectives"
HYPERVOLUME_REFERENCE: Final = "ponderay.hypervolume_reference"
UPDATED: Final = "ponderay.updated"
"""Metric of a condition's run: the revision of the replicates' states in its tags."""

REPLICATE_PREFIX: Final = "ponderay.replicate."
"""Tags of a condition's run, each a part of its replicates."""

REGISTRIES: Final = "ponderay.books"
"""The registered model and the experiment of all registries; stores of earlier versions have it under this name."""

REGISTRY_KIND: Final = "book"

TEXT_LIMIT: Final = 5000
"""The longest value of a parameter."""

_UNSTORABLE: Final = re.compile(r"[^\w.\-:/ ]")


def storable(name: str) -> str:
    """`name` as a claim: with codes for what MLflow takes in no parameter's name. A sweep may be called anything."""
    return _UNSTORABLE.sub(lambda found: f"_{ord(found[0]):x}_", name)


def plain(text: str) -> str:
    """`text` with other characters for those that a database refuses: halves of pairs, and on PostgreSQL the zero."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


def param_texts(params: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as MLflow has them."""
    return {path: plain(text)[:TEXT_LIMIT] for path, text in redacted_leaves(params).items()}


def lease_of(sweep: str) -> str:
    """The name of the registry in which the drivers of a sweep note who runs it."""
    return f"lease sweep {sweep}"


def stored_name(metric: str) -> str:
    """`metric` in MLflow, which allows no @ in names; its interface groups by slashes."""
    return metric.replace("@", "/")


def mean_curve(metric: str, n: int) -> str:
    """The name of the mean over n replicates by step: `mean of 5/valid_per/stochastic`."""
    return f"mean of {n}/{stored_name(metric)}"


def std_curve(metric: str, n: int) -> str:
    """The name of the standard deviation over n replicates by step."""
    return f"std of {n}/{stored_name(metric)}"
