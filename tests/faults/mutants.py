"""How many faults in the sources the tests notice: seeded changes of one place each, tried one after the other.

    python -m tests.faults.mutants [--number 200] [--seed 1] [--rooms orchestrator/pareto ...] [--to build/mutants]

A change is drawn evenly over the rooms, and there over its kinds: another comparison, the other sign, `or` for `and`,
a constant one off, a statement, `not`, keyword or bound of a slice left out, arguments swapped, `None` returned.
Docstrings, types, decorators and texts stay. Each is made in a copy of the tree. The quick tests of its room that pass
over its line run first (the fastest, as many as take 20 s), then those of what imports the module. A test that fails or
hangs notices the change. What survives is printed. It may change nothing that counts, be dead code, or want a test.

`results.jsonl` in the folder `--to` has what came of each, so the same command continues; `ROOM.json` says which test
passes over which line. Remove them after a change of the sources or of their tests.
"""

import argparse
import ast
import contextlib
import gc
import importlib
import itertools
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import coverage
import pytest

ROOT: Final = Path(__file__).parents[2]
ROOMS: Final = tuple(f"orchestrator/{room}" for room in ("statistics", "pareto", "journal", "scheduler", "published"))
LOADED_ONCE: Final = ("scipy.stats", "torch", "pydantic", "hypothesis", "optuna", "mlflow", "rich.live", "pandas")
OTHER: Final[dict[type, type]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}  # fmt: skip
SYMMETRIC: Final = ("max", "min", "math.isclose")
SECONDS_OF_TESTS: Final = 20.0
UNTOUCHED: Final = ("annotation", "returns", "decorator_list", "bases", "keywords", "exc", "msg")


class Mutant(NamedTuple):
    """One change: what stands at bytes `start` to `end` of a file becomes `new`."""

    path: str
    first: int  # lines of the statement, of which any may be the one that a test passes over
    last: int
    start: int
    end: int
    kind: str
    old: str
    new: str


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST, str]]:
    """The kind, the node in whose place something else comes, and its text."""

    def put(field: str, value: Any) -> str:
        return ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), field: value}))

    match node:
        case ast.Compare(ops=[op]):
            yield "comparison", node, f"({put('ops', [OTHER[type(op)]()])})"
        case ast.BinOp(op=op) if type(op) in OTHER:
            yield "sign", node, f"({put('op', OTHER[type(op)]())})"
        case ast.BoolOp(op=op):
            yield "and/or", node, f"({put('op', OTHER[type(op)]())})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not", node, f"({ast.unparse(operand)})"
        case ast.Constant(value=bool(value)):
            yield "constant", node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, str(value + 1)
            yield "constant", node, f"({value - 1})"
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield()) | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield "statement", node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement", node, "pass"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return", node, "return None"
        case ast.Break() | ast.Continue():
            yield "loop", node, ast.unparse(OTHER[type(node)]())
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "condition", test, f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=[test, *_]):
            yield "condition", test, "True"
        case ast.Subscript(slice=ast.Slice() as part):
            for field in ("lower", "upper", "step"):
                if getattr(part, field):
                    fields = {**dict(ast.iter_fields(part)), field: None}
                    yield "slice", part, ast.unparse(ast.Slice(**fields))
        case ast.Call(func=function, args=args, keywords=keywords):
            if len(args) > 1 and ast.unparse(function) not in SYMMETRIC and not isinstance(args[0], ast.Starred):
                yield "arguments", node, put("args", [args[1], args[0], *args[2:]])
            for number, keyword in enumerate(keywords):
                if keyword.arg not in (None, "encoding"):
                    yield "keyword", node, put("keywords", keywords[:number] + keywords[number + 1 :])


