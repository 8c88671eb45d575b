"""A shipped number is held against the condition that its row of the source describes."""

import re

import pytest

from tests.search_spaces.shipped_cells import cell
from tests.search_spaces.test_transcription import shipped

ROUTING = {"yes": "surprisal", "no": "random"}
KINDS = {
    "surprisal": "surp",
    "eq44": "surp",
    "mc_dropout": "mc",
    "ensemble": "bae",
    "rate": "mc",
    "baseline": "baseline",
}
STEPS = {"fixed": "fixed", "learned": "learned", "learned_released": "learned", "predicted": "pred."}
ADDED = {"eq44": "Surp.", "mc_dropout": "MCD", "ensemble": "BAE"}
NUMBER = r"(?:step|K|rate)=([\d.]+)|(?:step size|dropout) ([\d.]+)|(\d+) samples?"


def by_flags(claims):
    """Claims of rows with crosses and ticks, and what these say."""
    for claim in claims:
        row = cell(claim).row
        if flags := re.findall(r"(features|stochastic training|stochastic testing|training|testing) (yes|no)", row):
            yield claim, dict(flags)


def test_an_ablation_is_measured_as_its_crosses_say():
    found = [(claim, flags) for claim, flags in by_flags(shipped("surprisal_paper")) if "training" in flags]
    assert len(found) == 2 * (8 + 4 + 3 * 4)
    for claim, flags in found:
        features = "ar" if flags.get("features", "yes") == "yes" else "no_ar"
        assert claim.place.condition == f"{features},{ROUTING[flags['training']]}", claim.id
        assert claim.place.evaluation == ROUTING[flags["testing"]], claim.id


def test_execution_is_measured_as_its_crosses_say():
    """An error that is printed as of a deterministic test was decoded stochastically."""
    kinds = {"yes": "stochastic", "no": "deterministic"}
    found = [(claim, flags) for claim, flags in by_flags(shipped("surprisal_paper")) if "stochastic training" in flags]
    assert len(found) >= 2 * 4 * 3
    for claim, flags in found:
        assert claim.place.condition == f"train_{kinds[flags['stochastic training']]}", claim.id
        if claim.place.metric == "test_loss_nats":
            assert claim.place.evaluation == kinds[flags["stochastic testing"]], claim.id


@pytest.mark.parametrize(
    ("row", "conditions"),
    [
        ("Small network only", {"always_small"}),
        ("Big network only", {"always_big"}),
        ("Random controller", {"random"}),
        ("Learned controller", {"learned_released", "released,lambda=0.001"}),
        ("learned controller, lambda 0.0001", {"released,lambda=0.0001"}),
    ],
)
def test_a_controller_is_measured_as_its_row_says(row, conditions):
    found = [claim for claim in shipped("surprisal_paper") if cell(claim).row == row]
    assert {claim.place.condition for claim in found} == conditions


def test_a_recoder_is_measured_as_its_row_says():
    """Its kind, and the step size, number of samples or rate where the condition names one."""
    for claim in shipped("recoding_thesis"):
        at, condition = cell(claim), claim.place.condition
        kind = KINDS[re.split("[,=]", condition)[0]]
        told = f"{at.row} {at.column}".lower().replace("bl ", "baseline ")
        assert kind in told, claim.id
        theirs = _number(at.row)
        if "=" in condition:
            assert _number(condition) == theirs, claim.id


def _number(text: str) -> float | None:
    found = re.search(NUMBER, text)
    return float(next(filter(None, found.groups()))) if found else None


def test_a_recoder_that_comes_or_goes_is_measured_as_its_row_says():
    for claim in shipped("recoding_thesis"):
        at, place = cell(claim), claim.place
        if at.place == "figure 5.5a":
            assert STEPS[place.condition.split(",")[1]] in at.row.lower(), claim.id
        if at.place == "figure 5.6a":
            assert place.evaluation == "without", claim.id
            assert STEPS[place.condition.split(",")[1]] in at.row.lower(), claim.id
        if at.place == "figure 5.6b":
            is_own = place.evaluation == "added"  # a recoder that was trained, on the baseline's weights
            kind, step = place.condition.split(",") if is_own else place.evaluation.rsplit("_", 1)
            assert at.row == f"BL {STEPS[step].title()}, w/ {ADDED[kind]} recoder", claim.id
