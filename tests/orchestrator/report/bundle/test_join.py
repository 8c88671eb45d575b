"""Bundles beside a study: each replicate once, the complete one first, and nothing of another sweep or setting."""

import json
import math
import zipfile
from dataclasses import replace

import pytest

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.join import join_provenance, join_questions, join_studies, read_part
from orchestrator.report.bundle.write import write_bundle
from orchestrator.report.table import to_csv
from orchestrator.results.item_errors import ItemErrors
from orchestrator.results.question import Question
from orchestrator.results.reference import recorded_question
from orchestrator.results.study import Study
from orchestrator.results.validations import SeedCurve, Validations
from search_spaces.find import find_sweep
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.studies import PROVENANCE
from trainables.errors import InputError
from trainables.item_errors import Item

SWEEP = find_sweep("asr.demo", False)
QUESTION = Question.of(SWEEP)
ORDER = [condition.name for condition in SWEEP.conditions]


def bundle(folder, replicates, question=QUESTION, provenance=PROVENANCE, name="there.zip"):
    answers = answer(Study(question.sweep, tuple(replicates)), question)
    write_bundle(folder / name, answers, tables(answers), provenance, "<html></html>")
    return folder / name


def part(folder, replicates, **changes):
    return read_part(bundle(folder, replicates, **changes), SWEEP)


def runs(study):
    return {(one.condition, one.seed): (one.state, one.metrics.get("per@e")) for one in study.replicates}


def one(condition, seed, per=0.25, **changes):
    return replicate(condition, seed, **{"metrics": {"per@e": per, "macs_per_frame@e": 1e6}} | changes)


def test_replicates_of_all_stand_once_in_the_order_of_the_sweep(tmp_path):
    here = Study("asr.demo", (one("random", 1, 0.5), one("always_big", 1, 0.2)))
    there = part(tmp_path, [one("surprisal", 1, 0.3), one("random", 2, 0.4)])
    found, note = join_studies(here, [there], ORDER)
    expected = [("surprisal", 1), ("random", 1), ("random", 2), ("always_big", 1)]
    assert [(one.condition, one.seed) for one in found.replicates] == expected
    assert note == "Replicates from there.zip: 2."


def test_a_complete_replicate_counts_and_of_two_the_one_that_was_here(tmp_path):
    unfinished = [replace(one("random", seed), state="stopped", metrics={}) for seed in (1, 2)]
    here = Study("asr.demo", (one("random", 1, 0.5), unfinished[1], one("random", 3, 0.4), one("random", 4, 0.3)))
    there = part(tmp_path, [unfinished[0], one("random", 2, 0.6), one("random", 3, 0.7), one("random", 4, 0.3)])
    slower = {**here.replicates[3].metrics, "frames_per_s@e": 7.0}
    there = replace(there, study=Study("asr.demo", (*there.study.replicates[:3], one("random", 4, metrics=slower))))
    found, note = join_studies(here, [there], ORDER)
    values = {("random", i + 1): ("complete", per) for i, per in enumerate((0.5, 0.6, 0.4, 0.3))}
    assert runs(found) == values
    assert note == "Replicates from there.zip: 1; 3 are known already, 1 of them with other values of an objective."


def test_the_first_of_two_bundles_counts(tmp_path):
    first = part(tmp_path, [one("random", 1, 0.1)], name="a.zip")
    second = part(tmp_path, [one("random", 1, 0.2), one("surprisal", 1, 0.3)], name="b.zip")
    found, note = join_studies(Study("asr.demo", ()), [first, second], ORDER)
    assert runs(found) == {("random", 1): ("complete", 0.1), ("surprisal", 1): ("complete", 0.3)}
    told = "Replicates from b.zip: 1; 1 are known already, 1 of them with other values of an objective."
    assert note == f"Replicates from a.zip: 1. {told}"


def test_curves_and_items_are_those_of_the_record_that_counts(tmp_path):
    """Of two records with equal values they are of both; of one that was stopped here nothing counts."""

    def with_curve(per, step):
        items = ItemErrors.of({("random", 1, "per@e"): (Item("a", "s", 100 * per, 100.0),)})
        curve = SeedCurve("random", 1, "valid_per", (step,), (per,))
        return Study("asr.demo", (one("random", 1, per),), validations=Validations({}, (curve,)), items=items)

    plain = part(tmp_path, [one("random", 1, 0.3)])
    other, equal = (replace(plain, study=with_curve(*record)) for record in ((0.31, 1), (0.3, 2)))
    stopped = Study("asr.demo", (replace(one("random", 1), state="stopped", metrics={}),))
    for here, num_own in ((stopped, 0), (plain.study, 1)):
        joined, _ = join_studies(here, [plain, other, equal], ORDER)
        assert [curve.steps for curve in joined.validations.curves] == [(2,)]
        assert [errors.errors for errors in joined.items.errors] == [(30.0,)]
        assert len(joined.own("complete")) == num_own


def test_answers_of_what_is_put_together_are_those_of_the_whole(tmp_path):
    """The oracle is the study that was never apart."""
    whole = [one(name, seed, 0.1 * seed + i) for i, name in enumerate(ORDER) for seed in (1, 2, 3)]
    here, there = Study("asr.demo", tuple(whole[:5])), part(tmp_path, whole[5:])
    joined, _ = join_studies(here, [there], ORDER)
    question = join_questions(recorded_question(SWEEP, joined), here, [there])
    expected = tables(answer(Study("asr.demo", tuple(whole)), QUESTION))
    assert [to_csv(table) for table in tables(answer(joined, question))] == [to_csv(table) for table in expected]


