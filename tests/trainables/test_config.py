import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pydantic
import pytest

from trainables.asr.config import (
    AlwaysBig,
    AsrConfig,
    Convolutional,
    Evaluation,
    Learned,
    MaskedSelfAttention,
    Random,
    Surprisal,
)
from trainables.asr.data.config import Features, HeldOutSpeakers, LibriSpeech, Timit
from trainables.config import IN_KEY_IF_SET, NOT_IN_KEY, Config, content_hash, flatten, key_content
from trainables.errors import InputError


class Excluding(pydantic.BaseModel):
    seed: int = 1
    note: str = pydantic.Field("a", exclude=True)


def test_a_field_that_no_record_holds_is_refused():
    with pytest.raises(InputError, match=r"`Excluding.note` has `exclude=True`, .* `Annotated\[T, ponderay"):
        content_hash(Excluding())


def test_with_value_changes_one_leaf_and_nothing_else():
    before = AsrConfig()
    after = before.with_value("training.learning_rate", 0.01)
    assert after.training.learning_rate == 0.01
    changed = {path for path, value in flatten(after).items() if flatten(before)[path] != value}
    assert changed == {"training.learning_rate"}
    assert before.training.learning_rate == 3e-4


def test_with_value_takes_a_whole_variant():
    assert AsrConfig().with_value("controller", Random(p_big=0.2)).controller == Random(p_big=0.2)
    assert AsrConfig().with_value("controller", {"kind": "random", "p_big": 0.2}).controller == Random(p_big=0.2)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("trainin.learning_rate", 1, "`trainin.learning_rate` is not a config path"),
        ("training.rate", 1, "'rate' is not one of batch_size, decay, learning_rate"),
        ("seed.more", 1, "`seed` has no fields"),
        ("training.learning_rate", 5, "`training.learning_rate`: Input should be less than or equal to 1, but got 5"),
        ("network.dropout", 1.0, "`network.dropout`: Input should be less than 1, but got 1.0"),
        ("controller.mu", "x", "`controller.mu`: Input should be a valid number"),
        ("controller.kind", "random", """is set whole: `--set 'controller={"kind": "random"}'`."""),
    ],
)
def test_a_wrong_path_or_value_is_one_line_with_rule_and_value(path: str, value: object, said: str):
    with pytest.raises(InputError) as raised:
        AsrConfig().with_value(path, value)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_key_leaves_out_paths_seeds_and_evaluations_only(tmp_path):
    base = AsrConfig()
    same = [
        base.with_value("data", LibriSpeech(root=tmp_path)),
        base.with_value("seed", 7),
        base.with_value("evaluations", (Evaluation(), Evaluation(name="d", routing="deterministic"))),
    ]
    other = [
        base.with_value("controller", Surprisal(mu=0.5)),
        base.with_value("ar.seed", 2),
        base.with_value("data.test", "test-other"),
    ]
    assert {content_hash(config) for config in same} == {content_hash(base)}
    assert len({content_hash(config) for config in [base, *other]}) == 4
    assert "seed" in key_content(base)["ar"]


def test_content_hash_does_not_depend_on_order_but_on_kind():
    assert content_hash({"a": 1, "b": 2}) == content_hash({"b": 2, "a": 1})
    assert content_hash(AsrConfig(controller=Random(p_big=0.5))) != content_hash(AsrConfig())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"controller": Random(), "training_routing": "deterministic"}, "needs a p_big that varies"),
        ({"evaluations": (Evaluation(routing="deterministic", controller=Random()),)}, "needs a p_big that varies"),
        ({"evaluations": (Evaluation(bias_raise=0.5, controller=Random()),)}, "bias_raise needs a fitted controller"),
        ({"evaluations": (Evaluation(checkpoint_of="other"),)}, "checkpoint_of must be one of"),
        ({"controller": AlwaysBig(), "evaluations": (Evaluation(controller=Random()),)}, "has one network only"),
        ({"network": Convolutional(kind="model1"), "network.kernel_frames": 4}, "kernel_frames must be odd"),
        ({"ar.features.window_ms": 25.07}, "must give an even number of samples at 16 kHz, but gives 401"),
        ({"ar.features.hop_ms": 0.06}, "hop_ms must give a sample at 16 kHz, so be 0.0625 at least, but got 0.06"),
        ({"ar.spared": LibriSpeech()}, "ar.spared is set by the task"),
        ({"data": Timit(), "ar.data": Timit(split=HeldOutSpeakers())}, r"ar\.data\.split must be the task's, whose"),
        (
            {"data": Timit(), "controller": Surprisal(data=Timit(split=HeldOutSpeakers(seed=2)))},
            r"controller\.data\.split must be the task's, whose speakers .* but got held_out_speakers",
        ),
        ({"controller": AlwaysBig(), "training_routing": "deterministic"}, "needs a p_big that varies"),
        ({"controller": Learned(), "training_routing": "deterministic"}, "needs a p_big that varies"),
        ({"ar.encoder": MaskedSelfAttention(num_heads=3)}, "must be a multiple of encoder.num_heads = 3"),
    ],
)
def test_settings_that_make_no_sense_together_are_refused(values, said):
    config = AsrConfig()
    with pytest.raises(InputError, match=said):
        for path, value in values.items():
            config = config.with_value(path, value)


