"""The config of a condition, made again from what was recorded of it."""

import pytest

from orchestrator.results.study import Replicate, Study
from orchestrator.scheduler import trained
from orchestrator.tracking.names import param_texts
from tests.integration.sweeps import tiny
from tests.integration.tiny import TinyConfig, TinyEvaluation
from trainables.act.config import ActConfig, Parity
from trainables.config import flatten
from trainables.errors import InputError


def config_of(recorded: TinyConfig, declared: TinyConfig, monkeypatch) -> TinyConfig:
    replicate = Replicate("key", "a", 1, "complete", {"error@plain": 1.0})
    study = Study("tiny.sweep", (replicate,), configs={"a": param_texts(flatten(recorded))})
    monkeypatch.setattr(trained, "_recorded", lambda _: None)
    monkeypatch.setattr(trained, "find_named", lambda _: tiny({"a": {}}, base=declared))
    return trained.trained(study, "a").config()


def test_evaluations_that_were_added_since_are_as_declared_and_all_else_as_it_ran(monkeypatch):
    two = (TinyEvaluation(), TinyEvaluation(name="doubled", factor=2.0))
    config = config_of(TinyConfig(x=0.25, sleep_s=0.5), TinyConfig(evaluations=two), monkeypatch)
    assert config == TinyConfig(x=0.25, sleep_s=0.5, evaluations=two)
    with pytest.raises(InputError, match=r"`x`: .* less than or equal to 1, but got 2"):
        config_of(TinyConfig.model_construct(x=2.0), TinyConfig(), monkeypatch)


def test_values_that_are_valid_only_beside_others_are_as_they_ran(monkeypatch):
    """`max_active` is in the key only where it is set."""
    ran, declared = ActConfig(data=Parity(num_bits=32, max_active=21)), ActConfig(data=Parity(num_bits=16))
    assert config_of(ran, declared, monkeypatch) == ran
