"""What is listed of the sources: every claim has a place, and every place an answer that exists or a reason."""

import json
import shlex
from inspect import signature
from pathlib import Path

import pytest

from orchestrator.report.selection import curve_conditions
from search_spaces import find
from search_spaces.source_items import ITEMS, OURS
from search_spaces.sources import SourceRow, all_claims, everything, has_whole, items, of_place
from trainables.act.analysis.questions import ANALYSES as ACT_ANALYSES
from trainables.asr.data.config import LibriSpeech
from trainables.errors import InputError
from trainables.lm.analysis.questions import ANALYSES as LM_ANALYSES

DOCUMENT = Path(__file__).parents[2] / "docs" / "sources.md"


def docs_table() -> str:
    """The items as a table of Markdown, a source each."""
    lines = []
    for source in dict.fromkeys(item.paper for item in ITEMS):
        lines += [f"### {source}", "", "| place | shows | claims | answered by |", "|---|---|---|---|"]
        for row in items():
            if row.source == source:
                count = row.num_numbers + row.num_statements
                lines.append(f"| {row.place} | {row.says} | {count or ''} | {_answer(row)} |")
        lines.append("")
    return "\n".join(lines)


def _answer(row: SourceRow) -> str:
    if row.why:
        return f"nothing: {row.why}"
    return f"`{row.command}`: {', '.join(f'`{sweep}`' for sweep in row.sweeps)}"


def test_every_claim_stands_at_a_place_that_is_listed() -> None:
    named = {
        claim.id
        for claim in all_claims()
        for item in ITEMS
        if item.paper == claim.source.paper and any(has_whole(claim.source.place, n) for n in (item.place, *item.names))
    }
    assert [(claim.id, claim.source.place) for claim in all_claims() if claim.id not in named] == []


def test_every_place_has_an_answer_or_a_reason() -> None:
    known = find.sweep_functions()
    for row in everything():
        assert bool(row.why) != bool(row.sweeps and row.command), row
        assert [name for name in row.sweeps if name not in known] == []
    assert len({(item.paper, item.place) for item in ITEMS}) == len(ITEMS)


def test_the_command_for_a_controller_fitted_to_other_data_says_so_to_the_config() -> None:
    (row,) = [row for row in items() if row.place == "section 3.2 other data"]
    path, _, value = shlex.split(row.command)[-1].partition("=")
    for name in row.sweeps:
        config = find.find_sweep(name).base.with_value(path, json.loads(value))
        assert config.controller.data == LibriSpeech(train="SUBSET")


def test_all_tables_and_figures_of_the_paper_and_the_thesis_are_listed() -> None:
    """Tables 1 to 9 and figures 1 to 4; tables 5.1, 5.2, B.1, B.2 and figures 3.1 to 6.3 and B.1 to B.6."""
    asr, lm = ({item.place for item in ITEMS if name in item.paper} for name in ("Lugosch", "Ulmer"))
    assert {f"Table {i}" for i in range(1, 10)} | {f"Figure {i}" for i in range(1, 5)} <= asr
    figures = {3: 3, 4: 2, 5: 6, 6: 3, "B": 6}
    assert {f"Figure {part}.{i}" for part, count in figures.items() for i in range(1, count + 1)} <= lm
    assert {f"Table {part}.{i}" for part in (5, "B") for i in (1, 2)} <= lm


# captions of version 6 in our words: each figure's rows of words, all of which the listed row must have
GRAVES_CAPTIONS = {
    1: ("graph", "recurrent"),
    2: ("ACT",),
    3: ("example", "parity"),
    4: ("parity", "error", "penalty"),
    5: ("parity", "learning curves", "error over ponder"),
    6: ("parity", "ponder and error over difficulty"),
    7: ("example", "logic"),
    8: ("logic", "error", "penalty"),
    9: ("logic", "learning curves", "error over ponder"),
    10: ("logic", "ponder and error over difficulty"),
    11: ("example", "addition"),
    12: ("addition", "error", "penalty"),
    13: ("addition", "learning curves", "error over ponder"),
    14: ("addition", "ponder and error over difficulty"),
    15: ("addition", "ponder", "three sequences"),
    16: ("example", "sort"),
    17: ("sort", "error", "penalty"),
    18: ("sort", "learning curves", "error over ponder"),
    19: ("sort", "ponder and error over difficulty"),
    20: ("sort", "ponder", "three sequences"),
    21: ("text", "error", "penalty"),
    22: ("text", "learning curves", "error over ponder"),
    23: ("text", "ponder", "loss", "entropy"),
    24: ("text", "XML tags"),
}


