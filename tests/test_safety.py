"""What no source may do: run what it reads, hand strings to a shell, trust any certificate, listen to everybody."""

import ast
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.journal.folder import ReplicateFolder
from orchestrator.worker.journal_trial import JournalTrial

REPOSITORY = Path(__file__).parents[1]
FOLDERS = ("orchestrator", "search_spaces", "trainables", "benchmarks", "tests")
SETTINGS = ("*.yaml", "*.yml", "*.toml", "Makefile", ".ci/run")

RUNS_WHAT_IT_READS = {"pickle", "_pickle", "cPickle", "shelve", "marshal", "joblib", "dill", "cloudpickle"}
FORBIDDEN = {
    "eval", "exec", "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "yaml.load",
    "yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "pd.read_pickle", "pandas.read_pickle", "torch.jit.load",
    "torch.hub.load", "ssl._create_unverified_context", "asyncio.create_subprocess_shell",
}  # fmt: skip
NEEDED = {
    "torch.load": ("weights_only", True),
    "np.load": ("allow_pickle", False),
    "numpy.load": ("allow_pickle", False),
}
NEVER = {("shell", True), ("verify", False), ("allow_pickle", True), ("weights_only", False), ("check_hostname", False)}
EVERYWHERE = ("0.0.0.0", "::", "*")
HOST = re.compile(r"(^|[-_])(host|bind|listen)s?$")

Rule = Callable[[ast.AST], bool]


def name_of(node: ast.AST) -> str:
    """`a.b.c` for such an expression; empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := name_of(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def keywords(node: ast.Call) -> dict[str, object]:
    """Those with a constant value; any other value is None."""
    return {k.arg: getattr(k.value, "value", None) for k in node.keywords if k.arg}


def reads_objects(node: ast.AST) -> bool:
    """Imports what builds any object from a file."""
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in RUNS_WHAT_IT_READS for alias in node.names)
    return isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in RUNS_WHAT_IT_READS


def calls_forbidden(node: ast.AST) -> bool:
    """Evaluates text, starts a shell, reads YAML or modules that can be code."""
    return isinstance(node, ast.Call) and name_of(node.func) in FORBIDDEN


def lacks_keyword(node: ast.AST) -> bool:
    """Loads arrays or tensors without saying that nothing is unpickled."""
    if not isinstance(node, ast.Call) or name_of(node.func) not in NEEDED:
        return False
    option, value = NEEDED[name_of(node.func)]
    return keywords(node).get(option) is not value


def has_keyword(node: ast.AST) -> bool:
    """Gives a value that opens something; a shell also where it is computed."""
    given = keywords(node) if isinstance(node, ast.Call) else {}
    return any((name, value) in NEVER for name, value in given.items()) or given.get("shell", False) is not False


def unpacks(node: ast.AST) -> bool:
    """Unpacks an archive where it may write outside its folder; zip archives are read into memory only."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    is_tar = node.func.attr in ("extractall", "extract")
    return (is_tar and keywords(node).get("filter") != "data") or name_of(node.func) == "shutil.unpack_archive"


