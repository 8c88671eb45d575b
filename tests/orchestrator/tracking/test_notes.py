"""Descriptions: nothing of a user's text is Markdown or HTML, links are relative, and none is too long."""

import re

import pytest

from orchestrator.tracking import notes
from orchestrator.tracking.pages import FILTERS
from tests.orchestrator.recorded import replicate


def links(note: str) -> dict[str, str]:
    """Pages by the text of their link."""
    return dict(re.findall(r"\[((?:\\.|[^\]\\])*)\]\(([^)]*)\)", note))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", r"&lt;script&gt;alert\(1\)&lt;/script&gt;"),
        ("a_b *c* `d`", r"a\_b \*c\* \`d\`"),
        ("[x](y) ![z](w)", r"\[x\]\(y\) \!\[z\]\(w\)"),
        ("# one\n\n- two", r"\# one \- two"),
        ("back\\slash & more", r"back\\slash &amp; more"),
        ("plain: 95 % = x", "plain: 95 % = x"),
    ],
)
def test_markdown_and_html_of_a_user_stay_text(text, shown):
    assert notes.escaped(text) == shown


def test_an_experiments_description_begins_with_the_sweeps_and_leads_to_its_pages():
    note = notes.of_experiment("asr.demo", "Two *lines*\nof text.", "7", FILTERS)
    assert note.splitlines()[0] == r"Two \*lines\* of text\."
    pages = links(note)
    assert pages["Conditions: means and intervals"] == (
        "#/experiments/7/runs?workflowType=machine_learning&viewStateShareKey=ponderay-conditions"
    )
    assert pages["Conditions: learning curves"].endswith("viewStateShareKey=ponderay-curves&compareRunsMode=CHART")
    assert all(page.startswith("#/experiments/7/runs?") for page in pages.values())
    assert all(one.text in note for one in FILTERS)
    assert "    ponderay report asr.demo\n" in note


def test_commands_name_a_sweep_as_the_shell_takes_it():
    assert "    ponderay pareto asr.demo --smoke\n" in notes.of_experiment("asr.demo.smoke", "x", "7", ())
    assert "    ponderay pareto '<b> x'\n" in notes.of_experiment("<b>\nx", "x", "7", ())


def test_a_condition_lists_its_replicates_by_seed_with_state_and_error():
    replicates = [
        replicate("a", 2, state="failed", error="ValueError: <b>", run_id="r2"),
        replicate("a", 1, run_id="r1"),
        replicate("a", 3),
    ]
    note = notes.of_condition("Text.", "7", "parent", replicates)
    pages = links(note)
    assert pages["seed 1"] == "#/experiments/7/runs/r1?workflowType=machine_learning"
    assert "parentRunId%22%20%3D%20%27parent%27" in pages["Its replicates as a table"]
    listed = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line) for line in note.splitlines() if line.startswith("- ")]
    assert listed == ["- seed 1, complete", "- seed 2, failed: ValueError: &lt;b&gt;", "- seed 3, complete"]


def test_a_replicate_leads_to_its_condition():
    note = notes.of_replicate(3, "x=1_0", "<b>", "7", "parent")
    assert links(note) == {r"x=1\_0": "#/experiments/7/runs/parent?workflowType=machine_learning"}
    assert note.startswith("Seed 3 of condition ") and note.endswith(" of &lt;b&gt;")


def test_none_is_longer_than_a_tag_and_what_is_left_out_is_said():
    replicates = [replicate("a", seed, state="failed", error="!" * 900, run_id="r" * 32) for seed in range(1000)]
    note = notes.of_condition("*" * 9000, "7", "parent", replicates)
    assert len(note) <= notes.MAX_LENGTH
    assert "\n- and more\n" in note
    assert "[seed 0]" in note
    assert len(notes.opening("*" * 9000)) <= notes.MAX_LENGTH
