import pytest

from orchestrator import notebook
from orchestrator.results.outcome import Outcome
from orchestrator.results.study import Study
from orchestrator.tracking.load import load_study
from search_spaces.find import find_sweep
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


@pytest.fixture
def driver(workplace, monkeypatch):
    """Stands in for Ray: notes what it is given and records one replicate."""
    calls = []

    def launch(factory, console, cpus, accept_code, retry):
        name = factory.sweep.name
        calls.append((name, cpus, accept_code, *retry))
        Store(factory.settings.runs / "mlflow.db", name).write([replicate("a", 1)], revision=1)
        return Outcome((), ("A file is broken.",) if cpus == 13 else ())

    monkeypatch.setattr("orchestrator.launch.launch", launch)
    return calls


def test_run_checks_runs_and_loads(driver):
    study = notebook.run("asr.demo", cpus=2, smoke=True)
    assert driver == [("asr.demo.smoke", 2, False)]
    assert [(r.condition, r.seed) for r in study.replicates] == [("a", 1)]
    assert notebook.run(find_sweep("act.tau_parity_laptop"), accept_code=True).sweep == "act.tau_parity_laptop"
    assert driver[-1] == ("act.tau_parity_laptop", None, True)


def test_failures_that_are_to_be_tried_again_are_handed_on(driver, workplace):
    store = Store(workplace / "runs" / "mlflow.db")
    store.write([replicate("random", 1, state="failed")], revision=1)
    notebook.run("asr.demo", retry=["random"])
    assert driver == [("asr.demo", None, False, "random")]
    with pytest.raises(InputError, match="'surprisal' has no failed replicate"):
        notebook.run("asr.demo", retry=["surprisal"])


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
    store.write([replicate("random", 1, metrics={"per@e": 0.2, "macs_per_frame@e": 9.0, "loss": 0.5})], revision=2)
    found = notebook.pareto("asr.demo")
    assert [(p.name, p.is_front) for p in found.points] == [("dear", True), ("random", False)]
    assert [(m.on_front, m.standing) for m in found.memberships] == [(1.0, "front"), (0.0, "dominated")]
    assert (found.reference, found.memberships[0].dominates_reference) == ("random", 1.0)
    found = notebook.pareto(load_study("asr.demo"), [Objective("per"), Objective("loss")], reference="dear")
    assert [p.is_front for p in found.points] == [True, True] and found.reference == "dear"


def test_a_sweep_of_ones_own_needs_its_objectives():
    study = Study("my.sweep", (replicate("a", 1), replicate("b", 1)))
    with pytest.raises(InputError, match=r"my\.sweep is no shipped sweep, so `objectives` must be given"):
        notebook.pareto(study)
    found = notebook.pareto(study, [Objective("per"), Objective("macs_per_frame")])
    assert (len(found.points), found.reference) == (2, "")


def test_compare_two_points_of_a_study():
    errors = {"a": (0.1, 0.2, 0.3), "b": (0.4, 0.6, 0.5)}
    replicates = [
        replicate(name, seed, metrics={"per@e": error, "macs_per_frame@e": 9.0})
        for name, values in errors.items()
        for seed, error in enumerate(values, start=1)
    ]
    per, macs = notebook.compare(Study("asr.demo", tuple(replicates)), "a", "b")
    assert (per.a, per.b, per.metric, macs.metric) == ("a", "b", "per", "macs_per_frame")
    assert per.difference == pytest.approx(-0.3) and per.is_better
    own = notebook.compare(Study("my.sweep", tuple(replicates)), "b", "a", [Objective("per", "maximize")])
    assert [(one.difference, one.is_better) for one in own] == [(pytest.approx(0.3), True)]
    with pytest.raises(InputError, match=r"my\.sweep has no point 'c' with these metrics; there are a, b"):
        notebook.compare(Study("my.sweep", tuple(replicates)), "a", "c", [Objective("per")])


def test_a_report_in_a_notebook_is_that_of_the_command():
    replicates = [
        replicate(name, seed, metrics={"per@e": error + 0.01 * seed, "macs_per_frame@e": 9.0})
        for name, error in (("surprisal", 0.1), ("random", 0.4))
        for seed in (1, 2, 3)
    ]
    found = notebook.report(Study("asr.demo.smoke", tuple(replicates)))
    assert {one.a for one in found.comparisons} == {"surprisal"} and found.front.reference == "random"
    assert found.question.sweep == "asr.demo.smoke"
    with pytest.raises(InputError, match=r"my\.sweep is no shipped sweep, so `sweep` must be given"):
        notebook.report(Study("my.sweep", tuple(replicates)))


def test_a_study_that_says_its_question_needs_no_sweep():
    frame = Study("any", tuple(replicate(name, seed, metrics={"per": seed / 7}) for name in "ab" for seed in (1, 2, 3)))
    objectives = [Objective("per", "maximize")]
    study = Study.from_dataframe(frame.to_dataframe(), objectives, "theirs", reference="b", test="paired_permutation")
    assert notebook.pareto(study).reference == "b"
    (found,) = notebook.compare(study, "a", "b")
    assert found.is_paired and found.metric == "per"
    answers = notebook.report(study)
    assert answers.question.objectives == tuple(objectives) and [one.a for one in answers.comparisons] == ["a"]
