import itertools
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import pytest

from search_spaces.asr_laptop import demo
from search_spaces.computed import refuse_computed
from search_spaces.distributions import Choice, Real
from search_spaces.find import find_sweep, sweep_functions
from search_spaces.grids import with_grid
from search_spaces.resources import ResolvedResources, Resources
from search_spaces.settings import declared_name, name_with
from search_spaces.sweep import Condition, Objective, Search, Sequential, Sweep, grid
from trainables.asr.config import AsrConfig, Random, Surprisal
from trainables.asr.data.config import LibriSpeech
from trainables.asr.macs import plain_width
from trainables.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sweep_functions())
def test_every_shipped_sweep_is_valid_in_both_sizes(name: str):
    assert find_sweep(name).name == name
    assert find_sweep(name, smoke=True).name == f"{name}.smoke" == find_sweep(f"{name}.smoke").name


def test_no_shipped_search_chooses_by_the_test():
    searches = [sweep for name in sweep_functions() if (sweep := find_sweep(name)).search]
    chosen_by = {objective.metric for sweep in searches for objective in sweep.objectives}
    assert len(searches) > 10 and all(name.startswith(("valid_", "macs_per_")) for name in chosen_by)


def test_sweep_functions_load_no_engine():
    code = (
        "import sys; from search_spaces.find import sweep_functions; [f('full') for f in sweep_functions().values()]; "
        "print([m for m in ('torch', 'ray', 'optuna', 'mlflow', 'torchaudio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_an_unknown_sweep_is_told_the_known_ones():
    with pytest.raises(
        InputError,
        match=r"no sweep 'asr.demmo'; the sweeps of asr are asr.ablation_mini_librispeech, asr.ablation_timit",
    ):
        find_sweep("asr.demmo")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"conditions": (Condition("a", {"controller.nu": 1}),), "reference": None},
            "'nu' is not one of data, fit, kind, mu",
        ),
        ({"conditions": (Condition("a"), Condition("a")), "reference": None}, "names of conditions must differ"),
        ({"conditions": (Condition("a"), Condition("b")), "reference": None}, "'a' and 'b' are the same setting"),
        ({"reference": "nobody"}, "the reference 'nobody' is not one of surprisal"),
        ({"seeds": (1, 1)}, "there must be seeds, and they must differ"),
        ({"objectives": ()}, "at least one objective"),
        ({"conditions": (), "reference": None}, "either conditions or a search"),
        (
            {
                "conditions": (),
                "reference": None,
                "search": Search({"network.dropout": Real(0.1, 1.5)}, num_trials=2),
            },
            "`network.dropout`: Input should be less than 1, but got 1.5",
        ),
        (
            {"conditions": (), "reference": None, "search": Search({"data.kind": Choice(("tape",))}, num_trials=2)},
            "`data.kind`",
        ),
    ],
)
def test_a_sweep_that_cannot_work_is_refused_when_built(changes, said):
    with pytest.raises(InputError) as raised:
        replace(demo(), **changes)
    assert said in str(raised.value)


def test_a_grid_is_every_combination_by_name():
    conditions = grid({"training.learning_rate": [0.1, 0.01], "network.dropout": [0.0, 0.5]})
    assert [c.name for c in conditions] == [f"learning_rate={a},dropout={b}" for a in (0.1, 0.01) for b in ("0", "0.5")]
    assert conditions[3].values == {"training.learning_rate": 0.01, "network.dropout": 0.5}


def test_condition_values_and_seed_reach_the_config():
    sweep = demo()
    config = sweep.config(next(c for c in sweep.conditions if c.name == "random"), seed=7)
    assert (config.controller, config.seed) == (Random(p_big=0.55), 7)


def test_an_override_renames_the_conditions_that_it_changes_and_no_other():
    changed = demo().with_values({"controller.mu": 0.3})
    assert [c.name for c in changed.conditions] == ["surprisal,mu=0.3", "random", "always_small", "always_big"]
    assert [dict(c.settings) for c in changed.conditions] == [{"controller.mu": 0.3}, {}, {}, {}]
    assert [c.declared for c in changed.conditions] == [c.name for c in demo().conditions]
    assert changed.reference == "random"
    with pytest.raises(InputError, match="--seeds"):
        demo().with_values({"seed": 3})


