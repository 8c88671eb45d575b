"""The work that is cut off, in a file of the test's own."""

import pytest

from orchestrator.environment.settings import Settings
from orchestrator.scheduler.task_factory import TaskFactory
from search_spaces.find import find_sweep
from tests.orchestrator.worker.cut_off import SOURCE


@pytest.fixture
def work(workplace, request):
    name = f"toy_{abs(hash(request.node.name))}"
    fault = getattr(request, "param", "KeyError('no such word')")
    (workplace / f"{name}.py").write_text(getattr(request.module, "TOY", SOURCE).replace("OWN_FAULT", fault))
    sweep = find_sweep(f"{workplace / name}.py:toy")
    factory = TaskFactory(sweep, Settings(workplace / "runs", "sqlite:///x.db"), num_gpus=0)
    return factory.replicate(sweep.conditions[0], 1, {}).work