def listens_to_all(node: ast.AST) -> bool:
    """A default, a keyword or an option that has a server listen on every address."""
    if isinstance(node, ast.arguments):
        return any(getattr(one, "value", None) in EVERYWHERE for one in (*node.defaults, *node.kw_defaults))
    if isinstance(node, ast.Call):
        return any(HOST.search(name) and value in EVERYWHERE for name, value in keywords(node).items())
    if isinstance(node, ast.List | ast.Tuple):
        texts = [getattr(one, "value", None) for one in node.elts]
        return any(isinstance(a, str) and HOST.search(a) and b in EVERYWHERE for a, b in pairwise(texts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and is_open_option(node.value)


def is_open_option(text: str) -> bool:
    """`--host=0.0.0.0` and the like in a line of text."""
    return re.search(r"(host|bind|listen\w*)[\"']?\s*[= :]\s*[\"']?(0\.0\.0\.0|::(?![\w:])|\*)", text) is not None


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (reads_objects, calls_forbidden, lacks_keyword, has_keyword, unpacks, listens_to_all)
}


def violations(source: str) -> Iterator[tuple[str, int]]:
    """The rule that is broken and the line, for each place in `source`."""
    for node in ast.walk(ast.parse(source)):
        for name, rule in RULES.items():
            if rule(node):
                yield name, getattr(node, "lineno", 0)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_source_breaks_a_rule(folder):
    files = sorted((REPOSITORY / folder).rglob("*.py"))
    assert files
    found = [
        f"{file.relative_to(REPOSITORY)}:{line}: {rule}"
        for file in files
        if file != Path(__file__)
        for rule, line in violations(file.read_text(encoding="utf-8"))
        if folder != "tests" or rule != "listens_to_all"  # which some are about
    ]
    assert found == []


def test_no_settings_file_has_a_server_listen_to_all():
    files = [file for pattern in SETTINGS for file in REPOSITORY.glob(pattern)]
    assert len(files) > 1
    lines = [(file, line.partition("#")[0]) for file in files for line in file.read_text().splitlines()]
    assert [(file.name, line) for file, line in lines if is_open_option(line)] == []


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("import pickle", "reads_objects"),
        ("from joblib import load", "reads_objects"),
        ("import numpy, dill", "reads_objects"),
        ("from shelve import open", "reads_objects"),
        ("import cloudpickle.compat", "reads_objects"),
        ("eval(text)", "calls_forbidden"),
        ("exec(text)", "calls_forbidden"),
        ("os.system('ls')", "calls_forbidden"),
        ("yaml.load(file)", "calls_forbidden"),
        ("pd.read_pickle(file)", "calls_forbidden"),
        ("torch.load(path)", "lacks_keyword"),
        ("torch.load(path, weights_only=is_safe)", "lacks_keyword"),
        ("np.load(path)", "lacks_keyword"),
        ("read(path, weights_only=False)", "has_keyword"),
        ("read(path, allow_pickle=True)", "has_keyword"),
        ("subprocess.run('ls', shell=True)", "has_keyword"),
        ("subprocess.run('ls', shell=on_windows)", "has_keyword"),
        ("requests.get(url, verify=False)", "has_keyword"),
        ("archive.extractall(place)", "unpacks"),
        ("archive.extract(member, place)", "unpacks"),
        ("shutil.unpack_archive(file)", "unpacks"),
        ("def serve(host='0.0.0.0'): ...", "listens_to_all"),
        ("def serve(*, host='::'): ...", "listens_to_all"),
        ("ray.init(dashboard_host='0.0.0.0')", "listens_to_all"),
        ("run(['mlflow', '--host', '0.0.0.0'])", "listens_to_all"),
        ("run(f'--dashboard-host=0.0.0.0')", "listens_to_all"),
        ("options = '-c listen_addresses=*'", "listens_to_all"),
    ],
)
def test_each_rule_sees_what_breaks_it(source, rule):
    assert {name for name, _ in violations(source)} == {rule}


@pytest.mark.parametrize(
    "source",
    [
        "torch.load(path, map_location='cpu', weights_only=True)",
        "np.load(path, mmap_mode='c', allow_pickle=False)",
        "model.eval()",
        "subprocess.run(['ls'], shell=False)",
        "tar.extractall(place, filter='data')",
        "is_everywhere = host in ('0.0.0.0', '::')",
        "run(['mlflow', '--host', '127.0.0.1'])",
        "yaml.safe_load(text)",
    ],
)
def test_what_is_safe_breaks_no_rule(source):
    assert list(violations(source)) == []


def test_open_options_are_seen_in_settings():
    assert is_open_option("    - ray start --head --dashboard-host=0.0.0.0")
    assert is_open_option('host = "0.0.0.0"') and is_open_option("listen_addresses = '*'")
    assert not is_open_option("    - ray start --head --dashboard-host=127.0.0.1")


def test_files_for_people_stay_in_their_folder(tmp_path):
    folder = ReplicateFolder(tmp_path / "replicate", {})
    given = tmp_path / "elsewhere" / "deep" / ".." / "plot.html"
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    given.write_text("text")
    JournalTrial(folder, None, lambda record: None, is_writer=True).report({"loss": 1.0}, step=1, artifacts=[given])
    assert [file.name for file in folder.artifacts.iterdir()] == ["plot.html"]
    for name in ("../plot.html", "/plot.html", "..", "a/../../plot.html"):
        with pytest.raises(ValueError, match="a file alone"):
            folder.keep_artifacts({name: b""})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "replicate"]
