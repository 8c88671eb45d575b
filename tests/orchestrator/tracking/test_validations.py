"""Curves of validation, by what selects checkpoints and what foresees objectives."""

from dataclasses import replace

import pytest
from mlflow.entities import Metric

from orchestrator.results.study import Study
from orchestrator.results.validations import SeedCurve, Validations
from orchestrator.tracking.curves import MOST_REPLICATES, read_validations, with_validations
from search_spaces.find import find_sweep
from tests.orchestrator.driven import new_settings
from tests.orchestrator.recorded import replicate
from trainables.metric import Best


@pytest.fixture
def recorded(tracking):
    """Two replicates of a condition of asr.demo, whose validation is not finite at one step; and their study."""
    sweep = find_sweep("asr.demo", smoke=True)
    experiment = tracking.open_experiment(sweep.name)
    condition, found = sweep.conditions[0].name, []
    for seed in (1, 2):
        run_id = tracking.open_run(experiment, "replicate", f"{condition}/{seed}", condition, {})
        values = {0: 1.0, 1: 0.5 / seed, 2: float("nan"), 3: 0.25 / seed}
        names = ("valid_per/stochastic", "train_loss_nats")
        metrics = [Metric(name, value, 1000 + step, step) for name in names for step, value in values.items()]
        tracking._client.log_batch(run_id, metrics)
        found.append(replicate(condition, seed, run_id=run_id, metrics={"per@stochastic": 0.1}))
    found.append(replicate(condition, 3, state="stopped", run_id="elsewhere"))
    return sweep, Study(sweep.name, tuple(found))


@pytest.mark.every_store
def test_those_of_complete_replicates_are_read_by_what_selects(tracking, recorded):
    """Of a study without journals, from MLflow."""
    sweep, study = recorded
    name = sweep.conditions[0].name
    found = read_validations(sweep, study, tracking._settings)
    assert found.curves == tuple(
        SeedCurve(name, seed, "valid_per@stochastic", (0, 1, 3), (1.0, 0.5 / seed, 0.25 / seed)) for seed in (1, 2)
    )
    assert found.selecting(name, "stochastic") == Best("valid_per@stochastic")


def test_without_runs_there_are_those_that_bundles_brought(tmp_path):
    sweep = find_sweep("asr.demo", smoke=True)
    curve = SeedCurve("a", 1, "valid_per", (1, 2), (0.5, 0.25))
    study = Study(sweep.name, (replicate("a", 1, run_id="1"),), validations=Validations({}, (curve,)))
    assert with_validations(sweep, study, new_settings(tmp_path)).validations.curves == (curve,)


@pytest.mark.every_store
def test_what_a_bundle_brought_has_no_curve_of_an_earlier_try_here(tracking, recorded):
    sweep, study = recorded
    name = sweep.conditions[0].name
    joined = replace(study, elsewhere={(name, 1)})
    assert [one.seed for one in read_validations(sweep, joined, tracking._settings).curves] == [2]


def test_of_a_large_study_none_are_read(tmp_path):
    sweep = find_sweep("asr.demo", smoke=True)
    many = tuple(replicate("a", seed, run_id=str(seed)) for seed in range(MOST_REPLICATES + 1))
    assert read_validations(sweep, Study(sweep.name, many), new_settings(tmp_path)) == Validations()
