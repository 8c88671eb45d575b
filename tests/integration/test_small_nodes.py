"""A cluster of others, of nodes of just a worker's size: what drives the workers takes no place from them."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from search_spaces.resources import Resources
from search_spaces.sweep import Condition
from tests.integration.sweeps import tiny

pytestmark = [pytest.mark.slow, pytest.mark.long]  # the mission's workers have the size of their nodes, too
ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, os
import ray
from ray.cluster_utils import Cluster
from rich.console import Console
from orchestrator.cluster.address import joined
from orchestrator.run import run
from orchestrator.environment.settings import read_settings
from tests.integration.test_small_nodes import sweep

of_one_cpu = {"num_cpus": 1, "dashboard_agent_listen_port": 0}
cluster = Cluster(initialize_head=True, head_node_args=of_one_cpu | {"include_dashboard": False})
cluster.add_node(**of_one_cpu)
os.environ["RAY_ADDRESS"] = cluster.address
outcome = run(sweep(), read_settings(), Console(quiet=True), None, accept_code=False)
with joined(cluster.address):
    known = ray.get(ray.remote(num_cpus=0)(lambda: os.environ["RAY_ADDRESS"]).remote(), timeout=300)
print(json.dumps([[one.state for one in outcome.replicates], known == cluster.address]))
cluster.shutdown()
"""


def sweep():
    """One replicate, which needs both nodes."""
    return tiny((Condition("a", {}, Resources(num_workers=2)),), seeds=(1,))


def test_workers_of_a_nodes_size_find_their_place_and_each_process_knows_its_own_cluster(workplace):
    """Though another instance of Ray may run on the host."""
    with tempfile.TemporaryDirectory(prefix="nodes-") as folder:  # Ray's sockets want a short path
        environment = os.environ | {"PYTHONPATH": str(ROOT), "RAY_AUTH_MODE": "disabled", "RAY_TMPDIR": folder}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3000, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["complete"], True]
