"""What cannot work in a sweep of one's own: each mistake is one sentence and exit code 2, before anything starts."""

# ruff: noqa: E501

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli import main as cli
from orchestrator.worker import trainable

ROOT = Path(__file__).parents[1]

GOOD = """
from dataclasses import dataclass
import ponderay

@dataclass(frozen=True)
class Setting:
    width: int = 8
    rate: float = 0.1
    seed: int = 1

def train(config, trial):
    for step in (1, 2):
        trial.report({"loss": 1 / config.width / step}, step=step)

toy = ponderay.Sweep(
    name="toy",
    description="For tests.",
    trainable=__name__,
    base=Setting(),
    conditions=ponderay.grid({"width": [4, 8]}),
    objectives=(ponderay.Objective("loss"),),
    reference="width=8",
)
"""

EVALUATIONS = """
@dataclass(frozen=True)
class Test:
    name: str = "plain"

@dataclass(frozen=True)
class Setting:
    evaluations: tuple[Test, ...] = (Test({}), Test({}))
    width: int = 8
    seed: int = 1
"""

METRICS = 'metrics = [ponderay.Metric("loss", direction="minimize")]\n'


def toy(old: str = "", new: str = "", more: str = "") -> str:
    """The good source with a change; `more` stands before the sweep."""
    assert old in GOOD
    return GOOD.replace(old, new, 1).replace("toy = ", f"{more}\ntoy = ", 1)


def without(*starts: str) -> str:
    """The good source without the arguments that begin so."""
    return "\n".join(line for line in GOOD.splitlines() if not line.strip().startswith(starts))


def searched(space: str, more: str = "num_trials=4") -> str:
    return toy('conditions=ponderay.grid({"width": [4, 8]}),', f"search=ponderay.Search({space}, {more}),").replace(
        'reference="width=8",', ""
    )


def evaluations(first: str, second: str) -> str:
    return EVALUATIONS.replace("{}", first, 1).replace("{}", second, 1)


def given(argument: str) -> str:
    """The good source with one more argument of the sweep."""
    return toy('    reference="width=8",', f'    reference="width=8",\n    {argument},')


