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
    ],
)
def test_a_change_of_the_model_is_noticed_and_one_of_the_sweep_is_not(tmp_path, monkeypatch, old, new, is_noticed):
    assert old in PLAIN
    first, second = (
        version(tmp_path, monkeypatch, source, "toy_of_versions") for source in (PLAIN, PLAIN.replace(old, new))
    )
    assert (first != second) is is_noticed


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
