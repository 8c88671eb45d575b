"""Of a file with a model and its sweep, what is the model's code."""

import pytest

from orchestrator.worker.code_version import code_version
from tests.door import PLAIN
from trainables.errors import InputError


def version(folder, monkeypatch, source, name):
    (folder / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(folder)
    return code_version(name)


@pytest.mark.parametrize(
    ("old", "new", "is_noticed"),
    [
        ('{"width": [4, 8]}', '{"width": [4, 8, 16]}', False),
        ('description="A loss', 'description="The loss', False),
        ("    for step in", "    # a comment\n    for step in", False),
        ("0.9 * loss", "0.8 * loss", True),
        ("width: int = 8", "width: int = 9", True),
        ("def train(", "FACTOR = 2\n\n\ndef train(", False),
        ("def train(config, trial):", "FACTOR = 2\n\n\ndef train(config, trial):\n    print(FACTOR)", True),
        ("import random\n", "import random\n\nrandom.seed(1)\n", True),
        ("\ntoy =", '\nif __name__ == "__main__":\n    ponderay.run("toy")\ntoy =', False),
    ],
)
def test_a_change_of_the_model_is_noticed_and_one_of_the_sweep_is_not(tmp_path, monkeypatch, old, new, is_noticed):
    assert old in PLAIN
    first, second = (
        version(tmp_path, monkeypatch, source, "toy_of_versions") for source in (PLAIN, PLAIN.replace(old, new))
    )
    assert (first != second) is is_noticed


REGISTRY = """
MODELS = {}


def register(f):
    MODELS[f.__name__] = f


def rate():
    return 0.9


def train("""
REGISTERED = PLAIN.replace("def train(", REGISTRY, 1).replace("0.9 * loss", "MODELS['rate']() * loss")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def rate", "@register\ndef rate"),
        ("\ndef train(", "_ = register(rate)\n\n\ndef train("),
        ("\ndef train(", "rate = register(rate)\n\n\ndef train("),
        ("\ndef train(", "register(rate)\n\n\ndef train("),
    ],
)
def test_a_model_that_is_reached_through_a_registry_counts(tmp_path, monkeypatch, old, new):
    source = REGISTERED.replace(old, new, 1)
    first = version(tmp_path, monkeypatch, source, "registering")
    assert version(tmp_path, monkeypatch, source.replace("return 0.9", "return 0.8"), "registering") != first
    assert version(tmp_path, monkeypatch, source.replace('"A loss', '"The loss'), "registering") == first


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def rate", "@register\ndef rate"),
        ("\ntoy =", "\nNAMES = [register(f) for f in (rate,)]\ntoy ="),
        (
            "\ntoy =",
            "\ndef all_of(functions):\n    return [register(f) for f in functions]\n\n\nNAMES = all_of([rate])\ntoy =",
        ),
        ('{"width": [4, 8]}', '{"width": [4, 8 if register(rate) else 8]}'),
        ('{"width": [4, 8]}', '{"width": [8 if [register(f) for f in (rate,)] else 4, 4]}'),
        ("\ntoy =", "\nNAMES = [MODELS.setdefault(f.__name__, f) for f in (rate,)]\ntoy ="),
        ("\ntoy =", "\nfrom mylab import register as enter\nNAMES = [enter(f) for f in (rate,)]\ntoy ="),
        ("\ntoy =", "\ndef put(f, *, into):\n    into[f.__name__] = f\n\n\nNAMES = [put(rate, into=MODELS)]\ntoy ="),
        ("\ntoy =", "\ndef put(f):\n    known = MODELS\n    known['rate'] = f\n\n\nNAMES = [put(rate)]\ntoy ="),
        (
            "\ntoy =",
            "\ndef all_in():\n    return through(rate, MODELS)\n\n\n"
            "def through(f, into):\n    return put(f, into)\n\n\n"
            "def put(f, into):\n    into[f.__name__] = f\n\n\nNAMES = [all_in()]\ntoy =",
        ),
        ("MODELS['rate']()", "globals()['rate']()"),
        *(("\ndef train(", f"\nMODELS = {looks_up}()\n\n\ndef train(") for looks_up in ("vars", "locals", "dir")),
        ("MODELS['rate']()", "getattr(sys.modules[__name__], 'rate')()"),
    ],
)
def test_a_model_counts_that_the_sweep_alone_names(tmp_path, monkeypatch, old, new):
    """Its names stand in the grid, so that nothing but the sweep uses them; what fills the registry acts."""
    source = REGISTERED.replace("MODELS[f.__name__] = f", "MODELS[f.__name__] = f\n    return f").replace(old, new, 1)
    used = "NAMES" if "NAMES" in source else "rate"
    source = source.replace('description="A loss', f'description=str({used}) and "A loss')
    first = version(tmp_path, monkeypatch, source, "named_by_a_sweep")
    assert version(tmp_path, monkeypatch, source.replace("return 0.9", "return 0.8"), "named_by_a_sweep") != first
    assert version(tmp_path, monkeypatch, source.replace("A loss", "The loss"), "named_by_a_sweep") == first


