"""What all tests share: one torch thread, checked tensor shapes, no folders of the user."""

import contextlib
import functools
import gc
import importlib
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "OMP_NUM_THREADS": "1",
}

import hypothesis
import torch

from orchestrator.environment.settings import Settings
from tests.shapes import check_shapes, num_calls
from trainables import config
from trainables.errors import InputError
from trainables.secret import declared_names, known_values

pytest_plugins = ["tests.browser", "tests.servers", "tests.postgres", "tests.workers"]

TENSOR_MODULES = {
    "asr": (
        "autoregressive", "controller", "controller_fit", "ctc_loss", "data.batches", "data.features", "data.onsets",
        "decode", "encoders", "epoch", "evaluation", "frozen", "latency", "network", "next_frame", "recogniser",
        "recurrent", "released", "windows",
    ),
    "act": ("evaluation", "network", "steps", "tasks.batch"),
    "conditional": (
        "adaptive_computation_time", "deferred_weight_gradient", "early_exit", "halted_rows", "macs", "ponder_net",
        "recurrent_cells", "recurrent_ponder", "route", "sequence_order", "straight_through", "surprisal_controller",
        "surprisal_fit", "top_k",
    ),
    "lm": (
        "analysis.running_text", "analysis.words", "backpropagation", "cache", "corpus", "dynamic_evaluation",
        "evaluation", "finite_differences", "linear_cross_entropy", "lstm", "meters", "network", "noise", "recoding",
        "signals.entropy", "signals.error_signal", "signals.probe", "signals.surprisal", "signals.uncertainty",
        "step_sizes", "streams",
    ),
}  # fmt: skip
OF_THE_USER = (
    "PONDERAY_RUNS", "PONDERAY_STORAGE", "PONDERAY_TRACKING_URI", "PONDERAY_SEARCH_URI", "RAY_ADDRESS",
    "RAY_API_SERVER_ADDRESS", "RAY_AUTH_MODE", "MLFLOW_TRACKING_URI",
)  # fmt: skip
MODULE_NAMES = [f"trainables.{family}.{name}" for family, names in TENSOR_MODULES.items() for name in names]
hypothesis.settings.register_profile("same", deadline=None, derandomize=True)  # in every worker, on any machine
hypothesis.settings.load_profile("same")
if "PYTEST_WITHOUT_SHAPES" not in os.environ:  # the checks take as long as the training of small networks
    with pytest.MonkeyPatch.context() as patch:  # they draw what they look at, not from the stream that is tested
        patch.setattr(random, "getrandbits", random.Random(0).getrandbits)
        importlib.import_module("beartype")
    check_shapes(MODULE_NAMES)
