"""The files for `ray up`: valid to Ray's own checks, closed, and in step with the repository."""

import re
import subprocess
from pathlib import Path
from typing import Any

import boto3
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
    assert (most.num_cpus, most.num_gpus, most.node_gpus) == (16, 4, 1)  # of both kinds together
    assert content["available_node_types"]["head"]["resources"] == {"CPU": 0}


def test_images_are_named_for_what_ray_takes_by_itself_is_too_old_for_python():
    kinds = prepare_config(load("cluster.yaml"))["available_node_types"].values()
    assert all(kind["node_config"]["ImageId"].startswith("ami-") for kind in kinds)


@pytest.mark.slow
def test_ray_starts_the_machines_of_aws_closed_to_strangers_encrypted_and_without_old_metadata(monkeypatch, tmp_path):
    """By Ray's own code against a stand-in of AWS: the group and the roles are those of deploy/aws.yaml."""
    from moto import mock_aws

    monkeypatch.setenv("HOME", str(tmp_path))  # where Ray puts the key that it makes
    (tmp_path / ".ssh").mkdir()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    with mock_aws():
        from ray.autoscaler._private.aws.config import bootstrap_aws
        from ray.autoscaler._private.aws.node_provider import AWSNodeProvider

        ec2, iam, stacks = (boto3.client(name, region_name="us-west-2") for name in ("ec2", "iam", "cloudformation"))
        given = {"Network": ec2.describe_vpcs()["Vpcs"][0]["VpcId"], "Bucket": "lab", "Address": "198.51.100.7/32"}
        stacks.create_stack(
            StackName="ponderay",
            TemplateBody=(ROOT / "deploy" / "aws.yaml").read_text(encoding="utf-8"),
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
        )
        (output,) = stacks.describe_stacks(StackName="ponderay")["Stacks"][0]["Outputs"]
        image = ec2.describe_images()["Images"][0]["ImageId"]
        text = re.sub(r"ami-YOUR[\w-]*", image, (ROOT / "cluster.yaml").read_text(encoding="utf-8"))
        content = bootstrap_aws(prepare_config(yaml.safe_load(text.replace("sg-YOUR-GROUP", output["OutputValue"]))))
        kinds = content["available_node_types"]
        provider = AWSNodeProvider(content["provider"], content["cluster_name"])
        for kind, is_head in (("head", True), ("gpu", False), ("gpu_l4", False)):
            tags = {
                "ray-node-type": "head" if is_head else "worker",
                "ray-launch-config": "",
                "ray-user-node-type": kind,
            }
            provider.create_node(kinds[kind]["node_config"], tags | {"ray-node-status": "", "ray-node-name": ""}, 1)
        instances = [one for of in ec2.describe_instances()["Reservations"] for one in of["Instances"]]
        assert sorted(one["InstanceType"] for one in instances) == ["g5.xlarge", "g6.xlarge", "m6i.large"]
        assert {group["GroupId"] for one in instances for group in one["SecurityGroups"]} == {output["OutputValue"]}
        assert all(kind["node_config"]["MetadataOptions"]["HttpTokens"] == "required" for kind in kinds.values())
        assert all(volume["Encrypted"] for volume in ec2.describe_volumes()["Volumes"])
        groups = ec2.describe_security_groups()["SecurityGroups"]
        doors = [rule for group in groups for rule in group["IpPermissions"] if rule["IpRanges"]]
        assert [(rule["FromPort"], rule["IpRanges"][0]["CidrIp"]) for rule in doors] == [(22, given["Address"])]
        policy = str(iam.get_role_policy(RoleName="ponderay-head", PolicyName="workers")["PolicyDocument"])
        assert "ec2:RunInstances" in policy and not re.search(r":\*['\"]", policy), "no action is all actions"
        assert policy.count("'Resource': '*'") == 1, "only looking is allowed everywhere"


def test_the_image_has_what_its_cluster_and_its_pods_need():
    lines = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split() for line in lines if line and line[0] != "#"]
    assert [step[-1] for step in steps if step[0] == "USER"] == ["1000"], (
        "not root, and a number, by which Kubernetes knows it"
    )
    copied = {source for step in steps if step[0] == "COPY" for source in step[2:-1]}
    mounts = load("cluster.yaml")["file_mounts"].values()
    assert copied == {local for local in mounts if not local.startswith("~")}
    (install,) = [step for step in steps if step[:2] == ["RUN", "apt-get"]]
    assert {"make", "postgresql", "python3-venv", "rsync", "wget"} <= set(install)
    assert "--constraint constraints.txt" in " ".join(" ".join(step) for step in steps)


def is_there(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False


@pytest.mark.skipif(not is_there("hadolint", "--version"), reason="hadolint is not installed")
def test_hadolint_finds_nothing():
    subprocess.run(["hadolint", str(ROOT / "deploy" / "Dockerfile")], check=True)  # noqa: S603


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.skipif(not is_there("docker", "info"), reason="no docker daemon runs here")
def test_the_image_is_built_and_its_ponderay_answers():
    build = ["docker", "build", "--quiet", "--file", "deploy/Dockerfile", "."]
    image = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    subprocess.run(["docker", "run", "--rm", image, "ponderay", "sweeps"], check=True)  # noqa: S603


def test_all_machines_of_the_local_file_are_started():
    content = load("cluster.local.yaml")
    assert content["min_workers"] == content["max_workers"] == len(content["provider"]["worker_ips"])


def test_machines_of_a_job_see_the_same_runs():
    for name in FILES:
        commands = [command for command in start_commands(load(name)) if "ray start" in command]
        runs = {match for command in commands for match in re.findall(r"PONDERAY_(?:RUNS|STORAGE)=[^\s;]+", command)}
        assert runs and len(commands) == 2 and all(one in command for one in runs for command in commands)
