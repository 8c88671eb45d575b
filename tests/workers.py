"""Which tests run side by side: a worker takes a whole file, and one worker all files of a lot that shares a Ray.

Marks of groups would say the same, but pytest 9.2 has no `_nodeid`, by which pytest-xdist 3.8 passes them on.
"""

import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

MEMORY: Final = Path("/dev/shm")
LEAST_FREE_BYTES: Final = 4 << 30  # a run of the quick tests leaves .8 GB
IN_MEMORY: Final = "PONDERAY_TESTS_IN"  # by which workers know the folder

MOST_WORKERS: Final = 4  # of some 2 GB each
SHARED_RAYS: Final = tuple(
    frozenset(f"tests/{name}.py" for name in names)
    for names in (
        (
            "integration/test_autoscaling", "integration/test_doctor", "integration/test_on_ray",
            "integration/test_recogniser",
        ),
        (
            "integration/test_bucket", "integration/test_day", "integration/test_examples", "test_conditional_page",
            "test_own_model",
        ),
    )
)  # fmt: skip
"""Files with tests on the one Ray of their worker's session: two lots, of a quarter of an hour each."""

SHARED_SERVER: Final = frozenset(f"tests/integration/{name}.py" for name in ("test_study_copy", "test_tracking_server"))
"""Files whose quick tests use the session's one tracking server, which takes ten seconds to start."""

OWN_RAYS: Final = (
    frozenset(
        f"tests/{name}.py"
        for name in ("integration/test_jobs", "integration/test_overhead", "integration/test_small_nodes")
    ),
    frozenset(
        f"tests/{name}.py"
        for name in (
            "integration/test_lost_ray", "integration/test_secrets", "integration/test_working_folder",
            "test_ponderay",
        )
    ),
)  # fmt: skip
"""Files whose programs start a Ray each, and mostly wait for it: two lots, each one test after the other."""

LONGEST: Final = (
    frozenset({"tests/cluster/test_mission.py"}),
    *SHARED_RAYS,
    *reversed(OWN_RAYS),
    frozenset({"tests/search_spaces/test_asr_controls.py", "tests/trainables/act/test_train.py"}),
)
"""Files that begin first, in this order, for one that begins last would keep a single worker busy."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Folders of quick tests lie in memory: a disk takes milliseconds for each of their many thousand syncs.

    What a loss of power leaves is tested by recorded operations, on no disk. Slow tests, and what `--basetemp`
    places, stay on the disk.
    """
    if IN_MEMORY not in os.environ and "not slow" in config.option.markexpr and not config.option.basetemp:
        has_room = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > LEAST_FREE_BYTES
        if has_room and os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > LEAST_FREE_BYTES:
            for old in MEMORY.glob("ponderay-tests-*"):  # of a run that was killed
                if not Path("/proc", old.name.split("-")[2]).exists():
                    shutil.rmtree(old, ignore_errors=True)
            prefix = f"ponderay-tests-{os.getpid()}-"
            place = os.environ[IN_MEMORY] = tempfile.mkdtemp(prefix=prefix, dir=MEMORY)
            Path(place).chmod(0o711)  # PostgreSQL's user passes through
            config.add_cleanup(functools.partial(shutil.rmtree, place, ignore_errors=True))
    tempfile.tempdir = os.environ.get(IN_MEMORY)


@pytest.fixture(scope="session")
def ray_instance() -> Iterator[None]:
    """Two CPUs on this machine, as a command starts them for itself; drivers of this process find them and use them."""
    from orchestrator.cluster.session import ray_session

    with ray_session(2, is_verbose=False):
        yield


class FilesToWorkers(LoadScopeScheduling):
    """Gives workers file after file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/cluster/") and file not in LONGEST[0]:
            return "machines"  # made of namespaces, one lot at a time, beside the Rays of the others
        if file in SHARED_SERVER:
            return "server"
        return next((f"Ray, lot {n}" for n, lot in enumerate((*SHARED_RAYS, *OWN_RAYS)) if file in lot), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FilesToWorkers:
    """In place of pytest-xdist's own."""
    return FilesToWorkers(config, log)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """None where a file or two are asked for: each worker loads torch, Ray and MLflow anew. Else three for two CPUs.

    A third of their time tests wait: for a disk, a clock or another process.
    """
    if len(config.args) < 3 and all(".py" in argument for argument in config.args):
        return 0
    return min(3 * len(os.sched_getaffinity(0)) // 2, MOST_WORKERS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses a file that uses Ray and is not named above; puts the longest files first."""
    on_ray = {item.location[0] for item in items if "ray_instance" in getattr(item, "fixturenames", ())}
    named = frozenset().union(*SHARED_RAYS)
    assert on_ray <= named, f"add to SHARED_RAYS in tests/workers.py: {sorted(on_ray - named)}"
    items.sort(key=lambda item: next((n for n, files in enumerate(LONGEST) if item.location[0] in files), len(LONGEST)))
