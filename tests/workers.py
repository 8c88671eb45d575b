"""Which tests run side by side: a worker takes a whole file, and one worker all files on Ray, so that there is one Ray.

Marks of groups would say the same, but pytest 9.2 has no `_nodeid`, by which pytest-xdist 3.8 passes them on.
"""

import os
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

MOST_WORKERS: Final = 4  # of some 2 GB each
ON_RAY: Final = frozenset(
    f"tests/{name}.py"
    for name in (
        "integration/test_autoscaling", "integration/test_bucket",
        "integration/test_command",
        "integration/test_doctor", "integration/test_examples", "integration/test_faults",
        "integration/test_jobs", "integration/test_lost_ray", "integration/test_on_ray", "integration/test_overhead",
        "integration/test_recogniser", "integration/test_secrets", "integration/test_small_nodes",
        "test_conditional_page", "test_own_model", "test_packaging", "test_ponderay",
    )
)  # fmt: skip
"""Files with tests that start Ray or use the tests' own."""

LONGEST: Final = frozenset(
    {"tests/cluster/test_cluster.py", "tests/cluster/test_slurm.py", "tests/trainables/act/test_train.py"}
)
"""Files that begin first, for one that begins last would keep a single worker busy."""


class FilesToWorkers(LoadScopeScheduling):
    """Gives workers file after file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/cluster/"):
            return "machines"  # made of namespaces, one lot at a time, beside the one Ray of the others
        return "Ray" if file in ON_RAY else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FilesToWorkers:
    """In place of pytest-xdist's own."""
    return FilesToWorkers(config, log)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """None where a file or two are asked for: each worker loads torch, Ray and MLflow anew."""
    if len(config.args) < 3 and all(".py" in argument for argument in config.args):
        return 0
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a file that uses Ray and is not named above; puts the longest files first."""
    on_ray = {item.location[0] for item in items if "ray_instance" in getattr(item, "fixturenames", ())}
    assert on_ray <= ON_RAY, f"add to ON_RAY in tests/workers.py: {sorted(on_ray - ON_RAY)}"
    items.sort(key=lambda item: item.location[0] not in LONGEST)
