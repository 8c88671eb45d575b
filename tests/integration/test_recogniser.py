"""A recogniser under the driver: evaluations that come later, artifacts, pretraining in several processes."""

import json
from pathlib import Path

import pytest
import torch
from mlflow import MlflowClient

from orchestrator.environment.settings import read_settings
from orchestrator.tracking.client import Tracking
from search_spaces.asr_conditions import AUTOREGRESSIVE, OBJECTIVES
from search_spaces.resources import Resources
from tests.integration.sweeps import run_quietly, tiny
from tests.integration.test_on_ray import run_with_ray
from tests.integration.test_without_ray import starts
from trainables.asr.config import AsrConfig, Evaluation, Optimisation, Pretraining, Random, Recurrent, Surprisal
from trainables.asr.data.config import Synthetic

pytestmark = pytest.mark.usefixtures("workplace")

DATA = Synthetic(num_train_utterances=9, num_validation_utterances=2, num_test_utterances=2)
QUICK = Optimisation(batch_size=4, num_epochs=2, learning_rate=1e-3)
CONFIG = AsrConfig(
    data=DATA,
    ar=Pretraining(data=DATA, hidden_size=8, dropout=0, training=QUICK),
    network=Recurrent(pre_hidden_size=4, big_hidden_size=8, post_hidden_size=4, dropout=0),
    controller=Surprisal(mu=0.5),
    training=QUICK,
)


def sweep(config=CONFIG, name="asr.tiny", **changes):
    fields = {
        "trainable": "trainables.asr.train",
        "base": config,
        "objectives": OBJECTIVES,
        "seeds": (1,),
        "prerequisites": (AUTOREGRESSIVE,),
        "keep_last": True,
    }
    return tiny({"a": {}}, name=name, **fields | changes)


def records(kind):
    journals = Path("runs/replicates").rglob("journal.jsonl")
    return [record for path in journals for record in map(json.loads, path.open()) if record["kind"] == kind]


@pytest.mark.slow
def test_ten_bias_values_on_a_finished_replicate_train_nothing():
    first = run_quietly(sweep()).replicates[0]
    trained = records("metrics")
    common = {"checkpoint_of": "stochastic", "routing": "deterministic"}  # draws of two names differ by chance
    raised = [Evaluation(name=f"bias_{k}", bias_raise=4 * k / 9, **common) for k in range(10)]
    later = run_quietly(sweep(CONFIG.with_value("evaluations", (Evaluation(), *raised)))).replicates[0]
    assert later.key == first.key and later.state == "complete"
    assert records("metrics") == trained
    assert len(records("evaluation")) == 11
    rates = [later.metrics[f"routing_rate@bias_{k}"] for k in range(10)]
    assert rates == sorted(rates) and rates[-1] > rates[0]
    costs = [later.metrics[f"macs_per_frame@bias_{k}"] for k in range(10)]
    assert costs == sorted(costs)
    assert set(starts().values()) == {1, 2}


def test_the_figure_of_an_utterance_is_an_artifact_of_its_run():
    run_quietly(sweep())
    settings = read_settings()
    (replicate,) = Tracking(settings).read_study("asr.tiny").replicates
    listed = MlflowClient(tracking_uri=settings.tracking_uri).list_artifacts(replicate.run_id)
    assert [file.path for file in listed] == ["items_per@stochastic.csv", "utterance_stochastic.png"]


@pytest.mark.usefixtures("ray_instance")
@pytest.mark.slow
@pytest.mark.long  # as in tests/trainables/asr/test_distributed.py without Ray
def test_two_processes_train_a_recogniser_as_one_does():
    """Without dropout and with p_big = 1, what data-parallel training computes does not depend on their number."""
    config = CONFIG.with_value("controller", Random(p_big=1))
    one = run_quietly(sweep(config, "asr.one")).replicates[0]
    two = run_with_ray(sweep(config, "asr.two", resources=Resources(num_workers=2))).replicates[0]
    assert two.state == "complete"
    for metric in ("train_loss_nats", "valid_loss_nats@stochastic", "macs_per_frame@stochastic", "gradient_norm"):
        assert two.metrics[metric] == pytest.approx(one.metrics[metric], rel=1e-4), metric
    states = assert_like_weights("recogniser", "asr.one", "asr.two")
    assert [len(state["rng"]) for state in states] == [1, 2]


def assert_like_weights(part, *names):
    states = [
        torch.load(next(Path(f"runs/replicates/{name}").rglob("step_000002*.pt")), weights_only=True) for name in names
    ]
    torch.testing.assert_close(states[1][part], states[0][part], rtol=1e-3, atol=1e-5)
    return states
