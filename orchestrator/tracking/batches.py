"""Writes to a run of MLflow, in as few requests as it takes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from mlflow.entities import Metric, Param, RunTag

if TYPE_CHECKING:
    from mlflow import MlflowClient

BATCH: Final = 1000
"""What MLflow takes in one request."""

SMALL_BATCH: Final = 100
"""Of these parameters, and of these tags."""

TEXT_LIMIT: Final = 5000


def plain(text: str) -> str:
    """`text` with other characters for those that a database refuses: halves of pairs, and on PostgreSQL the zero."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")


def write(
    client: "MlflowClient",
    run_id: str,
    metrics: Sequence[Metric] = (),
    tags: Mapping[str, str] | None = None,
    params: Mapping[str, Any] | None = None,
) -> None:
    """Adds metrics, tags and parameters; twice is as good as once."""
    listed = [RunTag(name, plain(value)) for name, value in (tags or {}).items()]
    given = [Param(path, plain(str(value))[:TEXT_LIMIT]) for path, value in (params or {}).items()]
    while metrics or listed or given:
        now = metrics[: BATCH - 2 * SMALL_BATCH], given[:SMALL_BATCH], listed[:SMALL_BATCH]
        client.log_batch(run_id, *now)
        metrics, given, listed = metrics[len(now[0]) :], given[len(now[1]) :], listed[len(now[2]) :]