def test_all_figures_of_graves_are_listed_with_the_analysis_that_draws_each() -> None:
    """Graves 2016: figures 1 to 24; over difficulty 6, 10, 14, 19, step by step 15, 20, byte by byte 23, 24."""
    rows = {row.place: row for row in items() if row.source.startswith("Graves")}
    figures = [place for place in rows if place.startswith("Figure")]
    assert figures == [f"Figure {i}" for i in range(1, 25)] == [f"Figure {i}" for i in GRAVES_CAPTIONS]
    for number, words in GRAVES_CAPTIONS.items():
        assert all(word in rows[f"Figure {number}"].says for word in words), number
    analyses = dict.fromkeys((6, 10, 14, 19), "difficulty") | dict.fromkeys((15, 20), "steps")
    analyses |= dict.fromkeys((23, 24), "bytes")
    for number, name in analyses.items():
        assert f" {name}" in rows[f"Figure {number}"].command and name in ACT_ANALYSES
    unanswered = {f"Figure {i}" for i in (1, 2, 3, 7, 11, 16)} | {"Table 1"}
    assert {place for place, row in rows.items() if row.why} == unanswered
    tasks = {"parity": 4, "logic": 8, "addition": 12, "sort": 17, "text": 21}
    assert all(f"act.tau_{task}" in rows[f"Figure {number}"].sweeps for task, number in tasks.items())


def test_the_sequences_over_difficulty_are_as_long_as_the_captions_say() -> None:
    """Figure 10: "all sequences were length 5"; figure 14: "all sequences were length 3"."""
    commands = {row.place: row.command for row in items() if row.source.startswith("Graves")}
    lengths = {number: commands[f"Figure {number}"].partition("length=")[2] for number in (6, 10, 14, 19)}
    assert lengths == {6: "", 10: "5", 14: "3", 19: ""}


SECTIONS = {
    "Lugosch": (
        *("3", "3.1 encoder", "3.1 corpus", "3.1 joint training", "3.2 budget", "3.2 other data", "3.3"),
        *("4.2", "4.3", "4.4", "5"),
    ),
    "Graves": ("3", "4"),
    "Ulmer": ("5.3.1 variational", "7.1", "7.2", "8.1.1", "8.1.2", "8.1.3", "8.1.4"),
}
"""Numbered sections that state or propose something that no table or figure of theirs shows."""


@pytest.mark.parametrize("source", SECTIONS)
def test_sections_that_state_something_are_listed(source: str) -> None:
    places = {item.place for item in ITEMS if item.paper.startswith(source)}
    assert {f"section {section}" for section in SECTIONS[source]} <= places


def test_states_carried_between_utterances_are_no_question_of_the_paper() -> None:
    """Section 3 has "a stream of input observations"; section 4.2 has nets that read an utterance from both ends."""
    (row,) = (row for row in items() if row.source.startswith("Lugosch") and row.place == "section 3")
    assert "states between utterances" in row.why and "section 4.2" in row.why


def test_the_figures_of_the_error_signal_are_answered_by_what_has_it_at_each_word() -> None:
    """Ulmer 2019, figures 6.2 and B.6; 6.3 has MC dropout with a step of 5 (caption) or .1 (text)."""
    rows = {row.place: row for row in items() if row.source.startswith("Ulmer")}
    for place in ("Figure 6.1", "Figure 6.2", "Figure 6.3", "Figure B.6"):
        assert rows[place].command.split()[-1] == "sentences" and "lm.step_size" in rows[place].sweeps
        assert ("lm.error_signal" in rows[place].sweeps) == (place != "Figure 6.1")
    conditions = {condition.name for condition in find.find_sweep("lm.step_size").conditions}
    assert {"mc_dropout,step=5", "mc_dropout,step=0.1"} <= conditions
    searches = {name for name in find.sweep_functions() if name.startswith("lm.search") and "pareto" not in name}
    assert set(rows["Table B.2"].sweeps) == searches


