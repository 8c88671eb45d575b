"""A trainable that breaks its contract in the way that its config names; for tests only."""

import os
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from trainables.config import Config
from trainables.trial import Trial

GOOD: Final = {"loss": 0.5, "macs": 2.0}


class FaultyConfig(Config):
    """`fault` names one of `FAULTS`; any other is none. Until the file `mended` exists it strikes, `where` it says."""

    fault: str = ""
    where: str = "train"
    seed: int = 1


class UnprintableError(Exception):
    """As one whose message needs what is gone."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnendingError(Exception):
    def __str__(self) -> str:
        return str(self)


class OwnBaseError(BaseException):
    pass


class Unprintable:
    def __repr__(self) -> str:
        raise ZeroDivisionError("no text")


def _raise(error: BaseException) -> None:
    raise error


def _recurse(trial: Trial) -> None:
    _recurse(trial)


def _report(changes: Mapping[Any, Any] = {}, lacks: str = "", **options: Any) -> Callable[[Trial], None]:
    metrics = {name: value for name, value in GOOD.items() if name != lacks} | changes
    return lambda trial: trial.report(metrics, **{"step": 1} | options)


def _file(name: str, content: bytes = b"x") -> Callable[[Trial], None]:
    def report(trial: Trial) -> None:
        Path(name).write_bytes(content)
        trial.report(GOOD, step=1, artifacts=[Path(name)])

    return report


def _pipe(option: str) -> Callable[[Trial], None]:
    def report(trial: Trial) -> None:
        if not Path("pipe").exists():
            os.mkfifo("pipe")
        trial.report(GOOD, step=1, **{option: [Path("pipe")] if option == "artifacts" else Path("pipe")})

    return report


def _linked(trial: Trial) -> None:
    if not Path("loop").is_symlink():
        Path("loop").symlink_to("loop")
    trial.report(GOOD, step=1, checkpoint=Path("loop"))


FAULTS: Final[Mapping[str, Callable[[Trial], None]]] = {
    # metrics
    "lacks an objective": _report(lacks="macs"),
    "no metrics": lambda trial: trial.report({}, step=1),
    "no report": lambda trial: None,
    "nan": _report({"loss": float("nan")}),
    "inf": _report({"loss": float("inf")}),
    "minus inf": _report({"macs": float("-inf")}),
    "other nan": _report({"other": float("nan")}),
    "text": _report({"loss": "low"}),
    "none": _report({"loss": None}),
    "complex": _report({"loss": 1j}),
    "list": _report({"loss": [1.0]}),
    "many": _report({"loss": torch.zeros(3)}),
    "array": _report({"loss": np.zeros(3)}),
    "no array": _report({"loss": np.zeros(0)}),
    "nan tensor": _report({"loss": torch.tensor(float("nan"))}),
    "signalling nan": _report({"loss": Decimal("sNaN")}),
    "huge integer": _report({"loss": 10**400}),
    "huge text": _report({"loss": "9" * 5000 + "x"}),
    "unprintable value": _report({"loss": Unprintable()}),
    "a list for metrics": lambda trial: trial.report([("loss", 1.0)], step=1),  # type: ignore[arg-type]
    "none for metrics": lambda trial: trial.report(None, step=1),  # type: ignore[arg-type]
    # names
    "number as name": _report({3: 1.0}),
    "none as name": _report({None: 1.0}),
    "unprintable name": _report({Unprintable(): 1.0}),
    "empty name": _report({"": 1.0}),
    "odd name": _report({"acc%": 1.0}),
    "half a pair": _report({"a\udcff": 1.0}),
    "line break": _report({"a\nb": 1.0}),
    "zero": _report({"a\0": 1.0}),
    "path": _report({"../a": 1.0}),
    "long name": _report({"a" * 100_000: 1.0}),
    # steps
    "step as float": _report(step=1.0),
    "step as text": _report(step="1"),
    "no step": _report(step=None),
    "bool": _report(step=True),
    "numpy step": _report(step=np.int64(1)),
    "step below 0": _report(step=-1),
    "step far below 0": _report(step=-(10**30)),
    "huge step": _report(step=10**30),
    "step beyond 64 bits": _report(step=2**63),
    "step of thousands of digits": _report(step=10**5000),
    # files
    "missing checkpoint": _report(checkpoint=Path("gone.pt")),
    "checkpoint of a long name": _report(checkpoint=Path("x" * 5000)),
    "checkpoint with a zero": _report(checkpoint=Path("x\0")),
    "checkpoint of half a pair": _report(checkpoint=Path("x\udcff")),
    "checkpoint as bytes": _report(checkpoint=b"state"),
    "checkpoint as dict": _report(checkpoint={"weights": 1}),
    "device as checkpoint": _report(checkpoint=Path("/dev/zero")),
    "pipe as checkpoint": _pipe("checkpoint"),
    "loop as checkpoint": _linked,
    "missing artifact": _report(artifacts=[Path("gone.png")]),
    "folder as artifact": _report(artifacts=[Path.cwd()]),
    "artifact as text": _report(artifacts=["gone.png"]),
    "artifact by itself": _report(artifacts=Path("gone.png")),
    "artifact of a long name": _report(artifacts=[Path("x" * 5000)]),
    "device as artifact": _report(artifacts=[Path("/dev/zero")]),
    "pipe as artifact": _pipe("artifacts"),
    "artifact of half a pair": _file("x\udcff.png"),
    "artifact of the longest name": _file("x" * 255),
    "large artifact": _file("large.bin", bytes(65_000_000)),
    # exceptions
    "exception": lambda trial: _raise(ZeroDivisionError("ordered")),
    "unprintable": lambda trial: _raise(UnprintableError()),
    "unending": lambda trial: _raise(UnendingError()),
    "halves of pairs": lambda trial: _raise(ValueError("a\udcff\ud800\0")),
    "a megabyte": lambda trial: _raise(ValueError("x" * 1_000_000)),
    "megabyte of lines": lambda trial: _raise(ValueError(f"{'x' * 99}\n" * 10_000)),
    "undecodable": lambda trial: b"\xff".decode() and None,
    "exit": lambda trial: sys.exit(0),
    "exit with words": lambda trial: sys.exit("no \udcff data"),
    "exit unprintable": lambda trial: sys.exit(Unprintable()),  # type: ignore[arg-type]
    "interrupt": lambda trial: _raise(KeyboardInterrupt()),
    "generator's exit": lambda trial: _raise(GeneratorExit()),
    "own base exception": lambda trial: _raise(OwnBaseError("ordered")),
    "group": lambda trial: _raise(ExceptionGroup("two", [ValueError("a"), KeyError("b")])),
    "base group": lambda trial: _raise(BaseExceptionGroup("two", [SystemExit(3), KeyboardInterrupt()])),
    "recursion": _recurse,
    "assertion": lambda trial: _raise(AssertionError()),
    "stop iteration": lambda trial: _raise(StopIteration()),
    "not implemented": lambda trial: _raise(NotImplementedError()),
    "warning": lambda trial: _raise(UserWarning("ordered")),
    "cause unprintable": lambda trial: _raise_from(UnprintableError()),
    # what is no number's fault, but the trainable's own
    "no such file": lambda trial: _raise(FileNotFoundError(2, "No such file", "gone.csv")),
    "unknown prerequisite": lambda trial: _raise_path(trial.prerequisite("gone")),
}


def _raise_from(cause: Exception) -> None:
    raise ValueError("weights_only") from cause


def _raise_path(path: Path) -> None:
    raise AssertionError(path)


def train(config: FaultyConfig, trial: Trial) -> None:
    if config.fault in FAULTS and config.where == "train" and not Path("mended").exists():
        FAULTS[config.fault](trial)
        return
    Path("checkpoint.txt").write_text("whole")
    trial.report(GOOD, step=1, checkpoint=Path("checkpoint.txt"))


def evaluate(config: FaultyConfig, checkpoint: Path, evaluation: Any, trial: Trial) -> None:
    assert checkpoint.read_text() == "whole"
    fault = FAULTS.get(config.fault if config.where == "evaluate" else "", _report())
    fault(trial) if not Path("mended").exists() else trial.report(GOOD, step=1)
