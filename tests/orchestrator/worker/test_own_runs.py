"""A run that a trainable opens in MLflow by itself goes where the user's own variable points, or is refused."""

import os
import sqlite3

import pytest

from tests.door import PLAIN
from tests.orchestrator.worker.test_trainable import EVALUATE, VALID, last, run

OPENS = """        import mlflow
        with mlflow.start_run():
            mlflow.log_metric("mine", 1.0)
"""
IN_TRAIN = PLAIN.replace("    for step in", f"    if first == 1:\n{OPENS}    for step in")
IN_EVALUATE = (
    PLAIN.replace(*VALID)
    .replace("\ntoy =", EVALUATE.replace("SELECTED", '"valid"') + "\ntoy =")
    .replace('ponderay.Objective("macs")', 'ponderay.Objective("valid")')
    .replace("    state = json.loads(checkpoint", f"    if checkpoint:\n{OPENS}    state = json.loads(checkpoint")
)


@pytest.mark.parametrize(("source", "name"), [(IN_TRAIN, "opens_in_train"), (IN_EVALUATE, "opens_in_evaluate")])
@pytest.mark.parametrize("variable", [None, ""])
def test_without_a_store_of_its_own_it_is_refused_in_words_and_leaves_nothing(
    workplace, monkeypatch, source, name, variable
):
    if variable is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", variable)
    _, records = run(workplace, source, f"{name}_{variable is None}".lower())
    assert records[-1]["state"] == "failed" and records[-1]["is_input_error"]
    assert records[-1]["error"].startswith(
        "A run that a trainable opens in MLflow by itself needs a store of its own: "
    )
    assert not {"mlflow.db", "mlruns"} & {found.name for found in workplace.iterdir()}
    assert not os.environ.get("MLFLOW_TRACKING_URI")


@pytest.mark.slow
def test_it_goes_to_the_users_own_store(workplace, monkeypatch):
    """MLflow takes seconds to make the tables."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mine.db")
    _, records = run(workplace, IN_TRAIN, "opens_in_its_store")
    assert records[-1]["state"] == "complete" and last(records)["macs"] == 16
    with sqlite3.connect(workplace / "mine.db") as store:
        assert store.execute("SELECT key, value FROM metrics").fetchall() == [("mine", 1.0)]


def test_a_trainable_that_names_a_store_itself_is_let(workplace):
    source = PLAIN.replace("    for step in", '    os.environ["MLFLOW_TRACKING_URI"] = "file:mine"\n    for step in')
    _, records = run(workplace, source.replace("import json", "import json\nimport os"), "names_a_store")
    assert records[-1]["state"] == "complete"
    assert os.environ.pop("MLFLOW_TRACKING_URI") == "file:mine"


def test_other_failures_keep_their_own_words(workplace):
    source = PLAIN.replace("    for step in", '    raise RuntimeError("unsupported URI")\n    for step in')
    _, records = run(workplace, source, "fails_otherwise")
    assert records[-1]["error"] == "RuntimeError: unsupported URI"