def mutants_of(path: Path) -> list[Mutant]:
    """All changes of a file."""
    content = path.read_bytes()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    made: list[Mutant] = []

    def visit(node: ast.AST, lines: tuple[int, int]) -> None:
        if isinstance(node, ast.JoinedStr) or getattr(node, "name", "") == "__repr__":
            return
        if isinstance(node, ast.stmt):
            inner = [child.lineno for child in getattr(node, "body", ())] or [node.end_lineno + 1]
            lines = (node.lineno, max(node.lineno, inner[0] - 1))
        for kind, place, new in changes(node):
            start = starts[place.lineno - 1] + place.col_offset
            end = starts[place.end_lineno - 1] + place.end_col_offset
            old = content[start:end].decode()
            if " ".join(new.split()) not in (old, f"({old})"):
                made.append(Mutant(str(path.relative_to(ROOT)), *lines, start, end, kind, old, new))
        for field, value in ast.iter_fields(node):
            if field not in UNTOUCHED or (field == "keywords" and isinstance(node, ast.Call)):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        visit(child, lines)

    visit(ast.parse(content), (1, 1))
    return made


def drawn(rooms: list[str], number: int, seed: int) -> list[Mutant]:
    """As many of each room, and of each kind there while it has some."""
    chosen = []
    for place, room in enumerate(rooms):
        rng, kinds = random.Random(f"{seed} {room}"), {}
        for path in sorted((ROOT / room).rglob("*.py") if (ROOT / room).is_dir() else [ROOT / room]):
            for mutant in mutants_of(path):
                kinds.setdefault(mutant.kind, []).append(mutant)
        for mutants in kinds.values():
            rng.shuffle(mutants)
        turns = [mutants[turn] for turn in range(number) for mutants in kinds.values() if turn < len(mutants)]
        chosen += turns[: number * (place + 1) // len(rooms) - number * place // len(rooms)]
    return chosen


class PassedOver:
    """Notes which lines of a room each test passes over, and how long the test takes."""

    def __init__(self, room: str) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.coverage = coverage.Coverage(data_file=None, include=[room, f"{room}/*"], config_file=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.coverage.switch_context(item.nodeid)
        started_s = time.monotonic()
        result = yield
        if item.nodeid not in self.failed:  # it would seem to notice every change
            self.seconds[item.nodeid] = time.monotonic() - started_s
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def pytest_in(tree: Path, tests: list[str], to: Path, room: str | None) -> None:
    """Ends with pytest's exit code at the first failure; with `room`, writes what passes over it."""
    os.setsid()
    os.chdir(tree)
    for number in (1, 2):
        os.dup2(os.open(to / "log", os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if number == 1 else os.O_APPEND)), number)
    os.environ["PYTHONPATH"] = str(tree)
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", str(ROOT)))]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    plugins = [PassedOver(str(tree / room))] if room else []
    code = pytest.main(["-n0", "-q", "-pno:cacheprovider", "--tb=line", *([] if room else ["-x"]), *tests], plugins)
    for plugin in plugins:
        plugin.coverage.stop()
        data = plugin.coverage.get_data()
        lines = {str(Path(path).relative_to(tree)): data.contexts_by_lineno(path) for path in data.measured_files()}
        (to / "passed_over").write_text(json.dumps({"seconds": plugin.seconds, "lines": lines}))
    os._exit(code)


def outcome(tree: Path, tests: list[str], to: Path, room: str | None = None, limit_s: float = 90) -> str:
    """How the tests end in a process of their own, which has loaded all but the tree."""
    if not tests:
        return "survived"
    process = multiprocessing.get_context("fork").Process(target=pytest_in, args=(tree, tests, to, room))
    process.start()
    process.join(limit_s)
    hangs = process.is_alive()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what the tests have started, too
    process.join()
    return "hangs" if hangs else "killed" if process.exitcode not in (0, 5) else "survived"


def tests_of_line(mutant: Mutant, passed_over: dict[str, Any]) -> list[str]:
    """The fastest tests that pass over the mutant's lines, or over its file if they run at import, when "" does."""
    lines = passed_over["lines"].get(mutant.path, {})
    tests = {test for line in range(mutant.first, mutant.last + 1) for test in lines.get(str(line), ())}
    if tests == {""}:
        tests = {test for others in lines.values() for test in others}
    by_time = sorted(tests & passed_over["seconds"].keys(), key=passed_over["seconds"].get)
    sums = itertools.accumulate(passed_over["seconds"][test] for test in by_time)
    return [
        test for n, (test, sum_s) in enumerate(zip(by_time, sums, strict=True)) if not n or sum_s <= SECONDS_OF_TESTS
    ]


def tests_of_importers(path: str) -> list[str]:
    """Files of quick tests outside its room that import the module, or that test what imports it."""
    module = Path(path).with_suffix("")
    name, room = re.escape(".".join(module.parts)), re.escape(".".join(module.parts[:-1]))
    imports = re.compile(rf"(from|import) {name}\b|from {room} import .*\b{module.name}\b|[\"']{name}\.")
    files = [one for room in ("orchestrator", "ponderay", "tests") for one in (ROOT / room).rglob("*.py")]
    users = [one.relative_to(ROOT) for one in files if imports.search(one.read_text())]
    tests = {f"tests/{user.parent}/test_{user.name}" for user in users} | set(map(str, users))
    others = (f"tests/{module.parent}/", "tests/cluster", "tests/integration")
    return sorted(one for one in tests if "/test_" in one and not one.startswith(others) and (ROOT / one).is_file())


def tried(mutant: Mutant, tree: Path, to: Path, passed_over: dict[str, Any]) -> str:
    """How the tests end with the mutant in the copy."""
    file = tree / mutant.path
    content = file.read_bytes()
    shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)
    file.write_bytes(content[: mutant.start] + mutant.new.encode() + content[mutant.end :])
    end = outcome(tree, tests_of_line(mutant, passed_over), to)
    is_near = end != "survived"
    if not is_near:
        end = outcome(tree, tests_of_importers(mutant.path), to)
    file.write_bytes(content)
    if is_near:
        return end
    failed = re.findall(r"(?m)^(?:FAILED|ERROR) (\S+)", (to / "log").read_text())[:1] if end == "killed" else []
    return "killed" if failed and outcome(tree, failed, to) == "survived" else "survived"  # some fail without a change


