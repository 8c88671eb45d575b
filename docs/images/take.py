"""Takes README's two pictures of a sweep that has run, the example of docs/python.md: `take.py parity_5_bits`.

Both come from the product: `ponderay pareto` draws the front, `ponderay ui` shows MLflow's table of conditions, and
Debian's Chromium photographs it. PONDERAY_RUNS names the folder of the study.
"""

import io
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from orchestrator.environment.settings import read_settings
from orchestrator.machine.network import free_port
from search_spaces.size import arguments as sweep_arguments

HERE = Path(__file__).parent
PONDERAY = Path(sys.executable).parent / "ponderay"
SIZE = {"width": 1400, "height": 900}
VIEW = "Conditions: means and intervals"


def main(sweep: str) -> None:
    """Writes front.png and mlflow.png beside this file."""
    subprocess.run([PONDERAY, "pareto", *sweep_arguments(sweep)], check=True)  # noqa: S603
    _write(Image.open(read_settings().figures / f"{sweep}.front.png"), HERE / "front.png")
    with _ui() as printed, sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        page = browser.new_page(viewport=SIZE)
        page.goto(_link(printed, sweep))
        _write(_table(page), HERE / "mlflow.png")
        browser.close()


@contextmanager
def _ui() -> Iterator[str]:
    """What `ponderay ui` prints, while it runs."""
    port = free_port()
    log = read_settings().runs / "ui.log"
    with log.open("w") as file:
        server = subprocess.Popen([PONDERAY, "ui", "--port", str(port)], stdout=file, stderr=file)  # noqa: S603
    try:
        _wait_for(f"http://127.0.0.1:{port}/health")
        yield log.read_text()
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url).close()
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit(f"{url} does not answer.")


def _link(printed: str, sweep: str) -> str:
    """The sweep's saved view of conditions."""
    after = printed.partition(f"{sweep}\n")[2].splitlines()
    return next(line.rpartition(" ")[2] for line in after if line.strip().startswith(VIEW))


def _table(page: Page) -> Image.Image:
    """The page down to the last condition, without MLflow's own panels beside and above."""
    page.locator('[role="row"][row-index="0"]').first.wait_for(timeout=120_000)
    for name in ("Close", "Hide banner", "Toggle sidebar"):
        page.get_by_role("button", name=name, exact=True).click()
    page.wait_for_timeout(3000)
    rows = page.locator('.ag-center-cols-container [role="row"]').all()
    bottom = max(row.bounding_box()["y"] + row.bounding_box()["height"] for row in rows if row.bounding_box())
    return Image.open(io.BytesIO(page.screenshot())).crop((0, 0, SIZE["width"], round(bottom) + 12))


def _write(picture: Image.Image, path: Path) -> None:
    """A palette of 128 colours makes half the file."""
    picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {picture.width} x {picture.height}, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:])
