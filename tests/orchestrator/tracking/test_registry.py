"""Claims in the tracking store: the first value stands, whoever comes after."""

import threading

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.registry import Registry
from trainables.errors import InputError


@pytest.mark.every_store
def test_the_first_claim_stands(tracking):
    registry = tracking.registry("x")
    assert registry.enter("key", "first") == "first"
    assert registry.enter("key", "second") == "first"
    assert registry.enter("key", "first") == "first"
    assert registry.entries() == {"key": "first"}


def test_a_book_is_the_same_for_all(tracking):
    other = Tracking(read_settings())
    assert tracking.registry("x").run_id == other.registry("x").run_id
    assert tracking.registry("x").run_id != other.registry("y").run_id


@pytest.mark.every_store
def test_threads_that_claim_at_once_agree_on_the_value(tracking):
    """Each through a connection of its own."""
    barrier, found = threading.Barrier(4), []

    def claim(number: int) -> None:
        registry = Tracking(read_settings()).registry("x")
        barrier.wait()
        found.extend(registry.enter(f"key {i}", str(number)) for i in range(10))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    claims = tracking.registry("x").entries()
    assert len(found) == 40
    assert sorted(found) == sorted(value for value in claims.values() for _ in range(4))


@pytest.mark.every_store
def test_one_run_for_a_key_also_for_a_driver_that_did_not_know(tracking):
    """Both have read the registry before either has made the run."""
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
    tracking._client.create_run(experiment, run_name="a seed 1", tags={"ponderay.kind": "replicate"})
    users = tracking._client.create_run(experiment, run_name="a run of the user's own").info.run_id
    tracking.remove_orphans(experiment)
    assert {run.info.run_id for run in tracking._client.search_runs([experiment])} == {kept, users}


@pytest.mark.every_store
def test_a_registry_that_was_deleted_by_hand_is_told_in_a_sentence(tracking):
    registry = tracking.registry("a registry")
    registry.enter("before", "1")
    tracking._client.delete_run(registry.run_id)
    assert registry.enter("before", "2") == "1"
    with pytest.raises(InputError, match=rf"takes no entry in run {registry.run_id}.* Was it deleted\? `MlflowClient"):
        registry.enter("another", "1")


def names(tracking, experiment: str) -> list[str]:
    return sorted(run.info.run_name for run in tracking._client.search_runs([experiment]))


@pytest.mark.parametrize("call", ["create_run", "log_param"])
def test_a_run_whose_making_was_not_confirmed_is_there_once_when_it_was_tried_again(tracking, monkeypatch, call):
    """As when the store goes away between doing and saying so."""
    experiment = tracking.open_experiment("sweep")
    tracking.open_run(experiment, "replicate", "0", "a seed 0", {})
    real = getattr(tracking._client, call)

    def unheard(*arguments, **options):
        real(*arguments, **options)
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(tracking._client, call, unheard)
        with pytest.raises(ConnectionError):
            tracking.open_run(experiment, "replicate", "1", "a seed 1", {})
    tracking.open_run(experiment, "replicate", "1", "a seed 1", {})
    assert names(tracking, experiment) == ["a seed 0", "a seed 1"]


def test_a_prerequisites_run_that_a_dead_driver_did_not_enter_is_removed_by_the_next_and_others_are_not(tracking):
    experiment = tracking.open_experiment("prerequisites")
    for key in ("1", "2"):
        tracking._client.create_run(
            experiment, run_name=f"left {key}", tags={"ponderay.kind": "prerequisite", "ponderay.key": key}
        )
    tracking.open_run(experiment, "prerequisite", "1", "first", {})
    assert names(tracking, experiment) == ["first", "left 2"]


@pytest.mark.every_store
def test_drivers_that_make_a_prerequisites_run_at_once_leave_each_others_alone(tracking, monkeypatch):
    """The second one begins when the first has made its run, and makes its own when that one is entered."""
    other, found, claim = Tracking(read_settings()), [], Registry.enter
    experiment, create = tracking.open_experiment("prerequisites"), other._client.create_run

    def meanwhile(self, key, value):
        def enter_and_create(*arguments, **options):
            claim(self, key, value)
            return create(*arguments, **options)

        if key.startswith("prerequisite") and not found:
            found.append("")
            monkeypatch.setattr(other._client, "create_run", enter_and_create)
            found[0] = other.open_run(experiment, "prerequisite", "1", "first", {})
        return claim(self, key, value)

    monkeypatch.setattr(Registry, "enter", meanwhile)
    found.append(tracking.open_run(experiment, "prerequisite", "1", "first", {}))
    assert found[0] == found[1]
    assert [run.info.run_id for run in tracking._client.search_runs([experiment])] == [found[0]]


def test_where_a_driver_ends_no_run_is_running_and_none_is_left_that_is_nobodys(tracking):
    experiment = tracking.open_experiment("sweep")
    tracking.open_run(experiment, "replicate", "0123", "a seed 1", {})
    tracking._client.create_run(experiment, run_name="a seed 1", tags={"ponderay.kind": "replicate"})
    tracking._client.create_run(experiment, run_name="the user's own")
    tracking.stop_running(experiment)
    found = {run.info.run_name: run.info.status for run in tracking._client.search_runs([experiment])}
    assert found == {"a seed 1": "KILLED", "the user's own": "RUNNING"}


@pytest.mark.every_store
def test_a_name_may_be_anything(tracking):
    names = ["lease <b>", "lease 'x' & y", "lease b"]
    assert len({tracking.registry(name).run_id for name in names}) == 3
    assert [Tracking(read_settings()).registry(name).run_id for name in names] == [
        tracking.registry(name).run_id for name in names
    ]
    experiment = tracking.open_experiment("<b>")
    run_id = tracking.open_run(experiment, "sweep", "<b>", "<b>", {})
    other = Tracking(read_settings())
    assert other.find_run(experiment, "sweep", "<b>") == run_id == other.open_run(experiment, "sweep", "<b>", "<b>", {})
