import math
import statistics

import pytest

from orchestrator.environment.settings import read_settings
from orchestrator.results.study import Study
from orchestrator.tracking.load import load_study
from tests.orchestrator.recorded import Store, replicate
from trainables.errors import InputError


def test_queries_by_their_definitions():
    replicates = (
        replicate("b", 2, metrics={"per@e": 3.0, "per@d": 1.0}),
        replicate("a", 1, metrics={"per@e": math.nan}),
        replicate("b", 1, metrics={"per@e": 1.0, "loss": 9.0}),
        replicate("b", 3, metrics={"per@e": 7.0}, state="running"),
        replicate("b", 4, metrics={"per@e": math.inf}),
    )
    study = Study("s", replicates)
    assert study.conditions == ("b", "a")
    assert [r.seed for r in study.of("b")] == [1, 2, 3, 4]
    assert study.values("b", "per@e") == (1.0, 3.0)
    assert study.summary("a", "per@e") is None
    summary = study.summary("b", "per@e")
    assert (summary.mean, summary.std, summary.n) == pytest.approx((2.0, statistics.stdev([1, 3]), 2))
    assert study.evaluations() == ("d", "e")


def test_a_name_that_is_none_is_no_answer():
    study = Study("s", (replicate("surprisal", 1), replicate("random", 1, state="failed", metrics={})))
    conditions = (
        "s has no results of the condition 'surprisel'; its conditions are surprisal, random; the nearest is 's"
    )
    metrics = r"s has no metric 'per@f'; it has per@e, macs_per_frame@e; the nearest is 'per@e'\."
    for name, metric, reason in (("surprisel", "per@e", conditions), ("random", "per@f", metrics)):
        with pytest.raises(InputError, match=reason):
            study.values(name, metric)
        with pytest.raises(InputError, match=reason):
            study.summary(name, metric)
    with pytest.raises(InputError, match=conditions):
        study.of("surprisel")
    assert study.values("random", "per@e") == ()


class Counted(tuple):
    """Counts how often somebody goes through it."""

    num_times = 0

    def __iter__(self):
        self.num_times += 1
        return super().__iter__()


def test_all_conditions_are_found_in_one_pass():
    """Looking through all replicates for each condition would take minutes for 20,000."""
    replicates = Counted(replicate(f"c{i}", 1) for i in range(200))
    study = Study("s", replicates)
    assert all(study.values(name, "per@e") == (0.25,) for name in study.conditions)
    assert replicates.num_times == 1


def test_a_dataframe_has_a_row_for_each_replicate_and_a_column_for_each_metric():
    study = Study(
        "s",
        (
            replicate("a", 1, metrics={"per@e": 0.5, "error": 7.0}, duration_s=2.5),
            replicate("b", 2, metrics={"macs": 3.0}, state="failed", error="why"),
        ),
    )
    frame = study.to_dataframe()
    assert list(frame.columns[:4]) == ["condition", "seed", "state", "error"]
    assert list(frame.columns[-3:]) == ["per@e", "metric error", "macs"]
    assert frame["duration_s"].tolist() == [2.5, 60.0]
    assert frame["error"].tolist() == ["", "why"]
    assert frame["per@e"][0] == 0.5 and math.isnan(frame["per@e"][1])
    assert frame.groupby("condition")["macs"].mean()["b"] == 3.0
    assert frame.shape[0] == 2


def test_an_empty_study_is_an_empty_dataframe():
    frame = Study("s", ()).to_dataframe()
    assert frame.shape[0] == 0 and "condition" in frame


def test_load_finds_what_was_recorded_and_names_what_was_not(workplace):
    store = Store(workplace / "runs" / "mlflow.db")
    written = store.write([replicate("a", 1)], revision=1_700_000_000_000)
    assert load_study("asr.demo") == Study("asr.demo", tuple(written), {"a": 1_700_000_000_000})
    assert load_study("asr.demo", read_settings()).replicates == tuple(written)
    with pytest.raises(InputError, match=r"asr\.nothing has not run here yet"):
        load_study("asr.nothing")
