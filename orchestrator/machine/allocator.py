"""When the C library hands memory back to the kernel, which can take a fifth of the time of a training step."""

import ctypes
import os
from typing import Final

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's malloc.h."""

KEPT_BYTES: Final = {M_MMAP_THRESHOLD: 256 << 20, M_TRIM_THRESHOLD: 1 << 30}
"""The largest tensors of a step at the sources' sizes have 140 MB. A whole corpus should go back once it is freed."""

USERS_OWN: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Has this process keep up to 1 GiB of what it has freed; returns whether it does so from now on.

    glibc gives tensors of more than 32 MiB, and what is free at the end of its heap, back to the kernel at once. The
    next step allocates the same tensors again, and the kernel fills each of their pages with zeros. No digit depends
    on it. Where the user has set glibc's own variables, or where the C library is another, all stays as it is.
    """
    if any(os.environ.get(name) for name in USERS_OWN):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(name, size) for name, size in KEPT_BYTES.items())