def test_a_name_has_the_shortest_end_of_a_path_that_no_other_path_has():
    """`ar.training.num_epochs` is there too, so that `num_epochs` alone would not say which."""
    values = {"training.num_epochs": 2, "data.num_fillers": 2, "ar.training.num_epochs": 3}
    sweeps = [demo().with_values(dict(order)) for order in itertools.permutations(values.items())]
    assert {sweep.reference for sweep in sweeps} == {
        "random,ar.training.num_epochs=3,num_fillers=2,training.num_epochs=2"
    }
    assert all(sweep == sweeps[0] for sweep in sweeps)
    in_turn = reduce(lambda sweep, item: sweep.with_values(dict([item])), values.items(), demo())
    assert in_turn.conditions == sweeps[0].conditions


@pytest.mark.parametrize(
    ("values", "end"),
    [
        ({"training.learning_rate": 0.001}, "training.learning_rate=0.001"),
        ({"training.learning_rate": 1 / 3}, r"training.learning_rate=0.333333333333-[0-9a-f]{4}"),
        ({"data.split": {"kind": "held_out_speakers"}}, r"split=held_out_speakers-[0-9a-f]{4}"),
        ({"controller.fit": "one_pass_adam"}, "fit=one_pass_adam"),
    ],
)
def test_a_value_that_a_name_cannot_hold_is_told_by_its_hash(values, end):
    first = find_sweep("asr.table2_timit").with_values(values).conditions[0]
    assert re.fullmatch(f"{re.escape(first.declared)},{end}", first.name)


def test_values_that_look_alike_in_a_name_get_different_ones():
    names = {
        name_with("a", {"x.text": text}, ["x.text"], demo().base)
        for text in ("one two", "one-two", "one/two", "one,two")
    }
    assert len(names) == 4 and "a,text=one-two" in names
    assert all(declared_name(name, ["x.text"]) == "a" for name in names)
    long = name_with("a", {"x.text": 300 * "b"}, ["x.text"], demo().base)
    assert len(long) < 60 and long != name_with("a", {"x.text": 301 * "b"}, ["x.text"], demo().base)


@dataclass(frozen=True)
class Mixed:
    """A config whose fields take values of several types."""

    size: int | str = 4
    rate: int | float = 4
    flag: bool | str = False
    name: str = "a"
    depth: int | None = 4
    seed: int = 1


@pytest.mark.parametrize(
    ("path", "values", "plain"),
    [("size", (2, "2"), 2), ("rate", (1, 1.0), 1), ("flag", (True, "True"), "True"), ("depth", (None, 3), None)],
)
def test_values_of_two_types_that_are_written_alike_have_two_names(path, values, plain):
    sweep = Sweep("mixed", "d", "t", Mixed(), (Objective("loss"),), (Condition("a"), Condition("b", {"size": 9})))
    names = [sweep.with_values({path: value}).conditions[0].name for value in values]
    assert len(set(names)) == 2
    assert names[values.index(plain)] == f"a,{path}={plain}"
    assert sweep.with_values({"name": "3"}).conditions[0].name == "a,name=3"  # the field takes no number


def test_the_autoregressive_model_learns_from_the_tasks_own_data_unless_told_otherwise(tmp_path):
    own = AsrConfig(data=LibriSpeech(root=tmp_path, train="mine", test="other"))
    assert own.pretraining.data == own.data
    larger = own.with_value("ar.data", LibriSpeech(train="train-other-500"))
    assert larger.pretraining.data == LibriSpeech(root=tmp_path, train="train-other-500")


def test_an_override_that_would_do_nothing_is_refused():
    fixed = replace(
        demo(),
        conditions=tuple(replace(c, values={"data.num_fillers": 2}) for c in demo().conditions[:1]),
        reference=None,
    )
    with pytest.raises(
        InputError, match=r"`data.num_fillers` changes nothing in asr.demo: every condition .* to 2; set an"
    ):
        fixed.with_values({"data.num_fillers": 4})
    without = replace(demo(), conditions=(Condition("r", {"controller": Random(p_big=0.5)}),), reference=None)
    with pytest.raises(InputError, match=r"`controller.mu` changes nothing in asr.demo: no condition keeps the part"):
        without.with_values({"controller.mu": 0.3})
    with pytest.raises(InputError, match=r"`controller.mu` is what asr.search searches"):
        find_sweep("asr.search").with_values({"controller.mu": 0.3})
    part = replace(find_sweep("asr.search").search, space={"training": Choice((demo().base.training,))})
    with pytest.raises(InputError, match=r"`training` is what asr.search searches, so `training.num_epochs` cannot"):
        replace(find_sweep("asr.search"), search=part).with_values({"training.num_epochs": 3})
    same = find_sweep("asr.ablation_timit").with_values({"training.num_epochs": 50})
    assert same == find_sweep("asr.ablation_timit")


