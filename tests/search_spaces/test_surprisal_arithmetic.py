"""What the surprisal paper's tables imply, and what its text says of them."""

import re

import pytest

from tests.search_spaces.computed_numbers import MEAN_BIG
from tests.search_spaces.transcription import Cell, read

PAPER = read("surprisal_paper")
TITLES = {"timit": "TIMIT", "mini_librispeech": "Mini-LibriSpeech"}
DIGIT = 0.01
"""The last one that is printed of FLOPs, in millions."""

# table, its corpus, its rows with random routing in testing
RANDOM = (
    ("table 3", "TIMIT", "features yes, training {}, testing no"),
    ("table 4", "Mini-LibriSpeech", "training {}, testing no"),
    ("table 5", "TIMIT", "training {}, testing no"),
    ("table 6", "TIMIT", "training {}, testing no"),
    ("table 7", "TIMIT", "training {}, testing no"),
)
REPEATED = (
    (("table 2", "Random controller", "TIMIT"), ("table 3", "features yes, training no, testing no", "TIMIT")),
    (
        ("table 2", "Surprisal-based controller", "TIMIT"),
        ("table 3", "features yes, training yes, testing yes", "TIMIT"),
    ),
    (("table 2", "Random controller", "Mini-LibriSpeech"), ("table 4", "training no, testing no", "Mini-LibriSpeech")),
    (
        ("table 2", "Surprisal-based controller", "Mini-LibriSpeech"),
        ("table 4", "training yes, testing yes", "Mini-LibriSpeech"),
    ),
    (
        ("table 2", "Surprisal-based controller", "TIMIT"),
        ("table 9", "stochastic training yes, stochastic testing yes", "TIMIT"),
    ),
    (
        ("table 2", "Surprisal-based controller", "Mini-LibriSpeech"),
        ("table 8", "stochastic training yes, stochastic testing yes", "Mini-LibriSpeech"),
    ),
)


def number(place, row, column):
    return PAPER[Cell(place, row, column)].number


def error(place, row, corpus="TIMIT"):
    return number(place, row, f"{corpus} PER")


def cost(place, row, corpus="TIMIT"):
    return number(place, row, f"{corpus} FLOPs")


def test_every_table_has_all_its_numbers():
    """Rows times columns; table 2 has two corpora."""
    counts = {f"table {i}": 0 for i in range(1, 10)}
    for at in PAPER:
        if at.place in counts:
            counts[at.place] += 1
    rows_columns = ((6, 1), (4, 4), (10, 2), (6, 2), (6, 2), (6, 2), (6, 2), (4, 4), (4, 4))
    assert list(counts.values()) == [rows * columns for rows, columns in rows_columns]


def test_every_error_and_loss_has_a_spread_and_no_cost_has():
    for at, printed in PAPER.items():
        if at.place.startswith("table") and at.place != "table 1":
            assert (printed.std is None) == at.column.endswith("FLOPs"), at
            assert printed.n == "5"


@pytest.mark.parametrize(("first", "again"), REPEATED)
def test_a_model_of_two_tables_has_the_same_numbers(first, again):
    for what in ("PER", "FLOPs"):
        one, two = (PAPER[Cell(place, row, f"{corpus} {what}")] for place, row, corpus in (first, again))
        assert (one.value, one.spread) == (two.value, two.spread)


@pytest.mark.parametrize("size", ["Small", "Big"])
def test_a_fixed_model_costs_the_sum_of_its_parts(size):
    parts = ("Autoregressive model", "Pre-net", f"{size} network", "Post-net")
    printed = [PAPER[Cell("table 1", part, "Number of parameters")] for part in parts]
    total = PAPER[Cell("table 3", f"{size} network only", "TIMIT FLOPs")]
    rounding = sum(part.half_digit for part in printed) + total.half_digit
    assert sum(part.number for part in printed) == pytest.approx(total.number, abs=rounding)


@pytest.mark.parametrize(("table", "corpus", "row"), RANDOM)
@pytest.mark.parametrize("training", ["no", "yes"])
def test_random_routing_costs_the_mean_of_small_and_big(table, corpus, row, training):
    ends = [cost(table, f"{size} network only", corpus) for size in ("Small", "Big")]
    assert cost(table, row.format(training), corpus) == pytest.approx(sum(ends) / 2, abs=1.5 * DIGIT)


def test_every_routed_model_costs_between_small_and_big():
    for table, corpus, _ in RANDOM:
        small, big = (cost(table, f"{size} network only", corpus) for size in ("Small", "Big"))
        rows = [
            at.row for at in PAPER if at.place == table and at.column.endswith("FLOPs") and "features no" not in at.row
        ]
        assert all(small <= cost(table, row, corpus) <= big for row in rows)


def test_what_routes_by_surprisal_in_testing_costs_the_same_however_it_was_trained():
    for at, printed in PAPER.items():
        if at.column.endswith("FLOPs") and "training no, testing" in at.row:
            trained = at._replace(row=at.row.replace("training no", "training yes"))
            assert PAPER.get(trained, printed).value == printed.value


