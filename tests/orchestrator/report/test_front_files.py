"""A front's own page and its PNG: what they show, what they leave out, and what they say of that."""

import re

import pytest

from orchestrator.pareto.membership import uncertain_front
from orchestrator.report.answers import Answers
from orchestrator.report.figure.front import Published
from orchestrator.report.front_files import draw_front
from orchestrator.results.question import Question
from tests.orchestrator.pareto.made_up import ERROR_COST, ERROR_COST_LATENCY, study_of

PNG = b"\x89PNG\r\n\x1a\n"
EVIL = "<script>window.evil = 1</script>"
PUBLISHED = Published({"per": 1.5, "macs": 2.0}, "row", "published (Somebody 2020)")


def answers_of(conditions, objectives=ERROR_COST, reference=None, sweep="s"):
    study = study_of(conditions)
    question = Question(sweep, "", tuple(objectives), reference or "", "welch", (1,), {})
    return Answers(question, study, uncertain_front(study, objectives, reference), (), ())


@pytest.fixture
def drawn(tmp_path):
    """The page's text; the PNG is looked at."""

    def draw(answers, published=()):
        html, png = tmp_path / "new" / "f.html", tmp_path / "f.png"
        draw_front(answers, published, html, png)
        assert png.read_bytes()[:8] == PNG
        return html.read_text()

    return draw


def caption(text):
    return re.findall('<p class="facts">(.*?)</p>', text)


def marks(text):
    return re.findall(r'<a href="#condition-(\d+)"', text)


@pytest.fixture
def crowd():
    """One point on the front and 1,000 behind it."""
    places = [(0.0, 0.0)] + [(1.0 + i, 1.0 + i) for i in range(1000)]
    return answers_of({f"c{i}": {1: place} for i, place in enumerate(places)})


def test_many_points_are_thinned_out_and_the_caption_says_so(crowd, drawn):
    text = drawn(crowd)
    assert caption(text)[1] == "1 of 1 points on the front and 149 of 1,000 others drawn"
    found = marks(text)
    assert len(set(found)) == len(found) == 150 and {"0", "1", "100", "1000"} <= set(found)
    assert re.findall(r'<text class="label".*?>(.*?)</text>', text) == ["c0"]
    assert len(text) < 300_000 and "150 of 1,001 shown; all are in f.json" in text


def test_few_points_are_all_drawn(drawn):
    text = drawn(answers_of({f"c{i}": {1: (1.0 * i, 1.0 * i)} for i in range(40)}))
    assert caption(text) == ["one value each, n = 1"]
    assert sorted(map(int, marks(text))) == list(range(40))


def test_points_near_the_front_are_drawn_before_other_dominated_ones(drawn):
    """z's mean is behind a's, and in half of the draws it is not."""
    crowd = {f"c{i:03}": dict.fromkeys((1, 2), (100.0 + i, 100.0)) for i in range(400)}
    answers = answers_of(crowd | {"a": {1: (1.0, 1.0), 2: (1.0, 1.0)}, "z": {1: (0.1, 1.0), 2: (2.1, 1.0)}})
    assert [point.name for point in answers.front.points[:2]] == ["a", "z"]
    text = drawn(answers)
    assert {"0", "1"} <= set(marks(text))
    assert re.search(r'data-row="condition-1" class="mark chance1" aria-label="z\n', text)


def test_marks_carry_intervals_shares_and_what_the_pointer_shows(drawn):
    conditions = {"a": {1: (1.0, 3.0), 2: (2.0, 3.0)}, "b": {1: (5.0, 5.0), 2: (6.0, 5.2)}}
    text = drawn(answers_of(conditions, reference="b"))
    assert caption(text) == ["mean and 95 % interval, n = 2", "P(front): share of all 3 paired resamples of the seeds"]
    first, other = re.findall('class="mark chance(.*?)" aria-label="(.*?)">', text, re.DOTALL)[::-1]
    assert first[0] == "5 on" and other[0] == "0"
    assert first[1].splitlines() == [
        "a",
        "per (min): 1.50 ± 0.71 (\N{MINUS SIGN}4.85 to 7.85)",
        "macs (min): 3.00 ± 0.00 (3.00 to 3.00)",
        "n: 2",
        "P(front): 1.00",
        "P(dominates reference): 1.00",
        "standing: front",
    ]
    assert other[1].splitlines()[-1] == "standing: dominated"


