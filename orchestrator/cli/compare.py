"""The command `compare`: conditions against each other or against the reference, with what the seeds can show."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.padding import Padding
from rich.table import Table as PrintedTable
from rich.text import Text

from orchestrator.cli.options import ReferenceName, Smoke, SweepName, Values, Where, ask, find_recorded
from orchestrator.console.printing import Format, OutputFormat, fits, out, say
from orchestrator.console.spinner import spinner
from search_spaces.known_names import known_names
from trainables.errors import InputError

if TYPE_CHECKING:
    from orchestrator.environment.settings import Settings
    from orchestrator.pareto.control_line import BesideLine
    from orchestrator.pareto.equal_cost import EqualCost
    from orchestrator.report.table import Table
    from orchestrator.results.comparison import Comparison
    from orchestrator.results.points import Point
    from orchestrator.results.question import Question
    from orchestrator.results.study import Study
    from search_spaces.sweep import Objective, Sweep

MAX_ROWS: Final = 60
MAX_NOTES: Final = 20
FIRST_LINE: Final = ("a", "b", "metric", "answer")
"""Columns that the first line of a paragraph says."""

First = Annotated[
    str | None, typer.Argument(metavar="[A]", help="A condition, or CONDITION@EVALUATION; default: every condition.")
]
Line = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A control, as A; two or more in place of B: is A better than they are at its own cost?",
    ),
]
Second = Annotated[
    str | None,
    typer.Argument(metavar="[B]", help="The condition that A is compared with; default: the sweep's reference."),
]


def compare(
    name: SweepName,
    a: First = None,
    b: Second = None,
    metric: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="May be repeated; default: the sweep's objectives.")
    ] = None,
    smoke: Smoke = False,
    values: Values = None,
    where: Where = None,
    reference: ReferenceName = None,
    line: Line = None,
    format: OutputFormat = Format.table,
) -> None:
    """Compare A with B, A with the sweep's reference, or every condition with the reference.

    Each evaluation of a condition has its own comparisons. All printed comparisons are one family, and p (Holm) is
    adjusted for it. json is a list of records and csv the same: a, b, metric; mean, std and n of both; is_paired,
    difference (a - b) with low and high (95 %); is_certain (neither varies); welch_p, permutation_p and least_p, which
    it can reach; p of the promised test, p_holm, answer (better, worse, equal, undecided); effect (Hedges' g), epsilon,
    improvement; shown, seeds_needed, can_decide; warnings; share_more, line, better, as below; a_training, b_training:
    improving (still, when training ended), ended or not known. null or nothing stands for no number.

    Where A and B do not cost the same (by over 2 % of the second objective), a note says by how much (share_more), and
    how likely A is better than the interpolated front of the other points at its own cost (better, line).

    Where replicates kept errors by test item, a note has the interval over seeds and test items together.

    --where filters the conditions that are compared; A, B and the controls are not left out. Nor is the reference: it
    is the one with the settings that --where asks for, if there is one.

    --line random_20 --line random_40 asks instead whether A, or each other condition, is better than random routing of
    its own cost: within each seed, by the straight line between the controls next to it in cost.
    """
    from orchestrator.environment.settings import read_settings
    from orchestrator.pareto.equal_cost import unequal_costs
    from orchestrator.pareto.front import front
    from orchestrator.report.sentences import of_replicates
    from orchestrator.results.lookup import no_points
    from orchestrator.scheduler.kept_checkpoint import with_items
    from orchestrator.tracking.curves import with_validations

    settings, sweep = read_settings(), find_recorded(name, smoke, values)
    objectives = _objectives(sweep, metric, settings)
    given = {"B": b, "--reference": reference, "--line": ", ".join(line or ())}
    rivals = [(kind, rival) for kind, rival in given.items() if rival]
    if len(rivals) > 1:
        (one, first), (other, second), *_ = rivals
        raise InputError(f"{one} and {other} both name what A is compared with: {first} and {second}; leave one out.")
    with spinner(f"Reading {sweep.name}"):
        also = partial(_never_hidden, sweep, [a, b, *(line or ())], reference)
        study, question = ask(sweep, settings, where, reference, also=also)
        study = with_items(with_validations(sweep, study, settings), settings)
    points = front(study, objectives)
    if not points:
        raise no_points(study, objectives)
    if format is Format.table:
        own = [question.shown_note, question.changed_note]  # what the rivals are, says the user
        say(*(filter(None, own) if b or line else question.notes))
    if line:
        _show_line(_beside_line(study, question, points, objectives, a, line), study.sweep, line, objectives, format)
        return
    with spinner(f"Comparing {a or f'{len(points):,} conditions'}"):
        comparisons = _comparisons(question, study, points, objectives, a, b)
        # by the sweep's objectives, whatever metrics are compared
        all_points = front(study, question.objectives)
        names = {point.name for point in all_points}
        pairs = [(pair.a, pair.b) for pair in comparisons if {pair.a, pair.b} <= names]
        unequal = unequal_costs(pairs, all_points, question.objectives)
    _show(question, study, comparisons, unequal, format)
    if format is Format.table:
        say(*of_replicates(study, question.objectives))


def _never_hidden(
    sweep: "Sweep", names: Sequence[str | None], reference: str | None, study: "Study", shown: "Study"
) -> list[str]:
    """The conditions that the user names, and the reference where no B does: --where hides none of these.

    Where the reference is shown with the settings that --where asks for, that is the one.
    """
    from orchestrator.results.lookup import parts_of
    from orchestrator.results.reference import find_reference

    a, *rivals = names
    if not any(rivals):
        own = find_reference(sweep, study if reference else shown, reference)
        if not (reference or own.note or own.name in shown.conditions):
            own = find_reference(sweep, study)
        rivals = [own.name] if own.name in study.conditions else []
    return [parts_of(study, name)[0] for name in (a, *rivals) if name]


def _beside_line(
    study: "Study",
    question: "Question",
    points: Sequence["Point"],
    objectives: Sequence["Objective"],
    a: str | None,
    line: Sequence[str],
) -> "tuple[BesideLine, ...]":
    """A, or every point but the controls, against the line through these, each under the point's own evaluation."""
    from orchestrator.pareto.control_line import beside_line
    from orchestrator.pareto.equal_cost import has_cost
    from orchestrator.results.lookup import find_points

    if not has_cost(objectives):
        raise InputError(
            "--line needs an error, the first objective, and a cost to minimize, the second; name both by --metric."
        )
    controls = [find_points(study, points, name) for name in line]
    names = dict.fromkeys(point.name for own in controls for point in own)
    rest = [point for point in (find_points(study, points, a) if a else points) if point.name not in names]
    if not rest:
        raise InputError(f"--line names every point that is compared: {', '.join(names)}; name another A.")
    lines = []
    for point in rest:
        ends = [_under(point.evaluation, own) for own in controls]
        lines.append((point, list({end.name: end for end in ends}.values())))
    return beside_line(lines, objectives, points, question.tied, items=study.items)


def _show_line(
    points: "tuple[BesideLine, ...]",
    sweep: str,
    line: Sequence[str],
    objectives: Sequence["Objective"],
    format: Format,
) -> None:
    from orchestrator.report.comparison_table import control_line_sentence, control_line_table
    from orchestrator.report.table import for_programs

    table = control_line_table(sweep, points, line, objectives)
    if format is Format.table:
        say(*(control_line_sentence(point, objectives) for point in points), *table.notes)
        return
    print(for_programs(table, format), end="")


def _objectives(sweep: "Sweep", metrics: Sequence[str] | None, settings: "Settings") -> tuple["Objective", ...]:
    from orchestrator.tracking.load import load_directions
    from search_spaces.sweep import Objective

    if not metrics:
        return sweep.objectives
    known = load_directions(sweep, settings)
    for name in metrics:
        if "@" in name:
            raise InputError(
                f"--metric must be a name without an evaluation, but got {name!r}; give CONDITION@EVALUATION."
            )
        if name not in known:
            raise InputError(f"{name!r} is not a metric with a direction; choose one of {known_names(known, name)}.")
    return tuple(Objective(name, known[name]) for name in dict.fromkeys(metrics))


def _comparisons(
    question: "Question",
    study: "Study",
    points: Sequence["Point"],
    objectives: Sequence["Objective"],
    a: str | None,
    b: str | None,
) -> tuple["Comparison", ...]:
    from orchestrator.results.comparison import compare, compare_with_reference
    from orchestrator.results.lookup import find_points

    if b is None and not question.reference:
        both, name = "both" if a else "two", question.sweep
        raise InputError(
            question.reference_note
            or f"{name} names no reference; name {both} conditions: `ponderay compare {name} A B`."
        )
    right = find_points(study, points, b or question.reference)
    if a is None:
        return compare_with_reference(points, right[0].condition, objectives, question.test, tied=question.tied)
    left = find_points(study, points, a)
    if len(left) == 1 < len(right):  # an evaluation against a condition: against its counterpart there
        right = (_under(left[0].evaluation, right),)
    elif len(right) == 1 < len(left):
        left = (_under(right[0].evaluation, left),)
    if len(left) == 1 == len(right):
        if left == right:
            raise InputError(f"A and B must differ, but both are {left[0].name}; name another B.")
        return compare(left[0], right[0], objectives, question.test, points, question.tied)
    if left[0].condition == right[0].condition:
        raise InputError(
            f"A and B must differ, but both are {left[0].condition}; name another B, or their evaluations."
        )
    held = [*left, *right]
    return compare_with_reference(held, right[0].condition, objectives, question.test, points, question.tied)


def _under(evaluation: str, points: tuple["Point", ...]) -> "Point":
    """The point of a condition that is compared with a point under `evaluation`."""
    from orchestrator.results.points import counterpart

    own = {point.evaluation: point for point in points}
    return own[counterpart(evaluation, own)]


def _show(
    question: "Question",
    study: "Study",
    comparisons: "tuple[Comparison, ...]",
    unequal: "tuple[EqualCost, ...]",
    format: Format,
) -> None:
    """Prints comparisons; for programs with the columns of a report's table of them."""
    from orchestrator.pareto.membership import UncertainFront
    from orchestrator.report.answers import Answers
    from orchestrator.report.comparison_table import (
        comparison_table,
        equal_cost_sentence,
        found_over_items,
        over_items_sentence,
        share_more,
    )
    from orchestrator.report.table import finite, for_programs
    from orchestrator.report.training_table import standing_of, training_sentences

    no_front = UncertainFront((), (), None, 0, is_exact=True, is_paired=True)
    table = comparison_table(Answers(question, study, no_front, comparisons, ()))
    if format is Format.table:
        _show_to_people(table, comparisons)
        say(*training_sentences(study, [name for pair in comparisons for name in (pair.a, pair.b)]))
        say(*[over_items_sentence(one) for one in found_over_items(study, comparisons, question.test)][:MAX_NOTES])
        for pair in unequal[:MAX_NOTES]:
            say(equal_cost_sentence(pair))
        if len(unequal) > MAX_NOTES:
            say(f"{len(unequal) - MAX_NOTES} more pairs do not cost the same; --format csv lists all.")
        return
    costs = {(pair.a, pair.b): tuple(map(finite, (share_more(pair), pair.line, pair.better))) for pair in unequal}
    rows = tuple(
        (*row, *costs.get((c.a, c.b), (None,) * 3), standing_of(study, c.a), standing_of(study, c.b))
        for row, c in zip(table.rows, comparisons, strict=True)
    )
    columns = (*table.columns, "share_more", "line", "better", "a_training", "b_training")
    print(for_programs(replace(table, columns=columns, rows=rows), format), end="")


def _show_to_people(table: "Table", comparisons: Sequence["Comparison"]) -> None:
    """A table, or a paragraph for each comparison where it is too wide; then the notes."""
    columns, rows = list(table.as_printed()), list(range(len(comparisons)))
    if len(comparisons) > MAX_ROWS:  # those decided, then those with the smallest p
        ranks = [(c.answer in ("undecided", "equal"), 1.0 if math.isnan(c.p_holm) else c.p_holm) for c in comparisons]
        rows = sorted(rows, key=lambda i: ranks[i])[:MAX_ROWS]
    printed = PrintedTable(title=Text(table.title))
    for column in columns:
        printed.add_column(Text(column.heading), justify="right" if column.is_number else "left", overflow="fold")
    for i in rows:
        style = "bold" if i in table.marked else ""
        printed.add_row(*(Text(column.texts[i]) for column in columns), style=style)
    if fits(printed, out.width):
        out.print(printed)
    else:
        answers = next(column.texts for column in columns if column.by == "answer")
        for i in rows:
            pair = comparisons[i]
            say(f"{columns[0].texts[i]} against {pair.b}, {pair.metric}: {answers[i]}")
            facts = [f"{c.heading} {c.texts[i]}" for c in columns if c.by not in FIRST_LINE and c.texts[i]]
            out.print(Padding(Text(", ".join(facts)), (0, 0, 0, 2)))
    if len(rows) < len(comparisons):
        say(f"{len(rows)} of {len(comparisons):,} comparisons are shown, those decided first; --format csv lists all.")
    for note in table.notes[:MAX_NOTES]:
        say(note)
    if len(table.notes) > MAX_NOTES:
        say(f"{len(table.notes) - MAX_NOTES} more warnings; --format csv lists all.")
