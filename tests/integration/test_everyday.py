"""What a researcher does with an own model between the first run and the paper."""

import base64
import dataclasses
import functools
import importlib.metadata
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pandas
import pytest
from rich.console import Console
from typer.testing import CliRunner

import ponderay
from orchestrator.cli.main import app
from orchestrator.environment.settings import read_settings
from orchestrator.results.config_columns import config_columns
from orchestrator.results.lookup import no_points
from orchestrator.run import run_here
from orchestrator.worker import trainable
from search_spaces.find import find_sweep
from search_spaces.settings import same_name
from trainables.errors import InputError

DIGITS = """
import dataclasses, json, pathlib
import ponderay

@dataclasses.dataclass(frozen=True)
class Optimiser:
    lr: float = 0.1
    name: str = "sgd"

@dataclasses.dataclass(frozen=True)
class Digits:
    width: int = 8
    layers: tuple[int, ...] = (4, 4)
    optimiser: Optimiser = Optimiser()
    seed: int = 1

def train(config, trial):
    for step in (1, 2):
        folder = pathlib.Path(f"checkpoint-{config.width}-{config.seed}")
        folder.mkdir(exist_ok=True)
        (folder / "model.json").write_text(json.dumps([config.width, config.seed, step]))
        loss = config.optimiser.lr + 1 / (3 * config.width) / step + config.seed * 1e-3
        trial.report({"loss": loss, "macs": config.width**2}, step=step, checkpoint=folder)

sweep = ponderay.Sweep(
    name="digits", description="A loss that falls with the width.", trainable=__name__, base=Digits(),
    conditions=ponderay.grid({"width": [4, 8, 16]}), seeds=(1, 2),
    objectives=(ponderay.Objective("loss"), ponderay.Objective("macs")), reference="width=8",
)
"""


@pytest.fixture
def place(workplace):
    """The working folder with a sweep in `digits.py` that has run."""
    (workplace / "digits.py").write_text(DIGITS)
    yield workplace
    sys.modules.pop("digits", None)
    trainable._load.cache_clear()


def command(*arguments, code=0):
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


def train(*arguments):
    command("train", "digits.py:sweep", *arguments)


def test_config_values_are_typed_columns_of_every_table_for_programs(place):
    for condition in ("width=8", "width=16"):
        train("--condition", condition)
    frame = ponderay.load("digits").to_dataframe()
    own = [name for name in frame if name.startswith("config.")]
    assert own == ["config.width", "config.layers", "config.optimiser.lr", "config.optimiser.name"]
    assert frame[own].values.tolist() == [[8, "(4, 4)", 0.1, "sgd"], [16, "(4, 4)", 0.1, "sgd"]]
    assert frame["config.width"].dtype == int and frame["config.optimiser.lr"].dtype == float
    for table in ("status", "pareto"):
        rows = json.loads(command(table, "digits", "--format", "json"))
        rows = rows["points"] if table == "pareto" else rows
        assert {row["condition"]: [row[name] for name in own] for row in rows} == dict(
            zip(frame["condition"], frame[own].values.tolist(), strict=True)
        )
        assert ",".join(own) in command(table, "digits", "--format", "csv").splitlines()[0]
    command("report", "digits", "--output", "reports")
    for kind in ("replicates", "conditions"):
        written = pandas.read_csv(f"reports/digits.{kind}.csv").set_index("condition")
        assert written.loc["width=16", own].tolist() == [16, "(4, 4)", 0.1, "sgd"]


@pytest.mark.parametrize(
    ("ending", "read"),
    [
        ("csv", pandas.read_csv),
        ("json", functools.partial(pandas.read_json, precise_float=True)),
        ("parquet", pandas.read_parquet),
    ],
)
def test_an_exported_study_is_read_again_with_all_digits(place, ending, read):
    train("--condition", "width=8")
    command("export", "digits", "--to", f"study.{ending}")
    study, frame = ponderay.load("digits"), read(f"study.{ending}")
    again = ponderay.Study.from_dataframe(frame, [ponderay.Objective("loss")], sweep="digits")
    (before,), (after,) = study.replicates, again.replicates
    assert after == before and before.metrics["loss"] == 0.1 + 1 / 24 / 2 + 1e-3
    assert again.configs["width=8"] == {path: text for path, text in study.configs["width=8"].items() if path != "seed"}


