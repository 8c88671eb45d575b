"""The sources' own numbers, tested by their printed spreads."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t, ttest_ind_from_stats
from typer.testing import CliRunner

from orchestrator.cli.main import app
from orchestrator.published.printed import PrintedPair, printed_pairs
from search_spaces.claim import NumberClaim, Place, Published, Setting, Source, StatementClaim
from search_spaces.claim_file import claims_of
from search_spaces.find import find_sweep, sweep_functions


def pair(sweep: str, *rows: str) -> PrintedPair:
    """Of the two rows whose names end so; the difference is of the first less the second."""
    found = printed_pairs(claims_of(find_sweep(sweep)))
    (one,) = [p for p in found if all(any(x.source.place.endswith(f", {row}") for x in (p.a, p.b)) for row in rows)]
    return one


@pytest.mark.parametrize(
    ("sweep", "rows", "p", "surprisal_less_random"),
    [
        ("asr.table2_timit", ("random", "surprisal"), 0.016, -0.52),
        ("asr.table2_mini_librispeech", ("random", "surprisal"), 0.11, -0.36),
        ("asr.ablation_timit", ("---", "-yy"), 0.17, -0.23),  # without features
        ("asr.model1", ("y--", "yyy"), 0.10, 0.57),  # surprisal is worse
        ("asr.model2", ("y--", "yyy"), 0.25, -0.22),
        ("asr.model3", ("y--", "yyy"), 0.002, -1.93),
    ],
)
def test_surprisal_against_random_routing_by_the_papers_own_spreads(sweep, rows, p, surprisal_less_random):
    found = pair(sweep, *rows)
    assert found.p == pytest.approx(p, abs=0.0055 if p >= 0.1 else 0.0006)
    assert found.difference.value == pytest.approx(-surprisal_less_random)
    assert found.a.published.n == found.b.published.n == 5


def test_every_p_is_scipys_of_sample_deviations():
    pairs = [one for name in sweep_functions() for one in printed_pairs(claims_of(find_sweep(name)))]
    sides = [
        np.array([(side.mean, side.std * (side.n / (side.n - 1)) ** 0.5, side.n) for side in of_pairs]).T
        for of_pairs in ([one.a.published for one in pairs], [one.b.published for one in pairs])
    ]
    found = np.array([one.p for one in pairs])
    assert found == pytest.approx(ttest_ind_from_stats(*sides[0], *sides[1], equal_var=False).pvalue, rel=1e-9)
    assert (found <= [one.p_holm for one in pairs]).all() and len(pairs) > 100
    intervals = np.array([one.difference.interval() for one in pairs]).T
    assert intervals == pytest.approx(np.array(_intervals(*sides[0], *sides[1])), rel=1e-9)


def _intervals(mean_a, std_a, n_a, mean_b, std_b, n_b):
    squares = std_a**2 / n_a, std_b**2 / n_b
    freedom = sum(squares) ** 2 / (squares[0] ** 2 / (n_a - 1) + squares[1] ** 2 / (n_b - 1))
    half = t.ppf(0.975, freedom) * sum(squares) ** 0.5
    return mean_a - mean_b - half, mean_a - mean_b + half


def number(row: str, mean: float, std: float | None, metric: str = "released_per", n: int | None = 5) -> NumberClaim:
    place, source = Place(row, metric, "test"), Source("A paper", f"table 1, {row}")
    return NumberClaim(row, ("s",), place, Published(mean, std, n), 1.0, "", source, Setting("here"))


def test_what_the_source_says_stands_first_and_what_has_no_spread_nowhere():
    said = StatementClaim("x", ("s",), "C errs less.", Place("c", "per", "test"), "below", Place("b", "per", "test"),
                          Source("A paper", "text"), Setting("here"))  # fmt: skip
    claims = [number("a", 1.0, 0.1), number("b", 1.2, 0.1), number("c", 0.9, 0.1), number("d", 1.0, None), said]
    claims += [number("e", 1.0, 0.0), number("f", 1.0, 0.1, n=1), number("g", 1.0, 0.1, metric="loss")]
    found = printed_pairs(claims)
    assert [(one.a.place.condition, one.b.place.condition) for one in found] == [("b", "c"), ("a", "b"), ("a", "c")]
    assert [one.said for one in found] == ["C errs less.", "", ""]
    assert printed_pairs([]) == ()
    table = [replace(number(row, mean, 0.1), source=Source("A paper", "table 1")) for row, mean in (("a", 1), ("b", 2))]
    assert len(printed_pairs(table)) == 1, "two numbers, though their place is said with the same words"


def test_the_command_tells_people_and_programs(workplace):
    runner = CliRunner()
    shown = runner.invoke(app, ["verify", "--published", "asr.model3"])
    assert shown.exit_code == 0 and "y-- against Appendix A, Model 3, yyy" in shown.stdout
    assert "The source says: " in shown.stdout and "p 0.002, by Holm" in shown.stdout
    rows = csv.DictReader(
        io.StringIO(runner.invoke(app, ["verify", "--published", "asr.model3", "--format", "csv"]).stdout)
    )
    assert len(list(rows)) == 15  # of six rows
    nothing = runner.invoke(app, ["verify", "--published", "act.tau_parity"])
    assert nothing.exit_code == 0 and "no two numbers of one metric were printed with a spread" in nothing.stdout
