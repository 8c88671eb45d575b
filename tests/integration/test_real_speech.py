"""The main job on real recordings, at its smoke size, without Ray."""

import pytest
from rich.console import Console

from orchestrator.driver import run_without_ray
from orchestrator.settings import read_settings
from orchestrator.storage import ReplicateFolder
from search_spaces.find import find_sweep


@pytest.mark.slow
@pytest.mark.data
def test_a_recogniser_learns_from_real_speech_and_is_tested_on_other_speakers(workplace, real_data):
    sweep = find_sweep("asr.laptop_librispeech", smoke=True).only("surprisal", 1)
    (replicate,) = run_without_ray(sweep, read_settings(), Console(quiet=True), accept_code=False).replicates
    assert replicate.state == "complete"
    folder = ReplicateFolder(workplace / "runs/replicates" / sweep.name / replicate.key, {})
    untrained = next(r for r in folder.records() if r["kind"] == "metrics" and r["step"] == 0)
    assert replicate.metrics["valid_per@stochastic"] < 0.95 * untrained["metrics"]["valid_per@stochastic"]
    assert replicate.metrics["per@stochastic"] < 0.95
    assert 0.3 < replicate.metrics["routing_rate@stochastic"] < 0.7
