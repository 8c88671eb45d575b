"""Tables as Markdown, LaTeX and CSV, against what they should read by hand."""

import csv
import io
import math

from orchestrator.report.table import Column, Table, to_csv, to_latex, to_markdown

TABLE = Table(
    name="asr.demo.conditions",
    title="asr.demo: per against macs",
    columns=("condition", "per_mean", "per_std", "on_front", "n"),
    rows=(("a_b|c", 20.003, 0.15, True, 5), ("50% & <more>", math.nan, None, False, 0)),
    printed=(
        Column("condition", ("a_b|c", "50% & <more>"), "condition", False),
        Column("per (min)", ("20.00 ± 0.15", ""), "per_mean"),
    ),
    marked=frozenset({0}),
    notes=("Mean ± sample standard deviation.",),
)


def test_markdown():
    assert to_markdown(TABLE) == (
        "**asr.demo: per against macs**\n"
        "\n"
        "| condition | per (min) |\n"
        "| :--- | ---: |\n"
        "| **a\\_b\\|c** | **20.00 ± 0.15** |\n"
        "| 50% &amp; &lt;more&gt; |  |\n"
        "\n"
        "Mean ± sample standard deviation.\n"
    )


def test_latex():
    assert to_latex(TABLE) == (
        "% needs \\usepackage{booktabs}, \\usepackage{siunitx} and \\sisetup{detect-all, retain-explicit-plus}\n"
        "\\begin{table}\n"
        "  \\centering\n"
        "  \\caption{asr.demo: per against macs.}\n"
        "  \\label{tab:asr.demo.conditions}\n"
        "  \\begin{tabular}{lr}\n"
        "    \\toprule\n"
        "    condition & per (min) \\\\\n"
        "    \\midrule\n"
        "    \\textbf{a\\_b\\textbar{}c} & \\textbf{\\num{20.00 \\pm 0.15}} \\\\\n"
        "    50\\% \\& \\textless{}more\\textgreater{} &  \\\\\n"
        "    \\bottomrule\n"
        "  \\end{tabular}\n"
        "  \\par\\smallskip\\footnotesize Mean $\\pm$ sample standard deviation.\n"
        "\\end{table}\n"
    )


def test_csv_has_all_digits_and_nothing_for_what_is_missing():
    text = to_csv(TABLE)
    assert text.startswith("condition,per_mean,per_std,on_front,n\na_b|c,20.003,0.15,true,5\n")
    assert text.endswith("50% & <more>,,,false,0\n")
    assert len(list(csv.reader(io.StringIO(text)))) == 3


def test_csv_gives_the_same_floats_again():
    import numpy as np

    values = (1 / 3, 1e-300, -0.0, 123456789.123456789, math.inf, np.float64(0.1))
    table = Table("t", "t", tuple("abcdef"), (values,))
    row = list(csv.reader(io.StringIO(to_csv(table))))[1]
    assert tuple(map(float, row)) == values


def test_csv_quotes_names_with_commas():
    table = Table("t", "t", ("name",), (('lr=0.1,"x"\ny',),))
    assert list(csv.reader(io.StringIO(to_csv(table))))[1] == ['lr=0.1,"x"\ny']


def test_a_table_without_printed_columns_prints_the_raw_ones():
    table = Table("t", "t", ("name", "x"), (("a", 1 / 3), ("b", math.nan), ("c", 5)))
    assert to_markdown(table).splitlines()[2:] == [
        "| name | x |",
        "| :--- | ---: |",
        "| a | 0.333333 |",
        "| b |  |",
        "| c | 5 |",
    ]


def cells(text):
    table = Table("t", "t", ("x",), ((text,),))
    return to_markdown(table).splitlines()[4], to_latex(table).splitlines()[9]


def test_every_character_that_means_something_is_escaped():
    assert cells("\\") == ("| \\\\ |", "    \\textbackslash{} \\\\")
    assert cells("*x*") == ("| \\*x\\* |", "    {*}x{*} \\\\")
    assert cells("`x` ~y~") == ("| \\`x\\` \\~y\\~ |", "    `x` \\textasciitilde{}y\\textasciitilde{} \\\\")
    assert cells("[a](b)") == ("| \\[a\\](b) |", "    {[}a](b) \\\\")
    assert cells("$x^2$ #{1}") == ("| \\$x^2\\$ #{1} |", "    \\$x\\textasciicircum{}2\\$ \\#\\{1\\} \\\\")
    assert cells("a\nb") == ("| a b |", "    a b \\\\")
    assert cells("run --smoke") == ("| run --smoke |", "    run -{}-smoke \\\\")
    assert cells("\N{MINUS SIGN}0.5") == ("| \N{MINUS SIGN}0.5 |", "    $-$0.5 \\\\")


def test_a_title_with_markup_stays_text():
    table = Table("a_b <c>", "<script> & 100%", ("x",), ((1,),))
    assert "**&lt;script&gt; &amp; 100%**" in to_markdown(table)
    assert "\\caption{\\textless{}script\\textgreater{} \\& 100\\%.}" in to_latex(table)
    assert "\\label{tab:a-b-c-}" in to_latex(table)


def test_numbers_in_latex_are_for_siunitx_and_empty_columns_are_left_out():
    texts = ("1,024 ± 3", "\N{MINUS SIGN}0.50", "0.17 to 0.24", "<0.001", "1e-07", "3.40e+18 ± 2.00e+16")
    columns = (Column("x", texts, "x"), Column("nothing", ("",) * 6, "nothing"))
    lines = to_latex(Table("t", "T", ("x", "nothing"), ((1, None),) * 6, printed=columns)).splitlines()
    assert lines[5:15] == [
        r"  \begin{tabular}{r}", r"    \toprule", r"    x \\", r"    \midrule", r"    \num{1024 \pm 3} \\",
        r"    \num{-0.50} \\", r"    \num{0.17} to \num{0.24} \\", r"    \textless{}\num{0.001} \\",
        r"    \num{1e-07} \\", r"    \num{3.40e+18} $\pm$ \num{2.00e+16} \\",
    ]  # fmt: skip


def test_latex_has_the_chosen_columns_in_their_order_and_all_where_a_table_lacks_one_of_them():
    def headings(*chosen):
        return to_latex(TABLE, chosen).splitlines()[7].strip()

    assert headings("per", "condition") == headings("per_mean", "condition") == r"per (min) & condition \\"
    assert headings("per (min)") == r"per (min) \\"
    assert headings("per (min)", "other") == headings() == r"condition & per (min) \\"


def test_sentences_are_broken_into_lines_in_latex():
    long = Column("reason", ("short", "a sentence that goes on for more than fifty characters"), "reason", False)
    table = Table("t", "T", ("reason",), (("short",), ("long",)), printed=(long,))
    assert r"\begin{tabular}{p{5cm}}" in to_latex(table)