def test_a_file_of_another_kind_is_refused(place):
    train("--condition", "width=8")
    with pytest.raises(InputError, match=r"--to must end in .parquet, .csv, .json, but got study.xlsx"):
        command("export", "digits", "--to", "study.xlsx")
    command("export", "digits", "--to", "new/study.csv")
    for given in (
        ("export", "digits", "--to", "folder.csv"),
        ("pareto", "digits", "--format", "pdf", "--output", "folder.pdf"),
    ):
        Path(given[-1]).mkdir()
        with pytest.raises(InputError, match=r"must be a file, but folder\..* is a folder"):
            command(*given)
    with pytest.raises(InputError, match=r"--to must name a folder that is there, .*study\.csv' is a file"):
        command("checkpoint", "digits", "width=8", "--to", "new/study.csv")
    assert sorted(path.name for path in place.iterdir() if "folder" in path.name) == ["folder.csv", "folder.pdf"]


def test_the_best_condition_has_its_typed_config_and_its_checkpoint(place):
    for condition in ("width=8", "width=16"):
        train("--condition", condition, "--seed", "2")
    study = ponderay.load("digits.py:sweep")
    best = study.best("loss")
    assert (best.condition, best.seeds) == ("width=16", (2,))
    config = best.config()
    assert (type(config).__name__, config.width, config.layers, config.seed) == ("Digits", 16, (4, 4), 2)
    assert study.best("loss", "maximize").condition == study.best("macs").condition == "width=8"
    (point,) = (point for point in ponderay.pareto(study).points if point.name == "width=8")
    assert study.trained(point).config().width == 8
    assert json.loads((best.checkpoint() / "model.json").read_text()) == [16, 2, 2]
    command("checkpoint", "digits", "width=16", "2", "--to", "models")
    (copied,) = (place / "models").iterdir()
    assert json.loads((copied / "model.json").read_text()) == [16, 2, 2]
    with pytest.raises(InputError, match=r"no complete seed 1; complete are 2"):
        best.checkpoint(1)
    said = str(no_points(study, [ponderay.Objective("mac")]))
    assert said.endswith("has the metric 'mac'; they have loss, macs; the nearest is 'macs'.")
    assert {"run", "pareto", "Study"} <= set(dir(ponderay))


def test_the_config_of_a_condition_with_settings_is_made_again(place):
    train("--condition", "width=8", "--set", "optimiser.lr=0.25", "--set", "layers=[2]")
    (name,) = ponderay.load("digits").conditions
    config = ponderay.load("digits").trained(name).config()
    assert (config.width, config.layers, config.optimiser.lr, config.seed) == (8, (2,), 0.25, 1)


def test_a_study_is_called_by_its_name_or_by_the_place_of_its_sweep(place):
    train("--condition", "width=8")
    command("train", "digits", "--condition", "width=4")  # by its name, once it is recorded
    for name in ("digits", "digits.py:sweep", "digits:sweep"):
        assert len(ponderay.load(name).replicates) == 2
        assert ponderay.compare(name, "width=4", "width=8")
        assert "width=4" in command("status", name)
    (place / "digits.py").write_text(DIGITS.replace('"digits"', '"numbers"'))
    sys.modules.pop("digits")
    with pytest.raises(InputError, match=r"digits was run as digits.py:sweep, which declares numbers now"):
        command("train", "digits", "--condition", "width=4")


def test_a_grid_on_the_command_line_is_conditions_like_others(place):
    shown = command("show", "digits.py:sweep", "--grid", "width=8,16", "--grid", "optimiser.name=adam,sgd")
    assert [line.split()[1] for line in shown.splitlines() if line.startswith("condition")] == [
        "width=8,name=adam:", "width=8,name=sgd:", "width=16,name=adam:", "width=16,name=sgd:",
    ]  # fmt: skip
    of_one = ("--condition", "width=4", "--grid", "layers=[4,4],[8]", "--set", "optimiser.lr=1")
    assert "condition   width=4,layers=-8-,lr=1: width = 4, layers = [8]" in command("show", "digits.py:sweep", *of_one)
    for wrong in ("width", "depth=1,2", "width=8,8"):
        with pytest.raises(InputError):
            command("show", "digits.py:sweep", "--grid", wrong)


