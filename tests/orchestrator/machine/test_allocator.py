"""A process that computes keeps the memory of the arrays that it has freed, unless its user has said otherwise."""

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy
from orchestrator.machine.allocator import keep_freed_memory
if {keeps}:
    print(keep_freed_memory())
numpy.ones(2**24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    numpy.ones(2**24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
NUM_PAGES = 5 * 8 * 2**24 // os.sysconf("SC_PAGE_SIZE")

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these thresholds")


def printed(keeps: bool, **variables: str) -> list[str]:
    """What the program says, without huge pages, of which a fault brings many."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", PROGRAM.format(keeps=keeps)],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"NUMPY_MADVISE_HUGEPAGE": "0"} | variables,
    )
    return done.stdout.split()


def test_what_is_freed_is_used_again_and_not_fetched_from_the_kernel():
    (faults,) = printed(keeps=False)
    assert int(faults) > 0.9 * NUM_PAGES
    kept, faults = printed(keeps=True)
    assert kept == "True"
    assert int(faults) < 0.01 * NUM_PAGES


def test_thresholds_of_the_user_stand():
    kept, faults = printed(keeps=True, MALLOC_MMAP_THRESHOLD_="131072")
    assert kept == "False"
    assert int(faults) > 0.9 * NUM_PAGES
