"""Sees from a thread of its own that the cluster under a sweep is gone or silent, and has the sweep leave it."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from orchestrator.cluster import token as ray_token
from orchestrator.cluster.session import Connection
from orchestrator.cluster.submission import this_command
from orchestrator.console.exit_codes import FAILED
from orchestrator.scheduler.stop_request import Stopping

LOOK_S: Final = 1.0
ASK_S: Final = 4.0
SILENT_S: Final = 15.0
"""After so long without an answer the head counts as silent, and the user learns of it."""

AGAIN_S: Final = 15.0
"""Whatever Ray does with an interruption, another comes after so long."""

STUCK_S: Final = 45.0
"""Where nothing gets the main thread out of Ray, the process ends after so long: after 60 s Ray itself would end it, in
words that help nobody."""


class ClusterWatch:
    """A context manager around what the main thread does on the cluster.

    Attributes:
        lost: what has become of the cluster, as a sentence without its end; empty while it is there.

    Args:
        limit_s: how long a cluster that others have made may be silent.
        local_s: after so long without an answer a Ray on this machine counts as gone, though its processes are there.
        tell: called when it falls silent, and when it answers again.
        stopping: stops the sweep at that limit.
    """

    def __init__(
        self,
        connection: Connection,
        limit_s: float,
        local_s: float,
        tell: Callable[[str], None],
        stopping: Stopping,
    ) -> None:
        self._connection, self._limit_s, self._local_s = connection, limit_s, local_s
        self._tell, self._stopping = tell, stopping
        self._heard_s = self._asked_s = time.monotonic()
        self._is_silent = False
        self._leaving_s: float | None = None
        self._interrupted_s = 0.0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster watch", daemon=True)
        self.lost = ""

    def __enter__(self) -> "ClusterWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._closed.set()
        self._thread.join()

    @property
    def silent_s(self) -> float:
        """How long its head has not answered."""
        return time.monotonic() - self._heard_s

    def is_gone(self) -> bool:
        """Whether it is known to be lost, as of now."""
        return bool(self.lost or self._connection.dead_process())

    def cause(self) -> str:
        """Why the cluster cannot be used, after what it did has failed; empty where it can."""
        if not self.lost and (self.is_gone() or not self._connection.is_answering()):
            self.lost = self._fate() or f"{self._name()} does not answer"
        return self.lost

    def is_answering(self) -> bool:
        """Whether the cluster answers, as of now."""
        return not self.lost and self._connection.is_answering()

    def room(self) -> str:
        """The resources of the cluster in words; empty while it is away."""
        if self._is_silent or self.is_gone():
            return ""
        capacity, address = self._connection.capacity(), self._connection.address
        nodes = self._connection.capacity.nodes  # as of that answer
        has = f"{len(nodes)} node{'s' * (len(nodes) != 1)} with {capacity.num_cpus:g} CPUs"
        gpus = f" and {capacity.num_gpus:g} GPUs" if capacity.num_gpus else ""
        return f"the cluster has {has}{gpus} in all; `ray status --address {address}` shows what is in use"

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            if self._leaving_s is None:
                self._ask()  # first: a process that was stopped itself, as by Ctrl-Z, has heard nothing meanwhile
                self.lost = self.lost or self._fate()
            if self.lost or (self._stopping.reason and self.silent_s > SILENT_S):
                self._interrupt()

    def _fate(self) -> str:
        connection = self._connection
        if name := connection.dead_process():
            return f"{self._name()} has lost its process {name}"
        if connection.capacity.nodes and connection.node not in connection.capacity.nodes:
            return f"{self._name()} counts the node of this machine as dead"
        if connection.is_local and connection.identity and self.silent_s > self._local_s:
            return f"{self._name()} has not answered for {self.silent_s:.0f} s"
        return ""

    def _name(self) -> str:
        return "Ray on this machine" if self._connection.is_local else f"The Ray cluster at {self._connection.address}"

    def _ask(self) -> None:
        if time.monotonic() - self._asked_s < ASK_S or self.lost or not self._connection.identity:
            return
        identity = ray_token.identity(self._connection.address, ray_token.presented_token())
        self._asked_s = time.monotonic()
        if identity == self._connection.identity:
            self._heard_s = self._asked_s
            if self._is_silent:
                self._is_silent = False
                self._tell(f"{self._name()} answers again; the work goes on.")
        elif identity is not None:
            self.lost = f"{self._name()} has been started anew"
        elif self.silent_s > self._limit_s and not self._connection.is_local:
            self._stopping.stop(f"{self._name()} has not answered for {self.silent_s:.0f} s.")
        elif self.silent_s > SILENT_S and not self._is_silent:
            self._is_silent = True
            is_local = self._connection.is_local
            until = "it waits" if is_local else f"the sweep waits for up to {self._limit_s / 60:g} min"
            self._tell(f"{self._name()} has not answered for {self.silent_s:.0f} s; {until}.")

    def _interrupt(self) -> None:
        """Makes the main thread leave; ends the process where that cannot be."""
        now = time.monotonic()
        if self._leaving_s is None:
            self._leaving_s = now
        if now - self._leaving_s > STUCK_S:
            if self._connection.is_local:
                self._connection.end_processes()
            reason = self._stopping.reason or f"{self.lost}."
            again = f"`{this_command()}`" if sys.argv[1:2] == ["run"] else "the same command"
            ending = (
                f"{reason} Ray does not let go of this process. Finished work is kept; {again} continues from here."
            )
            print(f"ponderay: {ending}", file=sys.stderr, flush=True)
            os._exit(FAILED)
        if now - self._interrupted_s > AGAIN_S:
            self._interrupted_s = now
            os.kill(os.getpid(), signal.SIGTERM)