TRAIN = "def train(config, trial):"
WRONG = {
    # functions
    "no train": (toy(TRAIN, "def trian(config, trial):"), "must have a function train(config, trial), but has no train"),
    "train of one argument": (toy(TRAIN, "def train(config):\n    trial = None"), "called as train(config, trial), but it is train(config)"),
    "train of three": (toy(TRAIN, "def train(config, trial, device):"), "but it is train(config, trial, device)"),
    "train by keyword": (toy(TRAIN, "def train(config, *, trial):"), "but it is train(config, *, trial)"),
    "train is a number": (toy(TRAIN, "train = 3\ndef other(config, trial):"), "`train` of toy must be a function train(config, trial), but it is 3"),
    "train is a class": (toy(TRAIN, "class train:\n    def __init__(self): pass\ndef other(config, trial):"), "must be called as train(config, trial)"),
    "train is a coroutine": (toy(TRAIN, "async def train(config, trial):"), "`train` of toy must be a plain function"),
    "train is a generator": (toy(TRAIN, TRAIN + "\n    yield"), "`train` of toy must be a plain function"),
    "evaluate of two": (toy(more="def evaluate(config, checkpoint): pass"), "called as evaluate(config, checkpoint, evaluation, trial)"),
    "evaluate is text": (toy(more="evaluate = 'yes'"), "`evaluate` of toy must be a function evaluate(config, checkpoint, evaluation, trial), but it is 'yes'"),
    "fingerprint without argument": (toy(more="def fingerprint(): return 'x'"), "called as fingerprint(config), but it is fingerprint()"),
    "num_steps of a file": (toy(more="num_steps = 10"), "`num_steps` of toy must be a function num_steps(config), but it is 10"),
    "num_steps as text": (toy(more="def num_steps(config): return '10'"), "`num_steps` of toy must return a whole number or None, but got '10'"),
    "num_steps as a float": (toy(more="def num_steps(config): return 1e3"), "must return a whole number or None, but got 1000.0"),
    "num_steps below zero": (toy(more="def num_steps(config): return -1"), "`num_steps` of toy must be at least 0, but got -1"),
    "num_steps fails": (toy(more="def num_steps(config): return config.epochs"), "`num_steps` of toy fails: AttributeError: 'Setting' object has no attribute 'epochs' (toy.py, line"),
    "fingerprint as a number": (toy(more="def fingerprint(config): return 3"), "`fingerprint` of toy must return a text, but got 3"),
    "fingerprint fails": (toy(more="def fingerprint(config): return open('gone.csv').read()"), "`fingerprint` of toy fails: FileNotFoundError: [Errno 2] No such file or directory: 'gone.csv' (toy.py, line"),
    "reads fails": (toy(more="def reads(config): return config.corpus"), "`reads` of toy fails: AttributeError"),
    "selection as an objective": (toy(more="def selection(config): return ponderay.Objective('loss')"), "`selection` of toy must return a mapping, as {\"test\": \"loss\"}, but got Objective("),
    "selection under another evaluation": (toy(more="def evaluate(config, checkpoint, evaluation, trial): pass\ndef selection(config): return {'test': 'loss', 'tset': 'loss'}"), "`selection` of toy names the evaluation 'tset', which the config has not; it has test"),
    "selection of a number": (toy(more="def selection(config): return {'best': 3}"), "must name a metric or an Objective, but got 3"),
    "selection of an unknown metric": (toy(more=METRICS + "def selection(config): return {'best': 'accuracy'}"), "keeps 'best' by 'accuracy', which is not among its metrics"),
    "selection of the worst": (toy(more='metrics = [ponderay.Metric("acc", direction="maximize")]\ndef selection(config): return {"best": "acc"}\n').replace('"loss"', '"acc"').replace('Objective("acc")', 'Objective("acc", "maximize")'), "keeps 'best' by 'acc', to minimize, but its metrics say maximize; write ponderay.Objective('acc', 'maximize')"),
    "halving of the best": (searched('{"width": ponderay.Integer(2, 9)}', 'num_trials=4, halving=ponderay.Halving("acc", first=1)').replace("toy = ", 'metrics = [ponderay.Metric("loss"), ponderay.Metric("acc", direction="maximize")]\ntoy = '), "`halving` stops what is not among the best by 'acc', to minimize, but toy says maximize; give Halving `direction='maximize'`"),
    "metrics as text": (toy(more="metrics = 'loss'"), "`metrics` of toy must be a list of Metric, but it is 'loss'"),
    "a floor that is no metric": (toy(more='metrics = [ponderay.Metric("loss", direction="minimize", floor="linaer")]\n'), "`floor` must name another of its metrics, and be of one to minimize, but 'loss', to minimize, has 'linaer'"),
    "a floor of what is to maximize": (toy(more='metrics = [ponderay.Metric("loss"), ponderay.Metric("acc", direction="maximize", floor="loss")]\n'), "but 'acc', to maximize, has 'loss'"),
    "a field with an alias": (toy("@dataclass(frozen=True)\nclass Setting:\n    width: int = 8", "import pydantic\nclass Setting(pydantic.BaseModel, frozen=True):\n    width: int = pydantic.Field(8, alias='w')"), "`Setting.width` has an alias, and pydantic reads the field by nothing else"),
    "a field that is computed": (toy("    width: int = 8\n    rate: float = 0.1", "    rate: float = 0.1\n    width: int = field(init=False, default=3)").replace("import dataclass", "import dataclass, field"), "`width` cannot be set: Setting computes it (`init=False`)"),
    "metrics of texts": (toy(more="metrics = ['loss']"), "must be a list of Metric, but it is ['loss']"),
    "metrics as a number": (toy(more="metrics = 3"), "must be a list of Metric, but it is 3"),
    "metrics as a function": (toy(more="def metrics(): return []"), "`metrics` of toy must be a list of Metric"),
    "a metric twice": (toy(more="metrics = [ponderay.Metric('loss'), ponderay.Metric('loss')]"), "`metrics` of toy lists 'loss' twice"),
    "a metric of no direction": (toy(more="metrics = [ponderay.Metric('loss', direction='down')]"), "the direction of 'loss' must be minimize, maximize or none, but got 'down'"),
    "sources that are no list": (toy(more="sources = ['*.py'][::-1]"), "`sources` of toy must be a list of names of files, written out"),
    "sources that are not there": (toy(more="sources = ['models/*.py']"), "names 'models/*.py', but there is no such file"),
    # the module
    "syntax": (GOOD + "def (:\n", "toy.py cannot be imported: SyntaxError"),
    "an import": (GOOD + "import no_such_package\n", "toy.py cannot be imported: ModuleNotFoundError: No module named 'no_such_package' (toy.py, line"),
    "an error at the top": (GOOD + "print(1 / 0)\n", "ZeroDivisionError: division by zero (toy.py, line"),
    "an exit at the top": (GOOD + "import sys; sys.exit(0)\n", "toy.py cannot be imported: SystemExit"),
    "a trainable that is not there": (toy("trainable=__name__", "trainable='no_such_package.train'"), "The trainable 'no_such_package.train' cannot be imported: ModuleNotFoundError"),
    "a trainable as a function": (toy("trainable=__name__", "trainable=train"), "`trainable` must be text"),
    "a trainable as a file": (toy("trainable=__name__", "trainable='toy.py'"), "The trainable 'toy.py' cannot be imported"),
    "a relative trainable": (toy("trainable=__name__", "trainable='.toy'"), "The trainable '.toy' cannot be imported"),
    "another sweep": (GOOD.replace("toy = ", "other = "), "has no 'toy'; its sweeps are other"),
    "no sweep": (GOOD.replace("toy = ponderay.Sweep", "toy = dict"), "must be a Sweep, or a function that returns one, but it is {"),
    "a function that returns nothing": (GOOD.replace("toy = ", "one = ") + "def toy(): one\n", "must return a Sweep, but it returned None"),
    "a function that fails": (GOOD.replace("toy = ", "one = ") + "def toy(): return sweep\n", "cannot be built: NameError: name 'sweep' is not defined (toy.py, line"),
    "a function of two": (GOOD.replace("toy = ", "one = ") + "def toy(size, depth): return one\n", "cannot be built: TypeError"),
    "an argument that is none": (given("repeats=3"), "got an unexpected keyword argument 'repeats' (toy.py, line"),
    "an argument that lacks": (without("base="), "missing 1 required positional argument: 'base'"),
    # the sweep
    "a name with a space": (toy('"toy"', '"my sweep/v2"'), "have only letters, digits and any of . _ -, be at most 100 long and be none of prerequisites, ponderay.books, Default, but got 'my sweep/v2'"),
    "a name that is none": (toy('"toy"', '""'), "A sweep's name must begin with a letter or digit"),
    "a name that is taken": (toy('"toy"', '"prerequisites"'), "be none of prerequisites"),
    "a name of another size": (toy('"toy"', '"toy.smoke"'), "must not end in .smoke"),
    "no description": (toy('"For tests."', "None"), "`description` must be text, but got None"),
    "a description with half a pair": (toy('"For tests."', r'"For \udcff tests."'), r"`description` must be text that UTF-8 can write, but has '\udcff'; remove it"),
    "a config with half a pair": (toy("    rate: float = 0.1", "    rate: float = 0.1\n    place: str = '\\udcff'"), "cannot be written as JSON and read again: 'utf-8' codec can't encode character"),
    "a condition's value with half a pair": (toy("    rate: float = 0.1", "    rate: float = 0.1\n    place: str = ''").replace('ponderay.grid({"width": [4, 8]})', r'[ponderay.Condition("width=8", {"place": "\udcff"})]'), "condition 'width=8': the config Setting cannot be written as JSON"),
    "an objective that no report can hold": (toy('Objective("loss")', r'Objective("loss\n")'), "a metric's name must have 1 to 150 letters, digits, spaces and any of _ . : / - @"),
    "one condition by itself": (toy('ponderay.grid({"width": [4, 8]})', 'ponderay.Condition("a")'), "`conditions` must be a list of Condition"),
    "a condition as a mapping": (toy('ponderay.grid({"width": [4, 8]})', '[{"width": 4}]'), "`conditions` must be a list of Condition, but {'width': 4} is in it"),
    "neither conditions nor search": (without("conditions=", "reference="), "give either conditions or a search"),
    "a grid of no values": (toy("[4, 8]", "[]"), "give either conditions or a search"),
    "a grid of a number": (toy("[4, 8]", "4"), "A grid lists values for each path, but `width` has 4"),
    "a condition's resources as a mapping": (toy('ponderay.grid({"width": [4, 8]})', '[ponderay.Condition("a", {"width": 8}, {"num_workers": 0})]'), "condition 'a': `resources` must be of type Resources, but got {'num_workers': 0}"),
    "a condition's prerequisites as text": (toy('ponderay.grid({"width": [4, 8]})', '[ponderay.Condition("a", {"width": 8}, prerequisites="p")]'), "condition 'a': `prerequisites` must be a list of str, but got 'p'"),
    "claims as a path": (given("claims=__import__('pathlib').Path('claims.toml')"), "`claims` must be text, but got PosixPath('claims.toml')"),
    "a reference by number": (toy('reference="width=8"', 'reference=8'), "`reference` must be the name of a condition, but got 8"),
    "a condition's name": (toy('ponderay.grid({"width": [4, 8]})', '[ponderay.Condition("a/b", {"width": 4})]'), "A condition's name must begin with a letter or digit, have only letters, digits, spaces and any of . _ , = + -, and be at most 250 long, but got 'a/b'"),
    "equal names": (toy('ponderay.grid({"width": [4, 8]})', '[ponderay.Condition("a", {"width": 4}), ponderay.Condition("a", {"width": 8})]'), "the names of conditions must differ, but got a, a"),
    "equal settings": (toy('ponderay.grid({"width": [4, 8]})', '[ponderay.Condition("a", {"width": 8}), ponderay.Condition("width=8")]'), "'a' and 'width=8' are the same setting"),
    "a path that is no field": (toy('{"width"', '{"depth"').replace("width=8", "depth=8"), "`depth` is not a config path: 'depth' is not one of rate, seed, width"),
    "a path into a number": (toy('{"width"', '{"width.first"').replace("width=8", "first=8"), "`width` has no fields of its own"),
    "a value of another type": (toy("[4, 8]", "[8, 'eight']"), "`width`: Input should be a valid integer"),
    "a reference that is no condition": (toy('reference="width=8"', 'reference="width=16"'), "the reference 'width=16' is not one of width=4, width=8"),
    "no objective": (toy('(ponderay.Objective("loss"),)', "()"), "give at least one objective"),
    "an objective as text": (toy('(ponderay.Objective("loss"),)', '("loss",)'), "`objectives` must be a list of Objective, but 'loss' is in it"),
    "one objective by itself": (toy('(ponderay.Objective("loss"),)', 'ponderay.Objective("loss")'), "`objectives` must be a list of Objective"),
    "an objective twice": (toy('(ponderay.Objective("loss"),)', '(ponderay.Objective("loss"), ponderay.Objective("loss"))'), "the objectives must differ, but got loss, loss"),
    "an unknown objective": (toy(more=METRICS).replace('Objective("loss")', 'Objective("error")'), "the objective 'error' is not among the metrics of toy: loss"),
    "a direction of another name": (toy('Objective("loss")', 'Objective("loss", "min")'), "an objective is to minimize or maximize, but got 'min'"),
    "the wrong direction": (toy(more=METRICS).replace('Objective("loss")', 'Objective("loss", "maximize")'), "is to maximize, but toy says minimize"),
    "an objective's metric as a number": (toy('Objective("loss")', "Objective(3)"), "an objective is a metric's name, without that of an evaluation behind @, but got 3"),
    "an objective of one evaluation": (toy('Objective("loss")', 'Objective("loss@test")'), "but got 'loss@test'"),
    "a seed twice": (given("seeds=(1, 1)"), "there must be seeds, and they must differ, but got (1, 1)"),
    "no seeds": (given("seeds=()"), "there must be seeds"),
    "seeds as a number": (given("seeds=5"), "`seeds` must be a list of int, but got 5"),
    "seeds as texts": (given("seeds=('1',)"), "`seeds` must be a list of int, but '1' is in it"),
    "a seed below zero": (given("seeds=(1, -1)"), "a seed must be a whole number from 0 to 9223372036854775807, but got -1"),
    "a seed that is set": (toy('{"width": [4, 8]}', '{"seed": [4, 8]}').replace("width=8", "seed=8"), "`seed` is no setting"),
    "seeds by need of too few": (given("seeds=(1, 2), sequential=ponderay.Sequential()"), "`minimum` must be in [3, 2]"),
    "seeds by need without reference": (given("sequential=ponderay.Sequential()").replace('reference="width=8",', ""), "seeds by need ask about the reference, but the sweep names none"),
    "seeds by need with too large an error": (given("sequential=ponderay.Sequential(error_rate=5)"), "`error_rate` must be in (0, 1), but got 5"),
    "seeds by need of another question": (given("sequential=ponderay.Sequential(question='best')"), "`question` must be one of reference, front, but got 'best'"),
    "seeds by need as a number": (given("sequential=3"), "`sequential` must be of type Sequential, but got 3"),
    "another pairing": (given("pairing='days'"), "`pairing` must be one of none, seeds, but got 'days'"),
    "a margin of no size": (given("non_inferiority=0"), "`non_inferiority` must be above 0, but got 0"),
    "a margin as text": (given("non_inferiority='1'"), "`non_inferiority` must be above 0, but got '1'"),
    "resources as a number": (given("resources=2"), "`resources` must be of type Resources, but got 2"),
    "resources below zero": (given("resources=ponderay.Resources(cpus_per_worker=0)"), "`cpus_per_worker` must be a whole number from 1 to 1,000,000, but got 0"),
    "resources by another name": (given("resources=ponderay.Resources(gpus=1)"), "unexpected keyword argument 'gpus'"),
    "one and a half cards": (given("resources=ponderay.Resources(gpus_per_worker=1.5)"), "`gpus_per_worker` must be a share of a card, a number of cards up to 1,000,000 or auto, but got 1.5"),
    # the config
    "a config as a mapping": (toy("base=Setting()", "base={'width': 8}"), "`base` must be a Config, a frozen pydantic model or a dataclass, with values, but got {"),
    "a config's class": (toy("base=Setting()", "base=Setting"), "with values, but got <class"),
    "a config without seed": (toy("    seed: int = 1\n"), "the config Setting must have a field `seed` with a whole number"),
    "a seed as text": (toy("seed: int = 1", "seed: str = '1'"), "must have a field `seed` with a whole number"),
    "a model that can change": (toy("@dataclass(frozen=True)\nclass Setting:", "import pydantic\nclass Setting(pydantic.BaseModel):"), "the config Setting can be changed; give its class `model_config = dict(frozen=True)`"),
    "a config made in a function": (toy("@dataclass(frozen=True)\nclass Setting:\n    width: int = 8\n    rate: float = 0.1\n    seed: int = 1", "def made():\n    @dataclass(frozen=True)\n    class Setting:\n        width: int = 8\n        seed: int = 1\n    return Setting\nSetting = made()"), "must stand at the top of its module, toy"),
    "a config that is no JSON": (toy("rate: float = 0.1", "rate: object = object()"), "cannot be written as JSON and read again"),
    "a config with nan": (toy("rate: float = 0.1", "rate: float = float('nan')"), "cannot be written as JSON and read again"),
    "a config of unknown types": (toy("rate: float = 0.1", "rate: 'Rate' = 0.1"), "Rate"),
    "a config without a type": (toy("rate: float = 0.1", "rate: int = 0.1"), "cannot be written as JSON and read again"),
    "a setting that is refused": (toy("    seed: int = 1", "    seed: int = 1\n    def __post_init__(self):\n        if self.width > 4: raise ValueError('too wide')").replace("base=Setting()", "base=Setting(width=4)"), "too wide"),
    # evaluations
    "evaluations without evaluate": (toy("@dataclass(frozen=True)\nclass Setting:\n    width: int = 8\n", evaluations("", "'b'")), "the config lists evaluations, but toy has no `evaluate`"),
    "evaluations of one name": (toy("@dataclass(frozen=True)\nclass Setting:\n    width: int = 8\n", evaluations("", ""), "def evaluate(*a): pass"), "the names of evaluations must differ, but got plain, plain"),
    "an evaluation's name": (toy("@dataclass(frozen=True)\nclass Setting:\n    width: int = 8\n", evaluations("", "'My Test'"), "def evaluate(*a): pass"), "the name of an evaluation must match ^[a-z][a-z0-9_]*$, but got 'My Test'"),
    "evaluations as a number": (toy("rate: float = 0.1", "evaluations: int = 3", "def evaluate(*a): pass"), "`evaluations` must be a list of configs with a name, but got 3"),
    # searches
    "a search over no field": (searched("{'depth': ponderay.Integer(1, 4)}"), "`depth` is not a config path"),
    "a search out of range": (searched("{'width': ponderay.Real(0.5, 4)}"), "`width`: Input should be a valid integer"),
    "a search from high to low": (searched("{'rate': ponderay.Real(1, 0.1)}"), "must be below"),
    "a search over a list": (searched("{'width': [4, 8]}"), "`width` must be searched by one of Real, Integer, Choice, Exponential, but got [4, 8]"),
    "a search of no trials": (searched("{'rate': ponderay.Real(0.1, 1)}", "num_trials=0"), "`num_trials` must be at least 1, but got 0"),
    "a search by another sampler": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, 'bayes'"), "`sampler` must be one of tpe, nsga2, random, grid, qmc, gp, but got 'bayes'"),
    "a search as a mapping": (given("search={'rate': ponderay.Real(0.1, 1)}"), "`search` must be of type Search"),
    "a search over the seed": (searched("{'seed': ponderay.Integer(1, 5)}"), "`seed` cannot be searched; `seeds` lists them for all conditions"),
    "a search of half a trial": (searched("{'rate': ponderay.Real(0.1, 1)}", "2.5"), "`num_trials` must be a whole number, but got 2.5"),
    "a search of a word's trials": (searched("{'rate': ponderay.Real(0.1, 1)}", "'4'"), "`num_trials` must be a whole number, but got '4'"),
    "a search seeded by a word": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, seed='q'"), "`seed` must be a whole number, but got 'q'"),
    "a search over a list of paths": (searched("['rate']"), "the `space` of a search must name at least one config path"),
    "a constraint as text": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, constraints=('loss',)"), "`constraints` must be a list of Constraint, but 'loss' is in it"),
    "seeds by need of a word": (given("sequential=ponderay.Sequential(minimum='3')"), "`minimum` must be a whole number, but got '3'"),
    "seeds by need of a word's error rate": (given("sequential=ponderay.Sequential(error_rate='.05')"), "`error_rate` must be a number, but got '.05'"),
    "a search over nothing": (searched("{}"), "the `space` of a search must name at least one config path"),
    "an empty choice": (searched("{'width': ponderay.Choice(())}"), "`values` must hold at least one value, but got () (toy.py, line"),
    "a logarithm of zero": (searched("{'rate': ponderay.Real(0, 1, log=True)}"), "`low` must be positive on a logarithmic scale, but got 0 (toy.py, line"),
    "a constraint on an unknown metric": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, constraints=(ponderay.Constraint('macs', 3),)").replace("toy = ", METRICS + "toy = "), "the constraint's metric 'macs' is not among the metrics of toy: loss"),
    "seeds by need in a search": (searched("{'rate': ponderay.Real(0.1, 1)}").replace("search=", "sequential=ponderay.Sequential(question='front'), search="), "seeds by need work with listed conditions only"),
    "a pruned search of one seed": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, pruned=True").replace("search=", "seeds=(3,), search="), "a pruned search needs at least 2 seeds, the first to decide on the others, but got 1"),
    "a search that is pruned by a word": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, pruned='asha'"), "`pruned` must be True or False, but got 'asha'"),
    "a search that is halved by a word": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, halving='loss'"), "`halving` must be of type Halving, but got 'loss'"),
    "a search that is halved from step 0": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, halving=ponderay.Halving('loss', 0)"), "`first` of `halving` must be at least 1, but got 0"),
    "a search that is halved by 1": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, halving=ponderay.Halving('loss', 1, 1)"), "`factor` of `halving` must be at least 2, but got 1"),
    "a search that is halved downwards": (searched("{'rate': ponderay.Real(0.1, 1)}", "4, halving=ponderay.Halving('loss', 1, direction='down')"), "the direction of `halving` must be minimize or maximize, but got 'down'"),
    # values without an order, and values that are alike
    "a choice of a set": (searched("{'width': ponderay.Choice({4, 8})}"), "`values` of a Choice must be a list or tuple, but got {8, 4}"),
    "a choice of letters": (searched("{'width': ponderay.Choice('48')}"), "`values` of a Choice must be a list or tuple, but got '48'"),
    "a choice of True and 1": (searched("{'width': ponderay.Choice((True, 2, 1))}"), "The values of a Choice must differ in value and in writing, but got True and 1; leave one out"),
    "a choice of 1 and 1.0": (searched("{'rate': ponderay.Choice((1, 1.0))}"), "must differ in value and in writing, but got 1 and 1.0"),
    "a choice of 2 and '2'": (searched("{'width': ponderay.Choice((2, '2'))}").replace("width: int", "width: int | str"), "must differ in value and in writing, but got 2 and '2'"),
    "a choice of sets": (searched("{'width': ponderay.Choice((4, {8}))}").replace("width: int", "width: tuple[int, ...] | int"), "`width` must hold no set, whose order differs each time, but got {8}; use a tuple"),
    "a grid of a set": (toy("[4, 8]", "{4, 8}"), "A grid lists values for each path, but `width` has {8, 4}"),
    "a grid of letters": (toy("[4, 8]", "'48'"), "A grid lists values for each path, but `width` has '48'"),
    "a grid of bytes": (toy("[4, 8]", "b'48'"), "A grid lists values for each path, but `width` has b'48'"),
    "a grid of False and 0": (toy("[4, 8]", "[0, 8, False]"), "The values of a grid for `width` must differ in value and in writing, but got 0 and False"),
    "a grid of a value and its text": (toy("[4, 8]", "[4, '4']"), "The values of a grid for `width` must differ in value and in writing, but got 4 and '4'"),
    "a grid of sets for a tuple": (toy("[4, 8]", "[(4,), {8}]").replace("width: int = 8", "width: tuple[int, ...] = (8,)").replace('reference="width=8",', ""), "`width` must hold no set, whose order differs each time, but got {8}; use a tuple"),
    "a set in a tuple of the config": (toy("width: int = 8", "width: int = 8\n    groups: tuple[frozenset[str], ...] = (frozenset('a'),)"), "toy: `groups` of Setting must hold no set, whose order differs each time, but got frozenset({'a'}); use a tuple"),
    "a set in a mapping of the config": (toy("width: int = 8", "width: int = 8\n    groups: dict[str, list[set[str]]] = ponderay.Config()").replace("ponderay.Config()", "__import__('dataclasses').field(default_factory=lambda: {'a': [{'b'}]})"), "toy: `groups` of Setting must hold no set, whose order differs each time, but got {'b'}; use a tuple"),
    "a set for a tuple of a Config": (toy("@dataclass(frozen=True)\nclass Setting:", "class Setting(ponderay.Config):\n    layers: tuple[int, ...] = ()").replace("Setting()", "Setting(layers={2})"), "`layers` must hold no set, whose order differs each time, but got {2}; use a tuple"),
    "seeds as a set": (given("seeds={1, 2}"), "`seeds` must be a list of int, but got {1, 2}"),
    "seeds as bytes": (given("seeds=b'12'"), "`seeds` must be a list of int, but got b'12'"),
    "a condition computed from letters": (toy('ponderay.grid({"width": [4, 8]})', '[ponderay.Condition("a", {"width": 4}, computed_from="rate")]'), "condition 'a': `computed_from` must be a list of str, but got 'rate'"),
    # prerequisites
    "a prerequisite of no field": (given("prerequisites=[ponderay.Prerequisite('first', 'toy', 'first')]"), "the prerequisite 'first' names `first`, which no config has"),
    "a prerequisite of a number": (given("prerequisites=[ponderay.Prerequisite('first', 'toy', 'width')]"), "`width`, of a prerequisite, must be a config: 8"),
    "two prerequisites of one name": (given("prerequisites=[ponderay.Prerequisite('first', 'toy', 'first'), ponderay.Prerequisite('first', 'toy', 'width')]"), "the names of prerequisites must differ, but got first, first"),
    "a prerequisite's resources as a mapping": (given("prerequisites=[ponderay.Prerequisite('first', 'toy', 'first', resources={'num_workers': 2})]"), "prerequisite 'first': `resources` must be of type Resources, but got {'num_workers': 2}"),
    "a shared prerequisite of a seed": (given("prerequisites=[ponderay.Prerequisite('first', 'toy', 'first')]").replace("    seed: int = 1\n", "    seed: int = 1\n\n    @property\n    def first(self):\n        return Inner(size=self.seed)\n", 1).replace("@dataclass", "@dataclass(frozen=True)\nclass Inner:\n    size: int = 1\n    seed: int = 1\n\n@dataclass", 1), "`first` differs between seeds, but all share one run of the prerequisite 'first'; give it `each_seed=True`"),
    "a prerequisite as text": (given("prerequisites=['first']"), "`prerequisites` must be a list of Prerequisite, but 'first' is in it"),
    "a prerequisite's trainable": (given("prerequisites=[ponderay.Prerequisite('first', 'no_such_package', 'first')]").replace("    rate: float = 0.1", "    first: Inner = Inner()").replace("@dataclass", "@dataclass(frozen=True)\nclass Inner:\n    size: int = 1\n\n@dataclass", 1), "The trainable 'no_such_package' cannot be imported"),
}  # fmt: skip


