"""Exit codes and messages, as a user meets them."""

import contextlib
import json
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli import main as cli
from orchestrator.cli.options import find, find_recorded
from orchestrator.environment.settings import read_settings
from tests.trainables.asr.data.test_examples import write_utterance


def call(monkeypatch, *arguments: str) -> int:
    """The exit code of `ponderay ARGUMENTS` in this process."""
    monkeypatch.setattr(sys, "argv", ["ponderay", *arguments])
    with pytest.raises(SystemExit) as raised:
        cli.main()
    return int(raised.value.code or 0)


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = str(Path(sys.executable).parent / "ponderay")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)  # noqa: S603


def test_help_names_the_commands():
    done = run_command("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in ("sweeps", "show", "run", "train", "status", "pareto", "ui"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "asr.nothing"], "There is no sweep 'asr.nothing'; the sweeps of asr are asr.ablation"),
        (
            ["run", "asr.demo", "--set", "network.depth=3"],
            "`network.depth` is not a config path: 'depth' is not one of",
        ),
        (["run", "asr.demo", "--set", "network.dropout=1.2"], "`network.dropout`: Input should be less than 1"),
        (["run", "asr.demo", "--set", "network.dropout"], "--set must be PATH=VALUE"),
        (
            ["run", "asr.laptop_librispeech", "--set", "data.root=nowhere"],
            "nowhere does not exist; give `--set data.root=PATH`",
        ),
        (["run", "asr.demo", "--set", "seed=3"], "`--seeds N` asks for seeds"),
        (["train", "asr.demo", "--condition", "x"], "asr.demo has no condition 'x'; it has surprisal, random"),
        (["run", "asr.demo", "--retry", "random"], "asr.demo has not run here yet"),
        (["status", "asr.demo"], "asr.demo has not run here yet"),
        (["pareto", "asr.demo"], "asr.demo has not run here yet"),
        (
            ["pareto", "asr.demo", "--x", "speed"],
            "'speed' is not a metric with a direction; choose one of per, substitution_rate",
        ),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(workplace, monkeypatch, capsys, arguments, said):
    assert call(monkeypatch, *arguments) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


def test_a_place_whose_name_is_too_long_is_named_in_a_readable_sentence(workplace, monkeypatch, capsys):
    assert call(monkeypatch, "plan", "lm.laptop", "--set", f"data.text.root={'x/' * 3000}") == 2
    said = capsys.readouterr().err
    assert "File name too long" in said and len(said) < 800


def test_wrong_usage_is_exit_code_2():
    assert run_command("run").returncode == 2
    assert run_command("fly").returncode == 2


@pytest.mark.parametrize("fault", ["missing", "broken", "rate", "empty"])
def test_bad_recordings_are_named_before_anything_starts(workplace, monkeypatch, capsys, fault):
    for speaker in range(5):
        audio = write_utterance(workplace, "train-clean-5", speaker, 0, "THE CAT")
    write_utterance(workplace, "test-clean", 9, 0, "A DOG")
    match fault:
        case "missing":
            audio.unlink()
        case "broken":
            audio.write_text("no audio")
        case "rate":
            import numpy
            import soundfile

            soundfile.write(audio, numpy.zeros(8000), 8000)
        case "empty":
            audio = workplace / "test-clean"
            next(audio.rglob("*.trans.txt")).unlink()
    assert call(monkeypatch, "run", "asr.laptop_librispeech", "--smoke", "--set", f'data.root="{workplace}"') == 2
    assert audio.name in capsys.readouterr().err
    assert not Path("runs").exists()


def test_audio_that_breaks_off_is_found_in_the_work_and_is_exit_code_2(workplace, monkeypatch, capsys):
    for speaker in range(5):
        audio = write_utterance(workplace, "train-clean-5", speaker, 0, "THE CAT")
    write_utterance(workplace, "test-clean", 9, 0, "A DOG")
    audio.write_bytes(audio.read_bytes()[: audio.stat().st_size // 2])
    small = ["--condition", "always_small", "--smoke", "--set", f'data.root="{workplace}"']
    assert call(monkeypatch, "train", "asr.laptop_librispeech", *small) == 2
    assert f"ponderay: {audio} cannot be read as audio" in capsys.readouterr().err


def test_one_replicate_trains_without_ray_and_shows_in_every_query(workplace, monkeypatch, capsys):
    tiny = ["--smoke", "--set", "training.num_epochs=1"]
    assert call(monkeypatch, "train", "asr.demo", "--condition", "always_small", *tiny) == 0
    capsys.readouterr()
    assert call(monkeypatch, "status", "asr.demo", "--smoke", "--format", "json") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["condition"], row["seed"], row["state"]) == ("always_small,training.num_epochs=1", 1, "complete")
    assert call(monkeypatch, "pareto", "asr.demo", "--smoke", "--format", "json") == 0
    (point,) = json.loads(capsys.readouterr().out)["points"]
    assert point["n"] == 1 and point["per"] > 0 and point["macs_per_frame"] > 0
    assert Path("runs/figures/asr.demo.smoke.front.html").exists()
    assert Path("runs/figures/asr.demo.smoke.front.png").exists()
    assert call(monkeypatch, "pareto", "asr.demo", "--smoke", "--x", "eval_frames_per_s", "--format", "csv") == 0
    assert ",n,per,per_std,eval_frames_per_s,eval_frames_per_s_std,per_low," in capsys.readouterr().out.splitlines()[0]
    assert call(monkeypatch, "pareto", "asr.demo", "--smoke", "--x", "train_frames_per_s", "--format", "csv") == 0
    capsys.readouterr()
    stored = [path.name for path in Path("runs/artifacts/asr.demo.smoke").rglob("*.front.*")]
    assert sorted(stored) == [f"asr.demo.smoke.front.{end}" for end in ("html", "json", "png")]


def test_sweeps_are_summed_up_by_family_unless_all_are_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    lengths = {}
    for arguments in ((), ("asr",), ("--all",)):
        assert call(monkeypatch, "sweeps", *arguments) == 0
        lengths[arguments] = capsys.readouterr().out
    first = lengths[()]
    assert all(name in first for name in ("asr.demo", "act.tau_parity_laptop", "lm.laptop", "`ponderay sweeps --all`"))
    assert first.count("\n") <= 24, "a screen"
    assert "asr.table2_timit" in lengths["asr",] and "act.tau_parity" not in lengths["asr",]
    assert "asr.table2_timit" in lengths["--all",] and "act.tau_parity" in lengths["--all",]


def test_show_and_sweeps_say_what_would_run(monkeypatch, capsys):
    assert call(monkeypatch, "sweeps", "--format", "json") == 0
    names = [row["sweep"] for row in json.loads(capsys.readouterr().out)]
    assert {"asr.demo", "asr.table2_timit", "asr.search"} <= set(names)
    assert call(monkeypatch, "show", "asr.search") == 0
    shown = capsys.readouterr().out
    assert "training.learning_rate: Real(low=0.0001, high=0.01, log=True)" in shown
    assert "minimize valid_per, minimize valid_macs_per_frame" in shown
    said = "metric insertion_rate (ratio, minimize): test: the part of `per` that is insertions metric"
    assert said in " ".join(shown.split())


def test_a_tracking_store_that_cannot_be_opened_is_one_line(workplace, monkeypatch, capsys):
    monkeypatch.setenv("PONDERAY_TRACKING_URI", "nonsense://somewhere")
    assert call(monkeypatch, "status", "asr.demo") == 2
    assert "The tracking store nonsense://somewhere cannot be opened" in capsys.readouterr().err


def test_a_working_folder_that_is_gone_is_one_line(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    leave = f"import os; os.chdir({str(folder)!r}); os.rmdir({str(folder)!r})"
    program = f"{leave}; from orchestrator.cli.main import main; main()"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-c", program, "status", "asr.demo"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "ponderay: The working folder is not there any more; change to one that is.\n"


def test_a_user_without_a_home_is_told_to_name_one(monkeypatch, capsys):
    """As in a container that runs under a number of nobody's."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert call(monkeypatch, "sweeps") == 2
    assert (
        "has no home folder here, where MLflow and Ray keep settings; set HOME to a folder" in capsys.readouterr().err
    )


@pytest.mark.parametrize(("sweep", "is_pruned"), [("lm.search_pareto_laptop", True), ("lm.search_pareto", False)])
def test_show_says_whether_a_search_prunes(capsys, sweep, is_pruned):
    cli.show(sweep)
    assert ("pruned      a condition gets its other seeds only if" in capsys.readouterr().out) == is_pruned


def test_what_an_equal_cost_was_computed_from_is_refused_where_it_would_run_and_not_in_a_query(monkeypatch, capsys):
    changed = ("lm.equal_cost", "--set", "hidden_size=100")
    for command in (("plan",), ("train", "--condition", "wide,testing")):
        assert call(monkeypatch, *command, *changed) == 2
        assert "`hidden_size` cannot be set for 'wide,testing' of lm.equal_cost" in capsys.readouterr().err
    assert find_recorded("lm.equal_cost", False, ["hidden_size=100"]).conditions[0].name == "baseline,hidden_size=100"
    baseline = find("lm.equal_cost", False, ["hidden_size=100"], None, conditions=["baseline"])
    assert [one.name for one in baseline.conditions] == ["baseline,hidden_size=100"]


def test_where_runs_can_be_kept_is_said_of_what_lies_among_them(workplace):
    assert "PONDERAY_RUNS" in cli._remedy(str(read_settings().runs / "replicates"))
    assert cli._remedy("/dev/full") == "" and "have room" in cli._remedy("")


LOUD = """
from dataclasses import dataclass

import ponderay


@dataclass(frozen=True)
class Config:
    seed: int = 1
    text: str = "a\\x1b[2J\\u202eb"


def train(config, trial):
    trial.report({"error": 1.0}, step=0)


loud = ponderay.Sweep(
    name="loud",
    description="Nothing \\x1b]0;mine\\x07 is \\x1b[2J\\u202elearnt.",
    trainable=__name__,
    base=Config(),
    objectives=(ponderay.Objective("error"),),
    conditions=(ponderay.Condition("a", {"text": "c\\x1b[31m"}),),
)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "loud.py:loud"),
        ("sweeps", "loud.py"),
        pytest.param(("check", "loud.py:loud"), marks=pytest.mark.slow),  # which trains it again and again
        ("sho\u202ew",),
        ("show", "asr.demo", "--\u202ex"),
        ("show", "asr.demo", "more\x1b[2J"),
        ("show", "asr.demo", "--format\u2066", "x"),
        ("sweeps", "--format", "x\u202ey"),
        ("show", "asr\u202e.demo"),
        ("data", "get", "\x1b[2J"),
        ("data", "ge\u202et"),
    ],
    ids=ascii,
)
def test_what_others_have_written_does_nothing_in_a_terminal(workplace, monkeypatch, capsys, arguments):
    (workplace / "loud.py").write_text(LOUD)
    monkeypatch.syspath_prepend(str(workplace))
    monkeypatch.setattr(sys, "argv", ["ponderay", *arguments])
    with contextlib.suppress(SystemExit):
        cli.main()
    said = capsys.readouterr()
    assert {sign for sign in said.out + said.err if not sign.isprintable()} == {"\n"}


