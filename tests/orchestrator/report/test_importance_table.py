"""How the importance of parameters is printed."""

from orchestrator.report.importance_table import importance_sentences, importance_table
from orchestrator.report.page import render
from orchestrator.report.table import to_csv
from orchestrator.results.trials import Importance
from tests.orchestrator.report.made_answers import answers_of, provenance_of
from tests.orchestrator.report.test_page import STUDY

FOUND = Importance(
    "s",
    ("error", "cost"),
    ("depth", "lr"),
    ((0.001, None), (0.999, None)),
    (((0.0, 0.25), None), ((0.75, 1.0), None)),
    40,
    20,
    (0.62, None),
    ("cost does not vary.",),
)


def test_the_most_important_comes_first_and_no_share_is_empty():
    table = importance_table(FOUND)
    assert to_csv(table) == (
        "parameter,error,error_low,error_high,cost,cost_low,cost_high\nlr,0.999,0.75,1.0,,,\ndepth,0.001,0.0,0.25,,,\n"
    )
    texts = [("lr", "depth"), (">0.99", "<0.01"), ("0.75 to 1.00", "0.00 to 0.25"), ("", ""), ("", "")]
    assert [column.texts for column in table.printed] == texts
    assert "of trials that it has not seen a forest explains 0.62 of error:" in table.notes[0]
    assert "when each 20th part of the trials is left out" in table.notes[0]
    assert importance_sentences(FOUND) == (
        "Importance for error: lr >0.99 (0.75 to 1.00), depth <0.01 (0.00 to 0.25) "
        "(40 trials; R² of unseen trials 0.62).",
        "In brackets: the lowest and the highest share when each 20th part of the trials is left out.",
        "cost does not vary.",
    )


def test_the_page_has_the_table_or_says_why_not():
    arguments = (answers_of(STUDY), (), provenance_of(STUDY))
    assert 'id="importance"' not in render(*arguments)
    page = render(*arguments, FOUND)
    assert 'href="#importance"' in page and 'id="importance-table"' in page and "&gt;0.99" in page
    page = render(*arguments, Importance("s", ("error",), notes=("Importance needs 20 trials.",)))
    assert "<p>Importance needs 20 trials.</p>" in page and 'id="importance-table"' not in page
