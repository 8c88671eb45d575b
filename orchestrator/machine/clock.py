"""The clock by which records of several machines are put in order."""

import time


def now_ms() -> int:
    """Milliseconds since 1970 in universal time, as MLflow counts."""
    return time.time_ns() // 1_000_000
