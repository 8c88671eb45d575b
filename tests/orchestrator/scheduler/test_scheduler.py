"""What runs next: in order, beside what is live, prerequisites first, and none of what is there already."""

import time
from dataclasses import replace

import pytest

from orchestrator.console.errors import RefusedError
from orchestrator.scheduler.capacity import Capacity
from orchestrator.scheduler.task import folder_of
from tests.integration.sweeps import FIRST
from tests.orchestrator.scheduler.parts import Lease, parts


def test_tasks_start_in_order_while_there_is_room(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}}, Capacity(1, 0), seeds=(1, 2))
    assert [made.start().work.label for _ in range(2)] == ["a seed 1", "a seed 2"]  # one may queue
    assert made.scheduler.next() is None and not made.scheduler.is_finished()
    made.end(next(iter(made.tasks.live.values())))
    assert made.start().work.label == "b seed 1"


def test_more_than_there_is_is_refused_before_anything_starts_only(tmp_path):
    made = parts(tmp_path, {"a": {}}, Capacity(0, 0))
    with pytest.raises(RefusedError, match="a seed 1 needs 1 CPUs and 0 GPUs, but there are 0 and 0"):
        made.scheduler.extend()
    made = parts(tmp_path, {"a": {}}, Capacity(0, 0))
    made.tasks.has_begun = True
    assert made.scheduler.extend()


def test_what_waits_for_machines_that_were_lost_is_found(tmp_path, monkeypatch):
    """And not what waits for another driver's prerequisite."""
    for num_cpus in (0, 1):
        made = parts(tmp_path, {"a": {}}, Capacity(num_cpus, 0), seeds=(1,), prerequisites=(FIRST,))
        made.tasks.has_begun = True
        made.scheduler.extend()
        (first,) = (task for task in made.tasks if task.condition is None)
        monkeypatch.setattr(Lease, "taken", {f"prerequisite {first.work.key}"})
        assert made.scheduler.next() is None
        assert (made.scheduler.too_large() is None) == (num_cpus == 1)


def test_a_prerequisite_runs_once_and_before_what_needs_it(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}}, seeds=(1,), prerequisites=(FIRST,))
    first = made.start()
    assert (first.work.label, first.condition) == ("prerequisite first", None)
    assert made.scheduler.next() is None
    made.end(first)
    assert [made.start().work.label for _ in range(2)] == ["a seed 1", "b seed 1"]
    assert all(task.work.products == {"first": first.work.folder} for task in made.tasks.live.values())


def test_what_needs_a_prerequisite_that_failed_fails_with_it(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}}, seeds=(1,), prerequisites=(FIRST,))
    made.end(made.start(), state="failed", error="diverged")
    assert made.scheduler.next() is None and made.scheduler.is_finished()
    assert [(one.state, one.error) for one in made.scheduler.replicates()] == [
        ("failed", "prerequisite first failed: diverged")
    ] * 2
    assert made.source.told == [("a", None), ("b", None)]


def test_a_prerequisite_that_another_driver_makes_is_waited_for(tmp_path, monkeypatch):
    made = parts(tmp_path, {"a": {}}, seeds=(1,), prerequisites=(FIRST,))
    made.scheduler.extend()
    (first,) = (task for task in made.tasks if task.condition is None)
    monkeypatch.setattr(Lease, "taken", {f"prerequisite {first.work.key}"})
    for _ in range(2):
        assert made.scheduler.next() is None and not made.scheduler.is_finished()
    said = "prerequisite first: waits for process 7 on lab, which makes it for another sweep; if that has died"
    assert made.view.named("note") == [(f"{said}, for up to 45 s.",)]
    Lease.taken.clear()
    assert made.start() is first


