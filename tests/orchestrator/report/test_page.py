"""The page of a report as text: what is in it, and that nothing of the user's is markup."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from orchestrator.report.page import render
from orchestrator.results.study import Replicate, Study
from tests.orchestrator.report.made_answers import (
    CONDITIONS,
    EVIL,
    answers_of,
    curves_of,
    provenance_of,
    study_of,
)

STUDY = study_of(CONDITIONS)


class Outline(HTMLParser):
    """Tags with their attributes, text by tag, and whether every tag is closed in turn."""

    EMPTY = frozenset(("meta", "link", "br", "path", "rect", "circle", "input", "wbr"))

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def text():
    return render(answers_of(STUDY), curves_of(STUDY), provenance_of(STUDY))


def test_every_tag_is_closed_and_every_id_is_unique(text):
    outline = Outline(text)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert outline.of("html") == [{"lang": "en-GB"}]


def test_links_lead_somewhere_in_the_page(text):
    outline = Outline(text)
    targets = {link["href"] for link in outline.of("a")}
    assert targets and all(target.startswith("#") for target in targets)
    assert {target[1:] for target in targets} <= set(outline.ids)
    named = [one for _, attributes in outline.tags for one in attributes.get("aria-labelledby", "").split()]
    assert named and set(named) <= set(outline.ids)


def test_nothing_is_loaded_from_anywhere(text):
    outline = Outline(text)
    assert not any({"src", "srcset", "style", "onclick"} & set(attributes) for _, attributes in outline.tags)
    assert not outline.of("link") and not outline.of("img") and not outline.of("iframe")
    assert not re.search(r"https?://|url\(|@import", text.replace("http-equiv", ""))


def test_the_policy_allows_this_style_and_this_script_alone(text):
    (policy,) = [meta["content"] for meta in Outline(text).of("meta") if "http-equiv" in meta]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"


def test_tables_have_captions_and_scopes(text):
    outline = Outline(text)
    assert len(outline.of("table")) == len(outline.of("caption")) == 6
    assert {header["scope"] for header in outline.of("th")} == {"col", "row"}


def test_figures_are_images_with_a_title_and_a_description(text):
    images = [svg for svg in Outline(text).of("svg") if svg.get("role") == "img"]
    assert [len(image["aria-labelledby"].split()) for image in images] == [2, 2, 2]
    assert text.count("<title id=") == text.count("<desc id=") == 3


def test_all_sections_and_what_they_say(text):
    for heading in ("Summary", "Front", "Conditions", "Comparisons", "Claims", "Learning curves", "Provenance"):
        assert f">{heading}</h2>" in text
    assert "Of 6 conditions, 5 are on the front" in text
    assert text.index("Ties: 3 of 5") < text.index("Of 6 conditions")
    assert "ponderay run asr.demo\nponderay report asr.demo\n" in text
    assert "git checkout 0123456789abcdef0123456789abcdef01234567\n" in text
    assert "NVIDIA H100" in text and "-rate = 1" in text
    assert "controller.kind" in text and ">corpus</dd>" in text


def test_a_small_sweep_is_repeated_as_one():
    study = replace(STUDY, sweep="asr.demo.smoke")
    found = render(answers_of(study), (), provenance_of(study))
    assert "ponderay run asr.demo --smoke\nponderay report asr.demo --smoke\n" in found


def test_a_sweep_of_ones_own_is_repeated_by_its_place():
    study = replace(STUDY, sweep="toy")
    run = replace(provenance_of(study), commands=("ponderay train toy", "ponderay run toy.py:toy --seeds 2"))
    assert "ponderay run toy.py:toy\nponderay report toy.py:toy\n" in render(answers_of(study), (), run)


def test_what_there_is_none_of():
    alone = answers_of(study_of({"only": (0.1, 1e5, 0.5)}, seeds=1), reference="only", claims=False)
    alone = replace(alone, front=replace(alone.front, volume=None, attainment=()), comparisons=())
    found = render(alone, (), provenance_of(STUDY))
    assert "Nothing published is known of this sweep." in found
    assert "Nothing is compared with the reference only: it, or all else, has no complete replicate." in found
    assert 'id="curves"' not in found and "Learning curves" not in found


def test_one_objective_has_no_figure():
    found = render(answers_of(STUDY, 1), (), provenance_of(STUDY))
    assert 'id="front"' not in found and "#front" not in found
    assert "1 is the best: " in found


def test_three_objectives_have_three_figures():
    assert render(answers_of(STUDY, 3), (), provenance_of(STUDY)).count('class="points') == 3


def test_failures_are_told_with_their_reason():
    gone = Replicate("gone/1", "gone", 1, "failed", {}, error="CUDA out of memory")
    found = render(answers_of(Study(STUDY.sweep, (*STUDY.replicates, gone))), (), provenance_of(STUDY))
    assert "1 failed replicate<" in found and "gone, seed 1: CUDA out of memory" in found
    assert ">no value<" in found


def test_nothing_of_the_users_is_markup():
    study = study_of({f"{EVIL}{i}": place for i, place in enumerate(CONDITIONS.values())}, sweep=EVIL)
    gone = Replicate("x", f"{EVIL}9", 1, "failed", {EVIL: 1.0}, error=f"{EVIL}\"'")
    study = Study(EVIL, (*study.replicates, gone))
    answers = answers_of(study, reference=f"{EVIL}0", notes=(EVIL,))
    answers = replace(answers, question=replace(answers.question, description=EVIL))
    found = render(answers, curves_of(study_of({f"{EVIL}0": (0.1, 1, 1)}), (EVIL,)), provenance_of(study, EVIL))
    outline = Outline(found)
    assert outline.open == [] and len(outline.of("script")) == 1
    assert not any(EVIL in name for _, attributes in outline.tags for name in attributes)
    assert "<script>alert" not in found
    assert found.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 50


def test_the_same_answers_make_the_same_page(text):
    assert render(answers_of(STUDY), curves_of(STUDY), provenance_of(STUDY)) == text


def test_many_conditions_are_thinned_and_the_page_says_so():
    places = {f"c{i}": (0.1 + 5e-5 * i + 1e-3 * (i % 7), 2e5 - 35.0 * i + 1e3 * (i % 11), 0.5) for i in range(2_000)}
    study = study_of(places, seeds=1)
    answers = answers_of(study, reference="c1000")
    found = render(answers, (), provenance_of(Study(study.sweep, study.replicates[:100])))
    assert len(found.encode()) < 5e6
    (shown,) = re.findall(r"([\d,]+) of 2,000 shown; all are in asr.demo.conditions.csv", found)
    assert found.count('<tr id="condition-') == int(shown) <= 300
    assert f"{shown} of 2,000 conditions are drawn" in found
    assert re.search(r"of 3,998 shown; all are in asr.demo.comparisons.csv", found)
    assert ">c1000 <span" in found


def test_a_sweep_that_varies_a_number_has_a_figure_of_each_objective_against_it(text):
    """The conditions differ in it alone, over four values or more."""
    assert "Varied numbers" not in text
    plain = answers_of(STUDY)
    weights = {name: {"weight": str(10.0**-i)} for i, name in enumerate(STUDY.conditions) if name != "always_big"}
    question = replace(plain.question, configs={"always_big": {"weight": "None"}, **weights})
    varied = render(replace(plain, question=question), curves_of(STUDY), provenance_of(STUDY))
    outline = Outline(varied)
    assert outline.open == [] and len(outline.ids) == len(set(outline.ids))
    assert "Varied numbers" in varied
    assert re.findall(r"<figcaption>(.* against .*)</figcaption>", varied) == [
        "per against weight",
        "macs_per_frame against weight",
    ]
    assert varied.count("weight, logarithmic") == 2
