import math
import statistics

import pytest

from orchestrator.statistics.summary import summarise


def test_mean_and_sample_standard_deviation():
    values = [1.0, 2.0, 4.0]
    found = summarise(values)
    assert (found.mean, found.std, found.n) == pytest.approx((7 / 3, statistics.stdev(values), 3))


def test_one_value_has_no_standard_deviation_and_equal_ones_have_none_to_speak_of():
    assert math.isnan(summarise([2.0]).std) and summarise([2.0]).mean == 2.0
    assert summarise([0.1, 0.1, 0.1]).std == 0.0
    assert summarise([0.3 - 0.1, 0.4 - 0.2]).std == 0.0
    assert summarise([0.0, 0.0]).std == 0.0
    assert summarise([1.0, 1.0 + 1e-9]).std > 0


def test_nothing_has_no_summary():
    with pytest.raises(ValueError, match="at least one"):
        summarise([])
