"""Jobs of Slurm on two machines, with programs of the tests' own in place of Slurm's."""

import os
import subprocess
import sys

import pytest

from tests.cluster.test_cluster import HERE, LIMIT_S, ROOT, hindrance


@pytest.mark.cluster
def test_a_job_runs_a_sweep_on_its_nodes_and_ends_as_the_sweep_does(workplace, capfd):
    if why := hindrance():
        pytest.skip(f"machines of their own cannot be made here: {why}")
    environment = os.environ | {"HOSTS_VENV": sys.prefix, "HOSTS_FOLDER": str(workplace), "NUM_HOSTS": "2"}
    environment["PATH"] = f"{sys.prefix}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
    command = [str(HERE / "hosts.sh"), sys.executable, "-m", "tests.cluster.slurm_scenario", str(workplace)]
    with capfd.disabled():
        print("\ntwo machines as namespaces", flush=True)
        done = subprocess.run(command, env=environment, cwd=ROOT, timeout=LIMIT_S, check=False)  # noqa: S603
    assert done.returncode == 0
