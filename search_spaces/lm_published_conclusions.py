"""What Ulmer's thesis concludes in words, of several conditions at once or of the error signal."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from search_spaces.claim import JointClaim, Place, Source, StatementClaim, sentence
from search_spaces.lm_published_numbers import (
    CONFOUNDED,
    EQUATION,
    NUM_SEEDS,
    OF_SHAPES,
    PAPER,
    RATES,
    RISE_WITH_K,
    SAMPLES,
    Printed,
    perplexity,
)

TWO_SIDED: Final = 2.447
"""Student's t at .975 with 6 degrees of freedom, of two groups of four."""

MAGNITUDE: Final = 10.0
"""What "magnitudes worse" is taken for at least: a factor of ten in perplexity."""

OTHERS: Final = ("baseline", "surprisal,eq44,gold", "mc_dropout,weights", "ensemble,shared_anchor")
"""What lm.signals has of the variants that the thesis considers beside variational dropout."""

SHAPE: Final = "On whatever text is set: what is claimed is a shape."
OF_THE_TEST: Final = "The thesis looked at 84 garden path sentences; ours is of every token of the test."
NO_NUMBERS: Final = f"The thesis prints no numbers; a factor of {MAGNITUDE:g} is taken for a magnitude."
AS_RATIOS: Final = (
    "A gain is a ratio of perplexities; from K = 5 on the printed ones rise, which is less than any gain."
)
TWO_SIZES: Final = "Section 6.1.3 says the step is .1, the caption of figure 6.3 that it is 5."


def conclusions() -> Iterator[JointClaim | StatementClaim]:
    """All of them, in the thesis's order."""
    yield _variational()
    yield _diminishing_returns()
    yield _no_difference_of_rates()
    yield from _never_raised()
    yield from _lowered()


def _variational() -> JointClaim:
    """Section 5.3.1: in preliminary experiments, and disregarded from there on."""
    text = "with variational dropout the perplexity is magnitudes higher than with every other variant"
    common = _common("lm.signals", "variational.magnitudes.above", text, "section 5.3.1")
    parts = tuple(
        StatementClaim(
            **common,
            left=perplexity("variational"),
            relation="above",
            right=replace(perplexity(other), scale=MAGNITUDE),
        )
        for other in OTHERS
    )
    return JointClaim(**common, parts=parts, note=f"{NO_NUMBERS} {CONFOUNDED} {RISE_WITH_K} {SHAPE}")


def _diminishing_returns() -> JointClaim:
    """Section 5.3.2: the gain up to 5 samples of MC dropout, and the smaller one from there to each larger count."""
    first, best, *larger = (f"mc_dropout,K={count}" for count in SAMPLES["mc_dropout"])
    text = "more samples of MC dropout lower the perplexity up to K = 5, and by less from there on"
    common = _common("lm.samples", "mc_dropout.diminishing.after.K=5", text, "section 5.3.2")
    gain = replace(perplexity(first), over=perplexity(best))
    up_to = StatementClaim(**common, left=perplexity(best), relation="below", right=perplexity(first))
    parts = (
        StatementClaim(**common, left=replace(perplexity(best), over=perplexity(more)), relation="below", right=gain)
        for more in larger
    )
    return JointClaim(**common, parts=(up_to, *parts), note=f"{AS_RATIOS} {CONFOUNDED} {SHAPE}")


def _no_difference_of_rates() -> JointClaim:
    """Section 5.3.3: no pair of rates differs by what the thesis's n = 4 would have shown."""
    text = "the rate of MC dropout makes no significant difference to perplexity"
    common = _common("lm.mc_dropout_rate", "rates.same.perplexity", text, "section 5.3.3 and Figure 5.4")
    parts = []
    for low, high in itertools.combinations(RATES, 2):
        margin = shown_from(RATES[low], RATES[high])
        reason = f"{margin:.2f} of perplexity, from which on a two-sided t-test with n = 4 would show a difference"
        left, right = (perplexity(f"rate={rate}") for rate in (low, high))
        parts.append(
            StatementClaim(**common, left=left, relation="same", right=right, margin=margin, margin_reason=reason)
        )
    note = "Each pair is within what a two-sided t-test at 5 % would have shown with the printed spreads and n = 4."
    return JointClaim(**common, parts=tuple(parts), note=f"{note} {CONFOUNDED} {SHAPE}")


def shown_from(one: Printed, other: Printed) -> float:
    """The least difference of two means of four, with their standard deviations of the population, that is shown."""
    stds = one[1] or 0.0, other[1] or 0.0
    return TWO_SIDED * math.sqrt((stds[0] ** 2 + stds[1] ** 2) / (NUM_SEEDS - 1))


def _never_raised() -> Iterator[StatementClaim]:
    """Section 6.1.2: it was not observed that recoding raised the error signal; at most it stagnates."""
    for sweep, condition in (("lm.step_size", "eq44,step=5"), ("lm.error_signal", "eq44,recoded")):
        text = "surprisal recoding never raises the error signal"
        common = _common(sweep, f"{condition}.never.raises.delta", text, "section 6.1.2")
        left = Place(condition, "raised_share", "test")
        note = f"{EQUATION} {OF_THE_TEST} {SHAPE}"
        yield StatementClaim(**common, left=left, relation="same", right=0.0, of="every", note=note)


def _lowered() -> Iterator[StatementClaim]:
    """Sections 6.1.2 and 6.1.3: recoding lowers the error signal of the same model."""
    for name, kind, note in (
        ("surprisal", "eq44", f"{EQUATION} {OF_THE_TEST}"),
        ("MC dropout", "mc_dropout", f"{TWO_SIZES} {OF_THE_TEST}"),
    ):
        place = "Figure 6.2" if kind == "eq44" else "Figure 6.3"
        condition = f"{kind},recoded"
        text = f"recoding by {name} lowers the error signal of the same model, read with and without it"
        common = _common("lm.error_signal", f"{condition}.lowers.delta", text, place)
        left, right = Place(condition, "delta_after", "test"), Place(condition, "delta_before", "measured")
        yield StatementClaim(**common, left=left, relation="below", right=right, note=f"{note} {SHAPE}")


def _common(sweep: str, identity: str, text: str, place: str) -> dict[str, Any]:
    return {
        "id": f"{sweep}.{identity}",
        "sweeps": (sweep,),
        "text": sentence(text),
        "source": Source(PAPER, place),
        "setting": OF_SHAPES,
    }
