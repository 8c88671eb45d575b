"""Keys of replicates and prerequisites, and which replicate needs which prerequisite."""

from dataclasses import replace

import pytest

from orchestrator.environment.settings import Settings
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.execute import execute
from search_spaces.asr_conditions import AUTOREGRESSIVE
from search_spaces.find import find_sweep
from search_spaces.sweep import Prerequisite
from tests.integration.sweeps import FIRST, tiny
from tests.orchestrator.scheduler.parts import parts
from tests.trainables.lm.small_runs import write_text
from trainables.asr.data.config import Synthetic
from trainables.config import content_hash
from trainables.errors import InputError
from trainables.lm import sample_text

SMALL = {
    "training.num_epochs": 1,
    "training.batch_size": 4,
    "data.text.validation_share": 0.15,
    "data.text.test_share": 0.15,
}
EACH = replace(FIRST, each_seed=True)


def factory_of(folder, *prerequisites) -> TaskFactory:
    sweep = tiny({"a": {}, "b": {"x": 0.25}}, seeds=(1, 2), prerequisites=prerequisites)
    return TaskFactory(sweep, Settings(folder, ""), 0)


def test_what_all_seeds_share_has_the_key_of_its_content_alone(tmp_path):
    made = factory_of(tmp_path, FIRST)
    keys = {made.prerequisites(one, seed)["first"].work.key for one in made.sweep.conditions for seed in (1, 2)}
    assert keys == {content_hash(FIRST.trainable, made.sweep.base.first, "tiny")}
    condition = made.sweep.conditions[0]
    key = made.replicate(condition, 2, made.prerequisites(condition, 2)).work.key
    config = made.sweep.config(condition, 2)
    assert key == content_hash(made.sweep.name, made.sweep.trainable, config, "tiny", list(keys), 2)


def test_conditions_share_the_prerequisite_of_a_seed_and_seeds_do_not(tmp_path):
    made = factory_of(tmp_path, EACH)
    found = {
        (one.name, seed): made.prerequisites(one, seed)["first"] for one in made.sweep.conditions for seed in (1, 2)
    }
    assert found["a", 1].work.key == found["b", 1].work.key != found["a", 2].work.key == found["b", 2].work.key
    assert [(task.seed, task.work.config["seed"]) for task in found.values()] == [(1, 1), (2, 2)] * 2
    assert found["b", 2].work.label == "prerequisite first seed 2"
    assert found["a", 2].work.folder != found["a", 1].work.folder
    task = made.replicate(made.sweep.conditions[1], 2, {"first": found["b", 2]})
    assert task.prerequisites == (found["a", 2].work.key,)
    assert task.work.products == {"first": found["a", 2].work.folder} and task.work.shared_products == {}
    shared = replace(made, settings=replace(made.settings, storage="memory://bucket"))
    needed = shared.prerequisites(shared.sweep.conditions[1], 2)
    work = shared.replicate(shared.sweep.conditions[1], 2, needed).work
    assert work.shared_products == {"first": f"memory://bucket/prerequisites/{needed['first'].work.key}"}


def test_a_condition_that_uses_no_prerequisite_waits_for_none_and_has_none_in_its_key(tmp_path):
    made = factory_of(tmp_path, EACH)
    a, b = made.sweep.conditions
    sweep = replace(made.sweep, conditions=(replace(a, prerequisites=()), replace(b, prerequisites=("first",))))
    made = TaskFactory(sweep, Settings(tmp_path, ""), 0)
    a, b = made.sweep.conditions
    assert made.prerequisites(a, 1) == {} and list(made.prerequisites(b, 1)) == ["first"]
    task = made.replicate(a, 1, made.prerequisites(a, 1))
    assert (task.prerequisites, task.work.products) == ((), {})
    assert task.work.key == content_hash(sweep.name, sweep.trainable, sweep.config(a, 1), "tiny", [], 1)
    unknown = replace(a, prerequisites=("second",))
    with pytest.raises(InputError, match="'a' uses 'second', no prerequisite of the sweep, which has first"):
        replace(sweep, conditions=(unknown, b))


def test_each_replicate_waits_for_the_prerequisite_of_its_own_seed_alone(tmp_path):
    made = parts(tmp_path, {"a": {}, "b": {"x": 0.25}}, seeds=(1, 2), prerequisites=(EACH,))
    first, second = made.start(), made.start()
    assert [task.condition for task in (first, second)] == [None, None] and made.scheduler.next() is None
    made.end(second)
    task = made.start()
    assert task.seed == 2 == second.seed
    made.end(task)
    assert made.start().seed == 2 and made.scheduler.next() is None
    made.end(first)
    assert made.start().seed == 1


def test_a_prerequisite_of_each_seed_must_have_a_seed(tmp_path):
    text = Prerequisite("baseline", "trainables.lm.train", "data", each_seed=True)
    sweep = replace(find_sweep("lm.ablation", smoke=True), prerequisites=(text,))
    with pytest.raises(
        InputError, match="`data`, of the prerequisite 'baseline' with `each_seed`, must have a `seed`, but"
    ):
        TaskFactory(sweep, Settings(tmp_path, ""), 0)


def test_an_autoregressive_model_of_each_seed_is_trained_with_that_seed_and_shared_by_conditions(tmp_path):
    sweep = replace(find_sweep("asr.confirm_model3", smoke=True), seeds=(6, 7))
    sweep = sweep.with_values({"data": Synthetic(), "ar.seed": 3})
    factory = TaskFactory(sweep, Settings(tmp_path, ""), 0)
    works = {
        (condition.name, seed): factory.prerequisites(condition, seed)["ar"].work
        for condition in sweep.conditions
        for seed in sweep.seeds
    }
    assert {seed: work.config["seed"] for (_, seed), work in works.items()} == {6: 6, 7: 7}
    assert len({work.key for work in works.values()}) == 2
    shared = TaskFactory(replace(sweep, prerequisites=(AUTOREGRESSIVE,)), Settings(tmp_path, ""), 0)
    (one,) = {shared.prerequisites(sweep.conditions[0], seed)["ar"].work.key for seed in sweep.seeds}
    assert shared.prerequisites(sweep.conditions[0], 7)["ar"].work.config["seed"] == 3
    assert one not in {work.key for work in works.values()}


def test_a_trained_recoder_is_tested_on_the_baseline_of_its_own_seed(tmp_path, monkeypatch):
    """What it reports there without the recoder is what the baseline of that seed reports."""
    monkeypatch.setattr(sample_text, "draw", lambda *_: [])
    sweep = find_sweep("lm.ablation", smoke=True).with_values(
        SMALL | {"data.text.path": write_text(tmp_path / "text.txt")}
    )
    made, found = TaskFactory(replace(sweep, seeds=(1, 2)), Settings(tmp_path, ""), 0), []
    for name, metric in (("baseline", "perplexity@test"), ("eq44,learned", "perplexity@baseline")):
        needed = made.prerequisites(made.sweep.condition(name), 2)
        for task in (*needed.values(), made.replicate(made.sweep.condition(name), 2, needed)):
            records: list[dict] = []
            execute(task.work, records.append)
        found += [one["metrics"][metric] for one in records if metric in one.get("metrics", {})]
    assert len(found) == 2 and found[0] == found[1]