def test_an_override_reaches_what_only_conditions_have():
    laptop = find_sweep("lm.laptop")
    changed = laptop.with_values({"recoder.not_finite": "one"})
    assert [c.name for c in changed.conditions] == [
        c.name if c.name == "baseline" else f"{c.name},not_finite=one" for c in laptop.conditions
    ]
    assert [getattr(changed.config(c, 1).recoder, "not_finite", None) for c in changed.conditions] == [
        None, "one", "one", "one", "one"
    ]  # fmt: skip
    assert (changed.base, changed.reference) == (laptop.base, "baseline")


def test_what_a_condition_sets_within_a_part_stays_when_the_part_is_set():
    laptop = find_sweep("lm.laptop")
    own = {"recoder": laptop.conditions[1].values["recoder"], "recoder.step.size": 3.0}
    sweep = replace(laptop, conditions=(laptop.conditions[0], Condition("three", own)))
    changed = sweep.with_values({"recoder.step": {"kind": "fixed", "size": 9.0}, "recoder.not_finite": "one"})
    assert [c.name for c in changed.conditions] == ["baseline", "three,not_finite=one"]
    recoder = changed.config(changed.conditions[1], 1).recoder
    assert (recoder.step.size, recoder.not_finite) == (3.0, "one")


def test_an_override_that_nothing_has_is_refused_by_what_has_most_of_it():
    laptop = find_sweep("lm.laptop")
    with pytest.raises(InputError, match=r"`recoder.step.siz` is not a config path: 'siz' is not one of kind, size"):
        laptop.with_values({"recoder.step.siz": 2})
    with pytest.raises(InputError, match=r"`widht` is not a config path: 'widht' is not one of .*hidden_size"):
        laptop.with_values({"widht": 2})
    with pytest.raises(InputError, match=r"`recoder.step.size`: Input should be"):
        laptop.with_values({"recoder.step.size": "wide"})
    with pytest.raises(InputError, match=r"with recoder.step.size set so, 'surprisal,step=1' and 'surprisal,step=5'"):
        laptop.with_values({"recoder.step.size": 2.0})


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in sweep_functions()
        if n.startswith("asr.") and any(part in n for part in ("table2", "ablation", "model"))
        if n != "asr.model3_converged"  # whose random routing has the cost instead, which has a test of its own
    ],
)
def test_every_table_has_random_routing_at_the_surprisal_models_rate_in_training_and_testing(name: str):
    sweep = find_sweep(name)
    configs = [sweep.config(condition, 1) for condition in sweep.conditions]
    (mu,) = {config.controller.mu for config in configs if isinstance(config.controller, Surprisal)}
    matched = [config for config in configs if config.controller == Random(p_big=mu)]
    assert matched
    tested = [one.controller or config.controller for config in matched for one in config.evaluations]
    assert Random(p_big=mu) in tested


def test_resources_all_are_a_worker_for_each_gpu():
    assert Resources(num_workers="all").resolve(0) == Resources(num_workers=0).resolve(0)
    four = Resources(num_workers="all").resolve(4)
    assert (four.num_workers, four.num_gpus) == (4, 4.0)


def test_resources_auto_follow_the_clusters_gpus():
    limit_s = Resources().report_timeout_s
    assert Resources().resolve(0) == ResolvedResources(0, 1, 0.0, min_workers=0, report_timeout_s=limit_s)
    assert Resources().resolve(4) == ResolvedResources(1, 1, 1.0, min_workers=1, report_timeout_s=limit_s)
    assert Resources(num_workers=2, gpus_per_worker=0.25).resolve(4).num_gpus == 0.5
    assert Resources(num_workers=2, cpus_per_worker=3).resolve(0).num_cpus == 6


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"num_workers": -1}, "`num_workers` must be a number up to 1,000,000, a pair"),
        ({"num_workers": (2, 1)}, "`num_workers` must be a number up to 1,000,000, a pair"),
        ({"num_workers": "many"}, "`num_workers` must be a number up to 1,000,000, a pair"),
        ({"cpus_per_worker": 0}, "`cpus_per_worker` must be a whole number from 1"),
        ({"gpus_per_worker": 1.5}, "`gpus_per_worker` must be a share of a card"),
        ({"report_timeout_s": 0}, "`report_timeout_s` must be above 0"),
        ({"gpus": 1}, "'gpus' is not a resource; the resources are cpus_per_worker"),
    ],
)
def test_resources_that_cannot_be_are_refused(wrong, rule):
    with pytest.raises(InputError, match=re.escape(rule)):
        find_sweep("asr.demo").with_resources(wrong)