def test_a_frame_is_as_long_as_the_samples_that_its_hop_is_cut_to():
    """8.1 ms are 129.6 samples, of which 129 are taken."""
    assert Features().frame_s == 0.02
    assert Features(hop_ms=8.1, keep_every=2).frame_s == 2 * 129 / 16_000


def test_two_evaluations_of_one_name_are_refused():
    with pytest.raises(InputError, match="names of evaluations must differ"):
        AsrConfig().with_value("evaluations", (Evaluation(), Evaluation()))


class Source(Config):
    name: str = "a"
    root: Annotated[Path, NOT_IN_KEY] = Path("/a")


class Corpora(Config):
    folder: Annotated[Path, NOT_IN_KEY] | None = Path("/a")
    sources: tuple[Source, ...] = (Source(),)
    by_name: Mapping[str, Source] = {"x": Source()}


@dataclasses.dataclass(frozen=True)
class CorporaOfADataclass:
    folder: Annotated[Path, NOT_IN_KEY] | None = Path("/a")
    sources: tuple[Source, ...] = (Source(),)
    by_name: Mapping[str, Source] = dataclasses.field(default_factory=lambda: {"x": Source()})


@pytest.mark.parametrize("kind", [Corpora, CorporaOfADataclass])
def test_a_path_that_is_marked_is_in_no_key_wherever_it_stands(kind):
    moved = Source(root=Path("/b"))
    assert content_hash(kind()) == content_hash(kind(folder=Path("/b"), sources=(moved,), by_name={"x": moved}))
    assert content_hash(kind()) != content_hash(kind(sources=(Source(name="b"),)))
    assert content_hash(kind()) != content_hash(kind(by_name={"y": Source()}))


def test_a_field_that_came_later_is_in_the_key_only_where_it_is_set():
    class Before(Config):
        rate: float = 0.5

    class After(Config):
        rate: float = 0.5
        later: Annotated[int | None, IN_KEY_IF_SET] = None

    assert content_hash(After()) == content_hash(Before())
    assert content_hash(After(later=3)) != content_hash(Before())
    assert key_content(After(later=3)) == {"rate": 0.5, "later": 3}


def made_by_a_model():
    class After(Config):
        rate: float = 0.5
        later: Annotated[tuple[int, ...], IN_KEY_IF_SET] = pydantic.Field(default_factory=lambda: (1, 2))

    return After


def made_by_a_model_from_what_is_set():
    class After(Config):
        rate: float = 0.5
        later: Annotated[tuple[int, ...], IN_KEY_IF_SET] = pydantic.Field(
            default_factory=lambda given: (int(2 * given["rate"]), 2)
        )

    return After


def made_by_a_dataclass():
    @dataclasses.dataclass(frozen=True)
    class After:
        rate: float = 0.5
        later: Annotated[tuple[int, ...], IN_KEY_IF_SET] = dataclasses.field(default_factory=lambda: (1, 2))

    return After


def made_by_a_dataclass_of_pydantic():
    @pydantic.dataclasses.dataclass(frozen=True)
    class After:
        rate: float = 0.5
        later: Annotated[tuple[int, ...], IN_KEY_IF_SET] = pydantic.Field(default_factory=lambda: (1, 2))

    return After


@pytest.mark.parametrize(
    "kind",
    [made_by_a_model, made_by_a_model_from_what_is_set, made_by_a_dataclass, made_by_a_dataclass_of_pydantic],
)
def test_a_default_that_a_function_makes_leaves_the_key_as_it_was(kind):
    after = kind()
    assert key_content(after()) == {"rate": 0.5}
    assert key_content(after(later=(3,))) == {"rate": 0.5, "later": [3]}
