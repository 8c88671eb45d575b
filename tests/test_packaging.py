"""What is installed: the pinned versions, the wheel in an environment of its own, and the files about the project."""

import ast
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
CONSTRAINTS = REPOSITORY / "constraints.txt"
PACKAGES = ("orchestrator", "search_spaces", "trainables", "ponderay")
BRIDGES = {"ponderay.lightning", "ponderay.transformers"}  # each needs the package that its user has
PYTHONS = ("3.11", "3.12", "3.13")
BIN = Path(sys.executable).parent
PINNED = re.compile(r"^([\w.-]+)==([\w.+!-]+)$", re.MULTILINE)


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command's end in `folder`, whatever it is."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


def done(*command: str | Path, folder: Path = REPOSITORY) -> str:
    """What a command prints that must succeed."""
    process = run(*command, folder=folder)
    assert process.returncode == 0, process.stdout[-2000:] + process.stderr[-2000:]
    return process.stdout


def resolved(python: str, *options: str | Path) -> dict[str, str]:
    """Version by name of what would be installed on Linux for that version of Python, from wheels alone."""
    platform = ("--python-version", python, "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:")
    return dict(PINNED.findall(done(BIN / "uv", "pip", "compile", "--quiet", *platform, *options, "pyproject.toml")))


@pytest.mark.slow
def test_every_version_is_pinned_and_the_pins_go_together_and_without_them_torch_is_of_the_release_that_was_tested():
    pins = dict(PINNED.findall(CONSTRAINTS.read_text()))
    for python in PYTHONS:
        found = resolved(python, "--constraint", CONSTRAINTS, "--extra", "dev")
        assert found | {"uv": pins["uv"]} == pins, python
    free = resolved(PYTHONS[0])
    for name in (
        "torch",
        "torchaudio",
    ):  # they need not be equal: torchaudio 2.11 is the last one, and loads beside 2.14
        assert free[name].split(".")[:2] == pins[name].split(".")[:2], name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files that git knows, for a build in place would take in what an older one has left."""
    sources, folder = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel")
    for name in done("git", "ls-files", *PACKAGES, "pyproject.toml", "README.md", "LICENSE").split():
        if (REPOSITORY / name).is_file():
            (sources / name).parent.mkdir(parents=True, exist_ok=True)
            (sources / name).write_bytes((REPOSITORY / name).read_bytes())
    done(BIN / "uv", "build", "--quiet", "--wheel", "--out-dir", folder, sources)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and what it needs, and nothing for development."""
    environment = tmp_path_factory.mktemp("clean") / "venv"
    done(BIN / "uv", "venv", "--quiet", "--python", sys.executable, environment)
    python = environment / "bin" / "python"
    done(BIN / "uv", "pip", "install", "--quiet", "--python", python, "--constraint", CONSTRAINTS, wheel)
    ray = next(environment.glob("lib/*/site-packages/ray"))
    done(python, "-m", "compileall", "-q", ray)  # its processes have 15 s to start, with all they import
    return python.parent


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_packages_and_the_licence(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    expected = {name for name in done("git", "ls-files", *PACKAGES).split() if (REPOSITORY / name).is_file()}
    assert {f"{package}/py.typed" for package in PACKAGES} <= expected
    assert expected - held == set()
    assert f"ponderay-{PROJECT['version']}.dist-info/licenses/LICENSE" in held


@pytest.mark.slow
def test_every_module_of_the_wheel_is_imported_without_what_development_needs(clean, tmp_path):
    names = {name for package in PACKAGES for name in modules(package) if not name.endswith("__main__")} - BRIDGES
    program = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done(clean / "python", "-c", program, *sorted(names), folder=tmp_path)


@pytest.fixture
def own_folder(workplace: Path) -> Path:
    """A working folder with packages of the user's own that have our packages' names."""
    for name in ("trainables", "search_spaces"):
        (workplace / name).mkdir()
        (workplace / name / "__init__.py").write_text("raise RuntimeError('this is the user\\'s own')\n")
    return workplace


@pytest.mark.slow
def test_the_wheel_runs_a_sweep_beside_packages_of_the_same_names(clean, own_folder):
    assert "act.tau_parity_laptop" in done(clean / "ponderay", "sweeps", "--format", "json", folder=own_folder)
    ended = done(clean / "ponderay", "run", "act.tau_parity_laptop", "--smoke", folder=own_folder)
    assert ended.rstrip().endswith("act.tau_parity_laptop.smoke: 3 complete, 0 failed")


def test_python_m_runs_beside_packages_of_the_same_names(own_folder):
    assert "asr.demo" in done(sys.executable, "-m", "orchestrator", "sweeps", "--format", "json", folder=own_folder)


def test_a_package_of_the_same_name_that_was_imported_before_is_refused_in_a_sentence(own_folder):
    (own_folder / "trainables" / "__init__.py").write_text("")
    process = run(sys.executable, "-c", "import trainables, orchestrator", folder=own_folder)
    assert process.returncode != 0
    assert process.stderr.splitlines()[-1] == (
        f"ImportError: `trainables` must be Ponderay's package in {REPOSITORY}, but {own_folder / 'trainables'} was "
        "imported before. Import `orchestrator` first, or rename that folder."
    )


def modules(package: str) -> set[str]:
    """The import paths of the modules of a package, with its own."""
    files = [file.relative_to(REPOSITORY).with_suffix("") for file in (REPOSITORY / package).rglob("*.py")]
    return {".".join(file.parts).removesuffix(".__init__") for file in files}


@pytest.mark.slow
def test_the_api_reference_has_a_page_for_each_module_and_no_warning(tmp_path):
    command = ("make", "--old-file", ".venv/installed", "docs", f"BIN={BIN}", f"DOCS={tmp_path}")
    process = run(*command, folder=REPOSITORY)
    assert (process.returncode, process.stderr) == (0, "")
    pages = {".".join(page.relative_to(tmp_path).with_suffix("").parts) for page in tmp_path.rglob("*.html")}
    documented = {name for package in PACKAGES for name in modules(package) if not is_empty(name)}
    assert documented - {"orchestrator.__main__", "ponderay.__main__"} <= pages


def is_empty(module: str) -> bool:
    """Whether the file has nothing to document."""
    path = REPOSITORY / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return not ast.parse(file.read_text()).body


def test_the_licence_and_the_version_are_everywhere_the_same():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text().splitlines()[0]
    assert f"## [{PROJECT['version']}]" in (REPOSITORY / "CHANGELOG.md").read_text()


def test_hosted_ci_runs_every_check_with_the_packages_that_tests_use():
    jobs = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    commands = [step["run"] for step in jobs["all-checks"]["steps"] if "run" in step]
    assert commands[-1] == ".ci/run"
    install = next(line for line in commands if "apt-get install" in line)
    contributing = (REPOSITORY / "CONTRIBUTING.md").read_text()
    assert f"apt-get install {install.partition('--yes ')[2]}\n" in contributing
    pythons = [
        jobs["all-checks"]["container"]["image"].split(":")[1],
        *jobs["other-pythons"]["strategy"]["matrix"]["python"],
    ]
    assert tuple(python.removesuffix("-bookworm") for python in pythons) == PYTHONS
    assert {f"Programming Language :: Python :: {python}" for python in PYTHONS} <= set(PROJECT["classifiers"])
