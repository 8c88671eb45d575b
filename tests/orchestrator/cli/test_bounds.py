"""Numbers, values and arguments beyond what makes sense: refused at once, in one sentence."""

import sys
from dataclasses import replace

import pytest

from orchestrator.cli.main import main
from orchestrator.cli.options import parse
from search_spaces.asr_laptop import demo
from search_spaces.resources import Resources
from trainables.errors import InputError


def call(monkeypatch, capsys, *arguments):
    """Exit code and what was said of `ponderay ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["ponderay", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize("seeds", ["99999999999999999999", "10000000", "10001", "0", "3:10001", "9" * 5000, "٣", ""])
def test_a_number_of_seeds_has_bounds(workplace, monkeypatch, capsys, seeds):
    code, said = call(monkeypatch, capsys, "show", "asr.demo", "--seeds", seeds)
    if seeds:
        assert code == 2 and "with numbers from 1 to 10,000, but got" in said and len(said) < 300
    else:
        assert code == 0


def test_a_seed_has_bounds(workplace, monkeypatch, capsys):
    arguments = ("train", "asr.demo", "--condition", "surprisal", "--seed")
    assert call(monkeypatch, capsys, *arguments, "12345678901234567890123")[0] == 2
    for seed in (2**63, 10**22, -1):
        with pytest.raises(InputError, match=r"a seed must be a whole number from 0 to 9223372036854775807, but got"):
            replace(demo(), seeds=(1, seed))
    assert replace(demo(), seeds=(1, 2**63 - 1)).seeds[1] == 2**63 - 1
    with pytest.raises(InputError, match=r"a condition may have at most 10,000 seeds, but got 10,001"):
        replace(demo(), seeds=tuple(range(10_001)))


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "asr.demo", "--cpus", "99999999999999"),
        ("plan", "asr.demo", "--gpus", "99999999999999"),
        ("plan", "asr.demo", "--calibrate", "nan"),
        ("plan", "asr.demo", "--calibrate", "1e400"),
        ("run", "asr.demo", "--cpus", "99999999999999"),
        ("run", "asr.demo", "--max-device-hours", "nan"),
        ("run", "asr.demo", "--max-device-hours", "-1"),
        ("check", "asr.demo", "--reports", "100000"),
        ("ui", "--port", "65536"),
        ("serve", "--port", "0"),
        ("submit", "asr.demo", "--nodes", "99999999999999"),
    ],
)
def test_options_have_bounds(workplace, monkeypatch, capsys, arguments):
    code, said = call(monkeypatch, capsys, *arguments)
    assert code == 2 and f"Invalid value for '{arguments[-2]}'" in said
    assert list(workplace.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("9" * 5000, "A whole number must have at most 19 digits; text of digits is written in quotes, but got"),
        ("[" * 9000 + "]" * 9000, "must not be nested so deeply"),
        ("x" * 1_000_000, "must have at most 20,000 characters; put longer values into a file that a sweep reads"),
    ],
)
def test_a_value_that_is_set_has_bounds(value, said):
    with pytest.raises(InputError) as raised:
        parse([f"training.num_epochs={value}"])
    assert said in str(raised.value) and len(str(raised.value)) < 300


@pytest.mark.parametrize("value", ["nan", "NaN", "1e400", "-1e400", "Infinity"])
def test_what_is_no_finite_number_sets_nothing(value):
    with pytest.raises(InputError):
        demo().with_values(parse([f"training.learning_rate={value}"]))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, -1, 2**70, 1.5, True])
@pytest.mark.parametrize("name", ["gpus_per_worker", "cpus_per_worker", "num_workers", "report_timeout_s"])
def test_resources_have_bounds(name, value):
    if (name, value) in (("report_timeout_s", 1.5), ("report_timeout_s", True)):
        return
    with pytest.raises(InputError, match=f"`{name}` must be") as raised:
        Resources(**{name: value})
    assert len(str(raised.value)) < 300


def test_a_long_value_is_not_told_whole():
    with pytest.raises(InputError) as raised:
        demo().with_values({"training.learning_rate": "x" * 10_000})
    assert len(str(raised.value)) < 300


def test_arguments_that_are_no_text_are_refused(workplace, monkeypatch, capsys):
    assert call(monkeypatch, capsys, "show", "asr.\udcff") == (
        2,
        r"ponderay: Arguments must be text in UTF-8, but got 'asr.\udcff'.",
    )


@pytest.mark.parametrize("name", ["x y/../z", "../x", "", "asr.demo:", "os:path", "/etc/passwd:x", "x" * 300])
def test_what_names_no_sweep_is_one_sentence(workplace, monkeypatch, capsys, name):
    code, said = call(monkeypatch, capsys, "plan", name)
    assert code == 2 and said.startswith("ponderay: ") and "Traceback" not in said
