"""The sweeps that ask routing against plain networks of equal cost: who stands beside whom, and at which cost."""

import pytest

from search_spaces.find import find_sweep
from trainables.asr.config import AlwaysBig, AsrConfig, Random, Surprisal
from trainables.asr.cost import utterance_macs
from trainables.asr.macs import part_macs

SWEEPS = ("asr.equal_cost", "asr.equal_cost_timit", "asr.equal_cost_laptop")
SIZED = [f"{name}{size}" for name in SWEEPS for size in ("", ".smoke")]


def rate_of(config: AsrConfig) -> float:
    match config.controller:
        case Surprisal(mu=rate) | Random(p_big=rate):
            return rate
    return 1.0


def macs_per_frame(config: AsrConfig, num_frames: int) -> float:
    parts, num_big = part_macs(config, num_labels=41), round(rate_of(config) * num_frames)
    return utterance_macs(config, config.controller, parts, num_frames, num_big) / num_frames


@pytest.mark.parametrize("name", SIZED)
def test_each_plain_network_costs_within_2_per_cent_of_the_routing_beside_it(name: str) -> None:
    sweep = find_sweep(name)
    configs = {condition.name: sweep.config(condition, 1) for condition in sweep.conditions}
    rivals = [name for name in configs if name.endswith(",plain")]
    assert len(rivals) == 6
    for plain in rivals:
        routed = configs[plain.removesuffix(",plain")]
        assert isinstance(configs[plain].controller, AlwaysBig) and configs[plain].inputs == routed.inputs
        for num_frames in (100, 400):
            ratio = macs_per_frame(configs[plain], num_frames) / macs_per_frame(routed, num_frames)
            assert 0.98 < ratio < 1.02, (plain, num_frames)


@pytest.mark.parametrize("name", SIZED)
def test_surprisal_and_random_stand_at_two_rates_and_the_ends_beside_them(name: str) -> None:
    sweep = find_sweep(name)
    routed = {one.name: sweep.config(one, 1) for one in sweep.conditions if ",plain" not in one.name}
    ends = {"always_small", "always_big"}
    assert ends <= routed.keys() and sweep.reference in {one.name for one in sweep.conditions}
    rates = {
        (kind, inputs): sorted(rate_of(c) for c in routed.values() if (c.controller.kind, c.inputs) == (kind, inputs))
        for kind in ("surprisal", "random")
        for inputs in ("ar_features", "frames")
    }
    assert (
        rates["surprisal", "ar_features"] == rates["random", "ar_features"] and len(rates["random", "ar_features"]) == 2
    )
    assert rates["surprisal", "frames"] == rates["random", "frames"] == rates["random", "ar_features"][-1:]


@pytest.mark.parametrize("name", SIZED)
def test_a_plain_network_wider_than_the_big_one_also_learns_at_half_of_the_rate(name: str) -> None:
    sweep = find_sweep(name)
    configs = {condition.name: sweep.config(condition, 1) for condition in sweep.conditions}
    slow = {rival.removesuffix(",half_rate") for rival in configs if rival.endswith(",half_rate")}
    widths = {rival: config.network.big_hidden_size for rival, config in configs.items() if rival.endswith(",plain")}
    assert slow == {rival for rival, width in widths.items() if width > sweep.base.network.big_hidden_size}
    assert len(slow) == 1
    for rival in slow:
        halved = configs[rival].with_value("training.learning_rate", configs[rival].training.learning_rate / 2)
        assert configs[f"{rival},half_rate"] == halved


def test_on_frames_only_surprisal_pays_for_the_autoregressive_model() -> None:
    """Table 3: 2.91M and 5.75M parameters; in multiply-accumulates the model's 3,006,464 and the regressor's 40,960."""
    sweep = find_sweep("asr.equal_cost_timit")
    configs = {condition.name: sweep.config(condition, 1) for condition in sweep.conditions}
    surprisal, random = (macs_per_frame(configs[f"no_ar,{kind}_0.5"], 400) for kind in ("surprisal", "random"))
    assert surprisal - random == 3_006_464 + 40_960
