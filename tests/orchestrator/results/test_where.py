import pytest

from orchestrator.results.where import is_same, matching
from trainables.errors import InputError

CONFIGS = {
    "a": {"hidden_size": "318", "net.width": "3", "first.level": "0.5", "level": "1", "seed": "1"},
    "b": {"hidden_size": "318", "net.width": "4", "gru.width": "4", "level": "2", "seed": "1"},
    "c": {"hidden_size": "650", "net.rate": "1e-05", "net.text": "None", "level": "1", "seed": "1"},
}


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        (["hidden_size=318"], ("a", "b")),
        (["hidden_size=318.0", "net.width=4"], ("b",)),
        (["level=1"], ("a", "c")),  # a whole path, though `first.level` ends so
        (["first.level=5e-1"], ("a",)),
        (["rate=0.00001"], ("c",)),
        (["text=null"], ("c",)),
        (["hidden_size!=318"], ("c",)),
        (["level!=2.0", "hidden_size!=650"], ("a",)),
        (["net.width!=3"], ("b",)),
    ],
)
def test_all_filters_must_hold_of_the_path_that_they_end(filters, names):
    assert matching(filters, CONFIGS) == names


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (["width=4"], "--where width=4 may mean net.width or gru.width; type the path that you mean."),
        (
            ["hidden=318"],
            "`hidden` must be a recorded config path or its end; the recorded conditions differ in hidden",
        ),
        (["seed=1"], "`seed` must be a recorded config path or its end"),
        (["hidden_size=400"], "No condition has hidden_size=400; recorded are hidden_size = 318, 650."),
        (["hidden_size=650", "net.width=3"], "No condition has hidden_size=650 and net.width=3 together; leave one"),
        (["hidden_size"], "--where must be PATH=VALUE or PATH!=VALUE, but got 'hidden_size'."),
    ],
)
def test_a_filter_that_leaves_nothing_says_what_there_is(filters, said):
    with pytest.raises(InputError) as raised:
        matching(filters, CONFIGS)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "value", [1, 318, 0.1, 1e-5, 1e300, True, False, None, "nll", "", "3 a", (1, 2), (0.5, ("a",))]
)
def test_a_value_as_logged_is_the_value_as_json(value):
    """Configs are logged as Python writes them."""
    import json

    assert is_same(str(value), value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize(
    ("logged", "typed"), [("True", "1"), ("1", "true"), ("None", "0"), ("0.5", "0.51"), ("a", "b")]
)
def test_other_values_are_others(logged, typed):
    assert not is_same(logged, typed)
