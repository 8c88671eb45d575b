"""Which condition `check` tries."""

import pytest

from orchestrator.cli.check import _chosen
from tests.integration.sweeps import searched, tiny
from trainables.errors import InputError


def test_of_a_search_the_base_is_tried_and_a_named_condition_is_refused():
    assert _chosen(searched(2), None).name == "base"
    with pytest.raises(InputError, match="draws its conditions, and its base is tried; leave --condition out"):
        _chosen(searched(2), "a")
    assert _chosen(tiny({"a": {}, "b": {"x": 0.25}}), "b").name == "b"
