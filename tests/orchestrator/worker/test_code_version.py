"""The version of a trainable's code changes with every source that it imports, and with no other."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.worker.code_version import code_version, imported_sources
from trainables.errors import InputError

FILES = {
    "mylab/__init__.py": "",
    "mylab/speech/__init__.py": "from .sizes import WIDTH",
    "mylab/speech/sizes.py": "WIDTH = 8",
    "mylab/speech/train.py": (
        "import torch\nimport json\nfrom mylab.blocks.deep import attention\nfrom ..blocks import norm as layer_norm\n"
        "import sibling\nfrom trainables.config import Config\nRECIPE = 'mylab.mentioned'\n"
        "def train(config, trial):\n"
        "    match config:\n        case _:\n            with trial:\n                from mylab import late\n"
        "def evaluate():\n    try:\n        import mylab.gone.for_good\n    except ImportError:\n"
        "        from mylab.cycle import one as _\n"
    ),
    "mylab/blocks/__init__.py": "",
    "mylab/blocks/norm.py": "",
    "mylab/blocks/unused.py": "",
    "mylab/blocks/deep/__init__.py": "",
    "mylab/blocks/deep/attention.py": "from mylab.blocks.deep.heads import NUM_HEADS",
    "mylab/blocks/deep/heads.py": "NUM_HEADS = 4",
    "mylab/gone/__init__.py": "",
    "mylab/cycle/__init__.py": "",
    "mylab/cycle/one.py": "from . import two",
    "mylab/cycle/two.py": "from .one import *",
    "mylab/late.py": "raise RuntimeError('it is read, and not run')",
    "mylab/mentioned.py": "",
    "mylab/text/__init__.py": "",
    "mylab/text/train.py": "from mylab.text import words",
    "mylab/text/words.py": "",
    "sibling.py": "LEARNING_RATE = 0.1",
}
SPEECH = {
    "mylab", "mylab.speech", "mylab.speech.sizes", "mylab.speech.train", "mylab.blocks", "mylab.blocks.norm",
    "mylab.blocks.deep", "mylab.blocks.deep.attention", "mylab.blocks.deep.heads", "mylab.gone", "mylab.cycle",
    "mylab.cycle.one", "mylab.cycle.two", "mylab.late", "sibling", "trainables", "trainables.config",
}  # fmt: skip


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A user's folder of sources on the path, two packages deep."""
    write(tmp_path / "lab", FILES)
    monkeypatch.syspath_prepend(str(tmp_path / "lab"))
    return tmp_path / "lab"


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    importlib.invalidate_caches()


def test_all_that_is_imported_is_found_and_nothing_is_run(lab):
    sources = imported_sources("mylab.speech.train")
    assert {name for name in sources if not name.startswith("trainables.")} == SPEECH - {"trainables.config"}
    assert "trainables.config" in sources
    assert sources["mylab.blocks.deep.heads"] == b"NUM_HEADS = 4"
    assert not [name for name in sys.modules if name.partition(".")[0] in ("mylab", "sibling")]


@pytest.mark.parametrize("file", ["mylab/blocks/deep/heads.py", "mylab/__init__.py", "mylab/late.py", "sibling.py"])
def test_a_changed_line_of_what_is_imported_is_another_version(lab, file):
    before = code_version("mylab.speech.train")
    assert len(before) == 12
    assert set(before) <= set("0123456789abcdef")
    assert code_version("mylab.speech.train") == before
    write(lab, {file: FILES[file] + "\n# another thought\n"})
    assert code_version("mylab.speech.train") != before


