"""Replicates in processes of their own, each of which begins as the first of a new process does.

A *template* is a process that has imported what takes seconds to import, has one thread, no Ray and no CUDA, trains
nothing, and forks. What a replicate changes in its process, such as torch's modes, the environment, signal handlers,
modules or memory, ends with that process, so nothing has to be restored, whether it returns, is killed or crashes.

    who uses a `Template`           a Ray actor or a driver; both have threads, and so cannot fork themselves
      base                          a new Python with torch and this package, and no user's code
        template of a trainable     its module, and all that Ponderay's own modules behind it import, also in functions
          replicate                 `execute`

Requests go down by pipes; records and ends come up by one pipe, as lines of JSON. Base ends where requests do, that is
with its user; the others die with the process above them.

Replicates share what a trainable's module makes as it is imported. What it makes later, such as a corpus in memory,
each makes for itself; docs/performance.md says what that costs.
"""

import ast
import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final, NoReturn

from orchestrator.journal.folder import HUNG_FILE
from orchestrator.journal.lines import Record
from orchestrator.machine.durable_files import check_is_no_link, open_itself
from orchestrator.machine.processes import start_time
from orchestrator.worker.code_version import imported_sources
from orchestrator.worker.trainable import load
from orchestrator.worker.work import Work
from search_spaces.redaction import redacted_text, redacted_traceback
from trainables.errors import InputError
from trainables.importing import import_module, said_at

START: Final = (
    "import json, sys; requests, answers, sys.path[:] = json.loads(sys.argv.pop()); "
    "from orchestrator.worker.template import base; base(requests, answers)"
)
END_S: Final = 10.0
"""How long base may take to end after its last request."""

ALLOCATOR_THREAD: Final = "jemalloc_bg_thd"

PR_SET_PDEATHSIG: Final = 1
"""From linux/prctl.h."""


class Template:
    """Runs work in processes that are forked from a template, which starts with the first work and serves the rest."""

    def __init__(self, before: str = "") -> None:
        """
        Args:
            before: `MODULE:FUNCTION`, which each replicate's process calls with its folder before it begins.
        """
        self._before = before
        self._base: subprocess.Popen[bytes] | None = None
        self._requests: IO[bytes]
        self._answers: IO[bytes]
        self._number = 0

    def run(self, work: Work, send: Callable[[Record], None], place: Mapping[str, Any]) -> str:
        """Runs `work` to its end in the working folder of this process, and passes its records to `send`.

        Args:
            place: what the record `started` says of the machine, beside the process.

        Returns:
            How its process was lost; empty where it ended by itself, for then its last record says how.
        """
        if self._base is None or self._base.poll() is not None:
            self._start()
        self._number += 1
        request = {
            "number": self._number,
            "folder": str(Path.cwd()),
            "place": dict(place),
            "before": self._before,
            "work": work.model_dump(mode="json"),
        }
        try:
            with contextlib.suppress(BrokenPipeError):  # there are no answers either, then
                self._requests.write(json.dumps(request).encode() + b"\n")
                self._requests.flush()
            return self._end_of(self._number, send)
        except BaseException:  # nobody would read what the replicate still writes
            self.close()
            raise

    def _end_of(self, number: int, send: Callable[[Record], None]) -> str:
        is_ended, fault = False, ""
        for line in self._answers:
            try:
                answer = json.loads(line)
            except json.JSONDecodeError:  # cut off with the process that wrote it; the journal has it
                continue
            if answer["number"] != number:
                continue
            if "record" in answer:
                send(answer["record"])
            is_ended, fault = answer.get("is_ended", is_ended), answer.get("fault", fault)
            if "status" in answer:
                if answer["is_template"]:
                    self.close()
                code = os.waitstatus_to_exitcode(answer["status"])
                end = f"its process left with exit code {code} before the replicate had ended"
                if code < 0:
                    is_known = -code in set(signal.Signals)
                    end = f"its process was ended by {signal.Signals(-code).name if is_known else f'signal {-code}'}"
                return "" if is_ended else fault or end
        self.close()
        return "" if is_ended else fault or "the template of its process was ended"

    def close(self) -> None:
        """Ends the template, with all that was forked from it."""
        if self._base:
            self._requests.close()
            self._answers.close()
            try:
                self._base.wait(END_S)
            except subprocess.TimeoutExpired:
                self._base.kill()
                self._base.wait()
            self._base = None

    def _start(self) -> None:
        """Base is in a session of its own, since Ctrl-C is for its user to pass on, by closing."""
        self.close()
        requests, answers = os.pipe(), os.pipe()
        given = (requests[0], answers[1])
        self._base = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", START, json.dumps([*given, sys.path])],
            stdin=subprocess.DEVNULL,
            pass_fds=given,
            env=os.environ | {"OMP_NUM_THREADS": "1"},  # as for Ray's workers; else BLAS starts threads as it is loaded
            start_new_session=True,
        )
        for pipe in given:
            os.close(pipe)
        self._requests, self._answers = os.fdopen(requests[1], "wb"), os.fdopen(answers[0], "rb")


@contextlib.contextmanager
def traceable(folder: Path) -> Iterator[dict[str, Any]]:
    """On SIGUSR1 this process writes the stacks of its threads, as is wanted of a replicate that no longer reports.

    Yields:
        What its record `started` says of this process.
    """
    folder.mkdir(parents=True, exist_ok=True)
    check_is_no_link(folder)
    with open(folder / HUNG_FILE, "w", opener=open_itself) as file:
        faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)
        try:
            yield {"pid": os.getpid(), "process_started": start_time(os.getpid()), "hung_file": file.name}
        finally:
            faulthandler.unregister(signal.SIGUSR1)


