"""Claims in the tracking store: the first value stands, whoever comes after."""

import threading

import pytest

from orchestrator.settings import read_settings
from orchestrator.tracking import Tracking
from tests.orchestrator.recorded import empty_store


@pytest.fixture
def tracking(workplace):
    (workplace / "runs").mkdir()
    (workplace / "runs" / "mlflow.db").write_bytes(empty_store())
    return Tracking(read_settings())


def test_the_first_claim_stands(tracking):
    book = tracking.book("x")
    assert book.claim("key", "first") == "first"
    assert book.claim("key", "second") == "first"
    assert book.claim("key", "first") == "first"
    assert book.claims() == {"key": "first"}


def test_a_book_is_the_same_for_all(tracking):
    other = Tracking(read_settings())
    assert tracking.book("x").run_id == other.book("x").run_id
    assert tracking.book("x").run_id != other.book("y").run_id


def test_threads_that_claim_at_once_agree_on_the_value(tracking):
    """Each through a connection of its own."""
    barrier, found = threading.Barrier(4), []

    def claim(number: int) -> None:
        book = Tracking(read_settings()).book("x")
        barrier.wait()
        found.extend(book.claim(f"key {i}", str(number)) for i in range(10))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    claims = tracking.book("x").claims()
    assert len(found) == 40
    assert sorted(found) == sorted(value for value in claims.values() for _ in range(4))


def test_one_run_for_a_key_also_for_a_driver_that_did_not_know(tracking):
    """Both have read the book before either has made the run."""
    other = Tracking(read_settings())
    experiment = tracking.open_experiment("sweep")
    for one in (tracking, other):
        one.find_run(experiment, "replicate", "0123")
    runs = [one.open_run(experiment, "replicate", "0123", "a seed 1", {}) for one in (tracking, other)]
    assert runs[0] == runs[1]
    client = tracking._client
    assert [run.info.run_id for run in client.search_runs([experiment])] == [runs[0]]


def test_a_run_that_no_driver_lived_to_enter_is_removed(tracking):
    experiment = tracking.open_experiment("sweep")
    kept = tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
    tracking._client.create_run(experiment, run_name="a seed 1")
    tracking.remove_orphans(experiment)
    assert [run.info.run_id for run in tracking._client.search_runs([experiment])] == [kept]


def test_a_name_may_be_anything(tracking):
    names = ["lease <b>", "lease 'x' & y", "lease b"]
    assert len({tracking.book(name).run_id for name in names}) == 3
    assert [Tracking(read_settings()).book(name).run_id for name in names] == [
        tracking.book(name).run_id for name in names
    ]
    experiment = tracking.open_experiment("<b>")
    run_id = tracking.open_run(experiment, "sweep", "<b>", "<b>", {})
    other = Tracking(read_settings())
    assert other.find_run(experiment, "sweep", "<b>") == run_id == other.open_run(experiment, "sweep", "<b>", "<b>", {})
