"""What the numbers of Ulmer's thesis show of one model against another: recoders, their step sizes, K and speed."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from search_spaces.claim import Place, Source, StatementClaim, TrendClaim, sentence
from search_spaces.lm_published_numbers import (
    BASELINE,
    CONFOUNDED,
    DYNAMIC,
    EQUATION,
    NAMES,
    NOTES,
    NUM_SEEDS,
    OF_SHAPES,
    OTHER_START,
    PAPER,
    RATES,
    RISE_WITH_K,
    SAMPLES,
    STEP_SIZES,
    WITHOUT,
    added_note,
    added_place,
    perplexity,
    speed,
)

NO_WORSE: Final = 1.0, "1 of perplexity; a quarter of the spread of the baseline over seeds"
SAME: Final = 0.05
"""A smaller change of a printed perplexity counts as none: -.01, printed as a gain of +.01."""

ONE_SIDED: Final = 1.943
"""Student's t at .95 with 6 degrees of freedom, of two groups of four."""

LOWER_BEST: Final = "It is the thesis's best, 1.27 below the baseline, which the test does not show."
SHAPE: Final = "On whatever text is set: what is claimed is a shape."
OF_THE_TEST: Final = "The thesis shows it in training; ours is that of the test."
OF_THE_RATE: Final = (
    "The section then explains the opposite: more dropping makes a flatter distribution. Its statement fits a rate of "
    "keeping, as Eq. 4.6 prints it."
)
ONE_MACHINE: Final = "Speeds compare where the replicates ran on one kind of machine."


def statements() -> Iterator[StatementClaim]:
    """Every comparison."""
    yield from _of_step_sizes()
    for kind, by_count in SAMPLES.items():
        for count in by_count:
            yield _worse(f"{NAMES[kind]} with K = {count}", "samples", f"{kind},K={count}", "Table 5.2", NOTES[kind])
        yield from _of_counts(kind, tuple(by_count))
    for rate in RATES:
        yield _worse(f"MC dropout at rate {rate:g}", "mc_dropout_rate", f"rate={rate}", "Figure 5.4", CONFOUNDED)
    for kind in ("mc_dropout", "ensemble"):
        yield _worse(NAMES[kind], "confounds", kind, "Table 5.1", RISE_WITH_K if kind == "ensemble" else "")
        for step, condition in (("learned", "learned_released"), ("predicted", "predicted")):
            text = f"{NAMES[kind]} with {step} steps"
            yield _worse(text, "dynamic_step", f"{kind},{condition}", "Figure 5.5", NOTES[kind])
    yield from _of_dynamic_steps()
    for condition, name in (("mc_dropout,units", "MC dropout"), ("ensemble,released", "the released ensemble")):
        yield _worse(name, "signals", condition, "Table 5.2", CONFOUNDED)
    yield from _of_the_ablation()


def _of_step_sizes() -> Iterator[StatementClaim]:
    """Section 5.3.1: none outperforms the baseline significantly, and too large steps do harm."""
    others = (10.0, 25.0)
    for size in STEP_SIZES["eq44"]:
        if size not in others:
            claim = _not_better(f"surprisal with step size {size:g}", "step_size", f"eq44,step={size:g}", size)
            yield replace(claim, sweeps=(*claim.sweeps, *(("lm.laptop",) if size in (1, 5) else ())))
    for kind, sizes in STEP_SIZES.items():
        for size in others if kind == "eq44" else sizes:
            text = f"{NAMES[kind]} with step size {size:g}"
            yield _worse(text, "step_size", f"{kind},step={size:g}", "Table 5.1", NOTES[kind])


