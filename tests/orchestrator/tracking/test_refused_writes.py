"""One write that a store never takes is refused; it is no outage, for which everything would wait."""

import threading
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INTERNAL_ERROR, TEMPORARILY_UNAVAILABLE

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.availability import is_unavailable
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.write_queue import WriteQueue
from tests.waiting import until
from trainables.errors import InputError


@pytest.fixture
def tracking(workplace, store):
    store(workplace)
    return Tracking(read_settings())


RECORD = {"kind": "metrics", "step": 1, "time_ms": 1, "metrics": {"loss": 0.5}}


@pytest.mark.parametrize("change", [{"step": 10**30}, {"step": 2**63}, {"time_ms": 2**64}])
def test_a_number_that_no_database_takes_is_no_outage(tracking, change):
    run_id = tracking.sweep_run("toy")
    with pytest.raises(Exception) as raised:
        tracking.log(run_id, [RECORD | change])
    assert not is_unavailable(raised.value)


def test_a_description_with_half_a_pair_is_written_with_another_sign(tracking):
    """That of a sweep is refused before; a note holds texts of other origin, too."""
    experiment = tracking.open_experiment("toy")
    tracking.describe(experiment, {"mlflow.note.content": "a\udcffb\0"})
    client: Any = MlflowClient(tracking_uri=read_settings().tracking_uri)
    assert client.get_experiment(experiment).tags["mlflow.note.content"] == "a?b\N{REPLACEMENT CHARACTER}"


def failing(code: int) -> MlflowException:
    return MlflowException("the server failed", error_code=code)


@pytest.fixture
def short_waits(monkeypatch):
    monkeypatch.setattr("orchestrator.tracking.write_queue.WAITS_S", (0.01,))


def test_a_server_that_fails_at_one_write_and_takes_others_is_not_away(short_waits):
    told: list[str] = []
    tries: list[int] = []

    def refused() -> None:
        tries.append(1)
        raise failing(INTERNAL_ERROR)

    queue = WriteQueue(told.append, takes_others=lambda: True)
    queue.put("x", refused)
    with pytest.raises(InputError, match="refuses a write: the server failed"):
        queue.drain(20)
    assert 3 < len(tries) < 10
    queue.close()


@pytest.mark.parametrize(
    ("error", "takes_others"),
    [
        (failing(INTERNAL_ERROR), False),
        (failing(TEMPORARILY_UNAVAILABLE), True),
        (ConnectionError("connection refused"), True),
    ],
)
def test_a_server_that_takes_no_other_or_says_that_it_is_away_is_waited_for(short_waits, error, takes_others):
    tries: list[int] = []
    is_back = threading.Event()

    def write() -> None:
        tries.append(1)
        if not is_back.is_set():
            raise error

    queue = WriteQueue(lambda text: None, takes_others=lambda: takes_others)
    queue.put("x", write)
    until(lambda: len(tries) > 20)
    is_back.set()
    assert queue.drain(20) == 0
    queue.close()