@pytest.mark.parametrize("state", ["complete", "pruned"])
def test_what_has_ended_is_not_run_or_recorded_again_and_what_was_touched_is_told_anew(tmp_path, state):
    first = parts(tmp_path, {"a": {}}, seeds=(1, 2))
    first.end(first.start())
    known = replace(first.scheduler.replicates()[0], state=state)
    again = parts(tmp_path, {"a": {}}, known=[known], seeds=(1, 2))
    task = again.start()
    assert (task.seed, task.is_touched) == (2, True)
    assert [(one.state, one.is_touched) for one in again.tasks] == [(state, False), ("live", True)]
    assert again.recorder.named("end") == []


@pytest.mark.parametrize("seeds", [(1,), (2, 3)])
def test_another_setting_under_a_name_that_has_results_is_refused_whatever_the_seeds(tmp_path, seeds):
    first = parts(tmp_path, {"a": {"x": 0.9}}, seeds=(1,), prerequisites=(FIRST,))
    first.end(first.start())
    first.end(first.start())
    known = first.scheduler.replicates()
    more = parts(tmp_path, {"a": {"x": 0.9}}, known=known, seeds=(1, 2, 3), prerequisites=(FIRST,))
    assert more.scheduler.extend()
    other = parts(tmp_path, {"a": {"x": 0.1}}, known=known, seeds=seeds, prerequisites=(FIRST,))
    with pytest.raises(RefusedError, match=r"^a seed 1 is recorded with another setting or other data"):
        other.scheduler.extend()


def test_devices_are_counted_while_they_are_held(tmp_path):
    made = parts(tmp_path, {"a": {}}, seeds=(1,))
    task = made.start()
    assert made.scheduler.device_s() == 0.0
    task.running_s = task.heard_s - 10.0
    assert made.scheduler.device_s() == pytest.approx(10.0, abs=5.0)
    made.scheduler.ended(task.work.key)
    assert made.scheduler.device_s() == pytest.approx(10.0, abs=5.0)


def test_a_machine_whose_clock_is_behind_has_held_its_devices_since_it_was_given_work_at_most(tmp_path):
    """Else an hour of devices would be counted for each try, and the limit of device hours met at once."""
    made = parts(tmp_path, {"a": {}}, seeds=(1,))
    task = made.start()
    an_hour_ago_ms = (time.time() - 3600.0) * 1000
    made.scheduler.reported(task.work.key, {"kind": "started", "time_ms": an_hour_ago_ms})
    assert task.running_s and made.scheduler.device_s() < 600.0


def test_one_more_than_fits_waits_for_its_turn_while_all_places_are_at_work(tmp_path):
    made = parts(tmp_path, {"a": {}}, Capacity(2, 0), seeds=(1, 2, 3))
    one, two, three = [made.start() for _ in range(3)]
    assert not made.scheduler.is_early(three), "nothing is at work: another sweep may have taken the places"
    for task in (one, two):
        made.scheduler.reported(task.work.key, {"kind": "started", "time_ms": time.time() * 1000})
    assert made.scheduler.is_early(three)
    made.end(one)
    assert not made.scheduler.is_early(three)


def test_what_a_lost_host_had_run_goes_first_and_on_from_its_checkpoint(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}, "c": {"x": 0.75}}, Capacity(1, 0), seeds=(1,))
    task = made.start()
    made.scheduler.lose_all("the cluster that ran it was lost")
    assert [one.condition.name for one in made.tasks.waiting.values()] == ["a", "b", "c"]
    begun = folder_of(made.tasks[[*made.tasks.waiting][2]])  # as another driver would find it
    begun.append(
        {"kind": "started", "attempt": "1", "code_version": task.work.code_version, "host": "x", "device": "cpu"}
    )
    for step, is_kept in ((2, True), (3, False)):
        begun.append({"kind": "metrics", "step": step, "metrics": {}, "kept": is_kept})
    after = parts(tmp_path, {"a": {}, "b": {"x": 0.25}, "c": {"x": 0.75}}, Capacity(1, 0), seeds=(1,))
    assert after.start().work.label == "c seed 1"
    assert after.view.named("begin")[-1][-1] == 2, "the step of its checkpoint"
