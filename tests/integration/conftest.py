"""One small Ray instance for all integration tests, and a tracking store whose tables are made."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


@pytest.fixture
def workplace(workplace: Path, store: Callable[[Path], None]) -> Path:
    """The same with an empty store, for making one takes seconds."""
    store(workplace)
    return workplace


@pytest.fixture(scope="session")
def ray_instance() -> Iterator[None]:
    """Two CPUs on this machine; drivers find it initialised and use it."""
    import os

    from orchestrator.cluster import token as ray_token
    from orchestrator.cluster.session import RAY_SETTINGS
    from orchestrator.cluster.worker_setup import runtime_environment

    os.environ |= RAY_SETTINGS
    ray_token.prepare("local")
    import ray

    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        runtime_env=runtime_environment(),
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
    yield
    ray.shutdown()
