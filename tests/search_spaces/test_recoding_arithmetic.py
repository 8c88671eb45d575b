"""What the recoding thesis's tables imply, and what its text says of them."""

import itertools
import math

import pytest

from search_spaces.distributions import Exponential
from search_spaces.find import find_sweep
from search_spaces.lm import SEARCHES
from search_spaces.sources import claims_in
from tests.search_spaces.transcription import Cell, read

THESIS = read("recoding_thesis")
BASELINE = THESIS[Cell("table 5.1", "all step sizes", "Baseline perplexity")]
MODELS = {"Surp.": "Surprisal", "MCD": "MC Dropout", "BAE": "BAE"}
RUNS = 4
T_ONE_TAILED, T_TWO_TAILED = 1.943, 2.447
"""Student's t at 5 %, 2 (n - 1) = 6 degrees of freedom."""

# printed -1.12, where 126.60 - 126.72 = -0.12: a digit of the source is wrong
MISPRINTED = {Cell("figure 5.6b", f"BL {step}, w/ BAE recoder", "gain") for step in ("Fixed", "Learned", "Pred.")}

# best values of table B.2b that its table B.2a cannot draw; an exponential distribution has no upper end
OUTSIDE = {"Step size, all others", "Weight decay, value"}
# what a search draws: the row of table B.2a, and the power of ours that is printed
SEARCHED = {
    "recoder.step.size": ("Step size", 1),
    "recoder.signal.num_samples": ("# Samples", 1),
    "recoder.signal.num_members": ("# Samples", 1),
    "recoder.signal.prior_std": ("Prior scale", 1),
    "recoder.signal.prior_variance": ("Prior scale", 1),
    "decoder_std": ("Prior scale", 2),
    "recoder.signal.pull": ("Weight decay", 1),
    "training.weight_decay": ("Weight decay", 1),
    "recoder.signal.rate": ("MC Dropout", 1),
    "dropout.rate": ("Dropout", 1),
}


def of(place, column="perplexity"):
    """Rows of a table that have the column."""
    return {at.row: printed for at, printed in THESIS.items() if at.place == place and at.column == column}


def t(one, other):
    """Student's t of two means of four runs; positive where `one` is the larger."""
    return (one.number - other.number) / math.sqrt((one.std**2 + other.std**2) / RUNS)


def best_so_far(short):
    """The lowest perplexity of a model in tables 5.1 and 5.2."""
    column = f"{MODELS[short]} perplexity"
    return min(p.number for place in ("table 5.1", "table 5.2") for p in of(place, column).values())


def test_every_table_has_all_its_numbers():
    places = ("table 5.1", "table 5.2", "figure 5.4a", "figure 5.5a", "figure 5.6a", "figure 5.6b", "table B.1a")
    counts = [sum(at.place == place for at in THESIS) for place in places]
    assert counts == [1 + 5 + 2 * 6, 2 * (1 + 5 + 4), 6, 1 + 2 * 6, 2 * 9, 2 * 9, 7]


def test_every_perplexity_has_a_spread_over_four_runs():
    for at, printed in THESIS.items():
        if at.place.startswith(("table 5", "figure")) and at.column.endswith("perplexity"):
            assert printed.std is not None and printed.n == str(RUNS), at


@pytest.mark.parametrize(("short", "size"), [("Surp.", "5"), ("MCD", "0.001"), ("BAE", "0.001")])
def test_the_best_fixed_step_sizes(short, size):
    """Section 5.3.1."""
    by_size = of("table 5.1", f"{MODELS[short]} perplexity")
    assert min(by_size, key=lambda row: by_size[row].number) == f"step size {size}"
    said = THESIS[Cell("section 5.3.1", "best step size", "Surprisal" if short == "Surp." else "MCD and BAE")]
    assert said.value == size


def test_no_model_is_significantly_better_than_the_baseline():
    """Section 5.3.1: by a single-tailed t-test of four runs each."""
    perplexities = [printed for at, printed in THESIS.items() if printed.unit == "perplexity" and printed.std]
    assert len(perplexities) == 18 + 10 + 6 + 7 + 2 * 9
    assert max(t(BASELINE, printed) for printed in perplexities) < T_ONE_TAILED


def test_uncertainty_recoding_is_significantly_worse_than_the_baseline():
    """Section 6.1.3: trained with it, whether it is tested with it or without."""
    for at, printed in THESIS.items():
        told = f"{at.row} {at.column}"
        is_of_it = any(name in told for name in ("MC Dropout", "MCD", "BAE")) and "BL" not in told
        if is_of_it and printed.std:
            assert t(printed, BASELINE) > T_ONE_TAILED, at


def test_five_dropout_samples_and_one_member_are_best():
    """Section 5.3.2."""
    dropout, ensemble = (of("table 5.2", f"{MODELS[short]} perplexity") for short in ("MCD", "BAE"))
    assert min(dropout, key=lambda row: dropout[row].number) == "5 samples"
    values = [printed.number for printed in ensemble.values()]
    assert values == sorted(values) and next(iter(ensemble)) == "1 sample"


@pytest.mark.parametrize("model", ["MC Dropout", "BAE"])
def test_more_samples_are_slower(model):
    speeds = [printed.number for printed in of("table 5.2", f"{model} speed").values()]
    assert speeds == sorted(speeds, reverse=True)
    said = THESIS[Cell("section 5.3.2", "1 sample", "slowdown against the baseline")].number
    baseline = THESIS[Cell("table 5.2", "Baseline", "Baseline speed")].number
    assert said == math.floor(baseline / speeds[0])