@pytest.mark.parametrize(("sign", "length"), [("x", 70_000), ("x ", 5_000)])
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "TEXT"),
        ("show", "asr.TEXT"),
        ("show", "TEXT.py:x"),
        ("TEXT",),
        ("show", "asr.demo", "TEXT"),
        ("show", "asr.demo", "--TEXT"),
        ("show", "asr.demo", "--seeds", "TEXT"),
        ("show", "asr.demo", "--set", "TEXT"),
        ("show", "asr.demo", "--set", "TEXT=1"),
        ("show", "asr.demo", "--set", "training.num_epochs=TEXT"),
        ("sweeps", "--format", "TEXT"),
        ("sources", "TEXT"),
        ("status", "TEXT"),
        ("compare", "asr.demo", "TEXT", "random"),
        ("verify", "TEXT.zip"),
        ("data", "get", "TEXT"),
        ("data", "get", "mini-librispeech", "--subset", "TEXT"),
        ("data", "get", "mini-librispeech", "--source", "TEXT"),
        ("data", "check", "TEXT"),
    ],
    ids=" ".join,
)
def test_a_long_text_is_not_said_again_to_its_end(workplace, monkeypatch, capsys, arguments, sign, length):
    text = (sign * length)[:length]
    assert call(monkeypatch, *(argument.replace("TEXT", text) for argument in arguments)) in (1, 2, 3)
    said = capsys.readouterr()
    assert 0 < len(said.out + said.err) < 3_000


@pytest.mark.parametrize(
    "variable", ["PONDERAY_RUNS", "PONDERAY_TRACKING_URI", "PONDERAY_STORAGE", "PONDERAY_PRICE_PER_DEVICE_HOUR"]
)
def test_neither_is_that_of_a_variable(workplace, monkeypatch, capsys, variable):
    monkeypatch.setenv(variable, "x" * 70_000)
    call(monkeypatch, "status", "asr.demo")
    said = capsys.readouterr()
    assert 0 < len(said.out + said.err) < 3_000