def base(requests: int, answers: int) -> None:
    """Forks the template of each trainable at its first request, until nobody has requests."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for pipe in (requests, answers):
        os.set_inheritable(pipe, False)
    for file in (sys.stdout, sys.stderr):
        file.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a crash would take the rest along
    for module in ("orchestrator.worker.execute", "numpy.random"):
        importlib.import_module(module)
    templates: dict[str, IO[bytes]] = {}
    number = 0

    def end(*_: object) -> None:
        """A template has ended, which none does unasked: all begin anew."""
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:  # it was not only stopped
            _answer(answers, number, status=status, is_template=True)
            os._exit(0)

    signal.signal(signal.SIGCHLD, end)
    for line in os.fdopen(requests, "rb"):
        request = json.loads(line)
        number, work = request["number"], Work.model_validate(request["work"])
        kind = json.dumps([work.trainable, work.root, work.config_type])
        if kind not in templates:
            reads, writes = os.pipe()
            if not _fork():
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.close(requests)
                os.chdir(request["folder"])
                _serve(work, reads, answers)
            os.close(reads)
            templates[kind] = os.fdopen(writes, "wb", buffering=0)
        with contextlib.suppress(BrokenPipeError):  # it has just ended, and `end` comes next
            templates[kind].write(line)


def _serve(work: Work, requests: int, answers: int) -> NoReturn:
    """The template of a trainable."""
    num_threads, folder = _num_threads(), Path.cwd()
    with contextlib.suppress(InputError):  # each replicate says it in its own words
        load(work.trainable, work.root)
        config_module = work.config_type.partition(":")[0]
        if config_module:
            import_module(config_module, "The config")
        sources = imported_sources(work.trainable, config_module)
        _import_ours(sources)
        sys.meta_path.insert(0, _Unchanged(sources))
    gc.collect()
    gc.freeze()
    for line in os.fdopen(requests, "rb"):
        request = json.loads(line)
        if Path.cwd() != folder:  # the import went there
            request["folder"] = str(Path.cwd())
        if _num_threads() > num_threads:  # a fork would lack them: this is the replicate, and the next has a new base
            _replicate(request, answers)
        if not (replicate := _fork()):
            _replicate(request, answers)
        _answer(answers, request["number"], status=os.waitpid(replicate, 0)[1], is_template=False)
    os._exit(0)


def _import_ours(sources: Mapping[str, bytes]) -> None:
    """What Ponderay's modules import, also in functions: it changes nothing, and would take each replicate seconds.

    Of others' modules that is not known, so what they import in a function is imported when it is called.
    """
    if any(b"torch" in source for source in sources.values()):
        importlib.import_module("torch._dynamo")  # as an optimiser does, and `use_deterministic_algorithms`, in 2 s
    for name in [name for name in sources if name.partition(".")[0] == "trainables"]:
        importlib.import_module(name)
        for node in ast.walk(ast.parse(sources[name])):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                importlib.import_module(node.module)


class _Unchanged:
    """An import finder that finds nothing, but refuses what was changed after the code's version had been taken.

    Else a replicate that imports in a function would be of another version than it says.
    """

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Finds nothing; the signature is that of Python's own finders.

        Raises:
            InputError: if the source of the module is not what it was.
        """
        spec = PathFinder.find_spec(name, path) if name in self._sources else None
        if spec and spec.has_location and Path(spec.origin or "").read_bytes() != self._sources[name]:
            remedy = "run it again, with `--accept-code` to mix both"
            raise InputError(f"{spec.origin} was changed while the sweep ran; {remedy}.")


def _replicate(request: Mapping[str, Any], answers: int) -> NoReturn:
    import numpy as np
    import torch

    from orchestrator.worker.execute import execute

    number, status = request["number"], 1
    try:
        np.random.seed()  # from the system, as in a new process, so that no two have the same; `random` does so itself
        torch.default_generator.seed()
        os.chdir(request["folder"])
        work = Work.model_validate(request["work"])
        with traceable(work.folder) as process:
            if request["before"]:
                module, _, function = request["before"].partition(":")
                getattr(importlib.import_module(module), function)(work.folder)
            execute(work, lambda record: _answer(answers, number, record=record), process=request["place"] | process)
        _answer(answers, number, is_ended=True)
        status = 0
    except BaseException as error:
        sys.stderr.write(redacted_traceback(traceback.format_exc()))
        _answer(answers, number, fault=redacted_text(said_at(error)))
    finally:
        with contextlib.suppress(Exception):  # of streams that are not what they were
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _answer(answers: int, number: int, **values: Any) -> None:
    """Begins with a line break, for what was written before may have been cut off."""
    left = b"\n" + json.dumps({"number": number} | values).encode() + b"\n"
    while left:
        left = left[os.write(answers, left) :]


def _fork() -> int:
    """`os.fork`, of which the child dies with its parent."""
    parent, child = os.getpid(), os.fork()
    if not child:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    return child


def _num_threads() -> int:
    """The number of this process's threads, which a fork would lack.

    The thread of pyarrow's allocator, which pandas, scikit-learn and MLflow load, is no such: jemalloc takes its locks
    before a fork and starts that thread again in the child.
    """
    names = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return len([name for name in names if name != ALLOCATOR_THREAD])