def test_the_test_sets_of_the_main_models_are_less_surprising_than_the_controllers_mean():
    """Why the printed saving is above that of the mean rate."""
    for corpus, mean in MEAN_BIG.items():
        table = {"timit": "table 3", "mini_librispeech": "table 4"}[corpus]
        small, big = (cost(table, f"{size} network only", TITLES[corpus]) for size in ("Small", "Big"))
        printed = cost("table 2", "Surprisal-based controller", TITLES[corpus])
        assert (printed - small) / (big - small) < mean


@pytest.mark.parametrize("place", ["abstract", "section 5"])
def test_surprisal_saves_15_per_cent(place):
    said = number(place, "surprisal against the big network", "fewer FLOPs")
    saved = 1 - cost("table 2", "Surprisal-based controller") / cost("table 2", "Big network only")
    assert said == round(100 * saved) == 15
    assert error("table 2", "Surprisal-based controller") <= error("table 2", "Big network only")


def test_without_features_and_surprisal_in_testing_the_autoregressive_model_is_saved():
    """Footnote 5: 3.05 M; the rest of the difference is the rate of the big network."""
    said = number("footnote 5", "first and third rows of table 3", "TIMIT FLOPs lower by")
    assert said == number("table 1", "Autoregressive model", "Number of parameters")
    rate = cost("table 2", "Random controller") - cost("table 2", "Surprisal-based controller")
    for training in ("no", "yes"):
        routed, saved = (cost("table 3", f"features no, training {training}, testing {test}") for test in ("yes", "no"))
        assert routed - saved == pytest.approx(said - rate, abs=2 * DIGIT)


def test_numbers_of_section_4_4_are_those_of_the_tables():
    for at, printed in PAPER.items():
        if at.place == "section 4.4":
            table = "table 3" if "TIMIT" in at.column else "table 4"
            assert printed.value == PAPER[at._replace(place=table)].value


@pytest.mark.parametrize("corpus", TITLES.values())
def test_surprisal_is_cheaper_than_a_learned_controller_and_has_less_spread(corpus):
    """Section 4.3."""
    surprisal, learned = "Surprisal-based controller", "Learned controller"
    one, two = (PAPER[Cell("table 2", row, f"{corpus} PER")] for row in (surprisal, learned))
    assert abs(one.number - two.number) < max(one.std, two.std)
    assert one.std < two.std
    assert cost("table 2", surprisal, corpus) < cost("table 2", learned, corpus)


def test_a_smaller_lambda_raises_error_and_cost():
    """Section 4.3."""
    row = "learned controller, lambda 0.0001"
    assert error("section 4.3", row) > error("table 2", "Learned controller")
    assert cost("section 4.3", row) > cost("table 2", "Learned controller")


@pytest.mark.parametrize("training", ["no", "yes"])
@pytest.mark.parametrize("testing", ["no", "yes"])
def test_features_lower_the_error(training, testing):
    """Section 4.4."""
    rest = f"training {training}, testing {testing}"
    assert error("table 3", f"features yes, {rest}") < error("table 3", f"features no, {rest}")


@pytest.mark.parametrize("table", ["table 5", "table 6", "table 7"])
@pytest.mark.parametrize("training", ["no", "yes"])
def test_surprisal_in_testing_improves_every_model_of_appendix_a(table, training):
    by, random = (error(table, f"training {training}, testing {testing}") for testing in ("yes", "no"))
    assert by < random


def test_without_features_surprisal_in_both_is_not_on_the_front_that_section_4_4_puts_it_on():
    """The text says it is "still Pareto-optimal", but the row above it has a lower error at the same cost."""
    both, testing = (f"features no, training {training}, testing yes" for training in ("yes", "no"))
    assert error("table 3", testing) < error("table 3", both)
    assert cost("table 3", testing) == cost("table 3", both)


@pytest.mark.parametrize(("table", "corpus"), [("table 8", "Mini-LibriSpeech"), ("table 9", "TIMIT")])
def test_deterministic_execution(table, corpus):
    """Appendix C: in testing alone it costs error and no loss; in training it overfits."""
    rows = [at.row for at in PAPER if at.place == table and at.column.endswith("PER")]
    assert [re.findall("yes|no", row) for row in rows] == [["no", "no"], ["no", "yes"], ["yes", "no"], ["yes", "yes"]]
    errors = [error(table, row, corpus) for row in rows]
    train, test = ([number(table, row, f"{corpus} {kind} loss") for row in rows] for kind in ("train", "test"))
    assert errors[2] > errors[3] and test[2] < test[3]
    assert max(train[:2]) < min(train[2:])
    assert min(test[:2]) > max(test[2:]) and min(errors[:2]) > max(errors[2:])
    assert len({cost(table, row, corpus) for row in rows}) == 1
