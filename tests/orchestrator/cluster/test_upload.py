"""What goes to a cluster, and what stays here."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from orchestrator.cluster import upload
from orchestrator.cluster.upload import find_upload, packed
from orchestrator.environment.settings import Settings
from orchestrator.tracking import checkout
from trainables.errors import InputError

SENT = {
    "pyproject.toml", "orchestrator/__init__.py", "orchestrator/credentials.py", "trainables/lm/data/words.txt",
    "trainables/tokens.txt", "trainables/secret.py",
}  # fmt: skip
LEFT_OUT = (
    ".env", ".env.local", "ponderay.toml", "keys/server.pem", "keys/server.KEY", "keys/id_ed25519", "credentials",
    "auth_token", "runs/mlflow.db", "data/timit/a.wav", "elsewhere/results/checkpoint.pt", "speech/b.wav", "kept.db",
    "orchestrator/__pycache__/a.pyc", ".mypy_cache/x.json", "ponderay.egg-info/PKG-INFO", "environment/bin/python",
    "environment/pyvenv.cfg", ".hypothesis/x", "mlruns/0/meta.yaml", "kept.db-wal", ".ponderay/commit",
    ".envrc", "secrets.toml", "kaggle.json", "keys/service-account-lab.json", "keys/service_account.json",
    "application_default_credentials.json", "keys/gcp-credentials-lab.json", "credentials.json",
    "cluster.yaml", "cluster.local.yaml", "mine/cluster.lab.yml", "ponderay-server.env", ".npmrc", "hf_token",
    "server/authentication.ini", "server/secret_key", "server/postgres/password", "server/postgres/data/base/1",
    "secrets.json", "keys/secret.yaml", "credentials.yaml", "token.txt", "api_key.txt", "my.token", "passwords.txt",
    ".secrets", ".htpasswd", ".s3cfg", ".boto", "rclone.conf", "terraform.tfstate", "aws.ppk", "vault_pass.txt",
    "wandb_api_key", ".docker/config.json", ".kube/config", ".aws/config", ".ssh/config", ".streamlit/config.toml",
    "kubeconfig", "credentials.csv", "rootkey.csv", "gcp-key.json", "key.json", "secrets/mine.txt",
    "client_secret_1.json", "terraform.tfvars", "lab.auto.tfvars", "lab.kdbx", ".env~", "prod.env~",
    ".dockercfg", ".vault-token", ".my.cnf",
    ".bash_history", ".python_history", "lab.kubeconfig", "me_accessKeys.csv", ".gnupg/x", ".azure/x", "lab.gpg",
)  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Path:
    """A project with one file of everything."""
    root = tmp_path / "project"
    for name in (*SENT, *LEFT_OUT):
        write(root / name, name)
    monkeypatch.setenv("PONDERAY_DATA", str(root / "speech"))
    monkeypatch.delenv("PONDERAY_CACHE", raising=False)
    return root


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def settings(root: Path) -> Settings:
    return Settings(root / "elsewhere", "sqlite:///x.db")


def found(root: Path) -> set[str]:
    return {file.as_posix() for file in find_upload(settings(root), root).files}


def make_repository(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)  # noqa: S603
    assert (root / ".git" / "HEAD").exists()


@pytest.mark.parametrize("is_repository", [False, True])
def test_sources_go_and_data_results_caches_and_secrets_stay(project, is_repository):
    if is_repository:
        make_repository(project)
    assert found(project) == SENT


def test_git_says_what_a_checkout_consists_of(project):
    make_repository(project)
    write(project / ".gitignore", "scratch/\n")
    write(project / "scratch" / "x.py", "")
    write(project / "new.py", "")
    write(project / "gone.py", "")
    subprocess.run(["git", "-C", str(project), "add", "gone.py"], check=True)  # noqa: S603
    (project / "gone.py").unlink()
    assert found(project) == SENT | {".gitignore", "new.py"}


def test_where_git_refuses_a_checkout_nobody_knows_what_must_stay(project, monkeypatch):
    make_repository(project)
    (project / ".git" / "HEAD").write_text("no reference\n")
    with pytest.raises(InputError, match=r"git does not read .*project: fatal: .*safe\.directory"):
        found(project)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"git is missing to read it .*; install git"):
        found(project)


def test_a_checkout_within_a_checkout_goes_too(project):
    """A submodule is one name to git, and so is another checkout that lies there."""
    make_repository(project)
    within = project / "vendored"
    make_repository(within)
    for name, text in ((".gitignore", "built/\n"), ("model.py", ""), ("built/x.py", ""), (".env", "")):
        write(within / name, text)
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["add", "model.py"], [*identity, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(within), *words], check=True)  # noqa: S603
    whole = SENT | {"vendored/.gitignore", "vendored/model.py"}
    assert found(project) == whole
    subprocess.run(["git", "-C", str(project), "add", "vendored"], check=True, capture_output=True)  # noqa: S603
    assert found(project) == whole


@pytest.mark.parametrize("is_repository", [False, True])
def test_links_that_lead_to_what_stays_are_not_followed(project, tmp_path, is_repository):
    if is_repository:
        make_repository(project)
    write(tmp_path / "outside.txt", "outside")
    (project / "out.txt").symlink_to(tmp_path / "outside.txt")
    (project / "all").symlink_to(tmp_path)
    (project / "safe.txt").symlink_to(project / ".env")
    (project / "hidden.txt").symlink_to(project / "runs" / "mlflow.db")
    (project / "nowhere.txt").symlink_to(project / "nothing")
    (project / "same.py").symlink_to("orchestrator/__init__.py")
    assert found(project) == SENT | {"same.py"}


def test_a_link_to_the_checkout_or_around_it_is_not_followed(project):
    make_repository(project)
    make_repository(project.parent)
    for name, target in (("above", ".."), ("itself", "."), ("trainables/top", "..")):
        (project / name).symlink_to(target)
    assert found(project) == SENT


@pytest.mark.parametrize("name", ["PONDERAY_DATA", "PONDERAY_CACHE"])
def test_folders_that_hold_the_project_leave_nothing_of_it_out(project, monkeypatch, name):
    write(project / ".gitignore", "speech/\n")
    make_repository(project)
    monkeypatch.setenv(name, str(project.parent))
    assert found(project) == SENT | {".gitignore"}


def test_of_an_installed_package_only_its_sources_go(project):
    (project / "pyproject.toml").unlink()
    write(project / "numpy" / "__init__.py", "")
    assert found(project) == SENT - {"pyproject.toml"}


def test_equal_contents_make_equal_packages_with_every_byte(project):
    one = find_upload(settings(project), project)
    assert one.num_bytes == sum(len(name) for name in SENT)
    with packed(one) as package:
        before = package.read_bytes()
        with zipfile.ZipFile(package) as opened:
            contents = {name: opened.read(name).decode() for name in opened.namelist()}
    assert {name: contents.pop(name) for name in checkout.to_bring()} == checkout.to_bring()
    assert contents == {name: name for name in SENT}
    assert not package.exists()
    for name in SENT:
        os.utime(project / name, (1, 1))
    with packed(find_upload(settings(project), project)) as package:
        assert package.read_bytes() == before
    write(project / "orchestrator" / "__init__.py", "changed")
    with packed(find_upload(settings(project), project)) as package:
        assert package.read_bytes() != before


@pytest.mark.parametrize("is_repository", [False, True])
def test_a_name_that_is_not_utf_8_is_refused_at_once(project, is_repository):
    if is_repository:
        make_repository(project)
    write(project / os.fsdecode(b"caf\xe9.py"), "")
    with pytest.raises(InputError, match=r"must be UTF-8, but b'caf\\xe9\.py' is not\. Rename it.*\.gitignore"):
        found(project)


def refuse_to(monkeypatch, method: str, refused: Path) -> None:
    """Has `Path.method` find `refused` closed, as it is for who is not root."""
    usual = getattr(Path, method)

    def closed(path: Path, *arguments: object, **options: object) -> object:
        if path == refused:
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path, *arguments, **options)

    monkeypatch.setattr(Path, method, closed)


def test_a_file_that_cannot_be_read_is_named(project, monkeypatch):
    one, file = find_upload(settings(project), project), project / "orchestrator" / "credentials.py"
    said = rf"{file} cannot be read: Permission denied\. Make it readable, remove it, or name it in \.gitignore"
    refuse_to(monkeypatch, "read_bytes", file)
    with pytest.raises(InputError, match=said), packed(one):
        pass
    refuse_to(monkeypatch, "stat", file)
    with pytest.raises(InputError, match=said):
        find_upload(settings(project), project)


def test_too_much_is_refused_with_what_is_large(project, monkeypatch):
    write(project / "tables" / "a" / "one.bin", "x" * 2_000_000)
    write(project / "tables" / "two.bin", "x" * 1_000_000)
    write(project / "three.bin", "x" * 1_900_000)
    write(project / "trainables" / "four.bin", "x" * 100_000)
    find_upload(settings(project), project).check_size()
    monkeypatch.setattr(upload, "LIMIT_BYTES", 4_000_000)
    with pytest.raises(InputError, match=r"At most 4 MB of sources .* has 5\.0 MB") as raised:
        find_upload(settings(project), project).check_size()
    assert "tables/ 3.0 MB, three.bin 1.9 MB, trainables/ 0.1 MB. Move large files" in str(raised.value)


def test_too_much_in_several_folders_is_told_of_all(tmp_path, monkeypatch):
    write(tmp_path / "lab" / "large_of_mine.py", "")
    write(tmp_path / "lab" / "tables.bin", "x" * 900_000)
    monkeypatch.syspath_prepend(tmp_path / "lab")
    monkeypatch.setattr(upload, "LIMIT_BYTES", 1_000_000)
    write(tmp_path / "project" / "ponderay" / "model.bin", "x" * 200_000)
    sent = find_upload(settings(tmp_path / "x"), tmp_path / "project", ["large_of_mine"])
    with pytest.raises(InputError) as raised:
        sent.check_size()
    have = f"{tmp_path}/project and {tmp_path}/lab have 1.1 MB: tables.bin 0.9 MB, ponderay/ 0.2 MB"
    assert f"but {have}, large_of_mine.py 0.0 MB. Move" in str(raised.value)


def test_this_repository_is_small_and_has_its_packages(tmp_path):
    here = find_upload(Settings(tmp_path, "sqlite:///x.db"))
    here.check_size()
    names = {file.as_posix() for file in here.files}
    assert {"pyproject.toml", "orchestrator/__main__.py", "search_spaces/asr.py", "trainables/rng.py"} <= names
    assert here.num_bytes < 7_500_000
    assert not any(name.startswith("evidence/") for name in names)  # bundles of results, which no job reads


def test_a_sweep_of_ones_own_goes_with_its_folder_and_ponderays_packages_alone(tmp_path, monkeypatch):
    (tmp_path / "lab" / "mylab_sent").mkdir(parents=True)
    for name, text in (
        ("mylab_sent/__init__.py", ""),
        ("mylab_sent/toy.py", "import helper"),
        ("helper.py", ""),
        ("x.pem", "key"),
    ):
        (tmp_path / "lab" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "lab")
    found = find_upload(
        Settings(tmp_path / "runs", "sqlite:///x.db"), modules=["mylab_sent.toy", "trainables.asr.train"]
    )
    (own,) = found.others
    assert own.root == tmp_path / "lab"
    assert [file.as_posix() for file in own.files] == ["helper.py", "mylab_sent/__init__.py", "mylab_sent/toy.py"]
    assert {file.parts[0] for file in found.files} == {"orchestrator", "search_spaces", "trainables", "ponderay"}
    with packed(found) as package, zipfile.ZipFile(package) as opened:
        names = opened.namelist()
    assert {"mylab_sent/toy.py", "helper.py", "orchestrator/__main__.py", ".ponderay/commit"} <= set(names)
    assert found.num_files == len(found.files) + 3


@pytest.mark.parametrize("ignored", ["scratch*.py", "*"])
def test_a_sweep_that_git_would_leave_here_is_refused(tmp_path, monkeypatch, ignored):
    make_repository(tmp_path)
    write(tmp_path / "scratch_of_mine.py", "")
    write(tmp_path / "other.py", "")
    write(tmp_path / ".gitignore", f"{ignored}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"A job needs .*/scratch_of_mine\.py, but it stays here, as what \.gitignore"):
        find_upload(settings(tmp_path / "x"), modules=["scratch_of_mine"])


def test_a_folder_of_ones_own_with_the_name_of_a_package_cannot_go(tmp_path, monkeypatch):
    (tmp_path / "trainables").mkdir()
    for name in ("trainables/mine.py", "alone_of_its_name.py"):
        (tmp_path / name).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"trainables has the name of a package of Ponderay's; rename it"):
        find_upload(Settings(tmp_path / "runs", "sqlite:///x.db"), modules=["alone_of_its_name"])


def test_hidden_files_and_the_home_folder_stay_and_a_package_called_data_goes(tmp_path, monkeypatch):
    for name in ("alone_at_home.py", "data/__init__.py", "data/loader.py", ".history", ".cache/token"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    (own,) = find_upload(Settings(tmp_path / "runs", "sqlite:///x.db"), modules=["alone_at_home"]).others
    assert [file.as_posix() for file in own.files] == ["alone_at_home.py", "data/__init__.py", "data/loader.py"]
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"All of the sweep's folder goes with a job, but that is"):
        find_upload(Settings(tmp_path / "runs", "sqlite:///x.db"), modules=["alone_at_home"])
    (tmp_path / "a_link").symlink_to(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "a_link" / "data"))  # in the folder, and named by a link
    with pytest.raises(InputError, match=r"All of the sweep's folder goes with a job, but that is"):
        find_upload(Settings(tmp_path / "runs", "sqlite:///x.db"), modules=["alone_at_home"])
