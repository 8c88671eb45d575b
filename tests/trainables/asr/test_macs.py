"""The plain network that costs what routing costs, by the counter that evaluations use."""

import pytest

from trainables.asr.config import (
    AlwaysBig,
    AsrConfig,
    Budget,
    CausalConvolution,
    Convolutional,
    Learned,
    MaskedSelfAttention,
    Random,
    Surprisal,
)
from trainables.asr.cost import utterance_macs
from trainables.asr.macs import NUM_FRAMES, encoder_macs, part_macs, plain_width, width_of_big
from trainables.errors import InputError

NUM_LABELS = 41


def per_frame(config: AsrConfig, rate: float, num_frames: int = 1000) -> float:
    parts, num_big = part_macs(config, NUM_LABELS), round(rate * num_frames)
    return utterance_macs(config, config.controller, parts, num_frames, num_big) / num_frames


def plain(config: AsrConfig) -> AsrConfig:
    wide = config.with_value(f"network.{width_of_big(config.network)}", plain_width(config, NUM_LABELS))
    return wide.with_value("controller", AlwaysBig())


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("inputs", ["ar_features", "frames"])
@pytest.mark.parametrize("kind", ["random", "surprisal"])
def test_the_plain_network_costs_as_much_by_the_counter(kind: str, inputs: str, rate: float) -> None:
    controller = Random(p_big=rate) if kind == "random" else Surprisal(mu=rate)
    routed = AsrConfig(inputs=inputs, controller=controller)  # type: ignore[arg-type]
    assert per_frame(plain(routed), 1.0) == pytest.approx(per_frame(routed, rate), rel=0.001)


@pytest.mark.parametrize("encoder", [CausalConvolution(), MaskedSelfAttention()])
def test_other_encoders_are_charged_too(encoder: CausalConvolution | MaskedSelfAttention) -> None:
    """Attention costs a little more a frame in a longer utterance; 2 % covers 100 frames to 1,000."""
    routed = AsrConfig(inputs="frames", controller=Surprisal(mu=0.5)).with_value("ar.encoder", encoder)
    for num_frames in (100, 1000):
        ours, theirs = per_frame(plain(routed), 1.0, num_frames), per_frame(routed, 0.5, num_frames)
        assert ours == pytest.approx(theirs, rel=0.02)


def test_the_width_follows_from_the_paper_s_sizes_by_hand() -> None:
    """Small 512 x 512, big 2 x 512 x 2048, regressor 512 x 80 multiply-accumulates a frame; width w costs 1,024 w.

    Random at .5: (262,144 + 2,097,152) / 2 / 1,024 = 1,152; surprisal 40 more, for 40,960 / 1,024.
    Without AR features surprisal's rival has the encoder's 3,006,464 besides: 2,936 more.
    """
    config = AsrConfig(controller=Random(p_big=0.5))
    assert plain_width(config) == 1152
    surprisal = config.with_value("controller", Surprisal(mu=0.5))
    assert plain_width(surprisal) == 1192
    encoder = encoder_macs(surprisal.ar, NUM_FRAMES) / NUM_FRAMES
    on_frames = plain_width(surprisal.with_value("inputs", "frames"))
    assert encoder == 3 * (80 * 512 + 512 * 512) + 3 * 2 * 512 * 512 + 2 * 512 * 512 == 3_006_464
    assert on_frames == 1192 + 2936
    assert plain_width(config.with_value("inputs", "frames")) == 1152


@pytest.mark.parametrize("rate", [0.1, 0.65])
@pytest.mark.parametrize("inputs", ["ar_features", "frames"])
@pytest.mark.parametrize("model", ["model1", "model2", "model3"])
def test_the_models_of_appendix_a_have_plain_networks_too(model: str, inputs: str, rate: float) -> None:
    """Their outputs are part of what is routed, so the width hangs on the number of labels."""
    network = Convolutional(kind=model)  # type: ignore[arg-type]
    routed = AsrConfig(inputs=inputs, network=network, controller=Surprisal(mu=rate))  # type: ignore[arg-type]
    assert per_frame(plain(routed), 1.0) == pytest.approx(per_frame(routed, rate), rel=0.001)
    with pytest.raises(InputError, match=f"of {model}'s cost depends on its outputs; give `num_labels`"):
        plain_width(routed)


@pytest.mark.parametrize("controller", [AlwaysBig(), Learned(), Budget(macs_per_frame=1e6)])
def test_only_a_rate_that_is_known_has_a_plain_network(controller: AlwaysBig | Learned | Budget) -> None:
    with pytest.raises(InputError, match=f"random or surprisal routing, but got {controller.kind}; choose"):
        plain_width(AsrConfig(controller=controller))
