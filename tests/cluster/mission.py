"""What Ponderay is for, in one sentence, done on three machines by the commands that a user types; run by `hosts.sh`.

    python -m tests.cluster.mission FOLDER

`ray up`; a speech sweep of five seeds in Ray Train workers, another condition beside it, and one that Optuna searches
are submitted. In the first the head loses its power and comes up again. A laptop that knows the tracking server alone
gets front, comparison and report, and a browser shows conditions and figures. All is equal to a run on one machine.
Prints a line for each thing that was seen to hold. On the way nobody without token or password gets in, and neither is
in any file.
"""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any, Final

from tests.cluster.scenario import (
    HEAD,
    SERVER,
    Scenario,
    all_there,
    cluster,
    keeps_its_doors_closed,
    leaves_no_secret,
    log_in,
    say,
    status_of,
    tells_nobody,
    tunnel,
    up,
    wait,
)

CONDITIONS: Final = ("surprisal", "random")
SPEECH: Final = ("asr.demo", "--smoke", "--set", "training.num_epochs=4")
SEEDS: Final = ("--seeds", "5", *(word for name in CONDITIONS for word in ("--condition", name)))
IN_WORKERS: Final = ("--seeds", "5", "--condition", CONDITIONS[0], "--resource", "num_workers=1")
NUM_REPLICATES: Final = 5 * len(CONDITIONS)
SEARCH: Final = ("act.search_parity", "--smoke")
TIMED: Final = ("_s", "_ms", "real_time_factor", "seconds", "_bytes")
"""Ends of the names of metrics that no two runs share."""


def learn_alone(at: Scenario) -> dict[str, str]:
    """Runs the speech sweep on this machine alone, without Ray Train, which takes half a minute each; its settings."""
    alone = {"PONDERAY_RUNS": str(at.folder / "alone"), "PONDERAY_TRACKING_URI": ""}
    at.run("ponderay", "run", *SPEECH, *SEEDS, "--cpus", "2", **alone)
    say("the speech sweep on this machine alone")
    return alone


def answers(at: Scenario, **environment: str) -> dict[str, Any]:
    """Front, comparison and report of the speech sweep, without what is measured in seconds or names a place."""
    tables = {
        command: [
            {name: value for name, value in row.items() if not name.partition("@")[0].endswith(TIMED)}
            for row in csv.DictReader(io.StringIO(asked(at, command, *SPEECH, "--format", "csv", **environment)))
        ]
        for command in ("pareto", "compare")
    }
    output = str(at.folder / "reports")
    shutil.rmtree(output, ignore_errors=True)
    report = json.loads(asked(at, "report", *SPEECH, "--output", output, "--format", "json", **environment))
    return tables | {name: report[name] for name in ("conditions", "comparisons", "claims", "over_items")}


def asked(at: Scenario, *command: str, **environment: str) -> str:
    """What a command of ours prints on stdout."""
    done = subprocess.run(  # noqa: S603
        ("ponderay", *command), capture_output=True, text=True, env=os.environ | environment, check=False
    )
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def loses_its_head(at: Scenario) -> None:
    """Submits the speech sweep; in the middle every process of the head is gone; it comes up and the sweep goes on."""
    print(at.run("ponderay", "submit", *SPEECH, *IN_WORKERS))
    folder = at.shared / "replicates" / "asr.demo.smoke"

    def steps() -> list[int]:
        journals = folder.glob("*/journal.jsonl")
        return [sum('"kind": "metrics"' in line for line in journal.open(encoding="utf-8")) for journal in journals]

    wait(300, "replicates have reported", lambda: len(steps()) >= 3 and max(steps()) >= 2)
    before = sum(steps())
    at.run("ssh", HEAD, "kill -9 -1", wanted=None)
    wait(300, "the server is gone", lambda: status_of(f"{SERVER}/health") == 0)
    say(f"the head lost every process after {before} reports")


def goes_on(at: Scenario) -> None:
    """The same command again continues; with what they are compared with, in trials, the whole study is there."""
    log = at.run("ponderay", "submit", *SPEECH, *IN_WORKERS, "--follow")
    assert "5 complete, 0 failed" in log, log
    say("the head is up again, and the same command ended the sweep: 5 complete, 0 failed")
    log = at.run("ponderay", "submit", *SPEECH, *SEEDS, "--follow")
    assert f"{NUM_REPLICATES} complete, 0 failed" in log, log
    say(f"another condition beside it: {NUM_REPLICATES} complete, 0 failed")
    log = at.run("ponderay", "submit", *SEARCH, "--follow")
    assert "0 failed" in log and "complete" in log, log
    say("a search by Optuna has ended on the cluster")


def browses(at: Scenario) -> None:
    """A browser shows the study's conditions, and a figure among the artifacts of its run."""
    from playwright.sync_api import sync_playwright

    credentials = ConfigParser()
    credentials.read(Path("~/.mlflow/credentials").expanduser())
    login = {
        "username": credentials["mlflow"]["mlflow_tracking_username"],
        "password": credentials["mlflow"]["mlflow_tracking_password"],
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(http_credentials=login, viewport={"width": 1600, "height": 1000})
        url = f"{SERVER}/api/2.0/mlflow/experiments/get-by-name?experiment_name=asr.demo.smoke"
        experiment = context.request.get(url).json()["experiment"]["experiment_id"]
        context.set_default_timeout(300_000)  # the pages are large, and four tests run at once
        page = context.new_page()
        page.goto(f"{SERVER}/#/experiments/{experiment}/runs")
        for condition in CONDITIONS:
            page.get_by_text(condition, exact=False).first.wait_for()
        say("the browser lists the conditions")
        found = context.request.post(
            f"{SERVER}/api/2.0/mlflow/runs/search",
            data={"experiment_ids": [experiment], "filter": "tags.`ponderay.kind` = 'replicate'"},
            max_retries=3,  # the server has ended the connection of the question above, which was idle for some seconds
        ).json()["runs"]
        assert len(found) == NUM_REPLICATES
        page.goto(f"{SERVER}/#/experiments/{experiment}/runs/{found[0]['info']['run_id']}/artifacts")
        page.get_by_text("utterance_stochastic.png").first.click()
        page.wait_for_function("[...document.images].some(image => image.naturalWidth > 300 && image.complete)")
        say("the browser shows the figure of a replicate")
        browser.close()


def main() -> None:
    """All of it, in order."""
    at = Scenario(Path(sys.argv[1]))
    alone = learn_alone(at)
    expected = answers(at, **alone)
    with cluster(at):
        log_in(at)
        with tunnel():
            keeps_its_doors_closed(at)
            tells_nobody(at)
            loses_its_head(at)
        up(at)
        all_there(at)
        with tunnel():
            goes_on(at)
            there = answers(at, PONDERAY_RUNS=str(at.folder / "laptop"))
            differing = [
                (name, a, b) for name in expected for a, b in zip(expected[name], there[name], strict=True) if a != b
            ]
            assert not differing, differing[:3]
            say("a laptop that knows the server alone has the same front, comparison and report as one machine")
            browses(at)
        leaves_no_secret(at)


if __name__ == "__main__":
    main()
