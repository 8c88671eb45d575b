"""The lines that start Ray: nothing goes to Ray's makers, no metric page is open, no starter stays behind."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ray.autoscaler._private.command_runner import _with_environment_variables

from orchestrator.cluster import rayjob
from orchestrator.cluster.rayjob import Pods
from orchestrator.cluster.slurm import TEMPLATE
from orchestrator.cluster.submission import Submission
from orchestrator.machine.network import free_port
from tests.cluster.test_cluster_files import FILES, load
from tests.faults.processes import MARK, kill_all
from tests.waiting import LIMIT_S, until

NODES = ("head", "worker")
OF_RAY_UP = {"RAY_USAGE_STATS_ENABLED": 1}
"""What `ray up` of Ray 2.60 sets before each line of the head, where its user has not turned reports off."""

PORTS = ("DASHBOARD_METRIC_PORT", "AUTOSCALER_METRIC_PORT")


def start_line(name: str, node: str) -> str:
    (line,) = [line for line in load(name)[f"{node}_start_ray_commands"] if "ray start" in line]
    return line


def seen(commands: str) -> tuple[dict[str, str], str]:
    """Variables and arguments of `ray start` in lines of bash, with a `ray` that says them in place of Ray's."""
    stand_in = 'ray() { python -c "import os, json; print(json.dumps(dict(os.environ)))"; echo "$*"; }\n'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    plain = {"PATH": path, "HOME": "/home/x", "RAY_HEAD_IP": "10.0.0.1"}
    done = subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", stand_in + commands], env=plain, capture_output=True, text=True, check=True
    )
    variables, arguments = done.stdout.splitlines()
    return json.loads(variables), arguments


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("name", FILES)
def test_reports_are_off_and_metric_pages_closed_whatever_ray_up_sets_before(name, node):
    variables, arguments = seen(_with_environment_variables(start_line(name, node), OF_RAY_UP))
    assert arguments.startswith("start ")
    check(variables, node)


def check(variables: dict[str, str], node: str) -> None:
    assert variables["RAY_USAGE_STATS_ENABLED"] == "0" and variables["RAY_enable_metrics_collection"] == "0"
    if node == "head":  # it alone reports, and has the pages of the dashboard and of the autoscaler
        assert variables["RAY_USAGE_STATS_REPORT_URL"].startswith("http://127.0.0.1:")
        assert [variables[port] for port in PORTS] == ["-1", "-1"]


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("name", FILES)
def test_no_starter_stays_behind(name, node):
    assert "--block" not in start_line(name, node) and not start_line(name, node).rstrip().endswith("&")


def test_workers_of_ones_own_leave_nothing_that_outlives_rays_own_end():
    assert "--include-log-monitor=false" in start_line("cluster.local.yaml", "worker")


def test_a_job_of_slurm_reports_nothing_and_opens_no_metric_page():
    lines = [line for line in TEMPLATE.read_text(encoding="utf-8").splitlines() if re.match(r"export RAY_", line)]
    check(seen("\n".join(["export RAY_USAGE_STATS_ENABLED=1", *lines, "ray start"]))[0], "head")


def test_a_job_of_kubernetes_reports_nothing_and_opens_no_metric_page():
    variables = {"PONDERAY_STORAGE": "s3://lab/runs", "PONDERAY_TRACKING_URI": "http://lab:5000"}
    job = yaml.safe_load(rayjob.manifest(Submission("asr.demo", "run", variables), Pods("x", 1, 1, 0, None)))
    cluster = job["spec"]["rayClusterSpec"]
    for node, group in (("head", cluster["headGroupSpec"]), ("worker", cluster["workerGroupSpecs"][0])):
        (container,) = group["template"]["spec"]["containers"]
        check({one["name"]: one["value"] for one in container["env"] if "value" in one}, node)


@contextlib.contextmanager
def head(line: str) -> Iterator[Path]:
    """A head started by `line`, with ports and a folder of the test's own; the folder of its session."""
    folder = Path(tempfile.mkdtemp(prefix="r-"))
    line = re.sub(r"--autoscaling-config=\S+", "", line).replace("--port=6379", f"--port={free_port()}")
    names = ("dashboard-port", "dashboard-agent-listen-port", "ray-client-server-port")
    ports = " ".join(f"--{name}={free_port()}" for name in names)
    own = {MARK: str(folder), "RAY_TMPDIR": str(folder), "HOME": str(folder), "RAY_AUTH_MODE": "disabled"}
    path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = ["/bin/bash", "-c", f"{line} --node-ip-address=127.0.0.1 {ports}"]
    try:
        subprocess.run(command, env=os.environ | path | own, check=True, timeout=LIMIT_S)  # noqa: S603
        yield folder / "ray" / "session_latest"
    finally:
        kill_all(folder)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_a_head_started_as_ray_up_does_it_says_itself_that_it_reports_nothing():
    """Its dashboard's log says which it is once it has read the variables; a file of reports would lie beside it."""
    line = _with_environment_variables(start_line("cluster.local.yaml", "head"), OF_RAY_UP)
    with head(line.replace("/mnt/shared/ponderay", "/tmp")) as session:
        log = session / "logs" / "dashboard.log"
        until(lambda: log.exists() and "Usage reporting is" in log.read_text(encoding="utf-8"))
        assert "Usage reporting is disabled." in log.read_text(encoding="utf-8")
        assert not (session / "usage_stats.json").exists()