@pytest.fixture
def say(workplace, monkeypatch, capsys):
    """Runs a command in this process on sources in a fresh folder; what it says, which must be one line and code 2."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    trainable._load.cache_clear()

    def say(source: str, *arguments: str) -> str:
        Path("toy.py").write_text(source)
        monkeypatch.setattr(sys, "argv", ["ponderay", *(arguments or ("plan", "toy.py:toy"))])
        with pytest.raises(SystemExit) as raised:
            cli.main()
        printed = capsys.readouterr()
        assert (raised.value.code, printed.out) == (2, ""), printed
        return printed.err

    yield say
    sys.modules.pop("toy", None)


@pytest.mark.parametrize(("source", "said"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_one_sentence_before_anything_starts(say, source, said):
    message = say(source)
    assert said in message
    assert message.startswith("ponderay: ") and message.count("\n") == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "toy.py:toy", "--smoke"), "toy.py:toy has no small size; make it a function of `size`"),
        (("show", "toy.py"), "A file of sweeps is named with the sweep in it: toy.py:NAME"),
        (("show", "toys.py:toy"), "There is no file toys.py"),
        (("show", "toy:toys"), "toy has no 'toys'; its sweeps are toy"),
        (("show", "no_such_package:toy"), "There is no module 'no_such_package', installed or in this folder"),
        (("show", "a-b:toy"), "A sweep is named FILE.py:NAME or MODULE:NAME"),
        (("show", "my-toy.py:toy"), "There is no file my-toy.py"),
        (("show", "toy"), "One of your own is FILE.py:NAME or MODULE:NAME"),
        (("train", "toy.py:toy", "--condition", "width=5"), "toy has no condition 'width=5'; it has width=4, width=8"),
        (("run", "toy.py:toy", "--set", "depth=3"), "`depth` is not a config path"),
        (("run", "toy.py:toy", "--set", "rate=fast"), "`rate`: Input should be a valid number"),
        (("run", "toy.py:toy", "--resource", "gpus=1"), "'gpus' is not a resource"),
        (("status", "toy.py:toy"), "toy has not run here yet"),
    ],
)
def test_a_mistake_in_a_command_is_one_sentence(say, arguments, said):
    assert said in say(GOOD, *arguments)


@pytest.mark.parametrize("case", ["train of one argument", "syntax", "a name with a space"])
def test_the_command_itself_shows_no_traceback(workplace, case):
    source, said = WRONG[case]
    Path("toy.py").write_text(source)
    command = [sys.executable, "-m", "orchestrator", "run", "toy.py:toy"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert said in done.stderr


def test_the_good_source_is_taken(workplace, monkeypatch, capsys):
    Path("toy.py").write_text(GOOD)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", ["ponderay", "plan", "toy.py:toy"])
    trainable._load.cache_clear()
    with pytest.raises(SystemExit) as raised:
        cli.main()
    sys.modules.pop("toy")
    assert raised.value.code == 0
    assert "width=4" in capsys.readouterr().out


def test_there_are_many():
    assert len({said for _, said in WRONG.values()}) >= 40