def test_what_is_known_of_the_origin_of_what_was_taken_is_kept(tmp_path):
    other = replace(PROVENANCE, commits=("beef",), hosts=("host2",), configs={"surprisal": {"lr": "1"}})
    there = part(tmp_path, [one("random", 1, run_id="theirs")], provenance=other)
    found = join_provenance(PROVENANCE, there.study, [there])
    assert (found.commits, found.hosts) == (("c0ffee+", "beef"), ("host1",)), "hosts stand in the replicates"
    assert found.configs == {"random": {"lr": "0.1"}, "surprisal": {"lr": "1"}}
    assert found.diffs == PROVENANCE.diffs
    ours = Study("asr.demo", (one("random", 1, run_id="ours"),))
    assert join_provenance(PROVENANCE, ours, [there]) == PROVENANCE, "nothing of it counts"


def test_conditions_that_only_a_bundle_has_keep_its_configs(tmp_path):
    changed = {name: {**config, "data.root": "/there"} for name, config in QUESTION.configs.items()}
    there = part(tmp_path, [one("surprisal", 1)], question=replace(QUESTION, configs=changed))
    found = join_questions(QUESTION, Study("asr.demo", (one("random", 1),)), [there])
    assert found.configs["surprisal"]["data.root"] == "/there"
    assert found.configs["random"] == QUESTION.configs["random"]
    own = replace(QUESTION, configs={})
    assert list(join_questions(own, Study("asr.demo", ()), [there]).configs) == ["surprisal"], "no other has run there"


def test_other_settings_of_what_is_learnt_are_refused(tmp_path):
    configs = {**QUESTION.configs, "random": {**QUESTION.configs["random"], "training.learning_rate": "7.0"}}
    file = bundle(tmp_path, [one("random", 1)], replace(QUESTION, configs=configs))
    here = QUESTION.configs["random"]["training.learning_rate"]
    with pytest.raises(InputError, match=rf"in its condition 'random' `training.learning_rate` is 7.0, not {here}"):
        read_part(file, SWEEP)


def test_what_was_logged_counts_before_what_is_declared(tmp_path):
    provenance = replace(PROVENANCE, configs={"random": {"training.num_epochs": "999"}})
    file = bundle(tmp_path, [one("random", 1)], provenance=provenance)
    with pytest.raises(InputError, match=r"'random' `training\.num_epochs` is 999, not "):
        read_part(file, SWEEP)


@pytest.mark.parametrize(
    ("theirs", "path"),
    [({"controller": "None"}, "controller.kind"), ({"network.dropout.kind": "linear"}, "network.dropout")],
)
def test_a_part_on_one_side_and_a_value_on_the_other_are_other_settings(tmp_path, theirs, path):
    config = {name: text for name, text in QUESTION.configs["random"].items() if not name.startswith(path)}
    config = {name: text for name, text in config.items() if not name.startswith("controller")} | theirs
    configs = {"random": config}
    file = bundle(tmp_path, [one("random", 1)], question=replace(QUESTION, configs=configs))
    with pytest.raises(InputError, match=rf"condition 'random' `{path}` is no such setting"):
        read_part(file, SWEEP)


def test_another_key_of_the_same_name_and_data_and_another_evaluation_are_refused(tmp_path):
    there = part(tmp_path, [one("random", 1, key="other")])
    with pytest.raises(InputError, match="'random' seed 1 has others"):
        join_studies(Study("asr.demo", (one("random", 1),)), [there], ORDER)
    with pytest.raises(InputError, match="'e' of 'random' is another"):
        join_studies(Study("asr.demo", (one("random", 2, evaluations=frozenset({"e.ffff"})),)), [there], ORDER)


def test_values_that_are_no_numbers_on_both_sides_are_the_same(tmp_path):
    nan = {"per@e": math.nan, "macs_per_frame@e": 1e6}
    there = part(tmp_path, [one("random", 1), one("random", 2)])
    there = replace(there, study=Study("asr.demo", (one("random", 1, metrics=nan),)))
    _, note = join_studies(Study("asr.demo", (one("random", 1, metrics=nan),)), [there], ORDER)
    assert note == "Replicates from there.zip: 0; 1 are known already, 0 of them with other values of an objective."


def test_another_sweep_and_a_search_are_refused(tmp_path):
    file = bundle(tmp_path, [one("random", 1)])
    with pytest.raises(InputError, match=r"must be a bundle of asr\.demo\.smoke, but is one of asr\.demo\."):
        read_part(file, find_sweep("asr.demo", True))
    search = find_sweep("asr.laptop_search_learned", False)
    found = bundle(tmp_path, [one("trial", 1)], question=replace(QUESTION, sweep=search.name, configs={}, reference=""))
    with pytest.raises(InputError, match="must have listed conditions"):
        read_part(found, search)
    with pytest.raises(InputError, match="must have listed conditions"):
        read_part(found, replace(search, search=None, conditions=SWEEP.conditions, base=SWEEP.base))


def test_what_is_not_as_the_manifest_says_is_refused(tmp_path):
    file = bundle(tmp_path, [one("random", 1)])
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    study = json.loads(members["study.json"])
    study["replicates"][0]["metrics"]["per@e"] = 0.01
    members["study.json"] = json.dumps(study).encode()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match=r"must be as its manifest says, but study\.json differs"):
        read_part(file, SWEEP)


def test_names_that_would_do_things_to_a_terminal_are_refused(tmp_path):
    file = bundle(tmp_path, [one("random", 1), one("\x1b[31m", 1)])
    with pytest.raises(InputError, match="must have names that can be printed"):
        read_part(file, SWEEP)
