"""What a notebook shows of a front and of comparisons: a table, and the picture of the page."""

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Self

from orchestrator.pareto.membership import UncertainFront
from orchestrator.report.answers import Answers
from orchestrator.report.comparison_table import comparison_table
from orchestrator.report.condition_table import condition_table, front_objectives
from orchestrator.report.figure.front import front_figure
from orchestrator.report.front_table import front_rows
from orchestrator.report.render import image
from orchestrator.report.selection import selected_points
from orchestrator.report.table import Table, to_html
from orchestrator.results.comparison import Comparison

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]
    from matplotlib.figure import Figure

    from orchestrator.report.figure.paper import Log

MOST_ROWS = 8
"""Rows of a text; with its heading and what is left out it has ten lines."""


@dataclass(frozen=True, repr=False)
class Front(UncertainFront):
    """A front that a notebook shows: its table and its picture.

    Attributes:
        answers: the study and the question that it is of.
    """

    answers: Answers | None = None

    @classmethod
    def of(cls, answers: Answers) -> Self:
        """The front of `answers`."""
        return cls(**{f.name: getattr(answers.front, f.name) for f in fields(UncertainFront)}, answers=answers)

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row a point: means, 95 % intervals, shares of the draws, standing, and its config as `config.PATH`."""
        import pandas

        return pandas.DataFrame(front_rows(self, front_objectives(self._answers), self._answers.study.configs))

    def plot(
        self,
        log: "Log" = "none",
        width_mm: float = 120.0,
        labels: Mapping[str, str] | None = None,
        only: Collection[str] = (),
    ) -> "Figure":
        """The front as a figure of matplotlib, which a notebook shows, `savefig` writes, and anybody changes.

        Args:
            log: which axes are logarithmic.
            width_mm: of the figure.
            labels: what to call points, by condition or by name of the point; "" leaves the name away.
            only: conditions or points that are drawn; default: all.

        Raises:
            InputError: if a name is no point's.
        """
        from orchestrator.report.figure.paper import paper_front

        return paper_front(self._answers, log, width_mm, labels, only)

    def __repr__(self) -> str:
        return _text(condition_table(self._answers))

    def _repr_html_(self) -> str:
        shown = selected_points(self)
        drawing = image(
            "front.svg", sweep=self._answers.question.sweep, figure=front_figure(self._answers, shown), caption=(),
            labels={i: point.name for i, point in enumerate(self.points)},
        )  # fmt: skip
        # As an image, so that the drawing's style does not reach the rest of the notebook.
        source = base64.b64encode(drawing.encode()).decode()
        picture = f'<img style="max-width: 40em" alt="" src="data:image/svg+xml;base64,{source}">'
        return picture + to_html(condition_table(self._answers), MOST_ROWS * 8)

    @property
    def _answers(self) -> Answers:
        assert self.answers is not None
        return self.answers


class Comparisons(tuple[Comparison, ...]):
    """Comparisons that a notebook shows as a table."""

    answers: Answers

    @classmethod
    def of(cls, answers: Answers) -> Self:
        """The comparisons of `answers`."""
        made = cls(answers.comparisons)
        made.answers = answers
        return made

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row a comparison, with every number of the report's table."""
        import pandas

        table = comparison_table(self.answers)
        return pandas.DataFrame(list(table.rows), columns=list(table.columns))

    def __repr__(self) -> str:
        return _text(comparison_table(self.answers))

    def _repr_html_(self) -> str:
        return to_html(comparison_table(self.answers), MOST_ROWS * 8)


def _text(table: Table) -> str:
    """The table as text, of at most ten lines."""
    columns = table.as_printed()
    widths = [max(map(len, (column.heading, *column.texts[:MOST_ROWS]))) for column in columns]
    lines = ["  ".join(column.heading.ljust(width) for column, width in zip(columns, widths, strict=True)).rstrip()]
    for i in range(min(len(table.rows), MOST_ROWS)):
        cells = (
            column.texts[i].rjust(width) if column.is_number else column.texts[i].ljust(width)
            for column, width in zip(columns, widths, strict=True)
        )
        lines.append("  ".join(cells).rstrip())
    if len(table.rows) > MOST_ROWS:
        lines.append(f"{len(table.rows) - MOST_ROWS:,} more: .to_dataframe() has all")
    return "\n".join(lines)
