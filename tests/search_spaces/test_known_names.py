import pytest

from search_spaces.known_names import known_names


@pytest.mark.parametrize(
    ("names", "typed", "said"),
    [
        ((), "a", "none"),
        (("a", "b"), "", "a, b"),
        (("a", "b"), "c", "a, b"),
        (("random", "surprisal"), "Surprisel", "random, surprisal; the nearest is 'surprisal'"),
        (("random@greedy", "surprisal@greedy"), "random", "random@greedy, surprisal@greedy; the nearest is 'random@gr"),
        (
            ("width=4,lr=0.1", "width=64,lr=0.5"),
            "width=32,lr=0.5",
            "width=4,lr=0.1, width=64,lr=0.5; the nearest is 'width=6",
        ),
        ([f"c{i}" for i in range(1200)], "c1199x", "c0, c1, c2 and 1,197 more; the nearest is 'c1199'"),
    ],
)
def test_names_are_listed_with_the_nearest_and_a_count_of_the_rest(names, typed, said):
    assert known_names(names, typed, most=3).startswith(said)