def test_a_folder_called_trainables_that_comes_first_does_not_hide_ours(tmp_path, monkeypatch):
    """As in a worker of Ray, whose working folder comes before what is installed."""
    before = code_version("trainables.act.train")
    (tmp_path / "trainables").mkdir()
    (tmp_path / "trainables" / "__init__.py").write_text("raise RuntimeError('the user's own')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert code_version("trainables.act.train") == before


@pytest.mark.parametrize("file", ["mylab/mentioned.py", "mylab/blocks/unused.py", "mylab/text/words.py"])
def test_what_is_not_imported_makes_no_difference(lab, file):
    before = code_version("mylab.speech.train")
    write(lab, {file: "raise SystemExit"})
    (lab / file).rename(lab / "mylab" / "moved.py")
    assert code_version("mylab.speech.train") == before


def test_a_source_that_moves_to_another_package_is_still_watched(lab):
    write(lab, {"mylab/blocks/deep/attention.py": "from mylab.tables.heads import NUM_HEADS"})
    write(lab, {"mylab/tables/heads.py": FILES["mylab/blocks/deep/heads.py"], "mylab/tables/__init__.py": ""})
    (lab / "mylab/blocks/deep/heads.py").unlink()
    importlib.invalidate_caches()
    before = code_version("mylab.speech.train")
    write(lab, {"mylab/tables/heads.py": "NUM_HEADS = 8"})
    assert code_version("mylab.speech.train") != before


def test_the_same_sources_in_another_folder_are_the_same_version(lab, tmp_path, monkeypatch):
    before = code_version("mylab.speech.train")
    shutil.copytree(lab, tmp_path / "copy")
    monkeypatch.syspath_prepend(str(tmp_path / "copy"))
    assert code_version("mylab.speech.train") == before


def test_a_trainable_may_be_one_file_or_a_package(lab):
    write(lab, {"alone.py": "import sibling", "packed/__init__.py": "from .inner import x", "packed/inner.py": ""})
    assert set(imported_sources("alone")) == {"alone", "sibling"}
    assert set(imported_sources("packed")) == {"packed", "packed.inner"}


def test_packages_without_a_file_are_followed(lab):
    write(lab, {"spread/near/train.py": "from spread.far import part\nimport spread.far.other", "spread/unused.py": ""})
    write(lab, {"spread/far/part.py": "", "spread/far/other.py": ""})
    sources = imported_sources("spread.near.train")
    assert {name for name, source in sources.items() if source} == {"spread.near.train"}
    assert set(sources) == {
        "spread", "spread.near", "spread.near.train", "spread.far", "spread.far.part", "spread.far.other"
    }  # fmt: skip


def test_a_star_may_bring_every_module_of_a_package(lab):
    write(lab, {"starry.py": "from mylab.blocks import *"})
    assert {"mylab.blocks.norm", "mylab.blocks.unused", "mylab.blocks.deep"} <= set(imported_sources("starry"))


def test_installed_packages_are_left_out_unless_the_trainable_is_one(lab, tmp_path, monkeypatch):
    site = tmp_path / "venv" / "site-packages"
    write(site, {"bought/__init__.py": "from bought import inner", "bought/inner.py": "import sibling"})
    write(lab, {"buyer.py": "import bought, bought.inner, numpy, os.path, email.message"})
    monkeypatch.syspath_prepend(str(site))
    assert set(imported_sources("buyer")) == {"buyer"}
    assert set(imported_sources("bought")) == {"bought", "bought.inner", "sibling"}


def test_an_editable_install_is_found(lab, tmp_path, monkeypatch):
    """As setuptools makes one: a finder of its own maps the name to a folder."""
    write(tmp_path / "checkout", {"src/toys/__init__.py": "", "src/toys/car.py": ""})
    write(lab, {"player.py": "from toys import car"})

    class Editable:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "toys":
                return None
            folder = tmp_path / "checkout/src/toys"
            return importlib.util.spec_from_file_location(
                name, folder / "__init__.py", submodule_search_locations=[str(folder)]
            )

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Editable])
    assert set(imported_sources("player")) == {"player", "toys", "toys.car"}


