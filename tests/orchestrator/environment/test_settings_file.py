"""`ponderay.toml` and the environment, whoever wrote them."""

import pytest

from orchestrator.environment.settings import read_settings
from trainables.errors import InputError


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"runs = 5", '`runs` must be text, such as runs = "...", but got 5'),
        (b"data = true", "`data` must be text"),
        (b'tracking_uri = ["x"]', "`tracking_uri` must be text"),
        (b'runs = "a\\u0000b"', "`runs` must be one line of text that can be printed"),
        (b'runs = "a\\nb"', "`runs` must be one line of text that can be printed"),
        (b'runs = "' + b"x" * 5000 + b'"', "`runs` must have at most 4,000 characters, but has 5,000"),
        (b"\xff\xfe", "must be text in UTF-8, but byte 0 is none"),
        (b"runs = [", "is not valid TOML"),
        (b"runs = " + b"[" * 5000, "is not valid TOML"),
        (b"price_per_device_hour = " + b"9" * 5000, "is not valid TOML"),
        (
            b"price_per_device_hour = true",
            "`price_per_device_hour` must be a number from 0 to 1,000,000,000, but got True",
        ),
        (
            b"price_per_device_hour = nan",
            "`price_per_device_hour` must be a number from 0 to 1,000,000,000, but got nan",
        ),
        (b"nothing = 1", "'nothing' is not a setting"),
        (b"#" * 1_000_001, "must be at most 1 MB large"),
        (b'search_uri = "foo"', "`search_uri` (PONDERAY_SEARCH_URI) must be sqlite:///FILE, postgresql://"),
        (b'tracking_uri = "http://x:99999"', "`tracking_uri` (PONDERAY_TRACKING_URI) must be a valid address"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(workplace, content, said):
    (workplace / "ponderay.toml").write_bytes(content)
    with pytest.raises(InputError) as raised:
        read_settings()
    assert said in str(raised.value) and len(str(raised.value)) < 400


def test_a_folder_in_place_of_the_file_is_refused(workplace):
    (workplace / "ponderay.toml").mkdir()
    with pytest.raises(InputError, match=r"^ponderay.toml must be a file of settings"):
        read_settings()


@pytest.mark.parametrize("value", ["a\nb", "\udcff", "x" * 5000])
@pytest.mark.parametrize("name", ["RUNS", "DATA", "CACHE", "STORAGE", "TRACKING_URI", "SEARCH_URI", "WATTS_PER_DEVICE"])
def test_odd_bytes_in_a_variable_are_refused(workplace, monkeypatch, name, value):
    monkeypatch.setenv(f"PONDERAY_{name}", value)
    with pytest.raises(InputError, match=rf"^PONDERAY_{name} must "):
        read_settings()


def test_empty_variables_count_as_none(workplace, monkeypatch):
    expected = read_settings()
    for name in ("RUNS", "DATA", "CACHE", "STORAGE", "TRACKING_URI", "SEARCH_URI", "WATTS_PER_DEVICE"):
        monkeypatch.setenv(f"PONDERAY_{name}", "")
    assert read_settings() == expected and expected.runs == workplace / "runs"


def test_a_password_in_a_wrong_address_is_not_told(workplace, monkeypatch):
    monkeypatch.setenv("PONDERAY_SEARCH_URI", "oracle://me:sesame@lab/optuna")
    with pytest.raises(InputError) as raised:
        read_settings()
    assert "sesame" not in str(raised.value) and "oracle://me:***@lab" in str(raised.value)


@pytest.mark.parametrize("name", ["a%20b", "what?x"])
def test_a_folder_whose_name_an_address_reads_otherwise_is_refused(workplace, monkeypatch, name):
    """SQLAlchemy would open `a b`, and `what` beside the folder."""
    monkeypatch.setenv("PONDERAY_RUNS", name)
    with pytest.raises(InputError, match=r"^`runs` \(PONDERAY_RUNS\) must be a path without \? and without %"):
        read_settings()
    monkeypatch.setenv("PONDERAY_RUNS", "100% sure")
    assert read_settings().runs.name == "100% sure"
