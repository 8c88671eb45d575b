"""Ten thousand no-op replicates through `ponderay run`: the driver's CPU and memory by their number, and two kill -9.

    python -m benchmarks.many_noops [--conditions 2000] [--seeds 5] [--kills 2] [--cpus 2]

Kills of the driver cut the work into equal parts; after each the same command is given again. A row for each tenth:
replicates done by the study file, the driver's CPU and memory. At the end: what MLflow holds, by its public client, and
how long `status` and `pareto` take beside the floor of `ten_thousand.py`, which only parses the study file.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.ten_thousand import FLOOR, MAIN, ROOT, measure, show
from orchestrator.environment.settings import Settings
from orchestrator.journal.study_file import STUDY_FILE, read_study_file

SWEEP = "noop.many"
RUN = ("-m", "orchestrator", "run", "benchmarks/noop_sweep.py:many", "--cpus")
POLL_S = 1.0
COUNT = (
    "import sys; from orchestrator.environment.settings import read_settings; from mlflow import MlflowClient; "
    "client = MlflowClient(tracking_uri=read_settings().tracking_uri); token, found = None, []; "
    "experiments = [client.get_experiment_by_name(sys.argv[1]).experiment_id]; search = client.search_runs\n"
    "while token != '':\n"
    "    page = search(experiments, \"tags.`ponderay.kind` = 'replicate'\", max_results=1000, page_token=token)\n"
    "    found, token = found + page, page.token or ''\n"
    "num = sum(run.info.status == 'FINISHED' and 'error' in str(run.data.metrics) for run in found)\n"
    "print(f'MLflow has {num:,} finished runs of replicates with their error, of {len(found):,} runs', file=sys.stderr)"
)


def num_done(folder: Path) -> int:
    """Complete replicates, by the study file."""
    content = read_study_file(Settings(folder, "").replicates(SWEEP))
    return sum(one["state"] == "complete" for one in content.replicates.values()) if content else 0


def drive(folder: Path, num_cpus: str, step: int, stop_at: int | None) -> None:
    """Runs what is left, with a row for each `step`, and kills the driver at `stop_at`, unless that is None."""
    began, done = time.monotonic(), num_done(folder)
    last, row = (0.0, done), done // step * step + step
    with (folder / "said").open("a") as said:
        driver = subprocess.Popen([sys.executable, *RUN, num_cpus], cwd=ROOT, stdout=said, stderr=said)  # noqa: S603
        while driver.poll() is None:
            time.sleep(POLL_S)
            done = num_done(folder)
            if done >= row:
                fields = Path(f"/proc/{driver.pid}/stat").read_text().rpartition(")")[2].split()
                cpu_s = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
                size_mb = int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6
                each_ms = 1000 * (cpu_s - last[0]) / (done - last[1])
                print(
                    f"{done:7,} done after {time.monotonic() - began:5.0f} s: driver {cpu_s:5.0f} s of CPU, "
                    f"{each_ms:5.1f} ms for each of the last, {size_mb:5.0f} MB",
                    flush=True,
                )
                last, row = (cpu_s, done), done // step * step + step
            if stop_at is not None and done >= stop_at:
                driver.kill()
                driver.wait()
                print(f"{done:7,} done: the driver is killed", flush=True)
    if driver.returncode > 0:
        raise SystemExit(f"`run` ended with {driver.returncode}: {(folder / 'said').read_text()[-2000:]}")


def main() -> None:
    """Runs, cuts, and asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conditions", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--cpus", default="2")
    chosen = parser.parse_args()
    num_all = chosen.conditions * chosen.seeds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for variable in [variable for variable in os.environ if variable.startswith("PONDERAY_")]:
            del os.environ[variable]  # another store or bucket would be filled
        os.environ |= {"PONDERAY_RUNS": name, "NOOPS": f"{chosen.conditions}x{chosen.seeds}", "PYTHONPATH": str(ROOT)}
        for part in range(chosen.kills + 1):
            stop_at = None if part == chosen.kills else num_all * (part + 1) // (chosen.kills + 1)
            drive(folder, chosen.cpus, max(1, num_all // 10), stop_at)
        print((folder / "said").read_text().splitlines()[-1], flush=True)
        measure(folder, COUNT, SWEEP)
        study_file = str(Settings(folder, "").replicates(SWEEP) / STUDY_FILE)
        floor_s = show("floor: lines read and parsed", [measure(folder, FLOOR, study_file) for _ in range(3)])
        for command in ("status", "pareto"):
            show(command, [measure(folder, MAIN, command, SWEEP) for _ in range(3)], floor_s)


if __name__ == "__main__":
    main()
