"""Sweeps by import path, by file, and by entry points of installed packages."""

import sys

import pytest

from search_spaces import find
from search_spaces.find import families, find_sweep, installed_sweeps, place_in_upload, sweeps_at
from tests.door import PLAIN, ponderay
from trainables.errors import InputError

ENTRIES = """[ponderay.sweeps]
mylab = mylab.sweeps:SWEEPS
mytoy = mylab.sweeps:toy
broken = mylab_broken:toy
"""
MORE = """
from dataclasses import replace


def sized(size):
    return replace(toy, name="toy.smoke" if size == "smoke" else "toy")


def unsized():
    return toy


SWEEPS = {"toy": sized, "other.toy": lambda size: replace(toy, name="other")}
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """An installed package with entry points."""
    files = {
        "mylab/__init__.py": "",
        "mylab/sweeps.py": PLAIN + MORE,
        "mylab_broken.py": "raise RuntimeError('imported')",
        "mylab-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mylab\nVersion: 1.0\n",
        "mylab-1.0.dist-info/entry_points.txt": ENTRIES,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    find._entries.cache_clear()
    yield tmp_path
    find._entries.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mylab", "mylab_broken")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "declared_at"),
    [
        ("mylab.sweeps:toy", "mylab.sweeps:toy"),
        ("mylab.sweeps:unsized", "mylab.sweeps:unsized"),
        ("mylab.sweeps:SWEEPS.toy", "mylab.sweeps:SWEEPS.toy"),
        ("mylab.toy", "mylab.sweeps:SWEEPS.toy"),
        ("mytoy", "mylab.sweeps:toy"),
    ],
)
def test_one_sweep_has_several_names_and_remembers_where_it_is_declared(lab, name, declared_at):
    sweep = find_sweep(name)
    assert (sweep.name, sweep.trainable, sweep.declared_at) == ("toy", "mylab.sweeps", declared_at)
    assert find_sweep(sweep.declared_at) == sweep, "a job is sent this name, for an upload has no entry points"


def test_the_small_size_goes_to_the_function(lab):
    assert find_sweep("mylab.toy", smoke=True).name == "toy.smoke"
    assert find_sweep("mylab.other.toy").name == "other"
    with pytest.raises(InputError, match=r"mylab\.sweeps:toy has no small size; make it a function of `size`"):
        find_sweep("mytoy", smoke=True)


def test_listing_imports_no_module_of_another_package(lab):
    names = {listed.name: listed.sweep for listed in installed_sweeps()}
    assert names["mylab"] is names["mytoy"] is names["broken"] is None and names["asr.demo"] is not None
    assert not {"mylab.sweeps", "mylab_broken"} & set(sys.modules)
    found = ponderay(lab, "sweeps", "--format", "csv")
    assert found.returncode == 0 and "broken,,,of another package; `ponderay sweeps broken` says more" in found.stdout


def test_a_family_says_what_it_is_and_where_to_begin():
    found = {family.name: family for family in families()}
    assert sorted(found) == ["act", "asr", "lm"]
    for name, family in found.items():
        assert family.num_sweeps == len(sweeps_at(name)) and family.about.startswith("Sweeps of ")
        assert find_sweep(family.first, smoke=True)


def test_a_place_lists_its_sweeps(lab):
    assert [listed.name for listed in sweeps_at("mylab")] == ["mylab.other.toy", "mylab.toy"]
    assert [listed.name for listed in sweeps_at("mylab.sweeps")] == ["toy"]
    assert [listed.name for listed in sweeps_at(str(lab / "mylab" / "sweeps.py"))] == ["toy"]
    assert [(listed.name, listed.sweep.name) for listed in sweeps_at("asr.demo")] == [("asr.demo", "asr.demo")]
    assert len(sweeps_at("asr")) == sum(listed.name.startswith("asr.") for listed in installed_sweeps())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", r"mylab_broken cannot be imported: RuntimeError: imported \(mylab_broken\.py, line 1\)"),
        ("mylab.nothing", r"no sweep 'mylab\.nothing'; the sweeps of mylab are mylab\.other\.toy, mylab\.toy"),
        ("mylab.sweeps:SWEEPS.nothing", r"no sweep 'nothing' in mylab\.sweeps:SWEEPS; there are other\.toy, toy"),
        ("mylab.sweeps:Toy", r"mylab\.sweeps:Toy must return a Sweep"),
        ("mylab.sweeps:dataclasses", r"must be a Sweep, or a function that returns one"),
        ("mylab.sweeps:nothing", r"mylab\.sweeps has no 'nothing'; its sweeps are toy"),
        ("nothing.at.all:toy", r"There is no module 'nothing', installed or in this folder"),
        ("my sweep:toy", r"named FILE\.py:NAME or MODULE:NAME, but got 'my sweep'"),
        ("nothing.py:toy", r"There is no file nothing\.py"),
        ("asr.dmeo", r"no sweep 'asr\.dmeo'; the sweeps of asr are .*; the nearest is 'asr\.demo'\."),
        ("asr_demo", r"no sweep 'asr_demo'; .*; the nearest is 'asr\.demo' \(see `ponderay sweeps --all`\)"),
        ("toy", r"There is no sweep 'toy'; the sweeps are .*One of your own is FILE\.py:NAME or MODULE:NAME"),
    ],
)
def test_a_name_that_means_nothing_is_told_what_there_is(lab, name, said):
    with pytest.raises(InputError, match=said):
        find_sweep(name)


@pytest.mark.parametrize("name", ["json", "antigravity", "pytest"])
def test_a_file_with_the_name_of_another_module_is_refused_and_its_folder_not_searched(tmp_path, name):
    (tmp_path / f"{name}.py").write_text(PLAIN)
    with pytest.raises(InputError, match=rf"{name}\.py has the name of another module, '{name}'; rename the file"):
        find_sweep(f"{tmp_path / name}.py:toy")
    assert str(tmp_path) not in sys.path


def test_a_file_in_a_folder_is_at_the_top_of_what_is_sent(tmp_path):
    (tmp_path / "alone_there.py").write_text(PLAIN)
    sweep = find_sweep(f"{tmp_path / 'alone_there.py'}:toy")
    assert place_in_upload(sweep) == ("alone_there.py:toy", "alone_there")
    assert place_in_upload(find_sweep("asr.demo")) == ("search_spaces.asr:SWEEPS.demo", "search_spaces.asr")


UNION = """
import dataclasses