def test_a_row_of_learning_curves_says_how_many_a_report_draws_where_it_leaves_some_out() -> None:
    """Of the 33 conditions of lm.step_size, figure 5.1, the report draws the reference and those nearest the front."""
    most = signature(curve_conditions).parameters["count"].default
    rows = [row for row in items() if "learning curves" in row.says]
    assert len(rows) == 8
    for row in rows:
        leaves_out = any(len(find.find_sweep(sweep).conditions) > most for sweep in row.sweeps)
        assert (f"({most} conditions in one report, which --where picks)" in row.says) is leaves_out, row.place


@pytest.mark.parametrize(
    ("place", "analysis", "sweeps"),
    [
        ("Figure 5.3", "batches", {"lm.samples"}),
        ("Figure 5.4 b", "batches", {"lm.mc_dropout_rate"}),
        ("Figure 5.5 b to d", "", {"lm.dynamic_step"}),
        ("Figure B.5", "", {"lm.dynamic_step"}),
        ("section 8.1.1", "delta", {"lm.error_signal", "lm.step_size"}),
    ],
)
def test_what_the_thesis_draws_over_batches_and_training_is_answered(
    place: str, analysis: str, sweeps: set[str]
) -> None:
    (row,) = (row for row in items() if row.source.startswith("Ulmer") and row.place == place)
    assert set(row.sweeps) == sweeps and not row.why
    assert row.command == (f"ponderay analyse SWEEP CONDITION {analysis}" if analysis else "ponderay report SWEEP")
    assert not analysis or analysis in LM_ANALYSES


@pytest.mark.parametrize("place", ["section 8.1.3"])
def test_what_the_thesis_asks_and_nothing_answers_has_a_reason(place: str) -> None:
    (row,) = (row for row in items() if row.source.startswith("Ulmer") and row.place == place)
    assert row.why and not row.sweeps


def test_section_7_1_names_the_sweep_of_layers_and_activations() -> None:
    (row,) = (row for row in items() if row.source.startswith("Ulmer") and row.place == "section 7.1")
    assert (row.sweeps, row.why) == (("lm.layers",), "")


def test_a_table_is_not_taken_for_one_whose_number_begins_so() -> None:
    rows = {(row.source, row.place): row for row in items()}
    (table_5,) = (row for (source, place), row in rows.items() if place == "Table 5")
    assert table_5.source.startswith("Lugosch") and table_5.num_numbers == 12


def test_only_sweeps_that_can_answer_are_named() -> None:
    """A small sweep has other data, sizes or steps than what was published: `verify` says NOT COMPARABLE of all."""
    small = {"asr.demo", "asr.laptop_librispeech", "act.tau_text_laptop", "lm.laptop"}
    small |= {f"act.tau_{task}_laptop" for task in ("parity", "logic", "addition")}
    of_papers = [row for row in everything() if row.source != OURS]
    assert [(row.source, row.place) for row in of_papers if small & set(row.sweeps)] == []
    (log,) = (row for row in items() if row.source == OURS)
    assert "act.tau_parity_laptop" in log.sweeps


def test_a_place_is_found_by_its_words() -> None:
    found = of_place("table 5.1")
    assert {row.kind for row in found} == {"item", "statement"} and all("5.1" in row.place for row in found)
    known = r"there are Figure 1, section 3, section 3\.1 encoder,"
    with pytest.raises(InputError, match=rf"No source has a place 'table 77'; {known}"):
        of_place("table 77")


def test_a_place_is_found_by_whole_numbers_alone() -> None:
    assert {row.place.split(",")[0] for row in of_place("Table 5")} == {"Table 5"}
    assert {row.place for row in of_place("figure 1") if row.kind == "item"} == {"Figure 1"}
    assert {row.place for row in of_place("1") if row.kind == "item" and row.source.startswith("Ulmer")} == set()


def test_what_claims_call_a_place_is_the_name_of_one() -> None:
    places = {(claim.source.paper, claim.source.place) for claim in all_claims()}
    idle = [
        name
        for item in ITEMS
        for name in item.names
        if not any(paper == item.paper and has_whole(text, name) for paper, text in places)
    ]
    assert idle == []


def test_the_document_has_what_is_generated() -> None:
    """Write it anew by `python -c 'from tests.search_spaces.test_sources import docs_table; print(docs_table())'`."""
    assert docs_table() in DOCUMENT.read_text()
