import pytest

from orchestrator.results.outcome import Outcome
from orchestrator.results.study import Study
from orchestrator.tracking.load import load_study
from ponderay import notebook
from search_spaces.find import find_sweep
from search_spaces.sweep import Objective
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


@pytest.fixture
def driver(workplace, monkeypatch):
    """Stands in for Ray: notes what it is given and records one replicate."""
    calls = []

    def run(sweep, settings, console, cpus, accept_code, retry, again):
        calls.append((sweep.name, cpus, accept_code, *retry))
        Store(settings.runs / "mlflow.db", sweep.name).write([replicate("a", 1)], revision=1)
        return Outcome((), ("A file is broken.",) if cpus == 13 else ())

    monkeypatch.setattr("orchestrator.run.run", run)
    return calls


def test_run_checks_runs_and_loads(driver):
    study = notebook.run("asr.demo", cpus=2, smoke=True)
    assert driver == [("asr.demo.smoke", 2, False)]
    assert [(r.condition, r.seed) for r in study.replicates] == [("a", 1)]
    assert notebook.run(find_sweep("act.tau_parity_laptop"), accept_code=True).sweep == "act.tau_parity_laptop"
    assert driver[-1] == ("act.tau_parity_laptop", None, True)


def test_failures_that_are_to_be_tried_again_are_handed_on(driver):
    notebook.run("asr.demo", retry=["random"])
    assert driver == [("asr.demo", None, False, "random")]


def test_conditions_without_a_failure_cannot_be_tried_again(workplace):
    store = Store(workplace / "runs" / "mlflow.db")
    store.write([replicate("random", 1, state="failed")], revision=1)
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
    with pytest.raises(InputError, match=r"my\.sweep has no results of the condition 'c'; its conditions are a, b"):
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


def several(*states: str) -> Study:
    """The conditions of these states, with two seeds and two evaluations each."""
    tested = {"per@stochastic": 0.2, "per@greedy": 0.1, "macs@stochastic": 5.0, "macs@greedy": 4.0}
    names = ("surprisal", "random,mu=0.3", "random,mu=0.4")
    replicates = (
        replicate(name, seed, state=state, metrics=tested if state == "complete" else {})
        for name, state in zip(names, states, strict=True)
        for seed in (1, 2)
    )
    settings = {name: {"controller.mu": name[-3:]} for name in names[1:]}
    return Study("my.sweep", tuple(replicates), settings=settings)


OBJECTIVES = [Objective("per"), Objective("macs")]
CONDITIONS = "its conditions are surprisal, random,mu=0.3, random,mu=0.4"


@pytest.mark.parametrize(
    ("ask", "reason"),
    [
        (lambda s: notebook.pareto(s, [Objective("pre"), Objective("macs")]), "'pre' must be a metric; .* is 'per'"),
        (lambda s: notebook.pareto(s, OBJECTIVES, "surprisel"), f"'surprisel'; {CONDITIONS}; the nearest is 'surpr"),
        (lambda s: notebook.pareto(s, OBJECTIVES, ""), f"no results of the condition ''; {CONDITIONS}"),
        (lambda s: notebook.pareto(s, OBJECTIVES, "random"), "'random' is recorded with several settings; name one of"),
        (lambda s: notebook.pareto(s, ["per", "macs"]), "`objectives` must be a list of Objective"),
        (lambda s: notebook.pareto(s, Objective("per")), "`objectives` must be a list of Objective"),
        (lambda s: notebook.pareto(s, set(OBJECTIVES)), "`objectives` must be a list of Objective"),
        (lambda s: notebook.pareto(s, [OBJECTIVES[0], OBJECTIVES[0]]), "Each objective must be named once"),
        (
            lambda s: notebook.pareto(s, [OBJECTIVES[0], Objective("macs", "max")]),
            "minimize or maximize, but got 'max'",
        ),
        (lambda s: notebook.compare(s, "surprisal", "random,mu=0.3", [Objective("pre")]), "nearest is 'per'"),
        (
            lambda s: notebook.compare(s, "surprisal@greedy", "random@greedy", OBJECTIVES),
            "'random' is recorded with several",
        ),
        (lambda s: notebook.compare(s, "surprisal@greddy", "random,mu=0.3", OBJECTIVES), "nearest is 'greedy'"),
        (
            lambda s: notebook.compare(s, "surprisal", "random,mu=0.3", OBJECTIVES),
            "'surprisal' has several evaluations",
        ),
        (lambda s: notebook.compare(s, *["surprisal@greedy"] * 2, OBJECTIVES), "both are surprisal@greedy"),
        (lambda s: notebook.compare(s, "surprisal@greedy", "random,mu=0.4@greedy", OBJECTIVES), "nothing|has none"),
        (
            lambda s: notebook.compare(s, "surprisal@greedy", "random,mu=0.3@greedy", OBJECTIVES, test="t"),
            "`test` must be welch or paired_permutation, but got 't'",
        ),
        (lambda _: notebook.pareto(3, OBJECTIVES), "`study` must be a Study or the name of a sweep that has run"),
        (lambda s: notebook.report(s, "asr.dmeo"), r"There is no sweep 'asr\.dmeo'; .*; the nearest is 'asr\.demo'"),
        (lambda s: notebook.save_report(s, "paper"), r"must be what `report\(study\)` gives, but got a Study"),
        (lambda _: Study.from_dataframe([1]), r"must be a pandas\.DataFrame with one row a run, but got a list"),
        (lambda s: notebook.checkpoint(s, "surprisel", 1), f"'surprisel'; {CONDITIONS}; the nearest is 'surpr"),
    ],
)
def test_a_name_that_is_none_is_refused_with_those_that_there_are(workplace, ask, reason):
    with pytest.raises(InputError, match=reason):
        ask(several("complete", "complete", "failed"))


def test_the_short_name_of_a_condition_with_one_setting_will_do():
    study = several("complete", "complete", "complete")
    study = study.of_conditions(study.conditions[:2])
    assert notebook.pareto(study, OBJECTIVES, "random").reference.startswith("random,mu=0.3@")
    (found, _) = notebook.compare(study, "random@greedy", "surprisal@greedy", OBJECTIVES)
    assert (found.a, found.b) == ("random,mu=0.3@greedy", "surprisal@greedy")


@pytest.mark.parametrize("ask", [notebook.pareto, lambda s, o: notebook.compare(s, "surprisal", "random", o)])
def test_a_study_without_anything_complete_has_no_answer(ask):
    for study in (several("failed", "failed", "failed"), Study("my.sweep", ())):
        with pytest.raises(
            InputError, match=r"No complete replicate of my\.sweep has per and macs; see `ponderay status"
        ):
            ask(study, OBJECTIVES)
