"""Differences in error rates over seeds and test items together, as a table and as sentences."""

from collections.abc import Iterable

from orchestrator.report.answers import Answers
from orchestrator.report.numerals import between, decimals, signed, with_interval
from orchestrator.report.table import Column, Table
from orchestrator.results.comparison import Comparison
from orchestrator.results.lookup import parts_of
from orchestrator.results.over_items import OverItems, Place, over_items
from orchestrator.results.study import Study
from orchestrator.statistics.pairwise import Test

_COLUMNS = (
    "a", "b", "metric", "n_a", "n_b", "num_groups", "num_items", "difference", "low", "high", "both_low", "both_high",
)  # fmt: skip
_NOTE = (
    "Over seeds: another training on the same test items may come out so. Over both: other test items too, of other "
    "groups (speakers, parts of a text); nobody can say less of data that nobody has heard. 95 %."
)


def found_over_items(study: Study, comparisons: Iterable[Comparison], test: Test) -> tuple[OverItems, ...]:
    """What is known by item of each compared pair, once; seeds are paired where the promised test pairs them."""
    pairs = {
        (one.a, one.b): one.is_paired and test == "paired_permutation" for one in comparisons if study.items.errors
    }
    evaluations = study.evaluations()
    only = evaluations[0] if len(evaluations) == 1 else ""  # the names of points do not say it then
    parts = {name: parts_of(study, name) for pair in pairs for name in pair}
    places = {name: Place(name, condition, evaluation or only) for name, (condition, evaluation) in parts.items()}
    return tuple(
        found for (a, b), is_paired in pairs.items() for found in over_items(study, places[a], places[b], is_paired)
    )


def over_items_table(answers: Answers) -> Table:
    """Every compared pair whose replicates kept errors by test item; of none, no rows.

    Raw columns: a, b, metric, n_a and n_b (seeds), num_groups, num_items, difference (a - b), low and high (95 %, over
    seeds), both_low and both_high (over seeds and groups of test items).
    """
    found = found_over_items(answers.study, answers.comparisons, answers.question.test)
    intervals = [(one.seeds.interval(), one.both.interval()) for one in found]
    return Table(
        name=f"{answers.question.sweep}.over_items",
        title=f"{answers.question.sweep}: over seeds and test items",
        columns=_COLUMNS,
        rows=tuple(
            (one.a, one.b, one.metric, one.n_a, one.n_b, one.num_groups, one.num_items, one.both.value, *seeds, *both)
            for one, (seeds, both) in zip(found, intervals, strict=True)
        ),
        printed=_printed(found) if found else (),
        notes=(_NOTE,) if found else ("No errors by test item were kept.",),
    )


def over_items_sentence(found: OverItems) -> str:
    """The difference with both intervals."""
    digits = decimals([with_interval(found.both.value, found.seeds.interval())])
    seeds, both = (between(one.interval(), digits) or "no interval" for one in (found.seeds, found.both))
    return (
        f"{found.a} against {found.b}, {found.metric} by test item: {signed(found.both.value, digits)}; over seeds "
        f"{seeds}, over seeds and {found.num_groups:,} groups of test items {both}."
    )


def _printed(found: tuple[OverItems, ...]) -> tuple[Column, ...]:
    digits = [decimals([with_interval(one.both.value, one.seeds.interval())]) for one in found]
    pairs = list(zip(found, digits, strict=True))
    return (
        Column("condition", tuple(one.a for one in found), "a", False),
        Column("against", tuple(one.b for one in found), "b", False),
        Column("metric", tuple(one.metric for one in found), "metric", False),
        Column("difference", tuple(signed(one.both.value, places) for one, places in pairs), "difference"),
        Column("over seeds", tuple(between(one.seeds.interval(), places) for one, places in pairs), "low"),
        Column("over both", tuple(between(one.both.interval(), places) for one, places in pairs), "both_low"),
        Column("groups", tuple(f"{one.num_groups:,}" for one in found), "num_groups"),
    )