import ponderay


@dataclasses.dataclass(frozen=True)
class Sgd:
    rate: float = 0.1


@dataclasses.dataclass(frozen=True)
class Adam:
    rate: float = 0.1


@dataclasses.dataclass(frozen=True)
class Setting:
    optimiser: Sgd | Adam = Sgd()
    tags: frozenset[str] = frozenset()
    seed: int = 1


conditions = (ponderay.Condition("sgd"), ponderay.Condition("adam", {"optimiser": Adam()}))
loss = ponderay.Objective("loss")


def union():
    return ponderay.Sweep("union", "d", __name__, Setting(), (loss,), conditions)
"""


def test_a_condition_that_workers_would_read_as_another_is_refused(tmp_path):
    file = tmp_path / "of_union.py"
    file.write_text(UNION.replace("    tags: frozenset[str] = frozenset()\n", ""))
    with pytest.raises(InputError, match="condition 'adam': the config Setting is another one when"):
        find_sweep(f"{file}:union")
    (tmp_path / "of_sets.py").write_text(UNION)
    with pytest.raises(InputError, match=r"`tags` of Setting must hold no set, .*; use a tuple"):
        find_sweep(f"{tmp_path / 'of_sets.py'}:union")


def test_a_file_of_a_package_that_needs_it_is_told_by_what_name_it_is_found(tmp_path):
    folder = tmp_path / "lab_of_files" / "inner"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").write_text("")
    for name, statement in (("absolute_one", "import lab_of_files.inner"), ("relative_one", "from . import other")):
        (folder / f"{name}.py").write_text(f"{statement}\n{PLAIN}")
        said = rf"The file is of a package: in {tmp_path} it is `lab_of_files\.inner\.{name}:NAME`\."
        with pytest.raises(InputError, match=said):
            find_sweep(f"{folder / name}.py:toy")
    (folder / "lone_toy.py").write_text(PLAIN)
    assert find_sweep(f"{folder / 'lone_toy.py'}:toy").name == "toy"
    (folder / "wrong_one.py").write_text("import no_such_module")
    with pytest.raises(InputError, match=r"No module named 'no_such_module' \(wrong_one\.py, line 1\)\.$"):
        find_sweep(f"{folder / 'wrong_one.py'}:toy")


OFFERED = """

def offered(size: str) -> ponderay.Sweep:
    return toy


def later() -> "ponderay.Sweep":
    return toy


def of_two(name: str, size: str) -> ponderay.Sweep:
    return toy


def _own(size: str) -> ponderay.Sweep:
    return toy
"""


def test_functions_that_say_that_they_return_a_sweep_are_among_those_of_a_module(tmp_path):
    file = tmp_path / "of_functions.py"
    file.write_text(PLAIN + OFFERED)
    assert [one.name for one in sweeps_at(str(file))] == ["toy", "offered", "later"]
    with pytest.raises(InputError, match=r"has no 'nothing'; its sweeps are later, offered, toy\.$"):
        find_sweep(f"{file}:nothing")
