"""Which exceptions of a trainable may not come again, so that the same work is tried again."""

import sqlite3
import subprocess
import tempfile
from concurrent.futures.process import BrokenProcessPool

import pytest
import torch

from orchestrator.worker.failure import is_outside
from trainables.errors import DivergedError, InputError


def raised_from(outer: Exception, inner: Exception) -> Exception:
    """As by `raise outer from inner`."""
    outer.__cause__ = inner
    return outer


def raised_after(outer: Exception, inner: Exception) -> Exception:
    """As by `raise outer` where `inner` is handled."""
    outer.__context__ = inner
    return outer


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        PermissionError(13, "Permission denied", "x"),
        ConnectionResetError(),
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
        RuntimeError("HIP error: out of memory"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("CUDA error: all CUDA-capable devices are busy or unavailable"),
        RuntimeError("CUDA error: uncorrectable ECC error encountered"),
        RuntimeError("can't start new thread"),
        RuntimeError("DataLoader worker (pid(s) 71) exited unexpectedly"),
        RuntimeError("DataLoader worker (pid 71) is killed by signal: Killed. "),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0"),
        RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"),
        RuntimeError("I/O error: No space left on device (os error 28)"),
        sqlite3.OperationalError("database or disk is full"),
        BrokenProcessPool("A process in the process pool was terminated abruptly"),
        subprocess.CalledProcessError(-9, "sox"),
        torch.distributed.DistNetworkError("The server socket has failed to listen on any local network address."),
        FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"),
        Exception("No space left on device (os error 28)"),
        raised_from(ValueError("The hub does not answer."), ConnectionError()),
        raised_from(FileNotFoundError("It is in no cache, and the hub does not answer."), ConnectionError()),
    ],
    ids=str,
)
def test_what_befalls_a_machine_is_tried_again(error):
    assert is_outside(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        KeyError("DataLoader worker"),
        DivergedError("The loss is nan."),
        FileNotFoundError(2, "No such file or directory", "corpus.txt"),
        FileNotFoundError("The corpus is not there."),
        IsADirectoryError(21, "Is a directory", "x"),
        RuntimeError("CUDA error: device-side assert triggered"),
        sqlite3.OperationalError("no such table: x"),
        subprocess.CalledProcessError(1, "sox"),
        raised_after(KeyError("x"), FileNotFoundError(2, "No such file or directory", "cache.pt")),
        raised_after(ValueError("x"), TimeoutError()),
        raised_from(DivergedError("The loss is nan."), torch.OutOfMemoryError()),
        raised_from(circle := ValueError("x"), circle),
        FileNotFoundError(2, "Failed to open local file '/nope'"),  # as pyarrow's, which has no name
        Exception("No such file or directory (os error 2)"),
        RuntimeError("DataLoader worker (pid 71) is killed by signal: Segmentation fault. "),
        RuntimeError("DataLoader worker (pid 71) exited unexpectedly with exit code 1."),
        raised_from(InputError("The file a.flac cannot be read."), OSError()),
        RuntimeError("Caught ValueError in DataLoader worker process 0.\nOriginal Traceback"),
    ],
    ids=str,
)
def test_what_a_trainable_does_itself_is_not(error):
    assert not is_outside(error)


def test_what_libraries_raise_of_a_full_disk_is_tried_again(tmp_path, monkeypatch):
    """In the words of the versions that are installed."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "gone")])
    with pytest.raises(FileNotFoundError) as found:
        tempfile.mkdtemp()
    assert is_outside(found.value)
    with pytest.raises(RuntimeError) as found:
        torch.save({"a": torch.zeros(1 << 22)}, "/dev/full")
    assert is_outside(found.value), found.value
    with pytest.raises(OSError) as found, open("/dev/full", "wb") as file:  # noqa: PTH123
        torch.save({"a": torch.zeros(1 << 22)}, file)
    assert is_outside(found.value), found.value
