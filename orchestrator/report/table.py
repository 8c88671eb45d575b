"""A table of a report: raw values for programs, and the same rows as a paper prints them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from orchestrator.console.csv_text import csv_text
from orchestrator.console.json_text import json_text
from orchestrator.report.numerals import MINUS

INTERVAL: Final = "95 % interval"
"""Heads the column of intervals of the column before it."""

Cell = str | float | int | bool | None

_NUMBER: Final = rf"[-+{MINUS}]?\d[\d,]*(?:\.\d+)?"
NUMBERS: Final = re.compile(rf"{_NUMBER}(?:e[-+]?\d+|(?: ± {_NUMBER}(?!e|[\d,.]))?)")
"""A number as tables print it, with its power of ten, or with the spread that may follow where neither has one."""

MAX_LINE: Final = 50
"""Characters of a cell in LaTeX that stay in one line."""

_SENTENCES: Final = re.compile(r"(?<=\.) (?=[^\W\d])")

_LATEX: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "%": r"\%",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "[": "{[}",  # else an argument of the line break before it
        "*": "{*}",
        "±": r"$\pm$",
        MINUS: "$-$",
        "≥": r"$\geq$",
        "∞": r"$\infty$",
        "†": r"$\dagger$",
        "ε": r"$\varepsilon$",
    }
)
_CONTROLS: Final = dict.fromkeys((*range(32), 127), " ")
_MARKDOWN: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {c: f"\\{c}" for c in "\\`*_[]|~$"}


@dataclass(frozen=True)
class Column:
    """A column as a paper prints it.

    Attributes:
        texts: one for each row.
        by: the raw column that its rows are sorted by.
        is_number: whether it is set to the right.
    """

    heading: str
    texts: tuple[str, ...]
    by: str
    is_number: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """What a user may call it: `per (min)`, `per` or `per_mean`."""
        return self.heading, self.heading.partition(" (")[0], self.by


@dataclass(frozen=True)
class Table:
    """Rows of equal columns.

    Attributes:
        name: a file's name without its ending.
        rows: raw values; None is an empty cell.
        printed: the columns of Markdown, LaTeX and HTML; empty: the raw ones.
        marked: numbers of the rows that are marked, those on the front.
        notes: sentences below it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    printed: tuple[Column, ...] = ()
    marked: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()

    def values(self, column: str) -> tuple[Cell, ...]:
        """The raw values of one column."""
        place = self.columns.index(column)
        return tuple(row[place] for row in self.rows)

    def as_printed(self) -> tuple[Column, ...]:
        """The printed columns, or the raw ones with six digits."""
        if self.printed:
            return self.printed
        columns = []
        for name in self.columns:
            cells = self.values(name)
            is_number = all(c is None or (isinstance(c, float | int) and not isinstance(c, bool)) for c in cells)
            texts = (f"{cell:.6g}" if isinstance(cell, float) else _raw(cell) for cell in cells)
            columns.append(Column(name, tuple("" if text == "nan" else text for text in texts), name, is_number))
        return tuple(columns)


def to_csv(table: Table) -> str:
    """Raw values with all digits and a header line; what is missing or NaN is empty, and yes and no are true and false.

    So that reading a number gives the same float again. A text that a spreadsheet would compute has an apostrophe.
    """
    return csv_text([table.columns, *([_raw(cell) for cell in row] for row in table.rows)])


def for_programs(table: Table, format: str) -> str:
    """The table as csv, or as json: a list of `records`."""
    return to_csv(table) if format == "csv" else json_text(records(table)) + "\n"


def records(table: Table) -> list[dict[str, Cell]]:
    """The rows for JSON: null for no number."""
    return [dict(zip(table.columns, map(finite, row), strict=True)) for row in table.rows]


def finite(cell: Cell) -> Cell:
    """None for what is no number."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def to_markdown(table: Table) -> str:
    """A table of GitHub's Markdown with the title above and the notes below; marked rows are bold."""
    columns = table.as_printed()
    lines = [f"**{_markdown(table.title)}**", ""]
    lines.append(_markdown_row([_markdown(column.heading) for column in columns]))
    lines.append(_markdown_row(["---:" if column.is_number else ":---" for column in columns]))
    for i in range(len(table.rows)):
        cells = [_markdown(column.texts[i]) for column in columns]
        lines.append(_markdown_row([f"**{cell}**" if cell and i in table.marked else cell for cell in cells]))
    lines += [line for note in table.notes for line in ("", _markdown(note))]
    return "\n".join(lines) + "\n"


