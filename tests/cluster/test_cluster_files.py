"""The files for `ray up`: valid to Ray's own checks, closed, and in step with the repository."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from orchestrator.cluster.autoscaling import addable

ROOT = Path(__file__).parents[2]
FILES = ("cluster.yaml", "cluster.local.yaml")


def load(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return content


def start_commands(content: dict[str, Any]) -> list[str]:
    return [*content["head_start_ray_commands"], *content["worker_start_ray_commands"]]


@pytest.mark.parametrize("name", FILES)
def test_ray_takes_the_file_as_it_is(name):
    validate_config(prepare_config(load(name)))


@pytest.mark.parametrize("name", FILES)
def test_ray_would_not_take_a_misspelt_one(name):
    import jsonschema

    with pytest.raises(jsonschema.ValidationError):
        validate_config(prepare_config(load(name) | {"idle_timeout_minuets": 10}))


@pytest.mark.parametrize("name", FILES)
def test_all_that_make_installs_from_is_brought_along(name):
    mounts = load(name)["file_mounts"]
    sources = {local for local in mounts.values() if not local.startswith("~")}
    assert {
        "orchestrator", "search_spaces", "trainables", "pyproject.toml", "constraints.txt", "Makefile", "LICENSE",
    } <= sources  # fmt: skip
    assert all((ROOT / source).exists() for source in sources)
    assert mounts["~/.ray/auth_token"] == "~/.ray/auth_token"


@pytest.mark.parametrize("name", FILES)
def test_dashboard_and_tracking_server_stay_on_loopback_and_tokens_are_asked_for(name):
    content = load(name)
    (head,) = [command for command in content["head_start_ray_commands"] if "ray start" in command]
    (server,) = [command for command in content["head_start_ray_commands"] if "ponderay serve" in command]
    assert "--dashboard-host=127.0.0.1" in head and "0.0.0.0" not in (ROOT / name).read_text(encoding="utf-8")
    assert "--host" not in server
    assert any("RAY_AUTH_MODE=token" in command and ".bashrc" in command for command in content["setup_commands"])


@pytest.mark.parametrize("name", FILES)
def test_no_line_holds_a_secret_and_lines_to_fill_in_are_marked(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"AKIA|password|secret|BEGIN", text, re.IGNORECASE)
    lines = text.splitlines()
    blanks = [
        number for number, line in enumerate(lines) if re.search(r"YOUR-|/mnt/", line) and line.lstrip()[0] != "#"
    ]
    assert blanks and all(any("<--" in line for line in lines[number - 2 : number + 1]) for number in blanks)


def test_the_cluster_on_aws_grows_from_nothing_and_shrinks_again():
    content = prepare_config(load("cluster.yaml"))
    assert content["available_node_types"]["gpu"]["min_workers"] == 0 < content["idle_timeout_minutes"]
    most = addable(content)
    assert (most.num_cpus, most.num_gpus, most.node_gpus) == (16, 4, 1)
    assert content["available_node_types"]["head"]["resources"] == {"CPU": 0}


def test_images_are_named_for_what_ray_takes_by_itself_is_too_old_for_python():
    kinds = prepare_config(load("cluster.yaml"))["available_node_types"].values()
    assert all(kind["node_config"]["ImageId"].startswith("ami-") for kind in kinds)


def test_all_machines_of_the_local_file_are_started():
    content = load("cluster.local.yaml")
    assert content["min_workers"] == content["max_workers"] == len(content["provider"]["worker_ips"])


def test_machines_of_a_job_see_the_same_runs():
    for name in FILES:
        commands = [command for command in start_commands(load(name)) if "ray start" in command]
        runs = {match for command in commands for match in re.findall(r"PONDERAY_(?:RUNS|STORAGE)=[^\s;]+", command)}
        assert runs and len(commands) == 2 and all(one in command for one in runs for command in commands)
