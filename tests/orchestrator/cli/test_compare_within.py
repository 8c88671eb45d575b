"""`compare` of the conditions that have a setting."""

import json

from orchestrator.cli.compare import compare
from orchestrator.console.printing import Format
from orchestrator.results.study import Study
from tests.orchestrator.recorded import replicate


def test_a_filter_by_a_setting_compares_within_it(workplace, monkeypatch, capsys):
    """The effect of a setting is none of a condition: `pareto` and `report` have the same reference."""
    settings = {f"{name},batch_size=2": {"training.batch_size": "2"} for name in ("surprisal", "random")}
    names = ("surprisal", "random", *settings)
    rows = [replicate(name, seed, metrics={"per": seed / 10}) for name in names for seed in (1, 2, 3)]
    configs = {name: {"training.batch_size": "2" if name in settings else "8"} for name in names}
    study = Study("asr.demo", tuple(rows), configs=configs, settings=settings)
    monkeypatch.setattr("orchestrator.tracking.load.load_study", lambda *_: study)

    def pairs(where, *named):
        compare("asr.demo", *named, where=[where], metric=["per"], format=Format.json)
        return [(one["a"], one["b"]) for one in json.loads(capsys.readouterr().out)]

    assert pairs("batch_size=2") == pairs("batch_size=2", "surprisal,batch_size=2") == [tuple(settings)]
    assert pairs("batch_size=8") == [("surprisal", "random")]