def test_no_dropout_rate_differs_significantly_from_another():
    """Section 5.3.3."""
    rates = of("figure 5.4a", "MC Dropout perplexity").values()
    assert max(abs(t(one, other)) for one, other in itertools.combinations(rates, 2)) < T_TWO_TAILED


def test_gains_of_dynamic_steps_are_differences_to_the_best_so_far():
    """Figure 5.5a: all models get worse."""
    gains = of("figure 5.5a", "gain")
    assert len(gains) == 6
    for row, gain in gains.items():
        perplexity = of("figure 5.5a")[row].number
        assert gain.number == pytest.approx(best_so_far(row.split()[0]) - perplexity, abs=1e-9)
        assert gain.number < 0


def test_gains_without_a_recoder_are_differences_to_the_same_model_with_it():
    for row, gain in of("figure 5.6a", "gain").items():
        short, step = row.removesuffix(", w/o recoder").split()
        whole = best_so_far(short) if step == "Fixed" else of("figure 5.5a")[f"{short} {step}"].number
        assert gain.number == pytest.approx(whole - of("figure 5.6a")[row].number, abs=1e-9), row


def test_gains_with_an_added_recoder_are_differences_to_the_baseline_but_for_three_misprints():
    wrong = set()
    for row, gain in of("figure 5.6b", "gain").items():
        difference = BASELINE.number - of("figure 5.6b")[row].number
        if gain.number != pytest.approx(difference, abs=1e-9):
            wrong.add(Cell("figure 5.6b", row, "gain"))
            assert gain.number == pytest.approx(difference - 1, abs=1e-9)
    assert wrong == MISPRINTED


def test_adding_an_uncertainty_recoder_to_the_baseline_makes_it_worse_and_surprisal_better():
    """Section 5.3.5."""
    for row, printed in of("figure 5.6b").items():
        is_better = printed.number < BASELINE.number
        assert is_better == ("Surp." in row), row


def test_removing_a_recoder_makes_no_model_better_but_one():
    """Section 5.3.5: "almost all"; the one is better by .01."""
    better = {row: gain.value for row, gain in of("figure 5.6a", "gain").items() if gain.number > 0}
    assert better == {"MCD Fixed, w/o recoder": "+0.01"}


def test_surprisal_models_without_their_recoder_are_better_than_the_baseline_but_for_predicted_steps():
    """The text of section 5.3.5 says it of all three."""
    better = {row: p.number < BASELINE.number for row, p in of("figure 5.6a").items() if row.startswith("Surp.")}
    assert list(better.values()) == [True, True, False]


def test_the_same_model_has_the_same_perplexity_in_two_figures():
    for step in ("Learned", "Pred."):
        with_it, without = of("figure 5.5a")[f"Surp. {step}"], of("figure 5.6a")[f"Surp. {step}, w/o recoder"]
        assert (with_it.value, with_it.spread) == (without.value, without.spread)
    said = THESIS[Cell("section 5.3.5", "baseline", "perplexity")]
    assert said.value == BASELINE.value


def test_garden_path_sentences_add_up():
    *parts, total = (p.number for at, p in THESIS.items() if at.row == "garden path sentences")
    assert len(parts) == 2 and sum(parts) == total


def test_best_values_of_the_search_that_its_ranges_do_not_hold():
    outside = set()
    for at, best in THESIS.items():
        if at.place == "table B.2b":
            low, high = (THESIS[Cell("table B.2a", at.row, end)].number for end in ("lower", "upper"))
            if not low <= best.number <= high:
                outside.add(f"{at.row}, {at.column}")
    assert outside == OUTSIDE


def test_the_dropout_rate_of_the_text_is_that_of_the_search():
    said = THESIS[Cell("section 5.3.3", "dropout found by search", "decoder")]
    assert said.value == THESIS[Cell("table B.2b", "Dropout", "value")].value


@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_shipped_searches_draw_from_the_printed_ranges(name):
    """Table B.2a; 64 combinations of 4 epochs (appendix B.3)."""
    sweep = find_sweep(f"lm.{name}")
    for path, drawn in sweep.search.space.items():
        row, power = SEARCHED[path]
        printed = [THESIS[Cell("table B.2a", row, end)].number for end in ("lower", "upper")]
        assert [drawn.low**power, drawn.high**power] == pytest.approx(printed, rel=1e-12), path
        assert isinstance(drawn, Exponential) == (row in ("Step size", "Weight decay")), path
    assert sweep.search.num_trials == THESIS[Cell("appendix B.3", "search", "combinations")].number
    assert sweep.base.training.num_epochs == THESIS[Cell("appendix B.3", "search", "epochs")].number


def test_shipped_sizes_are_the_printed_ones():
    """Table B.1a, and section 5.2's epochs."""
    rows = {
        "embedding_size": "Embedding size",
        "hidden_size": "Hidden size",
        "num_layers": "Number of layers",
        "training.batch_size": "Batch size",
        "training.window": "Sequence Length",
    }
    printed = {path: THESIS[Cell("table B.1a", row, "value")].value for path, row in rows.items()}
    printed["training.num_epochs"] = THESIS[Cell("section 5.2", "training", "epochs")].value
    required = claims_in("lm")[0].setting.requires
    assert {path: required[path] for path in printed} == printed
    training = find_sweep("lm.step_size").base.training
    assert training.learning_rate == THESIS[Cell("table B.1a", "Learning rate", "value")].number
    assert training.max_gradient_norm == THESIS[Cell("table B.1a", "Gradient clipping", "value")].number
