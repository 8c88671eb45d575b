"""A cluster that grows: what it may have at most, and what of the waiting work is asked for."""

from types import SimpleNamespace

import pytest
import yaml

from orchestrator.cluster.autoscaling import GrowingCapacity, addable, bundles, unplaced
from orchestrator.console.errors import RefusedError
from orchestrator.scheduler.capacity import Capacity, check_capacity
from search_spaces.resources import Resources

DESCRIPTION = {
    "max_workers": 4,
    "head_node_type": "head",
    "available_node_types": {
        "head": {"resources": {"CPU": 8}, "max_workers": 0},
        "gpu": {"resources": {"CPU": 4, "GPU": 1}, "max_workers": 3},
        "big": {"resources": {"CPU": 16, "GPU": 2}, "max_workers": 9},
        "off": {"resources": {"CPU": 99, "GPU": 9}, "max_workers": 0},
    },
}
ONE_CPU = Resources(num_workers=0).resolve(0)
ONE_GPU = Resources(num_workers=1, gpus_per_worker=1, cpus_per_worker=2).resolve(4)


def test_the_most_is_the_head_and_as_many_of_the_largest_workers_as_there_may_be_in_all():
    assert addable(DESCRIPTION) == Capacity(8 + 4 * 16, 4 * 2, 16, 2)
    fewer = DESCRIPTION | {"max_workers": 10}
    assert addable(fewer) == Capacity(8 + 9 * 16 + 4, 9 * 2 + 1, 16, 2)


def test_a_description_that_does_not_say_what_machines_have_promises_nothing():
    local = {"max_workers": 2, "head_node_type": "node", "available_node_types": {"node": {"resources": {}}}}
    assert addable(local) == Capacity(0, 0, 0, 0)


@pytest.mark.parametrize("content", ["", "a: [", "available_node_types: null", "- 1", "available_node_types: {a: 3}"])
def test_a_file_that_is_no_description_promises_nothing(tmp_path, monkeypatch, content):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    (tmp_path / "config.yaml").write_text(content)
    now = Capacity(4, 0, 4, 0)
    assert GrowingCapacity(lambda: now, tmp_path / "config.yaml")().most == now


def test_the_most_is_the_larger_of_what_is_there_and_what_may_be(tmp_path, monkeypatch):
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(DESCRIPTION))
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    capacity = GrowingCapacity(lambda: Capacity(100, 1, 50, 1), file)()
    assert (capacity.num_cpus, capacity.num_gpus) == (100, 1)
    assert capacity.most == Capacity(100, 8, 50, 2)
    monkeypatch.delenv("RAY_ADDRESS")
    assert GrowingCapacity(lambda: Capacity(2, 0, 2, 0), file)().most == Capacity(2, 0, 2, 0)


def test_a_replicate_is_refused_only_where_the_largest_cluster_has_no_place_for_it():
    task = SimpleNamespace(work=SimpleNamespace(resources=ONE_GPU, label="a seed 1"))
    check_capacity(task, Capacity(0, 0, 0, 0, most=Capacity(4, 1, 4, 1)))
    with pytest.raises(RefusedError, match="needs 2 CPUs and 1 GPUs"):
        check_capacity(task, Capacity(0, 0, 0, 0, most=Capacity(4, 0, 4, 0)))


def test_asked_for_is_what_has_no_place_now_and_would_have_one_later():
    capacity = Capacity(2, 0, 2, 0, most=Capacity(5, 0, 2, 0))
    assert unplaced([], [ONE_CPU] * 2, capacity) == []
    assert unplaced([ONE_CPU], [ONE_CPU] * 9, capacity) == [ONE_CPU] * 3
    assert unplaced([], [ONE_CPU] * 9, Capacity(2, 0)) == []


def test_each_worker_is_a_bundle():
    assert bundles(ONE_CPU) == [{"CPU": 1.0}]
    assert bundles(ONE_GPU) == [{"CPU": 2.0, "GPU": 1.0}]
    assert bundles(Resources(num_workers=3, cpus_per_worker=1).resolve(0)) == [{"CPU": 1.0}] * 3
