"""What a search or a front has chosen runs again on seeds that chose nothing, and is reported by these alone."""

import statistics
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator.cli.confirm import find_confirmation
from orchestrator.cli.options import ask
from orchestrator.console.errors import RefusedError
from orchestrator.report.answers import answer
from orchestrator.report.bundle.records import question_json, read_question
from orchestrator.report.sentences import summary_sentences
from orchestrator.results.reference import recorded_question
from orchestrator.run import run_here
from orchestrator.scheduler.confirmation import confirmation
from orchestrator.scheduler.put_away import remove
from orchestrator.scheduler.trained import best, trained
from orchestrator.tracking.load import load_study, load_sweep
from orchestrator.tracking.named_sweep import find_named
from search_spaces.distributions import Real
from search_spaces.sweep import Constraint, Objective
from tests.integration.sweeps import searched, tiny
from tests.integration.tiny import TinyConfig
from tests.orchestrator.driven import new_settings
from trainables.errors import InputError

LISTED = tiny({"a": {}, "b": {"x": 0.25}, "c": {"x": 0.75}}, reference="a")


def run(sweep, settings):
    outcome = run_here(sweep, settings, Console(quiet=True))
    assert {one.state for one in outcome.replicates} == {"complete"}
    return load_study(sweep.name, settings)


def means(study, metric):
    """By condition, over all its complete replicates."""
    values = {}
    for one in study.replicates:
        values.setdefault(one.condition, []).append(one.metrics[f"{metric}@plain"])
    return {name: statistics.fmean(those) for name, those in values.items()}


def test_a_front_is_confirmed_under_seeds_that_nothing_had_and_its_report_has_both_means(tmp_path):
    settings = new_settings(tmp_path)
    before = means(run(LISTED, settings), "error")
    sweep = confirmation(LISTED, settings, 3)
    chosen = set(sweep.confirms.means)
    assert chosen and {one.name for one in sweep.conditions} == chosen | {"a"}
    assert (sweep.name, sweep.seeds, sweep.reference) == ("tiny.sweep.confirm", (3, 4, 5), "a")
    study = run(sweep, settings)
    assert {one.seed for one in study.replicates} == {3, 4, 5}

    recorded = load_sweep(sweep.name, settings)  # as where the code is not
    question = read_question(question_json(recorded_question(recorded, study)))
    assert question.confirms == sweep.confirms
    said = summary_sentences(answer(study, question))
    assert said[0] == (
        "The means are of seeds 3 to 5, which had no part in the choice of "
        f"{len(chosen)} of 3 conditions of tiny.sweep."
    )
    after = means(study, "error")
    gap = statistics.fmean(after[name] - before[name] for name in chosen)
    way = "better" if gap > 0 else "worse"
    assert said[1].startswith(f"In error the choice looked {abs(gap):.2g} {way} than it is, on average: ")
    for name in chosen:
        assert f"{name} {before[name]:.4g}, now {after[name]:.4g}" in said[1]

    run(replace(LISTED, seeds=(1, 2, 3, 4)), settings)  # the choice stays, whatever else has run
    again = confirmation(LISTED, settings, 4)
    assert (again.confirms, again.seeds) == (sweep.confirms, (3, 4, 5, 6))
    with pytest.raises(InputError, match=r"remove it by `ponderay rm tiny\.sweep\.confirm`"):
        confirmation(LISTED, settings, 3, sorted(chosen)[1:] or ["b"])


def test_what_a_search_drew_is_confirmed_with_the_values_that_it_drew(tmp_path, monkeypatch, capsys):
    settings = new_settings(tmp_path)
    search = searched(3, objectives=(Objective("error"),))
    before = run(search, settings)
    said = summary_sentences(answer(before, recorded_question(search, before)))
    assert any("`ponderay run tiny.search --confirm` measures the front on fresh seeds" in one for one in said)
    monkeypatch.setattr("orchestrator.cli.confirm.find", lambda *_, **__: search)
    sweep = find_confirmation("tiny.search", False, None, None, None, None, None, settings)
    assert " ".join(capsys.readouterr().out.split()) == (
        "tiny.search.confirm confirms 1 of 3 conditions of tiny.search, under seeds 3 to 7, which chose nothing."
    )
    (condition,) = sweep.conditions
    assert means(before, "error")[condition.name] == min(means(before, "error").values())
    after = run(replace(sweep, seeds=(3,)), settings)
    assert after.configs[condition.name] == {**before.configs[condition.name], "seed": "3"}


def test_what_cannot_be_confirmed_is_refused_with_the_way_out(tmp_path):
    settings = new_settings(tmp_path)
    with pytest.raises(InputError, match="tiny"):
        confirmation(LISTED, settings, 3)
    many = tiny({f"c{k:02d}": {"x": k / 20} for k in range(14)}, seeds=(1,))
    names = [one.name for one in many.conditions]
    run(many, settings)
    with pytest.raises(InputError, match=r"no complete condition 'nobody'; see `ponderay status tiny\.sweep`"):
        confirmation(many, settings, 3, ["nobody"])
    with pytest.raises(InputError, match=r"At most 12 conditions are confirmed at once, but 14 of tiny\.sweep"):
        confirmation(many, settings, 3, names)
    with pytest.raises(InputError, match="--seeds beside --confirm must be N"):
        find_confirmation("asr.demo", False, None, "3:5", None, None, None, settings)
    with pytest.raises(InputError, match="--confirm runs what is recorded, and --grid what is not"):
        find_confirmation("asr.demo", False, None, None, None, None, ["training.seed=1"], settings)


