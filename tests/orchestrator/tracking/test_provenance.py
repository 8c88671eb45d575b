"""What is said of where a study came from, and what is never shown."""

import pytest

from orchestrator.results.study import Origin, Study
from orchestrator.tracking import provenance
from orchestrator.tracking.client import Tracking
from orchestrator.tracking.provenance import read_provenance
from tests.orchestrator.driven import new_settings
from tests.orchestrator.recorded import replicate

PACKAGES = "python==3 torch==2"


@pytest.fixture
def settings(tmp_path):
    return new_settings(tmp_path)


def recorded(commands, configs=None, commit="c0ffee"):
    """A study with a condition for each command."""
    facts = {"device": "cpu", "data_fingerprint": "d1"}
    made = [replicate(f"c{i}", i + 1, host=f"host{i % 2}", **facts) for i in range(len(commands))]
    origins = {one.key: Origin(commit, PACKAGES, command) for one, command in zip(made, commands, strict=True)}
    configs = {one.condition: configs or {"seed": "1", "lr": "0.1"} for one in made}
    return Study("asr.demo", tuple(made), configs=configs, origins=origins)


def test_distinct_values_come_in_the_order_first_seen(settings):
    found = read_provenance(recorded(["ponderay run b", "ponderay train --set 'a b=1'", "ponderay run b"]), settings)
    assert found.commits == ("c0ffee",) and found.packages == (PACKAGES,)
    assert found.commands == ("ponderay run b", "ponderay train --set 'a b=1'")
    assert (found.hosts, found.devices) == (("host0", "host1"), ("cpu",))
    assert (found.code_versions, found.fingerprints, found.seeds) == (("v1",), ("d1",), (1, 2, 3))
    assert found.configs == {name: {"lr": "0.1"} for name in ("c0", "c1", "c2")}
    assert found.diffs == {} and found.notes == ()


def test_of_many_conditions_the_wanted_ones_are_listed_first(settings, monkeypatch):
    monkeypatch.setattr(provenance, "MOST_CONFIGS", 2)
    monkeypatch.setattr(provenance, "MOST_VALUES", 1)
    found = read_provenance(recorded([f"ponderay run {name}" for name in "abcd"]), settings, conditions=["c3"])
    assert list(found.configs) == ["c3", "c0"]
    assert found.commands == ("ponderay run a",) and found.commits == ("c0ffee",)
    assert found.notes == ("Of 4 commands the first 1 are listed.", "Configs of 2 of 4 conditions are listed.")


def test_each_diff_comes_once_by_the_name_of_a_session_and_very_large_ones_are_left_out(settings, monkeypatch):
    monkeypatch.setattr(provenance, "MOST_DIFF_BYTES", 20)
    tracking = Tracking(settings)
    run_id = tracking.sweep_run("asr.demo")
    files = {"5e5510.diff": "-old\n+new ü\n", "7777.diff": "-old\n+new ü\n", "large.diff": "x" * 21, "note.txt": "x"}
    for name, text in files.items():
        tracking._client.log_text(run_id, text, f"uncommitted/{name}")
    tracking._client.log_text(run_id, "secret", "elsewhere/other.diff")
    found = read_provenance(recorded(["ponderay run a"]), settings)
    assert found.diffs == {"5e5510": "-old\n+new ü\n"}
    assert found.notes == ("uncommitted/large.diff has 21 bytes and is not shown; MLflow has it.",)


def test_files_that_cannot_be_reached_are_noted(settings, monkeypatch):
    def fail(*_):
        raise OSError("no route to http://me:hunter2@lab\nfor the files")

    monkeypatch.setattr(provenance, "load_files", fail)
    found = read_provenance(recorded(["ponderay run a"]), settings)
    assert found.notes == ("Uncommitted changes could not be read: no route to http://me:***@lab",)


def test_a_study_of_which_no_more_is_known_has_what_its_replicates_say(settings):
    found = read_provenance(Study("asr.other", (replicate("a", 3, host="here"),)), settings)
    assert (found.hosts, found.seeds, found.commits, found.configs, found.notes) == (("here",), (3,), (), {}, ())


def test_secrets_are_masked_in_configs_and_commands(settings):
    config = {
        "data.url": "https://me:hunter2@host/x",
        "data.token": "hunter2",
        "data.password": 1234,
        "tokens": "words",
    }
    found = read_provenance(recorded(["ponderay run a --set data.token=hunter2"], config), settings)
    hidden = {"data.url": "https://me:***@host/x", "data.token": "***", "data.password": "***"}
    assert found.configs["c0"] == hidden | {"tokens": "words"}
    assert "hunter2" not in found.commands[0]
