"""Where a result came from, also where the sources were uploaded to."""

import subprocess

from orchestrator.tracking import checkout


def test_uploaded_sources_say_the_commit_and_the_changes_of_where_they_came_from(tmp_path, monkeypatch):
    for name, text in {"commit": "0123abc+", "diff": "diff --git a/x b/x"}.items():
        file = tmp_path / checkout.BROUGHT / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(checkout, "SOURCE", tmp_path)
    assert checkout.git_commit.__wrapped__() == "0123abc+"
    assert checkout.git_diff.__wrapped__() == "diff --git a/x b/x"


def test_sources_of_nowhere_have_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout, "SOURCE", tmp_path)
    assert (checkout.git_commit.__wrapped__(), checkout.git_diff.__wrapped__()) == ("unknown", "")


def test_recorded_changes_hold_nothing_of_files_that_do_not_go_with_a_job(tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)  # noqa: S603

    git("init", "-q")
    git("-c", "user.name=me", "-c", "user.email=me@lab", "commit", "-q", "--allow-empty", "-m", "first")
    for name in (".pgpass", "keys/Server.PEM", "mine/cluster.lab.yml", ".aws/config", "credentials", "model.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"hunter2 of {name}\n")
    git("add", "-A")
    monkeypatch.setattr(checkout, "SOURCE", tmp_path)
    diff = checkout.git_diff.__wrapped__()
    assert [line for line in diff.splitlines() if "hunter2" in line] == ["+hunter2 of model.py"]


def test_recorded_changes_have_no_secrets_and_are_as_git_makes_them_whatever_the_user_likes(tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)  # noqa: S603

    git("init", "-q")
    git("-c", "user.name=me", "-c", "user.email=me@lab", "commit", "-q", "--allow-empty", "-m", "first")
    texts = {
        "conf.yaml": "password: Tr0ub4dor\nwidth: 8\n",
        "conf.ini": "token = t0k3nt0k3n\n",
        "db.properties": "db.password=x1x2x3\n",
        "model.py": 'password = """z9z9z9"""\ntoken = next(tokens)\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    git("add", "-A")
    for setting, value in {"diff.external": "true", "color.ui": "always", "diff.noprefix": "true"}.items():
        git("config", setting, value)
    monkeypatch.setattr(checkout, "SOURCE", tmp_path)
    diff = checkout.git_diff.__wrapped__()
    for secret in ("Tr0ub4dor", "t0k3nt0k3n", "x1x2x3", "z9z9z9", "\x1b"):
        assert secret not in diff
    assert "+width: 8" in diff and "+token = next(tokens)" in diff and "+++ b/conf.yaml" in diff
