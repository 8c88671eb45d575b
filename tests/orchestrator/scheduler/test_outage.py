"""A store that is away is told once, and borne for a time."""

import pytest

from orchestrator.scheduler import outage as outage
from orchestrator.scheduler.outage import Outage


def test_an_absence_is_told_once_and_borne_for_a_time(monkeypatch):
    told, now = [], [0.0]
    monkeypatch.setattr(outage.time, "monotonic", lambda: now[0])
    away = Outage(told.append)
    for now[0] in (0.0, 250.0, 500.0):
        away.tolerate(ConnectionError("s3://bucket cannot be reached"))
    assert told == ["s3://bucket cannot be reached; the work that needs it waits."]
    now[0] = 601.0
    with pytest.raises(ConnectionError):
        away.tolerate(ConnectionError("s3://bucket cannot be reached"))
    away.tolerate(ConnectionError("but others are at work"), is_idle=False)
    away.is_over()
    away.tolerate(ConnectionError("again."))
    now[0] += outage.GAP_S + outage.LIMIT_S
    away.tolerate(ConnectionError("long after"))
    assert told[1:] == ["again; the work that needs it waits.", "long after; the work that needs it waits."]
