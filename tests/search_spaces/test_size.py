import pytest

from search_spaces.size import arguments, plain_name, size_of, sized_name


@pytest.mark.parametrize(
    ("name", "size", "plain", "words"),
    [
        ("asr.demo", "full", "asr.demo", ["asr.demo"]),
        ("asr.demo.smoke", "smoke", "asr.demo", ["asr.demo", "--smoke"]),
        ("lm.smoke_signals", "full", "lm.smoke_signals", ["lm.smoke_signals"]),
    ],
)
def test_a_name_tells_its_size(name, size, plain, words):
    assert (size_of(name), plain_name(name), arguments(name)) == (size, plain, words)
    assert sized_name(plain, size) == sized_name(name, size) == name
