"""MLflow's own pages in a browser: conditions with means and bounds, links, curves, load; names stay text.

The sweeps are really run, and the server is the one that `ponderay ui` starts.
"""

import math
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from orchestrator.machine.network import free_port
from tests.browser import Watched, watched_page
from tests.integration.sweeps import tiny
from tests.orchestrator.driven import DESCRIPTION, Driven, drive, new_settings
from tests.waiting import LIMIT_S, until

NOISE = (
    "> attribute ",  # of <g>, <path> or <rect>: a chart drawn before the page gave it a place, or a size
    "Failed to load resource",  # which, says NOT_FOUND
    "ResizeObserver loop completed with undelivered notifications",
)
"""What MLflow 3.17 writes to the console by itself."""

NOT_FOUND = (
    "/mlflow/users/current",
    "/mlflow/assistant/config",
    "/mlflow/assistant/providers",
    "/mlflow/gateway-proxy",
)
"""What MLflow 3.17 asks of a server without users, and of what is not served."""

pytestmark = pytest.mark.slow

SCRIPT = "<script>alert(1)</script>"
WAIT_MS = 1000 * LIMIT_S
T_OF_2 = 4.302653


@dataclass
class Pages:
    """The server that `ponderay ui` has started, and what it printed before."""

    sweep: Driven
    script: Driven
    address: str
    printed: str

    def printed_link(self, sweep: str, name: str) -> str:
        """The address printed under the sweep's name."""
        lines = iter(self.printed.splitlines())
        assert sweep in lines
        return next(line.rpartition(" ")[2] for line in lines if line.strip().startswith(name))

    def run_link(self, run: str, sweep: Driven | None = None) -> str:
        """The page of one run."""
        chosen = sweep or self.sweep
        return f"{self.address}/#/experiments/{chosen.experiment_id}/runs/{chosen.run(run).info.run_id}"


