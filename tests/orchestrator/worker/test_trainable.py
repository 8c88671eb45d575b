"""What a trainable may leave out, and how its replicate ends then."""

import json

import pytest

from orchestrator.environment.settings import Settings
from orchestrator.journal.folder import ReplicateFolder
from orchestrator.scheduler.task_factory import TaskFactory
from orchestrator.worker.execute import execute
from search_spaces.find import find_sweep
from tests.door import PLAIN

EVALUATE = """
def evaluate(config, checkpoint, evaluation, trial):
    state = json.loads(checkpoint.read_text())
    report = {"loss": state["loss"], "macs": 1.0, "valid": float(state["step"] % 3)}
    trial.report(report, step=state["step"])


def selection(config):
    return {"test": SELECTED}


"""
VALID = ('{"loss": loss, "macs": config.width**2}', '{"loss": loss, "valid": float(step % 3)}')


def run(folder, source, name):
    """The records of the first replicate."""
    (folder / f"{name}.py").write_text(source)
    sweep = find_sweep(f"{folder / name}.py:toy")
    factory = TaskFactory(sweep, Settings(folder / "runs", "sqlite:///x.db"), num_gpus=0)
    work = factory.replicate(sweep.conditions[0], 1, {}).work
    records = []
    execute(work, records.append)
    return work, records


def last(records):
    return [record["metrics"] for record in records if record["kind"] in ("metrics", "evaluation")][-1]


def test_without_evaluate_the_last_report_is_the_result_and_the_last_checkpoint_stays(tmp_path):
    work, records = run(tmp_path, PLAIN, "plain_one")
    assert records[-1]["state"] == "complete" and work.num_steps is None
    assert [record["kind"] for record in records][-2:] == ["trained", "state"]
    assert last(records)["macs"] == 16
    (kept,) = ReplicateFolder(work.folder, {}).checkpoints().values()
    assert json.loads(kept.read_text())["step"] == 6


@pytest.mark.parametrize(
    ("selected", "step"), [('"valid"', 3), ('ponderay.Best("valid", "maximize")', 2), ('ponderay.Objective("loss")', 6)]
)
def test_selection_minimises_or_maximises(tmp_path, selected, step):
    source = PLAIN.replace(*VALID).replace("\ntoy =", EVALUATE.replace("SELECTED", selected) + "\ntoy =")
    source = source.replace('ponderay.Objective("macs")', 'ponderay.Objective("valid")')
    _, records = run(tmp_path, source, f"selecting_{step}")
    (evaluated,) = [record for record in records if record["kind"] == "evaluation"]
    losses = {one["step"]: one["metrics"]["loss"] for one in records if one["kind"] == "metrics"}
    expected = min(losses, key=losses.__getitem__) if "loss" in selected else step
    assert evaluated["step"] == expected and evaluated["metrics"]["loss@test"] == losses[expected]


def test_evaluate_without_a_selection_tests_the_last_checkpoint(tmp_path):
    evaluate = EVALUATE.partition("def selection")[0]
    _, records = run(tmp_path, PLAIN.replace("\ntoy =", f"{evaluate}\ntoy ="), "evaluating")
    (evaluated,) = [record for record in records if record["kind"] == "evaluation"]
    assert evaluated["step"] == 6


@pytest.mark.parametrize(
    ("line", "is_lost"),
    [
        ('open("nothing.txt")', False),
        ("raise OSError(28, 'No space left on device')", True),
        ("shutil.rmtree(trial._folder.path); trial._folder.path.write_text(''); trial.report({}, step=1)", True),
    ],
    ids=["a file of the trainable's", "a full disk", "the replicate's own folder"],
)
def test_a_file_that_is_not_there_is_the_trainables_fault_but_not_where_the_folder_is_lost(tmp_path, line, is_lost):
    source = PLAIN.replace("    rng, loss", f"    {line}\n    rng, loss").replace(
        "import json", "import json\nimport shutil"
    )
    _, records = run(tmp_path, source, f"failing_{is_lost}_{len(line)}")
    assert records[-1]["state"] == "failed" and records[-1]["is_lost"] is is_lost, records[-1]
    assert "nothing" in records[-1]["error"] or is_lost


def test_a_replicate_that_returned_is_not_trained_again_though_it_does_not_say_its_steps(tmp_path):
    work, _ = run(tmp_path, PLAIN, "once_only")
    folder = ReplicateFolder(work.folder, {})
    assert folder.is_trained(None) and not folder.is_trained(7)
    records = []
    execute(work.model_copy(update={"attempt": "second"}), records.append)
    assert "metrics" not in [record["kind"] for record in records] and records[-1]["state"] == "complete"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('{"loss": loss, "macs"', '{"loss": float("nan"), "macs"', "The metric loss is nan at step 6"),
        ("    for step in", "    return\n    for step in", "`train` returned without a report"),
        ("\ntoy =", "\ndef num_steps(config):\n    return 7\n\n\ntoy =", "after step 6, but its `num_steps` says 7"),
        (
            "\ntoy =",
            "\ndef selection(config):\n    return {'nonsense': 'lossx'}\n\n\ntoy =",
            "keeps 'nonsense' by 'lossx', which no report of `train` had; name one of loss, macs",
        ),
        ("step=step,", "step=1,", "Steps must rise, but step 1 was reported after step 1"),
        ("checkpoint=checkpoint)", 'checkpoint="nowhere.pt")', "there is no 'nowhere.pt'"),
        ("\ntoy =", "\ndef evaluate(config, checkpoint, evaluation, trial):\n    pass\n\n\ntoy =", "without a report"),
    ],
)
def test_what_left_no_result_is_a_failure_of_the_trainables_own(tmp_path, old, new, said):
    assert old in PLAIN
    _, records = run(tmp_path, PLAIN.replace(old, new), f"resultless_{abs(hash(new))}")
    assert (records[-1]["state"], records[-1].get("is_lost")) == ("failed", False), records[-1]
    assert said in records[-1]["error"]


def test_one_selection_of_another_name_chooses_the_checkpoint_and_need_not_be_reported_again(tmp_path):
    source = (
        EVALUATE.replace("SELECTED", '"valid"')
        .replace('"test":', '"best":')
        .replace('"valid": float', '"other": float')
    )
    _, records = run(tmp_path, PLAIN.replace(*VALID).replace("\ntoy =", source + "\ntoy ="), "one_selection")
    (evaluated,) = [record for record in records if record["kind"] == "evaluation"]
    assert evaluated["step"] == 3


def test_training_that_ends_by_a_rule_of_its_own_is_complete_where_num_steps_is_none(tmp_path):
    """With another config the same trainable has a last step, and must reach it."""
    source = PLAIN.replace("range(first, config.num_steps + 1)", "range(first, 5)")
    rule = "def num_steps(config):\n    return None if config.width == 4 else config.num_steps\n\n\ntoy ="
    work, records = run(tmp_path, source.replace("\ntoy =", f"\n{rule}"), "ends_early")
    assert work.num_steps is None and records[-1]["state"] == "complete"
    assert [record["step"] for record in records if record["kind"] == "metrics"] == [1, 2, 3, 4]
    other = find_sweep(f"{tmp_path / 'ends_early'}.py:toy")
    factory = TaskFactory(other, Settings(tmp_path / "runs", "sqlite:///x.db"), num_gpus=0)
    execute(factory.replicate(other.conditions[1], 1, {}).work, records.append)
    assert "`train` returned after step 4, but its `num_steps` says 6" in records[-1]["error"]
