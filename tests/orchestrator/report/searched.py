"""The bundle of a made-up search, for tests of what is made of it."""

import random
from pathlib import Path

from optuna.distributions import FloatDistribution, distribution_to_json

from orchestrator.report.answer_tables import tables
from orchestrator.report.answers import answer
from orchestrator.report.bundle.verify import search_tables
from orchestrator.report.bundle.write import write_bundle
from orchestrator.results.study import Study
from orchestrator.results.trials import Trial, Trials
from tests.orchestrator.recorded import replicate
from tests.orchestrator.report.studies import PROVENANCE, question

SPACE = {path: distribution_to_json(FloatDistribution(0.0, 1.0)) for path in ("x", "y")}


def write_search(file: Path) -> Path:
    """Of 20 conditions with two seeds: the error is x, the cost y, and a seed adds its number to both.

    The first condition was told of before its second seed was asked for.
    """
    numbers = random.Random(0)
    drawn = {f"{i:04d}": {"x": numbers.random(), "y": numbers.random()} for i in range(20)}
    made = [
        replicate(name, seed, metrics={"per": one["x"] + seed, "macs_per_frame": one["y"] + seed})
        for name, one in drawn.items()
        for seed in (1, 2)
    ]
    trials = tuple(
        Trial(name, one, tuple(value + (1.0 if name == "0000" else 1.5) for value in one.values()))
        for name, one in drawn.items()
    )
    search = Trials("asr.demo", ("per", "macs_per_frame"), SPACE, trials)
    answers = answer(Study("asr.demo", tuple(made)), question(reference="", configs={}))
    write_bundle(file, answers, (*tables(answers), *search_tables(search)), PROVENANCE, "<html></html>", search)
    return file
