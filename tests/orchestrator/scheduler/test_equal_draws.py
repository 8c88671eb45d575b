"""Equal draws of a search share a folder and a run of MLflow, which stay for as long as one of them does."""

from dataclasses import replace

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.scheduler import task_factory
from orchestrator.scheduler.outdated import make_room
from orchestrator.scheduler.put_away import archive, remove, restore
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_study
from search_spaces.distributions import Choice
from search_spaces.sweep import Search
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_without_ray import starts


@pytest.fixture
def sweep(workplace):
    search = Search({"x": Choice((0.25,))}, num_trials=2, sampler="random")
    return tiny((), "tiny.search", search=search, seeds=(1,))


def rows():
    return sorted((one.condition, one.key, one.state, one.run_id) for one in load_study("tiny.search").replicates)


def test_what_is_put_away_of_equal_draws_comes_back(sweep, monkeypatch):
    run_quietly(sweep)
    settings, whole = read_settings(), rows()
    first, second = whole
    assert first[0] != second[0] and first[1:] == second[1:] and first[2] == "complete", "they are no equal draws"
    folder, run_id = settings.replicates(sweep.name) / first[1], first[3]

    def of_mlflow() -> str:
        return Tracking(settings).runs(sweep.name).client.get_run(run_id).info.lifecycle_stage

    everything = archive(sweep.name, settings)
    one, number = remove(sweep.name, settings, lambda replicate: replicate.condition == second[0])
    assert (number, rows(), folder.exists(), of_mlflow()) == (1, [first], True, "active")
    assert restore(one, settings) == (sweep.name, 1, 1) and rows() == whole
    both, number = remove(sweep.name, settings, lambda _: True)
    assert (number, folder.exists(), of_mlflow()) == (2, False, "deleted")
    assert restore(both, settings) == (sweep.name, 2, 2)
    assert (rows(), folder.exists(), of_mlflow()) == (whole, True, "active")

    with monkeypatch.context() as changed:
        changed.setattr(task_factory, "version_of", lambda *_: "another")
        file, number = make_room(TaskFactory(sweep, settings, num_gpus=0), accept_code=False)
    assert (number, folder.exists()) == (2, False)
    assert restore(everything, settings) == (sweep.name, 2, 2) and restore(file, settings) == (sweep.name, 0, 2)
    assert len(run_quietly(sweep).replicates) == 2 and set(starts().values()) == {1}


def test_a_draw_equal_to_what_an_earlier_driver_completed_is_recorded_too(sweep):
    run_quietly(replace(sweep, search=replace(sweep.search, num_trials=1)))
    (first,) = rows()
    run_quietly(sweep)
    found, mirrored = rows(), Tracking(read_settings()).read_study(sweep.name)
    assert len(found) == 2 and found[0] == first and found[1][1:] == first[1:]
    assert sorted((one.condition, one.key, one.state, one.run_id) for one in mirrored.replicates) == found
    assert mirrored.conditions == load_study(sweep.name).conditions and set(starts().values()) == {1}


def test_each_has_means_over_all_its_seeds_when_it_gets_more(sweep):
    run_quietly(sweep)
    outcome, draws = run_quietly(replace(sweep, seeds=(1, 2))), sorted({row[0] for row in rows()})
    found = sorted((one.condition, one.seed, one.state) for one in outcome.replicates)
    assert found == [(name, seed, "complete") for name in draws for seed in (1, 2)]
    runs = Tracking(read_settings()).runs(sweep.name)
    conditions = runs.client.search_runs([runs.experiment_id], "tags.`ponderay.kind` = 'condition'")
    assert {run.info.run_name: run.data.metrics["error/plain.n"] for run in conditions} == dict.fromkeys(draws, 2.0)
