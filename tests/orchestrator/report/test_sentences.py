"""What a report says in words."""

from dataclasses import replace

from orchestrator.pareto.membership import UncertainFront
from orchestrator.report.sentences import counted, listed, summary_sentences, warning_sentences
from orchestrator.results.study import Replicate, Study
from tests.orchestrator.report.made_answers import CONDITIONS, answers_of, provenance_of, study_of

STUDY = study_of(CONDITIONS)


def test_lists():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert (counted(1, "seed"), counted(1200, "seed")) == ("1 seed", "1,200 seeds")


def test_the_summary_says_what_is_on_the_front_what_differs_and_what_becomes_of_the_claims():
    text = summary_sentences(answers_of(STUDY))
    assert text[0].startswith(
        "Of 6 conditions, 5 are on the front of per against macs_per_frame: always_big (P = 0.99), "
    )
    assert text[1] == "Off it, but within seed noise of it: random (P = 0.40)."
    assert "is 1,234 (95 % interval 1,180 to 1,290)." in text[2]
    assert text[3].startswith("In per, against always_big: worse: learned_l1 (+0.0")
    assert text[3].endswith("p = 0.001); not shown to differ: random, learned_entropy and always_small.")
    assert text[4].startswith("In macs_per_frame, against always_big: better: learned_l1 (")
    assert text[-1] == "Of 5 published claims: 1 REPRODUCED, 1 BETTER, 1 WORSE, 1 INCONCLUSIVE, 1 NOT COMPARABLE."


def test_one_point_and_none():
    alone = answers_of(study_of({"only": (0.1, 1e5, 0.5)}), reference="only", claims=False)
    assert (
        summary_sentences(alone)[0]
        == "Of 1 condition, 1 is on the front of per against macs_per_frame: only (P = 0.99)."
    )
    empty = replace(alone, front=UncertainFront((), (), None, 0, True, True))
    assert summary_sentences(empty) == ("No condition has a complete replicate yet.",)


def test_warnings_name_what_is_missing_mixed_or_undecidable_each_once():
    kinds = ((1, "failed", "aa"), (2, "running", "bb"), (3, "running", ""))
    gone = [Replicate(f"gone/{i}", "gone", i, state, {}, data_fingerprint=data) for i, state, data in kinds]
    answers = answers_of(Study("s", (*STUDY.replicates, *gone)), notes=("Seeds differ.", "Seeds differ."))
    provenance = replace(provenance_of(STUDY), code_versions=("v1", "v2"))
    assert warning_sentences(answers, provenance) == (
        "Of 33 replicates, 1 failed and 2 still running: they count in nothing here.",
        "Without a value, and in no comparison: gone.",
        "Results of 2 versions of the code are mixed.",
        "Replicates of one condition had different data: gone.",
        "Seeds differ.",
        "Ties: 3 of 5 differences are 0 (4 comparisons of per and macs_per_frame).",
    )


def test_data_that_conditions_do_not_share_are_a_warning():
    first, *others = STUDY.conditions
    replicates = [replace(one, data_fingerprint="bb" if one.condition == first else "aa") for one in STUDY.replicates]
    answers = replace(answers_of(Study("s", tuple(replicates))), comparisons=())
    assert warning_sentences(answers, provenance_of(STUDY)) == (
        f"Conditions had different data ({first} / {listed(others)}), which may be a part of their differences.",
    )


def test_processors_that_conditions_do_not_share_are_a_warning():
    def said(device_of):
        replicates = [replace(one, device=device_of(one)) for one in STUDY.replicates]
        answers = replace(answers_of(Study("s", tuple(replicates))), comparisons=())
        return warning_sentences(answers, provenance_of(STUDY))

    first = STUDY.conditions[0]
    assert said(lambda one: "A") == ()
    (shared,) = said(lambda one: "AB"[one.seed % 2])
    assert shared == (
        "Replicates ran on 2 kinds of processors (A and B), and every condition on each: the spread of its seeds has "
        "what they add."
    )
    (apart,) = said(lambda one: "B" if one.condition == first else "AB"[one.seed % 2])
    assert f"not every condition on each ({first}): a part of their differences may be the processors'." in apart


def test_nothing_to_warn_of():
    answers = replace(answers_of(STUDY), comparisons=())
    assert warning_sentences(answers, provenance_of(STUDY)) == ()