@pytest.fixture(scope="module")
def pages(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Two sweeps in one store, and the server on it; `browser` first, lest all this be done for nothing."""
    folder = tmp_path_factory.mktemp("pages")
    settings = new_settings(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.worker.system_metrics.FIRST_S", 0.0)
        patch.setattr("orchestrator.worker.system_metrics.INTERVAL_S", 0.0)
        conditions = {"good": {}, "better": {"x": 0.75}, "bad": {"nan_at": 3}}
        sweep = drive(tiny(conditions, name="tiny.pages", seeds=(1, 2, 3), description=DESCRIPTION), settings)
        script = drive(tiny({"a": {}}, name="tiny.script", description=SCRIPT), settings)
    with served(folder, settings.tracking_uri) as (address, printed):
        yield Pages(sweep, script, address, printed)


@contextmanager
def served(folder: Path, uri: str) -> Iterator[tuple[str, str]]:
    """`ponderay ui` on a free port, from when it answers: its address, and what it printed."""
    port = free_port()
    address, log = f"http://127.0.0.1:{port}", folder / "ui.log"
    command = [str(Path(sys.executable).parent / "ponderay"), "ui", "--port", str(port)]
    environment = os.environ | {"PONDERAY_TRACKING_URI": uri, "PONDERAY_RUNS": str(folder)}
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment, cwd=folder)  # noqa: S603
    try:
        until(lambda: answers(f"{address}/health") or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield address, log.read_text()
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def answers(url: str) -> bool:
    """Whether something does there."""
    try:
        with urllib.request.urlopen(url):
            return True
    except OSError:
        return False


@pytest.fixture
def page(browser: Any, pages: Pages) -> Iterator[Watched]:
    """A wide page, of which nothing of ours may go wrong."""
    missing: list[str] = []
    with watched_page(browser, width=2400, height=1200) as watched:
        watched.page.context.set_default_timeout(WAIT_MS)  # of the pages that it opens too
        watched.page.on("response", lambda answer: missing.append(answer.url) if answer.status >= 400 else None)
        watched.page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
        yield watched
    assert [error for error in watched.errors if not any(known in error for known in NOISE)] == []
    assert [url for url in missing if not url.partition("?")[0].endswith(NOT_FOUND)] == []
    assert [url for url in watched.requests if not url.startswith(pages.address)] == []


def table(watched: Watched, num_rows: int) -> dict[str, dict[str, str]]:
    """The texts of the cells by the name of the run and the id of the column, rows in their order."""
    watched.page.locator("[role=row][row-id] a").nth(num_rows - 1).wait_for()
    rows: dict[str, dict[str, str]] = {}
    for row, column, text in watched.page.locator("[role=row][row-id] [role=gridcell]").evaluate_all(
        "all => all.map(cell => [cell.closest('[row-id]').ariaRowIndex, cell.getAttribute('col-id'), cell.innerText])"
    ):
        rows.setdefault(row, {})[column] = text
    in_order = sorted(rows.items(), key=lambda item: int(item[0]))
    return {cells["attributes.`Run Name`"].split("\n")[-1]: cells for _, cells in in_order}


def values(pages: Pages, condition: str, metric: str) -> list[float]:
    """Of the condition's replicates."""
    return [one.metrics[metric] for one in pages.sweep.outcome.replicates if one.condition == condition]


def test_the_table_of_conditions_shows_means_and_bounds_best_first(page, pages):
    page.page.goto(pages.printed_link("tiny.pages", "Conditions: means"))
    rows = table(page, 3)
    assert list(rows) == ["better", "good", "bad"]
    for condition in ("better", "good"):
        errors = values(pages, condition, "error@plain")
        half = T_OF_2 * stdev(errors) / math.sqrt(3)
        shown = [float(rows[condition][f"metrics.`error/plain{end}`"]) for end in ("", ".low", ".high", ".n")]
        assert shown == pytest.approx([fmean(errors), fmean(errors) - half, fmean(errors) + half, 3], rel=1e-6)
        cost = {"better": "0.75", "good": "0.5"}[condition]
        assert rows[condition]["metrics.`cost/plain`"] == rows[condition]["params.`x`"] == cost
    assert rows["bad"]["metrics.`error/plain`"] == "-"


def test_the_servers_own_address_shows_the_sweeps_first_and_neither_language_models_nor_the_assistant(page, pages):
    page.page.goto(pages.address)
    names = page.page.locator("[role=row] a[href*='#/experiments/']")
    names.filter(has_text="tiny.pages").wait_for()
    assert sorted(names.all_inner_texts()[:2]) == ["tiny.pages", "tiny.script"]
    assert page.page.get_by_text("Welcome to MLflow").count() == 0
    page.page.reload()  # a page that the browser knows is whole too
    names.filter(has_text="tiny.pages").wait_for()


def test_failures_say_why(page, pages):
    page.page.goto(pages.printed_link("tiny.pages", "Failures"))
    rows = table(page, 3)
    assert set(rows) == {"bad seed 1", "bad seed 2", "bad seed 3"}
    errors = {cells["tags.`ponderay.error`"] for cells in rows.values()}
    assert errors == {"DivergedError: The loss is nan at epoch 3, batch 1."}


def test_the_sweeps_description_leads_to_its_pages(page, pages):
    page.page.goto(pages.printed_link("tiny.pages", "Replicates"))
    assert len(table(page, 9)) == 9
    page.page.get_by_text(DESCRIPTION, exact=True).wait_for()
    page.page.get_by_text("Commands", exact=True).wait_for(state="attached")
    link = page.page.get_by_role("link", name="Conditions: means and intervals")
    assert "viewStateShareKey=ponderay-conditions" in link.get_attribute("href")
    with page.page.context.expect_page() as opened:
        link.evaluate("link => link.click()")  # it is folded away until somebody unfolds it
    assert len(table(Watched(opened.value), 3)) == 3


def test_a_conditions_description_leads_to_its_replicates_and_back(page, pages):
    page.page.goto(pages.run_link("good"))
    page.page.get_by_text(DESCRIPTION, exact=True).wait_for()
    page.page.get_by_text("Show more", exact=True).click()
    with page.page.context.expect_page() as opened:
        page.page.get_by_role("link", name="seed 2", exact=True).click()
    replicate = opened.value
    replicate.get_by_role("heading", name="good seed 2").wait_for()
    with page.page.context.expect_page() as opened:
        replicate.locator("a[target=_blank]").filter(has_text=re.compile("^good$")).click()
    opened.value.get_by_role("heading", name="good", exact=True).wait_for()


def test_learning_curves_of_conditions_are_drawn(page, pages):
    page.page.goto(pages.printed_link("tiny.pages", "Conditions: learning"))
    page.page.get_by_text("mean of 3/valid_error", exact=False).first.wait_for()
    chart = page.page.locator(".js-plotly-plot", has=page.page.locator(".scatterlayer .trace")).first
    chart.wait_for()
    lines = chart.evaluate("chart => chart.data.filter(line => line.x.length).map(line => [line.name, line.x, line.y])")
    histories = {
        condition: pages.sweep.client.get_metric_history(pages.sweep.run(condition).info.run_id, "mean of 3/total")
        for condition in ("good", "better")
    }
    drawn = {name: (list(x), list(y)) for name, x, y in lines}
    assert drawn == {
        name: ([one.step for one in history], pytest.approx([one.value for one in history]))
        for name, history in histories.items()
    }


def test_objectives_are_drawn_against_each_other(page, pages):
    page.page.goto(pages.printed_link("tiny.pages", "Conditions: error"))
    chart = page.page.locator(".js-plotly-plot").first
    chart.locator(".scatterlayer .trace .points path").nth(1).wait_for()
    drawn = chart.evaluate("chart => chart.data.flatMap(one => one.x.map((x, i) => [x, one.y[i]]))")
    errors = {x: fmean(values(pages, name, "error@plain")) for name, x in (("good", 0.5), ("better", 0.75))}
    assert {x: y for x, y in drawn if x is not None} == pytest.approx(errors)  # x is the cost


def test_the_load_of_the_machine_has_a_tab(page, pages):
    page.page.goto(pages.run_link("good seed 1"))
    page.page.get_by_role("tab", name="System metrics").click()
    for name in ("cpu_utilization_percentage", "system_memory_usage_megabytes", "disk_usage_percentage"):
        page.page.get_by_text(name, exact=True).first.wait_for()
    page.page.locator(".js-plotly-plot .scatterlayer .trace").first.wait_for()


def test_a_sweep_described_by_a_script_stays_text(page, pages):
    page.page.goto(pages.printed_link("tiny.script", "Conditions: means"))
    assert set(table(page, 1)) == {"a"}
    assert page.page.get_by_text(SCRIPT, exact=True).count() >= 1
    page.page.goto(pages.run_link("a", sweep=pages.script))
    page.page.get_by_text(SCRIPT, exact=True).first.wait_for()
    page.page.goto(pages.run_link("a seed 1", sweep=pages.script))
    page.page.get_by_text("Seed 1 of condition a of tiny.script").first.wait_for()
    assert page.page.evaluate("[...document.scripts].filter(script => script.text.includes('alert(1)')).length") == 0
