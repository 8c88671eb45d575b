from dataclasses import replace

import pytest

from orchestrator.results.reference import find_reference, recorded_question
from orchestrator.results.study import Study
from search_spaces.sweep import Sweep
from tests.integration.sweeps import tiny
from tests.orchestrator.recorded import replicate
from trainables.errors import InputError

SETTINGS = {"a,level=0.25": {"first.level": "0.25"}, "a,num_epochs=2": {"num_epochs": "2"}}
NONE = "Nothing is compared with the reference"


def sweep() -> Sweep:
    return tiny({"a": {}, "b": {"x": 0.25}, "a,x=0.75": {"x": 0.75}}, reference="a")


def study(*names: str, state: str = "complete") -> Study:
    settings = {name: SETTINGS[name] for name in names if name in SETTINGS}
    return Study("tiny.sweep", tuple(replicate(name, 1, state=state) for name in names), settings=settings)


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        (("b", "a", "a,level=0.25"), "a"),
        (("b", "a,level=0.25"), "a,level=0.25"),
        (("b", "a,x=0.75"), "a"),  # a condition of its own, with a name like that of a setting; `a` is not there
        (("b", "a,first.level=0.25"), "a,first.level=0.25"),  # as an earlier version called it
        (("a,level=0.25", "a,num_epochs=2"), ""),
        (("b",), "a"),
    ],
)
def test_the_reference_is_the_declared_one_or_the_only_one_with_settings(recorded, name):
    found = find_reference(sweep(), study(*recorded))
    assert found.name == name
    assert (NONE in found.note) == (not name)
    assert bool(found.note) == (name != "a")


def test_with_settings_asked_for_it_is_that_with_these():
    both = study("a", *SETTINGS)
    assert find_reference(sweep().with_values({"num_epochs": 2}), both).name == "a,num_epochs=2"
    older = study("a", "a,first.level=0.5,num_epochs=2", "a,first.level=0.25")
    assert find_reference(sweep().with_values({"first.level": 0.25}), older).name == "a,first.level=0.25"
    assert find_reference(sweep().with_values({"num_epochs": 3}), both).name == "a,num_epochs=3"  # not recorded


def test_only_a_condition_with_a_complete_replicate_is_taken():
    running = study("a", "a,level=0.25", state="running")
    done = study("a,num_epochs=2")
    mixed = replace(done, replicates=(*running.replicates, *done.replicates), settings=SETTINGS)
    assert find_reference(sweep(), mixed).name == "a,num_epochs=2"


def test_one_that_is_asked_for_must_be_shown():
    assert find_reference(sweep(), study("a", "b"), "b").name == "b"
    assert find_reference(sweep(), study("a,level=0.25", "b"), "a").name == "a,level=0.25"
    with pytest.raises(InputError, match=r"no results of the condition 'c'; its conditions are a, b\."):
        find_reference(sweep(), study("a", "b"), "c")


def test_what_ran_under_an_older_declaration_is_told_and_counts_as_it_ran():
    """But not what changes no key, such as where data lie, nor a field that there was not yet."""
    ran = {"x": "0.25", "first.level": "0.75", "sleep_s": "9.0"}
    found = recorded_question(sweep(), replace(study("a", "b"), configs={"b": ran}))
    assert found.notes == ("Ran with other settings than are declared now: b; of b first.level was 0.75, now 0.5.",)
    assert found.configs["b"]["first.level"] == "0.75" and found.configs["a"]["first.level"] == "0.5"
    alike = ran | {"first.level": "0.5", "evaluations": "(TinyEvaluation(name='older'),)"}
    assert recorded_question(sweep(), replace(study("a", "b"), configs={"b": alike})).notes == ()
