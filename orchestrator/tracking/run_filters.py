"""Searches of MLflow's runs that answer common questions: for its search box, its links and its API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CONDITIONS: Final = "tags.\"ponderay.kind\" = 'condition'"
REPLICATES: Final = "tags.\"ponderay.kind\" = 'replicate'"
FAILED: Final = f"{REPLICATES} AND tags.\"ponderay.state\" = 'failed'"


@dataclass(frozen=True)
class RunFilter:
    """A search.

    Attributes:
        text: in MLflow's language; what stands in braces is for the user to fill in.
        meaning: the runs that it finds.
    """

    name: str
    text: str
    meaning: str

    def filled(self, words: Mapping[str, str]) -> "RunFilter":
        """The same with those of its braces that `words` has an entry for."""
        text = self.text
        for word, value in words.items():
            text = text.replace("{" + word + "}", value)
        return RunFilter(self.name, text, self.meaning)


FILTERS: Final = (
    RunFilter("conditions", CONDITIONS, "One run a condition: mean, std, n and 95 % interval of every metric."),
    RunFilter(
        "finished conditions",
        f"{CONDITIONS} AND attributes.status = 'FINISHED'",
        "Conditions of which every replicate is complete.",
    ),
    RunFilter(
        "conditions with seeds",
        f'{CONDITIONS} AND metrics."{{error}}.n" >= {{number}}',
        "Conditions with at least so many complete replicates.",
    ),
    RunFilter(
        "good and cheap",
        f'{CONDITIONS} AND metrics."{{error}}" < {{most error}} AND metrics."{{cost}}" < {{most cost}}',
        "Conditions that may be on the front: both means are below a limit.",
    ),
    RunFilter(
        "surely good",
        f'{CONDITIONS} AND metrics."{{error}}.high" < {{most error}}',
        "Conditions whose whole 95 % interval is below a limit.",
    ),
    RunFilter("replicates", REPLICATES, "One run a replicate, of all conditions."),
    RunFilter(
        "replicates of a condition",
        f"{REPLICATES} AND tags.\"ponderay.condition\" = '{{condition}}'",
        "One condition under each of its seeds.",
    ),
    RunFilter(
        "replicates of a seed",
        f"{REPLICATES} AND tags.\"ponderay.seed\" = '{{seed}}'",
        "Every condition under one seed.",
    ),
    RunFilter("failures", FAILED, "Replicates that failed; tag ponderay.error says why."),
    RunFilter(
        "lost",
        f"{FAILED} AND tags.\"ponderay.lost\" = 'true'",
        "They failed for a reason outside the trainable; the next run of the sweep tries them again.",
    ),
    RunFilter("running", f"{REPLICATES} AND attributes.status = 'RUNNING'", "Replicates at work now."),
    RunFilter(
        "code version",
        f"{REPLICATES} AND tags.\"ponderay.code_version\" = '{{version}}'",
        "Results of one version of the trainable's sources.",
    ),
    RunFilter(
        "data fingerprint",
        f"{REPLICATES} AND tags.\"ponderay.data_fingerprint\" = '{{fingerprint}}'",
        "Results on one state of the data.",
    ),
    RunFilter(
        "the sweep itself",
        "tags.\"ponderay.kind\" = 'sweep'",
        "The run with the front's figures and numbers, the report, and what was not committed.",
    ),
)
