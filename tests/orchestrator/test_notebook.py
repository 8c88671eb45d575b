import pytest

from orchestrator import notebook
from orchestrator.driver import Outcome
from orchestrator.study import Study
from search_spaces.find import find_sweep
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


@pytest.fixture
def driver(workplace, monkeypatch):
    """Stands in for Ray: notes what it is given and records one replicate."""
    calls = []

    def launch(sweep, settings, console, cpus, accept_code):
        calls.append((sweep.name, cpus, accept_code))
        Store(settings.runs / "mlflow.db", sweep.name).write([replicate("a", 1)], revision=1)
        return Outcome((), ("A file is broken.",) if cpus == 13 else ())

    monkeypatch.setattr("orchestrator.launch.launch", launch)
    return calls


def test_run_checks_runs_and_loads(driver):
    study = notebook.run("asr.demo", cpus=2, smoke=True)
    assert driver == [("asr.demo.smoke", 2, False)]
    assert [(r.condition, r.seed) for r in study.replicates] == [("a", 1)]
    assert notebook.run(find_sweep("act.tau_parity_laptop"), accept_code=True).sweep == "act.tau_parity_laptop"
    assert driver[-1] == ("act.tau_parity_laptop", None, True)


def test_a_mistake_that_only_the_work_finds_is_raised(driver):
    with pytest.raises(InputError, match="A file is broken"):
        notebook.run("asr.demo", cpus=13)


def test_smoke_goes_with_names_only(driver):
    with pytest.raises(InputError, match="`smoke` goes with the name"):
        notebook.run(find_sweep("asr.demo"), smoke=True)
    assert driver == []


def test_pareto_of_a_study_and_of_a_name(workplace):
    store = Store(workplace / "runs" / "mlflow.db")
    store.write([replicate("dear", 1, metrics={"per@e": 0.1, "macs_per_frame@e": 9.0, "loss": 1.0})], revision=1)
    store.write([replicate("bad", 1, metrics={"per@e": 0.2, "macs_per_frame@e": 9.0, "loss": 0.5})], revision=2)
    assert [(p.name, p.is_front) for p in notebook.pareto("asr.demo")] == [("dear", True), ("bad", False)]
    found = notebook.pareto(Study.load("asr.demo"), [Objective("per"), Objective("loss")])
    assert [p.is_front for p in found] == [True, True]
