"""The page of a report in a browser: what it does, what it looks like to a keyboard and in the dark."""

import itertools
from pathlib import Path

import pytest

from orchestrator.report.page import render
from orchestrator.results.study import Replicate, Study
from tests.browser import watched_page
from tests.orchestrator.report.made_answers import (
    CONDITIONS,
    EVIL,
    answers_of,
    curves_of,
    provenance_of,
    study_of,
)

CONTRASTS = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return parse(getComputedStyle(document.documentElement).backgroundColor);
  };
  const found = {};
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("script, title, desc, #tooltip")) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parse(element.closest("svg") ? style.fill : style.color)), light(ground(element))];
    const key = `${element.tagName}.${element.getAttribute("class") ?? ""}`;
    found[key] = Math.min(found[key] ?? 99, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return found;
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    study = study_of(CONDITIONS)
    gone = Replicate("gone/1", "gone", 1, "failed", {}, error="CUDA out of memory")
    study = Study(study.sweep, (*study.replicates, gone))
    return written(render(answers_of(study), curves_of(study), provenance_of(study)), tmp_path_factory)


def written(text: str, folders: pytest.TempPathFactory) -> str:
    path: Path = folders.mktemp("page") / "report.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(page, address):
    page.page.goto(address)
    yield page
    assert page.errors == []
    assert page.requests == []


def column(page, heading):
    """The cells under one heading of the table of conditions, as text."""
    headings = page.locator("#condition-table thead th").all_inner_texts()
    return page.locator(f"#condition-table tbody tr > :nth-child({headings.index(heading) + 1})").all_inner_texts()


def names(page):
    return [text.split()[0] for text in column(page, "condition")]


def header(page, heading):
    return page.locator("#condition-table thead th", has_text=heading).first


def test_it_opens_without_an_error_and_its_style_and_script_work(opened):
    assert opened.page.title() == "asr.demo — Ponderay"
    assert opened.page.evaluate("getComputedStyle(document.body).fontVariantNumeric") == "normal"
    assert (
        opened.page.evaluate("getComputedStyle(document.querySelector('table')).fontVariantNumeric") == "tabular-nums"
    )
    assert "scripted" in opened.page.evaluate("document.documentElement.className")


def test_headings_are_in_order(opened):
    levels = opened.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_a_click_on_a_heading_sorts_by_number_and_another_one_back(opened):
    page = opened.page
    by_cost = ["always_small", "learned_entropy", "learned_l1", "random", "surprisal", "always_big"]
    header(page, "macs_per_frame").locator("button").click()
    assert names(page) == [*by_cost, "gone"]
    assert header(page, "macs_per_frame").get_attribute("aria-sort") == "ascending"
    header(page, "macs_per_frame").locator("button").click()
    assert names(page) == [*reversed(by_cost), "gone"]
    assert header(page, "macs_per_frame").get_attribute("aria-sort") == "descending"
    header(page, "condition").locator("button").click()
    assert names(page) == sorted([*by_cost, "gone"])
    assert header(page, "macs_per_frame").get_attribute("aria-sort") == "none"


def test_the_keyboard_sorts_too(opened):
    page = opened.page
    header(page, "P(front)").locator("button").focus()
    page.keyboard.press("Enter")
    chances = [float(text) for text in column(page, "P(front)") if text.strip()]
    assert chances == sorted(chances)
    page.keyboard.press("Space")
    assert [float(text) for text in column(page, "P(front)") if text.strip()] == sorted(chances, reverse=True)


def test_numbers_needed_sort_after_all_that_are_known(opened):
    page = opened.page
    page.locator("#comparison-table thead th", has_text="n needed").locator("button").click()
    place = page.locator("#comparison-table thead th").all_inner_texts().index("n needed") + 1
    found = page.locator(f"#comparison-table tbody tr > :nth-child({place})").all_inner_texts()
    assert [text for text in found if text] == sorted(
        filter(None, found), key=lambda t: int(t.strip("≥").replace(",", ""))
    )


def point(page, name):
    row = page.locator("#condition-table tbody tr", has_text=name).get_attribute("data-row")
    return page.locator(f".points a[data-row='{row}']"), page.locator(f"#{row}")


def test_hovering_a_point_shows_its_numbers_and_its_row(opened):
    page = opened.page
    mark, row = point(page, "surprisal")
    mark.locator(".reach").hover()
    tooltip = page.locator("#tooltip")
    lines = tooltip.inner_text().splitlines()
    assert lines[0] == "surprisal" and lines[1].startswith("per (min): 0.1753 ± 0.0035 (0.17")
    assert any(line.startswith("P(front): 0.79") for line in lines)
    assert "lit" in row.get_attribute("class")
    page.locator("h1").hover()
    assert tooltip.is_hidden()
    assert "lit" not in row.get_attribute("class")


def test_the_arrow_keys_go_from_point_to_point_from_left_to_right(opened):
    page = opened.page
    page.locator(".points .mark[tabindex='0']").focus()
    seen = []
    for _ in range(7):
        seen.append(page.locator("#tooltip").inner_text().splitlines()[0].split(":")[0])
        page.keyboard.press("ArrowRight")
    cheapest_first = ["always_small", "learned_entropy", "learned_l1", "random", "surprisal", "published", "always_big"]
    assert seen == cheapest_first
    page.keyboard.press("Home")
    assert page.locator("#tooltip").inner_text().startswith("always_small")
    assert "lit" in point(page, "always_small")[1].get_attribute("class")
    page.keyboard.press("Escape")
    assert page.locator("#tooltip").is_hidden()


def test_a_figure_is_one_stop_of_the_tab_key(opened):
    assert opened.page.locator(".points .mark[tabindex='0']").count() == 1


def test_a_click_on_a_row_marks_its_point_and_again_unmarks_it(opened):
    page = opened.page
    mark, row = point(page, "random")
    row.locator("td").first.click()
    assert "picked" in mark.get_attribute("class")
    row.locator("td").first.click()
    assert "picked" not in mark.get_attribute("class")


def test_a_click_on_a_point_leads_to_its_row(opened):
    page = opened.page
    mark, row = point(page, "learned_entropy")
    mark.locator(".reach").click()
    assert "picked" in row.get_attribute("class")
    top = row.bounding_box()["y"]
    assert 0 <= top <= page.viewport_size["height"]


def test_a_row_lights_up_the_curves_of_its_condition(opened):
    page = opened.page
    point(page, "surprisal")[1].hover()
    assert page.locator(".curve.lit").count() == 2


def test_the_first_tab_leads_past_the_navigation(opened):
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser, address, scheme):
    with watched_page(browser, scheme) as watched:
        watched.page.goto(address)
        watched.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        contrasts = watched.page.evaluate(CONTRASTS)
    assert len(contrasts) > 20
    assert {key: value for key, value in contrasts.items() if value < 4.5} == {}