def test_figures_are_whole_and_all_text_is_escaped(drawn):
    conditions = {EVIL: {1: (1.0, 3.0), 2: (1.1, 3.0)}, "b$\x01": {1: (2.0, 1.0), 2: (2.2, 1.0)}}
    published = (Published({"per": 1.5, "macs": 2.0}, EVIL, f"published ({EVIL})"),)
    text = drawn(answers_of(conditions, reference=EVIL, sweep=EVIL), published)
    assert EVIL not in text and "&lt;script&gt;" in text
    assert not re.search(r"https?://|url\(|@import", text)


def test_the_same_front_makes_the_same_bytes(tmp_path):
    answers = answers_of({"a": {1: (1.0, 3.0), 2: (2.0, 3.0)}, "b": {1: (1.4, 5.0), 2: (1.8, 7.0)}})
    files = [tmp_path / f"{i}.{end}" for i in range(2) for end in ("html", "png")]
    for html, png in (files[:2], files[2:]):
        draw_front(answers, (PUBLISHED,), html, png)
    first, second = ([file.read_bytes() for file in pair] for pair in (files[:2], files[2:]))
    assert first == second


def test_the_page_shows_shares_as_colours_intervals_as_whiskers_and_diamonds(drawn):
    text = drawn(answers_of({"a": {1: (1.0, 3.0), 2: (2.0, 3.0)}, "b": {1: (1.4, 5.0), 2: (1.8, 7.0)}}), (PUBLISHED,))
    assert text.count('class="attained" d=') == text.count('class="front" d=') == 1
    assert text.count('class="seed" d=') == 2 and "dotted: what 1, 2" in text
    assert text.count('class="whisker" d=') == 2 + 1  # one in the legend
    assert 'class="mark published" aria-label="row"' in text and "published (Somebody 2020)" in text


def test_three_objectives_make_three_panels_without_borders(drawn):
    text = drawn(answers_of({"a": {1: (1.0, 3.0, 2.0)}, "b": {1: (2.0, 1.0, 3.0)}}, ERROR_COST_LATENCY))
    assert re.findall(r"<title id=.*?>(\w+) .*? against (\w+) ", text) == [
        ("per", "macs"),
        ("per", "latency"),
        ("macs", "latency"),
    ]
    assert caption(text)[-1] == "the front is that of all three objectives"
    assert not re.search(r'class="(attained|front|seed)" d=', text)


def test_a_thinned_band_is_said(drawn, monkeypatch):
    monkeypatch.setattr("orchestrator.pareto.attainment.MAX_STEPS", 4)
    answers = answers_of({f"c{i}": {1: (9.0 - i, 1.0 * i), 2: (9.5 - i, 1.1 * i)} for i in range(6)})
    assert caption(drawn(answers))[-1].startswith("band at ")


def test_in_a_browser_the_pointer_shows_shares_and_a_name_stays_text(page, drawn, tmp_path):
    conditions = {EVIL: {1: (1.0, 3.0), 2: (2.0, 3.0)}, "<b>b</b>": {1: (5.0, 5.0), 2: (6.0, 7.0)}}
    drawn(answers_of(conditions, reference=EVIL, sweep=EVIL), (PUBLISHED,))
    page.page.goto((tmp_path / "new" / "f.html").as_uri())
    page.page.locator(".mark.on .reach").hover()
    shown = page.page.locator("#tooltip").inner_text()
    assert shown.startswith(EVIL) and "P(front): 1.00" in shown
    assert page.page.locator("h1").inner_text() == EVIL
    assert page.page.evaluate("window.evil") is None
    page.page.locator(".mark.published .reach").hover()
    assert page.page.locator("#tooltip").inner_text() == "row"
    seed = page.page.locator(".seed").first
    assert seed.evaluate("(path) => getComputedStyle(path).visibility") == "hidden"
    page.page.locator(".by-seed").check()
    assert seed.evaluate("(path) => getComputedStyle(path).visibility") == "visible"
    page.page.locator(".mark.on .reach").click()
    assert "picked" in page.page.locator("#condition-0").get_attribute("class")
    assert (page.errors, page.requests) == ([], [])
