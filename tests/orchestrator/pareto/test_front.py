import json
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.pareto.front import front, non_dominated
from orchestrator.pareto.hypervolume import hypervolume
from orchestrator.printing import to_csv
from orchestrator.report import front_figure, front_rows
from orchestrator.statistics.summary import summarise
from orchestrator.study import Replicate, Study
from search_spaces.sweep import Objective

ERROR_COST = (Objective("per"), Objective("macs"))


def study_of(**values):
    """A study from condition=[(per, macs), ...], one pair a seed."""
    replicates = [
        Replicate(f"{name}{seed}", name, seed, "complete", {"per@e": per, "macs@e": macs})
        for name, pairs in values.items()
        for seed, (per, macs) in enumerate(pairs, start=1)
    ]
    return Study("s", tuple(replicates))


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)
directions = st.lists(st.sampled_from(["minimize", "maximize"]), min_size=3, max_size=3)


@given(rows, directions)
def test_non_dominated_by_the_definition(values, directions):
    objectives = [Objective(str(i), direction) for i, direction in enumerate(directions)]
    signs = [1 if direction == "minimize" else -1 for direction in directions]
    points = [tuple(s * v for s, v in zip(signs, row, strict=True)) for row in values]

    def dominates(a, b):
        return all(x <= y for x, y in zip(a, b, strict=True)) and a != b

    expected = [not any(dominates(other, point) for other in points) for point in points]
    assert non_dominated(values, objectives) == expected


def test_front_is_that_of_the_means_with_sample_std_and_n():
    study = study_of(cheap=[(0.30, 1.0), (0.32, 1.2)], good=[(0.20, 2.0), (0.22, 2.0)], bad=[(0.33, 2.0), (0.35, 3.0)])
    points = {point.condition: point for point in front(study, ERROR_COST)}
    assert [name for name, point in points.items() if point.is_front] == ["good", "cheap"]
    assert not points["bad"].is_front
    per = points["cheap"].summaries[0]
    assert (per.mean, per.std, per.n) == pytest.approx((0.31, 0.02 / math.sqrt(2), 2))


def test_failed_replicates_and_conditions_without_values_are_not_points():
    failed = Replicate("x", "failed", 1, "failed", {"per@e": 0.0, "macs@e": 0.0})
    study = Study("s", (*study_of(a=[(1.0, 1.0)]).replicates, failed))
    assert [point.name for point in front(study, ERROR_COST)] == ["a"]


def test_hypervolume_of_a_staircase_by_hand():
    points = front(study_of(a=[(1.0, 3.0)], b=[(2.0, 1.0)], c=[(4.0, 4.0)]), ERROR_COST)
    volume, reference = hypervolume(points, ERROR_COST)
    assert reference == pytest.approx((4.04, 4.04))
    assert volume == pytest.approx((2 - 1) * (4.04 - 3) + (4.04 - 2) * (4.04 - 1))


def test_summary_of_one_value_has_no_spread():
    assert math.isnan(summarise([2.0]).std)
    assert summarise([2.0]).text() == "2.00"
    assert summarise([1.0, 3.0]).text() == "2.00 ± 1.41"


def test_json_and_csv_carry_the_same_numbers():
    points = front(study_of(a=[(1.0, 3.0)], b=[(2.0, 1.0), (4.0, 1.0)]), ERROR_COST)
    content = json.loads(front_rows.front_json("s", points, ERROR_COST))
    assert content["points"][1] == {
        "condition": "b",
        "evaluation": "e",
        "on_front": True,
        "n": 2,
        "per": 3.0,
        "per_std": pytest.approx(math.sqrt(2)),
        "macs": 1.0,
        "macs_std": 0.0,
    }
    header, first, _ = to_csv(front_rows.front_rows(points, ERROR_COST)).splitlines()
    assert header == "condition,evaluation,on_front,n,per,per_std,macs,macs_std"
    assert first == "a,e,True,1,1.0,,3.0,"


def test_figures_are_whole_and_names_are_escaped(tmp_path):
    study = study_of(**{"<script>alert(1)</script>": [(1.0, 3.0), (1.1, 3.0)], "b$": [(2.0, 1.0)]})
    html, png = front_figure.draw_front("s", front(study, ERROR_COST), ERROR_COST, tmp_path)
    text = html.read_text()
    assert "<script>alert(1)</script>" not in text
    assert 'src="https' not in text and "src='http" not in text
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(text) > 1_000_000  # plotly's own script is inside


def test_ten_thousand_points_take_less_than_a_second():
    values, started = np.random.default_rng(0).random((10_000, 2)).tolist(), time.perf_counter()
    assert sum(non_dominated(values, ERROR_COST)) < 100
    assert time.perf_counter() - started < 1
