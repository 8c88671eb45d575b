"""What is said of Ray and its nodes, each check made to pass and to fail without a cluster."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.checks import nodes
from orchestrator.cluster import address as cluster_address
from orchestrator.environment.settings import read_settings
from tests.orchestrator.checks.test_sweep import closed_port


def fake_process(folder: Path, pid: int, *arguments: str) -> None:
    (folder / str(pid)).mkdir(parents=True)
    (folder / str(pid) / "cmdline").write_bytes("\0".join((*arguments, "")).encode())


def test_other_instances_are_read_off_the_processes(tmp_path):
    fake_process(tmp_path, 1, "/usr/bin/python", "--gcs-address=10.0.0.9:1")
    assert cluster_address.other_instances(tmp_path) == []
    fake_process(tmp_path, 2, "/x/ray/core/src/ray/raylet/raylet", "--gcs-address=10.0.0.1:6379", "--y=1")
    fake_process(tmp_path, 3, "/x/gcs_server", "--gcs_server_port=6379", "--node-ip-address=10.0.0.1")
    fake_process(tmp_path, 4, "/x/gcs_server", "--gcs_server_port=7000", "--node-ip-address=10.0.0.1")
    assert cluster_address.other_instances(tmp_path) == ["10.0.0.1:6379", "10.0.0.1:7000"]


@pytest.mark.parametrize(
    ("address", "others", "state"),
    [
        (None, [], "ok"),
        (None, ["10.0.0.1:6379"], "warning"),
        ("local", ["10.0.0.1:6379"], "ok"),
        ("auto", ["10.0.0.1:6379"], "warning"),
        ("auto", [], "failed"),
        ("", ["10.0.0.1:6379"], "ok"),
        ("ray://10.0.0.1:10001", [], "failed"),
        ("10.0.0.1", [], "failed"),
    ],
)
def test_the_cluster_must_be_the_only_one_or_be_named(workplace, monkeypatch, address, others, state):
    monkeypatch.setattr(cluster_address, "other_instances", lambda: others)
    if address is not None:
        monkeypatch.setenv("RAY_ADDRESS", address)
    check = nodes.check_ray()
    assert check.state == state
    assert bool(check.remedy) == (state != "ok")
    assert all(other in check.found for other in others if address not in ("", "local"))


def test_an_address_where_nothing_listens_is_tried_once_and_not_by_ray(workplace, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{closed_port()}")
    tried, create = [], socket.create_connection
    monkeypatch.setattr(socket, "create_connection", lambda *place: tried.append(place) or create(*place))
    monkeypatch.setattr("orchestrator.cluster.address.subprocess.run", lambda *_, **__: pytest.fail("Ray is asked"))
    check = nodes.check_ray()
    assert len(tried) == 1
    assert check.state == "failed"
    assert "Connection refused" in check.found


def test_a_listener_that_is_not_ray_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        fault = cluster_address.address_fault(f"127.0.0.1:{silent.getsockname()[1]}", answer_s=0.5)
    assert fault == "what listens there does not answer as Ray within 0.5 s"


def report(fault: str = "", **versions: str) -> dict[str, object]:
    return {"fault": fault, "versions": versions}


def test_all_nodes_must_have_the_same_versions():
    here = {"python": "3.11.1", "torch": "2.11"}
    same = {"a": report(python="3.11.1", torch="2.11"), "b": report(python="3.11.1", torch="2.11")}
    assert nodes.check_versions(here, same).state == "ok"
    assert nodes.check_versions(here, {"a": same["a"]}).found == "one machine"
    check = nodes.check_versions(here, same | {"c": report(python="3.11.1", torch="2.10")})
    assert check.state == "failed"
    assert check.found == "c has torch 2.10 (here 2.11)"
    assert "c has torch not at all" in nodes.check_versions(here, {"c": report(python="3.11.1")}).found
    assert nodes.check_versions(here, same | {"c": report("No module named 'orchestrator'")}).state == "failed"


def test_all_nodes_must_write_the_same_folder(tmp_path):
    mark = tmp_path / "mark"
    assert "is not the folder that the driver writes" in nodes._storage_fault(mark, "")
    mark.touch()
    assert nodes._storage_fault(mark, "") == ""
    assert list(tmp_path.iterdir()) == [mark]
    assert nodes.check_shared_storage(tmp_path, {"a": report(), "b": report()}).state == "ok"
    check = nodes.check_shared_storage(tmp_path, {"a": report(), "b": report("no answer within 60 s")})
    assert (check.state, check.found) == ("failed", "b: no answer within 60 s")


def test_with_a_bucket_each_node_has_a_folder_of_its_own_and_must_write_the_bucket(tmp_path):
    mark = tmp_path / "runs" / "mark"
    assert nodes._storage_fault(mark, "memory://bucket/runs") == ""
    assert mark.parent.is_dir()
    (tmp_path / "file").touch()
    assert nodes._storage_fault(mark, f"file://{tmp_path}/file/runs")


def test_sqlite_beside_several_nodes_is_a_warning(workplace):
    settings = read_settings()
    assert nodes.check_shared_tracking(settings, 1).state == "ok"
    assert nodes.check_shared_tracking(settings, 2).state == "warning"
    server = replace(settings, tracking_uri="http://server:5000")
    assert nodes.check_shared_tracking(server, 2).state == "ok"
