"""The conditions under which each benchmark of models runs, so that all that it compares runs as a replicate does."""

import contextlib
import resource
import sys
from collections.abc import Iterator

import torch

from orchestrator.machine.allocator import keep_freed_memory


@contextlib.contextmanager
def alike() -> Iterator[None]:
    """One torch thread, seed 1 and a replicate's allocator; behind it a line on stderr says what the kernel took.

    Ratios measure the allocator as well where page faults and kernel time are not small beside the rest.
    """
    torch.set_num_threads(1)
    torch.manual_seed(1)
    allocator = "keeps what is freed" if keep_freed_memory() else "is as the environment says"
    before = resource.getrusage(resource.RUSAGE_SELF)
    yield
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"{used.ru_utime - before.ru_utime:.1f} s user, {used.ru_stime - before.ru_stime:.1f} s kernel, "
        f"{used.ru_minflt - before.ru_minflt:,} page faults, {used.ru_maxrss / 1000:,.0f} MB at most; "
        f"the allocator {allocator}",
        file=sys.stderr,
    )
