"""How a running driver is asked to stop."""

import os
import signal

from orchestrator.scheduler.stop_request import Stopping


def test_it_is_asked_once_and_the_first_reason_stands(monkeypatch):
    sent = []
    monkeypatch.setattr("orchestrator.scheduler.stop_request.os.kill", lambda *signalled: sent.append(signalled))
    stopping = Stopping()
    stopping.stop("the limit")
    stopping.lose("the lease")
    assert (stopping.reason, stopping.may_write) == ("the limit", False)
    assert sent == [(os.getpid(), signal.SIGTERM)]