def test_resources_are_given_to_conditions_with_their_own_too():
    demo = find_sweep("asr.demo")
    first, *others = demo.conditions
    sweep = replace(demo, conditions=(replace(first, resources=Resources(num_workers=1)), *others))
    sweep = sweep.with_resources({"gpus_per_worker": 0.25, "num_workers": (1, 2)})
    own = [condition.resources for condition in sweep.conditions if condition.resources]
    assert own and {resources.gpus_per_worker for resources in [*own, sweep.resources]} == {0.25}
    resolved = sweep.resources.resolve(num_gpus=1)
    assert (resolved.num_gpus, resolved.min_gpus, resolved.num_cpus, resolved.min_cpus) == (0.5, 0.25, 2, 1)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"sequential": Sequential(minimum=2)}, "`minimum` must be in [3, 5]"),
        ({"sequential": Sequential(minimum=6)}, "`minimum` must be in [3, 5]"),
        ({"sequential": Sequential(error_rate=1.0)}, "`error_rate` must be in (0, 1)"),
        ({"sequential": Sequential(), "reference": None}, "ask about the reference, but the sweep names none"),
    ],
)
def test_seeds_by_need_that_cannot_answer_are_refused(changes, rule):
    with pytest.raises(InputError, match=re.escape(rule)):
        replace(find_sweep("asr.demo"), seeds=(1, 2, 3, 4, 5), **changes)


def test_some_conditions_keep_the_order_of_the_sweep_and_the_reference_where_it_is_one_of_them():
    demo = find_sweep("asr.demo")
    first, second, *_ = [one.name for one in demo.conditions]
    for chosen in ([second, first], [second]):
        part = demo.of_conditions(chosen)
        assert [one.name for one in part.conditions] == sorted(chosen, key=[first, second].index)
        assert part.reference == (demo.reference if demo.reference in chosen else None)
        assert part.seeds == demo.seeds and part.config(part.conditions[0], 1) == demo.config(part.conditions[0], 1)
    changed = demo.with_values({"training.num_epochs": 3})
    assert changed.of_conditions([first]).conditions == changed.conditions[:1]


def test_a_condition_that_is_not_there_and_a_reference_that_is_asked_about_are_named():
    demo = find_sweep("asr.demo")
    with pytest.raises(InputError, match=r"asr\.demo has no condition 'nobody'; it has"):
        demo.of_conditions([demo.conditions[0].name, "nobody"])
    with pytest.raises(InputError, match="it has none listed"):
        find_sweep("lm.search_pareto").of_conditions(["any"])
    by_need = replace(demo, seeds=(1, 2, 3), sequential=Sequential(), reference="random")
    assert by_need.of_conditions(["random", "surprisal"]).reference == "random"
    with pytest.raises(InputError, match="seeds by need ask about 'random'; add it to the conditions"):
        by_need.of_conditions(["surprisal"])


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("asr.equal_cost_laptop", "network.big_hidden_size"),
        ("asr.equal_cost_laptop", "network"),
        ("asr.laptop_table2", "controller.mu"),
        ("lm.equal_cost", "hidden_size"),
        ("routed_bytes.laptop", "model.width"),
    ],
)
def test_what_an_equal_cost_was_computed_from_cannot_be_set(monkeypatch, name, path):
    monkeypatch.syspath_prepend(ROOT / "examples")
    sweep = find_sweep("routed_bytes.sweeps:laptop" if name.startswith("routed") else name)
    with pytest.raises(InputError, match=f"`{path}` cannot be set for .* of {name}, whose other values were computed"):
        refuse_computed(sweep, [path])
    refuse_computed(sweep, ["training.batch_size"])
    rest = [one.name for one in sweep.conditions if not one.computed_from]
    refuse_computed(sweep.of_conditions(rest), [path])


def test_nor_is_it_a_path_of_a_grid():
    sweep = find_sweep("lm.equal_cost")
    with pytest.raises(InputError, match="`hidden_size` cannot be set for 'wide,testing,hidden_size=100' of"):
        with_grid(sweep, {"hidden_size": [100]}, ["baseline", "wide,testing"])
    assert len(with_grid(sweep, {"hidden_size": [100]}, ["baseline"]).conditions) == 1


def test_a_computed_width_costs_what_the_routed_condition_does_only_at_the_declared_sizes():
    sweep = find_sweep("asr.equal_cost_laptop")
    routed, rival = (sweep.condition(name) for name in ("ar,random_0.5", "ar,random_0.5,plain"))

    def is_equal(one: Sweep) -> bool:
        return one.config(rival, 1).network.big_hidden_size == plain_width(one.config(routed, 1))

    assert is_equal(sweep) and not is_equal(sweep.with_values({"network.big_hidden_size": 1024}))