BESIDE_A_SWEEP = """
import ponderay
import sibling
class Setting(ponderay.Config):
    width: int = 8
    def doubled(self): return times(self.width)
def times(width): return 2 * width
def drawn(): return [4, 8]
def train(config, trial): trial.report({"loss": config.doubled()}, step=1)
toy = ponderay.Sweep(conditions=ponderay.grid({"width": drawn()}))
"""


@pytest.mark.parametrize(
    ("old", "new", "is_code"),
    [
        ("2 * width", "3 * width", True),
        ("times(self", "abs(self", True),
        ("[4, 8]", "[4, 8, 16]", False),
        ("drawn()})", "[1]})", False),
    ],
)
def test_what_a_method_of_the_config_uses_is_code_and_what_the_sweep_beside_it_draws_is_not(lab, old, new, is_code):
    write(lab, {"toy.py": BESIDE_A_SWEEP})
    before = code_version("toy")
    assert old in BESIDE_A_SWEEP
    write(lab, {"toy.py": BESIDE_A_SWEEP.replace(old, new)})
    assert (code_version("toy") != before) is is_code


@pytest.mark.parametrize("reached", ["sibling.SCALE", "sibling.SCALES['a']"])
def test_what_a_module_sets_in_another_one_is_code(lab, reached):
    """Beside the sweep: `train` reads it through what it calls there."""
    versions = []
    for value in (2.0, 5.0):
        write(lab, {"toy.py": f"{BESIDE_A_SWEEP}\n{reached} = {value}\n"})
        versions.append(code_version("toy"))
    assert versions[0] != versions[1]


def test_a_file_beside_a_single_file_is_its_code(lab):
    write(lab, {"toy.py": BESIDE_A_SWEEP.replace("2 * width", "sibling.LEARNING_RATE * width")})
    before = code_version("toy")
    write(lab, {"sibling.py": "LEARNING_RATE = 0.2"})
    assert code_version("toy") != before


@pytest.mark.parametrize("text", ["def (", "\0", "from .... import up", "# coding: utf-8\nname = '\\d'"])
def test_a_source_that_does_not_compile_counts_by_its_bytes(lab, text):
    write(lab, {"broken.py": text})
    assert set(imported_sources("broken")) == {"broken"}


@pytest.mark.parametrize("path", ["mylab.speech.nothing", "nowhere.train", "mylab.late.deeper"])
def test_what_is_not_there_is_named(lab, path):
    with pytest.raises(InputError, match=f"trainable '{path}' cannot be found"):
        code_version(path)


def test_a_family_is_not_touched_by_another(tmp_path):
    """In a copy of the shipped trainables: what each of them imports lies in its own family or is shared."""
    families = ("asr", "act", "lm")
    for family in families:
        others = tuple(f"trainables.{other}" for other in families if other != family)
        sources = imported_sources(f"trainables.{family}.train")
        assert f"trainables.{family}.network" in sources
        assert "trainables.config" in sources
        assert not [name for name in sources if name.startswith(others)]
    shipped = Path(importlib.import_module("trainables").__file__).parent
    for package in ("trainables", "search_spaces", "orchestrator"):
        shutil.copytree(shipped.parent / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    before = versions(tmp_path)
    with (tmp_path / "trainables/lm/network.py").open("a") as file:
        file.write("\n# another thought\n")
    after = versions(tmp_path)
    assert before["lm"] != after["lm"]
    assert (before["asr"], before["act"]) == (after["asr"], after["act"])


def versions(folder: Path) -> dict[str, str]:
    """Of the shipped families, as a process finds them that has `folder` first on its path."""
    program = (
        f"import sys; sys.path[:0] = [{str(folder)!r}]\n"
        "from orchestrator.worker.code_version import code_version\n"
        "print(*[code_version(f'trainables.{name}.train') for name in ('asr', 'act', 'lm')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=folder)  # noqa: S603
    return dict(zip(("asr", "act", "lm"), done.stdout.split(), strict=True))
