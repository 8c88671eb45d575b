"""What counts as finished without a driver, against what a driver really left."""

from dataclasses import replace

import pytest

from orchestrator.scheduler import task_factory
from orchestrator.scheduler.earlier_results import finished_replicates
from orchestrator.scheduler.task_factory import TaskFactory
from ponderay import notebook
from search_spaces.distributions import Real
from search_spaces.sweep import Search, Sequential
from tests.integration import tiny as trainable
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import drive, new_settings

SWEEP = tiny({"a": {}, "b": {"x": 0.75}}, name="tiny.finished", seeds=(1, 2, 3))


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return drive(SWEEP, new_settings(tmp_path_factory.mktemp("finished")))


def finished(sweep, settings, accept_code=False):
    return finished_replicates(TaskFactory(sweep, settings, 0), accept_code)


def test_what_a_driver_completed_is_finished_and_the_same(done):
    found = {one.key: one.metrics for one in finished(SWEEP, done.settings)}
    assert found == {one.key: one.metrics for one in done.outcome.replicates}
    assert len(found) == 6


def test_a_part_of_it_is_finished_too(done):
    assert len(finished(replace(SWEEP, seeds=(1,)), done.settings)) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"seeds": (1, 2, 3, 4)},
        {"conditions": tiny({"a": {}, "b": {"x": 0.75}, "c": {"x": 0.25}}).conditions},
        {"conditions": tiny({"a": {}, "b": {"x": 0.8}}).conditions},
        {"conditions": tiny({"a": {}, "renamed": {"x": 0.75}}).conditions},
        {"base": SWEEP.base.with_value("evaluations", [{"name": "plain"}, {"name": "doubled", "factor": 2.0}])},
        {"base": SWEEP.base.with_value("evaluations", [{"name": "plain", "factor": 2.0}])},
        {"sequential": Sequential(question="front", minimum=3)},
        {"conditions": (), "search": Search({"x": Real(0.1, 1.0)}, num_trials=2)},
    ],
)
def test_where_anything_is_asked_for_that_is_not_there_a_driver_looks(done, changes):
    assert finished(replace(SWEEP, **changes), done.settings) == ()


def test_with_a_renamed_condition_a_driver_looks_once(tmp_path):
    before, settings = tiny({"a": {}, "b": {"x": 0.75}}, name="tiny.named", seeds=(1,)), new_settings(tmp_path)
    renamed = replace(before, conditions=tiny({"a": {}, "renamed": {"x": 0.75}}).conditions)
    drive(before, settings)
    assert finished(renamed, settings) == ()
    drive(renamed, settings)
    assert [one.condition for one in finished(renamed, settings)] == ["a", "renamed"]


def test_with_other_data_a_driver_looks(done, monkeypatch):
    monkeypatch.setattr(trainable, "fingerprint", lambda config: "other")
    assert finished(SWEEP, done.settings) == ()


def test_with_other_code_a_driver_looks_unless_it_is_accepted(done, monkeypatch):
    monkeypatch.setattr(task_factory, "version_of", lambda _: "0123456789ab")
    assert finished(SWEEP, done.settings) == ()
    assert len(finished(SWEEP, done.settings, accept_code=True)) == 6


def test_with_a_failure_or_without_a_store_a_driver_looks(done, tmp_path):
    settings = new_settings(tmp_path)
    failing = tiny({"a": {}, "bad": {"nan_at": 3}}, name="tiny.failing", seeds=(1,))
    assert drive(failing, settings).outcome.num_failed == 1
    assert finished(failing, settings) == ()
    assert finished(SWEEP, settings) == ()
    assert finished(SWEEP, replace(done.settings, tracking_uri=f"sqlite:///{tmp_path}/none.db")) == ()
    assert finished(SWEEP, replace(done.settings, tracking_uri="http://127.0.0.1:9")) == ()


def test_where_a_run_of_it_has_not_ended_well_a_driver_looks(done):
    run_id = done.run("a").info.run_id
    done.client.set_terminated(run_id, "KILLED")
    assert finished(SWEEP, done.settings) == ()
    done.client.set_terminated(run_id, "FINISHED")
    assert len(finished(SWEEP, done.settings)) == 6


def test_a_finished_sweep_starts_nothing(done, monkeypatch):
    monkeypatch.setattr("orchestrator.run.before_ray", lambda *_: pytest.fail("started"))
    monkeypatch.setenv("PONDERAY_RUNS", str(done.settings.runs))
    study = notebook.run(SWEEP)
    assert [one.state for one in study.replicates] == ["complete"] * 6