def _not_better(what: str, sweep: str, condition: str, size: float) -> StatementClaim:
    """Not below the baseline by what the thesis's own one-sided test with n = 4 each would have called significant."""
    stds = STEP_SIZES["eq44"][size][1] or 0.0, BASELINE[1] or 0.0
    margin = ONE_SIDED * math.sqrt((stds[0] ** 2 + stds[1] ** 2) / (NUM_SEEDS - 1))
    text = f"{what} does not outperform the baseline significantly"
    place, left = "Table 5.1 and section 5.3.1", perplexity(condition)
    claim = _against_baseline(
        text, sweep, left, "above", place, f"{EQUATION} {LOWER_BEST if size == 5 else ''}".strip()
    )
    reason = f"{margin:.2f} of perplexity, from which on the thesis's one-sided t-test with n = 4 would show a gain"
    return replace(claim, margin=margin, margin_reason=reason)


def _of_dynamic_steps() -> Iterator[StatementClaim]:
    """Section 5.3.4: no matter the model and how the step is found, all are worse than with a fixed one."""
    for kind, by_step in DYNAMIC.items():
        for step in by_step:
            condition = f"{kind},{'learned_released' if step == 'learned' else step}"
            text = f"{NAMES[kind]} with {step} steps has a higher perplexity than with a fixed one"
            places = perplexity(condition), perplexity(f"{kind},fixed")
            yield _statement(text, "dynamic_step", places[0], "above", places[1], "Figure 5.5", NOTES[kind])


def _of_counts(kind: str, counts: tuple[int, ...]) -> Iterator[StatementClaim]:
    """How perplexity and speed go with K."""
    first = f"{kind},K={counts[0]}"
    text = f"{NAMES[kind]} with K = {counts[0]} is slower than the baseline"
    yield _statement(text, "samples", speed(first), "below", speed("baseline"), "Table 5.2", ONE_MACHINE)
    for less, more in itertools.pairwise(counts):
        small, large = (f"{kind},K={count}" for count in (less, more))
        text = f"{NAMES[kind]} with K = {more} is slower than with {less}"
        yield _statement(text, "samples", speed(large), "below", speed(small), "Table 5.2", ONE_MACHINE)
        if kind == "ensemble":
            text = f"{NAMES[kind]} with K = {more} has a higher perplexity than with {less}"
            places = perplexity(large), perplexity(small)
            yield _statement(text, "samples", places[0], "above", places[1], "Table 5.2", NOTES[kind])


def _of_the_ablation() -> Iterator[StatementClaim]:
    for kind, by_step in WITHOUT.items():
        for step, (printed, _) in by_step.items():
            yield _of_adding(kind, step)
            yield _of_removing(kind, step, printed)
            if kind != "eq44":
                text = (
                    f"trained with {NAMES[kind]} ({step} steps) and tested without, the perplexity is higher than the"
                )
                left = perplexity(f"{kind},{step}", "without")
                yield _against_baseline(f"{text} baseline's", "ablation", left, "above", "Figure 5.6", NOTES[kind])


def _of_adding(kind: str, step: str) -> StatementClaim:
    """Section 5.3.5: a small drop in performance with predictive entropy, lower perplexities with surprisal."""
    left, better = added_place(kind, step), kind == "eq44"
    right = perplexity("baseline") if step == "fixed" else perplexity(left.condition, "baseline")
    change = "lower" if better else "higher"
    text = f"the baseline tested with {NAMES[kind]} ({step} steps) has a {change} perplexity than without"
    relation: Literal["below", "above"] = "below" if better else "above"
    return _statement(text, "ablation", left, relation, right, "Figure 5.6b", added_note(kind, step))


def _of_removing(kind: str, step: str, printed: float) -> StatementClaim:
    """Section 5.3.5: without the recoder that it was trained with, a model is worse or the same."""
    margin, reason = NO_WORSE
    condition, gain = f"{kind},{step}", _best(kind, step) - printed
    left, right = perplexity(condition, "without"), perplexity(condition)
    trained = f"trained with {NAMES[kind]} ({step} steps)"
    notes = " ".join(filter(None, (NOTES[kind], OTHER_START if step == "learned" else "")))
    place = "Figures 5.5 and 5.6a"
    if gain < -SAME:
        text = f"{trained}, the perplexity is higher without it"
        return _statement(text, "ablation", left, "above", right, place, notes)
    claim = _statement(
        f"{trained}, the perplexity is the same without it", "ablation", left, "same", right, place, notes
    )
    return replace(claim, margin=margin, margin_reason=reason)


