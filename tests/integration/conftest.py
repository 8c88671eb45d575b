"""One small Ray instance for all integration tests, and a tracking store whose tables are made."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.orchestrator.recorded import empty_store


@pytest.fixture
def workplace(workplace: Path) -> Path:
    """The same with an empty tracking store, for making one takes seconds."""
    (workplace / "runs").mkdir()
    (workplace / "runs" / "mlflow.db").write_bytes(empty_store())
    return workplace


@pytest.fixture(scope="session")
def ray_instance() -> Iterator[None]:
    """Two CPUs on this machine; drivers find it initialised and use it."""
    import os

    from orchestrator.ray_session import RAY_SETTINGS
    from orchestrator.worker_process import runtime_environment

    os.environ |= RAY_SETTINGS
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