def to_html(table: Table, most: int) -> str:
    """The first `most` rows as an HTML table, for a notebook; marked rows are bold."""
    columns = table.as_printed()
    head = "".join(f"<th>{escape(column.heading)}</th>" for column in columns)
    body = ""
    for i in range(min(len(table.rows), most)):
        tag = "b" if i in table.marked else "span"
        cells = (f"<td><{tag}>{escape(column.texts[i])}</{tag}></td>" for column in columns)
        body += f"<tr>{''.join(cells)}</tr>"
    left = len(table.rows) - most
    more = f"<p>{left:,} more rows; <code>to_dataframe()</code> has all.</p>" if left > 0 else ""
    return f"<table><caption>{escape(table.title)}</caption><tr>{head}</tr>{body}</table>{more}"


def to_latex(table: Table, chosen: Sequence[str] = ()) -> str:
    r"""A `table` environment with the rules of booktabs and numbers for siunitx; marked rows are bold.

    The caption is the title; the notes stand below in small letters, but for sentences that explain a column that is
    not there. A column without any text is left out.

    Args:
        chosen: headings, or raw columns, in the order wanted; a table that lacks one of them keeps all of its own.
    """
    columns = [column for column in table.as_printed() if any(column.texts)]
    named = [next((column for column in columns if name in column.names), None) for name in chosen]
    if chosen and None not in named:
        columns = [column for column in dict.fromkeys(named) if column]
    lines = [
        r"% needs \usepackage{booktabs}, \usepackage{siunitx} and \sisetup{detect-all, retain-explicit-plus}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_latex(_sentence(table.title))}}}",
        rf"  \label{{tab:{re.sub(r'[^A-Za-z0-9.]+', '-', table.name)}}}",
        rf"  \begin{{tabular}}{{{''.join(map(_latex_column, columns))}}}",
        r"    \toprule",
        _latex_row([_latex(column.heading) for column in columns]),
        r"    \midrule",
    ]
    for i in range(len(table.rows)):
        cells = [(_latex_numbers if column.is_number else _latex)(column.texts[i]) for column in columns]
        lines.append(_latex_row([rf"\textbf{{{cell}}}" if cell and i in table.marked else cell for cell in cells]))
    lines += [r"    \bottomrule", r"  \end{tabular}"]
    hidden = tuple(f"{name.lower()}: " for one in table.as_printed() if one not in columns for name in one.names[:2])
    sentences = [part for note in table.notes for part in _SENTENCES.split(_sentence(note))]
    if notes := [part for part in sentences if not part.lower().startswith(hidden)]:
        lines.append(rf"  \par\smallskip\footnotesize {_latex(' '.join(notes))}")
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _latex_numbers(text: str) -> str:
    r"""Each number, or mean with its spread, as siunitx reads it: `\num{1024}`, `\num{0.25 \pm 0.01}`."""
    parts, end = [], 0
    for found in NUMBERS.finditer(text):
        number = found[0].replace(",", "").replace(MINUS, "-").replace("±", r"\pm")
        parts += [_latex(text[end : found.start()]), rf"\num{{{number}}}"]
        end = found.end()
    return "".join([*parts, _latex(text[end:])])


def _latex_column(column: Column) -> str:
    """Sentences are broken into lines."""
    if max(map(len, column.texts), default=0) > MAX_LINE:
        return r"p{5cm}"
    return "r" if column.is_number else "l"


def _raw(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    return repr(float(cell)) if isinstance(cell, float) else str(cell)


def _markdown(text: str) -> str:
    return "".join(_MARKDOWN.get(character, character) for character in text.translate(_CONTROLS))


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex(text: str) -> str:
    return re.sub("-(?=-)", "-{}", text.translate(_CONTROLS).translate(_LATEX))  # two hyphens would make a dash


def _latex_row(cells: Sequence[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"