def _best(kind: str, step: str) -> float:
    """The printed perplexity with the recoder: with a fixed step the best of Tables 5.1 and 5.2."""
    if step != "fixed":
        return DYNAMIC[kind][step][0]
    found = [*STEP_SIZES[kind].values(), *SAMPLES.get(kind, {}).values()]
    return min(perplexity for perplexity, _ in found)


def _worse(what: str, sweep: str, condition: str, place: str, note: str) -> StatementClaim:
    text = f"{what} has a higher perplexity than the baseline"
    return _against_baseline(text, sweep, perplexity(condition), "above", place, note)


def _against_baseline(
    text: str, sweep: str, left: Place, relation: Literal["below", "above"], place: str, note: str
) -> StatementClaim:
    return _statement(text, sweep, left, relation, perplexity("baseline"), place, note)


def _statement(
    text: str, sweep: str, left: Place, relation: Literal["below", "above", "same"], right: Place, place: str, note: str
) -> StatementClaim:
    return StatementClaim(
        id=f"lm.{sweep}.{left.condition}@{left.evaluation}.{relation}.{right.condition}.{left.metric}",
        sweeps=(f"lm.{sweep}",),
        text=sentence(text),
        left=left,
        relation=relation,
        right=right,
        source=Source(PAPER, place),
        setting=OF_SHAPES,
        note=" ".join(filter(None, (note, SHAPE))),
    )


def trends() -> Iterator[TrendClaim]:
    """What is said along step sizes (section 5.3.1), numbers of samples (5.3.2) and rates of dropout (5.3.3)."""
    for kind, sizes in STEP_SIZES.items():
        best = 5.0 if kind == "eq44" else 1e-3
        larger = [size for size in sizes if size >= best]
        text = f"from its best step size on, larger steps of {NAMES[kind]} have higher perplexities"
        places = tuple(perplexity(f"{kind},step={size:g}") for size in larger)
        yield _trend(text, "step_size", places, "rises", "section 5.3.1 and Table 5.1", NOTES[kind])
    for kind, by_count in SAMPLES.items():
        names = [f"{kind},K={count}" for count in by_count]
        text = f"the more samples, the slower {NAMES[kind]} is"
        places = tuple(speed(name) for name in names)
        yield _trend(text, "samples", places, "falls", "section 5.3.2 and Table 5.2", ONE_MACHINE)
    text = "anchored ensembling is best with one member: the more, the higher the perplexity"
    places = tuple(perplexity(f"ensemble,K={count}") for count in SAMPLES["ensemble"])
    yield _trend(text, "samples", places, "rises", "section 5.3.2 and Table 5.2", NOTES["ensemble"])
    text = "the lower the rate of MC dropout, the higher the uncertainty"
    places = tuple(Place(f"rate={rate}", "delta_before", "test") for rate in RATES)
    note = f"{OF_THE_TEST} {OF_THE_RATE}"
    yield _trend(text, "mc_dropout_rate", places, "falls", "section 5.3.3 and Figure 5.4", note)


def _trend(
    text: str, sweep: str, places: tuple[Place, ...], relation: Literal["rises", "falls"], place: str, note: str
) -> TrendClaim:
    return TrendClaim(
        id=f"lm.{sweep}.{places[0].condition}.{relation}.{places[-1].condition}.{places[0].metric}",
        sweeps=(f"lm.{sweep}",),
        text=sentence(text),
        places=places,
        relation=relation,
        source=Source(PAPER, place),
        setting=OF_SHAPES,
        note=" ".join((note, SHAPE)),
    )
