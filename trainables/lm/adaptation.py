"""Tests of models that adapt: two settings are chosen on the validation part, and the test part is read with them."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from trainables.errors import DivergedError
from trainables.lm import adaptation_cost, cache, cost, dynamic_evaluation
from trainables.lm.adaptation_config import Cache, DynamicEvaluation
from trainables.lm.corpus import Corpus
from trainables.lm.evaluation import Score
from trainables.lm.network import AttachedRecoder, Network

Settings = tuple[float, float]
Read = Callable[[Tensor, Sequence[Settings]], list[Score]]
"""Scores of a text, one for each pair of settings."""


@dataclass(frozen=True)
class AdaptedTest:
    """What came of a test.

    Attributes:
        valid, test: scores with the chosen settings, of the validation and the test part.
        added_macs_per_token: beside those of the model and its recoder.
        metrics: the settings that were chosen, and what came before the test.
    """

    valid: Score
    test: Score
    added_macs_per_token: float
    metrics: dict[str, float]


@dataclass(frozen=True)
class _Prepared:
    """What is ready to read: the names and values of its two settings, and its cost.

    Attributes:
        num_passes: that `read` makes for all settings.
    """

    read: Read
    num_passes: int
    names: tuple[str, str]
    settings: list[Settings]
    added_macs_per_token: float
    statistics_macs: float


def adapt(
    network: Network, attached: AttachedRecoder | None, config: DynamicEvaluation | Cache, text: Corpus, seed: int
) -> AdaptedTest:
    """Chooses settings on the validation part, then reads it and the test part, each from the trained model on.

    Raises:
        DivergedError: if no setting, or none on the test part, leaves a perplexity that is a finite number.
    """
    if isinstance(config, DynamicEvaluation):
        prepared = _dynamic(network, attached, config, text, seed)
    else:
        prepared = _cache(network, attached, config, seed)
    recoder = attached.recoder if attached else None
    macs = cost.macs_per_token(network.config, recoder, text.size) + prepared.added_macs_per_token
    tuning = text.validation[: config.num_tuning_tokens]
    chosen = choose(prepared.read, prepared.settings, tuning)
    (valid,), (test,) = (prepared.read(part, [chosen]) for part in (text.validation, text.test))
    if not math.isfinite(test.perplexity):
        raise DivergedError(f"The test's perplexity is {test.perplexity} with {prepared.names} = {chosen}.")
    num_passes = prepared.num_passes if len(prepared.settings) > 1 else 0
    before = {"preparation_macs": prepared.statistics_macs + num_passes * (len(tuning) - 1) * macs}
    settings = dict(zip(prepared.names, chosen, strict=True))
    return AdaptedTest(valid, test, prepared.added_macs_per_token, before | settings)


def choose(read: Read, settings: Sequence[Settings], tokens: Tensor) -> Settings:
    """The first of the `settings` with the lowest loss on `tokens`, which are read where there is a choice.

    Raises:
        DivergedError: if no loss is a finite number.
    """
    if len(settings) == 1:
        return settings[0]
    losses = [score.loss_nats for score in read(tokens, settings)]
    finite = [(loss, number) for number, loss in enumerate(losses) if math.isfinite(loss)]
    if not finite:
        raise DivergedError(f"No loss on the validation part is finite; lower the rates of {list(settings)}.")
    return settings[min(finite)[1]]


def _dynamic(
    network: Network, attached: AttachedRecoder | None, config: DynamicEvaluation, text: Corpus, seed: int
) -> _Prepared:
    adapted = dynamic_evaluation.prepare(network, attached, config, text.train, seed)
    arguments = network.config, attached.recoder if attached else None, text.size, config, adapted.num_weights

    def read(tokens: Tensor, settings: Sequence[Settings]) -> list[Score]:
        return [dynamic_evaluation.score(adapted, tokens, *pair) for pair in settings]

    return _Prepared(
        read,
        len(config.rates) * len(config.decays),
        ("dynamic_rate", "dynamic_decay"),
        list(itertools.product(config.rates, config.decays)),
        adaptation_cost.dynamic_macs_per_token(*arguments),
        adaptation_cost.statistics_macs(*arguments, len(text.train) - 1),
    )


def _cache(network: Network, attached: AttachedRecoder | None, config: Cache, seed: int) -> _Prepared:
    def read(tokens: Tensor, settings: Sequence[Settings]) -> list[Score]:
        return cache.scores(network, attached, config, tokens, seed, settings)

    return _Prepared(
        read,
        1,
        ("cache_theta", "cache_share"),
        list(itertools.product(config.thetas, config.shares)),
        adaptation_cost.cache_macs_per_token(network.config, config),
        0.0,
    )
