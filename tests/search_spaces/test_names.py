"""The one rule for names of sweeps and conditions, where they are built and where they become paths."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.environment.settings import Settings
from orchestrator.report.front_files import FrontFiles
from orchestrator.tracking.declaration import sweep_of, text_of
from search_spaces.asr_laptop import demo
from search_spaces.find import sweep_functions
from search_spaces.names import CONDITION_LENGTH, GENERATED_LENGTH, condition_name_of
from search_spaces.settings import declared_name, name_with
from search_spaces.sweep import Condition, grid
from trainables.errors import InputError

BAD = ("", ".", "..", "../x", "/tmp/x", "a/b", "a\\b", "a\0b", "a\n", "a\nb", "\ta", "-a", ".hidden", " a", "a\x1b[2J")
BAD_ANYWHERE = (*BAD, "x" * 300, None, 5)


@pytest.mark.parametrize("name", BAD_ANYWHERE)
def test_no_sweep_and_no_condition_is_called_so(name):
    with pytest.raises(InputError, match=r"^A sweep's name must begin with a letter or digit, "):
        replace(demo(), name=name)
    with pytest.raises(InputError, match=r"^A condition's name must begin with a letter or digit, "):
        Condition(name)


@pytest.mark.parametrize("name", [*(one for one in BAD if not one.startswith(("-", ".h", " "))), "x" * 300])
def test_no_name_leads_out_of_its_folder(tmp_path: Path, name):
    settings = Settings(tmp_path / "runs", "sqlite:///mlflow.db")
    for make in (settings.replicates, settings.reports, lambda one: FrontFiles.of(one, settings.figures)):
        with pytest.raises(InputError, match=r"^A name that becomes a folder or file must be one line without / and"):
            make(name)


@pytest.mark.parametrize(
    "name", ["act.tau_parity", "asr.demo.smoke", "a..b", "x" * 100, *(f"{name}.smoke" for name in sweep_functions())]
)
def test_names_in_use_stay_names(tmp_path: Path, name):
    assert replace(demo(), name=name).name == name
    assert Settings(tmp_path, "").replicates(name).parent.parent == tmp_path


@pytest.mark.parametrize("name", ["baseline,width=318", "0003 nu=0.01,mu=1e-05 ab12", "a=..-data", "x" * 250, "aé"])
def test_conditions_in_use_keep_their_names(name):
    assert Condition(name).name == name == condition_name_of(name)


def test_a_grid_of_many_paths_is_named_and_no_two_alike():
    paths = {f"training.a_rather_long_name_of_a_setting_{number}": [number] for number in range(12)}
    names = [one.name for one in grid(paths | {"network.dropout": [0.1, 0.2]})]
    assert len(set(names)) == 2 and {len(name) for name in names} == {GENERATED_LENGTH}


def test_settings_that_have_no_room_in_a_name_are_counted():
    settings = {f"part.a_rather_long_name_of_a_setting_{number}": number for number in range(12)}
    first = name_with("surprisal", settings, list(settings), demo().base)
    other = name_with(
        "surprisal", settings | {"part.a_rather_long_name_of_a_setting_3": 7}, list(settings), demo().base
    )
    assert first.startswith("surprisal,12 settings ") and first != other and len(first) <= CONDITION_LENGTH
    assert declared_name(first, settings) == declared_name(other, settings) == "surprisal"
    assert Condition(first, settings=settings).declared == "surprisal"


def test_a_recorded_study_with_names_that_are_refused_now_can_be_read():
    recorded = text_of(demo())
    long, torn = "y" * 300, "surprisal\n"
    read = sweep_of(recorded, [long, torn])
    assert [one.name for one in read.conditions] == [condition_name_of(long), "surprisal", "random"]
    assert read.reference == json.loads(recorded)["reference"] == "random"
