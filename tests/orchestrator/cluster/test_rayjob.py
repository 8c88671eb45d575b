"""The RayJob that is printed: what KubeRay and Kubernetes know, and no secret."""

import copy
import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from orchestrator.cluster import rayjob
from orchestrator.cluster.rayjob import Pods
from orchestrator.cluster.submission import Submission
from trainables.errors import InputError

SCHEMA = json.loads((Path(__file__).parent / "rayjob.schema.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
ENTRYPOINT = "python -m orchestrator run asr.demo --set 'data.root=/a b'"
ON_BUCKET = {"PONDERAY_STORAGE": "s3://lab/runs", "PONDERAY_TRACKING_URI": "http://lab:5000"}


def manifest(variables: dict[str, str], claim: str | None = None, gpus: int = 1) -> dict[str, Any]:
    return ray_job(Submission("asr.demo.smoke", ENTRYPOINT, variables), Pods("lab/ponderay:1", 3, 4, gpus, claim))


def ray_job(submission: Submission, pods: Pods) -> dict[str, Any]:
    return yaml.safe_load(rayjob.manifest(submission, pods))


def containers(job: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    cluster = job["spec"]["rayClusterSpec"]
    head, workers = cluster["headGroupSpec"], cluster["workerGroupSpecs"][0]
    return tuple(group["template"]["spec"]["containers"][0] for group in (head, workers))


@pytest.mark.parametrize("claim", [None, "shared"])
@pytest.mark.parametrize("gpus", [0, 2])
def test_it_is_a_ray_job(claim, gpus):
    VALIDATOR.validate(manifest(ON_BUCKET | {"PONDERAY_RUNS": "/mnt/runs"}, claim, gpus))


def test_sweeps_have_names_of_their_own_that_kubernetes_takes():
    sweeps = ("lm.x_smoke", "lm.x.smoke", f"asr.{'long' * 12}_one", f"asr.{'long' * 12}_two", "asr.demo", "2026.toy")
    names = [ray_job(Submission(one, "run", ON_BUCKET), Pods("x", 1, 1, 0, None))["metadata"]["name"] for one in sweeps]
    assert len(set(names)) == 6
    assert all(re.fullmatch(r"[a-z][a-z0-9-]{1,45}[a-z0-9]", name) for name in names)


def test_every_misspelt_field_is_an_error():
    whole = manifest(ON_BUCKET | {"PONDERAY_RUNS": "/mnt/runs"}, "shared")
    free = {"labels", "rayStartParams", "requests", "limits"}
    paths = list(fields(whole, free | {"metadata"}))
    assert len(paths) > 50
    for path in paths:
        misspelt = copy.deepcopy(whole)
        parent = misspelt
        for part in path[:-1]:
            parent = parent[part]
        parent[f"{path[-1]}s"] = parent.pop(path[-1])
        assert not VALIDATOR.is_valid(misspelt), path


def fields(value: Any, free: set[str], path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field but those within objects whose fields are anybody's."""
    for part, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if isinstance(part, str):
            yield (*path, part)
        if part not in free:
            yield from fields(inner, free, (*path, part))


def test_it_asks_for_a_token_and_ends_with_its_job():
    job = manifest(ON_BUCKET)
    spec = job["spec"]
    assert (job["metadata"]["name"], spec["entrypoint"]) == ("asr-demo-smoke-5feb49", ENTRYPOINT)
    assert spec["metadata"] == {"ponderay.sweep": "asr.demo.smoke", "ponderay.rayjob": "asr-demo-smoke-5feb49"}
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    assert spec["rayClusterSpec"]["rayVersion"] == version("ray")


def test_the_head_trains_nothing_and_workers_get_what_is_asked_for():
    job = manifest(ON_BUCKET, gpus=2)
    head, worker = containers(job)
    assert job["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    assert "nvidia.com/gpu" not in head["resources"]["limits"]
    assert worker["resources"]["limits"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "2"}
    assert worker["resources"]["limits"] == worker["resources"]["requests"]
    workers = job["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    assert [workers[name] for name in ("replicas", "minReplicas", "maxReplicas")] == [3, 3, 3]
    for container in (head, worker):
        assert container["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]


def test_secrets_are_named_and_not_held():
    for container, names in zip(
        containers(manifest(ON_BUCKET)),
        (
            {"MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "PONDERAY_SEARCH_URI"},
            set(),
        ),
        strict=True,
    ):
        plain = {one["name"] for one in container["env"] if "value" in one}
        secret = {one["name"]: one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one}
        assert set(ON_BUCKET) <= plain
        assert set(secret) == names | {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
        assert all(one == {"name": "ponderay", "key": name, "optional": True} for name, one in secret.items())
        assert not plain & set(secret)


def test_a_claim_is_mounted_where_runs_are_kept():
    job = manifest({"PONDERAY_RUNS": "/mnt/runs"}, "shared")
    for container in containers(job):
        assert {"name": "runs", "mountPath": "/mnt/runs"} in container["volumeMounts"]
    assert '"persistentVolumeClaim": {"claimName": "shared"}' in json.dumps(job)


def test_pods_have_the_account_the_secret_and_the_tolerations_that_were_given():
    pods = Pods("x", 1, 1, 1, None, "trainer", "registry", ("lab/team=speech", "spot"))
    job = ray_job(Submission("asr.demo", "run", ON_BUCKET | {"AWS_ENDPOINT_URL": "http://minio:9000"}), pods)
    VALIDATOR.validate(job)
    cluster = job["spec"]["rayClusterSpec"]
    for group, is_worker in ((cluster["headGroupSpec"], False), (cluster["workerGroupSpecs"][0], True)):
        spec = group["template"]["spec"]
        assert spec["serviceAccountName"] == "trainer" and spec["imagePullSecrets"] == [{"name": "registry"}]
        assert spec["tolerations"] == [
            {"key": "lab/team", "operator": "Equal", "value": "speech"},
            {"key": "spot", "operator": "Exists"},
            *([{"key": "nvidia.com/gpu", "operator": "Exists"}] if is_worker else []),
        ]
        assert {"name": "AWS_ENDPOINT_URL", "value": "http://minio:9000"} in spec["containers"][0]["env"]
    with pytest.raises(InputError, match="--toleration must be KEY or KEY=VALUE"):
        ray_job(Submission("asr.demo", "run", ON_BUCKET), Pods("x", 1, 1, 0, None, tolerations=("a b",)))


NO_BUCKET = ON_BUCKET | {"PONDERAY_STORAGE": "/mnt/runs"}


@pytest.mark.parametrize("runs", ["runs", "~/runs"])
def test_a_claim_is_mounted_at_a_path_from_the_root(runs):
    with pytest.raises(InputError, match=f"a path from /, but got '{runs}'"):
        manifest({"PONDERAY_RUNS": runs}, "shared")


@pytest.mark.parametrize(
    ("variables", "claim"), [({}, None), ({"PONDERAY_RUNS": "/r"}, None), (ON_BUCKET, "shared"), (NO_BUCKET, None)]
)
def test_results_need_a_place_that_outlives_the_pods(variables, claim):
    with pytest.raises(InputError, match=r"need storage that stays: .*PONDERAY_STORAGE.*--claim NAME"):
        manifest(variables, claim)


def test_a_pods_own_loopback_keeps_no_records():
    for claim in (None, "shared"):
        with pytest.raises(InputError, match=r"an address that a pod reaches, but http.* is loopback"):
            manifest(ON_BUCKET | {"PONDERAY_TRACKING_URI": "http://127.0.0.1:5000"}, claim)


def test_variables_that_kubernetes_would_not_read_are_refused():
    variables = {"PONDERAY_RUNS": "$HOME/runs"}
    with pytest.raises(InputError, match=r"^Kubernetes does not replace \$NAME in `--env PONDERAY_RUNS`; write"):
        manifest(variables, claim="shared")


def test_records_need_a_server_or_a_claim():
    with pytest.raises(InputError, match=r"records need a server: `--env PONDERAY_TRACKING_URI=URL`\."):
        manifest({"PONDERAY_STORAGE": "s3://lab/runs"})
    with pytest.raises(InputError, match="records need a server"):
        manifest(ON_BUCKET | {"PONDERAY_TRACKING_URI": "sqlite:////tmp/x.db"})
    with pytest.raises(InputError, match=r"need storage that stays: .*; and its records need a server"):
        manifest({})
    manifest({"PONDERAY_RUNS": "/mnt/runs"}, "shared")


def test_any_text_comes_through_the_template_as_it_is():
    hostile = "\U0001f600 a: {b} # \"c\" 'd' {{ e }}\n- f"
    job = ray_job(Submission("asr.demo", hostile, ON_BUCKET | {"PONDERAY_DATA": hostile}), Pods(hostile, 1, 1, 0, None))
    (head, _) = containers(job)
    assert (job["spec"]["entrypoint"], head["image"]) == (hostile, hostile)
    assert {"name": "PONDERAY_DATA", "value": hostile} in head["env"]


def test_what_must_be_there_before_is_said_above_it():
    said = rayjob.manifest(Submission("asr.demo.smoke", ENTRYPOINT, ON_BUCKET), Pods("lab/ponderay:1", 3, 4, 1, None))
    assert "AWS_SECRET_ACCESS_KEY" in said.splitlines()[1]
    assert "kubectl delete rayjob asr-demo-smoke-5feb49, then apply this again." in said.splitlines()[2]
