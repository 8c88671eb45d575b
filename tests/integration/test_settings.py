"""What `--set` makes of a study, on small ones that are really run: names, records, queries; and records of before."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.forecast.remaining_work import look
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.scheduler.earlier_results import finished_replicates
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.load import load_study
from search_spaces.sweep import Condition, Sweep
from tests.integration.sweeps import run_quietly, searched, tiny
from tests.integration.test_without_ray import starts
from trainables.errors import InputError

LEVEL = {"first.level": 0.25}
OLDER = {"a,first.level=0.25": LEVEL, "b,first.level=0.25": {"x": 0.25} | LEVEL}
"""Conditions as an earlier version called them."""


def sweep(**changes) -> Sweep:
    return tiny({"a": {}, "b": {"x": 0.25}}, reference="a", **changes)


def plain() -> Sweep:
    return sweep()


def call(line: str) -> str:
    """What `ponderay LINE` prints, of the sweep as it is declared here."""
    result = CliRunner().invoke(app, shlex.split(line.replace("tiny.sweep", f"{__name__}:plain")))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def conditions_in_store() -> list[str]:
    """Names of the runs of conditions, each as often as there is one."""
    client = Tracking(read_settings())._client
    experiment = client.get_experiment_by_name("tiny.sweep").experiment_id
    runs = client.search_runs([experiment], "tags.`ponderay.kind` = 'condition'")
    return sorted(run.data.tags["ponderay.condition"] for run in runs)


@pytest.mark.parametrize("reads", [load_study, lambda name: Tracking(read_settings()).read_study(name)])
def test_settings_are_recorded_and_read_by_both_readers(workplace, reads):
    run_quietly(sweep(seeds=(1,)))
    run_quietly(sweep(seeds=(1,)).with_values({"num_epochs": 2} | LEVEL))
    study = reads("tiny.sweep")
    assert study.conditions == ("a", "b", "a,level=0.25,num_epochs=2", "b,level=0.25,num_epochs=2")
    changed = {key: {"first.level": "0.25", "num_epochs": "2"} for key in study.conditions[2:]}
    assert study.settings == {"a": {}, "b": {}} | changed


def test_the_same_settings_in_another_order_are_the_same_replicates(workplace):
    first = run_quietly(sweep().with_values({"num_epochs": 2} | LEVEL))
    again = run_quietly(sweep().with_values(LEVEL | {"num_epochs": 2.0}))
    facts = [[(r.key, r.condition, r.metrics) for r in one.replicates] for one in (first, again)]
    assert facts[0] == facts[1] and facts[0][0][1] == "a,level=0.25,num_epochs=2"
    assert set(starts().values()) == {1}


def test_what_an_earlier_version_recorded_keeps_its_name_and_is_neither_lost_nor_done_twice(workplace):
    before = run_quietly(tiny(OLDER, seeds=(1,)))
    now = sweep(seeds=(1, 2)).with_values(LEVEL)
    assert [c.name for c in now.conditions] == ["a,level=0.25", "b,level=0.25"]
    outcome = run_quietly(now)
    assert [(r.condition, r.seed) for r in outcome.replicates] == [(name, seed) for name in OLDER for seed in (1, 2)]
    assert [r.key for r in outcome.replicates if r.seed == 1] == [r.key for r in before.replicates]
    study = load_study("tiny.sweep")
    assert study.conditions == tuple(OLDER) and conditions_in_store() == sorted(OLDER)
    assert len({r.key for r in study.replicates}) == len(study.replicates) == 4
    assert study.settings == {key: {"first.level": "0.25"} for key in OLDER}
    assert set(starts().values()) == {1}
    factory = TaskFactory(now, read_settings(), 0)
    assert finished_replicates(factory, accept_code=False) == study.replicates
    assert {one.state for one in look(now, read_settings(), 2, 0, accept_code=False).replicates} == {"complete"}


def test_another_seed_alone_joins_what_an_earlier_version_recorded(workplace):
    run_quietly(tiny(OLDER, seeds=(1, 2)))
    (added,) = run_quietly(sweep().with_values(LEVEL).only("a", 7)).replicates
    assert added.condition == "a,first.level=0.25"
    assert [r.seed for r in load_study("tiny.sweep").of("a,first.level=0.25")] == [1, 2, 7]


def test_what_an_earlier_version_was_stopped_in_goes_on_under_its_name(workplace, monkeypatch):
    keep = ReplicateFolder.keep

    def stop_at_three(folder, source, step):
        if step == 3:
            raise KeyboardInterrupt
        keep(folder, source, step)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ReplicateFolder, "keep", stop_at_three)
        run_quietly(tiny({"a,x=0.75": {"x": 0.75}}, seeds=(1,)))  # the name that this version gives it too
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ReplicateFolder, "keep", stop_at_three)
        run_quietly(tiny({"a,first.level=0.25": LEVEL}, seeds=(1,)))
    for values in ({"x": 0.75}, LEVEL):
        outcome = run_quietly(tiny({"a": {}}, seeds=(1,)).with_values(values))
        assert [r.state for r in outcome.replicates] == ["complete"]
    study = load_study("tiny.sweep")
    assert [(r.condition, r.state) for r in study.replicates] == [
        ("a,x=0.75", "complete"), ("a,first.level=0.25", "complete")
    ]  # fmt: skip


def test_one_setting_under_two_names_is_one_condition(workplace):
    """`train --condition a --set x=0.25` is what `b` declares."""
    run_quietly(sweep(seeds=(1,)))
    outcome = run_quietly(tiny({"a": {}}, seeds=(1, 2)).with_values({"x": 0.25}))
    assert [(r.condition, r.seed) for r in outcome.replicates] == [("b", 1), ("b", 2)]
    assert conditions_in_store() == ["a", "b"]


def test_a_set_path_reaches_a_part_that_only_a_condition_has(workplace):
    own = {"evaluations": [{"name": "plain"}], "first": {"level": 0.5, "num_epochs": 2}}
    found = tiny((Condition("a"), Condition("own", own), Condition("fixed", {"first.level": 0.75}))).with_values(LEVEL)
    assert [c.name for c in found.conditions] == ["a,level=0.25", "own,level=0.25", "fixed"]
    assert [r.condition for r in run_quietly(found).replicates[::2]] == [c.name for c in found.conditions]


def test_a_search_records_what_was_set_in_its_base(workplace):
    run_quietly(searched(1, seeds=(1,)).with_values({"num_epochs": 2}))
    study = load_study("tiny.search")
    assert list(study.settings.values()) == [{"num_epochs": "2"}]


def test_queries_show_all_and_take_the_reference_that_there_is(workplace):
    run_quietly(sweep(seeds=(1, 2, 3)).with_values({"num_epochs": 2}))
    only = json.loads(CliRunner().invoke(app, ["pareto", "tiny.sweep", "--format", "json"]).stdout)
    assert only["reference"] == "a,num_epochs=2"
    assert only["notes"][0] == "The reference is a,num_epochs=2; a is recorded with these settings only."
    assert json.loads(CliRunner().invoke(app, ["compare", "tiny.sweep", "--format", "json"]).stdout)[0]["b"] == (
        "a,num_epochs=2"
    )
    run_quietly(sweep(seeds=(1, 2, 3)).with_values(LEVEL))
    several = json.loads(CliRunner().invoke(app, ["pareto", "tiny.sweep", "--format", "json"]).stdout)
    assert len(several["points"]) == 4 and several["reference"] == ""
    assert "Choose one by --reference a,num_epochs=2, or show less by --where" in several["notes"][0]
    with pytest.raises(InputError, match=r"several settings: a,num_epochs=2, a,level=0.25\. Choose one by --reference"):
        call("compare tiny.sweep")
    rows = json.loads(call("compare tiny.sweep --reference a,level=0.25 --format json"))
    assert {row["b"] for row in rows} == {"a,level=0.25"} and len({row["a"] for row in rows}) == 3
    rows = json.loads(call("compare tiny.sweep --where num_epochs=2 --format json"))
    assert {(row["a"], row["b"]) for row in rows} == {("b,num_epochs=2", "a,num_epochs=2")}
    asked = json.loads(call("compare tiny.sweep --set first.level=0.25 --format json"))
    assert {row["b"] for row in asked} == {"a,level=0.25"}
    run_quietly(sweep(seeds=(1, 2, 3)))
    assert json.loads(call("pareto tiny.sweep --format json"))["reference"] == "a"


def test_where_filters_by_any_recorded_parameter_and_a_filtered_report_is_verified(workplace):
    run_quietly(sweep(seeds=(1, 2, 3)))
    run_quietly(sweep(seeds=(1, 2, 3)).with_values({"num_epochs": 2}))

    def shown(*filters: str) -> list[str]:
        options = " ".join(f"--where {one}" for one in filters)
        rows = json.loads(call(f"status tiny.sweep {options} --format json"))
        return list(dict.fromkeys(row["condition"] for row in rows))

    assert shown("x=0.25") == shown("x=2.5e-1") == ["b", "b,num_epochs=2"]
    assert shown("level=0.5") == ["a", "b", "a,num_epochs=2", "b,num_epochs=2"]
    assert shown("x=0.5", "num_epochs=4", "bad_input=false", "nan_at=null", "first.num_epochs=1")[:1] == ["a"]
    for filters, said in (
        (["x=9"], "No condition has x=9; recorded are x = 0.5, 0.25."),
        (["x=0.25", "first.num_epochs=2"], "recorded are first.num_epochs = 1."),
        (["width=3"], "`width` must be a recorded config path or its end; the recorded conditions differ in "),
        (["x"], "--where must be PATH=VALUE or PATH!=VALUE, but got 'x'."),
    ):
        with pytest.raises(InputError) as raised:
            shown(*filters)
        assert said in str(raised.value)
    told = call("status tiny.sweep --where x=0.25")
    assert told.startswith("Shown: 2 of 4 conditions, where x=0.25.")
    found = json.loads(call("report tiny.sweep --where num_epochs=2 --bundle it.zip --format json"))
    assert (
        [row["condition"] for row in found["conditions"]].count("b,num_epochs=2") == 1 == len(found["comparisons"]) / 2
    )
    assert "Shown: 2 of 4 conditions, where num_epochs=2." in found["warnings"]
    assert "Shown: 2 of 4 conditions, where num_epochs=2." in Path(found["files"][0]).read_text()
    call("verify it.zip")


def test_a_replicate_is_trained_alone_under_the_name_that_run_gives_it(workplace):
    call("train tiny.sweep --condition b --seed 1 --set num_epochs=2")
    assert [r.condition for r in load_study("tiny.sweep").replicates] == ["b,num_epochs=2"]
    assert run_quietly(sweep().with_values({"num_epochs": 2})).num_failed == 0
    assert set(starts().values()) == {1}
    with pytest.raises(InputError, match="`x` changes nothing"):
        call("train tiny.sweep --condition b --set x=0.75")