def main() -> None:
    """Tries each, and prints the survivors and how many there are in each room."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", nargs="+", default=ROOMS, help="folders of the sources")
    parser.add_argument("--to", type=Path, default=Path("build/mutants"))
    chosen = parser.parse_args()
    to: Path = chosen.to.resolve()
    to.mkdir(parents=True, exist_ok=True)
    results = to / "results.jsonl"
    results.touch()
    known = map(json.loads, results.read_text().splitlines())
    done = {Mutant(**{name: one[name] for name in Mutant._fields}): one["outcome"] for one in known}
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "MLFLOW_DISABLE_TELEMETRY": "true", "OMP_NUM_THREADS": "1"}
    sys.dont_write_bytecode = True
    for name in LOADED_ONCE:
        importlib.import_module(name)
    gc.freeze()
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        unneeded = shutil.ignore_patterns(".git", ".venv", ".*_cache", "build", "dist", "runs", "shared", "*.egg-info")
        shutil.copytree(ROOT, tree, ignore=unneeded, symlinks=True)
        for mutant in drawn(list(chosen.rooms), chosen.number, chosen.seed):
            room = next(room for room in chosen.rooms if mutant.path.startswith(room))
            if mutant not in done:
                if not (file := to / f"{room.replace('/', '.')}.json").exists():
                    outcome(tree, [f"tests/{room}"], to, room, limit_s=3600)
                    (to / "passed_over").rename(file)
                done[mutant] = tried(mutant, tree, to, json.loads(file.read_text()))
                with results.open("a") as lines:
                    lines.write(json.dumps({**mutant._asdict(), "outcome": done[mutant]}) + "\n")
            counts[room, done[mutant]] += 1
            if done[mutant] == "survived":
                old, new = " ".join(mutant.old.split()), " ".join(mutant.new.split())
                print(f"{mutant.path}:{mutant.first}: {old} -> {new}", flush=True)
    for (room, end), number in sorted(counts.items()):
        print(f"{room:32}{end:10}{number:5}")


if __name__ == "__main__":
    main()