torch.set_num_threads(1)
for name in ("COLUMNS", "LINES"):  # pytest-xdist sets them, and a rich console made then keeps that width for good
    os.environ.pop(name, None)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # started in the background of a script; tests interrupt commands
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """The garbage collector passes over thousands of tests and the modules that they import, which all stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def tables_of_mlflow_are_made_once() -> None:
    """To make them takes more than a second of processor time; an empty SQLite store of this process copies them.

    Each store is held against MLflow's newest revision, for which seventy scripts of it are loaded: once for all.
    """
    from mlflow.store.db import utils

    utils._get_latest_schema_revision = functools.cache(utils._get_latest_schema_revision)
    plain, tables = utils._initialize_tables, sqlite3.connect(":memory:", check_same_thread=False)

    def is_empty(database: sqlite3.Connection) -> bool:
        return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def copied(engine: Any) -> None:
        if engine.url.get_backend_name() != "sqlite":
            plain(engine)
            return
        with contextlib.closing(engine.raw_connection()) as connection:
            own = connection.driver_connection
            if not is_empty(own):  # of an older MLflow, or damaged
                plain(engine)
            elif is_empty(tables):
                plain(engine)
                own.backup(tables)
            else:
                tables.backup(own)

    utils._initialize_tables = copied


@pytest.fixture(autouse=True, scope="session")
def statements_are_compiled_once() -> None:
    """SQLAlchemy compiles each statement anew for each SQLite store, which takes longer than to execute it."""
    from sqlalchemy import Engine
    from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
    from sqlalchemy.util import LRUCache

    plain, compiled = Engine.__init__, LRUCache(5000)

    def init(self: Engine, *arguments: Any, **named: Any) -> None:
        plain(self, *arguments, **named)
        self._compiled_cache = compiled

    Engine.__init__ = init
    SQLiteDialect_pysqlite.__hash__ = lambda self: hash(type(self))
    SQLiteDialect_pysqlite.__eq__ = lambda self, other: type(self) is type(other)


@pytest.fixture(autouse=True)
def modules_of_no_other_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The folder of a file with a sweep is searched for modules, and the file is one; not after its test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = sys.modules.copy()
    yield
    for name in [name for name in sys.modules if name not in before]:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(tmp_path_factory.getbasetemp()):
            del sys.modules[name]
    if loaded := sys.modules.get("orchestrator.worker.trainable"):
        loaded._load.cache_clear()  # by name; another test's toy.py is another trainable


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test draws the same numbers and has its first shapes checked, whatever ran before it."""
    if torch.cuda.device_count():
        torch.manual_seed(0)
    torch.default_generator.manual_seed(0)  # which is all there is on a CPU; `torch.manual_seed` also formats the stack
    num_calls.clear()


@pytest.fixture(autouse=True)
def secrets_of_no_other_test() -> None:
    """What one test declares as a secret is an ordinary word in others."""
    for kind in [kind for kind, names in config._secret_fields.items() if names]:
        del config._secret_fields[kind]
    declared_names.clear()
    known_values.clear()


@pytest.fixture(autouse=True)
def nothing_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bucket was away in another test."""
    monkeypatch.setattr("orchestrator.journal.bucket._given_up", set())


@pytest.fixture(autouse=True)
def mlflow_mirrors_the_study_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test has run: once all runs of a sweep have ended, MLflow has what the study file says."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    tmp_path = request.getfixturevalue("tmp_path")
    yield
    for file in [*tmp_path.glob("replicates/*/study.jsonl"), *tmp_path.glob("*/replicates/*/study.jsonl")]:
        check_mirror(file.parents[2], file.parent)


def check_mirror(runs: Path, replicates: Path) -> None:
    """Fails where MLflow's study in a runs folder, of a sweep whose runs have all ended, is another than the file's."""
    from orchestrator.journal.study_file import read_study_file
    from orchestrator.tracking.client import Tracking
    from orchestrator.tracking.load import load_holder

    content, settings = read_study_file(replicates), Settings(runs, f"sqlite:///{runs / 'mlflow.db'}")
    if content is None or not content.sweep:
        return
    name = content.sweep["name"]
    try:
        holder = load_holder(name, settings)
        if not holder or holder.token != content.sweep["lease"] or not Tracking(settings).num_finished(name):
            return
        mirrored = Tracking(settings).read_study(name)
    except InputError:  # a test has damaged it
        return
    study = content.study(name)
    assert sorted(map(repr, study.replicates)) == sorted(map(repr, mirrored.replicates))
    assert not study.unmirrored
    assert (study.settings, study.configs) == (mirrored.settings, mirrored.configs)
    assert study.origins == Tracking(settings).read_origins(name)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of the test's own, with none of the user's settings but the data.

    Reading settings hands the cache's folder on to processes; the one that a test before has handed on is none of ours.
    """
    monkeypatch.chdir(tmp_path)
    for name in (*OF_THE_USER, "PONDERAY_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def real_data() -> Path:
    """The folder of real recordings."""
    if "PONDERAY_DATA" not in os.environ:
        pytest.skip("PONDERAY_DATA is not set: no real recordings")
    return Path(os.environ["PONDERAY_DATA"])