@pytest.mark.parametrize(
    ("made", "call"),
    [
        (
            "def widths():\n    found = []\n    for k in (1, 2):\n        found.append(4 * k)\n    return found",
            "widths()",
        ),
        ("def add(found, k):\n    found.append(4 * k)\n    return found", "add(add([], 1), 2)"),
        ("@functools.cache\ndef widths():\n    return [4 * k for k in (1, 2)]", "widths()"),
        ("def widths():\n    print('made')\n    return [int(4 * k) for k in np.arange(1, 3)]", "widths()"),
        ("KS = {1: 'a', 2: 'b'}\nWIDTHS = [4 * k for k, _ in KS.items()]", "WIDTHS"),
    ],
)
def test_what_makes_the_conditions_does_not_count(tmp_path, monkeypatch, made, call):
    source = PLAIN.replace("import random\n", "import functools\nimport random\n\nimport numpy as np\n", 1)
    source = source.replace("\ntoy =", f"\n{made}\n\n\ntoy =", 1).replace("[4, 8]", call)
    source = source.replace("    for step in", "    vars(config)\n    for step in", 1)
    assert f'"width": {call}' in source and "vars(config)" in source
    first = version(tmp_path, monkeypatch, source, "made_widths")
    assert version(tmp_path, monkeypatch, source.replace("4 * k", "5 * k"), "made_widths") == first


def test_a_module_that_is_imported_for_what_it_does_counts(tmp_path, monkeypatch):
    (tmp_path / "made_models.py").write_text("import random\nrandom.seed(1)\n")
    source = PLAIN.replace("import random\n", "import random\n\nimport made_models\n", 1)
    first = version(tmp_path, monkeypatch, source, "importing")
    (tmp_path / "made_models.py").write_text("import random\nrandom.seed(2)\n")
    assert code_version("importing") != first


def test_what_only_the_sweep_uses_does_not_count(tmp_path, monkeypatch):
    source = PLAIN.replace("\ntoy =", "\nWIDTHS = list(range(4, 9, 4))\n\n\ntoy =", 1).replace("[4, 8]", "WIDTHS")
    assert '"width": WIDTHS' in source
    first = version(tmp_path, monkeypatch, source, "declaring")
    assert version(tmp_path, monkeypatch, source.replace("range(4, 9, 4)", "range(4, 17, 4)"), "declaring") == first
    more = source + "\nboth = [ponderay.run, toy]\n"
    assert version(tmp_path, monkeypatch, more, "declaring") == first


def test_listed_sources_alone_count(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "a.txt").write_text("1")
    source = PLAIN + '\nsources = ["weights/*.txt"]\n'
    first = version(tmp_path, monkeypatch, source, "listing")
    assert version(tmp_path, monkeypatch, source.replace("0.9", "0.8"), "listing") == first
    (tmp_path / "weights" / "a.txt").write_text("2")
    assert code_version("listing") != first
    with pytest.raises(InputError, match=r"`sources` of listing names 'gone/\*', but there is no such file in"):
        version(tmp_path, monkeypatch, source.replace("weights/*.txt", "gone/*"), "listing")
    with pytest.raises(InputError, match=r"`sources` of listing must be a list of names of files, written out"):
        version(tmp_path, monkeypatch, PLAIN + "\nsources = [str(1)]\n", "listing")


@pytest.mark.parametrize("sources", ['"a.py"', '["/a.py"]', '[""]', "[1]"])
def test_what_is_no_list_of_files_in_the_folder_is_refused(tmp_path, monkeypatch, sources):
    with pytest.raises(InputError, match="must be a list of names of files, written out, from its folder"):
        version(tmp_path, monkeypatch, f"{PLAIN}\nsources = {sources}\n", "unlisted")


def test_the_code_of_a_config_that_stands_elsewhere_counts(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "building.py").write_text("FACTOR = 1\n")
    (tmp_path / "configs_apart.py").write_text(
        "import building\n\nclass Toy:\n    def build(self):\n        return 1\n"
    )
    (tmp_path / "training_apart.py").write_text("def train(config, trial):\n    config.build()\n")
    versions = [code_version("training_apart", "configs_apart:Toy")]
    for name, old, new in (("configs_apart.py", "return 1", "return 2"), ("building.py", "1", "2")):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace(old, new))
        versions.append(code_version("training_apart", "configs_apart:Toy"))
    assert len(set(versions)) == 3
