"""The two studies that are recorded: one of listed conditions, of which one fails, and one that Optuna searches."""

from search_spaces.distributions import Real
from search_spaces.sweep import Search
from tests.integration.sweeps import tiny
from tests.integration.tiny import TinyConfig, TinyEvaluation

BASE = TinyConfig(evaluations=(TinyEvaluation(), TinyEvaluation(name="double", factor=2.0)))
CONDITIONS = {"low": {"x": 0.25}, "middle": {"x": 0.5}, "high": {"x": 0.75}, "broken": {"x": 1.0, "nan_at": 3}}

listed = tiny(CONDITIONS, "golden.listed", base=BASE, seeds=(1, 2, 3), reference="middle")
searched = tiny((), "golden.searched", base=BASE, search=Search({"x": Real(0.1, 1.0)}, num_trials=4))