def test_colours_follow_the_system(browser, address):
    grounds, points = set(), set()
    for scheme in ("light", "dark"):
        with watched_page(browser, scheme) as watched:
            watched.page.goto(address)
            grounds.add(watched.page.evaluate("getComputedStyle(document.body).backgroundColor"))
            points.add(watched.page.evaluate("getComputedStyle(document.querySelector('.mark.on .spot')).fill"))
    assert len(grounds) == len(points) == 2


def test_on_a_narrow_screen_only_tables_and_figures_scroll(browser, address):
    with watched_page(browser, width=400) as watched:
        watched.page.goto(address)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 400


CUT_OFF = """() => [...document.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => one.getAttribute("aria-label") ?? one.getAttribute("aria-labelledby"))"""

COVERED = """() => {
  const boxes = [...document.querySelectorAll(".label")].map((one) => one.getBoundingClientRect());
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.map((a, i) => boxes.slice(0, i).filter((b) => meet(a, b)).length).reduce((sum, n) => sum + n, 0);
}"""


@pytest.fixture(scope="module")
def long_front(tmp_path_factory):
    """38 conditions with long names and three objectives, all of them on the front."""
    places = {f"learned_released_l{i:02},rate=0.0001": (0.9 - 0.02 * i, 1e7 + 2e5 * i, 0.5) for i in range(38)}
    study = study_of(places)
    answers = answers_of(study, 3, reference="learned_released_l00,rate=0.0001", notes=("One.", "Two."))
    return written(render(answers, curves_of(study), provenance_of(study)), tmp_path_factory)


def test_no_column_is_cut_off_on_a_screen_of_1400_pixels(browser, long_front, address):
    for place in (long_front, address):
        with watched_page(browser, width=1400) as watched:
            watched.page.goto(place)
            watched.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
            assert watched.page.evaluate(CUT_OFF) == []
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= 1400


def test_on_a_front_of_38_conditions_no_label_covers_another(page, long_front):
    page.page.goto(long_front)
    assert page.page.locator(".points .mark").count() > 3 * 38
    assert page.page.locator(".label").count() > 20
    assert page.page.evaluate(COVERED) == 0


def test_warnings_are_folded_under_a_line_that_counts_them(page, long_front):
    page.page.goto(long_front)
    summary, warning = page.page.locator(".warning summary"), page.page.locator(".warning li").first
    number = page.page.locator(".warning li").count()
    assert summary.inner_text() == f"{number} warnings: read them first" and number > 2
    assert not warning.is_visible()
    summary.click()
    assert warning.is_visible()


def test_everything_is_there_without_scripts(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#condition-table tbody tr").count() == 7
    page.locator(".points a", has=page.locator(".reach")).first.focus()
    context.close()


def test_what_users_name_stays_text(page, tmp_path_factory):
    study = study_of({f"{EVIL}{i}": place for i, place in enumerate(CONDITIONS.values())}, sweep=EVIL)
    gone = Replicate("x", f"{EVIL}9", 1, "failed", {}, error=EVIL)
    study = Study(EVIL, (*study.replicates, gone))
    answers = answers_of(study, reference=f"{EVIL}0", notes=(EVIL,))
    page.page.on("dialog", lambda dialog: page.errors.append(dialog.message) or dialog.dismiss())
    page.page.goto(written(render(answers, curves_of(study), provenance_of(study, EVIL)), tmp_path_factory))
    assert page.page.locator("h1").inner_text() == EVIL
    assert page.page.locator("script").count() == 1
    page.page.locator(".points .mark").first.focus()
    assert page.page.locator("#tooltip").inner_text().startswith(EVIL)
    assert page.page.locator("#tooltip script").count() == 0
    assert page.errors == [] and page.requests == []