def test_a_name_means_its_values_however_they_are_written(place):
    (place / "digits.py").write_text(
        DIGITS.replace('"width": [4, 8, 16]', '"width": [4, 8], "optimiser.lr": [0.0, 0.001]')
        .replace('"width=8",', '"width=8.0,lr=0.0",')
        .replace('"A loss that falls with the width."', '""')
    )
    assert "reference   width=8,lr=0\n" in command("show", "digits.py:sweep")
    train("--condition", "width=4,lr=1e-3")
    train("--condition", "lr=0.0,width=8")
    assert ponderay.load("digits").conditions == ("width=4,lr=0.001", "width=8,lr=0")
    (found, _) = ponderay.compare("digits", "width=4.0,lr=1e-3", "width=8,lr=0.0")
    assert (found.a, found.b) == ("width=4,lr=0.001", "width=8,lr=0")
    assert "width=8,lr=0" in command("compare", "digits", "width=4,lr=1e-3", "lr=0,width=8")


def test_the_command_says_its_version_and_is_a_module_too(place):
    said = command("--version")
    assert said == f"ponderay {importlib.metadata.version('ponderay')}\n"
    done = subprocess.run([sys.executable, "-m", "ponderay", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == said


@pytest.mark.parametrize(
    ("typed", "expected"), [("exp", ["export"]), ("status asr.dem", ["asr.demo"]), ("run mi", ["mine"])]
)
def test_a_shell_completes_commands_and_sweeps(place, typed, expected):
    (place / "runs/replicates/mine").mkdir(parents=True)
    line = f"ponderay {typed}"
    completion = {"_PONDERAY_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    program = Path(sys.executable).with_name("ponderay")
    done = subprocess.run(  # noqa: S603
        [program], env=os.environ | completion, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == expected


def test_a_notebook_shows_a_study_its_front_and_its_comparisons(place):
    for condition in ("width=4", "width=8", "width=16"):
        train("--condition", condition)
    study = ponderay.load("digits")
    front, compared = ponderay.pareto(study), ponderay.compare(study, "width=4", "width=8")
    for shown in (study, front, compared):
        assert len(repr(shown).splitlines()) <= 10
        assert all(name in repr(shown) for name in ("width=4",)) and "<table>" in shown._repr_html_()
    (drawing,) = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", front._repr_html_())
    assert b"<svg" in base64.b64decode(drawing) and b"width=16" in base64.b64decode(drawing)
    frame = front.to_dataframe()
    assert frame["condition"].tolist() == ["width=16", "width=8", "width=4"] and frame["config.width"].tolist() == [
        16,
        8,
        4,
    ]
    assert frame["loss"].tolist() == [point.summaries[0].mean for point in front.points]
    assert compared.to_dataframe()["difference"].tolist() == [found.difference for found in compared]
    (axes,) = front.plot(log="x", labels={"width=4": "tiny"}, only=["width=4", "width=8"]).axes
    assert [text.get_text() for text in axes.texts] == ["width=8", "tiny"] and axes.get_xscale() == "log"
    with pytest.raises(InputError, match=r"'width=5' must be a point of the front"):
        front.plot(only=["width=5"])


def test_names_in_a_notebook_are_text():
    evil = ponderay.Study.from_dataframe(
        pandas.DataFrame(
            {"condition": ["<script>x</script>", "b"], "seed": [1, 1], "loss": [1.0, 2.0], "macs": [2.0, 1.0]}
        ),
        [ponderay.Objective("loss"), ponderay.Objective("macs")],
    )
    shown = evil._repr_html_() + ponderay.pareto(evil)._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;" in shown and "nan" not in evil._repr_html_()


@pytest.mark.slow
def test_figures_for_a_paper_keep_text_as_text_and_have_the_size_of_a_column(place):
    for condition in ("width=4", "width=8", "width=16"):
        train("--condition", condition)
    drawn = [
        ("pareto", "--log", "both", "--size", "85mm", "--label", "width=4=the $small$ one"),
        ("curve", "--log", "y", "--size", "60mm", "--label", "all=digits"),
    ]
    for (name, *options), width_mm in zip(drawn, (85, 60), strict=True):
        pdf, svg, png = (drawn_twice(name, "digits", "--format", kind, *options) for kind in ("pdf", "svg", "png"))
        assert b"/Type /Font" in pdf and b"/Subtype /Type3" not in pdf
        width_pt = float(re.search(rb'width="([\d.]+)pt"', svg)[1])
        assert width_pt == pytest.approx(width_mm / 25.4 * 72, abs=0.1)
        assert (b"the $small$ one" in svg) == (name == "pareto") and b"loss" in svg
        assert struct.unpack(">II", png[16:24])[0] == pytest.approx(width_mm / 25.4 * 600, abs=1)


def drawn_twice(*arguments):
    """The file of a figure: equal figures are equal files."""
    contents = []
    for _ in range(2):
        contents.append(Path(command(*arguments).removeprefix("Figure: ").removesuffix("\n")).read_bytes())
    assert contents[0] == contents[1]
    return contents[0]


@pytest.mark.slow
def test_a_search_says_what_its_parameters_matter(place):
    space = "{'width': ponderay.Integer(2, 64), 'optimiser.lr': ponderay.Real(1e-3, 1.0)}"
    (place / "digits.py").write_text(
        DIGITS.replace(
            'conditions=ponderay.grid({"width": [4, 8, 16]}), seeds=(1, 2)',
            f"search=ponderay.Search({space}, num_trials=20), seeds=(1,)",
        ).replace(', reference="width=8"', "")
    )
    run_here(find_sweep("digits.py:sweep"), read_settings(), Console(quiet=True), accept_code=False)
    rows = json.loads(command("importance", "digits", "--format", "json"))
    assert {row["parameter"] for row in rows} == {"width", "optimiser.lr"}
    assert rows[0]["parameter"] == "optimiser.lr" and sum(row["loss"] for row in rows) == pytest.approx(1)
    table = command("importance", "digits")
    assert "optimiser.lr" in table and "functional ANOVA" in table
    frame = ponderay.load("digits").to_dataframe()
    assert len(frame) == 20 and frame["config.width"].nunique() > 2
    assert frame["config.optimiser.lr"].between(1e-3, 1).all()
    best = ponderay.load("digits").best("loss")
    command("checkpoint", "digits", f"{int(best.condition[:4])}", "--to", "models")  # by the trial's number
    assert [file.name.startswith(f"digits.{best.condition}") for file in (place / "models").iterdir()] == [True]
    assert best.config().optimiser.lr == frame.loc[frame["loss"].idxmin(), "config.optimiser.lr"]


def test_runs_of_others_are_imported_and_every_command_answers_of_them(place):
    rows = {
        "Name": ["a", "b", "c", "d", "e"], "State": ["finished", "finished", "crashed", "finished", "finished"],
        "lr": ["0.1", "1e-1", "0.1", "0.001", "1e-3"], "width": [8, 8, 8, 16, 16], "seed": [1, 2, 3, 1, 2],
        "loss": [0.5, 0.52, None, 0.3, 0.31], "macs": [64, 64, 64, 256, 256],
    }  # fmt: skip
    pandas.DataFrame(rows).to_csv("runs.csv", index=False)
    options = ("--seed", "seed", "--condition", "lr,width", "--objective", "loss", "--objective", "macs:minimize")
    said = command("import", "runs.csv", *options, "--reference", "lr=0.1,width=8", "--name", "theirs")
    assert said == "theirs: 5 runs of 2 conditions (4 complete, 1 failed); metrics: loss, macs.\n"
    study = ponderay.load("theirs")
    assert study.conditions == ("lr=0.1,width=8", "lr=0.001,width=16")
    assert [one.state for one in study.replicates] == ["complete", "complete", "failed", "complete", "complete"]
    assert study.summary("lr=0.1,width=8", "loss").mean == 0.51
    assert "lr=0.001,width=16" in command("pareto", "theirs") and "better" in command("compare", "theirs")
    assert "theirs.report.html" in command("report", "theirs", "--output", "reports")
    assert "4 complete, 1 failed" in command("status") and study.best("loss").condition == "lr=0.001,width=16"
    rows["loss"][0] = 0.4
    pandas.DataFrame(rows).to_csv("runs.csv", index=False)
    command("import", "runs.csv", *options, "--name", "theirs")
    assert ponderay.load("theirs").values("lr=0.1,width=8", "loss") == (0.4, 0.52)
    train("--condition", "width=8")
    with pytest.raises(InputError, match=r"digits is a sweep that ran here; give the import another name by --name"):
        command("import", "runs.csv", *options, "--name", "digits")
    with pytest.raises(InputError, match=r"There must be a column 'depth'"):
        command("import", "runs.csv", "--seed", "seed", "--condition", "depth", "--objective", "loss")


def test_all_studies_are_listed_the_newest_first(place):
    assert "No study is recorded yet" in command("status")
    train("--condition", "width=8")
    (place / "others.py").write_text(DIGITS.replace('"digits"', '"others"').replace("* 1e-3", "* 1e-3 * [][0]"))
    CliRunner().invoke(app, ["train", "others.py:sweep", "--condition", "width=4"])
    sys.modules.pop("others", None)
    rows = json.loads(command("status", "--format", "json"))
    assert [(row["study"], row["complete"], row["failed"], row["run by"]) for row in rows] == [
        ("others", 0, 1, ""), ("digits", 1, 0, ""),
    ]  # fmt: skip
    assert "1 failed" in command("status") and "1 complete" in command("status")


def test_status_says_what_has_not_begun(place):
    train("--condition", "width=8")
    assert "Not begun: width=4; width=16." in command("status", "digits.py:sweep")


def test_a_mended_fault_is_tried_again_without_a_word(place):
    (place / "digits.py").write_text(DIGITS.replace("    for step in (1, 2):", "    for step in (1, 2, [][0]):"))
    assert CliRunner().invoke(app, ["train", "digits.py:sweep", "--condition", "width=8"]).exit_code == 1
    sys.modules.pop("digits")
    trainable._load.cache_clear()
    (place / "digits.py").write_text(DIGITS)
    train("--condition", "width=8")
    assert [one.state for one in ponderay.load("digits").replicates] == ["complete"]


def test_what_json_has_no_word_for_is_text_in_a_config_column(place):
    (place / "digits.py").write_text(DIGITS.replace("    width: int = 8", "    width: int = 8\n    big: int = 10**20"))
    train("--condition", "width=8")
    (point,) = json.loads(command("pareto", "digits", "--format", "json"))["points"]
    (row,) = json.loads(command("status", "digits", "--format", "json"), parse_constant=pytest.fail)
    for found in (point, row):
        assert (found["config.big"], found["config.width"]) == (str(10**20), 8)
    command("export", "digits", "--to", "study.parquet")
    assert pandas.read_parquet("study.parquet")["config.big"].tolist() == [str(10**20)]
    found = config_columns({"a": {"clip": "inf"}, "b": {"clip": "1.0"}}, ["a", "b"])  # of runs that others made
    assert found == {"config.clip": ["inf", "1.0"]}


def test_a_figure_without_a_point_of_the_front_has_no_line(place):
    for condition in ("width=4", "width=8", "width=16"):
        train("--condition", condition)
    study = ponderay.load("digits")
    assert ponderay.pareto(study, reference="width=8").plot(only=[study.conditions[0]]).axes
    better = dataclasses.replace(
        study,
        replicates=tuple(
            dataclasses.replace(one, metrics={"loss": 1.0 + (one.condition == "width=16"), "macs": one.metrics["macs"]})
            for one in study.replicates
        ),
    )
    assert not ponderay.pareto(better).points[-1].is_front
    assert ponderay.pareto(better).plot(only=["width=16"]).axes


def test_values_under_one_last_word_keep_their_order():
    names = ["width=8,width=16", "width=16,width=8"]
    assert same_name("width=16,width=8.0", names) == "width=16,width=8"
