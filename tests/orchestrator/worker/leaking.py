"""A trainable that can change everything it holds of its process, and reports what it sees of it; for tests only."""

import ctypes
import importlib
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch

from trainables.config import Config
from trainables.trial import Trial

SEED: Final = 5
state: dict[str, int] = {}


class Leaking(Config):
    """`changes`: a key of `CHANGES` or of `ENDS`."""

    changes: str = ""
    seed: int = 1


def _import_new_module() -> None:
    sys.modules["made_by_a_replicate"] = sys.modules[__name__]


def _patch() -> None:
    torch.tanh = torch.sin
    torch.nn.Linear.forward = lambda self, x: x


CHANGES: Final[dict[str, Callable[[], Any]]] = {
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "deterministic algorithms": lambda: torch.use_deterministic_algorithms(True),
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
    "matmul precision": lambda: torch.set_float32_matmul_precision("medium"),
    "cudnn flags": lambda: [setattr(torch.backends.cudnn, name, True) for name in ("benchmark", "deterministic")],
    "grad mode": lambda: torch.set_grad_enabled(False),
    "torch threads": lambda: torch.set_num_threads(2),
    "environment": lambda: os.environ.update(LEAKED="1"),
    "working folder": lambda: os.chdir("/"),
    "sys.path": lambda: sys.path.insert(0, "/leaked"),
    "sys.stdout": lambda: setattr(sys, "stdout", open(os.devnull, "w")),  # noqa: SIM115, PTH123
    "signal handlers": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "warnings filters": lambda: warnings.simplefilter("error"),
    "random": lambda: random.seed(SEED),
    "numpy": lambda: np.random.seed(SEED),
    "torch": lambda: torch.manual_seed(SEED),
    "module's state": lambda: state.update(leaked=1),
    "other modules": _import_new_module,
    "patches": _patch,
    "limits": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)),
    "umask": lambda: os.umask(0o077),
    "threads": lambda: threading.Thread(target=time.sleep, args=(60,), daemon=True).start(),
    "recursion limit": lambda: sys.setrecursionlimit(900),
}
"""What a replicate may do to its process."""


def _end_by_flag() -> None:
    """As Lightning does, which also calls the handler that it finds, and leaves by SystemExit after a batch."""
    found, flags = signal.getsignal(signal.SIGTERM), []

    def note(*arguments: Any) -> None:
        flags.append(arguments)
        if callable(found):
            found(*arguments)

    signal.signal(signal.SIGTERM, note)
    os.kill(os.getpid(), signal.SIGTERM)
    if flags:
        sys.exit()


ENDS: Final[dict[str, Callable[[], Any]]] = {
    "segmentation fault": lambda: ctypes.string_at(0),
    "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "os._exit(0)": lambda: os._exit(0),
    "os._exit(3)": lambda: os._exit(3),
    "sys.exit": lambda: sys.exit(4),
    "KeyboardInterrupt": lambda: importlib.import_module("_thread").interrupt_main() or time.sleep(5),
    "SIGTERM to a library": _end_by_flag,
    "hangs": lambda: time.sleep(3600),
}
"""How it may leave its process."""


def train(config: Leaking, trial: Trial) -> None:
    print(f"changes {config.changes!r}")
    seen = {
        "bits": torch.get_default_dtype().itemsize * 8,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "precision": len(torch.get_float32_matmul_precision()),
        "benchmark": torch.backends.cudnn.benchmark,
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "grad": torch.is_grad_enabled(),
        "torch_threads": torch.get_num_threads(),
        "variable": "LEAKED" in os.environ,
        "folder": os.getcwd() == "/",  # noqa: PTH109
        "path": "/leaked" in sys.path,
        "stdout": sys.stdout is not sys.__stdout__,
        "sigterm": signal.getsignal(signal.SIGTERM) is signal.SIG_IGN,
        "filters": len(warnings.filters),
        "random": random.random() == random.Random(SEED).random(),
        "numpy": np.random.rand() == np.random.RandomState(SEED).rand(),
        "torch": torch.initial_seed() in (SEED, config.seed),
        "state": len(state),
        "modules": "made_by_a_replicate" in sys.modules,
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "umask": os.umask(0o022),
        "threads": threading.active_count(),
        "recursion": sys.getrecursionlimit(),
    }
    drawn = {"drawn_random": random.random(), "drawn_numpy": np.random.rand(), "drawn_torch": torch.rand(()).item()}
    (CHANGES | ENDS).get(config.changes, lambda: None)()
    torch.manual_seed(config.seed)
    layer, x = torch.nn.Linear(8, 8), torch.ones(8)
    for _ in range(100):
        x = torch.tanh(layer(x)) + 0.1
    metrics = {"loss": x.double().sum().item()} | {f"seen_{name}": float(seen[name]) for name in seen}
    trial.report(metrics | (drawn if config.changes == "draws" else {}), step=1)
