"""What stops a driver: somebody asks it to, or a store is away for too long."""

import pytest

from orchestrator.scheduler.stop_request import GAP_S, LIMIT_S, Outage, Stopping, stop_on_sigterm


def test_it_is_asked_once_and_the_first_reason_stands():
    stopping = Stopping()
    with pytest.raises(KeyboardInterrupt), stop_on_sigterm():
        stopping.stop("the limit")
    with stop_on_sigterm():  # no second signal
        stopping.lose("the lease")
    assert (stopping.reason, stopping.may_write) == ("the limit", False)


def test_an_absence_is_told_once_and_borne_for_a_time():
    told, now = [], [0.0]
    away = Outage(told.append, lambda: now[0])
    for now[0] in (0.0, 250.0, 500.0):
        away.tolerate(ConnectionError("s3://bucket cannot be reached"))
    assert told == ["s3://bucket cannot be reached; the work that needs it waits."]
    now[0] = 601.0
    with pytest.raises(ConnectionError):
        away.tolerate(ConnectionError("s3://bucket cannot be reached"))
    away.tolerate(ConnectionError("but others are at work"), is_idle=False)
    away.is_over()
    away.tolerate(ConnectionError("again."))
    now[0] += GAP_S + LIMIT_S
    away.tolerate(ConnectionError("long after"))
    assert told[1:] == ["again; the work that needs it waits.", "long after; the work that needs it waits."]
