"""Where a result came from, also where the sources were uploaded to."""

from orchestrator import provenance


def test_uploaded_sources_say_the_commit_and_the_changes_of_where_they_came_from(tmp_path, monkeypatch):
    for name, text in {"commit": "0123abc+", "diff": "diff --git a/x b/x"}.items():
        file = tmp_path / provenance.BROUGHT / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    assert provenance.git_commit.__wrapped__() == "0123abc+"
    assert provenance.git_diff.__wrapped__() == "diff --git a/x b/x"


def test_sources_of_nowhere_have_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    assert (provenance.git_commit.__wrapped__(), provenance.git_diff.__wrapped__()) == ("unknown", "")
