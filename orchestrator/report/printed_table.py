"""The table of published numbers held against each other by their own spreads."""

from collections.abc import Sequence

from orchestrator.published.printed import PrintedPair
from orchestrator.report.claim_table import published_decimals, published_text
from orchestrator.report.numerals import between, p_value, signed
from orchestrator.report.table import INTERVAL, Column, Table


def printed_table(sweep: str, found: Sequence[PrintedPair]) -> Table:
    """A row for each pair.

    Raw columns: a, b (their rows in the source), metric, a_mean, a_std, a_n and those of b as printed, difference (of a
    less b) with low and high (95 %), p, p_holm, said.
    """
    return Table(
        name=f"{sweep}.printed",
        title=f"{sweep}: by the source's own spreads",
        columns=(
            *("a", "b", "metric", "a_mean", "a_std", "a_n", "b_mean", "b_std", "b_n"),
            *("difference", "low", "high", "p", "p_holm", "said"),
        ),
        rows=tuple(
            (
                *(one.a.source.place, one.b.source.place, one.a.place.metric),
                *(one.a.published.mean, one.a.published.std, one.a.published.n),
                *(one.b.published.mean, one.b.published.std, one.b.published.n),
                *(one.difference.value, *one.difference.interval(), one.p, one.p_holm, one.said),
            )
            for one in found
        ),
        printed=_columns(found) if found else (),
        marked=frozenset(i for i, one in enumerate(found) if one.p_holm <= 0.05),
        notes=(
            "p: of Welch's t-test, from the printed means, standard deviations (the population's, made the sample's) "
            f"and n; Holm over the {len(found):,} pairs. In the published unit.",
        )
        if found
        else ("Of this sweep no two numbers of one metric were printed with a spread over seeds.",),
    )


def _columns(found: Sequence[PrintedPair]) -> tuple[Column, ...]:
    digits = [max(published_decimals(one.a.published), published_decimals(one.b.published)) for one in found]
    pairs = list(zip(found, digits, strict=True))
    return (
        Column("a", tuple(one.a.source.place for one in found), "a", False),
        Column("b", tuple(one.b.source.place for one in found), "b", False),
        Column("metric", tuple(one.a.place.metric for one in found), "metric", False),
        Column("a printed", tuple(published_text(one.a.published, n) for one, n in pairs), "a_mean"),
        Column("b printed", tuple(published_text(one.b.published, n) for one, n in pairs), "b_mean"),
        Column("difference", tuple(signed(one.difference.value, n) for one, n in pairs), "difference"),
        Column(INTERVAL, tuple(between(one.difference.interval(), n) for one, n in pairs), "low"),
        Column("p", tuple(p_value(one.p) for one in found), "p"),
        Column("p (Holm)", tuple(p_value(one.p_holm) for one in found), "p_holm"),
        Column("the source says", tuple(one.said for one in found), "said", False),
    )
