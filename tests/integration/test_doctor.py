"""Data that changed after a real run, and the nodes of a real cluster, of one node."""

import pytest

from orchestrator.checks import exposure
from orchestrator.checks import nodes as preflight_nodes
from orchestrator.checks.check import Check
from orchestrator.cli import doctor
from orchestrator.cluster import address as cluster_address
from orchestrator.cluster import token as ray_token
from orchestrator.environment.settings import read_settings
from tests.integration import tiny as tiny_trainable
from tests.integration.sweeps import run_quietly, tiny


@pytest.fixture(autouse=True)
def alone(workplace, tmp_path_factory, monkeypatch) -> None:
    """A home without secrets, on a machine where nothing else listens; the token is that of the tests' cluster."""
    monkeypatch.setenv("RAY_AUTH_TOKEN", ray_token.token())
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setattr(exposure, "listeners", lambda: iter(()))


@pytest.mark.slow
def test_a_named_cluster_answers_and_its_nodes_report(ray_instance, workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace / "own"))
    import ray

    address = ray.get_runtime_context().gcs_address
    assert address in cluster_address.other_instances()
    monkeypatch.setenv("RAY_ADDRESS", address)
    settings = read_settings()
    checks = {check.name: check for check in doctor.diagnose(tiny({"a": {}}), settings)}
    assert checks["ray"].found == f"RAY_ADDRESS={address} answers"
    assert checks["versions"].found == "one machine"
    assert checks["storage on nodes"].found == f"1 node can write {settings.runs}"
    assert {check.state for check in checks.values()} == {"ok"}
    assert list(settings.runs.iterdir()) == []
    assert ray.is_initialized()


@pytest.mark.slow
def test_a_trainable_that_a_node_cannot_import_is_said_of_the_node(ray_instance, workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_RUNS", str(workplace / "own"))
    settings = read_settings()
    settings.runs.mkdir()
    mark = settings.runs / "mark"
    mark.touch()
    import ray

    nodes = [str(node["NodeID"]) for node in ray.nodes()]
    asked = (str(mark), "", "tests.integration.no_such_trainable", "")
    (sentence,) = cluster_address.ask_nodes(preflight_nodes._report, asked, nodes).values()
    assert "no_such_trainable" in sentence


def test_data_that_changed_after_a_run_are_found(workplace, monkeypatch):
    sweep = tiny({"a": {"num_epochs": 1}}, seeds=(1,))
    assert run_quietly(sweep).num_failed == 0
    before = {check.name: check for check in doctor.diagnose(sweep, read_settings())}
    assert before["data"] == Check("data", "ok", "fingerprint tiny, as before")
    assert before["tracking"].found.endswith("mlflow.db answers")
    monkeypatch.setattr(tiny_trainable, "fingerprint", lambda config: "other")
    after = {check.name: check for check in doctor.diagnose(sweep, read_settings())}
    assert after["data"].state == "failed"
    assert "fingerprint tiny, but now it is other" in after["data"].found
