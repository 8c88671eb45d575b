"""A cluster of three machines: brought up, used, hurt and taken down, by the commands that a user types."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = ("sshd", "ssh", "rsync", "ip", "unshare")
LIMIT_S = 2400


def hindrance() -> str:
    """Why machines of their own cannot be made here; empty where they can."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program, path=path)]
    if os.geteuid() != 0 or missing:
        return f"namespaces need root and {', '.join(missing or PROGRAMS)}"
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) and not shutil.which("initdb"):
        return "the head needs PostgreSQL"
    asked = subprocess.run(  # noqa: S603
        [str(HERE / "hosts.sh"), "--permitted"], capture_output=True, text=True, check=False
    )
    return f"namespaces are not permitted: {asked.stderr.strip()}" if asked.returncode else ""


@pytest.mark.cluster
@pytest.mark.long
def test_a_cluster_comes_up_runs_a_sweep_while_a_machine_dies_and_goes_down(workplace, capfd):
    why = hindrance()
    with capfd.disabled():
        print(f"\n{why}; so on loopback, without `ray up`" if why else "\nthree machines as namespaces", flush=True)
        assert ended_with("tests.cluster.loopback" if why else "tests.cluster.scenario", workplace, bool(why)) == 0


def ended_with(module: str, folder: Path, is_on_loopback: bool = False) -> int:
    """The status with which a scenario ends, on machines of its own unless it is on loopback."""
    environment = os.environ | {"RAY_AUTH_MODE": "token", "RAY_UP_enable_autoscaler_v2": "0"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
    environment |= {"HOSTS_VENV": sys.prefix, "HOSTS_FOLDER": str(folder)}
    command = [*([] if is_on_loopback else [str(HERE / "hosts.sh")]), sys.executable, "-m", module, str(folder)]
    return subprocess.run(command, env=environment, cwd=ROOT, timeout=LIMIT_S, check=False).returncode  # noqa: S603