@pytest.mark.parametrize("search", [False, True])
def test_what_would_be_trained_otherwise_than_it_was_chosen_is_refused(tmp_path, monkeypatch, search):
    settings = new_settings(tmp_path)
    sweep = searched(3, objectives=(Objective("error"),)) if search else LISTED
    run(sweep, settings)
    longer = sweep.with_values({"num_epochs": 5}) if search else replace(sweep, base=TinyConfig(num_epochs=5))
    said = (
        r"recorded with another setting or other data \(num_epochs was 4, now 5\), so fresh seeds would confirm another"
    )
    with pytest.raises(RefusedError, match=said):
        confirmation(longer, settings, 2)
    assert confirmation(sweep, settings, 2).conditions
    monkeypatch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "mended")
    with pytest.raises(RefusedError, match=r"but the code is now version mended, so fresh .* --accept-code does so"):
        confirmation(sweep, settings, 2)
    assert confirmation(sweep, settings, 2, accept_code=True).conditions


def test_a_choice_that_was_removed_makes_room_for_another(tmp_path):
    settings = new_settings(tmp_path)
    run(LISTED, settings)
    run(confirmation(LISTED, settings, 1, ["a"]), settings)
    with pytest.raises(InputError, match="to choose others"):
        confirmation(LISTED, settings, 1, ["b"])
    remove("tiny.sweep.confirm", settings, lambda _: True)
    assert set(confirmation(LISTED, settings, 1, ["b"]).confirms.means) == {"b"}


def test_a_recorded_choice_is_not_confirmed_with_other_settings(tmp_path):
    settings = new_settings(tmp_path)
    run(LISTED, settings)
    run(confirmation(LISTED, settings, 1), settings)
    run(LISTED.with_values({"num_epochs": 5}), settings)
    with pytest.raises(InputError, match=r"tiny.sweep does not declare '.', which was chosen; confirm it where"):
        confirmation(LISTED.with_values({"num_epochs": 5}), settings, 1)


def test_a_draw_of_the_smaller_of_two_searches_is_confirmed_and_has_its_config(tmp_path, monkeypatch):
    settings = new_settings(tmp_path)
    monkeypatch.setattr("orchestrator.scheduler.trained.read_settings", lambda: settings)
    monkeypatch.setattr("orchestrator.tracking.named_sweep.read_settings", lambda: settings)
    wide = searched(4, objectives=(Objective("error"),), seeds=(1,))
    run(wide, settings)
    narrow = replace(wide, search=replace(wide.search, space={"x": Real(0.9, 1.0)}, num_trials=2))
    study = run(narrow, settings)
    (name, *_) = (name for name in study.conditions if float(study.configs[name]["x"]) >= 0.9)
    (best,) = confirmation(narrow, settings, 1, [name]).conditions
    assert best.values["x"] == float(study.configs[name]["x"])
    monkeypatch.setattr("orchestrator.scheduler.trained.find_named", lambda name: {"tiny.search": narrow}[name])
    found = trained(run(confirmation(narrow, settings, 1, [name]), settings), name)
    assert found.config().x == best.values["x"]
    with pytest.raises(
        InputError, match=r"tiny.search.confirm confirms conditions of tiny.search, .* name tiny.search"
    ):
        find_named("tiny.search.confirm")


def test_of_a_search_with_constraints_what_keeps_them_is_confirmed_and_best_and_the_rest_is_told(tmp_path, monkeypatch):
    settings = new_settings(tmp_path)
    monkeypatch.setattr("orchestrator.scheduler.trained.read_settings", lambda: settings)
    sweep = searched(4, objectives=(Objective("error"),), seeds=(1,))
    study = run(sweep, settings)
    cost, error = means(study, "cost"), means(study, "error")
    best_of_all = min(error, key=error.__getitem__)
    limit = sorted(cost.values())[1] if cost[best_of_all] > sorted(cost.values())[1] else 0.0
    assert limit, "the best of all is one of the dearer half"
    remove(sweep.name, settings, lambda _: True)
    bound = replace(sweep, search=replace(sweep.search, constraints=(Constraint("cost", limit),)))
    study = run(bound, settings)
    kept = {name: value for name, value in means(study, "error").items() if cost_of(study, name) <= limit}
    (chosen,) = confirmation(bound, settings, 1).conditions
    assert chosen.name == min(kept, key=kept.__getitem__) == best(study, "error").condition
    recorded = load_sweep(bound.name, settings)
    for asked in (bound, recorded):
        _, question = ask(asked, settings, None, None)
        assert question.shown_note.startswith("2 of 4 conditions miss what the search asks of them, and are shown all")


def cost_of(study, condition):
    return study.summary(condition, "cost@plain").mean


def test_other_code_of_what_is_not_confirmed_does_not_matter_and_a_recorded_choice_goes_on_alone(tmp_path, monkeypatch):
    settings = new_settings(tmp_path)
    run(replace(LISTED, conditions=LISTED.conditions[:1]), settings)
    monkeypatch.setattr("orchestrator.scheduler.task_factory.version_of", lambda *_: "mended")
    run_here(LISTED, settings, Console(quiet=True), accept_code=True)
    with pytest.raises(RefusedError, match=r"^a seed \d was trained by version"):
        confirmation(LISTED, settings, 1, ["a"])
    sweep = confirmation(LISTED, settings, 1, ["b"])
    run_here(sweep, settings, Console(quiet=True), accept_code=True)
    remove(LISTED.name, settings, lambda _: True)
    again = confirmation(LISTED, settings, 2, ["b"])
    assert (again.confirms, again.seeds) == (sweep.confirms, (3, 4))
