"""`ponderay submit --slurm`: prints the batch file of a sweep, or hands it to sbatch."""

import shlex
from typing import TYPE_CHECKING

from orchestrator.cluster.slurm import DEFAULTS, batch_file, send, slurm_options
from orchestrator.cluster.submission import status_name
from orchestrator.console.printing import out

if TYPE_CHECKING:
    from orchestrator.cluster.submission import Submission
    from orchestrator.environment.settings import Settings


def submit_to_slurm(
    submission: "Submission", settings: "Settings", num_nodes: int, given: list[str] | None, dry_run: bool
) -> None:
    """Prints the batch file, or sends it and says the job's number and what to type next."""
    options = slurm_options(given)
    text = batch_file(submission, settings, num_nodes, options)
    if dry_run:
        print(text)
        return
    job = send(text)
    log = [] if "output" in options else [("Follow", ["tail", "-F", DEFAULTS["output"].replace("%j", job)])]
    for word, command in (
        ("Job", [job]),
        *log,
        ("Stop", ["scancel", "--batch", "--signal=TERM", job]),
        ("Status", ["ponderay", "status", *status_name(submission)]),
    ):
        out.print(f"{word:7} {shlex.join(command)}", markup=False, soft_wrap=True)
